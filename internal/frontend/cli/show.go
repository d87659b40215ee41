package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Show prints the log of a session: one line an event, and what was said in
// full below its line; as JSON the lines of the log.
func (c *CLI) Show(ctx context.Context, name, workdir string, asJSON bool) error {
	info, err := c.Find(ctx, name, workdir)
	if err != nil {
		return err
	}
	return c.buffered(func(w *bufio.Writer) error {
		seen := int64(0)
		for e, err := range c.Client.Attach(info.ID).Events(ctx, 0) {
			if err != nil {
				return err
			}
			if e.Live() {
				continue
			}
			seen = e.Seq
			if err := c.showEvent(w, e, info.Workdir, asJSON); err != nil {
				return err
			}
			if seen >= info.Head && info.Head > 0 && info.Status == "running" {
				return nil // what happens from now on is not shown
			}
		}
		return nil
	})
}

func (c *CLI) showEvent(w *bufio.Writer, e agent.Event, workdir string, asJSON bool) error {
	if asJSON {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		w.Write(data)
		return w.WriteByte('\n')
	}
	head, body := c.describe(e.Body, workdir)
	line := fmt.Sprintf("%5d %s  %-17s %s", e.Seq, e.Time.Local().Format(time.TimeOnly), e.Kind(), head)
	w.WriteString(strings.TrimRight(line, " ") + "\n")
	if body != "" {
		body = strings.TrimRight(text.Clean(body), "\n")
		w.WriteString("        " + strings.ReplaceAll(body, "\n", "\n        ") + "\n")
	}
	return nil
}

// describe returns an event in a line, and what was said in it.
func (c *CLI) describe(b agent.Body, workdir string) (head, body string) {
	switch b := b.(type) {
	case agent.SessionOpened:
		return c.showOpened(b)
	case agent.InputQueued:
		return "", b.Text
	case agent.InputAdded:
		return text.OneLine(b.Origin), b.Text
	case agent.ModelAnswered:
		return c.describeAnswer(b), b.Said()
	case agent.CallDecided:
		return text.Cut(joined(string(b.Decision.Verdict), callLine(b.Proposal.Call, workdir), text.OneLine(b.Decision.By), text.OneLine(bounded(b.Decision.Reason))), 200), ""
	case agent.ApprovalAsked:
		return text.Cut(joined(callLine(b.Proposal.Call, workdir), text.OneLine(bounded(b.Reason))), 200), ""
	case agent.ApprovalResolved:
		return joined(string(b.Decision.Verdict), b.Remember, text.OneLine(bounded(b.Decision.Reason))), ""
	case agent.CallDeferred:
		return text.Cut(deferredLine(c.Text, b, workdir), 200), ""
	case agent.CallFinished:
		return text.Cut(joined(toolName(b.Tool), string(b.Result.Status), summary(c.Text, b), millis(b.Millis)), 200), ""
	case agent.CallSettled:
		return text.Cut(settledLine(c.Text, b), 200), ""
	case agent.CallStarted:
		return joined(toolName(b.Tool), string(b.Class)), ""
	case agent.TurnEnded:
		return joined(string(b.Reason), turnLine(c.Text, b)), b.Error
	case agent.Note:
		return text.OneLine(b.Level), b.Text
	}
	return text.Cut(plainFields(b), 200), ""
}

func (c *CLI) describeAnswer(b agent.ModelAnswered) string {
	var calls []string
	for _, call := range b.Message.Calls() {
		calls = append(calls, toolName(call.Tool))
	}
	return joined(text.OneLine(b.Purpose), string(b.Stop), millis(b.Millis),
		tokens(b.Usage.Input+b.Usage.CacheRead+b.Usage.CacheWrite)+"/"+tokens(b.Usage.Output), strings.Join(calls, ", "))
}

func millis(ms int64) string {
	if ms == 0 {
		return ""
	}
	return took(time.Duration(ms) * time.Millisecond)
}

func callLine(c agent.Call, workdir string) string {
	return strings.TrimSpace(toolName(c.Tool) + " " + text.Cut(mainArg(c, workdir), 100))
}

func joined(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, " · ")
}

// plainFields returns the fields of an event that has no form of its own.
func plainFields(b agent.Body) string {
	data, err := agent.EncodeBody(b)
	if err != nil {
		return ""
	}
	return text.OneLine(bounded(string(data)))
}
