package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
	"dure/internal/state/plan"
)

// AuditOptions say which decisions are shown, and how.
type AuditOptions struct {
	Session string // its name; "" = all
	Query   query.ListDecisions
	Format  AuditFormat // "" = text
}

// AuditFormat is the form of a list of decisions.
type AuditFormat string

// The forms of a list of decisions.
const (
	AuditText  AuditFormat = "text"
	AuditJSON  AuditFormat = "json"
	AuditLines AuditFormat = "jsonl"
	AuditCSV   AuditFormat = "csv"
)

// Audit shows what was decided on calls.
func (c *CLI) Audit(ctx context.Context, o AuditOptions) error {
	if o.Session != "" {
		info, err := c.Find(ctx, o.Session, "")
		if err != nil {
			return err
		}
		o.Query.Session = info.ID
	}
	list, err := wait[[]agent.DecisionRecord](ctx, c, text.BusyAudit, o.Query)
	if err != nil {
		return err
	}
	switch o.Format {
	case AuditJSON:
		return c.encode(list)
	case AuditLines:
		return c.buffered(func(w *bufio.Writer) error {
			e := json.NewEncoder(w)
			e.SetEscapeHTML(false)
			for _, r := range list {
				if err := e.Encode(r); err != nil {
					return err
				}
			}
			return nil
		})
	case AuditCSV:
		return c.buffered(func(w *bufio.Writer) error { return auditCSV(w, list) })
	}
	return c.text(func(w *bufio.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, c.Text.Say(text.AuditNone))
			return
		}
		rows := [][]string{c.heads(text.ColTime, text.ColSession, text.ColNumber, text.ColVerdict, text.ColTool, text.ColBy, text.ColWhat)}
		for _, r := range list {
			verdict, what := c.Text.Word(string(r.Decision.Verdict)), mainArg(r.Proposal.Call, r.Workdir)
			if r.Plan != nil {
				verdict, what = c.Text.Word(planWord(r.Plan)), auditPlan(c.Text, r)
			}
			rows = append(rows, []string{
				r.Time.Local().Format(auditTime), text.OneLine(r.Session), fmt.Sprint(r.Seq), verdict,
				caller(r) + toolName(r.Proposal.Call.Tool), decider(r), what,
			})
		}
		const least = 16
		last := len(rows[0]) - 1
		rows = fit(rows, last, c.columns(), least, 0, 5, 1, 2)
		table(w, rows)
	})
}

// planWord is what became of a plan, in a word: proposed, changed, or a verdict on it.
func planWord(p *agent.PlanRecord) string {
	switch p.What {
	case "proposed", string(agent.PlanApproved), string(agent.PlanRejected), string(agent.PlanAnother):
		return "plan." + p.What
	}
	return "plan.changed"
}

// auditPlan says what a record about a plan is about: how many steps it has, what was
// changed, or why it was decided so.
func auditPlan(t text.Catalog, r agent.DecisionRecord) string {
	switch p := r.Plan; planWord(p) {
	case "plan.proposed":
		n := 0
		if p.Body != nil {
			n = len(p.Body.Steps)
		}
		return t.Say(text.PlanMade, "n", n)
	case "plan.changed":
		return t.Say(planDid(p.What), "n", p.Step, "to", p.To)
	}
	return text.OneLine(bounded(r.Decision.Reason))
}

// auditTime is how the time of a decision is shown.
const auditTime = "2006-01-02 15:04:05"

// caller names the agent that made a call, if it was not the session's own.
func caller(r agent.DecisionRecord) string {
	if r.Proposal.Agent == "" {
		return ""
	}
	const longest = 20 // cells
	return text.Cut(text.OneLine(bounded(r.Proposal.Agent)), longest) + ": "
}

// decider says who decided: the rule, if it was one; of a person also for how long.
func decider(r agent.DecisionRecord) string {
	const longest = 40 // cells
	if r.Answer != nil && r.Answer.Remember != "" {
		return text.Cut(text.OneLine(bounded(r.Decision.By)), longest) + ", " + r.Answer.Remember
	}
	if r.Decision.By == "rule" && r.Decision.Rule != "" {
		return text.Cut(text.OneLine(bounded(r.Decision.Rule)), longest)
	}
	return text.Cut(text.OneLine(bounded(r.Decision.By)), longest)
}

// auditCSV writes decisions for spreadsheets. A field that a spreadsheet would take
// for a formula has an apostrophe in front.
func auditCSV(w *bufio.Writer, list []agent.DecisionRecord) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"time", "session", "seq", "workdir", "agent", "tool", "input", "verdict", "by", "reason", "rule", "source", "remember"}); err != nil {
		return err
	}
	for _, r := range list {
		d, remember := r.Decision, ""
		if r.Answer != nil {
			remember = r.Answer.Remember
		}
		input, verdict := string(r.Proposal.Call.Input), string(d.Verdict)
		if p := r.Plan; p != nil {
			verdict = strings.TrimPrefix(planWord(p), "plan.")
			if p.Body != nil {
				input = plan.Render(*p.Body)
			}
		}
		fields := []string{
			r.Time.Format(time.RFC3339Nano), r.Session, fmt.Sprint(r.Seq), r.Workdir, r.Proposal.Agent, r.Proposal.Call.Tool,
			input, verdict, d.By, d.Reason, d.Rule, sourceOf(d), remember,
		}
		for i, f := range fields {
			if f != "" && (f[0] == '=' || f[0] == '+' || f[0] == '-' || f[0] == '@' || f[0] == '\t' || f[0] == '\r') {
				fields[i] = "'" + f
			}
		}
		if err := out.Write(fields); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// sourceOf returns where the rule that decided stands.
func sourceOf(d agent.Decision) string {
	for _, o := range d.Trace {
		if o.Rule != "" && o.Rule == d.Rule {
			return o.Source
		}
	}
	return ""
}
