package index

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent/query"
)

// A found is a document that may be a hit.
type found struct {
	query.SearchHit
	session int64
	piece   int
	text    string
	places  []place
	tf      []int // how often each term stands in it
	words   int
}

// A place is where a term stands in a text, in bytes.
type place struct{ from, to, term int }

// look finds the terms in the text of d. It is false when d is no hit: a term is
// missing, or one is there that must not be.
func (d *found) look(terms []term) bool {
	var all []word
	for w := range words(d.text) {
		all = append(all, w)
	}
	d.words, d.tf = len(all), make([]int, len(terms))
	for i := range all {
		for n, t := range terms {
			if from, to, ok := t.at(d.text, all[i:]); ok {
				d.tf[n]++
				d.places = append(d.places, place{from, to, n})
			}
		}
	}
	for n, t := range terms {
		if t.not == (d.tf[n] > 0) {
			return false
		}
	}
	return true
}

// at reports whether the term begins in the first of some words, and where it stands.
func (t term) at(text string, in []word) (from, to int, ok bool) {
	if len(in) < len(t.parts) {
		return 0, 0, false
	}
	for i, p := range t.parts {
		w := in[i]
		if p.cjk != w.cjk {
			return 0, 0, false
		}
		s, last := text[w.from:w.to], i+1 == len(t.parts)
		switch {
		case !p.cjk:
			if !same(s, p.text, last && t.prefix) {
				return 0, 0, false
			}
			from, to = first(i, from, w.from), w.to
			if last && t.prefix && isASCII(s) {
				to = w.from + len(p.text)
			}
		case len(t.parts) == 1:
			k := strings.Index(s, p.text)
			if k < 0 {
				return 0, 0, false
			}
			from, to = w.from+k, w.from+k+len(p.text)
		case i == 0:
			if !strings.HasSuffix(s, p.text) {
				return 0, 0, false
			}
			from, to = w.to-len(p.text), w.to
		case last:
			if !strings.HasPrefix(s, p.text) {
				return 0, 0, false
			}
			to = w.from + len(p.text)
		default:
			if s != p.text {
				return 0, 0, false
			}
			to = w.to
		}
	}
	return from, to, true
}

func first(i, from, here int) int {
	if i == 0 {
		return here
	}
	return from
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// same reports whether a word is the folded one, or begins with it.
func same(w, folded string, prefix bool) bool {
	if len(w) > maxWord || !isASCII(w) {
		w = fold(w)
	}
	if len(w) < len(folded) || len(w) > len(folded) && !prefix {
		return false
	}
	for i := range len(folded) {
		c := w[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		if c != folded[i] {
			return false
		}
	}
	return true
}

// Ranking: BM25 with its usual parameters, times up to two for what is new. After
// halfLife half of that is gone.
const (
	k1, b    = 1.2, 0.75
	halfLife = 30 * 24 * time.Hour
)

// score ranks documents. idf is the weight of each term.
func score(docs []*found, idf []float64, now time.Time) {
	total := 0
	for _, d := range docs {
		total += d.words
	}
	mean := max(1, float64(total)/float64(max(1, len(docs))))
	for _, d := range docs {
		sum := 0.0
		for n, tf := range d.tf {
			f := float64(tf)
			sum += idf[n] * f * (k1 + 1) / (f + k1*(1-b+b*float64(d.words)/mean))
		}
		age := max(0, now.Sub(d.Time))
		sum *= 1 + math.Exp2(-float64(age)/float64(halfLife))
		d.Score = math.Round(sum*1e4) / 1e4
	}
}

// weight is the inverse document frequency of a term that stands in df of n documents.
func weight(df, n float64) float64 { return math.Log(1 + (max(n, df)-df+0.5)/(df+0.5)) }

// The bounds of a snippet, in bytes.
const (
	snippetBytes  = 240
	snippetBefore = 60 // in front of the first place that is shown
	maxMarks      = 32
)

// show cuts the part out of the text that has most of the terms, on one line, and
// marks them.
func (d *found) show() {
	at, end := 0, min(len(d.text), snippetBytes)
	if len(d.places) > 0 {
		at = max(0, d.best()-snippetBefore)
		end = min(len(d.text), at+snippetBytes)
	}
	at, end = wordStart(d.text, at), runeEnd(d.text, end)
	var s strings.Builder
	if at > 0 {
		s.WriteString("… ")
	}
	shift := make([]int, end-at+1) // where each byte went
	blank := true
	for i := at; i < end; {
		shift[i-at] = s.Len()
		r, n := utf8.DecodeRuneInString(d.text[i:])
		for k := 1; k < n && i+k-at < len(shift); k++ {
			shift[i+k-at] = s.Len()
		}
		i += n
		switch {
		case r <= ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u2028' || r == '\u2029':
			if !blank {
				s.WriteByte(' ')
			}
			blank = true
		default:
			s.WriteRune(r)
			blank = false
		}
	}
	shift[end-at] = s.Len()
	d.Snippet = strings.TrimRight(s.String(), " ")
	if end < len(d.text) {
		d.Snippet += " …"
	}
	for _, p := range d.places {
		if p.from < at || p.to > end || len(d.Marks) == maxMarks {
			continue
		}
		m := query.Mark{From: shift[p.from-at], To: shift[p.to-at]}
		if n := len(d.Marks); n > 0 && m.From < d.Marks[n-1].To {
			d.Marks[n-1].To = max(d.Marks[n-1].To, m.To)
			continue
		}
		d.Marks = append(d.Marks, m)
	}
}

// best is the place from which most different terms stand within a snippet.
func (d *found) best() int {
	const most = 200 // places that are looked at
	at, best := 0, 0
	places := d.places[:min(len(d.places), most)]
	for i, p := range places {
		seen, n := [maxTerms]bool{}, 0
		for _, q := range places[i:] {
			if q.to > p.from-snippetBefore+snippetBytes {
				break
			}
			if !seen[q.term] {
				seen[q.term] = true
				n++
			}
		}
		if n > best {
			at, best = p.from, n
		}
	}
	if best == 0 && len(places) > 0 {
		at = places[0].from
	}
	return at
}

// wordStart moves i to the beginning of a word, or at least of a character.
func wordStart(s string, i int) int {
	if i == 0 {
		return 0
	}
	const far = 20
	for k := i; k < len(s) && k < i+far; k++ {
		if s[k] == ' ' || s[k] == '\n' {
			return k + 1
		}
	}
	return runeEnd(s, i)
}

func runeEnd(s string, i int) int {
	for i < len(s) && !utf8.RuneStart(s[i]) {
		i++
	}
	return i
}
