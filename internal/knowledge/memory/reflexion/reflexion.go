// Package reflexion looks back at what sessions have done, keeps what can be learnt from it
// as lessons, and gives a new session those of tasks like its own. It also has the user's
// checklist. It is the lessons' part in a session: their files are package lessons. While a
// session goes on, one goroutine at a time asks a model; the end of the session waits for it.
package reflexion

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/lessons"
)

// Config says what is learnt, and where it is kept.
type Config struct {
	Off     bool          // sessions neither learn nor are given lessons
	Data    string        // folder of the lessons and of the checklist; required
	Forget  bool          // nothing new is kept
	Tasks   int           // past tasks whose lessons a session begins with
	Failed  bool          // only what failed is looked back at
	Parting time.Duration // by which the end of a session may be late; 0 = as is usual
	Logger  *slog.Logger  // required

	// Unreadable and Unwritable make of an error what a person has to fix. Required.
	Unreadable, Unwritable func(path string, err error) error
}

// Extension has the lessons of all sessions. It is safe for concurrent use.
type Extension struct {
	cfg   Config
	store lessons.Store
}

// New returns the extension. Nothing is read yet.
func New(cfg Config) *Extension {
	return &Extension{cfg: cfg, store: lessons.Store{Dir: filepath.Join(cfg.Data, "reflexion")}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "lessons" }

// Attach has a session looked back at, unless it serves a call of another one.
func (x *Extension) Attach(_ context.Context, s *plug.Session) (plug.Points, error) {
	if x.cfg.Off || s.Child != nil {
		return plug.Points{}, nil
	}
	r := &session{Extension: x, s: s}
	return plug.Points{Wrap: []plug.Wrap{r.wrap}, Extra: r.extra, Hooks: plug.Hooks{Over: r.ended}, Close: r.close}, nil
}

// What looking back at a task may cost. A session that does little is judged by rules,
// without a model.
const (
	askFrom       = 3                  // calls from which on a model is asked
	lookBackAfter = 5                  // turns after which a session that goes on is judged
	lookBackTime  = time.Minute        // of a session that goes on
	partingTime   = 2 * time.Second    // by which a person may be late
	lookBackOut   = 700                // tokens of an answer
	keptCalls     = 60                 // calls of an excerpt
	keptCall      = 160                // bytes of one
	keptText      = 2 << 10            // bytes of a task and of an answer
	lessonsLimit  = 4 << 10            // bytes that a session begins with
	purpose       = "reflexion"        // of the question
	recent        = lessons.MaxEntries // entries that are looked through for lessons
)

// session is what was done in one session. It is safe for concurrent use.
type session struct {
	*Extension
	s *plug.Session

	mu    sync.Mutex
	begun bool                 // the first input was seen
	first []agent.ContextAdded // what the session begins with
	work  work
	busy  chan struct{} // closed when the question under way is over; nil = there is none
	stop  context.CancelFunc
}

// work is what was done since the last look back.
type work struct {
	task, answer string
	calls        []string
	count        int
	failed       map[agent.ErrorCode]int
	changed      bool // files were
	checked      bool // and a check came behind it
	turns        int
	end          agent.EndReason
}

// extra returns the lessons of tasks like the one that a session begins with. They stay
// what they were when it began.
func (r *session) extra(ctx context.Context, at plug.Moment) []agent.ContextAdded {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, in := range at.Fresh {
		if in.Origin != "" || in.Text == "" {
			continue
		}
		if r.work.task == "" {
			r.work.task = cut(in.Text, keptText)
		}
		if !r.begun {
			r.begun = true
			if at.Turns <= 1 && !at.Has("lessons", "") {
				r.first = r.learnt(lessons.Classify(in.Text))
			}
		}
	}
	return r.first
}

// learnt returns the lessons of the newest tasks of a type that have any.
func (r *session) learnt(t lessons.Type) []agent.ContextAdded {
	n := r.cfg.Tasks
	all, err := r.store.Recent(recent, t)
	if err != nil {
		r.cfg.Logger.Warn("reading lessons", "error", err)
		return nil
	}
	all = slices.DeleteFunc(all, func(e lessons.Entry) bool { return len(e.Lessons) == 0 })
	text := lessons.Render(all[:min(n, len(all))], lessonsLimit)
	if text == "" {
		return nil
	}
	return []agent.ContextAdded{{Source: "lessons", From: []string{string(t)}, Text: text}}
}

// cut returns the beginning of a text.
func cut(s string, n int) string { return strings.ToValidUTF8(s[:min(len(s), n)], "") }

// wrap takes note of calls and what came of them.
func (r *session) wrap(t agent.Tool, next plug.Run) plug.Run {
	name := t.Spec().Name
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		res, err := next(ctx, tc, c)
		r.mu.Lock()
		defer r.mu.Unlock()
		w := &r.work
		w.count++
		outcome := "ok"
		if err != nil || res.Failed() {
			code := agent.ErrTool
			if res.Error != nil {
				code = res.Error.Code
			}
			if w.failed == nil {
				w.failed = map[agent.ErrorCode]int{}
			}
			w.failed[code]++
			outcome = string(code)
		}
		if len(w.calls) < keptCalls {
			input := " " + cut(strings.Join(strings.Fields(string(c.Input)), " "), keptCall)
			if name == "user__ask" { // what a person has answered may be for a server alone
				input = ""
			}
			w.calls = append(w.calls, fmt.Sprintf("%s%s: %s", name, input, outcome))
		}
		if slices.ContainsFunc(res.Files, func(f agent.FileState) bool { return f.Wrote }) {
			w.changed, w.checked = true, false
		} else if w.changed && (name == "code__check" || strings.HasPrefix(name, "bash__")) && outcome == "ok" {
			w.checked = true
		}
		return res, err
	}
}

// ended is told of the end of each turn. After some, a session that goes on is looked
// back at, in a goroutine that close waits for.
func (r *session) ended(end agent.TurnEnded, answer string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.work.turns++
	r.work.end, r.work.answer = end.Reason, cut(answer, keptText)
	if r.work.turns < lookBackAfter || r.work.count == 0 || !judged(r.work.end) || r.busy != nil {
		return
	}
	w := r.work
	r.work = work{}
	done := make(chan struct{})
	ctx, cancel := context.WithTimeout(context.Background(), lookBackTime) // the turn is over
	r.busy, r.stop = done, cancel
	go func() {
		defer close(done)
		defer cancel()
		r.lookBack(ctx, w, true)
		r.mu.Lock()
		defer r.mu.Unlock()
		r.busy = nil
	}()
}

// judged reports whether a turn that ended so says something of how the task went.
func judged(end agent.EndReason) bool { return end == agent.EndDone || end == agent.EndFailed }

// close looks back at what is left: by rules, where no person has time for more.
func (r *session) close() {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(r.cfg.Parting, partingTime))
	defer cancel()
	r.mu.Lock()
	busy, stop, w := r.busy, r.stop, r.work
	r.work = work{}
	r.mu.Unlock()
	if w.count > 0 && judged(w.end) {
		r.lookBack(ctx, w, r.s.Open.Approver)
	}
	if busy == nil {
		return
	}
	select {
	case <-busy:
	case <-ctx.Done():
		stop()
		<-busy
	}
}
