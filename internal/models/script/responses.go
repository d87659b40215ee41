package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"dure/agent"
)

// responsesAPI is OpenAI Responses.
type responsesAPI struct{}

func (responsesAPI) refusal(f *failure, id string) []byte { return chatAPI{}.refusal(f, id) }

func (responsesAPI) ping(p *player) { p.comment() }

func (responsesAPI) trouble(p *player, f *failure) {
	code := or(f.code, or(f.kind, or(openCodes[f.status], "server_error")))
	if f.last {
		p.event("response.failed", `{"type":"response.failed","sequence_number":%d,"response":%s}`, p.events,
			responseObject{id: "resp_failed", status: "failed", trouble: fmt.Sprintf(`{"code":%s,"message":%s}`, quoted(code), quoted(f.message))}.json())
		return
	}
	p.event("error", `{"type":"error","sequence_number":%d,"code":%s,"message":%s,"param":null}`, p.events, quoted(code), quoted(f.message))
}

// responseObject is the response in the events that carry it.
type responseObject struct {
	id, model, status          string
	trouble, incomplete, usage string // JSON
	output                     []string
}

func (r responseObject) json() string {
	return fmt.Sprintf(`{"id":%s,"object":"response","created_at":%d,"status":%s,"background":false,"error":%s,"incomplete_details":%s,`+
		`"instructions":null,"max_output_tokens":null,"model":%s,"output":[%s],"parallel_tool_calls":true,"previous_response_id":null,`+
		`"reasoning":{"effort":null,"summary":null},"service_tier":"default","store":false,"temperature":1.0,"text":{"format":{"type":"text"}},`+
		`"tool_choice":"auto","tools":[],"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`,
		quoted(r.id), created, quoted(r.status), or(r.trouble, "null"), or(r.incomplete, "null"), quoted(or(r.model, Provider)),
		strings.Join(r.output, ","), or(r.usage, "null"))
}

// responseWriter writes the events of a response.
type responseWriter struct {
	*player
	t    take
	mark string   // in the IDs of the items of one answer
	done []string // finished items
}

func (responsesAPI) play(p *player, t take) {
	w := &responseWriter{player: p, t: t, mark: t.sum}
	if t.thinks() {
		w.mark = reasoned + t.sum
	}
	r := responseObject{id: "resp_" + t.sum, model: t.model, status: "in_progress"}
	w.event("response.created", `"response":%s`, r.json())
	w.event("response.in_progress", `"response":%s`, r.json())
	if t.thinks() {
		w.reasoning()
	}
	if t.reply.Text != "" {
		w.message("output_text", "text", "logprobs", t.reply.Text)
	}
	if t.reply.stop() == agent.StopRefusal && t.reply.StopText != "" {
		w.message("refusal", "refusal", "", t.reply.StopText)
	}
	w.inputs()

	u := t.usage
	prompt := u.Input + u.CacheRead + u.CacheWrite
	r.usage = fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d%s},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`,
		prompt, u.CacheRead, written(u), u.Output, t.thought(), prompt+u.Output)
	r.status, r.output = "completed", w.done
	if why := w.incomplete(); why != "" {
		r.status, r.incomplete = "incomplete", `{"reason":`+quoted(why)+`}`
	}
	w.event("response."+r.status, `"response":%s`, r.json())
}

// incomplete returns why the response is not complete, or "".
func (w *responseWriter) incomplete() string {
	switch stop := w.t.reply.stop(); stop {
	case agent.StopEnd, agent.StopCalls, agent.StopSequence, agent.StopPause:
		return ""
	case agent.StopLength, agent.StopWindow:
		return "max_output_tokens"
	case agent.StopRefusal:
		if w.t.reply.StopText != "" {
			return ""
		}
		return "content_filter"
	default:
		return string(stop)
	}
}

// event writes one event; its members follow type and number.
func (w *responseWriter) event(kind, format string, args ...any) {
	w.player.event(kind, `{"type":%s,"sequence_number":%d,%s}`, quoted(kind), w.events, fmt.Sprintf(format, args...))
}

// say writes text in pieces as events of a kind.
func (w *responseWriter) say(kind, members, text, tail string) {
	head := "event: " + kind + "\ndata: {\"type\":\"" + kind + `","sequence_number":`
	rest := "," + members + `,"delta":"`
	tail = `"` + tail + "}\n\n"
	w.pieces(text, func(piece string) { w.numbered(head, rest, piece, tail) })
}

// numbered writes one event that carries a piece of text, with its number
// behind head.
func (w *responseWriter) numbered(head, rest, piece, tail string) {
	if w.next() {
		w.buf = strconv.AppendInt(append(w.buf, head...), int64(w.events), 10)
		w.buf = append(append(append(w.buf, rest...), piece...), tail...)
		w.end()
	}
}

// open announces an item, and close ends it.
func (w *responseWriter) open(item string) {
	w.event("response.output_item.added", `"output_index":%d,"item":%s`, len(w.done), item)
}

func (w *responseWriter) close(item string) {
	w.event("response.output_item.done", `"output_index":%d,"item":%s`, len(w.done), item)
	w.done = append(w.done, item)
}

// reasoning writes the reasoning item. Its summary has a part for each
// paragraph of the thinking.
func (w *responseWriter) reasoning() {
	id := "rs_" + w.mark
	w.open(fmt.Sprintf(`{"id":%s,"type":"reasoning","summary":[]}`, quoted(id)))
	var parts, summary []string
	if w.t.reply.Thinking != "" {
		parts = strings.Split(w.t.reply.Thinking, "\n\n")
	}
	for i, text := range parts {
		at := fmt.Sprintf(`"item_id":%s,"output_index":%d,"summary_index":%d`, quoted(id), len(w.done), i)
		part := `{"type":"summary_text","text":` + quoted(text) + `}`
		w.event("response.reasoning_summary_part.added", `%s,"part":{"type":"summary_text","text":""}`, at)
		w.say("response.reasoning_summary_text.delta", at, text, "")
		w.event("response.reasoning_summary_text.done", `%s,"text":%s`, at, quoted(text))
		w.event("response.reasoning_summary_part.done", `%s,"part":%s`, at, part)
		summary = append(summary, part)
	}
	sealed := ""
	if w.t.sealed {
		sealed = `,"encrypted_content":` + quoted(seal("reasoning", append([]string{id}, parts...)...))
	}
	w.close(fmt.Sprintf(`{"id":%s,"type":"reasoning","summary":[%s]%s}`, quoted(id), strings.Join(summary, ","), sealed))
}

// message writes an item of one part: output_text or refusal. empty is a member
// that is always an empty list.
func (w *responseWriter) message(kind, member, empty, text string) {
	id := "msg_" + w.mark
	if kind == "refusal" && w.t.reply.Text != "" {
		id += "_1"
	}
	none, logs := "", ""
	if empty != "" {
		none, logs = `,"annotations":[],"`+empty+`":[]`, `,"`+empty+`":[]`
	}
	part := func(text string) string {
		return `{"type":"` + kind + `"` + none + `,"` + member + `":` + quoted(text) + `}`
	}
	item := func(status, content string) string {
		return fmt.Sprintf(`{"id":%s,"type":"message","status":"%s","content":[%s],"role":"assistant"}`, quoted(id), status, content)
	}
	at := fmt.Sprintf(`"item_id":%s,"output_index":%d,"content_index":0`, quoted(id), len(w.done))
	w.open(item("in_progress", ""))
	w.event("response.content_part.added", `%s,"part":%s`, at, part(""))
	w.say("response."+kind+".delta", at, text, logs)
	w.event("response."+kind+".done", `%s,"%s":%s%s`, at, member, quoted(text), logs)
	w.event("response.content_part.done", `%s,"part":%s`, at, part(text))
	status := "completed"
	if w.incomplete() != "" && len(w.t.reply.Calls) == 0 {
		status = "incomplete"
	}
	w.close(item(status, part(text)))
}

// inputs writes the calls.
func (w *responseWriter) inputs() {
	made := bytes.Count(w.t.body, []byte(`"type":"function_call_output"`))
	first := len(w.done)
	item := func(i int, status, arguments string) string {
		return fmt.Sprintf(`{"id":%s,"type":"function_call","status":"%s","arguments":%s,"call_id":%s,"name":%s}`,
			quoted(fmt.Sprintf("fc_%s_%d_%d", w.mark, made, i)), status, quoted(arguments), quoted(w.t.callID("call_", made, i)), quoted(w.t.reply.Calls[i].Tool))
	}
	at := func(i int) string {
		return fmt.Sprintf(`"item_id":%s,"output_index":%d`, quoted(fmt.Sprintf("fc_%s_%d_%d", w.mark, made, i)), first+i)
	}
	w.calls(w.t.reply, calls{
		open: func(i int) {
			w.event("response.output_item.added", `"output_index":%d,"item":%s`, first+i, item(i, "in_progress", ""))
		},
		input: func(i int, piece string) {
			const kind = "response.function_call_arguments.delta"
			w.numbered("event: "+kind+"\ndata: {\"type\":\""+kind+`","sequence_number":`, ","+at(i)+`,"delta":"`, piece, "\"}\n\n")
		},
		close: func(i int) {
			input := w.t.reply.Calls[i].input()
			w.event("response.function_call_arguments.done", `%s,"arguments":%s`, at(i), quoted(input))
			w.event("response.output_item.done", `"output_index":%d,"item":%s`, first+i, item(i, "completed", input))
		},
	})
	for i, c := range w.t.reply.Calls {
		w.done = append(w.done, item(i, "completed", c.input()))
	}
}

// seal returns what only the scripted model can have given out with these
// words: base64, as the APIs' own encrypted contents are.
func seal(kind string, words ...string) string {
	sum := sha256.Sum256([]byte("scripted " + kind + "\x00" + strings.Join(words, "\x00")))
	return base64.StdEncoding.EncodeToString(sum[:])
}

func (responsesAPI) read(_ string, body []byte, _ bool) (prompt, error) {
	root, err := parse(body)
	if err != nil {
		return prompt{}, err
	}
	var parts struct {
		Instructions json.RawMessage
		Tools, Input []json.RawMessage
	}
	_ = json.Unmarshal(body, &parts) // input that is a string has no parts
	model, _ := root.get("model").v.(string)
	p := prompt{
		model:  model,
		sealed: bytes.Contains(body, []byte(`"reasoning.encrypted_content"`)),
		check:  func() error { return checkResponses(root) },
		count: func(c *cache) usage {
			return c.open(root, append(append([]json.RawMessage{parts.Instructions}, parts.Tools...), parts.Input...))
		},
	}
	if s, ok := root.get("input").v.(string); ok {
		p.last = s
		return p, nil
	}
	answering := false
	var last []string
	items, _ := root.get("input").v.([]any)
	for _, v := range items {
		item := node{says: &complaint{}, v: v, has: true}
		kind, _ := item.get("type").v.(string)
		if item.get("role").v == "assistant" || kind == "function_call" || kind == "reasoning" {
			if !answering {
				p.step++
			}
			answering, last = true, nil
			continue
		}
		answering = false
		last = append(last, told(item.get("content"))+told(item.get("output")))
	}
	p.last = strings.Join(last, "\n")
	return p, nil
}
