package anthropic

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"
	"unsafe"

	"dure/agent"
)

// encodeMessage writes the blocks of one message. What the API would refuse is
// left out: empty text, thinking without a signature, and what only another
// provider can read.
func encodeMessage(info agent.ModelInfo, r agent.Request, m agent.Message) segment {
	s := segment{blocks: unsafe.SliceData(m.Blocks), n: len(m.Blocks), role: m.Role, mark: -1}
	for _, b := range m.Blocks {
		var block []byte
		markable := true
		switch b.Type {
		case agent.TextBlock:
			if !blank(b.Text) {
				block = textBlock(nil, b.Text)
			}
		case agent.ThinkingBlock, agent.RawBlock:
			block, markable = foreign(info, b), false
			s.thinks = s.thinks || block != nil && len(s.data) == 0 && b.Type == agent.ThinkingBlock
		case agent.CallBlock:
			if b.Call != nil {
				block, s.calls = callBlock(r, *b.Call), true
			}
		case agent.ResultBlock:
			if b.Result != nil {
				block = resultBlock(info, *b.Result)
			}
		case agent.ImageBlock, agent.DocumentBlock:
			block = mediaBlock(info, b)
		}
		if block == nil {
			continue
		}
		if len(s.data) > 0 {
			s.data = append(s.data, ',')
		}
		s.data = append(s.data, block...)
		if markable {
			s.mark = len(s.data) - 1
		}
	}
	return s
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func textBlock(dst []byte, text string) []byte {
	return append(quote(append(dst, `{"type":"text","text":`...), text), '}')
}

// foreign returns a block that goes back with what the provider put into it, or nil when
// it came from another one.
func foreign(info agent.ModelInfo, b agent.Block) []byte {
	switch {
	case b.Provider != "" && b.Provider != info.Provider:
		return nil
	case len(b.Raw) > 0:
		if raw, ok := canonical(nil, b.Raw); ok && isObject(raw) {
			return raw
		}
		return nil
	case b.Signature == "":
		return nil
	}
	d := quote([]byte(`{"type":"thinking","thinking":`), b.Text)
	return append(quote(append(d, `,"signature":`...), b.Signature), '}')
}

// canonical appends raw in the one form that it has before and after it has
// been in a log: without white space, and without the escapes that
// encoding/json adds for HTML. A request is then the same in a session that
// goes on and in one that was resumed.
func canonical(dst []byte, raw json.RawMessage) (whole []byte, ok bool) {
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

func isObject(raw []byte) bool {
	raw = bytes.TrimLeft(raw, " \t\r\n")
	return len(raw) > 0 && raw[0] == '{'
}

func callBlock(r agent.Request, c agent.Call) []byte {
	d := quote([]byte(`{"type":"tool_use","id":`), callID(c.ID))
	d = quote(append(d, `,"name":`...), toolName(r.Presented(c.Tool)))
	d = append(d, `,"input":`...)
	if c.Invalid == "" && isObject(c.Input) {
		if whole, ok := canonical(d, c.Input); ok {
			return append(whole, '}')
		}
	}
	return append(d, `{}}`...)
}

func resultBlock(info agent.ModelInfo, r agent.Result) []byte {
	text := r.Text
	if text == "" && len(r.Output) > 0 {
		text = string(r.Output)
		if output, ok := canonical(nil, r.Output); ok {
			text = string(output)
		}
	}
	if text == "" && r.Failed() {
		text = "The call did not work, and did not say why." // an error may not be empty
	}
	d := quote([]byte(`{"type":"tool_result","tool_use_id":`), callID(r.ID))
	var media []byte
	for _, b := range r.Blocks {
		if block := mediaBlock(info, b); block != nil {
			media = append(append(media, ','), block...)
		} else if b.Type == agent.TextBlock && !blank(b.Text) {
			media = textBlock(append(media, ','), b.Text)
		}
	}
	switch {
	case media != nil && blank(text):
		d = append(append(append(d, `,"content":[`...), media[1:]...), ']')
	case media != nil:
		d = append(append(textBlock(append(d, `,"content":[`...), text), media...), ']')
	case text != "":
		d = quote(append(d, `,"content":`...), text)
	}
	if r.Failed() {
		d = append(d, `,"is_error":true`...)
	}
	return append(d, '}')
}

// mediaBlock writes an image or a document, or says in words that the model
// cannot be shown it.
func mediaBlock(info agent.ModelInfo, b agent.Block) []byte {
	m := b.Media
	if m == nil || b.Type != agent.ImageBlock && b.Type != agent.DocumentBlock {
		return nil
	}
	kind, _, _ := strings.Cut(m.Type, ";")
	switch kind {
	case "image/jpeg", "image/png", "image/gif", "image/webp":
		if info.Images && b.Type == agent.ImageBlock {
			return append(source([]byte(`{"type":"image"`), kind, m), '}')
		}
	case "application/pdf":
		if info.PDF && b.Type == agent.DocumentBlock {
			return append(source(title([]byte(`{"type":"document"`), m), kind, m), '}')
		}
	case "text/plain":
		if b.Type == agent.DocumentBlock && m.URL == "" && !blank(string(m.Data)) {
			d := append(title([]byte(`{"type":"document"`), m), `,"source":{"type":"text","media_type":"text/plain","data":`...)
			return append(quote(d, string(m.Data)), `}}`...)
		}
	}
	name := or(m.Name, "without a name")
	return textBlock(nil, "["+string(b.Type)+" "+name+" ("+or(m.Type, "unknown type")+") is not shown: this model cannot read it]")
}

func title(d []byte, m *agent.Media) []byte {
	if m.Name == "" {
		return d
	}
	return quote(append(d, `,"title":`...), m.Name)
}

func source(d []byte, kind string, m *agent.Media) []byte {
	if m.URL != "" && len(m.Data) == 0 {
		return append(quote(append(d, `,"source":{"type":"url","url":`...), m.URL), '}')
	}
	d = quote(append(d, `,"source":{"type":"base64","media_type":`...), kind)
	d = append(d, `,"data":"`...)
	d = base64.StdEncoding.AppendEncode(d, m.Data)
	return append(d, `"}`...)
}

const maxToolName = 64

// toolName returns name as the API can bear it. A model that asks for a tool
// of an impossible name gets to read its own question again.
func toolName(name string) string {
	name = plain(name)
	return or(name[:min(len(name), maxToolName)], "unknown")
}

// callID returns the ID of a call as the API can bear it; other providers'
// have more characters.
func callID(id string) string { return or(plain(id), "unknown") }

// plain replaces everything but letters, digits, _ and -.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

const hexDigits = "0123456789abcdef"

// quote appends s as a JSON string. Unlike encoding/json it leaves <, > and &
// as they are: a model reads code better, and for fewer tokens, that way.
// Invalid UTF-8 becomes the replacement character.
func quote(dst []byte, s string) []byte {
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
