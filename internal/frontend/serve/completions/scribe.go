package completions

import (
	"strings"

	"dure/agent"
	"dure/internal/frontend/view"
)

// scribe makes the text of an answer of the events of a turn: what the model has said at
// all of its steps, with an empty line between them.
type scribe struct {
	*view.View
	input string // ID of the input to which the turn is the answer
	begun bool

	told strings.Builder // of the step: what the client has of it
	some bool            // something was told of an earlier step
}

func newScribe(input string) *scribe {
	return &scribe{View: view.New("", view.Limits{Rows: view.OpenOnly}), input: input}
}

// outcome is how the answer came out.
type outcome struct {
	end  agent.TurnEnded
	stop agent.StopReason
	err  *refusal
}

// finish is the end of an answer in the terms of the API.
func (o outcome) finish() string {
	switch {
	case o.end.Reason == agent.EndRefused, o.stop == agent.StopRefusal:
		return "content_filter"
	case o.end.Reason == agent.EndLimit, o.stop == agent.StopLength, o.stop == agent.StopWindow:
		return "length"
	}
	return "stop"
}

// read returns what an event adds to the answer, and its outcome when that is there.
func (s *scribe) read(e agent.Event) (piece string, end *outcome) {
	if !s.begun {
		switch b := e.Body.(type) {
		case agent.InputAdded:
			s.begun = b.Input == s.input
		case agent.InputDropped:
			if b.Input == s.input {
				r := refuse(400, "input_refused", "messages", "a hook refuses the input: "+b.Reason)
				return "", &outcome{err: r}
			}
		}
		return "", nil
	}
	s.Apply(e)
	switch b := e.Body.(type) {
	case agent.Fragment:
		// an attempt that follows one that has failed may say again what was told of that one
		if now := s.Live(view.AnswerRow); b.What == agent.DeltaText && !strings.HasPrefix(s.told.String(), now) {
			return s.upTo(now), nil
		}
	case agent.ModelAnswered:
		if b.Purpose != "" {
			break
		}
		piece = s.upTo(b.Said())
		s.some = s.some || s.told.Len() > 0
		s.told.Reset()
		return piece, nil
	case agent.TurnEnded:
		end = &outcome{end: b, stop: s.Stop()}
		if b.Reason == agent.EndFailed || b.Reason == agent.EndInterrupted {
			end.err = failed(b)
		}
		return "", end
	}
	return "", nil
}

// upTo tells what is missing of the text of a step. What a client has cannot be taken back:
// where it was something else, the text stands behind it as a whole.
func (s *scribe) upTo(text string) string {
	told := s.told.String()
	if rest, ok := strings.CutPrefix(text, told); ok {
		return s.tell(rest)
	}
	s.some = true
	s.told.Reset()
	return s.tell(text)
}

func (s *scribe) tell(text string) string {
	if text == "" {
		return ""
	}
	first := s.told.Len() == 0
	s.told.WriteString(text)
	if first && s.some {
		return "\n\n" + text
	}
	return text
}
