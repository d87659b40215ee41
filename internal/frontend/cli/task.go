package cli

import (
	"bufio"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/state/transcript"
)

// taskState is the working memory of a session: what its agent has noted.
type taskState struct {
	Session   string            `json:"sessionId"`
	Task      string            `json:"currentTask"`
	Files     []string          `json:"referencedFiles"` // the newest last
	Decisions []taskDecision    `json:"decisionLog"`
	Facts     map[string]string `json:"keyFacts"`

	// Summary is what stands for the part of the conversation that was shortened.
	Summary string `json:"contextSummary"`
}

type taskDecision struct {
	Seq          int64     `json:"seq"`
	Time         time.Time `json:"timestamp"`
	Decision     string    `json:"decision"`
	Reason       string    `json:"reason,omitempty"`
	Alternatives []string  `json:"alternatives,omitempty"`
}

// Task shows the working memory of a session.
func (c *CLI) Task(ctx context.Context, name, workdir string, asJSON bool) error {
	t, err := c.taskOf(ctx, name, workdir)
	if err != nil {
		return err
	}
	return c.put(t, asJSON, func(w *bufio.Writer) {
		for _, l := range taskLines(c.Text, t) {
			Hang(w, c.Columns(), "", l, 0)
		}
	})
}

// taskOf folds the log of a session.
func (c *CLI) taskOf(ctx context.Context, name, workdir string) (t taskState, err error) {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return t, err
	}
	s, at, heads := transcript.New(), map[int64]time.Time{}, map[int64]string{}
	s.Reread(func() iter.Seq2[agent.Event, error] { return c.Client.Attach(info.ID).Events(ctx, 0) })
	for e, err := range c.Client.Attach(info.ID).Events(ctx, 0) {
		if err != nil {
			return t, err
		}
		if e.Live() {
			continue
		}
		s.Apply(e)
		switch b := e.Body.(type) {
		case agent.CallFinished:
			if b.Result.Meta[agent.MetaTask] != nil {
				at[e.Seq] = e.Time
			}
		case agent.ContextCompacted:
			for _, m := range b.Head {
				heads[e.Seq] += m.Text()
			}
		}
		if e.Seq >= info.Head {
			break
		}
	}
	t = taskState{Session: info.ID, Task: s.Task.Task, Files: append([]string{}, s.Task.Files...), Decisions: []taskDecision{}, Facts: map[string]string{}}
	for _, d := range s.Task.Decisions {
		t.Decisions = append(t.Decisions, taskDecision{d.Seq, at[d.Seq], d.Decision, d.Reason, d.Alternatives})
	}
	for name, f := range s.Task.Facts {
		t.Facts[name] = f.Text
	}
	for _, c := range s.Compactions {
		if head := heads[c.Seq]; head != "" {
			t.Summary = head
		}
	}
	return t, nil
}

// taskLines is a working memory as people read it.
func taskLines(t text.Catalog, s taskState) []string {
	var lines []string
	add := func(k text.Key, value string) { lines = append(lines, t.Say(k, "text", text.OneLine(value))) }
	if s.Task != "" {
		add(text.TaskNow, s.Task)
	}
	for _, d := range s.Decisions {
		line := d.Decision
		if d.Reason != "" {
			line += " – " + d.Reason
		}
		if len(d.Alternatives) > 0 {
			line += " (" + t.Say(text.TaskInstead, "text", strings.Join(d.Alternatives, "; ")) + ")"
		}
		add(text.TaskDecided, line)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Facts)) {
		add(text.TaskFact, name+": "+s.Facts[name])
	}
	for _, f := range s.Files {
		add(text.TaskFile, f)
	}
	if s.Summary != "" {
		lines = append(lines, t.Say(text.TaskSummary))
		for l := range strings.SplitSeq(strings.TrimSpace(text.Clean(s.Summary)), "\n") {
			lines = append(lines, "  "+l)
		}
	}
	if lines == nil {
		return []string{t.Say(text.TaskNothing)}
	}
	return lines
}

// slashTask shows what the agent has noted.
func (ch *chat) slashTask(ctx context.Context, _ string) {
	s, err := ch.taskOf(ctx, ch.sess.Info.ID, "")
	if ch.failed(err) {
		return
	}
	for _, l := range taskLines(ch.Text, s) {
		ch.s.line(2, part{plain, l})
	}
}

// showOpened is how a session was opened.
func (c *CLI) showOpened(b agent.SessionOpened) (head, body string) {
	head = text.Cut(plainFields(b), 200)
	if b.Work != nil {
		body = profileLine(c.Text, *b.Work)
	}
	return head, body
}
