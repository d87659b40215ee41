package foreign

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// A rollout is a transcript of Codex: lines of time, type and payload, or, from
// its first versions, items as they are. Its items are those of the Responses API.
type rollout struct {
	b        *builder
	items    []item
	model    string
	total    string // JSON of the usage so far, to tell a line that is repeated
	left     int    // items that say nothing to another model
	opened   bool
	compacts int
	full     bool // there is more than is read
}

// An item is one record of the conversation.
type item struct {
	role   string
	blocks []block
	at     time.Time
	note   note
	turn   bool // the user began a turn with it
}

// readCodex reads the JSONL of Codex.
func readCodex(r io.Reader, b *builder) error {
	x := &rollout{b: b}
	count := 0
	rep, err := repair.Scan(r, func(raw json.RawMessage) bool {
		count++
		x.line(object(raw))
		return count <= maxEntries
	})
	if err != nil {
		return err
	}
	if rep.Load == repair.Refused {
		return fmt.Errorf("%s", rep.Reason)
	}
	if count > maxEntries || x.full {
		return errTooLarge
	}
	b.warn(rep.Warnings...)
	for i, it := range x.items {
		if err := b.add(fmt.Sprintf("item-%d", i+1), it.role, it.blocks, it.at, it.note); err != nil {
			return err
		}
	}
	if b.s.Model == "" {
		b.s.Model = x.model
	}
	if x.left > 0 {
		b.warn(fmt.Sprintf("%d items were left out: instructions of the product, and what only its provider can read", x.left))
	}
	return nil
}

func (x *rollout) line(f fields) {
	at := f.when("timestamp")
	x.b.seen(at)
	p := object(f["payload"])
	if p == nil {
		if f.str("type") == "" && f.str("id") != "" {
			x.meta(f) // the first line of the first versions
			return
		}
		x.item(f, at)
		return
	}
	switch f.str("type") {
	case "session_meta":
		x.meta(p)
	case "turn_context":
		if m := p.str("model"); m != "" {
			x.model = short(m)
			x.b.s.Model = x.model
		}
		if x.b.s.Workdir == "" {
			x.b.s.Workdir = p.str("cwd")
		}
	case "response_item":
		x.item(p, at)
	case "compacted":
		x.compacted(p, at)
	case "event_msg":
		x.event(p)
	default:
		x.b.strange(f.str("type"))
	}
}

// meta reads what is said of the session. A fork has the lines of the session that
// it comes from behind its own.
func (x *rollout) meta(p fields) {
	if x.opened {
		return
	}
	x.opened = true
	x.b.s.ID, x.b.s.Workdir = p.str("id"), p.str("cwd")
	x.b.seen(p.when("timestamp"))
}

func (x *rollout) add(role string, at time.Time, blocks ...block) *item {
	if x.full = x.full || len(x.items) >= maxEntries; x.full || len(blocks) == 0 {
		return &item{}
	}
	it := item{role: role, blocks: blocks, at: at}
	if role == "assistant" {
		it.note.model = x.model
	}
	x.items = append(x.items, it)
	return &x.items[len(x.items)-1]
}

// item reads an item of the Responses API.
func (x *rollout) item(p fields, at time.Time) {
	switch p.str("type") {
	case "message":
		x.message(p, at)
	case "reasoning":
		if text := reasoning(p); text != "" {
			x.add("assistant", at, thinkingOf(text))
		} else {
			x.left++
		}
	case "function_call":
		x.add("assistant", at, callOf(p.str("call_id", "id"), p.str("name"), arguments(p.str("arguments"))))
	case "custom_tool_call":
		x.add("assistant", at, callOf(p.str("call_id", "id"), p.str("name"), block{"input": p.str("input")}))
	case "local_shell_call":
		action := object(p["action"])
		delete(action, "env") // may hold secrets, and says nothing of what ran
		x.add("assistant", at, callOf(p.str("call_id", "id"), "local_shell", action))
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		text, failed, more := output(p["output"])
		x.add("user", at, resultOf(p.str("call_id", "id"), text, failed, more...))
	case "": // a line about something else
	default:
		x.left++
	}
}

// arguments are what a model called a function with: JSON in a string.
func arguments(s string) any {
	if f := object(json.RawMessage(s)); f != nil {
		return f
	}
	return block{"arguments": s}
}

func reasoning(p fields) string {
	var text []string
	for _, part := range append(list(p["summary"]), list(p["content"])...) {
		if s := object(part).str("text"); s != "" {
			text = append(text, s)
		}
	}
	return strings.Join(text, "\n\n")
}

// output reads the output of a call: text, parts, an object with content and
// success, or text that is JSON with the output in it.
func output(raw json.RawMessage) (text string, failed bool, more []block) {
	text = fields{"s": raw}.str("s")
	f := object(raw)
	if f == nil {
		f = object(json.RawMessage(text))
	}
	if inner, ok := f["output"]; ok {
		text = fields{"s": inner}.str("s")
	} else if inner, ok := f["content"]; ok {
		text = fields{"s": inner}.str("s")
		raw = inner
	}
	failed = string(f["success"]) == "false"
	for _, part := range list(raw) {
		p := object(part)
		switch p.str("type") {
		case "input_text", "output_text", "text":
			text += p.str("text")
		case "input_image":
			more = append(more, inline(p.str("image_url"), "image"))
		}
	}
	return text, failed, more
}

// instructions begin what the product itself writes into the user's messages.
var instructions = []string{"<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<INSTRUCTIONS>", "<permissions instructions>", "<turn_aborted>"}

// message reads a message. What stood under another role than the user's or the
// model's are instructions for Codex, and none for anybody else.
func (x *rollout) message(p fields, at time.Time) {
	role := p.str("role")
	if role != "user" && role != "assistant" {
		x.left++
		return
	}
	var blocks []block
	begins := false
	for _, part := range list(p["content"]) {
		f := object(part)
		switch f.str("type") {
		case "input_image":
			blocks = append(blocks, inline(f.str("image_url"), "image"))
		default:
			text := f.str("text")
			if role == "user" && startsWith(text, instructions) {
				x.left++
				continue
			}
			if strings.TrimSpace(text) != "" {
				blocks = append(blocks, textOf(text))
			}
			if role == "user" {
				begins = true
				x.b.said(text)
			}
		}
	}
	x.add(role, at, blocks...).turn = begins || role == "user" && len(blocks) > 0
}

func startsWith(s string, any []string) bool {
	s = strings.TrimSpace(s)
	for _, p := range any {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}

// compacted puts what a compaction kept in the place of what was said before:
// its own history, or else the user's messages and the summary.
func (x *rollout) compacted(p fields, at time.Time) {
	if x.compacts++; x.compacts > maxCompacts {
		x.full = true
		return
	}
	old := x.items
	x.items = nil
	if kept := list(p["replacement_history"]); len(kept) > 0 {
		for _, raw := range kept {
			x.item(object(raw), at)
		}
		return
	}
	for _, it := range old {
		if it.turn {
			x.items = append(x.items, it)
		}
	}
	if text := p.str("message"); text != "" {
		x.add("user", at, textOf("[Summary of the conversation so far]\n"+text))
	}
}

// event reads what is for the screen, of which little is not said elsewhere.
func (x *rollout) event(p fields) {
	switch p.str("type") {
	case "token_count":
		info := object(p["info"])
		total := string(info["total_token_usage"])
		if total == "" || total == x.total {
			return
		}
		x.total = total
		x.used(object(info["last_token_usage"]))
	case "thread_rolled_back":
		x.back(p.count("num_turns"))
	case "thread_name_updated":
		x.b.s.Title = p.str("thread_name")
	}
}

// used notes the usage of the newest answer. Input includes what was cached there.
func (x *rollout) used(u fields) {
	for i := len(x.items) - 1; i >= 0; i-- {
		if x.items[i].role == "assistant" {
			cached := min(u.count("cached_input_tokens"), u.count("input_tokens"))
			x.items[i].note.usage = x.items[i].note.usage.Add(agent.Usage{
				Input: u.count("input_tokens") - cached, CacheRead: cached, Output: u.count("output_tokens"),
			})
			return
		}
	}
}

// back takes back the newest turns.
func (x *rollout) back(turns int) {
	for i := len(x.items) - 1; i >= 0 && turns > 0; i-- {
		if x.items[i].turn {
			turns--
		}
		x.items = x.items[:i]
	}
}
