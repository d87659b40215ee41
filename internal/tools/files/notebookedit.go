package files

import (
	"bytes"
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

//go:embed notebookedit.md
var notebookText string

type notebookInput struct {
	Path   string  `json:"notebook_path"`
	Cell   string  `json:"cell_id"`
	Source *string `json:"new_source"`
	Type   string  `json:"cell_type"`
	Mode   string  `json:"edit_mode"`
}

// The edit modes and types of cells.
const (
	cellReplace  = "replace"
	cellInsert   = "insert"
	cellDelete   = "delete"
	codeCell     = "code"
	markdownCell = "markdown"
)

func (f *files) notebook() agent.Tool {
	return changer{
		Tool: kit.Tool{
			About: agent.Spec{
				Name:        "notebook__edit",
				Description: kit.Describe(notebookText),
				Input: json.RawMessage(`{"type":"object","properties":{` +
					`"notebook_path":{"type":"string"},"cell_id":{"type":"string"},"new_source":{"type":"string"},` +
					`"cell_type":{"type":"string","enum":["code","markdown"]},"edit_mode":{"type":"string","enum":["replace","insert","delete"]}},` +
					`"required":["notebook_path","new_source"],"additionalProperties":false}`),
				Class: agent.Checkable, Group: "files", Risk: agent.RiskMedium, Limit: fileLimit,
				Aliases: map[string]string{"path": "notebook_path", "file_path": "notebook_path", "source": "new_source", "mode": "edit_mode"},
			},
			Touches: func(tc agent.ToolContext, c agent.Call) (agent.Effects, error) {
				in, err := readNotebookInput(c)
				if err != nil {
					return agent.Effects{}, err
				}
				return f.planEdit(tc, c, in.Path)
			},
		},
		f:       f,
		prepare: f.prepareNotebook,
	}
}

func readNotebookInput(c agent.Call) (notebookInput, error) {
	in, err := kit.Decode[notebookInput](c)
	switch {
	case err != nil:
		return in, err
	case in.Source == nil || len(*in.Source) > workspace.MaxText:
		return in, kit.Refuse(agent.ErrInput, "new_source is missing or too large", `Give the whole source of the cell, "" to delete it.`)
	case !slices.Contains([]string{"", cellReplace, cellInsert, cellDelete}, in.Mode):
		return in, kit.Refuse(agent.ErrInput, "edit_mode is "+kit.Quote(in.Mode, 40), "Use replace, insert or delete.")
	case !slices.Contains([]string{"", codeCell, markdownCell}, in.Type):
		return in, kit.Refuse(agent.ErrInput, "cell_type is "+kit.Quote(in.Type, 40), "Use code or markdown.")
	case in.Cell == "" && in.Mode != cellInsert:
		return in, kit.Refuse(agent.ErrInput, "cell_id is missing", "Name the cell by the id that the read tool shows.")
	}
	if in.Mode == "" {
		in.Mode = cellReplace
	}
	return in, nil
}

func (f *files) prepareNotebook(ctx context.Context, tc agent.ToolContext, c agent.Call) (*change, error) {
	in, err := readNotebookInput(c)
	if err != nil {
		return nil, err
	}
	ch, text, err := f.target(ctx, tc, c, in.Path)
	if err != nil {
		return nil, err
	}
	if err := f.editable(tc, ch, text); err != nil {
		return ch, err
	}
	e, err := newNotebookEdit(ch.before)
	if err != nil {
		return ch, kit.Refuse(ErrFileType, kit.Name(ch.path)+" is not a notebook of format 4: "+kit.Cut(err.Error(), 200), "Use the edit tool for other files.")
	}
	if err := e.apply(in); err != nil {
		return ch, err
	}
	ch.after = string(e.text)
	if !json.Valid(e.text) {
		return ch, kit.Refuse(agent.ErrTool, "the edit would not leave a valid notebook", "Use the edit tool.")
	}
	if ch.data, err = text.Encode(ch.after); err != nil {
		return ch, f.explain(tc, ch.path, err)
	}
	ch.verb = map[string]string{cellReplace: "Replaced", cellInsert: "Inserted", cellDelete: "Deleted"}[in.Mode] + " cell " + kit.Name(e.cell) + " of"
	ch.structured = kit.Structured(struct {
		Source   string `json:"new_source"`
		Cell     string `json:"cell_id"`
		Type     string `json:"cell_type"`
		Language string `json:"language"`
		Mode     string `json:"edit_mode"`
		Error    string `json:"error"`
		Path     string `json:"notebook_path"`
	}{kit.Cut(*in.Source, maxOriginal), e.cell, e.kind, e.language, in.Mode, "", ch.path})
	return ch, nil
}

// member is a field of a JSON object, or an element of an array, by its place in
// the text.
type member struct {
	key      string
	at       int // where the key begins, or the element
	from, to int // the value
}

// membersOf returns the fields of the object, or the elements of the array, that
// is text. Nothing is unfolded or changed on the way.
func membersOf(text []byte) ([]member, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	open, err := d.Token()
	if err != nil {
		return nil, err
	}
	if open != json.Delim('{') && open != json.Delim('[') {
		return nil, errors.New("no object where one is expected")
	}
	var all []member
	seen := map[string]bool{}
	for d.More() {
		at := int(d.InputOffset())
		at += len(text[at:]) - len(bytes.TrimLeft(text[at:], " \t\r\n,"))
		m := member{at: at}
		if open == json.Delim('{') {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			m.key, _ = key.(string)
			if seen[m.key] {
				return nil, fmt.Errorf("two fields named %s", kit.Quote(m.key, 40))
			}
			seen[m.key] = true
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		m.to = int(d.InputOffset())
		m.from = m.to - len(value)
		if m.from < 0 || !bytes.Equal(text[m.from:m.to], value) {
			return nil, errors.New("a value cannot be found")
		}
		all = append(all, m)
	}
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	return all, nil
}

// named returns the index of a field, or -1.
func named(all []member, key string) int {
	return slices.IndexFunc(all, func(m member) bool { return m.key == key })
}

// notebookEdit changes the text of a notebook. What it does not have to touch
// stays as it is, byte for byte.
type notebookEdit struct {
	text     []byte
	cells    []member // of text
	list     member   // the array of cells
	ids      []string // of the cells, "" = it has none
	needsID  bool
	unit     string // one step of indentation; "" = all is on one line
	newline  string
	colon    string
	language string

	cell, kind string // what was edited
}

func newNotebookEdit(text string) (*notebookEdit, error) {
	e := &notebookEdit{text: []byte(text), newline: "\n", colon: ": "}
	var n notebook
	if err := json.Unmarshal(e.text, &n); err != nil {
		return nil, err
	}
	top, err := membersOf(e.text)
	if err != nil {
		return nil, err
	}
	i := named(top, "cells")
	if i < 0 || n.Format != 4 {
		return nil, errors.New("it has no cells, or another format")
	}
	e.language = n.language()
	e.needsID = n.Minor >= 5
	if workspace.LineEndsOf(text) == workspace.CRLF {
		e.newline = "\r\n"
	}
	e.unit = indentOf(e.text, top[0].at)
	if after := bytes.IndexByte(e.text[top[0].at:top[0].from], ':'); e.text[top[0].at+after+1] != ' ' {
		e.colon = ":"
	}
	e.list = top[i]
	if e.text[e.list.from] != '[' {
		return nil, errors.New("its cells are no list")
	}
	if e.cells, err = membersOf(e.text[e.list.from:e.list.to]); err != nil {
		return nil, err
	}
	for j := range e.cells {
		e.cells[j].at += e.list.from
		e.cells[j].from += e.list.from
		e.cells[j].to += e.list.from
		var c cell
		if err := json.Unmarshal(e.text[e.cells[j].from:e.cells[j].to], &c); err != nil {
			return nil, fmt.Errorf("reading cell %d: %w", j, err)
		}
		e.ids = append(e.ids, c.ID)
	}
	return e, nil
}

// indentOf returns the space between the beginning of a line and a place; ""
// when something else stands there too.
func indentOf(text []byte, at int) string {
	line := text[bytes.LastIndexByte(text[:at], '\n')+1 : at]
	if len(bytes.TrimLeft(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}

// find returns the index of the cell that a call means: by its ID, else by its
// number as in cell-3.
func (e *notebookEdit) find(id string) (int, error) {
	at := slices.Index(e.ids, id)
	if at >= 0 && slices.Contains(e.ids[at+1:], id) {
		return 0, kit.Refuse(ErrEditAmbiguous, "several cells have the id "+kit.Quote(id, 80), "Give them different ids with the edit tool first.")
	}
	if at < 0 {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "cell-"))
		if err != nil || n < 0 || n >= len(e.ids) {
			return 0, kit.Refuse(ErrEditNoMatch, "no cell has the id "+kit.Quote(id, 80), "Read the notebook; it shows the ids.")
		}
		at = n
	}
	return at, nil
}

func (e *notebookEdit) apply(in notebookInput) error {
	at, err := -1, error(nil)
	if in.Cell != "" {
		if at, err = e.find(in.Cell); err != nil {
			return err
		}
	}
	switch in.Mode {
	case cellInsert:
		e.insert(at+1, in)
		return nil
	case cellDelete:
		e.cell = cellName(e.ids[at], at)
		e.remove(at)
		return nil
	}
	e.cell = cellName(e.ids[at], at)
	return e.replace(e.cells[at], in)
}

// replace gives a cell another source.
func (e *notebookEdit) replace(m member, in notebookInput) error {
	c := cellText{e: e, text: slices.Clone(e.text[m.from:m.to])}
	var was cell
	if err := json.Unmarshal(c.text, &was); err != nil {
		return kit.Refuse(ErrFileType, "the cell cannot be read: "+kit.Cut(err.Error(), 200), "Use the edit tool.")
	}
	if e.kind = in.Type; e.kind == "" {
		e.kind = was.Type
	}
	c.set("source", e.source(*in.Source, c.is("source", '"'), c.indent()))
	if e.kind != was.Type {
		c.set("cell_type", jsonString(e.kind))
	}
	if e.kind == codeCell {
		c.set("execution_count", "null")
		c.set("outputs", "[]")
		c.drop("attachments")
	} else {
		c.drop("execution_count")
		c.drop("outputs")
	}
	if c.err != nil {
		return kit.Refuse(ErrFileType, "the cell cannot be edited: "+kit.Cut(c.err.Error(), 200), "Use the edit tool.")
	}
	e.splice(m.from, m.to, string(c.text))
	return nil
}

// insert puts a new cell before the cell with an index, or at the end.
func (e *notebookEdit) insert(at int, in notebookInput) {
	if e.kind = in.Type; e.kind == "" {
		e.kind = codeCell
	}
	indent := e.unit + e.unit
	if len(e.cells) > 0 && e.unit != "" {
		indent = indentOf(e.text, e.cells[0].at)
	}
	inner := indent + e.unit
	fields := []string{`"cell_type"` + e.colon + jsonString(e.kind)}
	if e.kind == codeCell {
		fields = append(fields, `"execution_count"`+e.colon+"null")
	}
	e.cell = cellName("", at)
	if e.needsID {
		e.cell = e.newID(at, *in.Source)
		fields = append(fields, `"id"`+e.colon+jsonString(e.cell))
	}
	fields = append(fields, `"metadata"`+e.colon+"{}")
	if e.kind == codeCell {
		fields = append(fields, `"outputs"`+e.colon+"[]")
	}
	fields = append(fields, `"source"`+e.colon+e.source(*in.Source, false, inner))
	text := e.block("{", fields, "}", indent)
	switch {
	case len(e.cells) == 0:
		e.splice(e.list.from, e.list.to, e.block("[", []string{text}, "]", e.unit))
	case at < len(e.cells):
		e.splice(e.cells[at].from, e.cells[at].from, text+","+e.gap(indent))
	default:
		last := e.cells[len(e.cells)-1].to
		e.splice(last, last, ","+e.gap(indent)+text)
	}
}

// remove takes a cell out.
func (e *notebookEdit) remove(at int) {
	var was cell
	_ = json.Unmarshal(e.text[e.cells[at].from:e.cells[at].to], &was) // it has been read before
	e.kind = was.Type
	switch {
	case len(e.cells) == 1:
		e.splice(e.list.from, e.list.to, "[]")
	case at+1 < len(e.cells):
		e.splice(e.cells[at].at, e.cells[at+1].at, "")
	default:
		e.splice(e.cells[at-1].to, e.cells[at].to, "")
	}
}

func (e *notebookEdit) splice(from, to int, s string) {
	e.text = slices.Concat(e.text[:from], []byte(s), e.text[to:])
}

// newID makes an ID that no cell has. It depends on the notebook and the new
// cell alone, so that the same edit makes the same one.
func (e *notebookEdit) newID(at int, source string) string {
	for n := 0; ; n++ {
		id := workspace.Sum(fmt.Appendf(nil, "%d %d %s %s", n, at, workspace.Sum(e.text), source))[:8]
		if !slices.Contains(e.ids, id) {
			return id
		}
	}
}

// gap is what stands between two fields or elements, behind the comma.
func (e *notebookEdit) gap(indent string) string {
	switch {
	case e.unit != "":
		return e.newline + indent
	case e.colon == ":":
		return ""
	}
	return " "
}

// block writes an object or a list whose last line has an indentation.
func (e *notebookEdit) block(begin string, items []string, end, indent string) string {
	if len(items) == 0 {
		return begin + end
	}
	if e.unit == "" {
		return begin + strings.Join(items, ","+e.gap("")) + end
	}
	inner := e.newline + indent + e.unit
	return begin + inner + strings.Join(items, ","+inner) + e.newline + indent + end
}

// source writes the source of a cell: as a list of lines, or one string.
func (e *notebookEdit) source(s string, whole bool, indent string) string {
	if whole {
		return jsonString(s)
	}
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, jsonString(line))
	}
	return e.block("[", lines, "]", indent)
}

// jsonString writes a string as notebooks hold it: with the characters as they are.
func jsonString(s string) string { return string(kit.Structured(s)) }

// cellText is a cell that is being edited. The first error stays.
type cellText struct {
	e    *notebookEdit
	text []byte
	err  error
}

func (c *cellText) members() []member {
	all, err := membersOf(c.text)
	if c.err == nil {
		c.err = err
	}
	return all
}

// indent is that of the fields.
func (c *cellText) indent() string {
	if all := c.members(); len(all) > 0 {
		return indentOf(c.text, all[0].at)
	}
	return ""
}

// is reports whether the value of a field begins with a sign.
func (c *cellText) is(key string, sign byte) bool {
	all := c.members()
	i := named(all, key)
	return i >= 0 && c.text[all[i].from] == sign
}

// set gives a field a value. A new one stands before the first whose name is
// behind it in the alphabet, which is how notebooks are written.
func (c *cellText) set(key, value string) {
	all := c.members()
	if c.err != nil {
		return
	}
	if i := named(all, key); i >= 0 {
		c.text = slices.Concat(c.text[:all[i].from], []byte(value), c.text[all[i].to:])
		return
	}
	field := jsonString(key) + c.e.colon + value
	for _, m := range all {
		if m.key > key {
			field += "," + c.e.gap(indentOf(c.text, m.at))
			c.text = slices.Concat(c.text[:m.at], []byte(field), c.text[m.at:])
			return
		}
	}
	if len(all) == 0 {
		c.err = errors.New("it is empty")
		return
	}
	last := all[len(all)-1]
	field = "," + c.e.gap(indentOf(c.text, last.at)) + field
	c.text = slices.Concat(c.text[:last.to], []byte(field), c.text[last.to:])
}

// drop takes a field out.
func (c *cellText) drop(key string) {
	all := c.members()
	i := named(all, key)
	switch {
	case i < 0:
	case i+1 < len(all):
		c.text = slices.Concat(c.text[:all[i].at], c.text[all[i+1].at:])
	case i > 0:
		c.text = slices.Concat(c.text[:all[i-1].to], c.text[all[i].to:])
	default:
		c.err = errors.New("it has no other field")
	}
}
