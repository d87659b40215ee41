package gemini

import (
	"slices"
	"strconv"

	"dure/agent"
	"dure/internal/models/wire"
)

// The ways in which a model is told to think (agent.ModelInfo.Thinking). Models
// that take a level are those since Gemini 3: they also refuse a call that comes
// back without the signature it was made with, and read media in results.
const (
	thinkBudget = "budget"
	thinkLevel  = "level"
)

// Budgets that every model with a budget takes: the smallest of one is 512, the
// largest of another 24,576.
const (
	minBudget = 512
	maxBudget = 24_576
)

// Up to which budget, in tokens, a level is meant.
const (
	mostLow    = 2048
	mostMedium = 8192
)

// An encoder writes requests.
type encoder struct {
	info agent.ModelInfo
	memo wire.Memo[*segment]
}

var (
	userOpen     = []byte(`{"role":"user","parts":[`)
	modelOpen    = []byte(`{"role":"model","parts":[`)
	turnClose    = []byte(`]}`)
	comma        = []byte(`,`)
	responseOpen = []byte(`{"functionResponse":{"name":`)
	contentsOpen = []byte(`"contents":[`)

	// The API wants the user's word first and last.
	unseen   = []byte(`{"text":"(The beginning of the conversation is not shown.)"}`)
	carryOn  = []byte(`{"text":"Continue."}`)
	noResult = []byte(`,"response":{"error":"The call has no result."}}}`)
)

// encode returns the body of a request: system and tools, the conversation,
// parameters. What comes first changes least.
func (e *encoder) encode(r agent.Request) (*wire.Payload, error) {
	ids := callIDs{messages: r.Messages}
	head, messages, err := e.memo.Encode(r,
		func() ([]byte, error) { return encodeHead(r) },
		func(m agent.Message) *segment { return encodeMessage(e.info, r, m, &ids) })
	if err != nil {
		return nil, err
	}
	t := &turns{}
	t.Grow(6*len(messages) + 16)
	t.Add(head)
	t.conversation(messages)
	t.tail(r.Tail)
	t.Add(e.params(r))
	return &t.Payload, nil
}

// encodeHead opens the body with the system prompt and the tools.
func encodeHead(r agent.Request) ([]byte, error) {
	b := []byte{'{'}
	open := `"systemInstruction":{"parts":[`
	for _, s := range r.System {
		if wire.Blank(s.Text) {
			continue
		}
		b = textPart(append(b, open...), s.Text, "")
		open = ","
	}
	if open == "," {
		b = append(b, `]},`...)
	}
	b, err := appendTools(b, r)
	return append(b, contentsOpen...), err
}

// appendTools declares the tools. Of two whose names the API could not tell
// apart the first stays.
func appendTools(b []byte, r agent.Request) ([]byte, error) {
	if len(r.Tools) == 0 {
		return b, nil
	}
	b = append(b, `"tools":[{"functionDeclarations":[`...)
	seen := make(map[string]bool, len(r.Tools))
	for _, tool := range r.Tools {
		name := toolName(r, tool.Name)
		if seen[name] {
			continue
		}
		seen[name] = true
		schema, err := parameters(tool.Input)
		if err != nil {
			return nil, &agent.ModelError{Class: agent.FailInvalid, Message: "the input schema of tool " + tool.Name + " is no JSON object"}
		}
		b = wire.Quote(append(b, `{"name":`...), name)
		b = wire.Quote(append(b, `,"description":`...), tool.Description)
		if schema != nil {
			b = append(append(b, `,"parametersJsonSchema":`...), schema...)
		}
		b = append(b, `},`...)
	}
	b[len(b)-1] = ']'
	return append(b, `}],`...), nil
}

// toolName returns the name of a tool as the API takes it: it begins with a
// letter or an underscore.
func toolName(r agent.Request, tool string) string {
	name := wire.ToolName(r.Presented(tool))
	if c := name[0]; c == '-' || c >= '0' && c <= '9' {
		name = "_" + name[:min(len(name), wire.MaxToolName-1)]
	}
	return name
}

// canonical returns the tool that the model means by name.
func canonical(r agent.Request, name string) string {
	for _, tool := range r.Tools {
		if toolName(r, tool.Name) == name {
			return tool.Name
		}
	}
	return r.Canonical(name)
}

// params closes the body with everything that is neither prompt nor
// conversation.
func (e *encoder) params(r agent.Request) []byte {
	b := []byte(`]`)
	if r.NoTools && len(r.Tools) > 0 {
		b = append(b, `,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`...)
	}
	open := `,"generationConfig":{`
	add := func(name string) {
		b = append(append(b, open...), name...)
		open = ","
	}
	limit := r.MaxTokens
	if limit <= 0 || e.info.MaxOut > 0 && limit > e.info.MaxOut {
		limit = e.info.MaxOut
	}
	if limit > 0 {
		add(`"maxOutputTokens":`)
		b = strconv.AppendInt(b, int64(limit), 10)
	}
	if r.Temperature != nil {
		add(`"temperature":`)
		b = strconv.AppendFloat(b, *r.Temperature, 'g', -1, 64)
	}
	if r.Thinking > 0 {
		switch e.info.Thinking {
		case thinkBudget:
			add(`"thinkingConfig":{"includeThoughts":true,"thinkingBudget":`)
			b = strconv.AppendInt(b, int64(min(max(r.Thinking, minBudget), maxBudget)), 10)
			b = append(b, '}')
		case thinkLevel:
			add(`"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"` + level(r.Thinking) + `"}`)
		}
	}
	if open == "," {
		b = append(b, '}')
	}
	return append(b, '}')
}

// level returns the level that a budget in tokens stands for.
func level(budget int) string {
	switch {
	case budget <= mostLow:
		return "LOW"
	case budget <= mostMedium:
		return "MEDIUM"
	}
	return "HIGH"
}

// turns writes a conversation as the API wants it: the roles alternate, the
// user begins and ends, and the calls of a turn are answered, all of them and in
// order, at the beginning of the next one.
type turns struct {
	wire.Payload
	role agent.Role // of the open turn; "" = none yet
}

// conversation writes the messages, neighbours of one role as one turn.
func (t *turns) conversation(messages []*segment) {
	var calls []call // of the turn of the model that is to be answered
	for i := 0; i < len(messages) || len(calls) > 0; {
		run := i
		for i < len(messages) && messages[i].role != agent.Assistant {
			i++
		}
		t.answers(calls, messages[run:i])
		for _, s := range messages[run:i] {
			t.part(agent.User, s.data)
		}
		calls = calls[:0]
		for i < len(messages) && messages[i].role == agent.Assistant {
			t.part(agent.Assistant, messages[i].data)
			calls = append(calls, messages[i].calls...)
			i++
		}
	}
}

// answers writes the response to each of the calls, and behind them the media
// that responses cannot hold. A result that answers none of the calls is left
// out; a call without a result is answered in words.
func (t *turns) answers(calls []call, from []*segment) {
	for _, c := range calls {
		body := noResult
		if r := resultOf(c.id, from); r != nil {
			body = r.body
		}
		t.part(agent.User, responseOpen)
		t.Add(c.tag)
		t.Add(body)
	}
	for _, c := range calls {
		if r := resultOf(c.id, from); r != nil {
			t.part(agent.User, r.media)
		}
	}
}

// resultOf returns the first result of a call, or nil.
func resultOf(id string, from []*segment) *result {
	for _, s := range from {
		if i := slices.IndexFunc(s.results, func(r result) bool { return r.id == id }); i >= 0 {
			return &s.results[i]
		}
	}
	return nil
}

// part adds parts to the turn of role, which it opens if it has to.
func (t *turns) part(role agent.Role, parts []byte) {
	switch {
	case len(parts) == 0:
		return
	case t.role == role:
		t.Add(comma)
	default:
		if t.role == "" && role == agent.Assistant {
			t.Add(userOpen)
			t.Add(unseen)
			t.role = agent.User
		}
		if t.role != "" {
			t.Add(turnClose)
			t.Add(comma)
		}
		t.role = role
		if role == agent.Assistant {
			t.Add(modelOpen)
		} else {
			t.Add(userOpen)
		}
	}
	t.Add(parts)
}

// tail puts text behind the last turn of the user and closes it.
func (t *turns) tail(text string) {
	if !wire.Blank(text) {
		t.part(agent.User, textPart(nil, text, ""))
	}
	if t.role != agent.User {
		t.part(agent.User, carryOn)
	}
	t.Add(turnClose)
}
