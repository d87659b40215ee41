package cli

import (
	"strings"
	"time"

	"dure/agent"
	"dure/internal/text"
)

// view draws the events of one session. It is a fold: what it knows comes from
// events alone.
type view struct {
	t       text.Catalog
	s       *screen
	workdir string
	own     map[string]bool // inputs that stand on the screen already

	// What the session is.
	model, title string
	mode         agent.Mode
	totals       totals

	// What it does.
	running  bool
	answer   answer
	calls    map[string]agent.Call // decided, not finished
	asks     []agent.ApprovalAsked // open, oldest first
	activity string                // what goes on right now; "" while text arrives
	since    time.Time             // when that began

	// What was last said, for those who come back.
	lastInput, lastAnswer string
	lastEnd               agent.EndReason
}

// totals are what a session has used.
type totals struct {
	turns   int
	usage   agent.Usage
	cost    agent.Money
	unknown bool // some of it has no known price
}

func (t *totals) add(e agent.TurnEnded) {
	t.turns++
	t.usage = t.usage.Add(e.Usage)
	if e.Cost == nil {
		t.unknown = t.unknown || e.Usage != (agent.Usage{})
		return
	}
	t.cost += *e.Cost
}

func newView(t text.Catalog, s *screen, workdir string) *view {
	return &view{t: t, s: s, workdir: workdir, own: map[string]bool{}, calls: map[string]agent.Call{}}
}

// glyph returns a sign where the terminal shows signs, and a word elsewhere.
func (v *view) glyph(sign string, word text.Key) string {
	if v.s.term.Escapes {
		return sign
	}
	return v.t.Say(word)
}

// fold takes in what happened before we came, without drawing it.
func (v *view) fold(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.InputAdded:
		if b.Origin == "" {
			v.lastInput = b.Text
		}
	case agent.ModelAnswered:
		if b.Purpose == "" && b.Message.Text() != "" {
			v.lastAnswer = b.Message.Text()
		}
	default:
		v.track(e)
	}
}

// track takes in what changes the state but not, by itself, the screen.
func (v *view) track(e agent.Event) {
	switch b := e.Body.(type) {
	case agent.SessionOpened:
		v.model, v.mode = either(b.Model, v.model), either(b.Mode, v.mode)
		v.workdir, v.title = either(b.Workdir, v.workdir), either(b.Title, v.title)
	case agent.SettingsChanged:
		v.model, v.mode, v.title = either(b.Model, v.model), either(b.Mode, v.mode), either(b.Title, v.title)
	case agent.InputAdded:
		v.running = true // its turn starts, or goes on
	case agent.TurnStarted:
		v.running = true
		v.do(text.Waiting, e.Time)
	case agent.TurnEnded:
		v.running, v.asks, v.lastEnd = false, nil, b.Reason
		v.totals.add(b)
		clear(v.calls)
	case agent.CallDecided:
		if b.Decision.Verdict == agent.Allow {
			v.calls[b.Proposal.Call.ID] = b.Proposal.Call
		}
	case agent.ApprovalAsked:
		v.calls[b.Proposal.Call.ID] = b.Proposal.Call
		v.asks = append(v.asks, b)
	case agent.ApprovalResolved:
		for i, a := range v.asks {
			if a.ID == b.ID {
				v.asks = append(v.asks[:i:i], v.asks[i+1:]...)
				break
			}
		}
	}
}

func either[T ~string](a, b T) T {
	if a != "" {
		return a
	}
	return b
}

// do sets what goes on.
func (v *view) do(k text.Key, since time.Time) { v.activity, v.since = v.t.Say(k), since }

// event draws an event.
func (v *view) event(e agent.Event) {
	v.track(e)
	switch b := e.Body.(type) {
	case agent.InputAdded:
		v.input(b)
	case agent.ModelRequested:
		if b.Purpose == "" {
			v.answer.begin(b.Attempt)
			v.do(text.Waiting, e.Time)
		}
	case agent.Fragment:
		v.fragment(b, e.Time)
	case agent.ModelAnswered:
		if b.Purpose == "" {
			v.answered(b)
			v.do(text.Waiting, e.Time)
		}
	case agent.ModelFailed:
		if b.Purpose == "" {
			v.modelFailed(b)
			v.do(text.Waiting, e.Time)
		}
	case agent.CallStarted:
		v.activity, v.since = toolName(b.Tool)+" "+mainArg(v.calls[b.ID], v.workdir), e.Time
	case agent.CallFinished:
		v.finished(b)
		v.do(text.Waiting, e.Time)
	case agent.TurnEnded:
		v.turnEnded(b)
	default:
		v.remark(e.Body)
	}
}

// remark draws what is said beside the conversation.
func (v *view) remark(b agent.Body) {
	switch b := b.(type) {
	case agent.InputQueued:
		if v.own[b.Input] {
			v.note(dim, v.t.Say(text.Queued))
		}
	case agent.SettingsChanged:
		v.settings(b)
	case agent.Note:
		st := dim
		if b.Level == "warn" || b.Level == "error" {
			st = yellow
		}
		v.note(st, text.Clean(b.Text))
	case agent.LogRepaired:
		v.note(yellow, v.t.Say(text.Repaired, "bytes", b.Bytes))
	case agent.ContextThreshold:
		v.note(yellow, v.t.Say(text.Compressed, "percent", int(b.Ratio*100), "used", tokens(b.Used), "window", tokens(b.Window)))
	case agent.ChildOpened:
		v.note(dim, v.t.Say(text.ChildStarted, "agent", text.OneLine(b.Agent), "title", text.OneLine(bounded(b.Title))))
	case agent.ChildEnded:
		v.note(dim, v.t.Say(text.ChildDone, "reason", string(b.Outcome.Reason)))
	}
}

func (v *view) settings(b agent.SettingsChanged) {
	if b.Model != "" {
		v.note(dim, v.t.Say(text.ModelNow, "model", text.OneLine(b.Model)))
	}
	if b.Mode != "" {
		v.note(dim, v.t.Say(text.ModeNow, "mode", string(b.Mode)))
	}
	if b.Title != "" {
		v.note(dim, v.t.Say(text.TitleNow, "title", text.OneLine(b.Title)))
	}
}

// note draws a remark.
func (v *view) note(st style, msg string) {
	v.s.line(2, part{st, v.glyph("· ", text.LabelNote) + msg})
}

// fault draws an error with what to do about it.
func (v *view) fault(message, fix string) {
	v.s.line(2, part{red, v.t.Say(text.Error, "message", text.Clean(message))})
	if fix != "" {
		v.s.line(2, part{plain, "  " + text.Clean(fix)})
	}
}

// input draws what somebody said, unless it was said here.
func (v *view) input(b agent.InputAdded) {
	if v.own[b.Input] {
		delete(v.own, b.Input)
		return
	}
	label := v.glyph("> ", text.LabelYou)
	if b.Origin != "" {
		label += text.OneLine(b.Origin) + ": "
	}
	v.s.line(2, part{dim, label + text.Clean(b.Text)})
}

// finished draws a call and what came of it, in one line and the change that it
// made.
func (v *view) finished(b agent.CallFinished) {
	c := v.calls[b.Result.ID]
	delete(v.calls, b.Result.ID)
	v.stopThinking()
	sign, st := v.glyph("● ", text.LabelTool), green
	if b.Result.Failed() {
		sign, st = v.glyph("✗ ", text.LabelTool), red
	}
	parts := []part{{st, sign}, {bold, toolName(either(b.Tool, c.Tool))}}
	if arg := mainArg(c, v.workdir); arg != "" {
		const least = 12
		parts = append(parts, part{plain, " " + text.Cut(arg, max(v.s.usable()*2/3, least))})
	}
	changed := patch(b.Result)
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
		v.change(changed, diffLines)
	}
}

// change draws the lines of a change, at most limit of them.
func (v *view) change(lines []string, limit int) {
	for i, l := range lines {
		if i == limit {
			v.s.line(4, part{dim, "    " + v.t.Say(text.MoreLines, "n", len(lines)-limit)})
			return
		}
		st := green
		if strings.HasPrefix(l, "-") {
			st = red
		}
		v.s.line(6, part{st, "    " + l[:1] + " " + text.Cut(text.Clean(bounded(l[1:])), max(v.s.usable()-6, 8))})
	}
}

// turnEnded draws how a turn ended.
func (v *view) turnEnded(b agent.TurnEnded) {
	v.stopThinking()
	v.answer.end()
	v.s.startLine()
	switch b.Reason {
	case agent.EndInterrupted:
		v.note(yellow, v.t.Say(text.TurnInterrupted))
	case agent.EndLimit:
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
	if b.Fail == "" {
		return either(b.Error, t.Say(text.Failed)), ""
	}
	message, fix = t.Failure(b.Fail, session)
	if b.Error != "" {
		message += " (" + b.Error + ")"
	}
	return message, fix
}
