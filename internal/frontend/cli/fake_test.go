package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	slash "dure/internal/extend/commands"
	"dure/internal/frontend/text"
)

// fake is a session whose events the test makes up. It answers commands with
// what on emits.
type fake struct {
	info    agent.SessionInfo
	on      func(f *fake, c agent.Command)
	answers map[string]any // of queries, by name
	refuse  error          // of Open
	custom  []query.CommandInfo

	mu      sync.Mutex
	seq     int64
	all     []agent.Event
	sent    []agent.Command
	changed chan struct{}
	closed  bool
	opened  agent.Open
	read    int64 // behind which event the log was read last
}

func newFake() *fake {
	f := &fake{info: agent.SessionInfo{ID: "s1"}, changed: make(chan struct{})}
	f.past(agent.SessionOpened{Session: "s1", Workdir: "/repo", Model: "opus", Mode: agent.ModeDefault})
	return f
}

// past adds events from before the session was opened.
func (f *fake) past(bodies ...agent.Body) {
	f.emit(bodies...)
	f.info.Head = f.seq
}

func live(b agent.Body) bool {
	switch b.(type) {
	case agent.Fragment, agent.CallOutput, agent.StateChanged:
		return true
	}
	return false
}

func (f *fake) emit(bodies ...agent.Body) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bodies {
		e := agent.Event{Time: time.Now(), Body: b}
		if !live(b) {
			f.seq++
			e.Seq, e.Epoch, e.ID = f.seq, 1, fmt.Sprint("e", f.seq)
		}
		f.all = append(f.all, e)
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened, f.closed = o, f.refuse != nil
	return f.info, f.refuse
}

func (f *fake) Send(_ context.Context, _ string, c agent.Command) error {
	f.mu.Lock()
	f.sent = append(f.sent, c)
	f.mu.Unlock()
	if f.on != nil {
		f.on(f, c)
	}
	return nil
}

func (f *fake) Events(ctx context.Context, _ string, after int64) iter.Seq2[agent.Event, error] {
	f.mu.Lock()
	f.read = after
	f.mu.Unlock()
	return func(yield func(agent.Event, error) bool) {
		for at := 0; ; {
			f.mu.Lock()
			news, changed, closed := f.all[at:], f.changed, f.closed
			f.mu.Unlock()
			for _, e := range news {
				if (e.Live() || e.Seq > after) && !yield(e, nil) {
					return
				}
			}
			if at += len(news); closed {
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}
}

func (f *fake) Query(_ context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case query.ReadCommand:
		return slash.Read(q.Text, slash.Known{Session: true, Others: f.custom, Exists: func(path string) bool { return path == "/usr" }}), nil
	case query.ListCommands:
		return append(slash.List(text.For(q.Language).Command), f.custom...), nil
	}
	switch a := f.answers[q.Query()].(type) {
	case nil:
		return nil, &agent.Problem{Code: agent.ProblemMissing, Message: "there is no session x", Fix: "dure sessions lists them"}
	case error:
		return nil, a
	default:
		return a, nil
	}
}

func (f *fake) Close(context.Context, string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		close(f.changed)
		f.changed = make(chan struct{})
	}
	return nil
}

// commands returns what was sent, one line each.
func (f *fake) commands() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.sent {
		if p, ok := c.(agent.Prompt); ok {
			p.ID = ""
			c = p
		}
		data, _ := json.Marshal(c)
		out = append(out, c.Command()+" "+string(data))
	}
	return out
}

// lastInput returns the ID of the newest prompt.
func (f *fake) lastInput() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.sent) - 1; i >= 0; i-- {
		if p, ok := f.sent[i].(agent.Prompt); ok {
			return p.ID
		}
	}
	return ""
}

func (f *fake) client() client.Client { return client.New(f) }

// vt is as much of a terminal as line mode needs. What a terminal would not
// take as it was meant is kept in wrong.
type vt struct {
	mu       sync.Mutex
	cols     int // 0 = any
	rows     int
	lines    [][]string // cells; the second one of a wide character is ""
	row, col int
	dumb     bool
	wrong    []string
	rest     string
}

func (t *vt) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.rest + string(p)
	t.rest = ""
	for s != "" {
		n := t.one(s)
		if n == 0 {
			t.rest = s
			break
		}
		s = s[n:]
	}
	return len(p), nil
}

// one takes one character or sequence; 0 = it is cut.
func (t *vt) one(s string) int {
	switch s[0] {
	case '\n':
		t.row++
		if t.dumb {
			t.col = 0
		}
		return 1
	case '\r':
		t.col = 0
		if t.dumb {
			t.wrong = append(t.wrong, "carriage return")
		}
		return 1
	case 0x1b:
		return t.escape(s)
	}
	if s[0] < ' ' || s[0] == 0x7f {
		t.wrong = append(t.wrong, fmt.Sprintf("control %q", s[0]))
		return 1
	}
	if !utf8.FullRuneInString(s) {
		return 0
	}
	n, w := text.Cluster(s)
	for len(t.lines) <= t.row {
		t.lines = append(t.lines, nil)
	}
	line := t.lines[t.row]
	for len(line) < t.col+max(w, 1) {
		line = append(line, " ")
	}
	line[t.col] = s[:n]
	if w == 2 {
		line[t.col+1] = ""
	}
	t.lines[t.row] = line
	if t.col += w; t.cols > 0 && t.col > t.cols {
		t.wrong = append(t.wrong, fmt.Sprintf("row %d is wider than the screen", t.row))
	}
	return n
}

func (t *vt) escape(s string) int {
	if t.dumb {
		t.wrong = append(t.wrong, "escape sequence")
	}
	if len(s) < 2 || s[1] != '[' {
		t.wrong = append(t.wrong, fmt.Sprintf("%.4q", s))
		return 1
	}
	end := strings.IndexFunc(s[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if end < 0 {
		return 0
	}
	params, final := s[2:2+end], s[2+end]
	n := 1
	if params != "" {
		fmt.Sscan(params, &n)
	}
	switch final {
	case 'A':
		if t.row -= n; t.row < 0 {
			t.wrong = append(t.wrong, "above the screen")
			t.row = 0
		}
	case 'C':
		t.col += n
	case 'J', 'K':
		if t.row < len(t.lines) {
			t.lines[t.row] = t.lines[t.row][:min(t.col, len(t.lines[t.row]))]
			if final == 'J' {
				t.lines = t.lines[:t.row+1]
			}
		}
	case 'm', 'h', 'l':
	default:
		t.wrong = append(t.wrong, s[:3+end])
	}
	return 3 + end
}

// String returns the screen, with ▏ where the cursor stands.
func (t *vt) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for i := range max(len(t.lines), t.row+1) {
		var line []string
		if i < len(t.lines) {
			line = append(line, t.lines[i]...)
		}
		if i == t.row && !t.dumb {
			for len(line) < t.col {
				line = append(line, " ")
			}
			line = append(line[:t.col:t.col], append([]string{"▏"}, line[t.col:]...)...)
		}
		b.WriteString(strings.TrimRight(strings.Join(line, ""), " ") + "\n")
	}
	for _, w := range t.wrong {
		b.WriteString("WRONG: " + w + "\n")
	}
	return b.String()
}
