//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/safety/sandbox"
)

// chooses puts settings into the user's folder.
func (w *world) chooses(v any) {
	w.t.Helper()
	w.file(filepath.Join(w.home, "dure", "settings.json"), string(input(v)))
}

// file puts a file somewhere, with the folders above it.
func (w *world) file(path, content string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// told is what a hook has been told last of what it writes down.
func (w *world) told(name string) map[string]any {
	w.t.Helper()
	lines := strings.Split(strings.TrimSpace(w.read(name)), "\n")
	var m map[string]any
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil {
		w.t.Fatalf("%s has %q: %v", name, lines, err)
	}
	return m
}

// guardDog is a hook that forbids whatever has to do with a canary.
const guardDog = `case $(cat) in *canary*) echo no canaries >&2; exit 2;; esac`

// canary is a call that a hook has to prevent, and of which no rule knows.
var canary = script.Call{ID: "c1", Tool: "Bash", Input: input(fields{"command": "touch canary"})}

// bites answers with a canary, and then in peace.
func bites(r script.Request) script.Reply {
	if r.Step == 0 {
		return script.Reply{Calls: []script.Call{canary}}
	}
	return script.Reply{Text: "I could not.", Stop: agent.StopEnd}
}

// Hooks hold on every path on which something can be done: for a person, for a program,
// and for agents in the foreground, in the background and one below the other.
func TestHooksHoldEverywhere(t *testing.T) {
	t.Parallel()
	task := fields{"description": "bite", "prompt": "Bite.", "subagent_type": "dog"}
	behind := fields{"description": "bite", "prompt": "Bite.", "subagent_type": "dog", "run_in_background": true}
	for name, tt := range map[string]struct {
		open  agent.Open
		model script.Options
	}{
		"a person":  {agent.Open{Approver: true}, script.Options{Func: bites}},
		"a program": {agent.Open{}, script.Options{Func: bites}},
		"an agent":  {agent.Open{}, handing(bites, hand("a1", task))},
		"behind":    {agent.Open{}, handing(bites, hand("a1", behind))},
		"two below": {agent.Open{}, handing(func(r script.Request) script.Reply {
			if r.Step > 0 || strings.Contains(r.Last, "really") {
				return bites(r)
			}
			return script.Reply{Calls: []script.Call{hand("b1", fields{"description": "bite", "prompt": "Bite. really", "subagent_type": "dog"})}}
		}, hand("a1", task))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, tt.model)
			w.kind("dog", "---\nname: dog\ndescription: Bites.\n---\nYou bite.\n")
			w.chooses(fields{"permissions": fields{"allow": []string{"Bash", "Agent"}}, "hooks": fields{"PreToolUse": []any{fields{"matcher": "Bash", "hooks": []any{fields{"type": "command", "command": guardDog}}}}}})
			a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
			k := w.talkTo(a, tt.open)
			k.turn("Do the whole.")
			denials := func() int {
				list, err := client.Query[[]agent.DecisionRecord](t.Context(), a.Client(), query.ListDecisions{})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, d := range list {
					if d.Decision.Verdict == agent.Deny && strings.HasPrefix(d.Decision.By, "hook:command case") {
						n++
					}
				}
				return n
			}
			if name == "behind" {
				k.until("the end of the agent", func(e agent.Event) bool { _, ok := e.Body.(agent.ChildEnded); return ok })
			}
			if _, err := os.Stat(filepath.Join(w.work, "canary")); err == nil {
				t.Errorf("the canary is there\n%s", names(k.seen))
			}
			if n := denials(); n != 1 {
				t.Errorf("%d denials by the hook\n%s", n, names(k.seen))
			}
		})
	}
}

// A folder that is not trusted has no hooks, and that is told; trusted, it has.
func TestHooksNeedTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: bites})
	w.file(filepath.Join(w.work, ".dure", "settings.json"), string(input(fields{"hooks": fields{"PreToolUse": "touch ran; " + guardDog}})))
	for _, trusted := range []bool{false, true} {
		a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Trust: trusted, Allow: []string{"Bash"}}))
		k := w.talkTo(a, agent.Open{})
		k.turn("go")
		if ran := w.read("ran") == "" && fileThere(w, "ran"); ran != trusted {
			t.Errorf("trusted %v: ran %v", trusted, ran)
		}
		if left := strings.Join(leftIn(t, a), " "); (left == "hooks") == trusted {
			t.Errorf("trusted %v: left %q", trusted, left)
		}
		k.sound()
	}
}

// fileThere reports whether there is such a file in the workspace. What a confinement
// holds there in the meantime does not count.
func fileThere(w *world, name string) bool {
	info, err := os.Stat(filepath.Join(w.work, name))
	return err == nil && !sandbox.IsHold(info.Mode())
}

// What hooks are told of a call: names as the model knows them, paths that are absolute,
// the structured output.
func TestWhatHooksAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{
				{ID: "r1", Tool: "Read", Input: input(fields{"file_path": "one.txt"})},
				{ID: "b1", Tool: "Bash", Input: input(fields{"command": "echo hi; exit 3"})},
			}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	w.write("one.txt", "1\n")
	down := func(name string) any { return []any{fields{"type": "command", "command": "cat >> " + name}} }
	all := fields{}
	for _, e := range []string{"SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "PostToolBatch", "Stop", "SessionEnd", "AgentIterationStart"} {
		all[e] = []any{fields{"hooks": down(e)}}
	}
	w.chooses(fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": all})
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	k := w.talkTo(a, agent.Open{})
	k.turn("hello")
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ event, want string }{
		{"SessionStart", `source=startup cwd=$WORK model=script`},
		{"UserPromptSubmit", `prompt=hello permission_mode=default`},
		{"PreToolUse", `tool_name=Bash tool_use_id=b1`},
		{"PostToolUse", `tool_name=Read tool_input.file_path=$WORK/one.txt`},
		{"PostToolUseFailure", `tool_name=Bash tool_use_id=b1 is_interrupt=false`},
		{"PostToolBatch", `tool_calls.0.tool_name=Read tool_calls.0.tool_input.file_path=$WORK/one.txt tool_calls.1.tool_name=Bash`},
		{"Stop", `stop_hook_active=false last_assistant_message=done`},
		{"SessionEnd", `reason=other`},
		{"AgentIterationStart", `iteration=2`},
	} {
		told := w.told(tt.event)
		for want := range strings.FieldsSeq(strings.ReplaceAll(tt.want, "$WORK", w.work)) {
			path, value, _ := strings.Cut(want, "=")
			if got := fmt.Sprint(dig(told, path)); got != value {
				t.Errorf("%s: %s is %q, want %q in %v", tt.event, path, got, value, told)
			}
		}
		for _, always := range []string{"session_id", "transcript_path", "hook_event_name"} {
			if told[always] == nil || told[always] == "" {
				t.Errorf("%s has no %s", tt.event, always)
			}
		}
	}
	if r := dig(w.told("PostToolUse"), "tool_response"); fmt.Sprintf("%T", r) != "map[string]interface {}" {
		t.Errorf("tool_response is %T %v", r, r)
	}
}

// dig returns what stands at a path of names and numbers.
func dig(v any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(in) {
				return nil
			}
			v = in[i]
		default:
			return nil
		}
	}
	return v
}

// Hooks make a turn go on eight times, and no more.
func TestHooksStopGoingOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "done", Stop: agent.StopEnd} }})
	w.chooses(fields{"hooks": fields{"Stop": "echo again >&2; exit 2"}})
	k := w.talk(app.Flags{}, agent.Open{})
	if end := k.turn("go"); end.Reason != agent.EndDone || end.Steps != 9 {
		t.Errorf("%s after step %d\n%s", end.Reason, end.Steps, names(k.seen))
	}
	k.sound()
}

// What hooks leave as an environment later commands have, but for what says which
// programs those run: that only the user's own settings permit.
func TestHooksLeaveAnEnvironment(t *testing.T) {
	t.Parallel()
	for _, own := range []bool{false, true} {
		w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
			if r.Step == 0 {
				return script.Reply{Calls: []script.Call{{ID: "b1", Tool: "Bash", Input: input(fields{"command": `echo "$COLOUR $EDITOR"`})}}}
			}
			return script.Reply{Text: "done", Stop: agent.StopEnd}
		}})
		s := fields{"permissions": fields{"allow": []string{"Bash"}}, "hooks": fields{"SessionStart": `printf 'export COLOUR="light blue"\nEDITOR=evil\n' >> "$CLAUDE_ENV_FILE"`}}
		want := "light blue"
		if own {
			s["hookEnvVars"] = []string{"EDITOR"}
			want += " evil"
		}
		w.chooses(s)
		k := w.talk(app.Flags{}, agent.Open{})
		k.turn("go")
		if got := strings.TrimSpace(k.result("b1").Text); got != want {
			t.Errorf("own %v: %q, want %q\n%s", own, got, want, names(k.seen))
		}
		if notes := all[agent.Note](k.seen); (len(notes) == 0) != own {
			t.Errorf("own %v: %v", own, notes)
		}
	}
}

// A request of a hook reaches this machine only if the user's own settings name it, and
// what it answers counts.
func TestHooksAskServers(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("X-Key") != "s3cret" || r.Header.Get("X-Other") != "" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		fmt.Fprint(w, `{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "the server says no"}}`)
	}))
	defer server.Close()
	hook := fields{"PreToolUse": []any{fields{"hooks": []any{fields{
		"type": "http", "url": server.URL + "/ask", "headers": fields{"X-Key": "$KEY", "X-Other": "$PATH"}, "allowedEnvVars": []string{"KEY"},
	}}}}}
	for _, tt := range []struct {
		name       string
		user, repo fields
		asked      int32
	}{
		{"the user's own hook", fields{"hooks": hook}, nil, 1},
		{"a repository's", nil, fields{"hooks": hook}, 0},
		{"a repository's that the user permits", fields{"allowedHttpHookUrls": []string{server.URL + "/*"}}, fields{"hooks": hook}, 1},
		{"a repository's that permits itself", nil, fields{"hooks": hook, "allowedHttpHookUrls": []string{server.URL + "/*"}}, 0},
		{"one that is not on the list", fields{"hooks": hook, "allowedHttpHookUrls": []string{"https://other.example/*"}}, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked.Store(0)
			w := newWorld(t, script.Script{}, script.Options{Func: bites})
			w.chooses(tt.user)
			if tt.repo != nil {
				w.file(filepath.Join(w.work, ".dure", "settings.json"), string(input(tt.repo)))
			}
			how := options(w.work, w.home, w.model.URL(), app.Flags{Trust: true, Allow: []string{"Bash"}})
			how.Environ = append(how.Environ, "KEY=s3cret")
			k := w.talkWith(how, agent.Open{})
			k.turn("go")
			if n := asked.Load(); n != tt.asked {
				t.Errorf("asked %d times, want %d\n%s", n, tt.asked, names(k.seen))
			}
			if there := fileThere(w, "canary"); there != (tt.asked == 0) {
				t.Errorf("the canary is there: %v", there)
			}
		})
	}
}

// Hooks that are written while a session runs hold from the next step, and a hook may
// keep a session from what has changed.
func TestHooksAreReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "bite") {
			c := canary
			c.ID = fmt.Sprint("c", r.Step)
			return script.Reply{Calls: []script.Call{c}}
		}
		return script.Reply{Text: "done", Stop: agent.StopEnd}
	}})
	allow := fields{"allow": []string{"Bash"}}
	w.chooses(fields{"permissions": allow})
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("bite")
	if !fileThere(w, "canary") {
		t.Fatal("nothing was to forbid it")
	}
	_ = os.Remove(filepath.Join(w.work, "canary"))
	held := fields{"PreToolUse": guardDog, "ConfigChange": "echo not now >&2; exit 2"}
	w.chooses(fields{"permissions": allow, "hooks": held})
	k.turn("bite")
	if fileThere(w, "canary") {
		t.Fatalf("the new hook does not hold\n%s", names(k.seen))
	}
	w.chooses(fields{"permissions": allow})
	k.turn("bite")
	if fileThere(w, "canary") {
		t.Errorf("what a hook keeps away was taken over\n%s", names(k.seen))
	}
	k.sound()
}

// Files that hooks watch are told of, and what a hook does to such a file itself is not.
func TestHooksWatchFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "done", Stop: agent.StopEnd} }})
	w.write("a.txt", "1")
	w.chooses(fields{"hooks": fields{
		"SessionStart": `echo '{"hookSpecificOutput": {"hookEventName": "SessionStart", "watchPaths": ["sub/b.txt"]}}'`,
		"FileChanged": []any{
			fields{"matcher": "a.txt|b.txt", "hooks": []any{fields{"type": "command", "command": "cat >> changes; echo 2 > a.txt"}}},
		},
	}})
	if err := os.Mkdir(filepath.Join(w.work, "sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn("go")
	writes := 0
	tick := time.NewTicker(time.Second) // a change while hooks are told is taken for theirs
	defer tick.Stop()
	for _, path := range []string{"a.txt", "sub/b.txt"} {
		end := time.Now().Add(patience)
		for told := false; !told; {
			if time.Now().After(end) {
				t.Fatalf("nobody was told of %s: %s", path, w.read("changes"))
			}
			writes++
			w.write(path, strings.Repeat("x", writes))
			<-tick.C
			told = strings.Contains(w.read("changes"), `"file_path":"`+filepath.Join(w.work, path)+`"`)
		}
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(w.read("changes"), "\n"); n > writes {
		t.Errorf("%d changes were told of, and %d made: hooks hear of themselves", n, writes)
	}
}

// leftIn returns what the working folder brings and is not in force.
func leftIn(t *testing.T, a *app.App) []string {
	t.Helper()
	left, err := client.Query[[]string](t.Context(), a.Client(), query.ListLeft{})
	if err != nil {
		t.Error(err)
	}
	return left
}
