package sdk

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"dure/agent"
)

// stream is an answer as it is made, in the form in which the Messages API streams it. Live
// events may be missing; what they did not say is said at the end.
type stream struct {
	h     *Host
	on    bool
	began bool
	model string
	id    string
	asked time.Time
	first *int64 // milliseconds until the first piece

	next  int // number of the next block
	open  *part
	parts []*part
}

// part is a block that was begun.
type part struct {
	number int // in the answer as it is shown
	index  int // in that of the model
	kind   agent.BlockType
	text   strings.Builder
	closed bool
}

// stream returns the stream of the host.
func (h *Host) stream() *stream {
	h.show.stream.h = h
	return &h.show.stream
}

type streamed struct {
	head
	Event  any     `json:"event"`
	Parent *string `json:"parent_tool_use_id"`
	First  *int64  `json:"ttft_ms,omitempty"`
}

func (s *stream) put(event any) {
	m := streamed{head: s.h.head("stream_event", "", ""), Event: event}
	m.First, s.first = s.first, nil
	s.h.out.put(m)
}

// begin is a request that goes out.
func (s *stream) begin(model, id string, at time.Time) {
	*s = stream{h: s.h, on: true, model: model, id: id, asked: at}
}

// drop forgets an answer that failed: another one begins from the start.
func (s *stream) drop() { s.on = false }

func (s *stream) start() {
	if s.began {
		return
	}
	s.began = true
	took := s.h.c.Now().Sub(s.asked).Milliseconds()
	s.first = &took
	s.put(map[string]any{"type": "message_start", "message": spoken{
		ID: s.id, Type: "message", Role: "assistant", Model: s.model, Content: []any{}, Usage: tokensOf(agent.Usage{}),
	}})
}

// fragment shows a piece of the answer.
func (s *stream) fragment(f agent.Fragment) {
	if !s.on {
		if s.id == "" {
			return
		}
		*s = stream{h: s.h, on: true, model: s.model, id: s.id, asked: s.h.c.Now()} // the next attempt
	}
	s.start()
	p := s.at(f.Index)
	if p == nil {
		kind := agent.TextBlock
		block := map[string]any{"type": "text", "text": ""}
		switch f.What {
		case agent.DeltaThinking:
			kind, block = agent.ThinkingBlock, map[string]any{"type": "thinking", "thinking": "", "signature": ""}
		case agent.DeltaCall:
			kind, block = agent.CallBlock, map[string]any{"type": "tool_use", "id": f.Call, "name": s.h.prog.Name(f.Tool), "input": struct{}{}}
		case agent.DeltaInput:
			return // of a call whose beginning was missed: it is shown whole at the end
		}
		p = s.beginPart(f.Index, kind, block)
	}
	if p.closed || f.Text == "" {
		return
	}
	s.delta(p, f.Text)
}

func (s *stream) at(index int) *part {
	for _, p := range s.parts {
		if p.index == index {
			return p
		}
	}
	return nil
}

func (s *stream) beginPart(index int, kind agent.BlockType, block map[string]any) *part {
	s.closePart()
	p := &part{number: s.next, index: index, kind: kind}
	s.next++
	s.parts, s.open = append(s.parts, p), p
	s.put(map[string]any{"type": "content_block_start", "index": p.number, "content_block": block})
	return p
}

func (s *stream) closePart() {
	if s.open != nil && !s.open.closed {
		s.open.closed = true
		s.put(map[string]any{"type": "content_block_stop", "index": s.open.number})
	}
	s.open = nil
}

// maxPiece is how long a piece of an answer may be: it fits in a line also where each of its
// characters takes the most bytes.
const maxPiece = 128 << 10

// delta shows what comes next in a part, in as many pieces as lines can hold.
func (s *stream) delta(p *part, words string) {
	for len(words) > maxPiece {
		end := maxPiece
		for end > maxPiece-utf8.UTFMax && !utf8.RuneStart(words[end]) {
			end--
		}
		s.piece(p, words[:end])
		words = words[end:]
	}
	s.piece(p, words)
}

func (s *stream) piece(p *part, words string) {
	p.text.WriteString(words)
	d := map[string]any{"type": "text_delta", "text": words}
	switch p.kind {
	case agent.ThinkingBlock:
		d = map[string]any{"type": "thinking_delta", "thinking": words}
	case agent.CallBlock:
		d = map[string]any{"type": "input_json_delta", "partial_json": words}
	}
	s.put(map[string]any{"type": "content_block_delta", "index": p.number, "delta": d})
}

// complete says what live events have not said of an answer, and leaves its last block open.
func (s *stream) complete(b agent.ModelAnswered) {
	if !s.on {
		return
	}
	s.start()
	for i, block := range b.Message.Blocks {
		kind, whole, begin := s.blockOf(block)
		if begin == nil {
			continue
		}
		p := s.at(i)
		switch {
		case p == nil:
			p = s.beginPart(i, kind, begin)
			if whole != "" {
				s.delta(p, whole)
			}
		case p.closed:
			continue
		default:
			if rest, ok := strings.CutPrefix(whole, p.text.String()); ok && rest != "" && kind != agent.CallBlock {
				s.delta(p, rest)
			}
		}
		if kind == agent.ThinkingBlock && block.Signature != "" && s.open == p {
			s.put(map[string]any{
				"type": "content_block_delta", "index": p.number,
				"delta": map[string]any{"type": "signature_delta", "signature": block.Signature},
			})
		}
	}
}

// blockOf is how a block begins, and all that follows.
func (s *stream) blockOf(b agent.Block) (kind agent.BlockType, whole string, begin map[string]any) {
	switch {
	case b.Type == agent.TextBlock:
		return b.Type, b.Text, map[string]any{"type": "text", "text": ""}
	case b.Type == agent.ThinkingBlock && len(b.Raw) > 0:
		var raw map[string]any
		if json.Unmarshal(b.Raw, &raw) != nil || raw["type"] != "redacted_thinking" {
			return b.Type, "", nil
		}
		return b.Type, "", raw
	case b.Type == agent.ThinkingBlock:
		return b.Type, b.Text, map[string]any{"type": "thinking", "thinking": "", "signature": ""}
	case b.Type == agent.CallBlock && b.Call != nil:
		return b.Type, string(objectOf(b.Call.Input)), map[string]any{"type": "tool_use", "id": b.Call.ID, "name": s.h.prog.Name(b.Call.Tool), "input": struct{}{}}
	}
	return b.Type, "", nil
}

// end is the end of an answer, behind its messages.
func (s *stream) end(b agent.ModelAnswered) {
	if !s.on {
		return
	}
	s.closePart()
	s.put(map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": string(b.Stop), "stop_sequence": nil}, "usage": tokensOf(b.Usage),
	})
	s.put(map[string]any{"type": "message_stop"})
	s.on, s.id = false, ""
}
