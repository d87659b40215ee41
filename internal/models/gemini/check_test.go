package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"

	"dure/agent"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

var functionName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`)

// check fails when a request breaks a rule of the API: the roles alternate, the
// user begins and ends, no part is empty, and the responses of a turn answer the
// calls of the one before in number, order, name and ID.
func check(t *testing.T, body []byte, info agent.ModelInfo) {
	t.Helper()
	if err := broken(body, info); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

func broken(body []byte, info agent.ModelInfo) error {
	type named struct {
		Name     string                     `json:"name"`
		ID       string                     `json:"id"`
		Args     map[string]json.RawMessage `json:"args"`
		Response map[string]string          `json:"response"`
		Parts    []json.RawMessage          `json:"parts"`
	}
	var r struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text      *string `json:"text"`
				Thought   bool    `json:"thought"`
				Signature *string `json:"thoughtSignature"`
				Call      *named  `json:"functionCall"`
				Response  *named  `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
		Tools      json.RawMessage `json:"tools"`
		ToolConfig json.RawMessage `json:"toolConfig"`
		System     json.RawMessage `json:"systemInstruction"`
		Generation json.RawMessage `json:"generationConfig"`
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(&r); err != nil {
		return err
	}
	var open []string // names and IDs of the calls of the turn before
	ids := map[string]bool{}
	for i, turn := range r.Contents {
		if want := []string{"user", "model"}[i%2]; turn.Role != want {
			return fmt.Errorf("turn %d is of %q", i, turn.Role)
		}
		if len(turn.Parts) == 0 {
			return fmt.Errorf("turn %d is empty", i)
		}
		var calls, responses []string
		other := false
		for j, p := range turn.Parts {
			at := fmt.Sprintf("turn %d, part %d", i, j)
			if p.Signature != nil && (turn.Role == "user" || !bytesInBase64(*p.Signature)) {
				return fmt.Errorf("%s: signature %q", at, *p.Signature)
			}
			if p.Text != nil && *p.Text == "" && p.Signature == nil {
				return fmt.Errorf("%s: empty text", at)
			}
			if p.Thought && p.Text != nil && p.Signature == nil {
				return fmt.Errorf("%s: thought without signature", at)
			}
			if c := p.Call; c != nil {
				if turn.Role != "model" || !functionName.MatchString(c.Name) || c.ID == "" || c.Args == nil {
					return fmt.Errorf("%s: call %+v", at, *c)
				}
				if len(calls) == 0 && info.Thinking == thinkLevel && p.Signature == nil {
					return fmt.Errorf("%s: a first call without signature", at)
				}
				if ids[c.ID] {
					return fmt.Errorf("%s: the ID %s is taken", at, c.ID)
				}
				ids[c.ID] = true
				calls = append(calls, c.Name+" "+c.ID)
			}
			if c := p.Response; c != nil {
				if turn.Role != "user" || other || len(c.Response) != 1 || len(c.Parts) > 0 && info.Thinking != thinkLevel {
					return fmt.Errorf("%s: response %+v", at, *c)
				}
				responses = append(responses, c.Name+" "+c.ID)
			}
			other = other || p.Response == nil
		}
		if !slices.Equal(open, responses) {
			return fmt.Errorf("turn %d answers %q with %q", i, open, responses)
		}
		open = calls
	}
	if n := len(r.Contents); n%2 == 0 {
		return fmt.Errorf("%d turns", n)
	}
	return nil
}

// FuzzConversation builds conversations of any blocks in any order and checks
// that they become valid requests for both kinds of model.
func FuzzConversation(f *testing.F) {
	f.Add([]byte("aA1bB2cC3"))
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19})
	f.Add([]byte{6, 6, 70, 134, 9, 9, 73, 137, 22, 86, 9, 73})
	f.Fuzz(func(t *testing.T, recipe []byte) {
		messages := cook(recipe[:min(len(recipe), 200)])
		for _, info := range []agent.ModelInfo{reader, older, {ID: "plain"}} {
			m := New(wire.Config{Info: info})
			for n := range len(messages) + 1 {
				body := wiretest.MustEncode(t, m, agent.Request{Messages: messages[:n], Names: names, Tools: tools()})
				if err := broken(body, info); err != nil {
					t.Fatalf("%s, %d messages: %v in %s", info.ID, n, err, body)
				}
			}
		}
	})
}

// cook makes a block of each byte, and a message of some of them.
func cook(recipe []byte) []agent.Message {
	var messages []agent.Message
	role := agent.User
	var blocks []agent.Block
	for _, b := range recipe {
		id := string("abc"[b>>6%3])
		switch b % 16 {
		case 0, 1:
			messages = append(messages, says(role, blocks...))
			blocks = nil
			if b%16 == 1 || role == agent.Assistant {
				role = agent.User
			} else {
				role = agent.Assistant
			}
		case 2:
			blocks = append(blocks, plain("text"))
		case 3:
			blocks = append(blocks, plain(" "))
		case 4:
			blocks = append(blocks, agent.Block{Type: agent.TextBlock, Signature: "QQ==", Provider: []string{"google", "openai", ""}[b>>6%3]})
		case 5, 6:
			blocks = append(blocks, callBlock(id, "bash__exec", `{"a":1}`, []string{"QQ==", "", "\x00"}[b>>4%3], []string{"google", "openai", ""}[b>>6%3]))
		case 7:
			bad := agent.InvalidInput(id, "", "{", "cut")
			blocks = append(blocks, agent.Block{Type: agent.CallBlock, Call: &bad})
		case 8, 9:
			blocks = append(blocks, resultBlock(id, agent.OK("done")))
		case 10:
			blocks = append(blocks, resultBlock(id, agent.Result{Status: agent.StatusError, Blocks: []agent.Block{media(agent.ImageBlock, "image/png", "", "x"), plain("")}}))
		case 11:
			blocks = append(blocks, media(agent.ImageBlock, "image/png", "", "x"))
		case 12:
			blocks = append(blocks, agent.Block{Type: agent.ThinkingBlock, Text: "hm", Signature: []string{"QQ==", ""}[b>>4%2], Provider: "google"})
		case 13:
			blocks = append(blocks, agent.Block{Type: agent.RawBlock, Provider: "google", Raw: json.RawMessage([]string{`{"functionCall":{"name":"x"}}`, `{"executableCode":{}}`, `{`}[b>>6%3])})
		case 14:
			blocks = append(blocks, agent.Block{Type: []agent.BlockType{agent.CallBlock, agent.ResultBlock, agent.DocumentBlock, "other"}[b>>6]})
		case 15:
			blocks = append(blocks, resultBlock("", agent.Result{}), foreignCall("", "", ``))
		}
	}
	return append(messages, says(role, blocks...))
}
