//go:build unix

package app_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// askingServer is a program that asks something before it answers a call, and answers with
// what it was told.
func askingServer(method, params string) string {
	asks := `printf '%s\n' '{"jsonrpc":"2.0","id":"q","method":"` + method + `","params":` + params + `}'
    read -r said
    said=$(printf '%s' "$said" | tr -d '"\\')
    answer '{"content":[{"type":"text","text":"TOLD '"$said"'"}]}' ;;`
	return strings.Replace(echoes(), `answer '{"content":[{"type":"text","text":"the server has heard it"}]}' ;;`, asks, 1)
}

// form asks for a name, a number and one of several words.
const form = `{"mode":"form","message":"Who are you?","requestedSchema":{"type":"object","required":["name"],"properties":{` +
	`"name":{"type":"string","title":"Name"},"age":{"type":"integer","default":7},"colour":{"type":"string","enum":["red","green","blue","grey","black"]}}}}`

// asked has a server called that asks, and returns what it was told, and what the person
// was asked. Answers has what they answer to the questions that have a line which begins
// with one of its keys.
func asked(t *testing.T, server string, f app.Flags, settings string, answers map[string]string) (told string, questions []string, k *talk) {
	t.Helper()
	w := newWorld(t, distinct(calls(tool("mcp__sh__echo", fields{"text": "hello"})), script.Reply{When: "2+2", Text: "FOUR"}, script.Reply{Text: "Done."}), script.Options{})
	w.write("server.sh", server)
	if settings != "" {
		path := filepath.Join(w.home, "dure", "settings.json")
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.Servers = []string{`{"mcpServers": {"sh": {"command": "sh", "args": ["server.sh"]}}}`}
	f.Allow = append(f.Allow, "mcp__sh__echo")
	k = w.talkTo(w.program(options(w.work, w.home, w.model.URL(), f)), agent.Open{Approver: answers != nil})
	if s := k.server(); s.State != "connected" {
		t.Fatalf("%+v", s)
	}
	k.answer("Echo", answering(t, answers, &questions))
	for _, r := range all[agent.CallFinished](k.seen) {
		if r.Tool == "mcp__sh__echo" {
			told = r.Result.Text
		}
	}
	return told, questions, k
}

// answering answers questions of servers, and notes them.
func answering(t *testing.T, answers map[string]string, asked *[]string) func(agent.ApprovalAsked) agent.Resolve {
	t.Helper()
	return func(a agent.ApprovalAsked) agent.Resolve {
		d := agent.Decision{Verdict: agent.Allow, By: "user"}
		var in map[string]json.RawMessage
		var list []struct{ Question string }
		if err := json.Unmarshal(a.Proposal.Call.Input, &in); err != nil || a.Proposal.Call.Tool != "user__ask" {
			t.Fatalf("%+v, %v", a.Proposal, err)
		}
		if err := json.Unmarshal(in["questions"], &list); err != nil {
			t.Fatal(err)
		}
		said := map[string]string{}
		for _, q := range list {
			*asked = append(*asked, q.Question)
			for _, key := range slices.Sorted(maps.Keys(answers)) {
				if strings.HasPrefix(q.Question, key) || strings.Contains(q.Question, "\n"+key) {
					said[q.Question] = answers[key]
				}
			}
		}
		in["answers"], _ = json.Marshal(said)
		d.Input, _ = json.Marshal(in)
		return agent.Resolve{ID: a.ID, Decision: d}
	}
}

// A question of a server to the model that the person agrees to is in the log.
func TestServersAskTheModel(t *testing.T) {
	t.Parallel()
	const question = `{"messages":[{"role":"user","content":{"type":"text","text":"2+2?"}}],"maxTokens":20}`
	told, questions, k := asked(t, askingServer("sampling/createMessage", question), app.Flags{}, "", map[string]string{"2+2": "This once"})
	n := 0
	for _, r := range all[agent.ModelAnswered](k.seen) {
		if r.Purpose == "mcp" {
			n++
		}
	}
	if !strings.Contains(told, "FOUR") || len(questions) != 1 || n != 1 {
		t.Errorf("told %s; asked %q; %d answers in the log", told, questions, n)
	}
}

// hooking are settings with one hook.
func hooking(event string, hook map[string]any) string {
	data, err := json.Marshal(map[string]any{"hooks": map[string]any{event: []any{map[string]any{"hooks": []any{hook}}}}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

// Hooks answer what servers ask, or forbid it, and see the answers of the person.
func TestHooksOnWhatServersAsk(t *testing.T) {
	t.Parallel()
	yes := map[string]string{"Who are you?": "Answer", "Name (name)": "Ada", "age": "36", "colour": "red"}
	says := func(event, fields string) string {
		return `printf %s '{"hookSpecificOutput":{"hookEventName":"` + event + `",` + fields + `}}'`
	}
	for name, tt := range map[string]struct {
		event, command string
		answers        map[string]string
		want           string
		asked          bool
	}{
		"answers":         {"Elicitation", says("Elicitation", `"action":"accept","content":{"name":"HOOK"}`), yes, "{action:accept,content:{age:7,name:HOOK}}", false},
		"answers alone":   {"Elicitation", says("Elicitation", `"action":"accept","content":{"name":"HOOK"}`), nil, "{action:accept,content:{age:7,name:HOOK}}", false},
		"cancels":         {"Elicitation", says("Elicitation", `"action":"cancel"`), yes, "{action:cancel}", false},
		"forbids":         {"Elicitation", "exit 2", yes, "{action:decline}", false},
		"is told":         {"Elicitation", `grep '"mcp_server_name":"sh"' | grep '"mode":"form"' | grep -q requested_schema && exit 2; exit 0`, yes, "{action:decline}", false},
		"leaves it":       {"Elicitation", "exit 0", yes, "name:Ada", true},
		"forbids later":   {"ElicitationResult", "exit 2", yes, "{action:decline}", true},
		"answers later":   {"ElicitationResult", says("ElicitationResult", `"action":"accept","content":{"name":"HOOK"}`), yes, "name:HOOK", true},
		"is told later":   {"ElicitationResult", `grep '"action":"accept"' | grep -q '"name":"Ada"' && exit 2; exit 0`, yes, "{action:decline}", true},
		"not of the tool": {"PreToolUse", `grep -q AskUserQuestion && exit 2; exit 0`, yes, "name:Ada", true},
	} {
		t.Run(name, func(t *testing.T) {
			told, questions, _ := asked(t, askingServer("elicitation/create", form), app.Flags{}, hooking(tt.event, map[string]any{"type": "command", "command": tt.command}), tt.answers)
			if !strings.Contains(told, tt.want) || (len(questions) > 0) != tt.asked {
				t.Errorf("told %s, want %s; asked %q", told, tt.want, questions)
			}
		})
	}
}

// Hooks of calls are told whose tool it is, and call tools of servers that are connected.
func TestHooksAndServers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		hook    map[string]any
		outcome agent.HookOutcome
		calls   int // of the tool
	}{
		"whose tool":         {map[string]any{"type": "command", "command": `grep -q '"mcp_server":{"name":"sh","source":"given"}' || exit 2`}, agent.HookPassed, 1},
		"a tool of a server": {map[string]any{"type": "mcp_tool", "server": "sh", "tool": "echo", "input": map[string]any{"text": "${tool_name}"}}, agent.HookPassed, 2},
		"no such server":     {map[string]any{"type": "mcp_tool", "server": "other", "tool": "echo"}, agent.HookFailed, 1},
		"no such tool":       {map[string]any{"type": "mcp_tool", "server": "sh", "tool": "other"}, agent.HookFailed, 1},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, k := asked(t, echoes(), app.Flags{}, hooking("PreToolUse", tt.hook), nil)
			n := 0
			for _, c := range all[agent.CallFinished](k.seen) {
				if c.Tool == "mcp__sh__echo" && !c.Result.Failed() {
					n++
				}
			}
			ran := all[agent.HookRan](k.seen)
			if len(ran) != 1 || ran[0].Outcome != tt.outcome || n != tt.calls {
				t.Errorf("%d calls, and %+v", n, ran)
			}
		})
	}
}

// A tool that a hook calls brings about no hook: what it asks is declined.
func TestHooksBringAboutNoHooks(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(map[string]any{"hooks": map[string]any{
		"PreToolUse":  []any{map[string]any{"hooks": []any{map[string]any{"type": "mcp_tool", "server": "sh", "tool": "echo"}}}},
		"Elicitation": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": "exit 0"}}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	_, questions, k := asked(t, askingServer("elicitation/create", form), app.Flags{}, string(data), map[string]string{"Who are you?": "Decline"})
	n := map[string]int{}
	for _, r := range all[agent.HookRan](k.seen) {
		n[r.Event]++
	}
	if n["PreToolUse"] != 1 || n["Elicitation"] != 1 || len(questions) != 1 {
		t.Errorf("hooks ran %v, and a person was asked %q", n, questions)
	}
}

// Folders that hold keys are told of when they are added to the workspace.
func TestFoldersWithKeysAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{Replies: []script.Reply{{Text: "Done."}}}, script.Options{})
	keys, plain, beside := filepath.Join(w.home, ".ssh"), filepath.Join(filepath.Dir(w.work), "other"), filepath.Join(w.work, "link")
	for _, dir := range []string{keys, plain} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(keys, beside); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{keys: true, beside: true, w.home: true, filepath.Dir(w.home): true, plain: false} {
		told := false
		for _, n := range w.program(options(w.work, w.home, w.model.URL(), app.Flags{AddDirs: []string{dir}})).Config().Notes {
			told = told || n.Code == "folders" && strings.Contains(n.Text, dir)
		}
		if told != want {
			t.Errorf("%s: told %v", dir, told)
		}
	}
}
