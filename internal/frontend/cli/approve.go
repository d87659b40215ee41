package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// present shows the oldest open approval, unless it is on show, and takes away
// what has been resolved meanwhile, here or elsewhere.
func (ch *chat) present() {
	if len(ch.v.Asks) == 0 || !ch.v.Turn.Running {
		if ch.asking != "" {
			ch.dismiss()
		}
		ch.leaveIfDone()
		return
	}
	ask := ch.v.Asks[0].ApprovalAsked
	if ask.ID == ch.asking {
		return
	}
	if ch.asking == "" {
		ch.draft = ch.ed.take() // typed for the model, not for us
	}
	ch.asking, ch.questions = ask.ID, nil
	ch.ed.set("")
	ch.v.stopThinking()
	ch.tellQuestion(ask.Proposal.Call.Tool)
	if q := readQuestions(ask); q != nil {
		ch.questions = q
		ch.showQuestion()
		return
	}
	ch.showApproval(ask)
	ch.leaveIfDone()
}

// dismiss goes back to what was being typed.
func (ch *chat) dismiss() {
	ch.asking, ch.questions = "", nil
	ch.ed.set(ch.draft)
	ch.draft = ""
}

// showApproval says what would be done, why it is asked, and what it touches.
func (ch *chat) showApproval(ask agent.ApprovalAsked) {
	t, p := ch.Text, ask.Proposal
	ch.s.line(2, part{yellow, ch.v.glyph("? ", text.LabelAsk)}, part{bold, t.Say(text.Approve, "tool", toolName(p.Call.Tool))})
	lines := proposed(p.Call)
	if ask.Diff != "" {
		lines = changed(ask.Diff)
	}
	if len(lines) > 0 {
		ch.s.line(4, part{plain, "  " + text.Exact(mainArg(p.Call, ch.v.Workdir))})
		ch.v.change(lines, approveLines, func(l string) string { return whole(t, l, maxLine, " ") })
	} else if text := ch.v.planText(p.Call); text != "" {
		ch.v.showPlan(text)
	} else {
		ch.s.line(4, part{plain, "    " + indented(whole(t, callText(p.Call), maxShown, "\n"))})
	}
	if p.Agent != "" || p.Origin != "" {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveChild, "agent", text.OneLine(strings.TrimSpace(p.Agent+" "+p.Origin)))})
	}
	if ask.Reason != "" {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveWhy, "reason", t.Phrase(text.OneLine(bounded(ask.Reason))))})
	}
	if ask.Rule != "" {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveRule, "rule", text.ExactLine(bounded(ask.Rule)))})
	}
	if p.Risk == agent.RiskHigh {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveRisk, "risk", t.Word(string(p.Risk)))})
	}
	if e := &p.Effects; e.Unreadable != "" && strings.HasSuffix(ask.Reason, e.Unreadable) {
		e.Unreadable = "" // it has been said
	} else if e.Powers != "" && strings.HasSuffix(ask.Reason, e.Powers) {
		e.Powers = ""
	}
	for _, line := range effects(t, p, ch.v.Workdir) {
		ch.s.line(4, part{dim, "  " + line})
	}
	ch.s.line(2, part{plain, "  " + t.Say(text.ApproveKeys)})
	if isPlanCall(p.Call) {
		ch.s.line(2, part{dim, "  " + t.Say(text.PlanHint)})
	}
	offers := offersOf(ask)
	for _, o := range offers {
		ch.s.line(4, part{plain, "  " + t.Say(o.line, "key", o.key, "rules", text.ExactLine(bounded(strings.Join(o.Rules, ", "))))})
	}
	if len(offers) > 0 {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveEdit)})
	}
}

// An offer is an answer that holds beyond a call, and how it is typed.
type offer struct {
	agent.Choice
	key  string // s or a; the second of its kind is s2
	word string
	line text.Key
}

// offersOf returns the answers that a question offers beside yes and no.
func offersOf(ask agent.ApprovalAsked) []offer {
	var list []offer
	times := map[string]int{}
	for _, c := range ask.Choices {
		o := offer{Choice: c}
		switch c.Remember {
		case agent.RememberSession:
			o.key, o.word, o.line = "s", "session", text.ApproveSession
		case agent.RememberAlways:
			o.key, o.word, o.line = "a", "always", text.ApproveAlways
		default:
			continue
		}
		if times[o.key]++; times[o.key] > 1 {
			n := strconv.Itoa(times[o.key])
			o.key, o.word = o.key+n, o.word+n
		}
		list = append(list, o)
	}
	return list
}

// offers are those of the question on show.
func (ch *chat) offers() []offer {
	for _, a := range ch.v.Asks {
		if a.ID == ch.asking {
			return offersOf(a.ApprovalAsked)
		}
	}
	return nil
}

// answers returns what the question on show takes.
func (ch *chat) answers() string {
	keys := "y"
	for _, o := range ch.offers() {
		keys += "/" + o.key
	}
	return keys + "/n"
}

// ruleList splits rules at the commas outside of their parentheses. It is nil when
// a parenthesis has no other half, or something between the commas is no rule.
func ruleList(s string) []string {
	var list []string
	depth, start, odd := 0, 0, false
	add := func(end int) {
		if r := strings.TrimSpace(s[start:end]); r != "" {
			list, odd = append(list, r), odd || !ruleLike(r)
		}
		start = end + 1
	}
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				add(i)
			}
		}
		if depth < 0 {
			return nil
		}
	}
	add(len(s))
	if depth != 0 || odd {
		return nil
	}
	return list
}

// ruleLike reports whether a text looks like a rule: words that were meant for the
// model do not. A tool as a whole begins with a capital letter, or has a group or a
// server before its name.
func ruleLike(s string) bool {
	name, _, pattern := strings.Cut(s, "(")
	if name == "" || strings.ContainsAny(name, " \t\n") {
		return false
	}
	if pattern {
		return strings.HasSuffix(s, ")")
	}
	return name[0] >= 'A' && name[0] <= 'Z' || strings.Contains(name, "__") || strings.Contains(name, ":")
}

// callText returns the whole of what a call asks for: its command alone where there
// is nothing else to know, or each field of its input, in its order.
func callText(c agent.Call) string {
	if s := stringField(c.Input, "command"); s != "" {
		return s
	}
	d := json.NewDecoder(bytes.NewReader(c.Input))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return string(c.Input)
	}
	var lines []string
	for d.More() {
		name, err := d.Token()
		var raw json.RawMessage
		if err != nil || d.Decode(&raw) != nil {
			return string(c.Input)
		}
		value := string(raw)
		if s := ""; json.Unmarshal(raw, &s) == nil {
			value = s
		}
		lines = append(lines, fmt.Sprintf("%s: %s", name, value))
	}
	return strings.Join(lines, "\n")
}

// Bounds of what an approval shows of a call, and of each line of a change, in
// bytes. What is left out is said, and both ends are shown: nobody approves what has
// been hidden, be it behind the edge of the screen.
const (
	maxShown = 4000
	maxLine  = 600
)

// whole is s as it is shown to who decides about it, up to most bytes. Around stands
// on both sides of what says that something is left out.
func whole(t text.Catalog, s string, most int, around string) string {
	if len(s) > most {
		head, tail := strings.ToValidUTF8(s[:most*3/4], ""), strings.ToValidUTF8(s[len(s)-most/4:], "")
		left := utf8.RuneCountInString(s) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
		s = head + around + t.Say(text.NotShown, "n", left) + around + tail
	}
	return text.Exact(s)
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

// effects says what a call would touch, a line for each kind.
func effects(t text.Catalog, p agent.Proposal, workdir string) []string {
	e := p.Effects
	var lines []string
	for _, why := range []string{e.Unparsed, e.Unreadable} {
		if why != "" {
			lines = append(lines, t.Say(text.ApproveUnreadable, "why", t.Phrase(text.OneLine(bounded(why)))))
		}
	}
	var runs []string
	for _, argv := range e.Runs {
		runs = append(runs, strings.Join(argv, " "))
	}
	for _, argv := range commands(e.Commands, nil) {
		// The command itself is on show already.
		if s := strings.Join(argv, " "); s != strings.TrimSpace(stringField(p.Call.Input, "command")) {
			runs = append(runs, s)
		}
	}
	for _, k := range []struct {
		key   text.Key
		items []string
	}{
		{text.ApproveRuns, runs},
		{text.ApproveReads, e.Reads},
		{text.ApproveWrites, e.Writes},
		{text.ApproveHosts, hosts(t, e.Hosts)},
	} {
		if len(k.items) > 0 {
			lines = append(lines, t.Say(k.key, "what", listed(k.items, workdir)))
		}
	}
	if e.Transactional {
		lines = append(lines, t.Say(text.ApproveMoney))
	}
	if e.Sensitive {
		lines = append(lines, t.Say(text.ApproveSecret))
	}
	if e.Powers != "" {
		lines = append(lines, t.Say(text.ApprovePowers, "what", text.OneLine(t.Phrase(e.Powers))))
	}
	return lines
}

// hosts returns what is shown of hosts: "*" stands for all of them.
func hosts(t text.Catalog, list []string) []string {
	shown := slices.Clone(list)
	for i, h := range shown {
		if h == "*" {
			shown[i] = t.Say(text.AnyHost)
		}
	}
	return shown
}

// commands returns the words of all commands, those behind others included.
func commands(list []agent.SimpleCommand, argvs [][]string) [][]string {
	for _, c := range list {
		argvs = commands(c.Runs, append(argvs, c.Argv))
	}
	return argvs
}

// listed joins what a call touches; of a long list it says how much more there is.
func listed(items []string, workdir string) string {
	const most = 6
	var shown []string
	for _, s := range items[:min(len(items), most)] {
		shown = append(shown, text.ExactLine(bounded(shortPath(s, workdir))))
	}
	line := strings.Join(shown, ", ")
	if more := len(items) - len(shown); more > 0 {
		line += fmt.Sprintf(" (+%d)", more)
	}
	return line
}

// answerApproval takes y or n, with a reason behind n, and what is offered, with
// other rules behind it. Nothing else is an answer: in doubt we ask again.
func (ch *chat) answerApproval(ctx context.Context, s string) {
	word, rest, _ := strings.Cut(strings.TrimSpace(s), " ")
	word = strings.ToLower(strings.TrimRight(word, ",.:;"))
	switch {
	case (word == "y" || word == "yes") && rest == "":
		ch.resolve(ctx, agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow, By: "user"}})
		return
	case word == "n" || word == "no":
		ch.resolve(ctx, agent.Resolve{Decision: agent.Decision{Verdict: agent.Deny, Reason: strings.TrimSpace(rest), By: "user"}})
		return
	}
	for _, o := range ch.offers() {
		if word == o.key || word == o.word {
			ch.allowLike(ctx, o, strings.TrimSpace(rest))
			return
		}
	}
	ch.v.note(yellow, ch.Text.Say(text.ApproveAgain, "keys", ch.answers()))
}

// allowLike allows a call and what is like it, by the rules that are offered or by
// those that were typed.
func (ch *chat) allowLike(ctx context.Context, o offer, typed string) {
	rules := o.Rules
	if typed != "" {
		if rules = ruleList(typed); len(rules) == 0 {
			ch.v.note(yellow, ch.Text.Say(text.ApproveBadRule))
			return
		}
	}
	ch.resolve(ctx, agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow, By: "user"}, Remember: o.Remember, Rules: rules})
}

// resolve sends the answer. The approval is gone from the screen when the
// session says that it is resolved.
func (ch *chat) resolve(ctx context.Context, answer agent.Resolve) {
	id := ch.asking
	answer.ID = id
	if !ch.send(ctx, answer) {
		return
	}
	ch.v.Asks = slices.DeleteFunc(ch.v.Asks, func(a *view.Ask) bool { return a.ID == id })
	ch.present()
}
