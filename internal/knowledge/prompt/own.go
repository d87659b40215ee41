package prompt

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxOwn bounds a text of the user's own, in bytes.
const MaxOwn = 64 << 10

// Own is a text of the user's own for a kind of work.
type Own struct {
	Replace bool // it stands in for what dure says; otherwise it is added
	Text    string
}

// Template is the beginning of such a text.
const Template = `---
mode: append
---
`

// ParseOwn reads a text of the user's own. It may begin with the lines
//
//	---
//	mode: replace
//	---
//
// where append is the other mode, and the one without such lines.
func ParseOwn(data []byte) (Own, error) {
	switch {
	case len(data) > MaxOwn:
		return Own{}, fmt.Errorf("it has more than %d bytes", MaxOwn)
	case !utf8.Valid(data):
		return Own{}, errors.New("it is not UTF-8")
	}
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	if at := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }); at >= 0 {
		return Own{}, fmt.Errorf("line %d has a control character", 1+strings.Count(text[:at], "\n"))
	}
	var own Own
	if rest, ok := strings.CutPrefix(text, "---\n"); ok {
		head, body, closed := strings.Cut("\n"+rest, "\n---\n")
		if !closed {
			if head, closed = strings.CutSuffix("\n"+rest, "\n---"); !closed {
				return Own{}, errors.New("the lines at its beginning do not end with ---")
			}
			body = ""
		}
		if err := own.head(head); err != nil {
			return Own{}, err
		}
		text = body
	}
	own.Text = strings.TrimSpace(text)
	return own, nil
}

// head reads the lines in front of the text.
func (o *Own) head(lines string) error {
	n, given := 0, false
	for line := range strings.SplitSeq(lines, "\n") {
		n++
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		key, value = strings.TrimSpace(key), strings.Trim(strings.TrimSpace(value), `"'`)
		switch {
		case key != "mode":
			return fmt.Errorf("line %d: %q means nothing there; it knows mode", n, key)
		case given:
			return fmt.Errorf("line %d: mode stands there twice", n)
		case value != "append" && value != "replace":
			return fmt.Errorf("line %d: mode is %q and has to be append or replace", n, value)
		}
		given, o.Replace = true, value == "replace"
	}
	return nil
}
