package cli

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
	"dure/internal/state/plan"
)

// planTool puts a plan to the user.
const planTool = "plan__exit"

func isPlanCall(c agent.Call) bool { return c.Tool == planTool }

// isPlan reports whether an input is the command about plans: it may be given while a
// plan waits for its answer.
func isPlan(s string) bool {
	name, _, _ := strings.Cut(s, " ")
	return strings.EqualFold(name, "/plan")
}

// asksPlan reports whether the question on show is about a plan.
func (ch *chat) asksPlan() bool {
	return slices.ContainsFunc(ch.v.Asks, func(a *view.Ask) bool { return a.ID == ch.asking && isPlanCall(a.Proposal.Call) })
}

// planNote draws what became of a plan. A plan as such is drawn with its question.
func (v *painter) planNote(b agent.Body) {
	switch b := b.(type) {
	case agent.PlanProposed:
		v.note(dim, v.t.Say(text.PlanMade, "n", len(b.Body.Steps)))
	case agent.PlanChanged:
		v.note(dim, v.t.Say(text.PlanEdited, "what", v.t.Say(planDid(b.Do), "n", b.Step, "to", b.To)))
		v.showPlan(plan.Render(b.Body))
	case agent.PlanDecided:
		v.note(dim, strings.TrimSuffix(v.t.Say(planIs(b.Verdict))+": "+text.OneLine(bounded(b.Reason)), ": "))
	}
}

func planDid(do string) text.Key {
	return cmp.Or(map[string]text.Key{
		agent.PlanEdit: text.PlanDidEdit, agent.PlanAdd: text.PlanDidAdd, agent.PlanMove: text.PlanDidMove, agent.PlanDrop: text.PlanDidDrop,
	}[do], text.PlanDidText)
}

func planIs(verdict agent.PlanVerdict) text.Key {
	return cmp.Or(map[agent.PlanVerdict]text.Key{
		agent.PlanApproved: text.PlanIsApproved, agent.PlanAnother: text.PlanIsAnother, "": text.PlanWaits,
	}[verdict], text.PlanIsRejected)
}

func planNow(m agent.PlanMode) text.Key {
	return cmp.Or(map[agent.PlanMode]text.Key{agent.PlanAlways: text.PlanNowAlways, agent.PlanAuto: text.PlanNowAuto}[m], text.PlanNowOff)
}

// planText returns the plan that a call puts to the user, as it is by now; "" = it puts
// none.
func (v *painter) planText(c agent.Call) string {
	if !isPlanCall(c) {
		return ""
	}
	if v.Plan != nil && v.Plan.State == "" {
		return plan.Render(v.Plan.Body)
	}
	return strings.TrimSpace(stringField(c.Input, "plan"))
}

// showPlan shows all of a plan: nobody agrees to what they have not seen.
func (v *painter) showPlan(s string) {
	for l := range strings.SplitSeq(text.Exact(s), "\n") {
		v.s.line(4, part{plain, "  | " + l})
	}
}

// slashPlan shows or changes the newest plan, decides about it, says when plans are made,
// or asks for one.
func (ch *chat) slashPlan(ctx context.Context, arg string) {
	word, rest, _ := strings.Cut(arg, " ")
	word, rest = strings.ToLower(word), strings.TrimSpace(rest)
	modes := agent.PlanModes()
	at := slices.Index(modes, agent.PlanMode(word))
	switch {
	case arg == "":
		at = max(slices.Index(modes, ch.v.plansNow()), 0)
		ch.send(ctx, agent.Change{Plan: modes[(at+1)%len(modes)]})
	case rest == "" && at >= 0:
		ch.send(ctx, agent.Change{Plan: modes[at]})
	case rest == "" && (word == "show" || word == "open"):
		ch.showNewest(ctx)
	case ch.planVerb(ctx, word, rest):
	case ch.v.Mode == agent.ModePlan || ch.send(ctx, agent.Change{Mode: agent.ModePlan}):
		ch.say(ctx, arg)
	}
}

// plansNow is when the session plans.
func (v *painter) plansNow() agent.PlanMode {
	if v.Planning == "" && v.Work != nil {
		return cmp.Or(v.Work.Plan, agent.PlanOff)
	}
	return cmp.Or(v.Planning, agent.PlanOff)
}

// newest returns the newest plan; nil = there is none. Of a long session whose beginning
// was not read, the log is asked.
func (ch *chat) newest(ctx context.Context) *agent.StoodPlan {
	if ch.v.Plan == nil && ch.known != nil {
		r, err := client.Query[agent.SessionStand](ctx, ch.Client, query.SessionAt{Session: ch.sess.Info.ID})
		if err == nil {
			ch.v.Plan = r.Plan
		}
	}
	return ch.v.Plan
}

// showNewest shows the newest plan, and what became of it.
func (ch *chat) showNewest(ctx context.Context) {
	p := ch.newest(ctx)
	if p == nil {
		ch.v.note(dim, ch.Text.Say(text.PlanNone))
		return
	}
	ch.v.showPlan(plan.Render(p.Body))
	ch.v.note(dim, ch.Text.Say(planIs(p.State)))
}

// planVerb changes the newest plan or decides about it. It reports whether the words were
// meant so: a description may begin with the same word.
func (ch *chat) planVerb(ctx context.Context, verb, rest string) bool {
	c, ok := planCommand(verb, rest)
	p := ch.newest(ctx)
	waits := p != nil && p.State == ""
	switch {
	case c == nil && !ok: // no verb
		return false
	case ok && (waits || !describes(verb, rest) || p != nil && verb == "reject"):
		ch.send(ctx, c)
		return true
	case waits:
		ch.v.note(yellow, ch.usageOf(ctx, "plan"))
		return true
	}
	return false
}

// describes reports whether words that begin with a verb may as well describe a task.
func describes(verb, rest string) bool {
	return verb == "add" || (verb == "reject" || verb == "regenerate") && rest != ""
}

// planCommand returns what a verb asks for. With a verb and words that do not fit it, ok
// is false and the command is not nil; what is no verb has none.
func planCommand(verb, rest string) (c agent.Command, ok bool) {
	n, after, numbered := number(rest)
	m, end, two := number(after)
	switch verb {
	case agent.PlanEdit:
		return agent.ChangePlan{Do: verb, Step: n, Text: after}, numbered && after != ""
	case agent.PlanAdd:
		if !numbered || after == "" {
			n, after = 0, rest
		}
		return agent.ChangePlan{Do: verb, Step: n, Text: after}, after != ""
	case agent.PlanMove:
		return agent.ChangePlan{Do: verb, Step: n, To: m}, numbered && two && end == ""
	case agent.PlanDrop:
		return agent.ChangePlan{Do: verb, Step: n}, numbered && after == ""
	case "approve":
		return agent.DecidePlan{Verdict: agent.PlanApproved}, rest == ""
	case "reject":
		return agent.DecidePlan{Verdict: agent.PlanRejected, Reason: rest}, true
	case "regenerate":
		return agent.DecidePlan{Verdict: agent.PlanAnother, Reason: rest}, true
	}
	return nil, false
}

// number takes a number off the beginning of words.
func number(s string) (n int, rest string, ok bool) {
	word, rest, _ := strings.Cut(s, " ")
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 {
		return 0, s, false
	}
	return n, strings.TrimSpace(rest), true
}

// standPlan is the plan of a session as it stood.
func standPlan(t text.Catalog, r agent.SessionStand) []string {
	if r.Plan == nil {
		return nil
	}
	return append(strings.Split(text.Exact(plan.Render(r.Plan.Body)), "\n"), "("+t.Say(planIs(r.Plan.State))+")")
}
