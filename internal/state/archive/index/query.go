package index

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"dure/agent/query"
)

// Bounds of a query.
const (
	maxQuery = 1000 // bytes
	maxTerms = 32
)

// A QueryError says what is wrong with a query, for the person who wrote it.
type QueryError struct{ Why string }

func (e *QueryError) Error() string { return e.Why }

// A term is a word or a phrase that a document has to have, or not to have.
type term struct {
	parts  []part
	prefix bool // its last part may go on
	not    bool
}

// A part is a folded word, or the characters of one of the other kind.
type part struct {
	text string
	cjk  bool
}

// A request is a query that was understood.
type request struct {
	terms []term

	session string    // ID, or the beginning of one
	workdir string    // a folder and what is below, or a part of its path
	tag     string    //
	kind    int       // 0 = all
	since   time.Time //

	limit, offset int
}

// understand reads what somebody looks for. Words in the text that name a filter are
// taken for one; the fields of q are stronger.
func understand(q query.Search, now time.Time) (request, error) {
	var r request
	if len(q.Text) > maxQuery {
		return r, &QueryError{fmt.Sprintf("the query is longer than %d bytes", maxQuery)}
	}
	f := filters{"session": q.Session, "workdir": q.Workdir, "kind": q.Kind, "since": q.Since, "tag": q.Tag}
	positive := 0
	for _, w := range split(clean(q.Text)) {
		if !w.quoted && !w.not && f.take(w) {
			continue
		}
		t := term{parts: partsOf(w.text), prefix: w.prefix, not: w.not}
		if len(t.parts) == 0 {
			continue
		}
		if last := t.parts[len(t.parts)-1]; t.prefix && oneRune(last.text) && !last.cjk { // most words would fit
			return r, &QueryError{"the beginning of a word needs two letters"}
		}
		if !t.not {
			positive++
		}
		if r.terms = append(r.terms, t); len(r.terms) > maxTerms {
			return r, &QueryError{fmt.Sprintf("the query has more than %d words", maxTerms)}
		}
	}
	if positive == 0 {
		return r, &QueryError{"the query has no word to look for"}
	}
	r.session, r.workdir, r.tag = f["session"], f["workdir"], clean(f["tag"])
	var ok bool
	if r.kind, ok = kindNamed(f["kind"]); !ok {
		return r, &QueryError{"a kind is one of input, answer, call, result, title"}
	}
	if r.since, ok = moment(f["since"], now); !ok {
		return r, &QueryError{"since is a time span or a day, such as 7d, 12h or 2026-01-31"}
	}
	const usual, most, deepest = 20, 100, ranked
	r.limit, r.offset = q.Limit, min(max(q.Offset, 0), deepest)
	if r.limit <= 0 {
		r.limit = usual
	}
	r.limit = min(r.limit, most)
	return r, nil
}

// filters are the values of the filters by their names; "" = not set.
type filters map[string]string

// take takes a word for a filter if it is one.
func (f filters) take(w rawWord) bool {
	name, value, ok := strings.Cut(w.text, ":")
	set, known := f[name]
	if !ok || !known || value == "" {
		return false
	}
	if set == "" {
		f[name] = value
	}
	return true
}

// A rawWord is a word of a query, or what stands in quotes.
type rawWord struct {
	text                string
	quoted, not, prefix bool
}

// split cuts a query at blanks outside of quotes. A quote that is not closed goes to
// the end.
func split(s string) []rawWord {
	var all []rawWord
	for {
		s = strings.TrimLeft(s, " \t\r\n\u00a0\u3000")
		if s == "" {
			return all
		}
		w := rawWord{}
		if s[0] == '-' && len(s) > 1 && s[1] != '-' { // but --flag is a word
			w.not, s = true, s[1:]
		}
		if s[0] == '"' {
			w.quoted = true
			w.text, s, _ = strings.Cut(s[1:], `"`)
			s, w.prefix = strings.CutPrefix(s, "*")
		} else {
			n := strings.IndexAny(s, " \t\r\n\u00a0\u3000")
			if quote := strings.Index(s, `:"`); quote >= 0 && (n < 0 || quote < n) { // workdir:"a b"
				if end := strings.IndexByte(s[quote+2:], '"'); end >= 0 {
					n = quote + 2 + end + 1
				}
			}
			if n < 0 || n > len(s) {
				n = len(s)
			}
			w.text, s = s[:n], s[n:]
			if name, value, ok := strings.Cut(w.text, `:"`); ok {
				w.text = name + ":" + strings.TrimSuffix(value, `"`)
			}
			w.text, w.prefix = strings.CutSuffix(w.text, "*")
		}
		all = append(all, w)
	}
}

// partsOf returns the words of a phrase.
func partsOf(s string) []part {
	var parts []part
	for w := range words(s) {
		p := part{s[w.from:w.to], w.cjk}
		if !w.cjk {
			p.text = fold(p.text)
		}
		if p.text != "" {
			parts = append(parts, p)
		}
	}
	return parts
}

// moment reads a point in time: RFC 3339, a day, which begins at midnight, or so many
// hours, days or weeks before now. "" is the zero time.
func moment(s string, now time.Time) (time.Time, bool) {
	if s == "" {
		return time.Time{}, true
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, true
	}
	if t, err := time.ParseInLocation(time.DateOnly, s, now.Location()); err == nil {
		return t, true
	}
	const most = 100_000
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || n < 0 || n > most {
		return time.Time{}, false
	}
	switch s[len(s)-1] {
	case 'h':
		return now.Add(-time.Duration(n) * time.Hour), true
	case 'd':
		return now.AddDate(0, 0, -n), true
	case 'w':
		return now.AddDate(0, 0, -7*n), true
	}
	return time.Time{}, false
}

// match writes the terms as an expression of the full-text engine. Nothing of what a
// person wrote gets there but letters and digits, in quotes. What it finds has all
// that is looked for, and may have more: words of both kinds need not stand side by
// side.
func (r request) match(more ...string) string {
	var all, not []string
	for _, t := range r.terms {
		groups := t.groups()
		switch {
		case !t.not:
			all = append(all, groups...)
		case len(groups) == 1:
			not = append(not, groups[0])
		}
	}
	all = append(all, more...)
	expr := strings.Join(all, " AND ")
	if len(not) > 0 {
		expr = "(" + expr + ") NOT (" + strings.Join(not, " OR ") + ")"
	}
	return expr
}

// groups returns a phrase as expressions, one for each run of parts of one kind.
func (t term) groups() []string {
	var all []string
	for i := 0; i < len(t.parts); {
		var seq []string
		kind, open := t.parts[i].cjk, false
		for ; i < len(t.parts) && t.parts[i].cjk == kind; i++ {
			p, last := t.parts[i], i+1 == len(t.parts)
			if !kind {
				seq, open = append(seq, p.text), last && t.prefix
				continue
			}
			ends := !last && t.parts[i+1].cjk // the word ends where the next one begins
			seq = append(seq, pairsOf(p.text, ends))
			open = !ends && oneRune(p.text)
		}
		column := "plain"
		if kind {
			column = "pairs"
		}
		expr := column + ` : "` + strings.Join(seq, " ") + `"`
		if open {
			expr += " *"
		}
		all = append(all, expr)
	}
	return all
}

func oneRune(s string) bool {
	for i := range s {
		if i > 0 {
			return false
		}
	}
	return s != ""
}
