package telemetry

import (
	"strings"
	"time"
	"unicode/utf8"
)

// Kinds of spans, states and severities, as the protocol numbers them.
const (
	kindInternal = 1
	kindClient   = 3

	statusError = 2

	severityInfo  = 9
	severityWarn  = 13
	severityError = 17
)

// Bounds of what is told of one thing.
const (
	maxAttr    = 1 << 10  // bytes of a text that is no content
	maxContent = 64 << 10 // bytes of all content of one record
)

// attr is an attribute. Its value is a string, an int64, a float64, a bool, a []string, or,
// of content, a []any or [fields].
type attr struct {
	key   string
	value any
}

// fields is a value with values of its own.
type fields []attr

// attrs are attributes in the order in which they were added.
type attrs []attr

// text adds a text, unless it is empty.
func (a *attrs) text(key, value string) {
	if value != "" {
		*a = append(*a, attr{key, clip(value, maxAttr)})
	}
}

// count adds a number, unless it is zero.
func (a *attrs) count(key string, value int64) {
	if value != 0 {
		*a = append(*a, attr{key, value})
	}
}

func (a *attrs) add(key string, value any) { *a = append(*a, attr{key, value}) }

// size is about how many bytes attributes take up.
func (a attrs) size() int {
	n := 0
	for _, one := range a {
		n += len(one.key) + sizeOf(one.value)
	}
	return n
}

func sizeOf(v any) int {
	const least = 16
	switch v := v.(type) {
	case string:
		return least + len(v)
	case []string:
		n := least
		for _, s := range v {
			n += least + len(s)
		}
		return n
	case []any:
		n := least
		for _, one := range v {
			n += sizeOf(one)
		}
		return n
	case fields:
		return least + attrs(v).size()
	}
	return least
}

// span is a piece of work with its beginning and its end.
type span struct {
	at     place
	parent spanID
	remote bool   // the parent is another program's
	state  string // as it was taken over
	name   string
	kind   uint64

	start, end time.Time
	attrs      attrs
	links      []place
	failed     bool
	why        string // it failed; no content
}

func (s *span) size() int { return 200 + len(s.name) + len(s.why) + 48*len(s.links) + s.attrs.size() }

// event is a record of a log.
type event struct {
	at       place // what it belongs to; zero = nothing
	time     time.Time
	name     string
	severity uint64
	attrs    attrs
}

func (e *event) size() int { return 100 + len(e.name) + e.attrs.size() }

// clip cuts a text to so many bytes, between characters.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// valid is a text as the protocol takes it: of characters.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
