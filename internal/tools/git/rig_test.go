package git

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// bench is a repository with the tools of a session. Its user has a home of
// their own.
type bench struct {
	*testing.T
	git  string // the program
	home string
	top  string
	g    *Git

	reading, writing agent.Tool
	calls            int
}

// newBench makes a repository with one commit of a.txt and dir/b.txt.
func newBench(t *testing.T) *bench {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, git: gitPath(t), home: filepath.Join(dir, "home"), top: filepath.Join(dir, "repo")}
	b.put(filepath.Join(b.home, ".gitconfig"), "[user]\n\tname = Kim\n\temail = kim@example.org\n[init]\n\tdefaultBranch = main\n")
	b.put("a.txt", "one\ntwo\n")
	b.put("dir/b.txt", "b\n")
	b.plain("init", "-q")
	b.plain("add", ".")
	b.plain("commit", "-q", "-m", "First")
	b.open()
	return b
}

// gitPath returns the git program, which CI requires with DURE_REQUIRE=git.
func gitPath(t *testing.T) string {
	t.Helper()
	return prooftest.Program(t, "git")
}

// open makes the tools anew, as when a session is resumed.
func (b *bench) open() {
	box := sandbox.New(sandbox.Config{Temp: b.TempDir()})
	b.Cleanup(func() { box.Close() })
	b.g = New(Config{Box: box, Git: b.git, Env: b.environ(), Root: b.top})
	tools := b.g.Tools()
	b.reading, b.writing = tools[0], tools[1]
}

func (b *bench) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"), "GIT_CONFIG_NOSYSTEM=1"}
}

// plain runs git as a person does, and returns what it writes.
func (b *bench) plain(args ...string) string {
	b.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (b *bench) try(args ...string) (string, error) {
	cmd := exec.Command(b.git, args...)
	cmd.Dir, cmd.Env = b.top, append(b.environ(), "GIT_EDITOR=true", "GIT_ALLOW_PROTOCOL=file:ext:ssh")
	cmd.Stdin = strings.NewReader("protocol=https\nhost=example.org\n\n")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (b *bench) put(name, content string) {
	b.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(b.top, name)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		b.Fatal(err)
	}
}

// program writes a shell script.
func (b *bench) program(name, script string) string {
	b.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(b.top, name)
	}
	b.put(name, "#!/bin/sh\n"+script+"\n")
	if err := os.Chmod(name, 0o755); err != nil {
		b.Fatal(err)
	}
	return name
}

func (b *bench) call(input any) agent.Call {
	b.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		b.Fatal(err)
	}
	b.calls++
	return agent.Call{ID: "c" + string(rune('a'+b.calls%26)), Input: data}
}

func (b *bench) context() agent.ToolContext { return agent.ToolContext{Workdir: b.top} }

// do plans and runs a call.
func (b *bench) do(t agent.Tool, input any) agent.Result {
	b.Helper()
	c := b.call(input)
	_, err := t.Plan(b.Context(), b.context(), c)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion)
	}
	if err != nil {
		b.Fatal(err)
	}
	r, err := t.Run(b.Context(), b.context(), c)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// text is what the model reads, with places and names of commits replaced.
func (b *bench) text(r agent.Result) string {
	b.Helper()
	s := r.Text
	if r.Failed() {
		s = string(r.Error.Code) + ": " + s
	}
	short := b.plain("rev-parse", "--short", "HEAD")
	long := b.plain("rev-parse", "HEAD")
	return strings.NewReplacer(b.top, "TOP", long, "HEAD", short, "HEAD").Replace(s)
}

type in map[string]any

// later is a time after that of every file.
func (b *bench) later() time.Time { return time.Now().Add(time.Hour) }
