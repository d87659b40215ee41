package code

import (
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
)

// pattern is a regular expression that is compiled when it is first used.
type pattern func() *regexp.Regexp

func onDemand(text string) pattern {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// MatchString is that of [regexp.Regexp].
func (p pattern) MatchString(s string) bool { return p().MatchString(s) }

// readMarkdown outlines headings. A section ends before the next heading of its
// level or a higher one.
func readMarkdown(_ *language, text string) ([]symbol, string) {
	var list []symbol
	var open []int // headings whose sections have not ended
	fence := ""
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		trimmed := strings.TrimLeft(line, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]+" \t\r") == "" {
				fence = ""
			}
			continue
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			fence = trimmed[:3]
			continue
		case len(line)-len(trimmed) > 3:
			continue // code
		}
		level := len(trimmed) - len(strings.TrimLeft(trimmed, "#"))
		name := strings.TrimSpace(strings.Trim(strings.TrimSpace(trimmed[level:]), "#"))
		if level == 0 || level > 6 || name == "" || trimmed[level] != ' ' && trimmed[level] != '\t' {
			continue
		}
		for n := len(open) - 1; n >= 0 && list[open[n]].Level >= level; n-- {
			list[open[n]].End = i
			open = open[:n]
		}
		open = append(open, len(list))
		list = append(list, symbol{Kind: "heading", Name: name, Line: i + 1, Level: level, text: heading(trimmed)})
	}
	for _, j := range open {
		list[j].End = len(lines)
	}
	return list, ""
}

// readSections outlines files of sections in brackets.
func readSections(_ *language, text string) ([]symbol, string) {
	var list []symbol
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		name, _, closed := strings.Cut(strings.TrimLeft(line, " \t["), "]")
		if !strings.HasPrefix(strings.TrimSpace(line), "[") || !closed || strings.ContainsAny(name, `,{`) {
			continue
		}
		if n := len(list); n > 0 {
			list[n-1].End = i
		}
		list = append(list, symbol{Kind: "section", Name: strings.TrimSpace(name), Line: i + 1, End: len(lines), Level: 1, text: heading(line)})
	}
	return list, ""
}

// readJSON outlines the keys of objects, up to maxDepth levels.
func readJSON(_ *language, text string) ([]symbol, string) {
	j := &jsonKeys{d: json.NewDecoder(strings.NewReader(text)), text: text, line: 1}
	if err := j.value(1); err != nil && !errors.Is(err, errEnough) {
		return j.list, "it is not plain JSON to its end"
	}
	return j.list, ""
}

var errEnough = errors.New("there are enough keys")

type jsonKeys struct {
	d    *json.Decoder
	text string
	list []symbol
	line int   // at offset
	at   int64 // offset
}

// here returns the line of what was read last.
func (j *jsonKeys) here() int {
	to := j.d.InputOffset()
	j.line += strings.Count(j.text[j.at:to], "\n")
	j.at = to
	return j.line
}

// value reads a value, and the keys in it when it is an object.
func (j *jsonKeys) value(level int) error {
	t, err := j.d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('{'):
		return j.object(level)
	case json.Delim('['):
		return j.skip()
	}
	return nil
}

func (j *jsonKeys) object(level int) error {
	for j.d.More() {
		t, err := j.d.Token()
		if err != nil {
			return err
		}
		name, _ := t.(string)
		n := len(j.list)
		if n > maxSymbols {
			return errEnough
		}
		j.list = append(j.list, symbol{Kind: "key", Name: name, Line: j.here(), Level: level, text: heading(name)})
		if level < maxDepth {
			err = j.value(level + 1)
		} else {
			var raw json.RawMessage
			err = j.d.Decode(&raw)
		}
		j.list[n].End = j.here()
		if err != nil {
			return err
		}
	}
	_, err := j.d.Token()
	return err
}

// skip reads to the end of a list that has begun.
func (j *jsonKeys) skip() error {
	for depth := 1; depth > 0; {
		t, err := j.d.Token()
		if errors.Is(err, io.EOF) {
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
	return nil
}
