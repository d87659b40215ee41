package anthropic

import (
	"fmt"
	"slices"
	"strconv"

	"dure/agent"
	"dure/internal/models/wire"
)

const (
	fallbackMaxTokens = 8192 // when neither request nor catalog has a limit
	minThinking       = 1024 // smallest budget that the API takes
)

// The ways in which a model is told to think (agent.ModelInfo.Thinking).
// Preserved models think adaptively without being told, and their thinking is
// bound to the exact text in front of it; a block that no longer fits is to be
// dropped rather than refused.
const (
	thinkBudget    = "budget"
	thinkAdaptive  = "adaptive"
	thinkPreserved = "preserved"
)

// An encoder writes requests.
type encoder struct {
	info agent.ModelInfo
	memo wire.Memo[segment]
}

// A segment is one message: its blocks, separated by commas, without cache marks.
type segment struct {
	role agent.Role

	data   []byte
	mark   int  // where a cache mark can be put into data, or -1
	thinks bool // begins with thinking
	calls  bool
	ids    []place // of calls, or of those that results answer
}

// A place is where data has the ID of a call.
type place struct {
	id, wire string // as the conversation has it, and as the API can bear it
	from     int
}

var (
	userOpen      = []byte(`{"role":"user","content":[`)
	assistantOpen = []byte(`{"role":"assistant","content":[`)
	messageClose  = []byte(`]}`)
	comma         = []byte(`,`)
	end           = []byte(`]}`)
	cacheMark     = []byte(`,"cache_control":{"type":"ephemeral"}`)
)

// encode returns the body of a request: model and parameters, tools, system,
// messages. What comes first changes least.
func (e *encoder) encode(r agent.Request) (*wire.Payload, error) {
	head, messages, err := e.memo.Encode(r,
		func() ([]byte, error) { return encodeHead(r) },
		func(m agent.Message) segment { return encodeMessage(e.info, r, m) })
	if err != nil {
		return nil, err
	}
	p := &body{used: make(map[string]int, len(messages)/2)}
	p.Grow(4*len(messages) + 16)
	p.Add(e.params(r, messages))
	p.Add(head)
	p.addMessages(messages, r.Tail)
	p.Add(end)
	return &p.Payload, nil
}

// body is a request in the making.
type body struct {
	wire.Payload
	used map[string]int // IDs of calls on the wire, with how often they were wanted
	open []place        // calls of the last answer that wait for their results
}

// params opens the body with everything that is neither prompt nor conversation.
func (e *encoder) params(r agent.Request, messages []segment) []byte {
	model := r.Model
	if model == "" || slices.Contains(e.info.Aliases, model) {
		model = wire.Or(e.info.ID, model)
	}
	limit := r.MaxTokens
	if most := wire.Or(e.info.MaxOut, fallbackMaxTokens); limit <= 0 || e.info.MaxOut > 0 && limit > most {
		limit = most
	}
	b := wire.Quote([]byte(`{"model":`), model)
	b = append(b, `,"max_tokens":`...)
	b = strconv.AppendInt(b, int64(limit), 10)
	b = append(b, `,"stream":true`...)
	thinking := e.thinking(r, limit, messages)
	b = append(b, thinking...)
	if r.Temperature != nil && (thinking == "" || e.info.Thinking == thinkPreserved) {
		b = append(b, `,"temperature":`...)
		b = strconv.AppendFloat(b, *r.Temperature, 'g', -1, 64)
	}
	if r.NoTools && len(r.Tools) > 0 {
		b = append(b, `,"tool_choice":{"type":"none"}`...)
	}
	return b
}

// thinking returns the member that turns thinking on, or "".
func (e *encoder) thinking(r agent.Request, limit int, messages []segment) string {
	switch e.info.Thinking {
	case thinkPreserved:
		show := ""
		if r.Thinking > 0 {
			show = `,"display":"summarized"`
		}
		return `,"thinking":{"type":"adaptive"` + show + `,"block_binding":{"prefix_mismatch_behavior":"drop_block"}}`
	case thinkAdaptive:
		if r.Thinking > 0 {
			return `,"thinking":{"type":"adaptive","display":"summarized"}`
		}
	case thinkBudget:
		budget := min(max(r.Thinking, minThinking), limit-1)
		if r.Thinking > 0 && budget >= minThinking && mayThink(messages) {
			return fmt.Sprintf(`,"thinking":{"type":"enabled","budget_tokens":%d}`, budget)
		}
	}
	return ""
}

// mayThink reports whether the API accepts a thinking budget: calls that wait
// for their results must have been made by an answer that began with thinking.
func mayThink(messages []segment) bool {
	for i, s := range slices.Backward(messages) {
		if s.role == agent.Assistant && len(s.data) > 0 {
			return i == len(messages)-1 || !s.calls || s.thinks
		}
	}
	return true
}

// encodeHead writes the tools and the system prompt.
func encodeHead(r agent.Request) ([]byte, error) {
	var b []byte
	if len(r.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, tool := range r.Tools {
			schema, ok := wire.Canonical(nil, tool.Input)
			if !ok || !wire.Object(schema) {
				return nil, &agent.ModelError{Class: agent.FailInvalid, Message: "the input schema of tool " + tool.Name + " is no JSON object"}
			}
			b = wire.Quote(append(b, `{"name":`...), wire.ToolName(r.Presented(tool.Name)))
			b = wire.Quote(append(b, `,"description":`...), tool.Description)
			b = append(append(b, `,"input_schema":`...), schema...)
			if i == len(r.Tools)-1 {
				b = append(b, cacheMark...)
			}
			b = append(b, `},`...)
		}
		b[len(b)-1] = ']'
	}
	b = appendSystem(b, r.System)
	return append(b, `,"messages":[`...), nil
}

// appendSystem writes the sections as text blocks, with one mark: behind the
// last section that asks for one.
func appendSystem(b []byte, system []agent.Section) []byte {
	marked := -1
	for i, s := range system {
		if s.Cache && !wire.Blank(s.Text) {
			marked = i
		}
	}
	open := `,"system":[`
	for i, s := range system {
		if wire.Blank(s.Text) {
			continue
		}
		b = append(b, open...)
		open = ","
		b = wire.Quote(append(b, `{"type":"text","text":`...), s.Text)
		if i == marked {
			b = append(b, cacheMark...)
		}
		b = append(b, '}')
	}
	if open == "," {
		b = append(b, ']')
	}
	return b
}

// addMessages adds the messages, neighbours of one role as one, and the tail
// at the end of the last user message.
//
// Two of the four marks that the API allows are here: one behind the last block
// that will be sent again, which the next request reads, and one where the
// previous request had it, so that a step of more than the twenty blocks which
// the API looks back still finds its prefix.
func (p *body) addMessages(messages []segment, tail string) {
	last, previous := marks(messages)
	var role agent.Role
	for i, s := range messages {
		if len(s.data) == 0 {
			continue
		}
		if s.role != role && s.role == agent.Assistant {
			p.open = p.open[:0]
		}
		switch {
		case role == s.role:
			p.Add(comma)
		case role == "":
			p.Add(open(s.role))
		default:
			p.Add(messageClose)
			p.Add(comma)
			p.Add(open(s.role))
		}
		role = s.role
		s = p.named(s)
		if i == last || i == previous {
			p.Add(s.data[:s.mark])
			p.Add(cacheMark)
			p.Add(s.data[s.mark:])
		} else {
			p.Add(s.data)
		}
	}
	p.addTail(role, tail)
}

// named returns s with IDs of calls that no call in front of it has: servers that
// count their calls anew in each answer give the same ones again, and the API
// takes each once. Results follow the calls that they answer.
func (p *body) named(s segment) segment {
	var data []byte
	done := 0
	for _, at := range s.ids {
		id := at.wire
		if s.role == agent.Assistant {
			id = p.free(id)
			p.open = append(p.open, place{id: at.id, wire: id})
		} else if i := slices.IndexFunc(p.open, func(c place) bool { return c.id == at.id }); i >= 0 {
			id = p.open[i].wire
			p.open = slices.Delete(p.open, i, i+1)
		}
		if id != at.wire {
			data = append(append(data, s.data[done:at.from]...), id...)
			done = at.from + len(at.wire)
		}
	}
	if data != nil {
		data = append(data, s.data[done:]...)
		if s.mark >= 0 { // all IDs are in front of it
			s.mark += len(data) - len(s.data)
		}
		s.data = data
	}
	return s
}

// free returns id, or one made of it that no call has so far.
func (p *body) free(id string) string {
	free := id
	for p.used[free] > 0 {
		p.used[id]++
		free = id + "_" + strconv.Itoa(p.used[id])
	}
	p.used[free]++
	return free
}

// addTail closes the last message. An answer that is to be continued takes no
// tail: nothing may stand behind it.
func (p *body) addTail(role agent.Role, tail string) {
	switch {
	case wire.Blank(tail) || role == agent.Assistant:
	case role == "":
		p.Add(userOpen)
		p.Add(textBlock(nil, tail))
		role = agent.User
	default:
		p.Add(textBlock([]byte(","), tail))
	}
	if role != "" {
		p.Add(messageClose)
	}
}

func open(role agent.Role) []byte {
	if role == agent.Assistant {
		return assistantOpen
	}
	return userOpen
}

// marks returns the segments that carry a cache mark, -1 for none: the last one
// that can, and the last one of the user's turn before that.
func marks(messages []segment) (last, previous int) {
	last = len(messages) - 1
	for last >= 0 && messages[last].mark < 0 {
		last--
	}
	previous = last
	for previous >= 0 && messages[previous].role == messages[max(last, 0)].role { // the same turn
		previous--
	}
	for previous >= 0 && (messages[previous].role != agent.User || messages[previous].mark < 0) {
		previous--
	}
	return last, previous
}
