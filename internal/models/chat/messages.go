package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// A segment is one message of the conversation, encoded without its neighbours:
// those of one role become one message, and whether a result has a call only
// its neighbours tell.
type segment struct {
	role agent.Role

	// content is the text of a string without its quotes, or parts of a list
	// without its brackets: see [encoder.parts].
	content []byte

	// Of the assistant.
	whole   []byte // the message when nothing is added to it
	thought []byte // text of a string without its quotes
	details []byte // parts of a list without its brackets
	calls   []piece

	results []piece // of the user: whole messages
}

// A piece is a call or a result. It belongs to the call with this ID, as the
// conversation has it.
type piece struct {
	id   string
	wire string // the ID as the endpoint can bear it
	data []byte
	rest int // where data goes on behind the ID
}

// What stands in front of the ID of a call and of a result.
const (
	callOpen   = `{"id":`
	resultOpen = `{"role":"tool","tool_call_id":`
)

// piece begins a piece for the call with an ID.
func (e *encoder) piece(open, id string) piece {
	p := piece{id: id, wire: e.callID(id)}
	p.data = wire.Quote([]byte(open), p.wire)
	p.rest = len(p.data)
	return p
}

// renamed returns a piece for another ID.
func (p piece) renamed(open, id string) piece {
	d := wire.Quote([]byte(open), id)
	return piece{p.id, id, append(d, p.data[p.rest:]...), len(d)}
}

// parts reports whether what the user says is a list of parts. It does not
// depend on what is said, so that a message which grows keeps its beginning.
func (e *encoder) parts() bool { return (e.info.Images || e.info.PDF) && !e.compat.TextOnly }

func (e *encoder) segment(r agent.Request, m agent.Message) *segment {
	if m.Role == agent.Assistant {
		return e.answered(r, m)
	}
	return e.asked(m)
}

// answered encodes what the assistant said. Thinking of other providers, and
// blocks of kinds that this API does not have, are left out.
func (e *encoder) answered(r agent.Request, m agent.Message) *segment {
	s := &segment{role: agent.Assistant}
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.TextBlock:
			s.content = appendText(s.content, b.Text, false)
		case agent.ThinkingBlock:
			if b.Provider == e.info.Provider {
				s.thought = appendText(s.thought, b.Text, false)
				s.details = e.appendDetails(s.details, b.Raw)
			}
		case agent.CallBlock:
			if b.Call != nil && !slices.ContainsFunc(s.calls, func(p piece) bool { return p.id == b.Call.ID }) {
				s.calls = append(s.calls, e.call(r, *b.Call))
			}
		}
	}
	if s.says() {
		s.whole = e.answer([]*segment{s}, s.calls)
	}
	return s
}

// says reports whether the segment has anything that can be sent by itself.
func (s *segment) says() bool { return len(s.content) > 0 || len(s.calls) > 0 }

func (e *encoder) appendDetails(dst, raw []byte) []byte {
	list, ok := wire.Canonical(nil, raw)
	if !e.compat.ReasoningDetails || !ok || len(list) < 3 || list[0] != '[' {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, ',')
	}
	return append(dst, list[1:len(list)-1]...)
}

func (e *encoder) call(r agent.Request, c agent.Call) piece {
	p := e.piece(callOpen, c.ID)
	d := wire.Quote(append(p.data, `,"type":"function","function":{"name":`...), wire.ToolName(r.Presented(c.Tool)))
	d = wire.Quote(append(d, `,"arguments":`...), string(wire.CallInput(nil, c)))
	p.data = append(d, `}}`...)
	return p
}

// answer writes an assistant message of one or several segments.
func (e *encoder) answer(group []*segment, made []piece) []byte {
	var text, thought, details, calls []byte
	for _, s := range group {
		text = join(text, s.content, `\n\n`)
		thought = join(thought, s.thought, `\n\n`)
		details = join(details, s.details, `,`)
	}
	for _, c := range made {
		calls = join(calls, c.data, `,`)
	}
	d := []byte(`{"role":"assistant","content":`)
	if len(text) > 0 || e.compat.EmptyText {
		d = append(append(append(d, '"'), text...), '"')
	} else {
		d = append(d, `null`...)
	}
	// Where thinking has to go back, it has to with every call, even if it is empty.
	if name := e.compat.Reasoning; name != "" && (len(thought) > 0 || len(calls) > 0) {
		d = append(wire.Quote(append(d, ','), name), `:"`...)
		d = append(append(d, thought...), '"')
	}
	if len(details) > 0 {
		d = append(append(append(d, `,"reasoning_details":[`...), details...), ']')
	}
	if len(calls) > 0 {
		d = append(append(append(d, `,"tool_calls":[`...), calls...), ']')
	}
	return append(d, '}')
}

func join(dst, more []byte, separator string) []byte {
	if len(more) == 0 {
		return dst
	}
	if len(dst) > 0 {
		dst = append(dst, separator...)
	}
	return append(dst, more...)
}

// asked encodes what the user, and the tools, said. The API has text alone in
// results: their images and documents follow as the user's.
func (e *encoder) asked(m agent.Message) *segment {
	s := &segment{role: agent.User}
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.TextBlock:
			s.content = appendText(s.content, b.Text, e.parts())
		case agent.ImageBlock, agent.DocumentBlock:
			s.content = e.appendMedia(s.content, b)
		case agent.ResultBlock:
			if b.Result != nil {
				e.addResult(s, *b.Result)
			}
		}
	}
	return s
}

// addResult adds the result of a call. The API has no mark for a failure, so
// that the text has to say it.
func (e *encoder) addResult(s *segment, r agent.Result) {
	text := wire.ResultText(r)
	if r.Failed() && !strings.HasPrefix(text, "Error") {
		text = "Error: " + text
	}
	var media []byte
	for _, b := range r.Blocks {
		switch {
		case b.Type == agent.TextBlock && !wire.Blank(b.Text):
			if text != "" {
				text += "\n"
			}
			text += b.Text
		case b.Type != agent.ImageBlock && b.Type != agent.DocumentBlock:
		case e.part(b) != nil:
			media = e.appendMedia(media, b)
		default:
			text += "\n" + wire.NotShown(b)
		}
	}
	if wire.Blank(text) {
		text = "(no output)"
	}
	p := e.piece(resultOpen, r.ID)
	d := append(p.data, `,"content":`...)
	if e.compat.ToolParts {
		d = append(appendText(append(d, '['), text, true), ']')
	} else {
		d = wire.Quote(d, text)
	}
	p.data = append(d, '}')
	s.results = append(s.results, p)
	if media != nil {
		s.content = appendText(s.content, "Shown by the call "+p.wire+":", true)
		s.content = append(append(s.content, ','), media...)
	}
}

// appendText adds text to a content, as a part or as a paragraph. Text that
// says nothing is left out.
func appendText(dst []byte, text string, part bool) []byte {
	if wire.Blank(text) {
		return dst
	}
	if part {
		if len(dst) > 0 && dst[len(dst)-1] == '}' {
			dst = append(dst, ',')
		}
		return append(wire.Quote(append(dst, `{"type":"text","text":`...), text), '}')
	}
	q := wire.Quote(nil, text)
	return join(dst, q[1:len(q)-1], `\n\n`)
}

// appendMedia adds an image or a document to what the user says, or says in
// words that the model cannot be shown it.
func (e *encoder) appendMedia(dst []byte, b agent.Block) []byte {
	if p := e.part(b); p != nil {
		return join(dst, p, `,`)
	}
	m := b.Media
	if m != nil && b.Type == agent.DocumentBlock && strings.HasPrefix(m.Type, "text/") && !wire.Blank(string(m.Data)) {
		return appendText(dst, wire.Or(m.Name, "document")+":\n"+string(m.Data), e.parts())
	}
	return appendText(dst, wire.NotShown(b), e.parts())
}

// part returns an image or a document as a part, or nil when this model, or
// this API, does not take it.
func (e *encoder) part(b agent.Block) []byte {
	m := b.Media
	if m == nil || !e.parts() || len(m.Data) == 0 && (m.URL == "" || b.Type != agent.ImageBlock) {
		return nil
	}
	kind, _, _ := strings.Cut(m.Type, ";")
	switch kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		if !e.info.Images || b.Type != agent.ImageBlock {
			return nil
		}
		d := []byte(`{"type":"image_url","image_url":{"url":`)
		if len(m.Data) > 0 {
			d = wire.DataURL(d, kind, m.Data)
		} else {
			d = wire.Quote(d, m.URL)
		}
		return append(d, `}}`...)
	case "application/pdf":
		if !e.info.PDF || b.Type != agent.DocumentBlock {
			return nil
		}
		d := wire.Quote([]byte(`{"type":"file","file":{"filename":`), wire.Or(m.Name, "document.pdf"))
		d = wire.DataURL(append(d, `,"file_data":`...), kind, m.Data)
		return append(d, `}}`...)
	}
	return nil
}

const maxCallID = 40 // characters of a call's ID that the API takes

// callID returns the ID of a call as the endpoint can bear it. One that it
// cannot is replaced by a digest, which is the same for the call and its result.
func (e *encoder) callID(id string) string {
	if n := e.compat.CallIDs; n > 0 {
		alnum := !strings.ContainsAny(id, "_-") && wire.Plain(id) == id
		if len(id) == n && alnum {
			return id
		}
		sum := sha256.Sum256([]byte(id))
		digits := new(big.Int).SetBytes(sum[:]).Text(62) // more than 40 of them, nearly always
		return (digits + strings.Repeat("0", n))[:n]
	}
	if id != "" && len(id) <= maxCallID && wire.Plain(id) == id {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}
