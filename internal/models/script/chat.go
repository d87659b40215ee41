package script

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
)

// chatAPI is OpenAI Chat Completions, with reasoning_content as compatible
// servers send it.
type chatAPI struct{}

// created is the time of every answer, in seconds: that of a script is no news.
const created = 1_750_000_000

// openKinds and openCodes are the error types and codes of OpenAI by status.
var (
	openKinds = map[int]string{429: "requests", 500: "server_error", 502: "server_error", 503: "server_error", 504: "server_error"}
	openCodes = map[int]string{401: "invalid_api_key", 429: "rate_limit_exceeded"}
)

// openError returns an error as both formats of OpenAI write it.
func openError(f *failure) []byte {
	return compact(map[string]any{
		"message": f.message, "type": or(f.kind, or(openKinds[f.status], "invalid_request_error")),
		"param": null(f.param), "code": null(or(f.code, openCodes[f.status])),
	})
}

// null returns nil for a string that says nothing.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (chatAPI) refusal(f *failure, _ string) []byte {
	return compact(map[string]json.RawMessage{"error": openError(f)})
}

// ping writes a comment, as gateways do while nothing comes.
func (chatAPI) ping(p *player) { p.comment() }

func (chatAPI) trouble(p *player, f *failure) {
	g := *f
	g.kind = or(g.kind, or(openKinds[g.status], "server_error"))
	p.put(`data: {"error":`+string(openError(&g))+`}`, "\n\n")
}

// chatWriter writes chunks.
type chatWriter struct {
	*player
	t     take
	head  string // of a chunk, in front of the choices
	tail  string // behind the choices
	quirk func(Quirk) bool
}

func (chatAPI) play(p *player, t take) {
	w := &chatWriter{player: p, t: t, tail: "}\n\n", quirk: func(q Quirk) bool { return slices.Contains(t.reply.Quirks, q) }}
	if w.quirk(NoUsage) {
		w.t.counts = false
	}
	w.head = fmt.Sprintf(`data: {"id":"chatcmpl-%s","object":"chat.completion.chunk","created":%d,"model":%s,"service_tier":"default","system_fingerprint":"fp_script","choices":[`,
		t.sum, created, quoted(t.model))
	if w.t.counts {
		w.tail = `,"usage":null}` + "\n\n"
	}
	content := `""`
	if t.reply.Text == "" {
		content = "null"
	}
	w.chunk(`{"role":"assistant","content":`+content+`,"refusal":null}`, "null")
	if w.quirk(Reasoning) {
		w.say("reasoning", t.reply.Thinking)
	} else {
		w.say("reasoning_content", t.reply.Thinking)
	}
	w.say("content", t.reply.Text)
	if t.reply.stop() == agent.StopRefusal {
		w.say("refusal", t.reply.StopText)
	}
	w.inputs()
	w.finish()
}

// chunk writes one choice. finish is its finish reason, as JSON.
func (w *chatWriter) chunk(delta, finish string) {
	w.put(w.head+`{"index":0,"delta":`+delta+`,"logprobs":null,"finish_reason":`+finish+`}]`, w.tail)
}

// say writes text in pieces.
func (w *chatWriter) say(member, text string) {
	w.deltas(w.head+`{"index":0,"delta":{"`+member+`":"`, text, `"},"logprobs":null,"finish_reason":null}]`+w.tail)
}

// inputs writes the calls.
func (w *chatWriter) inputs() {
	made := bytes.Count(w.t.body, []byte(`"tool_call_id":`))
	if w.quirk(WholeCalls) {
		for i, c := range w.t.reply.Calls {
			w.chunk(w.call(i, w.name(made, i), escaped(c.input())), "null")
		}
		return
	}
	w.calls(w.t.reply, calls{
		open: func(i int) { w.chunk(w.call(i, w.name(made, i), ""), "null") },
		input: func(i int, piece string) {
			name := ""
			if w.quirk(RepeatCalls) {
				name = w.name(made, i)
			}
			w.delta(w.head+`{"index":0,"delta":`, w.call(i, name, piece), `,"logprobs":null,"finish_reason":null}]`+w.tail)
		},
		close: func(int) {},
	})
}

// name returns the members by which call i is introduced, up to its name.
func (w *chatWriter) name(made, i int) string {
	id := ""
	if !w.quirk(NoID) {
		id = `"id":` + quoted(w.t.callID("call_", made, i)) + `,`
	}
	return id + `"type":"function","function":{"name":` + quoted(w.t.reply.Calls[i].Tool) + `,`
}

// call returns the delta of call i. arguments are escaped already.
func (w *chatWriter) call(i int, name, arguments string) string {
	index := `"index":` + strconv.Itoa(i) + `,`
	if w.quirk(NoIndex) {
		index = ""
	}
	return `{"tool_calls":[{` + index + or(name, `"function":{`) + `"arguments":"` + arguments + `"}}]}`
}

// finish ends the stream: the finish reason, the usage, [DONE].
func (w *chatWriter) finish() {
	u := w.t.usage
	prompt := u.Input + u.CacheRead + u.CacheWrite
	usage := fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0%s},`+
		`"completion_tokens_details":{"reasoning_tokens":%d,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		prompt, u.Output, prompt+u.Output, u.CacheRead, written(u), w.t.thought())
	if w.quirk(UsageInside) {
		w.tail = `,"usage":` + usage + "}\n\n"
	}
	w.chunk("{}", quoted(w.reason()))
	if w.t.counts && !w.quirk(UsageInside) {
		w.put(w.head+`],"usage":`+usage+`}`, "\n\n")
	}
	if !w.quirk(NoDone) {
		w.put("data: [DONE]", "\n\n")
	}
}

// written returns the member that tells of tokens written to the cache, which
// only models have that charge for it.
func written(u agent.Usage) string {
	if u.CacheWrite == 0 {
		return ""
	}
	return fmt.Sprintf(`,"cache_write_tokens":%d`, u.CacheWrite)
}

// reason returns the finish reason.
func (w *chatWriter) reason() string {
	switch stop := w.t.reply.stop(); stop {
	case agent.StopEnd, agent.StopSequence, agent.StopPause:
		return "stop"
	case agent.StopCalls:
		return "tool_calls"
	case agent.StopLength, agent.StopWindow:
		return "length"
	case agent.StopRefusal:
		if w.t.reply.StopText != "" {
			return "stop"
		}
		return "content_filter"
	default:
		return string(stop)
	}
}

func (chatAPI) read(_ string, body []byte, quick bool) (prompt, error) {
	if quick {
		return prompt{
			step:   bytes.Count(body, []byte(`"role":"assistant"`)),
			counts: bytes.Contains(body, []byte(`"include_usage":true`)),
		}, nil
	}
	root, err := parse(body)
	if err != nil {
		return prompt{}, err
	}
	var parts struct{ Tools, Messages []json.RawMessage }
	_ = json.Unmarshal(body, &parts) // lists of another form are refused by the check
	model, _ := root.get("model").v.(string)
	p := prompt{
		model:  model,
		counts: root.get("stream_options").get("include_usage").v == true,
		check:  func() error { return checkChat(root) },
		count:  func(c *cache) usage { return c.open(root, append(parts.Tools, parts.Messages...)) },
	}
	answering := false
	var last []string
	for _, m := range (node{says: &complaint{}, v: root.get("messages").v, has: true}).list() {
		role, _ := m.get("role").v.(string)
		if role == "assistant" {
			if !answering {
				p.step++
			}
			answering, last = true, nil
			continue
		}
		answering = false
		last = append(last, told(m.get("content")))
	}
	p.last = strings.Join(last, "\n")
	return p, nil
}

// told returns the text of a content: a string, or a list of parts with text.
func told(content node) string {
	if s, ok := content.v.(string); ok {
		return s
	}
	var text []string
	parts, _ := content.v.([]any)
	for _, v := range parts {
		part, _ := v.(map[string]any)
		if s, ok := part["text"].(string); ok {
			text = append(text, s)
		}
	}
	return strings.Join(text, "\n")
}
