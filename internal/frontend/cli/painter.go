package cli

import (
	"cmp"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// painter draws the events of one session.
type painter struct {
	*view.View
	t      text.Catalog
	s      *screen
	own    map[string]bool // inputs that are on the screen already
	answer answer
}

// recapEvents is how many events at the end of a long session are read to show where it
// stands: about eighty steps.
const recapEvents = 300

// known returns the totals of a long session, as its row has them; nil when it is short,
// or something goes on in it: then all of it is read.
func known(info agent.SessionInfo) *view.Totals {
	if info.Head <= recapEvents || info.Status != "idle" {
		return nil
	}
	t := view.Totals{Turns: info.Turns, Usage: info.Usage, Unknown: info.Cost == nil}
	if info.Cost != nil {
		t.Cost = *info.Cost
	}
	return &t
}

func newPainter(t text.Catalog, s *screen, workdir string) *painter {
	v := view.New("", view.Limits{})
	v.Workdir = workdir
	return &painter{View: v, t: t, s: s, own: map[string]bool{}}
}

// glyph returns a sign where the terminal shows signs, and a word elsewhere.
func (v *painter) glyph(sign string, word text.Key) string {
	if v.s.term.Escapes {
		return sign
	}
	return v.t.Say(word)
}

// doing says what goes on; "" while text arrives.
func doing(t text.Catalog, d view.Doing) string {
	switch d.What {
	case view.Waiting:
		return t.Say(text.Waiting)
	case view.Thinking:
		return t.Say(text.Thinking)
	case view.Calling, view.Executing:
		return toolName(d.Tool)
	case view.Hooking:
		return hookDoes(t, *d.Hook)
	}
	return ""
}

// activity is the line about what goes on.
func (v *painter) activity() string {
	d := v.Turn.Doing
	switch d.What {
	case view.Executing:
		return toolName(d.Tool) + " " + mainArg(*d.Call, v.Workdir)
	case view.Failing: // another attempt follows
		d.What = view.Waiting
	}
	return doing(v.t, d)
}

// event draws an event.
func (v *painter) event(e agent.Event) {
	rows := v.Apply(e)
	switch b := e.Body.(type) {
	case agent.InputAdded:
		v.input(b)
	case agent.ModelRequested:
		if b.Purpose == "" {
			v.answer.begin(b.Attempt)
		}
	case agent.Fragment:
		v.fragment(b)
	case agent.ModelAnswered:
		if b.Purpose == "" {
			v.answered(b)
		}
	case agent.ModelFailed:
		if b.Purpose == "" {
			v.modelFailed(b)
		}
	case agent.CallStarted:
	case agent.CallFinished:
		if len(rows) > 0 { // else it was drawn
			v.finished(b, rows[0].Call)
		}
	case agent.TurnEnded:
		v.turnEnded(b)
	case agent.ChildEnded:
		kind := ""
		for _, r := range rows {
			if r.Child != nil {
				kind = r.From
			}
		}
		v.note(dim, v.t.Say(text.ChildDone, "agent", text.OneLine(kind), "reason", string(b.Outcome.Reason)))
	default:
		v.remark(e.Body)
	}
}

// remark draws what is said beside the conversation.
func (v *painter) remark(b agent.Body) {
	switch b := b.(type) {
	case agent.HookRan:
		v.hookRan(b)
	case agent.RulesGranted:
		v.note(yellow, grantedLine(v.t, b))
	case agent.RulesRevoked:
		for _, rule := range b.Rules {
			v.note(plain, v.t.Say(text.RuleTaken, "rule", text.OneLine(bounded(rule))))
		}
	case agent.CallDeferred:
		v.note(yellow, deferredLine(v.t, b, v.Workdir))
	case agent.SkillActivated:
		v.note(dim, skillLine(v.t, b))
	case agent.SkillCompleted:
		v.skillDone(b)
	case agent.InputDropped:
		delete(v.own, b.Input)
		v.note(yellow, droppedLine(v.t, b))
	case agent.InputQueued:
		if v.own[b.Input] && v.Turn.Open { // else hooks look at it first
			v.note(dim, v.t.Say(text.Queued))
		}
	case agent.SettingsChanged:
		v.settings(b)
	case agent.Note:
		st := dim
		if b.Level == "warn" || b.Level == "error" {
			st = yellow
		}
		v.note(st, v.t.Phrase(text.Clean(b.Text)))
	case agent.LogRepaired:
		v.note(yellow, v.t.Say(text.Repaired, "bytes", b.Bytes))
	case agent.ContextThreshold:
		v.note(yellow, v.t.Say(text.Compressed, "percent", int(b.Ratio*100), "used", tokens(b.Used), "window", tokens(b.Window)))
	case agent.ToolsChanged:
		if line := toolsLine(v.t, b); line != "" {
			v.note(dim, line)
		}
	case agent.ContextAdded:
		if b.Source == "agents" || b.Source == "tools" { // lists for the model alone
			return
		}
		v.note(dim, contextLine(v.t, b))
	case agent.ContextCompacted:
		v.note(dim, v.t.Say(text.Compacted, "before", tokens(b.Before), "after", tokens(b.After)))
	case agent.ContextRestored:
		v.note(dim, v.t.Say(text.Uncompacted))
	case agent.ConversationRewound:
		v.note(dim, v.t.Say(text.Rewound, "seq", b.To))
	case agent.FilesRewound:
		for i, l := range rewoundLines(v.t, b) {
			v.note([]style{dim, yellow}[min(i, 1)], l)
		}
	case agent.ChangesAccepted:
		v.note(dim, acceptedLine(v.t, b))
	case agent.CallSettled:
		v.note(dim, settledLine(v.t, b))
	case agent.AuthGranted:
		v.note(dim, v.t.Say(text.SignInDone, "name", text.OneLine(bounded(b.App))))
	case agent.PlanProposed, agent.PlanChanged, agent.PlanDecided:
		v.planNote(b)
	case agent.Rated:
		v.note(dim, ratedLine(v.t, b))
	case agent.ChildOpened:
		v.note(dim, v.t.Say(text.ChildStarted, "agent", text.OneLine(b.Agent), "title", text.OneLine(bounded(b.Title))))
	case agent.CrewProgressed:
		if b.Status != "running" {
			v.note(dim, CrewLine(v.t, b))
		}
	}
}

func (v *painter) settings(b agent.SettingsChanged) {
	if b.Model != "" {
		v.note(dim, v.t.Say(text.ModelNow, "model", text.OneLine(b.Model)))
	}
	if b.Mode != "" {
		v.note(dim, v.t.Say(text.ModeNow, "mode", string(b.Mode)))
	}
	if b.Plan != "" {
		v.note(dim, v.t.Say(planNow(b.Plan)))
	}
	if b.Title != "" {
		v.note(dim, v.t.Say(text.TitleNow, "title", text.OneLine(b.Title)))
	}
}

// note draws a remark.
func (v *painter) note(st style, msg string) {
	v.s.line(2, part{st, v.glyph("· ", text.LabelNote) + msg})
}

// fault draws an error with what to do about it.
func (v *painter) fault(message, fix string) {
	v.s.line(2, part{red, v.t.Say(text.Error, "message", text.Clean(message))})
	if fix != "" {
		v.s.line(2, part{plain, "  " + text.Clean(fix)})
	}
}

// input draws what somebody said, unless it was said here.
func (v *painter) input(b agent.InputAdded) {
	if v.own[b.Input] {
		delete(v.own, b.Input)
		return
	}
	if b.Text == "" && len(b.Parts) == 0 {
		return // what it carries has been drawn
	}
	label := v.glyph("> ", text.LabelYou)
	if b.Origin != "" {
		label += text.OneLine(b.Origin) + ": "
	}
	v.s.line(2, part{dim, label + text.Clean(b.Text)})
}

// finished draws a call and what came of it, in one line and the change that it
// made.
func (v *painter) finished(b agent.CallFinished, call *view.Call) {
	var c agent.Call
	if call.Verdict == agent.Allow || call.Asked { // else why it was denied is enough
		c = call.Call
	}
	v.stopThinking()
	sign, st := v.glyph("● ", text.LabelTool), green
	if b.Result.Failed() {
		sign, st = v.glyph("✗ ", text.LabelTool), red
	}
	parts := []part{{st, sign}, {bold, toolName(cmp.Or(b.Tool, c.Tool))}}
	if arg := mainArg(c, v.Workdir); arg != "" {
		const least = 12
		parts = append(parts, part{plain, " " + text.Cut(arg, max(v.s.usable()*2/3, least))})
	}
	var changed []string
	if call.Tool != "file-system__patch" { // its text names each of its files
		changed = patch(call.Changes)
	}
	what := summary(v.t, b)
	if len(changed) > 0 && !b.Result.Failed() {
		what = counted(changed)
	}
	rest := " · " + text.Cut(what, 160)
	if b.Millis > 0 {
		rest += " · " + took(time.Duration(b.Millis)*time.Millisecond)
	}
	v.s.line(2, append(parts, part{dim, rest})...)
	if !b.Result.Failed() {
		v.change(changed, diffLines, func(l string) string {
			return text.Cut(text.Clean(bounded(l)), max(v.s.usable()-6, 8))
		})
	}
}

// change draws the lines of a change, at most limit of them, each as shown makes it.
func (v *painter) change(lines []string, limit int, shown func(line string) string) {
	for i, l := range lines {
		if i == limit {
			v.s.line(4, part{dim, "    " + v.t.Say(text.MoreLines, "n", len(lines)-limit)})
			return
		}
		st := green
		if strings.HasPrefix(l, "-") {
			st = red
		}
		v.s.line(6, part{st, "    " + l[:1] + " " + shown(l[1:])})
	}
}

// turnEnded draws how a turn ended.
func (v *painter) turnEnded(b agent.TurnEnded) {
	v.stopThinking()
	v.answer.end()
	v.s.startLine()
	if v.Turn.Dropped != nil && b.Steps == 0 && b.Reason == agent.EndStopped {
		v.s.newline(false) // why nothing came of it has been said
		return
	}
	switch b.Reason {
	case agent.EndInterrupted:
		v.note(yellow, v.t.Say(text.TurnInterrupted))
	case agent.EndLimit:
		if b.Problem == agent.ProblemBudget {
			message, fix := turnFault(v.t, b, "")
			v.note(yellow, message+" "+fix)
			break
		}
		v.note(yellow, v.t.Say(text.TurnLimit, "n", b.Steps)+". "+v.t.Say(text.GoOn))
	case agent.EndRefused:
		v.note(yellow, strings.TrimSuffix(v.t.Say(text.TurnRefused)+": "+text.Clean(b.Error), ": "))
	case agent.EndStopped:
		v.note(yellow, v.t.Say(text.TurnStopped)+". "+v.t.Say(text.GoOn))
	case agent.EndFailed:
		v.fault(turnFault(v.t, b, ""))
	}
	v.s.line(2, part{dim, v.glyph("— ", text.LabelNote) + turnLine(v.t, b)})
	v.s.newline(false) // a turn is a paragraph
}

// turnLine says what a turn took.
func turnLine(t text.Catalog, b agent.TurnEnded) string {
	return t.Say(text.TurnDone,
		"steps", b.Steps, "time", took(time.Duration(b.Millis)*time.Millisecond),
		"in", tokens(b.Usage.Input+b.Usage.CacheRead+b.Usage.CacheWrite), "out", tokens(b.Usage.Output),
		"cost", cost(t, b.Cost))
}

// turnFault says why a turn failed and what to do about it.
func turnFault(t text.Catalog, b agent.TurnEnded, session string) (message, fix string) {
	if b.Problem == agent.ProblemBudget || b.Problem == agent.ProblemForm {
		return t.Problem(&agent.Problem{Code: b.Problem, Args: map[string]string{"error": t.Phrase(b.Error)}})
	}
	if b.Fail == "" {
		return cmp.Or(b.Error, t.Say(text.Failed)), ""
	}
	message, fix = t.Failure(b.Fail, session)
	if b.Error != "" {
		message += " (" + t.Phrase(b.Error) + ")"
	}
	if isCertificate(b.Error) {
		fix = t.Say(text.FixCertificate)
	}
	return message, fix
}

// isCertificate reports whether the error of a request is about a certificate.
func isCertificate(s string) bool { return strings.Contains(s, "x509: ") }
