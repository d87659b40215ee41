package cli

import (
	"bufio"
	"fmt"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

// ExplainRecorded says what was decided on a recorded call, and what would be now.
func (c *CLI) ExplainRecorded(r query.ExplainedDecision) error {
	t, a := c.Text, query.DecidedAgain{}
	if r.Again != nil {
		a = *r.Again
	}
	return c.text(func(w *bufio.Writer) {
		fmt.Fprintln(w, t.Say(text.ExplainRecord, "session", text.OneLine(r.Session), "n", r.Seq, "time", r.Time.Local().Format(auditTime)))
		if r.Proposal.Agent != "" {
			fmt.Fprintln(w, t.Say(text.ExplainAgent, "agent", text.OneLine(bounded(r.Proposal.Agent))))
		}
		c.explain(w, r.Proposal, r.Decision)
		if r.Answer != nil {
			rules := ""
			if r.Answer.Remember != "" {
				rules = "(" + t.Word(r.Answer.Remember) + ": " + text.OneLine(bounded(strings.Join(r.Answer.Rules, ", "))) + ")"
			}
			fmt.Fprintln(w, strings.TrimSpace(t.Say(text.ExplainAnswer, "verdict", t.Word(string(r.Answer.Decision.Verdict)), "rules", rules)))
		}
		verdict := t.Word(string(a.Now.Verdict))
		switch {
		case r.Lost != "":
			fmt.Fprintln(w, t.Say(text.ExplainLost, "why", t.Phrase(text.OneLine(bounded(r.Lost)))))
		case a.Was == a.Now.Verdict:
			fmt.Fprintln(w, t.Say(text.ExplainSame, "verdict", verdict))
		default:
			fmt.Fprintln(w, t.Say(text.ExplainOther, "was", t.Word(string(a.Was)), "verdict", verdict, "reason", t.Phrase(text.OneLine(bounded(a.Now.Reason)))))
		}
		for _, rule := range []struct {
			key  text.Key
			rule string
		}{{text.ExplainGone, a.Gone}, {text.ExplainCome, a.Come}} {
			if rule.rule != "" {
				fmt.Fprintln(w, "  "+t.Say(rule.key, "rule", text.OneLine(bounded(rule.rule))))
			}
		}
	})
}

// Flip says in a line that a recorded call would be decided otherwise.
func (c *CLI) Flip(session string, p agent.Proposal, was agent.Verdict, now agent.Decision) string {
	const most = 60 // columns of the call
	t := c.Text
	return t.Say(text.SimulateRow, "session", text.OneLine(session), "tool", toolName(p.Call.Tool), "what", text.Cut(mainArg(p.Call, ""), most),
		"was", t.Word(string(was)), "now", t.Word(string(now.Verdict)), "reason", t.Phrase(text.OneLine(bounded(now.Reason))))
}

// Explain says what was decided on a call, by whom, and what would have changed it.
func (c *CLI) Explain(p agent.Proposal, d agent.Decision) error {
	return c.text(func(w *bufio.Writer) { c.explain(w, p, d) })
}

func (c *CLI) explain(w *bufio.Writer, p agent.Proposal, d agent.Decision) {
	t := c.Text
	fmt.Fprintln(w, t.Say(text.ExplainVerdict, "verdict", t.Word(string(d.Verdict)), "reason", t.Phrase(text.OneLine(bounded(d.Reason)))))
	for _, line := range effects(t, p, "") {
		fmt.Fprintln(w, "  "+line)
	}
	fmt.Fprintln(w, t.Say(text.ExplainBy, "by", t.Word(text.OneLine(d.By))))
	if d.Rule != "" {
		source := text.OneLine(bounded(sourceOf(d)))
		fmt.Fprintln(w, strings.TrimSuffix(t.Say(text.ExplainRule, "rule", text.OneLine(bounded(d.Rule)), "source", source), " ()"))
	}
	if d.Flip != "" {
		fmt.Fprintln(w, t.Say(text.ExplainFlip, "flip", t.Phrase(text.OneLine(bounded(d.Flip)))))
	}
	fmt.Fprintln(w, t.Say(text.ExplainStages))
	var rows [][]string
	for _, o := range d.Trace {
		verdict := "-"
		if o.Verdict != agent.Pass {
			verdict = t.Word(string(o.Verdict))
		}
		why := t.Phrase(text.OneLine(bounded(o.Reason)))
		if o.Source != "" {
			why += " (" + text.OneLine(bounded(o.Source)) + ")"
		}
		rows = append(rows, []string{" ", text.OneLine(o.Stage), verdict, why})
	}
	const least = 20
	squeeze(rows, 3, c.columns(), least)
	table(w, rows)
}
