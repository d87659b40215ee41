//go:build unix

package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	slash "dure/internal/extend/commands"
	"dure/internal/frontend/cli"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// TestCommands plays the scripts in testdata/commands, each a conversation in line mode
// with the whole program behind it. There is one for every command that is built in,
// with its name. The sections:
//
//	work/FILE, home/FILE  files before; home is the user's
//	flags                 as in testdata/sessions; trust = the folder is trusted
//	git                   commands of git in the workspace, before
//	model                 as in testdata/sessions
//	typed                 what is typed, a line each; "~ TEXT" waits until the screen
//	                      has shown it, since the last one
//	shown                 what the screen shows
//	want/FILE             a file of the workspace afterwards
//	log                   git's last commit afterwards; may be missing
//
// -update rewrites shown, want and log.
func TestCommands(t *testing.T) {
	t.Parallel()
	for _, b := range slash.BuiltIns() {
		if _, err := os.Stat("testdata/commands/" + b.Name + ".txtar"); err != nil {
			t.Errorf("/%s has no script: %v", b.Name, err)
		}
	}
	files, err := filepath.Glob("testdata/commands/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			playCommands(t, file, ar)
		})
	}
}

func playCommands(t *testing.T, file string, ar *txtar.Archive) {
	p := &play{t: t, ar: ar, open: agent.Open{Approver: true}}
	p.lines = readModel(t, p.section("model"))
	p.world = newWorld(t, script.Script{}, script.Options{Func: p.lines.next})
	for name, data := range p.files("work/") {
		p.put(name, data)
	}
	for name, data := range p.files("home/") {
		p.put("../home/"+name, data)
	}
	trust := false
	for word, value := range commands(p.section("flags")) {
		if word == "trust" {
			trust = true
			continue
		}
		p.flag(word, value)
	}
	p.git(p.section("git"))
	o := options(p.work, p.home, p.model.URL(), p.flags)
	o.Flags.Trust = trust
	program := p.world.program(o)
	out := new(stage)
	c := cli.New(cli.Config{Client: program.Client(), Text: text.For("en"), Out: out, Err: out, Now: time.Now})
	in, keys := io.Pipe()
	defer in.Close()
	go out.perform(t, keys, p.section("typed"))
	makes := func(dir, scope string) (query.MemoryPlace, error) {
		return client.Query[query.MemoryPlace](t.Context(), program.Client(), query.MakeMemory{Workdir: dir, Scope: scope})
	}
	err := c.Interact(context.Background(), cli.InteractOptions{
		Open: agent.Open{Workdir: p.work}, Version: "test", MakeMemory: makes, EditRule: func(ctx context.Context, e query.RuleEdit) (query.RuleEdited, error) {
			return client.Query[query.RuleEdited](ctx, program.Client(), e)
		},
		Terminal: cli.Terminal{In: in, Out: out, Size: func() (int, int) { return 0, 0 }},
	})
	var left *cli.Exited
	if err != nil && (!errors.As(err, &left) || left.Code != cli.ExitOK) {
		t.Error(err)
	}
	if err := program.Close(); err != nil {
		t.Error(err)
	}
	got := map[string]string{"shown": p.plain(out.String())}
	for _, f := range ar.Files {
		if name, ok := strings.CutPrefix(f.Name, "want/"); ok {
			got[f.Name] = p.read(name)
		}
	}
	if p.section("log") != "" {
		got["log"] = p.plain(p.git("log -1 --format=%B --name-status\nstatus --short"))
	}
	for i, f := range ar.Files {
		if now, ok := got[f.Name]; ok && *update {
			ar.Files[i].Data = []byte(now)
		} else if d := cmp.Diff(string(f.Data), now); ok && d != "" {
			t.Errorf("%s:\n%s", f.Name, d)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(file, txtar.Format(ar), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// stage is a screen that remembers what it has shown.
type stage struct {
	mu    sync.Mutex
	shown bytes.Buffer // guarded by mu
}

func (s *stage) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.Write(b)
}

func (s *stage) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shown.String()
}

// perform types the lines, and ends the input behind the last one.
func (s *stage) perform(t *testing.T, keys *io.PipeWriter, lines string) {
	defer keys.Close()
	from, limit := 0, time.Now().Add(patience/2)
	for line := range strings.Lines(lines) {
		wanted, waits := strings.CutPrefix(line, "~ ")
		if !waits {
			_, _ = io.WriteString(keys, line) // nobody reads once the conversation is over
			continue
		}
		wanted = strings.TrimSpace(wanted)
		tick := time.NewTicker(5 * time.Millisecond)
		for {
			screen := s.String()
			if at := strings.Index(screen[from:], wanted); at >= 0 {
				from += at + len(wanted)
				break
			}
			if time.Now().After(limit) {
				t.Errorf("%q did not come:\n%s", wanted, screen[from:])
				return
			}
			<-tick.C
		}
		tick.Stop()
	}
}

// git runs commands of git in the workspace, a line each, and returns what they say.
func (p *play) git(lines string) (said string) {
	p.t.Helper()
	for line := range strings.Lines(lines) {
		cmd := exec.Command(prooftest.Program(p.t, "git"), strings.Fields(line)...)
		cmd.Dir = p.work
		cmd.Env = append(os.Environ(), "HOME="+p.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@example.org")
		out, err := cmd.CombinedOutput()
		if err != nil {
			p.t.Fatalf("git %s: %v\n%s", line, err, out)
		}
		said += string(out)
	}
	return said
}

var (
	sessionPattern  = regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`)
	durationPattern = regexp.MustCompile(`\b[0-9.]+ ?(ms|s)\b`)
	hashPattern     = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)
	datePattern     = regexp.MustCompile(`\b20[0-9]{2}-[0-9]{2}-[0-9]{2}( [0-9]{2}:[0-9]{2}(:[0-9]{2})?)?\b`)
	tokenPattern    = regexp.MustCompile(`\b[0-9][0-9.,]*k?( tokens\b|k\b)|\$[0-9.]+`)
	helpPattern     = regexp.MustCompile(`(?m)^(/| {21}).*\n`) // the list of commands; docs/commands.md has it
	bytesPattern    = regexp.MustCompile(`\([0-9]+ bytes\)`)
	stepPattern     = regexp.MustCompile(`(?m)^note: [0-9]+ steps? · .*$`)
)

// plain is a text without what differs from one run to the next.
func (p *play) plain(s string) string {
	s = strings.NewReplacer(p.work, "$WORK", p.home, "$HOME").Replace(s)
	s = sessionPattern.ReplaceAllString(s, "SESSION")
	s = stepPattern.ReplaceAllString(s, "note: a turn")
	s = hashPattern.ReplaceAllString(s, "HASH")
	s = datePattern.ReplaceAllString(s, "DATE")
	s = tokenPattern.ReplaceAllString(s, "N$1")
	s = bytesPattern.ReplaceAllString(s, "(N bytes)")
	s = durationPattern.ReplaceAllString(s, "N $1")
	s = strings.NewReplacer(" · N ms", "", " · N s", "").Replace(s) // what takes no time says none
	s = helpPattern.ReplaceAllString(s, "")
	var lines []string
	for l := range strings.SplitSeq(s, "\n") {
		if l = strings.TrimRight(l, " "); l != "you:" && !strings.HasPrefix(l, "tool: git__") && !strings.Contains(l, "is no event; did you mean") { // they come between what else is shown
			if n := len(lines); n > 0 && strings.HasPrefix(lines[n-1], "commit this?") && strings.HasPrefix(l, lines[n-1]) {
				lines = lines[:n-1] // one of them came behind the question, which was put again
			}
			lines = append(lines, l)
		}
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n") + "\n"
}
