package web

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/tools/kit"
)

//go:embed search.md
var searchText string

// Limits of a search.
const (
	maxQuery     = 400 // characters; some engines take no more
	defaultCount = 8
	maxCount     = 20
	maxDomains   = 20
	maxTitle     = 200 // bytes
	maxSnippet   = 500
	maxDate      = 40
	searchBody   = 2 << 20
	searchBudget = 12_000
)

type searchInput struct {
	Query   string    `json:"query"`
	Allowed []string  `json:"allowed_domains"`
	Blocked []string  `json:"blocked_domains"`
	Count   kit.Whole `json:"count"`
}

// hit is one result.
type hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
	Date    string `json:"date,omitempty"`
}

// searchAnswer is the structured answer.
type searchAnswer struct {
	Query   string  `json:"query"`
	Results []hit   `json:"results"`
	Seconds float64 `json:"durationSeconds"`
}

func (w *Web) search() kit.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "web__search", Description: kit.Describe(searchText),
			Input: json.RawMessage(`{"type":"object","properties":{` +
				`"query":{"type":"string"},` +
				`"allowed_domains":{"type":"array","items":{"type":"string"}},` +
				`"blocked_domains":{"type":"array","items":{"type":"string"}},` +
				`"count":{"type":"integer","minimum":1,"maximum":20}},` +
				`"required":["query"],"additionalProperties":false}`),
			Class: agent.Read, Group: "web", Risk: agent.RiskMedium, Limit: w.cfg.Limits.Total + 5*time.Second, Budget: searchBudget,
			Aliases: map[string]string{"q": "query", "limit": "count", "max_results": "count"},
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			if _, err := readSearch(c); err != nil {
				return agent.Effects{}, err
			}
			if w.engine == nil {
				return agent.Effects{}, errNoEngine()
			}
			return agent.Effects{Hosts: []string{w.engine.at.dial()}}, nil
		},
		Does: w.runSearch,
	}
}

func errNoEngine() error {
	return kit.Refuse(agent.ErrTool, "no search engine is configured", "Go on without it.")
}

func readSearch(c agent.Call) (searchInput, error) {
	in, err := kit.Decode[searchInput](c)
	if err != nil {
		return in, err
	}
	in.Query = strings.Join(strings.Fields(in.Query), " ")
	switch n := utf8.RuneCountInString(in.Query); {
	case n == 0:
		return in, kit.Refuse(agent.ErrInput, "query is empty", "Say what to search for.")
	case n > maxQuery:
		return in, kit.Refuse(agent.ErrInput, fmt.Sprintf("the query has more than %d characters", maxQuery), "Use a few telling words.")
	case len(in.Allowed) > maxDomains || len(in.Blocked) > maxDomains:
		return in, kit.Refuse(agent.ErrInput, fmt.Sprintf("there are more than %d domains", maxDomains), "Name fewer.")
	}
	for _, list := range [][]string{in.Allowed, in.Blocked} {
		for i, d := range list {
			if list[i], err = domainOf(d); err != nil {
				return in, err
			}
		}
	}
	if in.Count == 0 {
		in.Count = defaultCount
	}
	in.Count = min(max(in.Count, 1), maxCount)
	return in, nil
}

// domainOf returns the host that a model means by a domain: it may have written
// a URL or a pattern.
func domainOf(raw string) (string, error) {
	s := strings.TrimSpace(raw)
	if _, rest, ok := strings.Cut(s, "://"); ok {
		s = rest
	}
	s, _, _ = strings.Cut(s, "/")
	s, err := hosts.Name(strings.TrimLeft(strings.TrimPrefix(s, "*"), "."))
	if err != nil {
		return "", kit.Refuse(agent.ErrInput, "the domain "+kit.Quote(raw, 100)+" "+err.Error(), "Use a host such as go.dev.")
	}
	return s, nil
}

func (w *Web) runSearch(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := readSearch(c)
	if err != nil {
		return agent.Result{}, err
	}
	if w.engine == nil {
		return agent.Result{}, errNoEngine()
	}
	net, cancel := context.WithTimeout(ctx, w.cfg.Limits.Total)
	defer cancel()
	start := w.cfg.Now()
	found, err := w.engine.ask(net, in)
	if err != nil {
		if te, ok := errors.AsType[*agent.ToolError](err); ok && te.Code == agent.ErrInput {
			te.Code = agent.ErrTool // the input was good
		}
		return agent.Result{}, err
	}
	hits := choose(found, in)
	var b strings.Builder
	for i, h := range hits {
		fmt.Fprintf(&b, "%d. [%s](%s)", i+1, h.Title, h.URL)
		if h.Date != "" {
			b.WriteString(" – " + h.Date)
		}
		if h.Snippet != "" {
			b.WriteString("\n   " + h.Snippet)
		}
		b.WriteByte('\n')
	}
	r := agent.OK("No results for " + kit.Quote(in.Query, 2*maxQuery) + ". Try other words, or fewer.")
	if len(hits) > 0 {
		r = agent.OK(fmt.Sprintf("Results for %s:\n", kit.Quote(in.Query, 2*maxQuery)) + framed(agent.CallEnvOf(ctx).Key, b.String()))
	}
	r.Output = kit.Structured(searchAnswer{Query: in.Query, Results: hits, Seconds: w.cfg.Now().Sub(start).Seconds()})
	return r, nil
}

// choose returns the results that the call wants, clean and in their order.
func choose(found []hit, in searchInput) []hit {
	hits := []hit{}
	seen := map[string]bool{}
	for _, h := range found {
		t, err := parseTarget(h.URL)
		if err != nil || seen[t.String()] || len(hits) == int(in.Count) ||
			len(in.Allowed) > 0 && !within(t.host, in.Allowed) || within(t.host, in.Blocked) {
			continue
		}
		seen[t.String()] = true
		h.URL = strings.NewReplacer("(", "%28", ")", "%29", " ", "%20").Replace(t.String())
		h.Title = strings.NewReplacer("[", "(", "]", ")").Replace(plain(h.Title, maxTitle))
		if h.Title == "" {
			h.Title = t.host
		}
		h.Snippet, h.Date = plain(h.Snippet, maxSnippet), plain(h.Date, maxDate)
		hits = append(hits, h)
	}
	return hits
}

// within reports whether a host is one of domains or below one.
func within(host string, domains []string) bool {
	for _, d := range domains {
		if host == d || strings.HasSuffix(host, "."+d) {
			return true
		}
	}
	return false
}

// plain returns the text of a piece of HTML in one line of at most n bytes.
func plain(s string, n int) string {
	s = strings.ToValidUTF8(s[:min(len(s), 16<<10)], "")
	var b strings.Builder
	for z := html.NewTokenizer(strings.NewReader(s)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return kit.Line(b.String(), n)
		case html.TextToken:
			b.WriteString(z.Token().Data)
		}
	}
}
