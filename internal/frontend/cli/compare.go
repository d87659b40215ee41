package cli

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

const (
	besideWidth = 90  // columns from which two sessions stand beside each other
	plainWidth  = 120 // columns where there is no terminal
	answerLines = 20  // of an answer
	shownCalls  = 100
	shownDiff   = 60 // lines of one file
)

// Compare shows two sessions side by side, or one under the other where the terminal
// is narrow.
func (c *CLI) Compare(ctx context.Context, a, b string, asJSON bool) error {
	first, err := c.Find(ctx, a, "")
	if err != nil {
		return err
	}
	second, err := c.Find(ctx, b, "")
	if err != nil {
		return err
	}
	r, err := wait[agent.Comparison](ctx, c, text.BusyCompare, query.CompareSessions{A: first.ID, B: second.ID})
	if err != nil {
		return err
	}
	return c.put(r, asJSON, func(w *bufio.Writer) { c.compared(w, r) })
}

func (c *CLI) compared(w *bufio.Writer, r agent.Comparison) {
	t := c.Text
	c.sides(w, c.facts(r.A), c.facts(r.B))
	fmt.Fprintln(w)
	switch {
	case r.PartA == 0 && r.PartB == 0:
		fmt.Fprintln(w, t.Say(text.CompareSame, "n", r.Shared))
		return
	case r.Shared == 0:
		fmt.Fprintln(w, t.Say(text.CompareApart))
	default:
		fmt.Fprintln(w, t.Say(text.ComparePart, "n", r.Shared))
	}
	if len(r.Calls) > 0 {
		fmt.Fprintln(w, "\n"+t.Say(text.CompareCalls))
	}
	for i, pair := range r.Calls {
		if i == shownCalls {
			fmt.Fprintln(w, "    "+t.Say(text.MoreLines, "n", len(r.Calls)-i))
			break
		}
		fmt.Fprintln(w, text.Cut(c.pair(pair), c.compareWidth()))
	}
	if len(r.Files) > 0 {
		fmt.Fprintln(w, "\n"+t.Say(text.CompareFiles))
	}
	for _, f := range r.Files {
		fmt.Fprintf(w, "  %s: A %s, B %s\n", text.OneLine(bounded(f.Path)), t.Word("file."+f.A), t.Word("file."+f.B))
		lines := strings.Split(strings.TrimSuffix(f.Diff, "\n"), "\n")
		for i, l := range lines {
			switch {
			case i < 3: // the names
			case i >= shownDiff:
				fmt.Fprintln(w, "      "+t.Say(text.MoreLines, "n", len(lines)-i))
			default:
				fmt.Fprintln(w, "      "+text.Clean(bounded(l)))
			}
			if i >= shownDiff {
				break
			}
		}
	}
	if r.Cut {
		fmt.Fprintln(w, t.Say(text.CompareCut))
	}
}

func (c *CLI) compareWidth() int {
	if n := c.columns(); n > 1 {
		return n - 1
	}
	return plainWidth
}

// A fact is a line about a session: what it is about, and what it is.
type fact struct{ name, value string }

func (c *CLI) facts(s agent.ComparedSession) []fact {
	t := c.Text
	outcome := t.Word("end." + string(s.Outcome))
	if s.Outcome == "" {
		outcome = "-"
	}
	if s.Error != "" {
		outcome += ": " + t.Phrase(text.OneLine(bounded(s.Error)))
	}
	return []fact{
		{t.Say(text.CompareSession), joined(s.Session, text.OneLine(bounded(s.Title)))},
		{t.Say(text.CompareModel), joined(text.OneLine(s.Model), string(s.Mode))},
		{t.Say(text.CompareAsked), text.OneLine(bounded(s.Asked))},
		{t.Say(text.CompareOutcome), outcome},
		{t.Say(text.CompareSteps), t.Say(text.CompareCount, "turns", s.Turns, "steps", s.Steps, "calls", s.Calls, "failed", s.Failed)},
		{t.Say(text.CompareUse), joined(took(time.Duration(s.Millis)*time.Millisecond), tokens(s.Usage.Input+s.Usage.CacheRead+s.Usage.CacheWrite)+" / "+tokens(s.Usage.Output), cost(t, s.Cost))},
		{t.Say(text.CompareAnswer), text.Clean(s.Answer)},
	}
}

// sides writes facts of two sessions.
func (c *CLI) sides(w *bufio.Writer, a, b []fact) {
	width, label := c.compareWidth(), 0
	for _, f := range a {
		label = max(label, text.Width(f.name)+gap)
	}
	if width < besideWidth {
		for i, side := range [][]fact{a, b} {
			fmt.Fprintln(w, string(rune('A'+i)))
			for _, f := range side {
				for n, l := range cell(f.value, width-label-2) {
					name := f.name
					if n > 0 {
						name = ""
					}
					fmt.Fprintln(w, "  "+pad(name, label)+l)
				}
			}
		}
		return
	}
	half := (width - label - gap) / 2
	fmt.Fprintln(w, pad("", label)+pad("A", half+gap)+"B")
	for i := range a {
		x, y := cell(a[i].value, half), cell(b[i].value, half)
		for n := range max(len(x), len(y)) {
			name, left, right := "", "", ""
			if n == 0 {
				name = a[i].name
			}
			if n < len(x) {
				left = x[n]
			}
			if n < len(y) {
				right = y[n]
			}
			fmt.Fprintln(w, strings.TrimRight(pad(name, label)+pad(left, half+gap)+right, " "))
		}
	}
}

// cell returns a value in lines of so many columns.
func cell(s string, width int) (lines []string) {
	for _, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		lines = append(lines, text.Wrap(l, max(width, 10))...)
	}
	if len(lines) > answerLines {
		lines = append(lines[:answerLines], "…")
	}
	return lines
}

// pair is a line about calls: "=" is of both, "A" and "B" of one.
func (c *CLI) pair(p agent.ComparedCall) string {
	sign, call := "=", p.A
	switch {
	case p.B == nil:
		sign = "A"
	case p.A == nil:
		sign, call = "B", p.B
	}
	line := "  " + sign + " " + callLine(agent.Call{Tool: call.Tool, Input: call.Input}, "")
	if p.A != nil && p.B != nil && c.outcome(p.A) != c.outcome(p.B) {
		return line + " · A " + c.outcome(p.A) + ", B " + c.outcome(p.B)
	}
	return joined(line, c.outcome(call))
}

func (c *CLI) outcome(d *agent.CallDone) string {
	switch {
	case d.Denied:
		return c.Text.Say(text.Denied)
	case d.Status == "ok", d.Status == "":
		return d.Status
	}
	return c.Text.Word(d.Status)
}
