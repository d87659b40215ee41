package index

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
)

// Bounds of what is kept of one text. What a session says in one go is found by its
// first maxText bytes; those of a call by its first maxCall.
const (
	maxText  = 4 << 20
	maxCall  = 256 << 10
	maxPiece = 8 << 10 // a long text is cut into pieces, which are found one by one
)

// The kinds of documents, as they are stored.
const (
	kindInput = iota + 1
	kindAnswer
	kindCall
	kindResult
	kindTitle
)

var kinds = [...]string{"", "input", "answer", "call", "result", "title"}

// kindNamed returns the kind of a name; 0 = all.
func kindNamed(name string) (int, bool) {
	for i, k := range kinds {
		if k == name {
			return i, true
		}
	}
	return 0, false
}

// A document is what an event says, in one of its parts.
type document struct {
	seq  int64
	time time.Time
	kind int
	tool string
	text string
}

// A reader makes documents of events. Blob opens what was too long for a result; both
// may be nil.
type reader struct {
	blob func(ctx context.Context, sha string) (io.ReadCloser, error)
	mask func(json.RawMessage) (json.RawMessage, error)
}

// documents returns what can be found of an event.
func (r reader) documents(ctx context.Context, e agent.Event) []document {
	var all []document
	add := func(kind int, tool, text string) {
		if strings.TrimSpace(text) != "" {
			all = append(all, document{e.Seq, e.Time, kind, tool, text})
		}
	}
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		if b.ForkOf == "" { // a fork has its events with it
			add(kindTitle, "", b.Title)
		}
	case agent.SettingsChanged:
		add(kindTitle, "", b.Title)
	case agent.InputAdded:
		add(kindInput, "", said(b.Text, b.Parts))
	case agent.ModelAnswered:
		if b.Purpose != "" { // it is no part of the conversation
			break
		}
		add(kindAnswer, "", said("", b.Message.Blocks))
		for _, c := range b.Message.Calls() {
			add(kindCall, c.Tool, r.called(c))
		}
	case agent.CallFinished:
		add(kindResult, b.Tool, r.returned(ctx, b.Result))
	case agent.CallSettled:
		add(kindResult, b.Tool, r.returned(ctx, b.Result))
	}
	return all
}

// said joins texts.
func said(text string, blocks []agent.Block) string {
	var parts []string
	if text != "" {
		parts = append(parts, text)
	}
	for _, b := range blocks {
		if b.Type == agent.TextBlock && b.Text != "" {
			parts = append(parts, b.Text)
		}
		if b.Media != nil && b.Media.Name != "" {
			parts = append(parts, b.Media.Name)
		}
	}
	return cut(strings.Join(parts, "\n"), maxText)
}

// called returns the values of a call's input, one a line: its command, file,
// pattern and the like.
func (r reader) called(c agent.Call) string {
	input := c.Input
	if r.mask != nil {
		var err error
		if input, err = r.mask(input); err != nil {
			return ""
		}
	}
	var s strings.Builder
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	depth, isKey := []bool(nil), false // of objects; the next string is a key
	for s.Len() < maxCall {
		tok, err := d.Token()
		if err != nil {
			break
		}
		object := len(depth) > 0 && depth[len(depth)-1]
		switch v := tok.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				depth = append(depth, v == '{')
			default:
				depth = depth[:len(depth)-1]
			}
			isKey = len(depth) > 0 && depth[len(depth)-1]
			continue
		case string:
			if !isKey && v != "" {
				if s.Len() > 0 {
					s.WriteByte('\n')
				}
				s.WriteString(v)
			}
		}
		isKey = object && !isKey
	}
	return cut(s.String(), maxCall)
}

// returned is what a call came to: the whole of its output as far as it was kept.
func (r reader) returned(ctx context.Context, res agent.Result) string {
	text := cut(res.Unfenced(), maxText)
	if text == "" && len(res.Output) > 0 {
		text = cut(string(res.Output), maxText)
	}
	if res.Spill == nil || r.blob == nil {
		return text
	}
	f, err := r.blob(ctx, res.Spill.SHA256)
	if err != nil {
		return text // what was shown of it is found at least
	}
	defer f.Close()
	whole, err := io.ReadAll(io.LimitReader(f, maxText))
	if err != nil || len(whole) < len(text) {
		return text
	}
	if res.Spill.Bytes > maxText {
		return string(whole) + "\n" + text // the end of it was shown
	}
	return string(whole)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

// pieces cuts a text at the end of a line, or at a blank, or between characters.
func pieces(s string) []string {
	var all []string
	for len(s) > maxPiece {
		n := strings.LastIndexByte(s[:maxPiece], '\n') + 1
		if n < maxPiece/2 {
			n = strings.LastIndexByte(s[:maxPiece], ' ') + 1
		}
		if n < maxPiece/2 {
			for n = maxPiece; n > 0 && !utf8.RuneStart(s[n]); {
				n--
			}
			if n == 0 {
				n = maxPiece
			}
		}
		all, s = append(all, s[:n]), s[n:]
	}
	if strings.TrimSpace(s) != "" {
		all = append(all, s)
	}
	return all
}
