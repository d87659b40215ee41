//go:build unix

package connections_test

import (
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/extend/mcp/connections"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
)

// askingServer is a server that asks something before it answers a call, and answers with the
// reply.
func askingServer(method, params string) string {
	asks := `printf '%s\n' '{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":` + params + `}'
    read -r said
    said=$(printf '%s' "$said" | tr -d '"\\')
    answer '{"content":[{"type":"text","text":"TOLD '"$said"'"}]}' ;;`
	return strings.Replace(echoes, `answer '{"content":[{"type":"text","text":"the server has heard it"}]}' ;;`, asks, 1)
}

const (
	// form asks for a name, a number and one of several words.
	form = `{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{` +
		`"name":{"type":"string","title":"Name"},"age":{"type":"integer","default":7},"colour":{"type":"string","enum":["red","green","blue","grey","black"]}}}}`
	address  = `{"mode":"url","message":"Sign here","url":"https://pay.example/a?b=c","elicitationId":"e1"}`
	question = `{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}`
)

// asking opens a session with a server that asks.
func asking(t *testing.T, server string, p policy.Config, answers map[string]string) *rig {
	t.Helper()
	r := newRig(t, connections.Config{Given: []string{given}})
	r.write("server.sh", server)
	p.Allow = append(p.Allow, "mcp__sh__echo")
	r.open(p, answers).Extra(t.Context(), plug.Moment{}) // the first request lets servers ask
	if s := r.server(); s.State != "connected" {
		t.Fatalf("%+v", s)
	}
	return r
}

// What a server asks is put to the person, with the name of the server first, and they may
// decline. Where nobody is there, it is declined.
func TestServersAskThePerson(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		params  string
		answers map[string]string
		want    string
		asked   string
	}{
		"a form":              {form, map[string]string{"Who are you?": "Answer", "Name (name)": "Ada", "age": "36", "colour": "GREY"}, "result:{action:accept,content:{age:36,colour:grey,name:Ada}}", `The MCP server "sh" asks for`},
		"a secret":            {strings.ReplaceAll(form, `"Name"`, `"API-Key"`), map[string]string{"Who are you?": "Decline"}, "result:{action:decline}", "It looks as if it wants a secret"},
		"a form, left":        {form, map[string]string{"Who are you?": "Answer", "Name (name)": "Ada", "age": "Leave it", "colour": "Leave it"}, "result:{action:accept,content:{age:7,name:Ada}}", ""},
		"what does not fit":   {form, map[string]string{"Who are you?": "Answer", "Name (name)": "Ada", "age": "old", "colour": "red"}, "result:{action:cancel}", "does not fit"},
		"declined":            {form, map[string]string{"Who are you?": "Decline"}, "result:{action:decline}", ""},
		"declined in between": {form, map[string]string{"Who are you?": "Answer", "Name (name)": "Decline", "age": "7", "colour": "red"}, "result:{action:decline}", ""},
		"cancelled":           {form, map[string]string{"Who are you?": "Cancel"}, "result:{action:cancel}", ""},
		"not answered":        {form, map[string]string{}, "result:{action:decline}", ""},
		"nobody":              {form, nil, "result:{action:decline}", ""},
		"an address":          {address, map[string]string{"Sign here": "Agree, I open it"}, "result:{action:accept}", "of the host pay.example:\nhttps://pay.example/a?b=c\n"},
		"an address, no":      {address, map[string]string{"Sign here": "Decline"}, "result:{action:decline}", ""},
		"a strange address":   {strings.Replace(address, "pay.example", "pаy.example", 1), map[string]string{"Sign here": "Agree, I open it"}, "cannot be shown", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asking(t, askingServer("elicitation/create", tt.params), policy.Config{}, tt.answers)
			if told := r.call(); !strings.Contains(told, tt.want) {
				t.Errorf("told %s, want %s", told, tt.want)
			}
			if all := strings.Join(r.asked, "\n--\n"); !strings.Contains(all, tt.asked) || tt.answers == nil && all != "" {
				t.Errorf("asked\n%s", all)
			}
		})
	}
}

// A question of a server to the model needs the person, a rule, or a mode and a server that
// is the person's own.
func TestServersAskTheModel(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		p       policy.Config
		answers map[string]string
		want    string
		asked   int
	}{
		"yes":          {policy.Config{}, map[string]string{"2+2": "This once"}, "FOUR", 1},
		"no":           {policy.Config{}, map[string]string{"2+2": "Decline"}, "rejected", 1},
		"not answered": {policy.Config{}, map[string]string{}, "rejected", 1},
		"nobody":       {policy.Config{}, nil, "rejected", 0},
		"a rule":       {policy.Config{Allow: []string{"mcp__sh__*"}}, nil, "FOUR", 0},
		"another rule": {policy.Config{Allow: []string{"mcp__shell__*"}}, nil, "rejected", 0},
		"a denial":     {policy.Config{Deny: []string{"mcp__sh__sampling*"}}, map[string]string{"2+2": "This once"}, "rejected", 0},
		"a mode":       {policy.Config{Mode: agent.ModeBypass}, nil, "FOUR", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asking(t, askingServer("sampling/createMessage", question), tt.p, tt.answers)
			if told := r.call(); !strings.Contains(told, tt.want) || len(r.asked) != tt.asked {
				t.Errorf("told %s, want %s; asked %q", told, tt.want, r.asked)
			}
			if (r.models == 1) != (tt.want == "FOUR") {
				t.Errorf("the model was asked %d times", r.models)
			}
		})
	}
}

// Whoever declines what a server asks is not asked again and again; whoever agrees is.
func TestServersThatAskTooOften(t *testing.T) {
	t.Parallel()
	const times = 8
	for name, tt := range map[string]struct {
		method, params, answer string
		asked                  int
	}{
		"declined":            {"elicitation/create", address, "Decline", 5},
		"agreed":              {"elicitation/create", address, "Agree, I open it", times},
		"the model, declined": {"sampling/createMessage", question, "Decline", 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asking(t, askingServer(tt.method, tt.params), policy.Config{}, map[string]string{"Sign here": tt.answer, "2+2": tt.answer})
			for range times {
				r.call()
			}
			if len(r.asked) != tt.asked {
				t.Errorf("asked %d times: %q", len(r.asked), r.asked)
			}
			want := 0
			if tt.asked < times {
				want = 1
			}
			if len(r.notes) != want || want > 0 && !strings.Contains(r.notes[0], "the server sh has asked too often") {
				t.Errorf("%q", r.notes)
			}
		})
	}
}
