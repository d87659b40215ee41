package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"dure/agent"
	"dure/internal/models/wire"
)

// An encoder writes requests.
type encoder struct {
	info   agent.ModelInfo
	compat Compat
	memo   wire.Memo[*segment]

	refused atomic.Uint32 // options that the endpoint does not know
}

// Members of a request that an endpoint may refuse. Without optLimit the limit
// has its other name.
const (
	optUsage uint32 = 1 << iota
	optEffort
	optParallel
	optStore
	optCacheKey
	optLimit
	optCompletionLimit
)

var optionNames = []struct {
	option uint32
	name   string
}{
	{optUsage, "stream_options"},
	{optUsage, "include_usage"},
	{optUsage, "include_obfuscation"},
	{optEffort, "reasoning_effort"},
	{optParallel, "parallel_tool_calls"},
	{optStore, "store"},
	{optCacheKey, "prompt_cache_key"},
	{optLimit, "max_tokens"},
	{optCompletionLimit, "max_completion_tokens"},
}

// refusals are how endpoints say that they do not know a member.
var refusals = []string{
	"unsupported", "not supported", "does not support", "unrecognized", "unknown", "unexpected",
	"not permitted", "not allowed", "forbidden", "additional properties", "invalid field",
}

// options returns what goes into the request beyond the necessary.
func (e *encoder) options(r agent.Request) uint32 {
	var o uint32
	set := func(option uint32, want bool) {
		if want {
			o |= option
		}
	}
	refused := e.refused.Load()
	c := e.compat
	set(optUsage, !c.NoUsage)
	set(optEffort, !c.NoEffort && e.info.Thinking != "" && r.Thinking > 0)
	set(optParallel, c.Parallel != nil && len(r.Tools) > 0)
	set(optStore, c.Store != nil)
	set(optCacheKey, c.CacheKey)
	if r.MaxTokens > 0 {
		completion := c.CompletionTokens
		if refused&(optLimit|optCompletionLimit) != 0 {
			completion = refused&optLimit != 0
		}
		set(optCompletionLimit, completion)
		set(optLimit, !completion)
		refused &^= optLimit | optCompletionLimit
	}
	return o &^ refused
}

// learn takes in an error with which the endpoint answered a request of the
// given options. Those that it refuses by name are not sent again, which makes
// the error worth another attempt. param is the member that it names, or "".
func (e *encoder) learn(sent uint32, err *agent.ModelError, param string) *agent.ModelError {
	if err == nil || err.Class != agent.FailInvalid {
		return err
	}
	text := strings.ToLower(err.Code + " " + err.Message)
	if !slices.ContainsFunc(refusals, func(s string) bool { return strings.Contains(text, s) }) {
		return err
	}
	for _, o := range optionNames {
		named := param == o.name || mentions(text, o.name)
		if named && sent&o.option != 0 && e.refused.Load()&other(o.option) == 0 {
			e.refused.Or(o.option)
			err.Class = agent.FailServer
			break // what else is named, is named as what to use instead
		}
	}
	return err
}

// other returns the option that takes the place of a refused one, if there is one.
func other(option uint32) uint32 {
	switch option {
	case optLimit:
		return optCompletionLimit
	case optCompletionLimit:
		return optLimit
	}
	return 0
}

// mentions reports whether text has name as a word.
func mentions(text, name string) bool {
	for {
		i := strings.Index(text, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || !wordy(text[i-1])) && (end == len(text) || !wordy(text[end])) {
			return true
		}
		text = text[end:]
	}
}

func wordy(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

var (
	comma = []byte(`,`)
	end   = []byte(`]}`)
)

// encode returns the body of a request: model and parameters, tools, system,
// messages. What comes first changes least.
func (e *encoder) encode(r agent.Request, options uint32) (*wire.Payload, error) {
	head, messages, err := e.memo.Encode(r,
		func() ([]byte, error) { return e.head(r) },
		func(m agent.Message) *segment { return e.segment(r, m) })
	if err != nil {
		return nil, err
	}
	t := talk{encoder: e, first: head[len(head)-1] == '[', made: make(map[string]bool, len(messages)/2)}
	t.Grow(4*len(messages) + 16)
	t.Add(e.params(r, options, head, messages))
	t.Add(head)
	t.addMessages(messages, r.Tail)
	t.Add(end)
	return &t.Payload, nil
}

// params opens the body with everything that is neither prompt nor conversation.
func (e *encoder) params(r agent.Request, has uint32, head []byte, messages []*segment) []byte {
	model := r.Model
	if model == "" || slices.Contains(e.info.Aliases, model) {
		model = wire.Or(e.info.ID, model)
	}
	b := append(wire.Quote([]byte(`{"model":`), model), `,"stream":true`...)
	if has&optUsage != 0 {
		b = append(b, `,"stream_options":{"include_usage":true`...)
		if e.compat.Unpadded {
			b = append(b, `,"include_obfuscation":false`...)
		}
		b = append(b, '}')
	}
	limit := r.MaxTokens
	if e.info.MaxOut > 0 {
		limit = min(limit, e.info.MaxOut)
	}
	switch {
	case has&optCompletionLimit != 0:
		b = strconv.AppendInt(append(b, `,"max_completion_tokens":`...), int64(limit), 10)
	case has&optLimit != 0:
		b = strconv.AppendInt(append(b, `,"max_tokens":`...), int64(limit), 10)
	}
	if r.Temperature != nil && !(e.compat.FixedTemperature && e.info.Thinking != "") {
		b = strconv.AppendFloat(append(b, `,"temperature":`...), *r.Temperature, 'g', -1, 64)
	}
	if has&optEffort != 0 {
		b = wire.Quote(append(b, `,"reasoning_effort":`...), effort(r.Thinking))
	}
	if has&optStore != 0 {
		b = strconv.AppendBool(append(b, `,"store":`...), *e.compat.Store)
	}
	if has&optCacheKey != 0 {
		b = wire.Quote(append(b, `,"prompt_cache_key":`...), cacheKey(model, head, messages))
	}
	if has&optParallel != 0 {
		b = strconv.AppendBool(append(b, `,"parallel_tool_calls":`...), *e.compat.Parallel)
	}
	if r.NoTools && len(r.Tools) > 0 {
		b = append(b, `,"tool_choice":"none"`...)
	}
	return b
}

// The budgets of thinking, in tokens, up to which an effort is meant.
const (
	lowEffort    = 2048
	mediumEffort = 8192
)

func effort(budget int) string {
	switch {
	case budget <= lowEffort:
		return "low"
	case budget <= mediumEffort:
		return "medium"
	}
	return "high"
}

const keyed = 4096 // bytes of the prompt, and of the first message, that tell conversations apart

// cacheKey names a conversation, so that its requests meet the same cache.
func cacheKey(model string, head []byte, messages []*segment) string {
	h := sha256.New()
	h.Write([]byte(model))
	h.Write(head[:min(len(head), keyed)])
	if len(messages) > 0 {
		first := messages[0].content
		h.Write(first[:min(len(first), keyed)])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// head writes the tools and the system prompt, up to where messages begin.
func (e *encoder) head(r agent.Request) ([]byte, error) {
	var b []byte
	if len(r.Tools) > 0 {
		b = append(b, `,"tools":[`...)
		named := map[string]bool{}
		for _, tool := range r.Tools {
			schema, rules, ok := wire.ToolSchema(tool.Input)
			if !ok {
				return nil, &agent.ModelError{Class: agent.FailInvalid, Message: "the input schema of tool " + tool.Name + " is no JSON object"}
			}
			name := wire.ToolName(r.Presented(tool.Name))
			if named[name] {
				continue // names that only differ behind their limit: the first is the one
			}
			named[name] = true
			about := tool.Description
			if rules != nil {
				about += "\n\nThe input must also fit this JSON schema: " + string(rules)
			}
			b = wire.Quote(append(b, `{"type":"function","function":{"name":`...), name)
			b = wire.Quote(append(b, `,"description":`...), about)
			b = append(append(b, `,"parameters":`...), schema...)
			if e.compat.Strict && rules == nil && strict(schema, 0) {
				b = append(b, `,"strict":true`...)
			}
			b = append(b, `}},`...)
		}
		b[len(b)-1] = ']'
	}
	b = append(b, `,"messages":[`...)
	var system []string
	for _, s := range r.System {
		if !wire.Blank(s.Text) {
			system = append(system, s.Text)
		}
	}
	if len(system) > 0 {
		role := "system"
		if e.compat.Developer {
			role = "developer"
		}
		b = wire.Quote(append(b, `{"role":"`+role+`","content":`...), strings.Join(system, "\n\n"))
		b = append(b, '}')
	}
	return b, nil
}
