//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// A hookRow is a line of testdata/hooks.txt: what hooks of an event do, and what comes of
// it.
type hookRow struct {
	line  int
	scene string
	hooks []string
	want  string
}

// A hookScene is what the model says in a run, and how the program is run.
type hookScene struct {
	replies []script.Reply
	args    []string
	again   []string          // of a second run; nil = there is none
	env     []string          // beside the usual
	files   map[string]string // of the workspace
	input   string            // what a person types; "" = nobody is there
	awaits  bool              // the model waits for an agent that works in the background

	// meanwhile is done once the model is asked for the first time, before it answers.
	meanwhile func(t *testing.T, w *hookWorld)
}

// hookScenes are the runs, by what the headings of the table say.
func hookScenes() map[string]hookScene {
	call := func(tool, input string) []script.Reply {
		return []script.Reply{{Calls: []script.Call{{ID: "call_1", Tool: tool, Input: json.RawMessage(input)}}}, {Text: "DONE"}, {Text: "DONE"}, {Text: "DONE"}}
	}
	says := slices.Repeat([]script.Reply{{Text: "DONE"}}, 12)
	long := slices.Repeat([]script.Reply{{Text: "DONE" + strings.Repeat(" and so on", 2000), Chunk: 20_000}}, 12)
	allowed := []string{"-p", "--allow", "Bash", "--allow", "Write", "TASK"}
	touch := call("Bash", `{"command": "touch made; echo RESULT"}`)
	bash := func(id, command string) script.Call {
		return script.Call{ID: id, Tool: "Bash", Input: json.RawMessage(`{"command": "` + command + `"}`)}
	}
	twice := append([]script.Reply{{Calls: []script.Call{bash("call_1", "touch made"), bash("call_2", "touch other")}}}, says[:4]...)
	oneByOne := append([]script.Reply{{Calls: []script.Call{bash("call_1", "touch made")}}, {Calls: []script.Call{bash("call_2", "touch other")}}}, says[:4]...)
	agents := append([]script.Reply{{When: "CHILDTASK", Text: "FOUND"}, {When: "ERR", Text: "FOUND"}, {When: "WHY", Text: "FOUND"}},
		call("Agent", `{"description": "Look", "prompt": "CHILDTASK", "subagent_type": "general-purpose"}`)...)
	// Who has said that one folder is trusted has said so of that one.
	hostile := map[string]string{
		".dure/settings.json":       `{"hooks": {"SessionStart": [{"matcher": "resume", "hooks": [{"type": "command", "command": "touch other"}]}]}}`,
		"below/.dure/settings.json": `{"hooks": {"SessionStart": "touch made", "UserPromptSubmit": "touch made"}}`,
	}
	all := map[string]hookScene{
		"a chat":                          {replies: says, args: []string{"--interactive"}, input: "TASK\n/quit\n"},
		"a chat, another model":           {replies: says, args: []string{"--interactive"}, input: "/model other\nTASK\n/quit\n"},
		"a chat, shortened":               {replies: long, args: []string{"--interactive"}, input: "TASK\nTASK\nTASK\nTASK\n/compact\nTASK\n/quit\n"},
		"a chat, elsewhere":               {replies: says, args: []string{"--interactive"}, input: "/cd below\nTASK\n/quit\n", files: map[string]string{"below/empty": ""}},
		"a chat, elsewhere and back":      {replies: says, args: []string{"--interactive"}, input: "/cd below\nTASK\n/cd ..\nTASK\n/quit\n", files: map[string]string{"below/empty": ""}},
		"a chat, one more folder":         {replies: says, args: []string{"--interactive"}, input: "/add-dir ../home\nTASK\n/quit\n"},
		"a chat, trusted, elsewhere":      {replies: says, args: []string{"--interactive", "--trust"}, input: "/cd below\nTASK\n/cd ..\nTASK\n/quit\n", files: hostile},
		"a chat, bypassing, elsewhere":    {replies: says, args: []string{"--interactive", "--dangerously-skip-permissions"}, input: "/cd below\nTASK\n/cd ..\nTASK\n/quit\n", files: hostile},
		"a chat, begun anew":              {replies: says, args: []string{"--interactive"}, input: "TASK\n/clear\nTASK\n/quit\n"},
		"a chat, no such folder":          {replies: says, args: []string{"--interactive"}, input: "/add-dir nowhere\n/cd nowhere\nTASK\n/quit\n"},
		"a chat, asked":                   {replies: touch, args: []string{"--interactive"}, input: "TASK\nn\n/quit\n"},
		"words, made ready":               {replies: says, args: []string{"--init", "-p", "TASK"}},
		"words, put in order":             {replies: says, args: []string{"--maintenance", "-p", "TASK"}},
		"nothing but making ready":        {replies: says, args: []string{"--init-only"}},
		"a change of settings":            {replies: touch, args: allowed, meanwhile: settingsChange},
		"a file that is made":             {replies: call("Bash", `{"command": "touch new; sleep 1"}`), args: allowed},
		"a file that changes":             {replies: call("Bash", `{"command": "echo more >> new; sleep 1"}`), args: allowed, files: map[string]string{"new": "x"}},
		"a file that goes":                {replies: call("Bash", `{"command": "rm new; sleep 1"}`), args: allowed, files: map[string]string{"new": "x"}},
		"words, with time at the end":     {replies: says, args: []string{"-p", "TASK"}, env: []string{"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=20000"}},
		"words, with no time at the end":  {replies: says, args: []string{"-p", "TASK"}, env: []string{"CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS=1"}},
		"an agent":                        {replies: agents, args: allowed},
		"a command":                       {replies: touch, args: allowed},
		"a command, to be asked about":    {replies: touch, args: []string{"-p", "TASK"}},
		"a command, gone on with":         {replies: touch, args: allowed, again: []string{"-p", "--allow", "Bash", "-c"}},
		"two commands":                    {replies: twice, args: allowed},
		"two commands, to be asked about": {replies: oneByOne, args: []string{"-p", "TASK"}},
		"a command, told as JSON":         {replies: touch, args: []string{"-p", "--output-format", "json", "--allow", "Bash", "TASK"}},
		"a command, denied by a rule":     {replies: touch, args: []string{"-p", "--deny", "Bash(touch *)", "TASK"}},
		"a command that fails":            {replies: call("Bash", `{"command": "touch made; exit 3"}`), args: allowed},
		"a file":                          {replies: call("Write", `{"file_path": "made", "content": "x"}`), args: allowed},
		"tasks":                           {replies: call("TodoWrite", `{"todos": [{"content": "T1", "status": "in_progress", "activeForm": "T1"}]}`), args: allowed},
		"words":                           {replies: says, args: []string{"-p", "TASK"}},
		"an error":                        {replies: []script.Reply{{Faults: []script.Fault{{Kind: script.Status, Status: 400}}}}, args: []string{"-p", "TASK"}},
		"instructions":                    {replies: says, args: []string{"-p", "TASK"}, files: map[string]string{"AGENTS.md": "Be kind.\n"}},
	}
	maps.Copy(all, serverScenes())
	maps.Copy(all, mateScenes())
	return all
}

// worker is where a result names an agent that works in the background.
var worker = regexp.MustCompile(`in the background as (child:[0-9a-z-]+)`)

// says has the model wait for the agent that it is told of, and say the replies otherwise;
// nil = it says the replies.
func (s hookScene) says(replies []script.Reply) func(script.Request) script.Reply {
	if !s.awaits {
		return nil
	}
	return func(r script.Request) script.Reply {
		if m := worker.FindStringSubmatch(r.Last); m != nil {
			input := json.RawMessage(`{"task_id": "` + m[1] + `", "block": true, "timeout": 600000}`)
			return script.Reply{Calls: []script.Call{{ID: "call_wait", Tool: "TaskOutput", Input: input}}}
		}
		var queue []script.Reply
		for _, reply := range replies {
			if reply.When == "" {
				queue = append(queue, reply)
			} else if strings.Contains(r.Last, reply.When) {
				return reply
			}
		}
		return queue[min(r.Step, len(queue)-1)]
	}
}

// mateScenes are runs in which an agent works in the background.
func mateScenes() map[string]hookScene {
	todo := func(id, status string) []script.Call {
		return []script.Call{{ID: id, Tool: "TodoWrite", Input: json.RawMessage(`{"todos": [{"content": "T1", "status": "` + status + `", "activeForm": "T1"}]}`)}}
	}
	hand := func(later bool) []script.Reply {
		return append([]script.Reply{{Calls: []script.Call{{ID: "call_1", Tool: "Agent", Input: json.RawMessage(
			`{"description": "Look", "prompt": "CHILDTASK", "subagent_type": "general-purpose", "run_in_background": ` + strconv.FormatBool(later) + `}`,
		)}}}}, slices.Repeat([]script.Reply{{Text: "DONE"}}, 8)...)
	}
	finds := []script.Reply{{When: "CHILDTASK", Text: "FOUND"}, {When: "ERR", Text: "FOUND"}, {When: "WHY", Text: "FOUND"}}
	tasks := []script.Reply{{When: "CHILDTASK", Calls: todo("call_t1", "in_progress")}, {When: "1 in progress", Calls: todo("call_t2", "completed")}, {When: "1 completed", Text: "FOUND"}}
	args := []string{"-p", "--allow", "Agent", "TASK"}
	return map[string]hookScene{
		"an agent that is waited for": {replies: append(slices.Clone(finds), hand(false)...), args: args},
		"an agent beside":             {replies: append(slices.Clone(finds), hand(true)...), args: args, awaits: true},
		"an agent with tasks":         {replies: append(slices.Clone(tasks), hand(false)...), args: args},
		"an agent beside with tasks":  {replies: append(slices.Clone(tasks), hand(true)...), args: args, awaits: true},
	}
}

// settingsChange changes the user's settings, and nothing that they say.
func settingsChange(t *testing.T, w *hookWorld) {
	path := filepath.Join(w.root, "dure", "settings.json")
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, append(data, ' ', '\n'), 0o600)
	}
	if err != nil {
		t.Error(err)
	}
}

// ahead is a server that has something done before its first answer, and answers as another.
func ahead(t *testing.T, address string, do func()) (url string) {
	t.Helper()
	to, err := neturl.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	pass := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		once.Do(do)
		pass.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// The effects of hooks on the program itself, with processes, servers and a model of which
// the script is known: of the first row of each event and every 60th of the others, or
// of all.
func TestHookEffects(t *testing.T) {
	t.Parallel()
	scenes := hookScenes()
	last := ""
	for _, r := range prooftest.Sample(t, readHookRows(t), 60, func(r hookRow) bool {
		event, _, _ := strings.Cut(r.scene, ": ")
		first := event != last
		last = event
		return first
	}) {
		t.Run(fmt.Sprintf("%03d %.60s", r.line, r.scene+" "+strings.Join(r.hooks, " + ")), func(t *testing.T) {
			t.Parallel()
			event, name, _ := strings.Cut(r.scene, ": ")
			scene, ok := scenes[name]
			if !ok {
				t.Fatalf("testdata/hooks.txt:%d: there is no scene %q", r.line, name)
			}
			if got := runHookRow(t, event, scene, r); !slices.Contains(strings.Split(r.want, " or "), got) {
				t.Errorf("testdata/hooks.txt:%d: %s, %s\n got %s\nwant %s", r.line, r.scene, strings.Join(r.hooks, " + "), got, r.want)
			}
		})
	}
}

func readHookRows(t *testing.T) (rows []hookRow) {
	t.Helper()
	data, err := os.ReadFile("testdata/hooks.txt")
	if err != nil {
		t.Fatal(err)
	}
	scene := ""
	n := 0
	for l := range strings.Lines(string(data)) {
		n++
		l = strings.TrimSpace(l)
		if heading, ok := strings.CutPrefix(l, "== "); ok {
			scene = heading
		}
		hooks, want, ok := strings.Cut(l, " => ")
		if !ok || strings.HasPrefix(l, "#") {
			continue
		}
		rows = append(rows, hookRow{n, scene, strings.Split(strings.TrimSpace(hooks), "  +  "), strings.TrimSpace(want)})
	}
	return rows
}

// A hookWorld is the place of one run.
type hookWorld struct {
	root, work string
	event      string
	model      []script.Reply // beside those of the scene

	mu     sync.Mutex
	posted []string
}

func runHookRow(t *testing.T, event string, scene hookScene, r hookRow) string {
	w := &hookWorld{root: t.TempDir(), event: event}
	w.work = filepath.Join(w.root, "work")
	var groups []any
	for i, h := range r.hooks {
		matcher, hook := w.hook(t, i, h)
		group := map[string]any{"hooks": []any{hook}}
		if matcher != "" {
			group["matcher"] = matcher
		}
		groups = append(groups, group)
	}
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{event: groups}})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"dure/settings.json": string(settings), "home/empty": "", "work/empty": ""}
	for name, text := range scene.files {
		files["work/"+name] = text
	}
	for name, text := range files {
		path := filepath.Join(w.root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := append(w.model, scene.replies...)
	srv, err := script.NewServer(script.Script{ByStep: true, Replies: all}, script.Options{Func: scene.says(all)})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	url := srv.URL()
	if scene.meanwhile != nil {
		url = ahead(t, url, func() { scene.meanwhile(t, w) })
	}
	code, shown := w.run(t, url, scene.args, scene)
	if scene.again != nil {
		var more string
		code, more = w.run(t, url, scene.again, scene)
		shown += more
	}
	return w.effects(t, srv.Requests(), code, shown, scene.awaits)
}

// run runs the program and returns its exit code and what a person sees.
func (w *hookWorld) run(t *testing.T, url string, args []string, scene hookScene) (code int, shown string) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command("dure", args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.work, &out, &errs
	if scene.input != "" {
		cmd.Stdin = strings.NewReader(scene.input)
	}
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(w.root, "home"), "DURE_HOME=" + filepath.Join(w.root, "dure"), "LANG=C.UTF-8",
		"GORACE=" + atOnce, "ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script",
	}
	cmd.Env = append(cmd.Env, scene.env...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	_ = cmd.Wait()
	if m := trace.FindString(errs.String()); m != "" {
		t.Errorf("standard error holds %q", m)
	}
	t.Logf("%s%s", out.String(), errs.String())
	return cmd.ProcessState.ExitCode(), out.String() + errs.String()
}

// hook reads what a hook does: clauses that stand for the lines of its program, in their
// order, and others for what is defined.
func (w *hookWorld) hook(t *testing.T, n int, text string) (matcher string, hook map[string]any) {
	t.Helper()
	hook = map[string]any{"type": "command"}
	lines := []string{fmt.Sprintf("# %d", n), "cat > told"}
	if n > 0 {
		lines[1] = "cat > /dev/null"
	}
	last := ""
	printed := func(s string) string { return "printf %s '" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	for clause := range strings.SplitSeq(text, "; ") {
		verb, rest, _ := strings.Cut(strings.TrimSpace(clause), " ")
		switch verb {
		case "exit":
			last = clause
		case "out":
			lines = append(lines, printed(rest))
		case "hso":
			lines = append(lines, printed(w.specific(rest)))
		case "err":
			lines = append(lines, printed(rest)+" >&2")
		case "run":
			lines = append(lines, rest)
		case "sleep":
			lines = append(lines, clause)
		case "once": // until the turn goes on because of it
			lines = append(lines, `if grep -q '"stop_hook_active":true' told; then exit 0; fi`)
		case "match":
			matcher = rest
		case "set":
			if err := json.Unmarshal([]byte(rest), &hook); err != nil {
				t.Fatalf("%s: %v", clause, err)
			}
		case "http":
			status, body, _ := strings.Cut(rest, " ")
			hook["type"], hook["url"] = "http", w.serve(t, status, body)
		case "mcp":
			tool, says, _ := strings.Cut(rest, " ")
			if fields, ok := strings.CutPrefix(says, "hso "); ok {
				says = w.specific(fields)
			}
			hook["type"], hook["server"], hook["tool"], hook["input"] = "mcp_tool", "sh", tool, map[string]any{"say": says}
		case "ask", "agent":
			hook["type"], hook["prompt"] = map[string]string{"ask": "prompt", "agent": "agent"}[verb], "Judge.\nJUDGE "+strconv.Itoa(n)+" $ARGUMENTS" // the first line is the name of the hook
			w.model = append(w.model, script.Reply{When: "JUDGE " + strconv.Itoa(n), Text: rest})
		default:
			t.Fatalf("%q says nothing about a hook", clause)
		}
	}
	if hook["type"] == "command" {
		hook["command"] = strings.TrimSpace(strings.Join(append(lines, last), "\n"))
	}
	return matcher, hook
}

// specific is an answer with a part for the event.
func (w *hookWorld) specific(fields string) string {
	return `{"hookSpecificOutput":{"hookEventName":"` + w.event + `",` + strings.TrimPrefix(fields, "{") + "}"
}

// serve starts a server that answers with a status and a body; hso as in hooks.
func (w *hookWorld) serve(t *testing.T, status, body string) (url string) {
	t.Helper()
	code, err := strconv.Atoi(status)
	if err != nil {
		t.Fatal(err)
	}
	if fields, ok := strings.CutPrefix(body, "hso "); ok {
		body = w.specific(fields)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		told, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.posted = append(w.posted, string(told))
		w.mu.Unlock()
		if code == 0 { // it never answers
			<-r.Context().Done()
			return
		}
		rw.WriteHeader(code)
		_, _ = io.WriteString(rw, body)
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// word is what hooks say in the table: somebody reads it, or nobody.
var word = regexp.MustCompile(`\b(WHY|ERR|OUT|CTX|SAY|END|NEW|MINE)\d?\b`)

func words(s string) (all []string) {
	all = word.FindAllString(s, -1)
	slices.Sort(all)
	return slices.Compact(all)
}

// ofAgent is what requests of agents say that others have handed something to.
const ofAgent = "You work on one task that another agent has handed to you"

// effects says what came of a run, in one line; beside: of the agent in the background.
func (w *hookWorld) effects(t *testing.T, requests []script.Recorded, code int, shown string, beside bool) string {
	t.Helper()
	var got []string
	add := func(ok bool, format string, args ...any) {
		if ok {
			got = append(got, fmt.Sprintf(format, args...))
		}
	}
	for _, name := range []string{"made", "other"} {
		_, err := os.Stat(filepath.Join(w.work, name))
		_, below := os.Stat(filepath.Join(w.work, "below", name))
		add(err == nil || below == nil, "%s", name)
	}
	var model strings.Builder
	asked := 0
	for _, r := range requests {
		body := strings.ReplaceAll(string(r.Body), `\n`, " ")
		if strings.Contains(body, "You decide on behalf of the user") { // it is a hook that asks
			continue
		}
		if !beside || strings.Contains(body, ofAgent) {
			asked++
		}
		model.WriteString(body)
	}
	add(asked != 0, "%d asked", asked)
	reads := words(model.String())
	add(len(reads) > 0, "model reads %s", strings.Join(reads, " "))
	var outcomes, turns, holds []string
	dropped := false
	for _, e := range w.events(t) {
		switch b := e.Body.(type) {
		case agent.HookRan:
			shown += " " + b.Message
			if b.Outcome != agent.HookPassed {
				outcomes = append(outcomes, string(b.Outcome))
			}
		case agent.TurnEnded:
			if b.Reason != agent.EndDone && (b.Reason != agent.EndInterrupted || !beside) {
				turns = append(turns, "turn "+string(b.Reason))
			}
		case agent.InputDropped:
			dropped = true
		case agent.CallDeferred:
			holds = append(holds, "put aside")
		case agent.RulesGranted:
			holds = append(holds, "grants "+b.Remember+" "+strings.Join(b.Rules, " "))
		case agent.SettingsChanged:
			if strings.HasPrefix(b.By, "hook:") && b.Mode != "" {
				holds = append(holds, "mode "+string(b.Mode))
			}
		}
	}
	sees := words(shown)
	add(len(sees) > 0, "person reads %s", strings.Join(sees, " "))
	slices.Sort(outcomes) // hooks end in any order
	for outcome, n := range runsOf(outcomes) {
		add(n == 1, "%s", outcome)
		add(n > 1, "%s %d times", outcome, n)
	}
	add(dropped, "input dropped")
	got = append(got, holds...)
	got = append(got, turns...)
	add(code != 0, "exit %d", code)
	if got == nil {
		return "nothing"
	}
	return strings.Join(got, ", ")
}

// runsOf yields the values of a sorted list, and how often each is there.
func runsOf(list []string) iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && list[n] == list[0] {
				n++
			}
			if !yield(list[0], n) {
				return
			}
			list = list[n:]
		}
	}
}

// events are those of all sessions of the run.
func (w *hookWorld) events(t *testing.T) (all []agent.Event) {
	t.Helper()
	logs, err := filepath.Glob(filepath.Join(w.root, "dure", "sessions", "*", "*", "log.*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range logs {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for l := range strings.Lines(string(data)) {
			var e agent.Event
			if err := json.Unmarshal([]byte(l), &e); err != nil {
				t.Fatalf("%s: %v", l, err)
			}
			all = append(all, e)
		}
	}
	return all
}
