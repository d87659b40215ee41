package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/tools/kit"
)

// SearchConfig names a search engine. Its zero value means that there is none.
type SearchConfig struct {
	// Kind is the protocol: brave, searxng, tavily or json; "" = no search.
	Kind string

	// URL of the endpoint. "" = the public one of brave and tavily. That of
	// searxng is the base of the instance. That of json is a template with
	// {query}, and perhaps {count} and {key}, in its path or query. It is the
	// user's word: the host may be on the own network, or localhost.
	URL string

	// Key is sent as the kind wants it; with json as KeyHeader says.
	Key string

	// KeyHeader is the header for Key with json; "" = Authorization: Bearer. It is
	// not sent where the template has {key}.
	KeyHeader string

	// Fields of the answer with json, as paths of names and indexes joined by
	// dots: the list of results, and in each of them title, url, snippet, date.
	// "" = results, title, url, snippet, date.
	Results, Title, Link, Snippet, Date string
}

// The public endpoints, and what the engines document:
// api-dashboard.search.brave.com/api-reference/web/search/get,
// docs.tavily.com/documentation/api-reference/endpoint/search,
// docs.searxng.org/dev/search_api.html.
const (
	braveURL  = "https://api.search.brave.com/res/v1/web/search"
	tavilyURL = "https://api.tavily.com/search"
)

// Check reports the first mistake. It never quotes the key.
func (s SearchConfig) Check() error {
	if s.Kind == "" {
		return nil
	}
	if !slices.Contains([]string{"brave", "searxng", "tavily", "json"}, s.Kind) {
		return fmt.Errorf("configuring search: the kind %s is none of brave, searxng, tavily, json", kit.Quote(s.Kind, 40))
	}
	if s.Key == "" && (s.Kind == "brave" || s.Kind == "tavily") {
		return fmt.Errorf("configuring search: %s needs a key", s.Kind)
	}
	if !httpguts.ValidHeaderFieldValue(s.Key) || s.KeyHeader != "" && !httpguts.ValidHeaderFieldName(s.KeyHeader) {
		return fmt.Errorf("configuring search: the key or its header has characters that cannot be sent")
	}
	before, _, ok := strings.Cut(s.URL, "{query}")
	if s.Kind == "json" && !ok {
		return fmt.Errorf("configuring search: the URL has no {query}")
	}
	if s.Kind == "json" && strings.Count(before, "/") < 3 {
		return fmt.Errorf("configuring search: {query} stands in the host")
	}
	if _, err := parseTarget(s.endpoint("x", 1)); err != nil {
		return fmt.Errorf("configuring search: the URL is not one of http or https, or names no host")
	}
	return nil
}

// endpoint is where a query goes.
func (s SearchConfig) endpoint(query string, count int) string {
	at := s.URL
	var args url.Values
	switch s.Kind {
	case "brave":
		if at == "" {
			at = braveURL
		}
		args = url.Values{"q": {query}, "count": {strconv.Itoa(count)}, "text_decorations": {"false"}}
	case "searxng":
		at = strings.TrimSuffix(strings.TrimRight(at, "/"), "/search") + "/search"
		args = url.Values{"q": {query}, "format": {"json"}}
	case "tavily":
		if at == "" {
			return tavilyURL
		}
		return at
	default:
		return strings.NewReplacer("{query}", url.QueryEscape(query), "{count}", strconv.Itoa(count), "{key}", url.QueryEscape(s.Key)).Replace(at)
	}
	if strings.Contains(at, "?") {
		return at + "&" + args.Encode()
	}
	return at + "?" + args.Encode()
}

// engine asks the configured search engine.
type engine struct {
	cfg    SearchConfig
	at     target
	client *client
}

func newEngine(c Config) *engine {
	if c.Search.Kind == "" || c.Mode == Off {
		return nil
	}
	at, err := parseTarget(c.Search.endpoint("x", 1))
	if err != nil {
		panic("web: " + err.Error()) // Check has refused it
	}
	// The endpoint is the user's own word. Its client can reach it and no other.
	only := policy{mode: Internal, allow: []hosts.Rule{{Name: at.host, Port: at.port}}, permit: c.Permit}
	return &engine{cfg: c.Search, at: at, client: newClient(c, only)}
}

// ask returns what the engine found. Filters are a hint to it: the caller
// applies them to what comes back.
func (g *engine) ask(ctx context.Context, in searchInput) ([]hit, error) {
	count := int(in.Count)
	if len(in.Allowed)+len(in.Blocked) > 0 {
		count = maxCount
	}
	query := in.Query
	if g.cfg.Kind != "tavily" {
		query = narrowed(in)
	}
	to, err := parseTarget(g.cfg.endpoint(query, count))
	if err != nil {
		return nil, kit.Refuse(agent.ErrInput, "the query is too long for the search engine", "Use fewer words.")
	}
	e := exchange{method: http.MethodGet, to: to, header: http.Header{"Accept": {"application/json"}}, limit: searchBody}
	switch g.cfg.Kind {
	case "brave":
		e.header.Set("X-Subscription-Token", g.cfg.Key)
	case "tavily":
		e.method = http.MethodPost
		e.header.Set("Content-Type", "application/json")
		e.header.Set("Authorization", "Bearer "+g.cfg.Key)
		e.body = string(kit.Structured(struct {
			Query   string   `json:"query"`
			Max     int      `json:"max_results"`
			Include []string `json:"include_domains,omitempty"`
			Exclude []string `json:"exclude_domains,omitempty"`
		}{query, count, in.Allowed, in.Blocked}))
	default:
		switch {
		case g.cfg.Key == "" || strings.Contains(g.cfg.URL, "{key}"):
		case g.cfg.KeyHeader == "":
			e.header.Set("Authorization", "Bearer "+g.cfg.Key)
		default:
			e.header.Set(g.cfg.KeyHeader, g.cfg.Key)
		}
	}
	r, err := g.client.do(ctx, e)
	if err != nil {
		return nil, err
	}
	return g.read(r)
}

// narrowed adds domains to a query as operators that most engines know, as long
// as the query stays short enough.
func narrowed(in searchInput) string {
	q := in.Query
	if len(in.Allowed) > 0 {
		q += " site:" + strings.Join(in.Allowed, " OR site:")
	}
	for _, d := range in.Blocked {
		q += " -site:" + d
	}
	if len(q) > maxQuery {
		return in.Query
	}
	return q
}

func (g *engine) read(r *reply) ([]hit, error) {
	if r.status != http.StatusOK {
		next := "Try again later, or go on without it."
		if r.status == http.StatusUnauthorized || r.status == http.StatusForbidden {
			next = "Tell the user that the search engine does not accept its key, or does not give out JSON."
		}
		return nil, kit.Refuse(ErrWebStatus, strings.TrimSpace(fmt.Sprintf("the search engine answered HTTP %d %s", r.status, http.StatusText(r.status))), next)
	}
	var answer any
	d := json.NewDecoder(bytes.NewReader(r.body))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil || r.cut {
		return nil, kit.Refuse(ErrWebFetch, "the search engine did not answer with JSON that can be read", "Go on without it, and tell the user.")
	}
	list, title, link, snippet, date := g.cfg.paths()
	found, ok := lookIn(answer, list).([]any)
	if !ok && g.cfg.Kind == "json" {
		return nil, kit.Refuse(ErrWebFetch, "the search engine's answer has no list at "+kit.Quote(list, 100), "Tell the user.")
	}
	var hits []hit
	for _, f := range found[:min(len(found), 10*maxCount)] {
		hits = append(hits, hit{Title: textIn(f, title), URL: textIn(f, link), Snippet: textIn(f, snippet), Date: textIn(f, date)})
	}
	return hits, nil
}

// paths returns where the fields of an answer are. Several paths, the first that
// is there counts, are joined by |.
func (s SearchConfig) paths() (list, title, link, snippet, date string) {
	switch s.Kind {
	case "brave":
		return "web.results", "title", "url", "description", "page_age|age"
	case "searxng":
		return "results", "title", "url", "content", "publishedDate"
	case "tavily":
		return "results", "title", "url", "content", "published_date"
	}
	or := func(s, standard string) string {
		if s == "" {
			return standard
		}
		return s
	}
	return or(s.Results, "results"), or(s.Title, "title"), or(s.Link, "url"), or(s.Snippet, "snippet"), or(s.Date, "date")
}

// lookIn follows a path into JSON; nil when it leads nowhere.
func lookIn(v any, path string) any {
	for step := range strings.SplitSeq(path, ".") {
		switch x := v.(type) {
		case map[string]any:
			v = x[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

func textIn(v any, paths string) string {
	for path := range strings.SplitSeq(paths, "|") {
		switch x := lookIn(v, path).(type) {
		case string:
			return x
		case json.Number:
			return x.String()
		}
	}
	return ""
}
