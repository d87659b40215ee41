package cli

import (
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
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
	work         *agent.Profile // what holds for its kind of work; nil = not known
	opened       time.Time      // when it began
	totals       totals

	// What it does.
	running  bool
	begun    bool // a turn has begun and not ended, in the log
	dropped  bool // an input of that turn was
	answer   answer
	calls    map[string]agent.Call // decided, not finished
	asks     []agent.ApprovalAsked // open, oldest first
	children map[string]string     // agents that work: ID to type
	activity string                // what goes on right now; "" while text arrives
	since    time.Time             // when that began

	// What was last said, for those who come back.
	plan                  *agent.StoodPlan // the newest
	planning              agent.PlanMode   // as it was changed; "" = as the settings have it
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

// recapEvents is how many events at the end of a long session are read to show where it
// stands: about eighty steps.
const recapEvents = 300

// known returns what a long session has come to, as its row says; nil when it is short,
// or something goes on in it: then all of it is read.
func known(info agent.SessionInfo) *totals {
	if info.Head <= recapEvents || info.Status != "idle" {
		return nil
	}
	t := totals{turns: info.Turns, usage: info.Usage, unknown: info.Cost == nil}
	if info.Cost != nil {
		t.cost = *info.Cost
	}
	return &t
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
		if b.Purpose == "" && b.Said() != "" {
			v.lastAnswer = b.Said()
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
		if b.Work != nil {
			v.work = b.Work
		}
		if e.Seq == 1 {
			v.opened = e.Time
		}
	case agent.SettingsChanged:
		v.model, v.mode, v.title = either(b.Model, v.model), either(b.Mode, v.mode), either(b.Title, v.title)
		v.planning = either(b.Plan, v.planning)
	case agent.InputAdded:
		v.running = true // its turn starts, or goes on
	case agent.TurnStarted:
		v.running, v.begun, v.dropped = true, true, false
		v.do(text.Waiting, e.Time)
	case agent.TurnEnded:
		v.running, v.begun, v.asks, v.lastEnd = false, false, nil, b.Reason
		v.totals.add(b)
		clear(v.calls)
	case agent.PlanProposed, agent.PlanChanged, agent.PlanDecided:
		v.planned(e)
	case agent.CallDeferred:
		v.running = false // until somebody goes on with it
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
	case agent.HookStarted:
		if !b.Async {
			v.activity = hookDoes(v.t, b)
		}
	case agent.HookRan:
		v.hookRan(b)
	case agent.RulesGranted:
		v.note(yellow, grantedLine(v.t, b))
	case agent.RulesRevoked:
		for _, rule := range b.Rules {
			v.note(plain, v.t.Say(text.RuleTaken, "rule", text.OneLine(bounded(rule))))
		}
	case agent.CallDeferred:
		v.note(yellow, deferredLine(v.t, b, v.workdir))
	case agent.SkillActivated:
		v.note(dim, skillLine(v.t, b))
	case agent.SkillCompleted:
		v.skillDone(b)
	case agent.InputDropped:
		delete(v.own, b.Input)
		v.dropped = true
		v.note(yellow, droppedLine(v.t, b))
	case agent.InputQueued:
		if v.own[b.Input] && v.begun { // else hooks look at it first
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
	case agent.ChildOpened, agent.ChildEnded, agent.CrewProgressed:
		v.agentNote(b)
	}
}

// agentNote tells of agents that work for the session.
func (v *view) agentNote(b agent.Body) {
	switch b := b.(type) {
	case agent.ChildOpened:
		if v.children == nil {
			v.children = map[string]string{}
		}
		v.children[b.Child] = b.Agent
		v.note(dim, v.t.Say(text.ChildStarted, "agent", text.OneLine(b.Agent), "title", text.OneLine(bounded(b.Title))))
	case agent.ChildEnded:
		v.note(dim, v.t.Say(text.ChildDone, "agent", text.OneLine(v.children[b.Child]), "reason", string(b.Outcome.Reason)))
		delete(v.children, b.Child)
	case agent.CrewProgressed:
		if b.Status != "running" {
			v.note(dim, CrewLine(v.t, b))
		}
	}
}

func (v *view) settings(b agent.SettingsChanged) {
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
		v.change(changed, diffLines, func(l string) string {
			return text.Cut(text.Clean(bounded(l)), max(v.s.usable()-6, 8))
		})
	}
}

// change draws the lines of a change, at most limit of them, each as shown makes it.
func (v *view) change(lines []string, limit int, shown func(line string) string) {
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
func (v *view) turnEnded(b agent.TurnEnded) {
	v.stopThinking()
	v.answer.end()
	v.s.startLine()
	if v.dropped && b.Steps == 0 && b.Reason == agent.EndStopped {
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
		return either(b.Error, t.Say(text.Failed)), ""
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
