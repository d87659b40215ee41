package gemini

import (
	"bytes"

	"dure/agent"
	"dure/internal/models/wire"
)

// fast takes in a chunk of one piece of text that is written the way the API
// writes it, which is nearly every one there is. It reports false, and has done
// nothing, for everything else.
func (a *answer) fast(data []byte) (bool, error) {
	s := scan{data}
	roleFirst := false
	if !s.all(`{`, `"candidates"`, `:`, `[`, `{`, `"content"`, `:`, `{`) {
		return false, nil
	}
	if s.is(`"role"`) {
		roleFirst = s.all(`:`, `"model"`, `,`)
		if !roleFirst {
			return false, nil
		}
	}
	if !s.all(`"parts"`, `:`, `[`, `{`) {
		return false, nil
	}
	kind, ok := a.said(&s)
	if !ok || !s.all(`}`, `]`) || !roleFirst && s.is(`,`) && !s.all(`"role"`, `:`, `"model"`) || !s.is(`}`) {
		return false, nil
	}
	if s.is(`,`) && !s.all(`"index"`, `:`, `0`) || !s.all(`}`, `]`) {
		return false, nil
	}
	t, id, model, ok := s.envelope(a.counts)
	if !ok {
		return false, nil
	}
	return true, a.piece(kind, t, id, model)
}

// said reads a part into scratch: text that is perhaps marked as thinking, in
// front or behind.
func (a *answer) said(s *scan) (agent.BlockType, bool) {
	kind := agent.TextBlock
	if s.is(`"thought"`) {
		if !s.all(`:`, `true`, `,`) {
			return "", false
		}
		kind = agent.ThinkingBlock
	}
	if !s.all(`"text"`, `:`) || !s.is(`"`) {
		return "", false
	}
	var ok bool
	if a.Scratch, s.rest, ok = wire.Unquote(a.Scratch[:0], s.rest); !ok || len(a.Scratch) == 0 {
		return "", false
	}
	if kind == agent.TextBlock && s.is(`,`) {
		if !s.all(`"thought"`, `:`, `true`) {
			return "", false
		}
		kind = agent.ThinkingBlock
	}
	return kind, true
}

// piece takes in what fast has read.
func (a *answer) piece(kind agent.BlockType, t tokens, id, model []byte) error {
	a.In.Progress()
	a.Begun = true
	if a.ID == "" {
		a.ID = string(id)
	}
	if a.Model == "" {
		a.Model = string(model)
	}
	b, err := a.last(kind, "")
	if err != nil {
		return err
	}
	if err := a.AppendBytes(b, a.Scratch); err != nil {
		return err
	}
	if a.counts = t; a.Ended {
		return nil
	}
	return a.counting()
}

// scan reads JSON token by token, without spaces, and knows only what the API
// writes.
type scan struct{ rest []byte }

// is reports whether the token is next, and passes it.
func (s *scan) is(token string) bool {
	for len(s.rest) > 0 && s.rest[0] == ' ' {
		s.rest = s.rest[1:]
	}
	if len(s.rest) < len(token) || string(s.rest[:len(token)]) != token {
		return false
	}
	s.rest = s.rest[len(token):]
	return true
}

// all reports whether the tokens are next, and passes them.
func (s *scan) all(tokens ...string) bool {
	for _, t := range tokens {
		if !s.is(t) {
			return false
		}
	}
	return true
}

// name reads a text of plain characters.
func (s *scan) name() ([]byte, bool) {
	if !s.is(`"`) {
		return nil, false
	}
	end := bytes.IndexByte(s.rest, '"')
	if end < 0 {
		return nil, false
	}
	name := s.rest[:end]
	for _, c := range name {
		if c < ' ' || c == '\\' || c >= 0x7f {
			return nil, false
		}
	}
	s.rest = s.rest[end+1:]
	return name, true
}

// number reads a number that is not negative, of up to nine digits.
func (s *scan) number() (n int, ok bool) {
	_ = s.is("")
	digits := 0
	for digits < len(s.rest) && digits < 10 && s.rest[digits]-'0' < 10 {
		n = n*10 + int(s.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 9 || digits > 1 && s.rest[0] == '0' {
		return 0, false
	}
	s.rest = s.rest[digits:]
	return n, len(s.rest) > 0 && (s.rest[0] == ',' || s.rest[0] == '}' || s.rest[0] == ' ')
}

// envelope reads what stands behind the candidates, to the end.
func (s *scan) envelope(t tokens) (_ tokens, id, model []byte, ok bool) {
	for s.is(`,`) {
		key, ok := s.name()
		if !ok || !s.is(`:`) {
			return t, nil, nil, false
		}
		switch string(key) {
		case "usageMetadata":
			t, ok = s.usage(t)
		case "responseId":
			id, ok = s.name()
		case "modelVersion":
			model, ok = s.name()
		case "createTime":
			_, ok = s.name()
		default:
			ok = false
		}
		if !ok {
			return t, nil, nil, false
		}
	}
	if !s.is(`}`) {
		return t, nil, nil, false
	}
	for _, c := range s.rest {
		if c != ' ' {
			return t, nil, nil, false
		}
	}
	return t, id, model, true
}

// usage reads the counts on top of those that came before.
func (s *scan) usage(t tokens) (tokens, bool) {
	if !s.is(`{`) {
		return t, false
	}
	for first := true; ; first = false {
		if s.is(`}`) {
			return t, true
		}
		if !first && !s.is(`,`) {
			return t, false
		}
		key, ok := s.name()
		if !ok || !s.is(`:`) {
			return t, false
		}
		switch string(key) {
		case "promptTokenCount":
			t.prompt, ok = s.number()
		case "cachedContentTokenCount":
			t.cached, ok = s.number()
		case "candidatesTokenCount":
			t.candidates, ok = s.number()
		case "thoughtsTokenCount":
			t.thoughts, ok = s.number()
		case "toolUsePromptTokenCount":
			t.tools, ok = s.number()
		case "totalTokenCount":
			_, ok = s.number()
		case "trafficType", "serviceTier":
			_, ok = s.name()
		case "promptTokensDetails", "cacheTokensDetails", "candidatesTokensDetails", "toolUsePromptTokensDetails":
			ok = s.details()
		default:
			ok = false
		}
		if !ok {
			return t, false
		}
	}
}

// details passes a list of counts by modality.
func (s *scan) details() bool {
	if !s.is(`[`) {
		return false
	}
	for first := true; ; first = false {
		if !first && s.is(`]`) {
			return true
		}
		if !first && !s.is(`,`) || !s.all(`{`, `"modality"`, `:`) {
			return false
		}
		if _, ok := s.name(); !ok || !s.all(`,`, `"tokenCount"`, `:`) {
			return false
		}
		if _, ok := s.number(); !ok || !s.is(`}`) {
			return false
		}
	}
}
