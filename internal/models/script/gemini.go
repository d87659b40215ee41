package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"dure/agent"
)

// geminiAPI is Google Gemini, generateContent as a stream of events.
type geminiAPI struct{}

// geminiKinds are the error statuses by HTTP status.
var geminiKinds = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 405: "INVALID_ARGUMENT",
	413: "INVALID_ARGUMENT", 429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (geminiAPI) refusal(f *failure, _ string) []byte {
	e := map[string]any{"code": f.status, "message": f.message, "status": or(f.kind, or(geminiKinds[f.status], "UNKNOWN"))}
	if seconds, err := strconv.Atoi(f.after); err == nil {
		e["details"] = []any{map[string]string{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": strconv.Itoa(seconds) + "s"}}
	}
	return compact(map[string]any{"error": e})
}

func (geminiAPI) ping(p *player) { p.comment() }

func (a geminiAPI) trouble(p *player, f *failure) {
	g := *f
	if g.status == 0 {
		g.status = 503
		for status, kind := range geminiKinds {
			if kind == g.kind && status != 405 && status != 413 {
				g.status = status
			}
		}
	}
	p.put("data: "+string(a.refusal(&g, "")), geminiClose)
}

// geminiClose ends an event: this API's lines end in CR LF.
const geminiClose = "\r\n\r\n"

// geminiWriter writes chunks.
type geminiWriter struct {
	*player
	t    take
	tail string // behind the candidate, in all chunks but the last
}

func (geminiAPI) play(p *player, t take) {
	w := &geminiWriter{player: p, t: t}
	w.tail = w.about(false)
	w.deltas(geminiHead+`{"text":"`, t.reply.Thinking, `","thought":true}],"role":"model"},"index":0}]`+w.tail)
	w.deltas(geminiHead+`{"text":"`, t.reply.Text, `"}],"role":"model"},"index":0}]`+w.tail)
	if t.reply.stop() == agent.StopRefusal && t.reply.Text == "" && !t.thinks() && len(t.reply.Calls) == 0 {
		w.put(`data: {"promptFeedback":{"blockReason":"SAFETY"}`+w.about(true), "")
		return
	}
	reason, detail := w.reason(), ""
	if t.reply.StopText != "" && t.reply.stop() == agent.StopRefusal {
		detail = t.reply.StopText
	}
	if bad := w.inputs(); bad != "" {
		reason, detail = "MALFORMED_FUNCTION_CALL", "Malformed function call: "+bad
	}
	signature := ""
	if len(t.reply.Calls) == 0 && w.signs() {
		signature = `,"thoughtSignature":` + quoted(signText(t.reply.Text))
	}
	if detail != "" {
		detail = `,"finishMessage":` + quoted(detail)
	}
	w.put(geminiHead+`{"text":""`+signature+`}],"role":"model"},"finishReason":`+quoted(reason)+detail+`,"index":0}]`+w.about(true), "")
}

const geminiHead = `data: {"candidates":[{"content":{"parts":[`

// about returns what stands behind the candidates of a chunk.
func (w *geminiWriter) about(last bool) string {
	u := w.t.usage
	prompt := u.Input + u.CacheRead + u.CacheWrite
	said, total := "", prompt
	if last {
		thought := w.t.thought()
		said, total = fmt.Sprintf(`,"candidatesTokenCount":%d`, u.Output-thought), prompt+u.Output
		if thought > 0 {
			said += fmt.Sprintf(`,"thoughtsTokenCount":%d`, thought)
		}
	}
	if u.CacheRead > 0 {
		said += fmt.Sprintf(`,"cachedContentTokenCount":%d`, u.CacheRead)
	}
	return fmt.Sprintf(`,"usageMetadata":{"promptTokenCount":%d%s,"totalTokenCount":%d,"promptTokensDetails":[{"modality":"TEXT","tokenCount":%d}]},"modelVersion":%s,"responseId":%s}`,
		prompt, said, total, prompt, quoted(w.t.model), quoted(w.t.sum)) + geminiClose
}

// signs reports whether the answer comes with a signature: that of a model that
// thinks, and always that of one that has to be shown it again.
func (w *geminiWriter) signs() bool { return w.t.thinks() || demandsSignatures(w.t.model) }

// inputs writes the calls: each in a chunk of its own, or all in one. It
// returns what was no object.
func (w *geminiWriter) inputs() (bad string) {
	made := bytes.Count(w.t.body, []byte(`"functionCall":`))
	var parts []string
	for i, c := range w.t.reply.Calls {
		args := or(c.input(), "{}")
		v, err := parse([]byte(args))
		if err != nil {
			bad = args
			break
		}
		id := ""
		if c.ID != "" || demandsSignatures(w.t.model) {
			id = `,"id":` + quoted(w.t.callID("call_", made, i))
		}
		part := `{"functionCall":{"name":` + quoted(c.Tool) + `,"args":` + args + id + `}`
		if i == 0 && w.signs() {
			part += `,"thoughtSignature":` + quoted(signCall(c.Tool, v.v))
		}
		parts = append(parts, part+"}")
	}
	if w.t.reply.Interleave && len(parts) > 0 {
		parts = []string{strings.Join(parts, ",")}
	}
	for _, part := range parts {
		w.delta(geminiHead, part, `],"role":"model"},"index":0}]`+w.tail)
	}
	return bad
}

// reason returns the finish reason.
func (w *geminiWriter) reason() string {
	switch stop := w.t.reply.stop(); stop {
	case agent.StopEnd, agent.StopCalls, agent.StopSequence, agent.StopPause:
		return "STOP"
	case agent.StopLength, agent.StopWindow:
		return "MAX_TOKENS"
	case agent.StopRefusal:
		return "SAFETY"
	default:
		return string(stop)
	}
}

// Signatures name what they sign, so that a signature on something else is
// found: a call, or the text of an answer up to the signature.
func signCall(name string, args any) string { return seal("call", name, sameJSON(args)) }

func signText(text string) string {
	sum := sha256.Sum256([]byte("scripted text\x00" + text))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint64(sum[:], uint64(len(text))))
}

// signsText reports whether s signs the end of a text.
func signsText(s, text string) bool {
	raw, err := base64.StdEncoding.DecodeString(s)
	if err != nil || len(raw) != sha256.Size+8 {
		return false
	}
	n := binary.BigEndian.Uint64(raw[sha256.Size:])
	return n <= uint64(len(text)) && s == signText(text[len(text)-int(n):])
}

var geminiVersion = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^gemini-(\d+)`)
})

// demandsSignatures reports whether a model refuses calls without signatures:
// Gemini from version 3.
func demandsSignatures(model string) bool {
	m := geminiVersion().FindStringSubmatch(model)
	if m == nil {
		return false
	}
	version, err := strconv.Atoi(m[1])
	return err == nil && version >= 3
}

func (geminiAPI) read(path string, body []byte, quick bool) (prompt, error) {
	path, query, _ := strings.Cut(path, "?")
	values, err := url.ParseQuery(query)
	m := geminiPath().FindStringSubmatch(path)
	if m == nil || err != nil || values.Get("alt") != "sse" {
		return prompt{}, invalid("the scripted model only streams events: ask models/NAME:streamGenerateContent?alt=sse")
	}
	model, err := url.PathUnescape(m[1])
	if err != nil {
		return prompt{}, invalid("model: %v", err)
	}
	if quick {
		return prompt{model: model, step: bytes.Count(body, []byte(`"role":"model"`))}, nil
	}
	root, err := parse(body)
	if err != nil {
		return prompt{}, err
	}
	var parts struct {
		SystemInstruction json.RawMessage
		Tools, Contents   []json.RawMessage
	}
	_ = json.Unmarshal(body, &parts) // lists of another form are refused by the check
	p := prompt{
		model: model,
		check: func() error { return checkGemini(root, model) },
		count: func(c *cache) usage {
			return c.auto(append(append([]json.RawMessage{parts.SystemInstruction}, parts.Tools...), parts.Contents...))
		},
	}
	contents, _ := root.get("contents").v.([]any)
	for _, v := range contents {
		content := node{says: &complaint{}, v: v, has: true}
		if content.get("role").v == "model" {
			p.step++
			p.last = ""
			continue
		}
		p.last = geminiText(content)
	}
	return p, nil
}

// geminiText returns the text of a content: its own and that of results.
func geminiText(content node) string {
	var text []string
	parts, _ := content.get("parts").v.([]any)
	for _, v := range parts {
		part := node{says: &complaint{}, v: v, has: true}
		if s, ok := part.get("text").v.(string); ok {
			text = append(text, s)
		}
		response, _ := part.get("functionResponse").get("response").v.(map[string]any)
		for _, key := range []string{"output", "result", "content", "error"} {
			if s, ok := response[key].(string); ok {
				text = append(text, s)
			}
		}
	}
	return strings.Join(text, "\n")
}
