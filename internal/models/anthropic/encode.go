package anthropic

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"unsafe"

	"dure/agent"
)

const (
	fallbackMaxTokens = 8192 // when neither request nor catalog has a limit
	minThinking       = 1024 // smallest budget that the API takes

	// keptTalks is how many conversations stay encoded; a session and its
	// children that run side by side are a few.
	keptTalks = 6
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

// An encoder writes requests. Messages are immutable, so the bytes of those
// that the previous request of the same conversation had are used again; a
// conversation is recognised by its first message.
type encoder struct {
	info agent.ModelInfo

	mu    sync.Mutex
	talks []*talk // most recently used first, at most keptTalks
}

// A talk is one conversation, encoded. The bytes are never written to again:
// a request that is still being sent may read them.
type talk struct {
	names    map[string]string
	tools    []agent.Spec
	system   []agent.Section
	head     []byte // tools and system, with their marks
	messages []segment
}

// A segment is one message: its blocks, separated by commas, without cache marks.
type segment struct {
	blocks *agent.Block // first block; keeps the address from being used again
	n      int
	role   agent.Role

	data   []byte
	mark   int  // where a cache mark can be put into data, or -1
	thinks bool // begins with thinking
	calls  bool
}

// payload is a request body in parts.
type payload struct {
	parts [][]byte
	size  int64
}

func (p *payload) add(part []byte) {
	p.parts = append(p.parts, part)
	p.size += int64(len(part))
}

func (p *payload) reader() io.ReadCloser {
	b := net.Buffers(slices.Clone(p.parts)) // Buffers drops parts as it is read
	return io.NopCloser(&b)
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
func (e *encoder) encode(r agent.Request) (payload, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	t := e.talk(r)
	if err := t.encodeHead(r); err != nil {
		return payload{}, err
	}
	t.encodeMessages(e.info, r)

	p := payload{parts: make([][]byte, 0, 4*len(t.messages)+16)}
	p.add(e.params(r, t.messages))
	p.add(t.head)
	p.addMessages(t.messages, r.Tail)
	p.add(end)
	return p, nil
}

// talk returns the conversation that r continues, or a new one.
func (e *encoder) talk(r agent.Request) *talk {
	i := slices.IndexFunc(e.talks, func(t *talk) bool { return t.continued(r) })
	var t *talk
	if i >= 0 {
		t = e.talks[i]
		e.talks = slices.Delete(e.talks, i, i+1)
	} else {
		t = &talk{names: maps.Clone(r.Names)}
	}
	if len(e.talks) == keptTalks {
		e.talks[keptTalks-1] = nil
		e.talks = e.talks[:keptTalks-1]
	}
	e.talks = slices.Insert(e.talks, 0, t)
	return t
}

// continued reports whether r is a later request of the same conversation.
func (t *talk) continued(r agent.Request) bool {
	return len(t.messages) > 0 && len(r.Messages) > 0 &&
		t.messages[0].is(r.Messages[0]) && maps.Equal(t.names, r.Names)
}

func (s segment) is(m agent.Message) bool {
	return s.blocks == unsafe.SliceData(m.Blocks) && s.n == len(m.Blocks) && s.role == m.Role
}

// encodeMessages brings t.messages in line with r. Segments behind the first
// difference go into a new slice: a fork may still use the old ones.
func (t *talk) encodeMessages(info agent.ModelInfo, r agent.Request) {
	same := 0
	for same < len(t.messages) && same < len(r.Messages) && t.messages[same].is(r.Messages[same]) {
		same++
	}
	if same < len(t.messages) {
		t.messages = slices.Clone(t.messages[:same])
	}
	for _, m := range r.Messages[same:] {
		t.messages = append(t.messages, encodeMessage(info, r, m))
	}
}

// params opens the body with everything that is neither prompt nor conversation.
func (e *encoder) params(r agent.Request, messages []segment) []byte {
	model := r.Model
	if model == "" || slices.Contains(e.info.Aliases, model) {
		model = or(e.info.ID, model)
	}
	limit := r.MaxTokens
	if most := or(e.info.MaxOut, fallbackMaxTokens); limit <= 0 || e.info.MaxOut > 0 && limit > most {
		limit = most
	}
	b := quote([]byte(`{"model":`), model)
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

// encodeHead encodes tools and system, unless they are those of the last request.
func (t *talk) encodeHead(r agent.Request) error {
	if t.head != nil && slices.Equal(t.system, r.System) && slices.EqualFunc(t.tools, r.Tools, sameTool) {
		return nil
	}
	var b []byte
	if len(r.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		for i, tool := range r.Tools {
			schema, ok := canonical(nil, tool.Input)
			if !ok || !isObject(schema) {
				return &agent.ModelError{Class: agent.FailInvalid, Message: "the input schema of tool " + tool.Name + " is no JSON object"}
			}
			b = quote(append(b, `{"name":`...), toolName(r.Presented(tool.Name)))
			b = quote(append(b, `,"description":`...), tool.Description)
			b = append(append(b, `,"input_schema":`...), schema...)
			if i == len(r.Tools)-1 {
				b = append(b, cacheMark...)
			}
			b = append(b, `},`...)
		}
		b[len(b)-1] = ']'
	}
	b = appendSystem(b, r.System)
	t.head = append(b, `,"messages":[`...)
	t.tools, t.system = slices.Clone(r.Tools), slices.Clone(r.System)
	return nil
}

func sameTool(a, b agent.Spec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Input, b.Input)
}

// appendSystem writes the sections as text blocks, with one mark: behind the
// last section that asks for one.
func appendSystem(b []byte, system []agent.Section) []byte {
	marked := -1
	for i, s := range system {
		if s.Cache && !blank(s.Text) {
			marked = i
		}
	}
	open := `,"system":[`
	for i, s := range system {
		if blank(s.Text) {
			continue
		}
		b = append(b, open...)
		open = ","
		b = quote(append(b, `{"type":"text","text":`...), s.Text)
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
func (p *payload) addMessages(messages []segment, tail string) {
	last, previous := marks(messages)
	var role agent.Role
	for i, s := range messages {
		if len(s.data) == 0 {
			continue
		}
		switch {
		case role == s.role:
			p.add(comma)
		case role == "":
			p.add(open(s.role))
		default:
			p.add(messageClose)
			p.add(comma)
			p.add(open(s.role))
		}
		role = s.role
		if i == last || i == previous {
			p.add(s.data[:s.mark])
			p.add(cacheMark)
			p.add(s.data[s.mark:])
		} else {
			p.add(s.data)
		}
	}
	p.addTail(role, tail)
}

// addTail closes the last message. An answer that is to be continued takes no
// tail: nothing may stand behind it.
func (p *payload) addTail(role agent.Role, tail string) {
	switch {
	case blank(tail) || role == agent.Assistant:
	case role == "":
		p.add(userOpen)
		p.add(textBlock(nil, tail))
		role = agent.User
	default:
		p.add(textBlock([]byte(","), tail))
	}
	if role != "" {
		p.add(messageClose)
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
