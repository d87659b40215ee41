package wire

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

const hexDigits = "0123456789abcdef"

// Quote appends s as a JSON string. Unlike encoding/json it leaves <, > and &
// as they are: a model reads code better, and for fewer tokens, that way.
// Invalid UTF-8 becomes the replacement character.
func Quote(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(append(dst, s[from:i]...), "\ufffd"...)
				from = i + 1
			}
			i += n
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		dst = append(dst, s[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// Unquote appends the JSON string whose opening quote stands before s, and
// returns what follows it. It reports false, for encoding/json to decide, for
// everything but plain text and the usual escapes.
func Unquote(dst, s []byte) (text, rest []byte, ok bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '"':
			return dst, s[i+1:], utf8.Valid(dst)
		case c < ' ':
			return dst, nil, false
		case c != '\\':
			dst = append(dst, c)
			continue
		}
		if i++; i == len(s) {
			break
		}
		switch s[i] {
		case '"', '\\', '/':
			dst = append(dst, s[i])
		case 'n':
			dst = append(dst, '\n')
		case 't':
			dst = append(dst, '\t')
		case 'r':
			dst = append(dst, '\r')
		default:
			return dst, nil, false
		}
	}
	return dst, nil, false
}

// Blank reports whether s says nothing.
func Blank(s string) bool { return strings.TrimSpace(s) == "" }

// Object reports whether raw, which is valid JSON, is an object.
func Object(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

// Canonical appends raw in the one form that it has before and after it has
// been in a log: without white space, and without the escapes that
// encoding/json adds for HTML. A request is then the same in a session that
// goes on and in one that was resumed.
func Canonical(dst []byte, raw json.RawMessage) (whole []byte, ok bool) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return dst, false
	}
	for s := compact.Bytes(); ; {
		i := bytes.IndexByte(s, '\\')
		if i < 0 {
			return append(dst, s...), true
		}
		dst = append(dst, s[:i]...)
		s = s[i:] // at least two bytes: the JSON is valid
		if literal, ok := htmlEscapes[string(bytes.ToLower(s[:min(6, len(s))]))]; ok {
			dst, s = append(dst, literal...), s[6:]
		} else {
			dst, s = append(dst, s[:2]...), s[2:]
		}
	}
}

var htmlEscapes = map[string]string{
	`\u003c`: "<", `\u003e`: ">", `\u0026`: "&", `\u2028`: "\u2028", `\u2029`: "\u2029",
}

// MaxToolName is the longest name of a tool that every provider takes.
const MaxToolName = 64

// ToolName returns name as the APIs can bear it. A model that asks for a tool
// of an impossible name gets to read its own question again.
func ToolName(name string) string {
	name = Plain(name)
	return Or(name[:min(len(name), MaxToolName)], "unknown")
}

// CallID returns the ID of a call as the APIs can bear it; other providers'
// have more characters.
func CallID(id string) string { return Or(Plain(id), "unknown") }

// Plain replaces everything but letters, digits, _ and -.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

// ResultText is the text of a result that a model reads: never empty when the
// call failed.
func ResultText(r agent.Result) string {
	text := r.Text
	if text == "" && len(r.Output) > 0 {
		text = string(r.Output)
		if output, ok := Canonical(nil, r.Output); ok {
			text = string(output)
		}
	}
	if text == "" && r.Failed() {
		text = "The call did not work, and did not say why."
	}
	return text
}

// NotShown is the text that stands for media which a model cannot read.
func NotShown(b agent.Block) string {
	name, kind := "without a name", "unknown type"
	if b.Media != nil {
		name, kind = Or(b.Media.Name, name), Or(b.Media.Type, kind)
	}
	return "[" + string(b.Type) + " " + name + " (" + kind + ") is not shown: this model cannot read it]"
}

// DataURL appends media as a data URL in a JSON string.
func DataURL(dst []byte, kind string, data []byte) []byte {
	dst = Quote(dst, "data:"+kind+";base64,")
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], data)
	return append(dst, '"')
}

// ToolInput makes a call of the input that the model wrote. Anything but a JSON
// object gives an invalid call, never an error; an input of no text is {},
// unless it was cut: the answer ended inside the call.
func ToolInput(id, tool, text string, cut bool) agent.Call {
	text = strings.ToValidUTF8(text, "\ufffd")
	trimmed := strings.Trim(text, " \t\r\n") // the space that JSON knows
	switch {
	case json.Valid([]byte(trimmed)) && Object([]byte(trimmed)) && (!cut || trimmed != "{}"):
		return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(trimmed)}
	case cut:
		return agent.InvalidInput(id, tool, text, "the answer ended in the middle of the call: its input is incomplete")
	case trimmed == "":
		return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(`{}`)}
	}
	var any json.RawMessage
	if err := json.Unmarshal([]byte(trimmed), &any); err != nil {
		return agent.InvalidInput(id, tool, text, "the input is no valid JSON: "+err.Error())
	}
	return agent.InvalidInput(id, tool, text, "the input is JSON but no object")
}

// CallInput appends the input of a call as it goes back to a model: {} when it
// was invalid.
func CallInput(dst []byte, c agent.Call) []byte {
	if c.Invalid == "" && Object(c.Input) {
		if whole, ok := Canonical(dst, c.Input); ok {
			return whole
		}
	}
	return append(dst, `{}`...)
}
