package text

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// A locale has the messages of a language: a JSON object with a member on each line, sorted
// by name, so that it needs an index of its lines and no decoding. TestKeys keeps it so.
type locale struct {
	source string
	once   sync.Once
	lines  []string
}

//go:embed locales/en.json
var englishSource string

//go:embed locales/ko.json
var koreanSource string

var english, korean = locale{source: englishSource}, locale{source: koreanSource}

// index returns the lines with members.
func (l *locale) index() []string {
	l.once.Do(func() {
		inner := strings.TrimSuffix(strings.TrimPrefix(l.source, "{\n"), "\n}\n")
		l.lines = strings.Split(inner, "\n")
	})
	return l.lines
}

// nameOf returns the name of the member on a line.
func nameOf(line string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(line, `  "`), `"`)
	return name
}

// messageOf returns the value of the member on a line.
func messageOf(line string) string {
	_, value, _ := strings.Cut(line, `": `)
	value = strings.TrimSuffix(value, ",")
	if !strings.Contains(value, `\`) {
		return value[1 : len(value)-1]
	}
	s, _ := strconv.Unquote(value) // its escapes are those of Go, too
	return s
}
