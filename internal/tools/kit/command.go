package kit

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// Shell returns a shell with the flags before a command. "" is the one that the
// system has for certain.
func Shell(path string) []string {
	if path == "" {
		path = "/bin/sh"
		if runtime.GOOS == "windows" {
			path = "powershell.exe"
		}
	}
	name := strings.ToLower(path[strings.LastIndexAny(path, `/\`)+1:])
	switch strings.TrimSuffix(name, ".exe") {
	case "powershell", "pwsh":
		return []string{path, "-NoProfile", "-NonInteractive", "-Command"}
	}
	return []string{path, "-c"}
}

// Quiet returns env without credentials that [sandbox.Scrub] knows, and such that
// programs behave as they should when nobody watches. Variables that ask for
// colours all the same are taken out.
func Quiet(env []string) []string {
	return append(sandbox.Scrub(env, []string{"FORCE_COLOR", "CLICOLOR_FORCE"}),
		"DURE=1", "TERM=dumb", "NO_COLOR=1", "CLICOLOR=0",
		"PAGER=cat", "GIT_PAGER=cat", "MANPAGER=cat", "GIT_TERMINAL_PROMPT=0",
	)
}

// CallEnv returns env, which stays as it is, with what is of one call: its
// folder, its key, if it has one, and its variables.
func CallEnv(env []string, dir, key string, vars ...string) []string {
	env = append(env[:len(env):len(env)], "PWD="+dir)
	if key != "" {
		env = append(env, "DURE_IDEMPOTENCY_KEY="+key)
	}
	return append(env, vars...)
}

// Reader says what a command line would do in a folder, without running it.
type Reader func(command, dir string) agent.Effects

// Read is the reader's word; without a reader, nothing can be told.
func (r Reader) Read(command, dir string) agent.Effects {
	if r == nil {
		return agent.Effects{
			Commands:   []agent.SimpleCommand{{Argv: []string{"sh", "-c", command}}},
			Unreadable: "nobody here can read command lines",
		}
	}
	return r(command, dir)
}

// Joined reads first one and then the other, and closes c.
func Joined(first, then io.Reader, c io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(first, then), c}
}

// The bounds of what is shown while a command runs.
const (
	showEvery = 100 * time.Millisecond
	showBytes = 4 << 10
)

// Watched returns a writer to w that also shows some of what passes, at the latest a
// tenth of a second after it came, and from a goroutine of its own then. What comes
// faster than it can be read is not shown: behind such a gap it goes on with a line of
// its own. A nil show shows nothing; one that is called when the command is over has
// to know what to do.
func Watched(w io.Writer, show func(string)) io.Writer {
	if show == nil {
		return w
	}
	return &display{to: w, show: show}
}

type display struct {
	to   io.Writer
	show func(string)

	mu      sync.Mutex
	last    time.Time
	later   bool // a timer runs that shows what is waiting
	waiting []byte
	gap     bool // something before waiting was left out
}

func (d *display) Write(p []byte) (int, error) {
	d.keep(p)
	return d.to.Write(p)
}

func (d *display) keep(p []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting = append(d.waiting, p[max(0, len(p)-showBytes):]...)
	d.gap = d.gap || len(p) > showBytes
	if over := len(d.waiting) - showBytes; over > 0 {
		d.waiting = append(d.waiting[:0], d.waiting[over:]...)
		d.gap = true
	}
	switch since := time.Since(d.last); {
	case d.later:
	case since >= showEvery:
		d.flush()
	default:
		d.later = true
		time.AfterFunc(showEvery-since, func() {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.later = false
			d.flush()
		})
	}
}

// flush shows what is waiting. mu is held.
func (d *display) flush() {
	d.last = time.Now()
	text := d.waiting
	if d.gap {
		text = behindGap(text)
	}
	if len(text) > 0 {
		d.show(string(text)) // what is cut in it comes whole in the end
		d.gap = false
	}
	d.waiting = d.waiting[:0]
}

// behindGap returns what can be shown of b when what was before it is not known: what
// is left of a secret is not known for one. It begins behind the end of a line, with a
// line that has a space in it, as those of a key have none.
func behindGap(b []byte) []byte {
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			return nil
		}
		next := b[end+1:]
		line, _, _ := bytes.Cut(next, []byte{'\n'})
		if bytes.IndexByte(line, ' ') >= 0 {
			return b[end:] // with the line end: what was shown before may have none
		}
		b = next
	}
}
