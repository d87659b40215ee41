package files

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// Limits of a notebook that is shown.
const (
	notebookImages = 4     // of the outputs
	outputChars    = 1_900 // of one output
	outputMost     = 20    // outputs of one cell
)

// notebook is what is shown of a Jupyter notebook (nbformat 4).
type notebook struct {
	Cells    []cell `json:"cells"`
	Metadata struct {
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
	} `json:"metadata"`
	Format int `json:"nbformat"`
	Minor  int `json:"nbformat_minor"`
}

type cell struct {
	ID      string       `json:"id"`
	Type    string       `json:"cell_type"`
	Source  joinedText   `json:"source"`
	Outputs []cellOutput `json:"outputs"`
}

type cellOutput struct {
	Type      string                     `json:"output_type"`
	Text      joinedText                 `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
	Traceback []string                   `json:"traceback"`
}

// joinedText is a text that may be stored as a list of its lines.
type joinedText string

// UnmarshalJSON reads a string or a list of strings.
func (t *joinedText) UnmarshalJSON(data []byte) error {
	var lines []string
	if err := json.Unmarshal(data, &lines); err == nil {
		*t = joinedText(strings.Join(lines, ""))
		return nil
	}
	var s string
	err := json.Unmarshal(data, &s)
	*t = joinedText(s)
	return err
}

// cellName is the ID of a cell, or its number where it has none.
func cellName(id string, i int) string {
	if id == "" {
		return fmt.Sprintf("cell-%d", i)
	}
	return id
}

func (n *notebook) language() string {
	if n.Metadata.Language.Name != "" {
		return n.Metadata.Language.Name
	}
	return n.Metadata.Kernel.Language
}

// showNotebook shows the cells of a notebook with their outputs. A file that is
// no notebook is shown as the text that it is.
func (f *files) showNotebook(ctx context.Context, name string, data []byte, in readInput) (*view, error) {
	text, err := workspace.DecodeText(data)
	if err != nil || in.Pages != "" {
		return nil, errNotThis
	}
	var n notebook
	if err := json.Unmarshal([]byte(text.Content), &n); err != nil || n.Cells == nil {
		return nil, errNotThis
	}
	var b strings.Builder
	v := &view{}
	for i, c := range n.Cells {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		fmt.Fprintf(&b, "<cell id=%q type=%q>\n", cellName(c.ID, i), c.Type)
		writeLine(&b, string(c.Source))
		for j, o := range c.Outputs {
			if j == outputMost {
				fmt.Fprintf(&b, "[%d more outputs]\n", len(c.Outputs)-j)
				break
			}
			b.WriteString("<output>\n")
			f.showOutput(ctx, &b, v, o)
			b.WriteString("</output>\n")
		}
		b.WriteString("</cell>\n")
	}
	p, err := pageOf(ctx, b.String(), in)
	if err != nil {
		return nil, err
	}
	page, err := p.view(name)
	if err != nil {
		return nil, err
	}
	v.text, v.more = page.text, page.more
	if len(n.Cells) == 0 {
		v.text = "[the notebook has no cells]"
	}
	v.output = kit.Structured(struct {
		Type string `json:"type"`
		File struct {
			Path     string `json:"filePath"`
			Content  string `json:"content"`
			Cells    int    `json:"numCells"`
			Language string `json:"language,omitempty"`
		} `json:"file"`
	}{"notebook", struct {
		Path     string `json:"filePath"`
		Content  string `json:"content"`
		Cells    int    `json:"numCells"`
		Language string `json:"language,omitempty"`
	}{name, p.plain.String(), len(n.Cells), n.language()}})
	return v, nil
}

// writeLine writes s, so that what follows begins on a new line.
func writeLine(b *strings.Builder, s string) {
	if s != "" {
		b.WriteString(strings.TrimSuffix(s, "\n") + "\n")
	}
}

// showOutput writes one output of a cell: its text, cut, or what else it is.
// Its images go to the blocks of v.
func (f *files) showOutput(ctx context.Context, b *strings.Builder, v *view, o cellOutput) {
	switch {
	case o.Type == "error":
		writeLine(b, cutText(fmt.Sprintf("%s: %s\n%s", o.Name, o.Value, strings.Join(o.Traceback, "\n"))))
	case o.Text != "":
		writeLine(b, cutText(string(o.Text)))
	}
	plain := false
	for _, kind := range []string{"text/plain", "text/markdown", "text/latex", "application/json"} {
		var s joinedText
		if raw, ok := o.Data[kind]; ok && !plain {
			if json.Unmarshal(raw, &s) != nil {
				s = joinedText(raw)
			}
			writeLine(b, cutText(string(s)))
			plain = true
		}
	}
	for _, kind := range []string{"image/png", "image/jpeg", "image/gif"} {
		var s joinedText
		raw, ok := o.Data[kind]
		if !ok || json.Unmarshal(raw, &s) != nil {
			continue
		}
		data, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(s), "\n", ""))
		switch {
		case len(v.blocks) == notebookImages:
			fmt.Fprintf(b, "[%s, left out]\n", kind)
		case err != nil || len(data) > maxImage || imageType(data) == "":
			fmt.Fprintf(b, "[%s, damaged]\n", kind)
		default:
			p, err := f.newPicture(ctx, data)
			if err != nil {
				fmt.Fprintf(b, "[%s, cannot be shown]\n", kind)
				continue
			}
			v.blocks = append(v.blocks, agent.Block{Type: agent.ImageBlock, Media: &p.media})
			fmt.Fprintf(b, "[%s, image %d]\n", kind, len(v.blocks))
		}
	}
	var kinds []string
	for kind := range o.Data {
		kinds = append(kinds, kind)
	}
	slices.Sort(kinds)
	if !plain && len(kinds) > 0 && !strings.HasPrefix(kinds[0], "image/") {
		fmt.Fprintf(b, "[%s]\n", cutText(strings.Join(kinds, ", ")))
	}
}

// cutText returns the beginning of an output.
func cutText(s string) string {
	n := 0
	for i := range s {
		if n == outputChars {
			return fmt.Sprintf("%s… [%d more characters]", s[:i], utf8.RuneCountInString(s[i:]))
		}
		n++
	}
	return s
}
