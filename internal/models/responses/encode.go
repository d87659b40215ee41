package responses

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/models/wire"
)

const (
	minOutput = 16 // the least max_output_tokens that the API takes

	// Budgets of thinking up to these many tokens are the efforts low and medium;
	// more is high.
	lowEffort    = 2048
	mediumEffort = 8192

	// hashedBytes is how much of a conversation's first message makes its cache
	// key.
	hashedBytes = 4096

	lost = "The call was cut short, and nothing is known of what it did."
)

var (
	end       = []byte(`]}`)
	cacheMark = []byte(`,"prompt_cache_breakpoint":{"mode":"explicit"}`)
)

// An encoder writes requests.
type encoder struct {
	info  agent.ModelInfo
	marks bool // the model takes cache marks
	memo  wire.Memo[segment]
}

// encode returns the body of a request: model and parameters, tools, system
// prompt, conversation. What comes first changes least.
func (e *encoder) encode(r agent.Request) (*wire.Payload, error) {
	head, messages, err := e.memo.Encode(r,
		func() ([]byte, error) { return e.head(r) },
		func(m agent.Message) segment { return e.encodeMessage(r, m) })
	if err != nil {
		return nil, err
	}
	b := &body{
		used: make(map[string]int, len(messages)/2), thought: make(map[string]bool, len(messages)/2),
		some: head[len(head)-1] != '[',
	}
	b.Grow(3*len(messages) + 16)
	b.Add(e.params(r, messages))
	b.Add(head)
	b.addMessages(messages, r.Tail)
	b.Add(end)
	return &b.Payload, nil
}

// params opens the body with everything that is neither prompt nor conversation.
func (e *encoder) params(r agent.Request, messages []segment) []byte {
	model := r.Model
	if model == "" || slices.Contains(e.info.Aliases, model) {
		model = wire.Or(e.info.ID, model)
	}
	b := wire.Quote([]byte(`{"model":`), model)
	b = append(b, `,"stream":true,"store":false,"truncation":"disabled"`...)
	if limit := r.MaxTokens; limit > 0 {
		if e.info.MaxOut > 0 {
			limit = min(limit, e.info.MaxOut)
		}
		b = strconv.AppendInt(append(b, `,"max_output_tokens":`...), int64(max(limit, minOutput)), 10)
	}
	switch {
	case e.info.Thinking != "":
		b = append(b, `,"include":["reasoning.encrypted_content"]`...)
		b = e.thinking(b, r.Thinking)
	case r.Temperature != nil:
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *r.Temperature, 'g', -1, 64)
	}
	b = wire.Quote(append(b, `,"prompt_cache_key":`...), firstHash(messages))
	if e.marks {
		b = append(b, `,"prompt_cache_options":{"mode":"explicit"}`...)
	}
	if len(r.Tools) > 0 {
		b = append(b, `,"parallel_tool_calls":true`...)
		if r.NoTools {
			b = append(b, `,"tool_choice":"none"`...)
		}
	}
	return b
}

// thinking appends how much a model is to reason; without a budget it decides
// itself.
func (e *encoder) thinking(b []byte, budget int) []byte {
	effort := "high"
	switch {
	case budget <= 0:
		return b
	case budget <= lowEffort:
		effort = "low"
	case budget <= mediumEffort:
		effort = "medium"
	}
	b = append(append(b, `,"reasoning":{"effort":"`...), effort...)
	return append(b, `","summary":"auto"}`...)
}

// firstHash names a conversation by its first message, so that the provider
// keeps its requests together.
func firstHash(messages []segment) string {
	h := sha256.New()
	room := hashedBytes
	for _, s := range messages {
		for _, it := range s.items {
			n := min(room, len(it.data))
			h.Write(it.data[:n])
			room -= n
		}
		if len(s.items) > 0 {
			break
		}
	}
	return "dure-" + hex.EncodeToString(h.Sum(nil)[:16])
}

// head writes the tools and the system prompt.
func (e *encoder) head(r agent.Request) ([]byte, error) {
	b, err := tools(r)
	if err != nil {
		return nil, err
	}
	if e.marks {
		return markedSystem(append(b, `,"input":[`...), r.System), nil
	}
	return append(instructions(b, r.System), `,"input":[`...), nil
}

// tools writes the tools. Of two that the model would know by the same name, it
// is shown the first.
func tools(r agent.Request) ([]byte, error) {
	var b []byte
	seen := make(map[string]bool, len(r.Tools))
	for _, tool := range r.Tools {
		schema, rules, ok := wire.ToolSchema(tool.Input)
		if !ok {
			return nil, &agent.ModelError{Class: agent.FailInvalid, Message: "the input schema of tool " + tool.Name + " is no JSON object"}
		}
		name := wire.ToolName(r.Presented(tool.Name))
		if seen[name] {
			continue
		}
		seen[name] = true
		description := tool.Description
		if rules != nil {
			description = strings.TrimSpace(description + "\n\nThe whole input must also fit this JSON schema: " + string(rules))
		}
		if b == nil {
			b = append(b, `,"tools":[`...)
		} else {
			b = append(b, ',')
		}
		b = wire.Quote(append(b, `{"type":"function","name":`...), name)
		b = wire.Quote(append(b, `,"description":`...), description)
		b = append(append(b, `,"parameters":`...), schema...)
		b = append(b, `,"strict":false}`...)
	}
	if b != nil {
		b = append(b, ']')
	}
	return b, nil
}

// instructions writes the system prompt where every endpoint reads it.
func instructions(b []byte, system []agent.Section) []byte {
	var texts []string
	for _, s := range system {
		if !wire.Blank(s.Text) {
			texts = append(texts, s.Text)
		}
	}
	if texts == nil {
		return b
	}
	return wire.Quote(append(b, `,"instructions":`...), strings.Join(texts, "\n\n"))
}

// markedSystem writes the system prompt as the developer's message, which can
// carry a mark: behind the last section that asks for one.
func markedSystem(b []byte, system []agent.Section) []byte {
	mark := -1
	for i, s := range system {
		if s.Cache && !wire.Blank(s.Text) {
			mark = i
		}
	}
	open := `{"type":"message","role":"developer","content":[`
	for i, s := range system {
		if wire.Blank(s.Text) {
			continue
		}
		b = inputText(append(b, open...), s.Text)
		if i == mark {
			b = append(append(b[:len(b)-1], cacheMark...), '}')
		}
		open = ","
	}
	if open == "," {
		b = append(b, `]}`...)
	}
	return b
}

// body is a request in the making.
type body struct {
	wire.Payload
	some    bool            // an item has been added
	used    map[string]int  // IDs of calls on the wire, with how often they were wanted
	thought map[string]bool // IDs of reasoning
	waiting []waiting       // calls without a result, in their order
}

// waiting is a call whose result has not come yet.
type waiting struct{ call, id string }

// addMessages adds the items of all messages, and the tail as the user's last
// words.
//
// Every call has exactly one result behind it, and every result its call in
// front; no reasoning comes twice. A result that answers nothing is left out, and so is a second one. A
// call that has none when the next answer comes, or at the end, gets one that
// says so.
//
// Two of the four marks that the API allows are here: one behind the last item
// of the user's that will be sent again, which the next request reads, and one
// where the previous request had it.
func (b *body) addMessages(messages []segment, tail string) {
	last, previous := marks(messages)
	var role agent.Role
	for i, s := range messages {
		if len(s.items) == 0 {
			continue
		}
		if s.role == agent.Assistant && role != agent.Assistant {
			b.settle()
		}
		role = s.role
		for j, it := range s.items {
			b.addItem(it, (i == last || i == previous) && j == s.mark)
		}
	}
	if len(b.waiting) > 0 {
		b.settle()
		role = agent.User
	}
	if !wire.Blank(tail) && role != agent.Assistant {
		d := append(inputText([]byte(","+heardOpen), tail), `]}`...)
		b.Add(d[b.next():])
	}
}

// addItem adds an item, with a cache mark when it is to have one.
func (b *body) addItem(it item, marked bool) {
	id := it.id
	switch it.kind {
	case makesCall:
		id = b.free(it.id)
		b.waiting = append(b.waiting, waiting{it.call, id})
	case answersCall:
		i := slices.IndexFunc(b.waiting, func(w waiting) bool { return w.call == it.call })
		if i < 0 {
			return
		}
		id = b.waiting[i].id
		b.waiting = slices.Delete(b.waiting, i, i+1)
	case reasons:
		if b.thought[id] {
			return
		}
		b.thought[id] = true
	}
	from := b.next()
	if id != it.id {

		b.Add(it.data[from:it.from])
		b.Add(wire.Quote(nil, id))
		from = it.to
	}
	if marked {
		b.Add(it.data[from:it.mark])
		b.Add(cacheMark)
		from = it.mark
	}
	b.Add(it.data[from:])
}

// free returns id, or one that no call of the request has: some servers count
// their calls anew in every answer.
func (b *body) free(id string) string {
	free := id
	for b.used[free] > 0 {
		b.used[id]++
		suffix := fmt.Sprint("_", b.used[id])
		free = id[:min(len(id), maxID-len(suffix))] + suffix
	}
	b.used[free]++
	return free
}

// settle answers the calls that nothing has answered.
func (b *body) settle() {
	for _, w := range b.waiting {
		d := wire.Quote([]byte(","+resultOpen), w.id)
		d = append(wire.Quote(append(d, `,"output":`...), lost), '}')
		b.Add(d[b.next():])
	}
	b.waiting = b.waiting[:0]
}

// next returns how much of the next item is left out in front: its comma, when
// it is the first.
func (b *body) next() int {
	if b.some {
		return 0
	}
	b.some = true
	return 1
}

// marks returns the messages that carry a cache mark, -1 for none: the last one
// that can, and the last one of the user's turn before that.
func marks(messages []segment) (last, previous int) {
	last = len(messages) - 1
	for last >= 0 && messages[last].mark < 0 {
		last--
	}
	previous = last
	for previous >= 0 && messages[previous].role != agent.Assistant { // the same turn
		previous--
	}
	for previous >= 0 && messages[previous].mark < 0 {
		previous--
	}
	return last, previous
}
