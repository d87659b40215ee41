package responses

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
	"dure/internal/prooftest"
)

// A talk makes conversations that no one in his right mind would have.
type talk struct{ *rand.Rand }

func pick[T any](t talk, of ...T) T { return of[t.IntN(len(of))] }

func (t talk) id() string {
	return pick(t, "a", "b", "", "call_1", "functions.x:0", "toolu_"+strings.Repeat("x", 80), "é\xff", " ")
}

func (t talk) text() string {
	return pick(t, "", " \n", "hi", "\x00\xff</script>\u2028", strings.Repeat("x", 300))
}

func (t talk) media() agent.Block {
	return agent.Block{Type: pick(t, agent.ImageBlock, agent.DocumentBlock), Media: pick(t,
		&agent.Media{Type: "image/png", Data: []byte("p")}, &agent.Media{Type: "image/png"}, &agent.Media{Type: "application/pdf", Data: []byte("p"), Name: t.text()},
		&agent.Media{Type: "image/gif", URL: "https://h/x"}, &agent.Media{Type: "application/pdf", URL: "data:x"}, &agent.Media{Type: "text/plain", Data: []byte(t.text())}, nil)}
}

func (t talk) block() agent.Block {
	provider := pick(t, "openai", "openai", "anthropic", "")
	raw := json.RawMessage(pick(t, `{"type":"reasoning","id":"rs_`+fmt.Sprint(t.IntN(5))+`","summary":[]}`, `{"type":"reasoning"}`, `{"type":"message"}`, `{"phase":"commentary"}`,
		`{"phase":7}`, `{`, `null`, ``, `{"type":"custom_tool_call","call_id":"k"}`, `{"type":"item_reference","id":"x"}`))
	switch t.IntN(8) {
	case 0, 1:
		return agent.Block{Type: agent.TextBlock, Text: t.text(), Provider: provider, Raw: raw}
	case 2:
		return agent.Block{Type: agent.ThinkingBlock, Text: t.text(), Signature: t.text(), Provider: provider, Raw: raw}
	case 3, 4:
		c := &agent.Call{ID: t.id(), Tool: pick(t, "bash__exec", "", "my tool é", strings.Repeat("y", 99)), Input: json.RawMessage(pick(t, `{"a":1}`, `{}`, `[]`, ``, `{`, `null`))}
		if t.IntN(4) == 0 {
			*c = agent.InvalidInput(t.id(), "t", "{", "cut")
		}
		return agent.Block{Type: agent.CallBlock, Call: pick(t, c, c, c, nil)}
	case 5:
		return agent.Block{Type: agent.RawBlock, Provider: provider, Raw: raw}
	case 6:
		return t.media()
	}
	r := &agent.Result{ID: t.id(), Status: pick(t, agent.StatusOK, agent.StatusError, agent.StatusPending), Text: t.text(), Output: json.RawMessage(pick(t, ``, `{"a":"<"}`, `{`))}
	for range t.IntN(3) {
		r.Blocks = append(r.Blocks, pick(t, t.media(), words(t.text())))
	}
	return agent.Block{Type: agent.ResultBlock, Result: pick(t, r, r, r, nil)}
}

// answers returns results for most calls of a message.
func (t talk) answers(m agent.Message) (blocks []agent.Block) {
	for _, c := range m.Calls() {
		if t.IntN(8) > 0 {
			blocks = append(blocks, result(c.ID, agent.OK(t.text())))
		}
	}
	return blocks
}

func (t talk) conversation() []agent.Message {
	var messages []agent.Message
	for range 1 + t.IntN(12) {
		m := agent.Message{Role: pick(t, agent.User, agent.Assistant, agent.Assistant, "system")}
		for range t.IntN(5) {
			m.Blocks = append(m.Blocks, t.block())
		}
		messages = append(messages, m)
		if t.IntN(3) > 0 {
			messages = append(messages, agent.Message{Role: agent.User, Blocks: t.answers(m)})
		}
	}
	return messages
}

// Whatever a conversation went through, the API takes it.
func TestAnyConversationIsValid(t *testing.T) {
	odd := []agent.Spec{
		{Name: "t", Input: json.RawMessage(`{"type":["object","null"],"properties":{"a":{"type":"array"}},"anyOf":[{}],"enum":[{}]}`)},
		{Name: "t t", Input: json.RawMessage(`{}`)},
		{Name: "t.t", Input: json.RawMessage(`{"properties":[]}`)},
	}
	seeds := uint64(800)
	if prooftest.Long() {
		seeds = 3000
	}
	for seed := range seeds {
		talk := talk{rand.New(rand.NewPCG(seed, 1))}
		r := agent.Request{Messages: append(talk.conversation(), says(agent.User, words("hi"))), Tail: talk.text(), Tools: odd[:talk.IntN(len(odd)+1)], NoTools: talk.IntN(2) == 0, Thinking: talk.IntN(9999), MaxTokens: talk.IntN(99)}
		for _, info := range []agent.ModelInfo{reader, plainReader} {
			body := wiretest.MustEncode(t, New(wire.Config{Info: info}), r)
			if err := script.Validate(script.Responses, "", nil, body); err != nil {
				t.Fatalf("seed %d, %s: %v\n%s", seed, info.ID, err, body)
			}
		}
	}
}
