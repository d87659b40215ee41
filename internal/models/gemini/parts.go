package gemini

import (
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

// anySignature is what the API documents for a call that another model made,
// and that therefore has no signature.
const anySignature = "skip_thought_signature_validator"

// A segment is one message: its parts, separated by commas. The results stand
// apart, since they are named after the calls that they answer.
type segment struct {
	role    agent.Role
	data    []byte
	calls   []call
	results []result
}

// call is what the response to a call repeats of it.
type call struct {
	id  string
	tag []byte // "NAME","id":"ID"
}

// result is a response from behind its name and ID on.
type result struct {
	id    string
	body  []byte
	media []byte // parts that go behind all responses
}

// encodeMessage writes the blocks of one message. What the API would refuse is
// left out: empty text, calls by the user, results by the model, and what only
// another provider can read.
func encodeMessage(info agent.ModelInfo, r agent.Request, m agent.Message, ids *callIDs) *segment {
	s := &segment{role: m.Role}
	for _, b := range m.Blocks {
		switch b.Type {
		case agent.TextBlock:
			s.text(b, s.signature(info, b))
		case agent.ThinkingBlock, agent.RawBlock:
			s.own(info, b)
		case agent.CallBlock:
			if b.Call != nil && m.Role == agent.Assistant {
				s.call(info, r, b, ids.of(m, *b.Call))
			}
		case agent.ResultBlock:
			if b.Result != nil && m.Role != agent.Assistant {
				s.results = append(s.results, encodeResult(info, *b.Result))
			}
		case agent.ImageBlock, agent.DocumentBlock:
			s.add(s.media(info, b))
		}
	}
	return s
}

func (s *segment) add(part []byte) {
	if len(part) == 0 {
		return
	}
	if len(s.data) > 0 {
		s.data = append(s.data, ',')
	}
	s.data = append(s.data, part...)
}

// text adds text. Empty text is a part only when it carries a signature.
func (s *segment) text(b agent.Block, signature string) {
	if signature != "" || !wire.Blank(b.Text) {
		s.add(textPart(nil, b.Text, signature))
	}
}

// signature returns the signature of a block when it goes back: its provider
// is asked, in a turn of the model.
func (s *segment) signature(info agent.ModelInfo, b agent.Block) string {
	if s.role != agent.Assistant || b.Provider != info.Provider || !bytesInBase64(b.Signature) {
		return ""
	}
	return b.Signature
}

// own adds a block that only the provider can read: a signed thought, or a part
// of a kind that we do not model.
func (s *segment) own(info agent.ModelInfo, b agent.Block) {
	switch signature := s.signature(info, b); {
	case s.role != agent.Assistant || b.Provider != info.Provider:
	case b.Type == agent.RawBlock:
		if raw, ok := wire.Canonical(nil, b.Raw); ok && foreign(raw) {
			s.add(raw)
		}
	case signature != "":
		d := wire.Quote([]byte(`{"thought":true,"text":`), b.Text)
		s.add(sign(d, signature))
	}
}

// foreign reports whether a part is of a kind that stands for itself: an object
// by a name, and perhaps a signature. What we model is written by us, and calls
// and responses come in pairs.
func foreign(raw []byte) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return false
	}
	kinds := 0
	for name, value := range members {
		switch strings.ToLower(strings.ReplaceAll(name, "_", "")) {
		case "functioncall", "functionresponse", "text", "":
			return false
		case "thought":
			if s := string(value); s != "true" && s != "false" {
				return false
			}
		case "thoughtsignature":
			if !bytesInBase64(text(value)) {
				return false
			}
		default:
			if wire.Plain(name) != name || !wire.Object(value) {
				return false
			}
			kinds++
		}
	}
	return kinds > 0
}

// call adds a call. The first one of a message needs a signature where they are
// checked.
func (s *segment) call(info agent.ModelInfo, r agent.Request, b agent.Block, id string) {
	c := *b.Call
	tag := wire.Quote(nil, toolName(r, c.Tool))
	tag = wire.Quote(append(tag, `,"id":`...), id)
	d := append([]byte(`{"functionCall":{"name":`), tag...)
	d = append(wire.CallInput(append(d, `,"args":`...), c), '}')
	signature := s.signature(info, b)
	if signature == "" && len(s.calls) == 0 && info.Thinking == thinkLevel {
		signature = anySignature
	}
	s.add(sign(d, signature))
	s.calls = append(s.calls, call{id: c.ID, tag: tag})
}

// callIDs gives the calls of a conversation IDs that no two of them share, as
// other providers' may. An ID depends on what comes before, and on nothing else.
type callIDs struct {
	messages []agent.Message
	taken    map[string]bool // by the calls so far; nil = nobody has asked yet
}

// of returns the ID of a call of m. Messages are asked for in their order; those
// in front of the first one have their IDs already.
func (c *callIDs) of(m agent.Message, made agent.Call) string {
	if c.taken == nil {
		c.taken = make(map[string]bool, len(c.messages)/2)
		for _, before := range c.messages {
			if len(before.Blocks) > 0 && &before.Blocks[0] == &m.Blocks[0] {
				break
			}
			for _, b := range before.Blocks {
				if before.Role == agent.Assistant && b.Type == agent.CallBlock && b.Call != nil {
					c.take(b.Call.ID)
				}
			}
		}
	}
	return c.take(made.ID)
}

func (c *callIDs) take(id string) string {
	id = wire.CallID(id)
	free := id
	for n := 2; c.taken[free]; n++ {
		free = id + "_" + strconv.Itoa(n)
	}
	c.taken[free] = true
	return free
}

func textPart(dst []byte, text, signature string) []byte {
	return sign(wire.Quote(append(dst, `{"text":`...), text), signature)
}

// sign closes a part, with a signature if there is one.
func sign(d []byte, signature string) []byte {
	if signature != "" {
		d = wire.Quote(append(d, `,"thoughtSignature":`...), signature)
	}
	return append(d, '}')
}

// bytesInBase64 reports whether s is what JSON holds bytes in, of either
// alphabet, and not empty.
func bytesInBase64(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case c == '+', c == '/', c == '-', c == '_':
		case c == '=' && i >= len(s)-2:
		default:
			return false
		}
	}
	return s != ""
}

func encodeResult(info agent.ModelInfo, r agent.Result) result {
	text := wire.ResultText(r)
	var inside, behind []byte
	say := func(s string) {
		if text != "" {
			text += "\n"
		}
		text += s
	}
	for _, b := range r.Blocks {
		switch part, within := inline(info, b); {
		case part == nil && b.Type == agent.TextBlock && !wire.Blank(b.Text):
			say(b.Text)
		case part == nil && (b.Type == agent.ImageBlock || b.Type == agent.DocumentBlock):
			say(words(b))
		case part == nil:
		case within && info.Thinking == thinkLevel:
			inside = append(append(inside, ','), part...)
		default:
			behind = append(append(behind, ','), part...)
		}
	}
	key := `,"response":{"output":`
	if r.Failed() {
		key = `,"response":{"error":`
	}
	d := append(wire.Quote([]byte(key), text), '}')
	if inside != nil {
		d = append(append(append(d, `,"parts":[`...), inside[1:]...), ']')
	}
	out := result{id: r.ID, body: append(d, `}}`...)}
	if behind != nil {
		out.media = behind[1:]
	}
	return out
}

// media returns an image or a document as a part. The API shows a model none
// of its own.
func (s *segment) media(info agent.ModelInfo, b agent.Block) []byte {
	if part, _ := inline(info, b); part != nil && s.role != agent.Assistant {
		return part
	}
	return textPart(nil, words(b), "")
}

// inline returns the part that shows media, or nil when the model cannot read
// it, and whether a response may hold the part.
func inline(info agent.ModelInfo, b agent.Block) (part []byte, within bool) {
	if b.Media == nil {
		return nil, false
	}
	kind, _, _ := strings.Cut(b.Media.Type, ";")
	switch kind {
	case "image/png", "image/jpeg", "image/webp":
		within = true
	case "image/heic", "image/heif":
	case "application/pdf":
		if !info.PDF || b.Type != agent.DocumentBlock {
			return nil, false
		}
		return source(kind, *b.Media)
	default:
		return nil, false
	}
	if !info.Images || b.Type != agent.ImageBlock {
		return nil, false
	}
	part, bytes := source(kind, *b.Media)
	return part, within && bytes
}

// source writes media by its bytes or, when there are none, by its address,
// which is nothing for a response.
func source(kind string, m agent.Media) (part []byte, within bool) {
	switch {
	case len(m.Data) > 0:
		d := wire.Quote([]byte(`{"inlineData":{"mimeType":`), kind)
		d = base64.StdEncoding.AppendEncode(append(d, `,"data":"`...), m.Data)
		return append(d, `"}}`...), true
	case strings.HasPrefix(m.URL, "https://"), strings.HasPrefix(m.URL, "gs://"):
		d := wire.Quote([]byte(`{"fileData":{"mimeType":`), kind)
		return append(wire.Quote(append(d, `,"fileUri":`...), m.URL), `}}`...), false
	}
	return nil, false
}

// words returns what is said in place of media: the text of a document of
// text, or that it is not shown.
func words(b agent.Block) string {
	if m := b.Media; m != nil && b.Type == agent.DocumentBlock && !wire.Blank(string(m.Data)) {
		if kind, _, _ := strings.Cut(m.Type, ";"); kind == "text/plain" {
			return wire.Or(m.Name, "Document") + ":\n" + string(m.Data)
		}
	}
	return wire.NotShown(b)
}
