package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// command runs a program until it has ended, or has said that it goes on alone.
func (s *Set) command(ctx context.Context, h Hook, m Moment, r running, input []byte) Answer {
	argv, err := s.argv(h)
	if err != nil {
		return Answer{Outcome: agent.HookFailed, Invalid: err.Error()}
	}
	out, errs := &bounded{left: make(chan struct{})}, &bounded{}
	life, end := context.WithCancelCause(s.life)
	stays := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	stop := func() { stays(); end(nil) }
	p, err := s.c.Box.Start(life, sandbox.Cmd{
		Argv: argv, Dir: s.folder(), Env: s.environment(h, m), Grant: s.grant(h, m),
		In:  io.MultiReader(bytes.NewReader(input), strings.NewReader("\n")),
		Out: out, Err: errs,
	})
	if err != nil {
		stop()
		return Answer{Outcome: agent.HookFailed, Invalid: "it could not be started: " + err.Error(), barred: !errors.Is(err, sandbox.ErrProgram)}
	}
	answer := func() Answer {
		exit, err := p.Wait()
		defer stop()
		switch {
		case err != nil:
			return Answer{Outcome: agent.HookFailed, Invalid: err.Error()}
		case exit.Interrupted():
			return interrupted(context.Cause(life))
		}
		return read(m.Event, reply{exit: exit.Code, out: out.String(), err: errs.String(), cut: out.cut, process: true})
	}
	select {
	case <-out.left:
	case <-p.Exited():
	}
	if out.leaves() && !h.Async && !r.held && stays() {
		ok := s.apart(func() {
			t := time.AfterFunc(out.limit, func() { end(overdue{out.limit}) })
			defer t.Stop()
			s.late(h, m, r, answer())
		})
		if ok {
			return Answer{Outcome: agent.HookPassed, Async: true}
		}
	}
	return answer()
}

// interrupted is the answer of a hook that was stopped.
func interrupted(why error) Answer {
	if late, ok := errors.AsType[overdue](why); ok {
		return Answer{Outcome: agent.HookTimedOut, Invalid: late.Error()}
	}
	return Answer{Outcome: agent.HookCancelled}
}

// folder is where commands run: where the session is, or where it began when that is no
// folder any more. A hook that forbids things cannot be got rid of by removing a folder.
func (s *Set) folder() string {
	dir := s.c.Facts().Cwd
	if i, err := os.Stat(dir); err != nil || !i.IsDir() {
		return s.c.Project
	}
	return dir
}

// grant is what a hook may reach beyond what commands may: what it is told to write, and
// where hooks are kept.
func (s *Set) grant(h Hook, m Moment) (g sandbox.Grant) {
	g.Reads = append(g.Reads, s.c.Reads...)
	if h.Source.Root != "" {
		g.Reads = append(g.Reads, h.Source.Root)
	}
	if m.EnvFile != "" && kinds[m.Event].env {
		g.Writes = append(g.Writes, m.EnvFile)
	}
	if h.Source.Data != "" {
		g.Writes = append(g.Writes, h.Source.Data)
	}
	return g
}

// argv is what a command hook starts.
func (s *Set) argv(h Hook) ([]string, error) {
	if h.Args != nil {
		argv := []string{s.placed(h, h.Command)}
		for _, a := range h.Args {
			argv = append(argv, s.placed(h, a))
		}
		return argv, nil
	}
	if strings.Contains(h.Command, "${user_config.") {
		return nil, errors.New("${user_config.NAME} stands for nothing in a line for a shell: write $CLAUDE_PLUGIN_OPTION_NAME, or use args")
	}
	name, flag := "sh", "-c"
	switch {
	case plain(h.Shell) == "powershell" || h.Shell == "" && runtime.GOOS == "windows":
		name, flag = "powershell", "-Command"
	case h.Shell == "bash":
		name = "bash"
	case h.Shell != "" && h.Shell != "sh":
		return nil, fmt.Errorf("%q is no shell that hooks run in: bash or powershell", h.Shell)
	}
	shell, err := s.c.Shell(name)
	if err != nil {
		return nil, err
	}
	return []string{shell, flag, s.line(h, name == "powershell")}, nil
}

// line is a line for a shell. Folders that it names are in its environment, and the shell
// puts them there; only such as mean nothing to any shell are put into the line, because
// a shell does not look into single quotes.
func (s *Set) line(h Hook, powershell bool) string {
	var pairs []string
	for _, p := range s.folders(h) {
		switch {
		case p.value != "" && !strings.ContainsFunc(p.value, func(r rune) bool { return !nameRune(r) && !strings.ContainsRune("/.-", r) }):
			pairs = append(pairs, "${"+p.name+"}", p.value)
		case powershell: // which has another way to name variables
			pairs = append(pairs, "${"+p.name+"}", "${env:"+p.name+"}")
		}
	}
	return strings.NewReplacer(pairs...).Replace(h.Command)
}

// placed puts what an argument names into it.
func (s *Set) placed(h Hook, text string) string {
	var pairs []string
	for _, p := range s.folders(h) {
		pairs = append(pairs, "${"+p.name+"}", p.value)
	}
	for name, v := range h.Source.Options {
		pairs = append(pairs, "${user_config."+name+"}", v)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

type pair struct{ name, value string }

// folders are those that commands may name.
func (s *Set) folders(h Hook) []pair {
	return []pair{
		{"CLAUDE_PROJECT_DIR", s.c.Project},
		{"DURE_PROJECT_DIR", s.c.Project},
		{"CLAUDE_PLUGIN_ROOT", h.Source.Root},
		{"CLAUDE_PLUGIN_DATA", h.Source.Data},
	}
}

// bounded keeps the beginning of what is written to it. The first line of a hook may say
// that nobody is to wait for it.
type bounded struct {
	left chan struct{} // is closed then; nil = that does not count

	mu     sync.Mutex
	b      bytes.Buffer
	looked bool          // at the first line
	limit  time.Duration // for how long it may go on alone; 0 = it does not
	cut    bool          // something is missing
}

// maxLeave is how long the line may be that says that nobody is to wait.
const maxLeave = 1 << 10

func (b *bounded) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(p), maxOutput-b.b.Len())
	b.b.Write(p[:n])
	b.cut = b.cut || n < len(p)
	if !b.looked && b.left != nil {
		b.look()
	}
	return len(p), nil
}

// look reads the first line as far as it is there.
func (b *bounded) look() {
	line, _, whole := bytes.Cut(bytes.TrimLeft(b.b.Bytes(), " \t\r\n"), []byte("\n"))
	b.looked = whole || len(line) > maxLeave
	if b.limit = leaving(line); b.limit > 0 {
		b.looked = true
		b.b.Next(bytes.Index(b.b.Bytes(), line) + len(line)) // the answer stands behind it
		close(b.left)
	}
}

// leaves reports whether nobody is to wait.
func (b *bounded) leaves() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.limit > 0
}

// leaving reads for how long a hook may go on that says that nobody is to wait; 0 = the
// line does not say so.
func leaving(line []byte) time.Duration {
	var v struct {
		Async  bool    `json:"async"`
		Millis float64 `json:"asyncTimeout"` // 0 = as is usual
	}
	if !isObject(line) || json.Unmarshal(line, &v) != nil || !v.Async || v.Millis < 0 || v.Millis > float64(maxTimeout.Milliseconds()) {
		return 0
	}
	if v.Millis == 0 {
		return usualLimit
	}
	return time.Duration(v.Millis * float64(time.Millisecond))
}

func (b *bounded) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.ToValidUTF8(b.b.String(), "\ufffd")
}
