package cli

import (
	"cmp"
	"fmt"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// hookDoes says what goes on while a hook runs.
func hookDoes(t text.Catalog, b agent.HookStarted) string {
	if b.Status != "" {
		return text.OneLine(bounded(b.Status))
	}
	return t.Say(text.HookRuns, "hook", text.Cut(text.OneLine(bounded(b.Hook)), 60))
}

// hookLine says what a hook has to tell people; "" = nothing. Loud is what they should
// not miss.
func hookLine(t text.Catalog, b agent.HookRan) (line string, loud bool) {
	say := func(k text.Key, message string) string {
		return t.Say(k, "hook", text.Cut(text.OneLine(bounded(b.Hook)), 60), "event", text.OneLine(b.Event), "message", text.Clean(phrased(t, bounded(message))))
	}
	switch b.Outcome {
	case agent.HookFailed:
		return say(text.HookFailed, b.Message), true
	case agent.HookTimedOut:
		return say(text.HookLate, b.Message), true
	case agent.HookBlocked:
		switch b.Event {
		case "PreToolUse", "UserPromptSubmit": // what it forbids is told itself
		default:
			return say(text.HookBlocked, cmp.Or(b.Reason, b.Message)), false
		}
	}
	if b.Message != "" {
		return say(text.HookSaid, b.Message), true
	}
	return "", false
}

// phrased says each line of a text in the language of its reader, where it is ours.
func phrased(t text.Catalog, s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = t.Phrase(l)
	}
	return strings.Join(lines, "\n")
}

// hookRan draws what a hook has to tell people.
func (v *painter) hookRan(b agent.HookRan) {
	line, loud := hookLine(v.t, b)
	switch {
	case line == "":
	case loud:
		v.note(yellow, line)
	default:
		v.note(dim, line)
	}
}

// droppedLine says why an input was not sent.
func droppedLine(t text.Catalog, b agent.InputDropped) string {
	if b.By == "user" {
		return t.Say(text.HookTakenBack)
	}
	return t.Say(text.HookDropped, "by", text.Cut(text.OneLine(bounded(b.By)), 80), "reason", text.Clean(bounded(b.Reason)))
}

// deferredLine says which call a hook has put aside.
func deferredLine(t text.Catalog, b agent.CallDeferred, workdir string) string {
	return joined(t.Say(text.HookDeferred, "by", text.Cut(text.OneLine(bounded(b.By)), 80), "call", callLine(b.Call, workdir)), text.Cut(text.OneLine(bounded(b.Reason)), 160))
}

// grantedLine says what a hook has had hold.
func grantedLine(t text.Catalog, b agent.RulesGranted) string {
	return t.Say(text.HookGranted, "by", text.Cut(text.OneLine(bounded(b.By)), 80), "rules", text.Cut(text.OneLine(bounded(strings.Join(b.Rules, ", "))), 200))
}

// hooked tells what hooks have to say while nobody watches, on the error output: what
// has failed, what is for people, and with Verbose what they object to.
func (p *printer) hooked(e agent.Event) {
	b, ok := e.Body.(agent.HookRan)
	if !ok || p.o.Format == FormatNDJSON {
		return
	}
	line, loud := hookLine(p.Text, b)
	if line == "" || !loud && !p.o.Verbose {
		return
	}
	p.line.erase()
	fmt.Fprintln(p.Err, line)
}
