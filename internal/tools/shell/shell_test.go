//go:build unix

package shell

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

var testEnv = []string{
	"PATH=" + os.Getenv("PATH"), "HOME=/nowhere", "GREETING=hello", "FORCE_COLOR=1", "OPENAI_API_KEY=x",
}

func newShell(t testing.TB) []agent.Tool {
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { box.Close() })
	return New(Config{Box: box, Env: testEnv, Path: "/bin/sh"}).Tools()
}

func call(tool agent.Tool, input string) agent.Call {
	return agent.Call{ID: "c1", Tool: tool.Spec().Name, Input: json.RawMessage(input)}
}

// runTool runs a call and returns the result with its stream read into Text.
func runTool(t *testing.T, ctx context.Context, tool agent.Tool, workdir, input string) agent.Result {
	t.Helper()
	r, err := tool.Run(ctx, agent.ToolContext{Workdir: workdir, InstanceKey: "s1"}, call(tool, input))
	if err != nil {
		t.Fatal(err)
	}
	if r.Stream != nil {
		b, err := io.ReadAll(r.Stream)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Stream.Close(); err != nil {
			t.Fatal(err)
		}
		r.Text, r.Stream = string(b), nil
	}
	return r
}

func TestBash(t *testing.T) {
	bash := newShell(t)[0]
	dir := t.TempDir()
	for _, tt := range []struct {
		name, input, text, output string
		code                      agent.ErrorCode
	}{
		{
			name: "output", input: `{"command":"echo hi; echo oops >&2"}`,
			text: "hi\noops", output: `{"stdout":"hi\noops\n","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "silence", input: `{"command":"true"}`,
			text: "[no output]", output: `{"stdout":"","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "exit code", input: `{"command":"echo no; exit 3"}`, code: agent.ErrTool,
			text: "no\nexit code 3", output: `{"stdout":"no\n","stderr":"","interrupted":false,"exitCode":3}`,
		},
		{
			name: "signal", input: `{"command":"kill -s SEGV $$"}`, code: agent.ErrTool,
			text: "exit code 139 (SIGSEGV)", output: `{"stdout":"","stderr":"","interrupted":false,"exitCode":139}`,
		},
		{
			name: "timeout", input: `{"command":"echo begun; sleep 60","timeout":100}`, code: agent.ErrTimeout,
			text:   "begun\nThe command took longer than 100ms and was stopped, with everything it had started.\nGive it a longer timeout (at most 600000 ms), or do less at once.",
			output: `{"stdout":"begun\n","stderr":"","interrupted":true,"exitCode":143}`,
		},
		{
			name: "left in the background", input: `{"command":"sleep 60 & echo go"}`,
			text:   "go\n[what it left running in the background was stopped]",
			output: `{"stdout":"go\n","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "folder", input: `{"command":"pwd; echo $PWD"}`, text: dir + "\n" + dir,
			output: `{"stdout":"` + dir + `\n` + dir + `\n","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "environment", input: `{"command":"echo $GREETING $DURE $TERM $GIT_PAGER $FORCE_COLOR $OPENAI_API_KEY $DURE_IDEMPOTENCY_KEY"}`,
			text: "hello 1 dumb cat key1", output: `{"stdout":"hello 1 dumb cat key1\n","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "terminal", input: `{"command":"[ -t 0 ] && [ -t 1 ] && stty size; echo $TERM >&2","pty":true}`,
			text: "40 120\r\nxterm-256color", output: `{"stdout":"40 120\r\nxterm-256color\r\n","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{
			name: "output that is no text", input: `{"command":"printf 'a\\377b'"}`,
			text: "a\xffb", output: `{"stdout":"a\ufffdb","stderr":"","interrupted":false,"exitCode":0}`,
		},
		{name: "empty", input: `{"command":"  "}`, code: agent.ErrInput, text: "command is empty\nSay what to run."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Key: "key1"})
			r := runTool(t, ctx, bash, dir, tt.input)
			if r.Text != tt.text || string(r.Output) != tt.output {
				t.Errorf("text %q, output %s\nwant %q, %s", r.Text, r.Output, tt.text, tt.output)
			}
			var code agent.ErrorCode
			if r.Error != nil {
				code = r.Error.Code
			}
			if code != tt.code || r.Failed() != (tt.code != "") {
				t.Errorf("status %s, error %v; want code %q", r.Status, r.Error, tt.code)
			}
		})
	}
}

func TestBashCancelled(t *testing.T) {
	bash := newShell(t)[0]
	ctx, cancel := context.WithCancel(t.Context())
	var spawned agent.Process
	ctx = agent.WithCallEnv(ctx, agent.CallEnv{
		Spawned:  func(p agent.Process) { spawned = p },
		Progress: func(string) { cancel() },
	})
	start := time.Now()
	r := runTool(t, ctx, bash, t.TempDir(), `{"command":"echo begun; sleep 60"}`)
	if r.Error == nil || r.Error.Code != agent.ErrAborted || !strings.HasPrefix(r.Text, "begun\n") {
		t.Errorf("result = %+v", r)
	}
	if spawned.PID == 0 {
		t.Error("the process was not reported")
	}
	if d := time.Since(start); d > 30*time.Second {
		t.Errorf("took %s", d)
	}
}

// A long output is streamed in full; the structured answer has its ends.
func TestBashLongOutput(t *testing.T) {
	bash := newShell(t)[0]
	var progress int
	ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Progress: func(s string) { progress = max(progress, len(s)) }})
	r := runTool(t, ctx, bash, t.TempDir(), `{"command":"yes 0123456789abcde | head -n 65536; exit 2"}`)
	if want := strings.Repeat("0123456789abcde\n", 65536) + "\nexit code 2"; r.Text != want {
		t.Errorf("streamed %d bytes, want %d", len(r.Text), len(want))
	}
	if !r.Failed() || r.Error.Message != "exit code 2" {
		t.Errorf("error = %v", r.Error)
	}
	var out shellAnswer
	if err := json.Unmarshal(r.Output, &out); err != nil {
		t.Fatal(err)
	}
	if n := len(out.Stdout); n > maxStdout+100 || !strings.Contains(out.Stdout, "[1018576 bytes left out]") {
		t.Errorf("structured answer has %d bytes", n)
	}
	if progress == 0 || progress > 4<<10 {
		t.Errorf("showed %d bytes at once", progress)
	}
}

func TestBashPlan(t *testing.T) {
	bash := New(Config{Box: sandbox.New(sandbox.Config{}), Reads: func(command, dir string) agent.Effects {
		return agent.Effects{Reads: []string{dir + "/" + command}}
	}}).Tools()[0]
	for _, tt := range []struct {
		input string
		want  agent.Effects
		fails string
	}{
		{input: `{"command":"ls | wc"}`, want: agent.Effects{Reads: []string{"/w/ls | wc"}}},
		{input: `{"command":""}`, fails: "command is empty"},
		{input: `{"command":"a\u0000b"}`, fails: "NUL"},
		{input: `{"command":"a","sandbox":false}`, fails: "sandbox"},
	} {
		got, err := bash.Plan(t.Context(), agent.ToolContext{Workdir: "/w"}, call(bash, tt.input))
		if (err != nil) != (tt.fails != "") || err != nil && !strings.Contains(err.Error(), tt.fails) {
			t.Errorf("%.40s: error %v, want %q", tt.input, err, tt.fails)
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%.40s: effects %+v", tt.input, got)
		}
	}
}

// What stands for a secret gets into no file by a command either.
func TestNoMaskIsWritten(t *testing.T) {
	bash := New(Config{
		Box: sandbox.New(sandbox.Config{}), Masked: func(text string) bool { return strings.Contains(text, "[redacted:") },
		Reads: func(command, dir string) (e agent.Effects) {
			if strings.Contains(command, ">") {
				e.Writes = []string{dir + "/f"}
			}
			return e
		},
	}).Tools()[0]
	for command, ok := range map[string]bool{"echo '[redacted:password]' > f": false, "grep '[redacted:password]' f": true, "echo x > f": true} {
		_, err := bash.Plan(t.Context(), agent.ToolContext{Workdir: "/w"}, call(bash, `{"command":"`+command+`"}`))
		if (err == nil) != ok {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestScript(t *testing.T) {
	script := newShell(t)[1]
	dir := t.TempDir()
	for name, content := range map[string]string{
		"plain.sh": "echo \"$1-$2\"; pwd\n",
		"env.sh":   "#! /usr/bin/env sh\necho env \"$1\"; exit 5\n",
		"one.sh":   "#!/bin/sh\necho direct",
		"lost.sh":  "#!/no/such/program\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct{ input, text string }{
		{`{"path":"plain.sh","args":["a b","$HOME"]}`, "a b-$HOME\n" + dir},
		{`{"path":"` + dir + `/env.sh","args":["x"]}`, "env x\nexit code 5"},
		{`{"path":"./one.sh"}`, "direct"},
		{`{"path":"missing.sh"}`, "there is no script " + dir + "/missing.sh\nCheck the path."},
		{`{"path":"."}`, dir + " is no file\nName a script file."},
		{`{"path":""}`, "path is empty\nName a script file; bash__exec runs a command."},
	} {
		if r := runTool(t, t.Context(), script, dir, tt.input); r.Text != tt.text {
			t.Errorf("%s: %q, want %q", tt.input, r.Text, tt.text)
		}
	}
	if r := runTool(t, t.Context(), script, dir, `{"path":"lost.sh"}`); !r.Failed() || !strings.Contains(r.Text, "/no/such/program") {
		t.Errorf("lost interpreter: %+v", r)
	}
	got, err := script.Plan(t.Context(), agent.ToolContext{Workdir: dir}, call(script, `{"path":"a/../plain.sh","args":["x"]}`))
	path := filepath.Join(dir, "plain.sh")
	if want := (agent.Effects{Reads: []string{path}, Commands: []agent.SimpleCommand{{
		Argv: []string{path, "x"}, Reads: []string{path}, Flagged: "a path in place of a name",
	}}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("effects %+v, %v", got, err)
	}
}

// What these tools add to the first request of every session.
func TestShellSpecsAreSmall(t *testing.T) {
	all := append(newRig(t, Config{}).Tools(), new(builtin.Todos).Tool(), builtin.Ask())
	size := 0
	var names []string
	for _, tool := range all {
		s := tool.Spec()
		n := len(s.Name) + len(s.Description) + len(s.Input)
		t.Logf("%-18s %4d bytes", s.Name, n)
		size += n
		names = append(names, s.Name)
		if !json.Valid(s.Input) {
			t.Errorf("%s: the schema is no JSON", s.Name)
		}
		if strings.HasPrefix(s.Name, "bash__") && s.Budget != 10_000 {
			t.Errorf("%s: a result has at most %d characters", s.Name, s.Budget)
		}
	}
	want := []string{
		"bash__exec", "bash__script", "task__output", "task__stop",
		"process__list", "process__signal", "environment__info", "todo__write", "user__ask",
	}
	if !slices.Equal(names, want) {
		t.Errorf("tools %q", names)
	}
	if t.Logf("%d bytes", size); size > 4800 {
		t.Errorf("the tools are described in %d bytes", size)
	}
}

// Where nothing can be settled, nothing is offered that would need it.
func TestWithoutJobs(t *testing.T) {
	list := newShell(t)
	for _, tool := range list {
		s := tool.Spec()
		if strings.HasPrefix(s.Name, "task__") || strings.Contains(s.Description+string(s.Input), "background") && s.Name == "bash__exec" {
			t.Errorf("%s is offered: %s %s", s.Name, s.Description, s.Input)
		}
	}
	r := runTool(t, t.Context(), list[0], "/", `{"command":"true","run_in_background":true}`)
	if !r.Failed() || r.Error.Code != agent.ErrInput {
		t.Errorf("result = %+v", r)
	}
}

// The catalog takes what models send to these tools, and only a person answers.
func TestShellInputs(t *testing.T) {
	c := catalog.New(catalog.Config{})
	for _, tool := range append(newRig(t, Config{}).Tools(), new(builtin.Todos).Tool(), builtin.Ask()) {
		if err := c.Register(tool, catalog.BuiltIn, ""); err != nil {
			t.Fatal(err)
		}
	}
	step := c.Step(nil)
	const q = `"questions":[{"question":"q","options":[{"label":"a"},{"label":"b"}]}]`
	for _, tt := range []struct {
		name, input string
		person      bool
		want        string // "" = refused
	}{
		{"Bash", `{"command":"ls","timeout":5}`, false, `{"command":"ls","timeout":5}`},
		{"Bash", `{"cmd":"ls","timeout":"5000"}`, false, `{"command":"ls","timeout":5000}`},
		{"Bash", `{"command":"ls","timeout":600001}`, false, ""},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, false, ""},
		{"Bash", `{"command":"ls","run_in_background":"true","pty":true}`, false, `{"command":"ls","pty":true,"run_in_background":true}`},
		{"TaskOutput", `{"bash_id":"job:a","block":false,"timeout":0,"offset":5}`, false, `{"block":false,"offset":5,"task_id":"job:a","timeout":0}`},
		{"TaskOutput", `{"task_id":"job:a","timeout":600001}`, false, ""},
		{"TaskStop", `{"shell_id":"job:a"}`, false, `{"task_id":"job:a"}`},
		{"ProcessSignal", `{"pid":-1}`, false, ""},
		{"ProcessSignal", `{"pid":7,"signal":"SEGV"}`, false, ""},
		{"bash__script", `{"file_path":"a.sh","args":"[\"x\"]"}`, false, `{"args":["x"],"path":"a.sh"}`},
		{"TodoWrite", `{"todos":[{"content":"a","status":"done"}]}`, false, ""},
		{"TodoWrite", `{"todos":[{"content":"a","status":"pending","activeForm":"A"}]}`, false, `{"todos":[{"content":"a","status":"pending","activeForm":"A"}]}`},
		{"AskUserQuestion", `{` + q + `}`, false, `{` + q + `}`},
		{"AskUserQuestion", `{` + q + `,"answers":{"q":"a"}}`, false, `{"questions":[{"options":[{"label":"a"},{"label":"b"}],"question":"q"}]}`},
		{"AskUserQuestion", `{` + q + `,"answers":{"q":"a"}}`, true, `{` + q + `,"answers":{"q":"a"}}`},
		{"AskUserQuestion", `{` + q + `,"answers":{"q":1}}`, true, ""},
		{"AskUserQuestion", `{"questions":[]}`, false, ""},
	} {
		tool, ok := step.Lookup(tt.name)
		if !ok {
			t.Fatalf("no tool %s", tt.name)
		}
		got, bad := step.Check(tool.Spec(), json.RawMessage(tt.input), tt.person)
		if string(got) != tt.want || (bad == nil) != (tt.want != "") {
			t.Errorf("%s %s: %s, %v; want %s", tt.name, tt.input, got, bad, tt.want)
		}
	}
}

func BenchmarkBashTrue(b *testing.B) {
	bash := newShell(b)[0]
	c := call(bash, `{"command":"true"}`)
	for b.Loop() {
		if _, err := bash.Run(b.Context(), agent.ToolContext{Workdir: "/"}, c); err != nil {
			b.Fatal(err)
		}
	}
}
