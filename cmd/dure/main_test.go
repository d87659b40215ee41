package main

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/frontend/text"
)

// dureProgram is the binary under test.
func dureProgram(t *testing.T) string {
	path, err := exec.LookPath("dure")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestListFlag(t *testing.T) {
	var l list
	for _, s := range []string{"Bash", "Read,Write", "Bash(git log *, x) Edit", " , ", "mcp__server__*"} {
		if err := l.Set(s); err != nil {
			t.Fatal(err)
		}
	}
	want := list{"Bash", "Read", "Write", "Bash(git log *, x)", "Edit", "mcp__server__*"}
	if d := cmp.Diff(want, l); d != "" {
		t.Error(d)
	}
}

func TestNormalise(t *testing.T) {
	for _, tt := range []struct{ in, want []string }{
		{[]string{"-p", "-r", "s1", "go on"}, []string{"-p", "--resume=s1", "go on"}},
		{[]string{"--resume", "s1"}, []string{"--resume=s1"}},
		{[]string{"--resume=s1", "x"}, []string{"--resume=s1", "x"}},
		{[]string{"-r"}, []string{"-r"}},
		{[]string{"-r", "-p"}, []string{"-r", "-p"}},
		{[]string{"--", "-r", "x"}, []string{"--", "-r", "x"}},
	} {
		if got := normalise(tt.in); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Flags reach the settings that they stand for, in all their spellings.
func TestFlags(t *testing.T) {
	p := &program{text: text.For("en")}
	root := p.root()
	err := root.ParseFlags(normalise([]string{
		"--print", "--output-format=json", "--model", "opus", "--permission-mode=plan", "--allowedTools", "Bash,Read", "--allow=Edit",
		"--disallowed-tools", "Write", "--max-turns", "3", "--append-system-prompt", "- be brief", "--add-dir", ".", "--add-dir=testdata",
		"--settings", "{}", "--base-url", "http://x", "--no-session-persistence", "-r", "s1", "--tool-dialect", "dure", "--verbose", "task",
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := flags{
		print: true, output: "json", model: "opus", mode: "plan", allow: list{"Bash", "Read", "Edit"}, deny: list{"Write"}, maxTurns: 3,
		appendText: "- be brief", addDirs: []string{".", "testdata"}, settings: "{}", baseURL: "http://x", scratch: true, resume: "s1",
		dialect: "dure", verbose: true,
	}
	if d := cmp.Diff(want, p.flags, cmp.AllowUnexported(flags{}, sdkFlags{})); d != "" {
		t.Error(d)
	}
	if err := p.check(root); err != nil {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--modell", "x"}, "unknown flag --modell\nDid you mean --model? See dure --help."},
		{[]string{"-z"}, "unknown flag -z\nSee dure --help."},
		{[]string{"sesions"}, "unknown command sesions\nDid you mean sessions? To send it to the model: dure -p sesions"},
		{[]string{"skill", "list"}, "unknown command skill\nDid you mean skills list? To send it to the model: dure -p skill list"},
		{[]string{"--max-turns", "many"}, "flag --max-turns: many is not a whole number of 1 or more\nSee dure --help."},
		{[]string{"--max-turns", "0", "x"}, "flag --max-turns: 0 is not a whole number of 1 or more\nSee dure --help."},
		{[]string{"--model"}, "flag --model needs a value\nSee dure --help."},
		{[]string{"-c", "-r", "x"}, "--continue and --resume exclude each other\nSee dure --help."},
		{[]string{"--output-format", "xml", "x"}, "flag --output-format: xml is not one of text, json, ndjson, stream-json\nSee dure --help."},
		{[]string{"--input-format", "stream-json", "x"}, "--input-format stream-json needs --output-format stream-json\nSee dure --help."},
		{[]string{"--session-id", "a/b", "x"}, "flag --session-id: a/b is not an ID: 1 to 64 letters, digits, - or _\nSee dure --help."},
		{[]string{"--add-dir", "testdata/nothing", "x"}, "flag --add-dir: testdata/nothing is not a folder that exists\nSee dure --help."},
		{[]string{"--print=maybe", "x"}, "flag --print: maybe is not true or false\nSee dure --help."},
		{[]string{"show", "a", "b"}, "dure show takes 1 argument\nUsage: dure show [ID]"},
		{[]string{"replay", "x", "--speed", "0"}, "flag --speed: 0 is not a number above 0 and at most 1000\nSee dure replay --help."},
		{[]string{"replay", "x", "--max-pause", "soon"}, "flag --max-pause: soon is not a time such as 2s or 500ms\nSee dure replay --help."},
		{[]string{"help", "shwo"}, "unknown command shwo\nDid you mean show?"},
	} {
		p := &program{text: text.For("en")}
		root := p.root()
		root.SetArgs(normalise(tt.args))
		message, fix := "", ""
		if err := root.Execute(); err == nil {
			t.Errorf("%q: no error", tt.args)
		} else if prob := agent.ProblemOf(err); prob != nil {
			message, fix = p.text.Problem(prob)
		} else {
			message = err.Error()
		}
		if d := cmp.Diff(tt.want, message+"\n"+fix); d != "" {
			t.Errorf("%q: %s", tt.args, d)
		}
	}
}

// The program begins whatever the variable holds that tunes the library for MCP.
func TestBeginsWithAnyTuning(t *testing.T) {
	for _, value := range []string{"junk", "a=b,junk", "a=b", ","} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
		cmd.Env = append(os.Environ(), "MCPGODEBUG="+value)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%q: %v\n%.300s", value, err, out)
		}
		cancel()
	}
}
