package lsp

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

// The bounds of what is added to the result of an edit.
const (
	editWait  = 1500 * time.Millisecond // that a call waits for the servers
	editLines = 20                      // diagnostics
	editFiles = 10                      // files of one call that are asked about
)

// Run is how a call of a tool is run.
type Run func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error)

// Wrap returns next with something added: when the call has written files, the
// errors and warnings that are new in them are appended to its result. Waiting
// for them takes at most 1.5 s; what comes later is told after the next edit of
// the file. A call neither fails for it nor is it kept from its end.
func (l *Client) Wrap(_ agent.Tool, next Run) Run {
	return func(ctx context.Context, tc agent.ToolContext, c agent.Call) (agent.Result, error) {
		r, err := next(ctx, tc, c)
		if err != nil || r.Failed() || r.Stream != nil {
			return r, err
		}
		if lines := l.afterEdit(ctx, tc, r.Files); len(lines) > 0 {
			r.Text += "\n" + strings.Join(lines, "\n")
		}
		return r, nil
	}
}

// waiting is a file whose diagnostics are waited for.
type waiting struct {
	s    *server
	path string
	turn int // see [server.ask]
}

func (l *Client) afterEdit(ctx context.Context, tc agent.ToolContext, files []agent.FileState) []string {
	ctx, cancel := context.WithTimeout(ctx, editWait)
	defer cancel()
	var list []waiting
	for _, f := range files {
		if !f.Wrote || !filepath.IsAbs(f.Path) || len(list) == editFiles {
			continue
		}
		s := l.server(f.Path, false)
		if s == nil {
			continue
		}
		if turn := s.ask(f.Path); turn > 0 && !f.Gone {
			list = append(list, waiting{s, f.Path, turn})
		}
	}
	var lines []string
	for _, w := range list {
		if w.s.await(ctx, w.path, w.turn) != fresh {
			continue
		}
		lines = append(lines, l.render(tc, w.s, w.path, w.s.news(w.path))...)
	}
	if n := len(lines) - editLines; n > 0 {
		lines = append(lines[:editLines], fmt.Sprintf("[%d more]", n))
	}
	return lines
}

// outcome says how waiting for diagnostics ended.
type outcome int

const (
	late  outcome = iota // the time was over
	fresh                // they are there
	gone                 // the file cannot be sent
	dead                 // the server is off
)

// await waits until the diagnostics of a file are those of the text that it had
// when turn was given out.
func (s *server) await(ctx context.Context, path string, turn int) outcome {
	for {
		s.mu.Lock()
		d, changed, off := s.docs[key(path)], s.changed, s.off
		done := d != nil && d.fresh >= turn
		var settle time.Duration
		if done {
			settle = time.Until(d.settles)
		}
		s.mu.Unlock()
		switch {
		case done && settle <= 0:
			return fresh
		case d == nil:
			return gone
		case off:
			return dead
		}
		var t <-chan time.Time
		if done {
			timer := time.NewTimer(settle)
			defer timer.Stop() // there are few rounds
			t = timer.C
		}
		select {
		case <-changed:
		case <-t:
		case <-ctx.Done():
			if done {
				return fresh
			}
			return late
		}
	}
}

// news returns the diagnostics of a file that have not been reported yet, and
// takes them as reported. Lines may have moved: what says the same is the same.
func (s *server) news(path string) []diagnostic {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.docs[key(path)]
	if d == nil {
		return nil
	}
	type what struct {
		severity int
		message  string
	}
	old := map[what]int{}
	for _, f := range d.reported {
		old[what{f.Severity, f.Message}]++
	}
	var list []diagnostic
	for _, f := range d.findings {
		if w := (what{f.Severity, f.Message}); old[w] > 0 {
			old[w]--
		} else {
			list = append(list, f)
		}
	}
	d.reported = d.findings
	return list
}

// render writes diagnostics as lines, errors first.
func (l *Client) render(tc agent.ToolContext, s *server, path string, list []diagnostic) []string {
	if len(list) == 0 {
		return nil
	}
	text, err := l.text(path)
	if err != nil {
		text = "" // it is gone; the columns are then as the server counts
	}
	source := strings.Split(text, "\n")
	var lines []string
	for _, severity := range []int{severeError, severeWarning} {
		for _, f := range list {
			if f.Severity != severity {
				continue
			}
			at := int(f.Range.Start.Character) + 1
			if n := int(f.Range.Start.Line); n < len(source) && text != "" {
				at = column(source[n], f.Range.Start.Character)
			}
			word := map[int]string{severeError: "error", severeWarning: "warning"}[severity]
			lines = append(lines, fmt.Sprintf("%s: %s:%d:%d: %s: %s", s.spec.Name, l.shown(tc, path), int(f.Range.Start.Line)+1, at, word, f.Message))
		}
	}
	return lines
}

// shown returns a path relative to the working folder, or else to the root, when
// it is below.
func (l *Client) shown(tc agent.ToolContext, path string) string {
	return kit.Name(kit.Relative(path, tc.Workdir, l.Root))
}
