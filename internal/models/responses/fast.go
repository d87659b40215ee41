package responses

import (
	"bytes"

	"dure/agent"
	"dure/internal/models/wire"
)

var (
	eventOpen  = []byte(`{"type":"response.`)
	noLogprobs = []byte(`[]`)
)

// fast takes in a delta that is written the way the API writes it, which is
// nearly every event there is. Members come in any order. It reports false, and
// has done nothing, for everything else.
func (a *answer) fast(data []byte) (bool, error) {
	rest, ok := bytes.CutPrefix(data, eventOpen)
	if !ok {
		return false, nil
	}
	name, rest, ok := bytes.Cut(rest, quote)
	if !ok {
		return false, nil
	}
	var kind agent.BlockType
	switch string(name) {
	case "output_text.delta":
		kind = agent.TextBlock
	case "function_call_arguments.delta":
		kind = agent.CallBlock
	case "reasoning_summary_text.delta", "reasoning_text.delta":
		kind = agent.ThinkingBlock
	default:
		return false, nil
	}
	index, ok := a.members(rest)
	if !ok {
		return false, nil
	}
	b := a.open.At(index)
	if b == nil || b.Kind != kind {
		return false, nil
	}
	a.In.Progress()
	return true, a.AppendBytes(b, a.Scratch)
}

var quote = []byte{'"'}

// members reads the members of a delta that follow its type. The text is left
// in a.Scratch. Of two members of one name the last counts, as in encoding/json.
func (a *answer) members(s []byte) (index int, ok bool) {
	var hasIndex, hasDelta bool
	for len(s) > 2 && s[0] == ',' && s[1] == '"' {
		var key []byte
		if key, s, ok = bytes.Cut(s[2:], quote); !ok || len(s) < 2 || s[0] != ':' {
			return 0, false
		}
		s = s[1:]
		switch string(key) {
		case "delta":
			if s[0] != '"' {
				return 0, false
			}
			hasDelta = true
			a.Scratch, s, ok = wire.Unquote(a.Scratch[:0], s[1:])
		case "output_index":
			hasIndex = true
			index, s, ok = digits(s)
		case "content_index", "summary_index", "sequence_number":
			_, s, ok = digits(s)
		case "item_id", "obfuscation":
			s, ok = skipText(s)
		case "logprobs":
			s, ok = bytes.CutPrefix(s, noLogprobs)
		default:
			return 0, false
		}
		if !ok {
			return 0, false
		}
	}
	return index, hasIndex && hasDelta && len(s) > 0 && s[0] == '}' && len(bytes.Trim(s[1:], " ")) == 0
}

// digits reads a number of up to nine digits.
func digits(s []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(s) && i < 9 && s[i]-'0' < 10 {
		n = n*10 + int(s[i]-'0')
		i++
	}
	return n, s[i:], i > 0 && (s[0] != '0' || i == 1)
}

// skipText skips a string without escapes.
func skipText(s []byte) (rest []byte, ok bool) {
	if s[0] != '"' {
		return nil, false
	}
	for i, c := range s[1:] {
		switch {
		case c == '"':
			return s[i+2:], true
		case c == '\\' || c < ' ':
			return nil, false
		}
	}
	return nil, false
}
