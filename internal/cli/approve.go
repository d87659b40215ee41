package cli

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/text"
)

// present shows the oldest open approval, unless it is on show, and takes away
// what has been resolved meanwhile, here or elsewhere.
func (ch *chat) present() {
	if len(ch.v.asks) == 0 || !ch.v.running {
		if ch.asking != "" {
			ch.dismiss()
		}
		ch.leaveIfDone()
		return
	}
	ask := ch.v.asks[0]
	if ask.ID == ch.asking {
		return
	}
	if ch.asking == "" {
		ch.draft = ch.ed.take() // typed for the model, not for us
	}
	ch.asking, ch.questions = ask.ID, nil
	ch.ed.set("")
	ch.v.stopThinking()
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
	if lines := proposed(p.Call); len(lines) > 0 {
		ch.s.line(4, part{plain, "  " + mainArg(p.Call, ch.v.workdir)})
		ch.v.change(lines, approveLines)
	} else {
		ch.s.line(4, part{plain, "    " + indented(whole(t, callText(p.Call)))})
	}
	if p.Agent != "" || p.Origin != "" {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveChild, "agent", text.OneLine(strings.TrimSpace(p.Agent+" "+p.Origin)))})
	}
	if ask.Reason != "" {
		ch.s.line(4, part{dim, "  " + t.Say(text.ApproveWhy, "reason", text.OneLine(bounded(ask.Reason)))})
	}
	for _, line := range effects(t, p, ch.v.workdir) {
		ch.s.line(4, part{dim, "  " + line})
	}
	ch.s.line(2, part{plain, "  " + t.Say(text.ApproveKeys)})
}

// callText returns the whole of what a call asks for: its command, or its input.
func callText(c agent.Call) string {
	if s := stringField(c.Input, "command"); s != "" {
		return s
	}
	return string(c.Input)
}

// maxShown bounds what an approval shows of a call, in bytes. What is left out
// is said, and both ends are shown: nobody approves what has been hidden.
const maxShown = 4000

func whole(t text.Catalog, s string) string {
	if len(s) > maxShown {
		head, tail := strings.ToValidUTF8(s[:maxShown*3/4], ""), strings.ToValidUTF8(s[len(s)-maxShown/4:], "")
		left := utf8.RuneCountInString(s) - utf8.RuneCountInString(head) - utf8.RuneCountInString(tail)
		s = head + "\n" + t.Say(text.NotShown, "n", left) + "\n" + tail
	}
	return text.Exact(s)
}

func indented(s string) string { return strings.ReplaceAll(s, "\n", "\n    ") }

// effects says what a call would touch, a line for each kind.
func effects(t text.Catalog, p agent.Proposal, workdir string) []string {
	e := p.Effects
	var lines []string
	if e.Unreadable != "" {
		lines = append(lines, t.Say(text.ApproveUnreadable, "why", text.OneLine(bounded(e.Unreadable))))
	}
	var runs []string
	for _, argv := range e.Runs {
		// The command itself is on show already.
		if len(argv) == 0 || argv[len(argv)-1] != stringField(p.Call.Input, "command") {
			runs = append(runs, strings.Join(argv, " "))
		}
	}
	for _, k := range []struct {
		key   text.Key
		items []string
	}{
		{text.ApproveRuns, runs},
		{text.ApproveReads, e.Reads},
		{text.ApproveWrites, e.Writes},
		{text.ApproveHosts, e.Hosts},
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
	return lines
}

// listed joins what a call touches; of a long list it says how much more there is.
func listed(items []string, workdir string) string {
	const most = 6
	var shown []string
	for _, s := range items[:min(len(items), most)] {
		shown = append(shown, text.OneLine(bounded(shortPath(s, workdir))))
	}
	line := strings.Join(shown, ", ")
	if more := len(items) - len(shown); more > 0 {
		line += fmt.Sprintf(" (+%d)", more)
	}
	return line
}

// answerApproval takes y, s or n, with a reason behind n. Nothing else is an
// answer: in doubt we ask again.
func (ch *chat) answerApproval(ctx context.Context, s string) {
	word, reason, _ := strings.Cut(strings.TrimSpace(s), " ")
	word = strings.ToLower(strings.TrimRight(word, ",.:;"))
	allow := agent.Decision{Verdict: agent.Allow, By: "user"}
	switch {
	case (word == "y" || word == "yes") && reason == "":
		ch.resolve(ctx, allow, "")
	case (word == "s" || word == "session") && reason == "":
		ch.resolve(ctx, allow, "session")
	case word == "n" || word == "no":
		ch.resolve(ctx, agent.Decision{Verdict: agent.Deny, Reason: strings.TrimSpace(reason), By: "user"}, "")
	default:
		ch.v.note(yellow, ch.Text.Say(text.ApproveAgain))
	}
}

// resolve sends the answer. The approval is gone from the screen when the
// session says that it is resolved.
func (ch *chat) resolve(ctx context.Context, d agent.Decision, remember string) {
	id := ch.asking
	if !ch.send(ctx, agent.Resolve{ID: id, Decision: d, Remember: remember}) {
		return
	}
	for i, a := range ch.v.asks {
		if a.ID == id {
			ch.v.asks = append(ch.v.asks[:i:i], ch.v.asks[i+1:]...)
			break
		}
	}
	ch.present()
}
