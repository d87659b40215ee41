package repair

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// What only a provider refuses, and a reader that makes messages of its own of the
// entries does not: thinking that nobody has signed, or that nothing follows, and
// media that cannot be read. Options.Loose leaves all of it as it is.

// thinking reads a thinking block.
func (c *checker) thinking(id string, b Block, f fields) (Block, bool) {
	if c.o.Loose || f.str("signature") != "" {
		return b, true
	}
	text := f.str("thinking")
	c.damage(InvalidContent, id, "thinking in record %.80q is not signed; it was kept as text", id)
	return Text(text), strings.TrimSpace(text) != ""
}

// media reads an image or a document.
func (c *checker) media(id string, b Block, f fields) Block {
	if c.o.Loose || readable(b.Type, readFields(f["source"])) {
		return b
	}
	c.damage(InvalidContent, id, "an %s in record %.80q cannot be read; a line of text stands in its place", b.Type, id)
	return Text("[" + b.Type + " that cannot be read]")
}

// readable reports whether a provider takes the source of an image or a document.
func readable(kind string, source fields) bool {
	media := source.str("media_type")
	switch source.str("type") {
	case "base64":
		fits := media == "application/pdf"
		if kind == imageBlock {
			fits = slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, media)
		}
		return fits && isBase64(source["data"])
	case "url":
		return strings.HasPrefix(source.str("url"), "http://") || strings.HasPrefix(source.str("url"), "https://")
	case "file":
		return source.str("file_id") != ""
	case "text":
		return kind == documentBlock && strings.TrimSpace(source.str("data")) != ""
	case "content":
		return kind == documentBlock && len(source["content"]) > len(`""`)
	}
	return false
}

// isBase64 reports whether a JSON string is base64 with its padding.
func isBase64(quoted json.RawMessage) bool {
	n := len(quoted) - len(`""`)
	if n <= 0 || n%4 != 0 || quoted[0] != '"' {
		return false
	}
	data := quoted[1 : n+1]
	for range 2 {
		if data[len(data)-1] == '=' {
			data = data[:len(data)-1]
		}
	}
	for _, ch := range data {
		if (ch < 'A' || ch > 'Z') && (ch < 'a' || ch > 'z') && (ch < '0' || ch > '9') && ch != '+' && ch != '/' {
			return false
		}
	}
	return true
}

// thinkLast mends messages of the assistant that end with thinking: what of it is
// readable becomes text, what is not is left out.
func (c *checker) thinkLast() {
	entries := c.rep.Entries
	gone := map[string]bool{}
	for i := len(entries) - 1; i >= 0; i-- {
		e := &entries[i]
		if e.Role != assistant || i+1 < len(entries) && follows(entries[i+1:], gone) {
			continue
		}
		n := len(e.Content)
		for n > 0 && (e.Content[n-1].Type == thinkingBlock || e.Content[n-1].Type == sealedBlock) {
			n--
		}
		if n == len(e.Content) {
			continue
		}
		c.note(Corruption{Type: InvalidContent, Index: i, Line: e.line, ID: e.ID, Description: fmt.Sprintf("the answer in record %.80q ends with thinking; it was kept as text", e.ID)})
		kept := slices.Clone(e.Content[:n])
		for _, b := range e.Content[n:] {
			if text := readFields(b.Raw).str("thinking"); strings.TrimSpace(text) != "" {
				kept = append(kept, Text(text))
			}
		}
		if e.Content = kept; len(kept) == 0 {
			gone[e.ID] = true
		}
	}
	if len(gone) > 0 {
		c.rep.Entries = slices.DeleteFunc(entries, func(e Entry) bool { return gone[e.ID] })
		c.rep.Recovered = slices.DeleteFunc(c.rep.Recovered, func(id string) bool { return gone[id] })
	}
}

// follows reports whether the next entry that stays is the assistant's, too.
func follows(rest []Entry, gone map[string]bool) bool {
	for _, e := range rest {
		if !gone[e.ID] {
			return e.Role == assistant
		}
	}
	return false
}
