package cli

import (
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// maxThought bounds what is kept of a thought to show its beginning, in bytes.
const maxThought = 400

// answer is the model's answer in progress: what of it stands on the screen,
// and what of an earlier attempt does.
type answer struct {
	said    strings.Builder // the text of this attempt so far
	void    string          // what still stands of an attempt that failed, and has not come again
	start   mark
	index   int // block that said ends in
	thought []byte
	shown   bool // some text of this attempt, or of the one before it, stands
}

// begin starts another attempt. The first one of a step has nothing behind it.
func (a *answer) begin(attempt int) {
	a.said.Reset()
	a.thought = nil
	if attempt <= 1 {
		a.void, a.shown = "", false
	}
}

func (a *answer) end() { a.begin(1) }

// fragment draws a piece of the answer as it comes.
func (v *painter) fragment(f agent.Fragment) {
	a := &v.answer
	switch f.What {
	case agent.DeltaThinking:
		if room := maxThought - len(a.thought); room > 0 {
			a.thought = append(a.thought, f.Text[:min(len(f.Text), room)]...)
		}
	case agent.DeltaText:
		v.stopThinking()
		s := f.Text
		if f.Index != a.index && a.said.Len() > 0 && a.void == "" {
			v.s.startLine()
		}
		a.index = f.Index
		v.say(s)
	case agent.DeltaCall:
		v.stopThinking()
	}
}

// say adds text to the answer. What an attempt that failed has shown already is
// not shown again; when the new one says something else, the old is taken back,
// or declared void where it has left the screen.
func (v *painter) say(s string) {
	a := &v.answer
	a.said.WriteString(s)
	if a.void != "" {
		switch {
		case strings.HasPrefix(a.void, s):
			a.void = a.void[len(s):]
			return
		case strings.HasPrefix(s, a.void):
			s, a.void = s[len(a.void):], ""
		default:
			v.retract()
			s = a.said.String()
		}
	}
	if s == "" {
		return
	}
	if !a.shown {
		v.s.startLine()
		a.start = v.s.mark()
		a.shown = true
		if !v.s.term.Escapes {
			v.s.flow(v.t.Say(text.LabelAnswer))
		}
	}
	v.s.flow(text.Clean(s))
}

// retract takes back what an answer has shown, or says that it is void.
func (v *painter) retract() {
	a := &v.answer
	if !v.s.takeBack(a.start) {
		v.note(yellow, v.t.Say(text.Void))
	}
	a.void, a.shown = "", false
}

// stopThinking draws the beginning of the thought that has ended.
func (v *painter) stopThinking() {
	a := &v.answer
	if len(a.thought) == 0 {
		return
	}
	thought := text.OneLine(strings.ToValidUTF8(string(a.thought), ""))
	a.thought = nil
	label := v.glyph("∴ ", text.LabelThinking)
	v.s.line(2, part{dim, label + text.Cut(thought, max(v.s.usable()-text.Width(label), 8))})
}

// answered completes the answer: what live events have not brought is added.
func (v *painter) answered(b agent.ModelAnswered) {
	a := &v.answer
	v.stopThinking()
	whole := b.Said()
	switch rest, ok := strings.CutPrefix(whole, a.said.String()); {
	case ok:
		v.say(rest)
	default:
		v.retract()
		a.said.Reset()
		v.say(whole)
	}
	if a.void != "" { // the failed attempt had said more
		v.retract()
		a.said.Reset()
		v.say(whole)
	}
	v.s.startLine()
	a.end()
}

// modelFailed says that an attempt failed. What it has shown stays for now: the
// next attempt mostly begins with the same words.
func (v *painter) modelFailed(b agent.ModelFailed) {
	a := &v.answer
	a.thought = nil
	if a.shown {
		if v.s.takeBack(a.start) {
			a.void, a.shown = "", false
		} else {
			a.void = a.said.String() + a.void
		}
	}
	a.said.Reset()
	if !b.Retry {
		return
	}
	what, _ := v.t.Failure(b.Class, "")
	k := text.Retry
	if b.Delay < time.Second.Milliseconds() {
		k = text.RetryNow
	}
	msg := v.t.Say(k, "what", what, "time", took(time.Duration(b.Delay)*time.Millisecond), "n", b.Attempt+1)
	if b.Model != "" {
		msg += "; " + v.t.Say(text.RetryModel, "model", text.OneLine(b.Model))
	}
	v.note(yellow, msg)
}
