package foreign

import (
	"fmt"
	"time"

	"dure/agent"
)

// Events returns the events that make the session one of our own: their fold has
// the session's conversation. opened begins them; its title, folder and model
// are filled in where it has none. Every turn is over, so nothing goes on by
// itself when the session is opened. The events have bodies and times: those of the
// source as far as it has any, but never earlier than the one before.
func Events(s Session, opened agent.SessionOpened) []agent.Event {
	if opened.Title == "" {
		opened.Title = s.Title
	}
	if opened.Workdir == "" {
		opened.Workdir = s.Workdir
	}
	if opened.Model == "" {
		opened.Model = s.Model
	}
	w := writer{at: began(s), tools: map[string]string{}}
	w.add(opened)
	for _, e := range s.Entries {
		if e.Time.After(w.at) {
			if e.Message.Role == agent.User && e.Message.Blocks[0].Type != agent.ResultBlock {
				w.end() // when it ended, and not when the next one began
			}
			w.at = e.Time
		}
		switch {
		case e.Message.Role == agent.Assistant:
			w.answer(e)
		case e.Message.Blocks[0].Type == agent.ResultBlock:
			w.results(e)
		default:
			w.input(e)
		}
	}
	w.end()
	return w.out
}

// began is when a session began: as it says, or its first message; zero = not known.
func began(s Session) time.Time {
	at := s.Created
	for _, e := range s.Entries {
		if !e.Time.IsZero() {
			if at.IsZero() || e.Time.Before(at) {
				at = e.Time
			}
			break
		}
	}
	return at
}

// A writer writes turns.
type writer struct {
	out   []agent.Event
	at    time.Time // of what is written
	turn  int       // number of the newest
	open  bool
	ended agent.TurnEnded // how the open one will end
	tools map[string]string
}

func (w *writer) add(b agent.Body) { w.out = append(w.out, agent.Event{Time: w.at, Body: b}) }

func (w *writer) input(e Entry) {
	w.end()
	in := agent.InputAdded{Input: e.ID}
	blocks := e.Message.Blocks
	if blocks[0].Type == agent.TextBlock {
		in.Text, blocks = blocks[0].Text, blocks[1:]
	}
	if len(blocks) > 0 {
		in.Parts = blocks
	}
	w.add(in)
	w.start()
}

func (w *writer) start() {
	w.turn++
	w.open = true
	w.ended = agent.TurnEnded{Turn: fmt.Sprintf("imported-%d", w.turn), Reason: agent.EndInterrupted}
	w.add(agent.TurnStarted{Turn: w.ended.Turn})
}

func (w *writer) answer(e Entry) {
	if !w.open {
		w.start()
	}
	w.ended.Steps++
	w.ended.Usage = w.ended.Usage.Add(e.Usage)
	stop := agent.StopEnd
	w.ended.Reason = agent.EndDone
	if calls := e.Message.Calls(); len(calls) > 0 {
		stop, w.ended.Reason = agent.StopCalls, agent.EndInterrupted
		for _, c := range calls {
			w.tools[c.ID] = c.Tool
		}
	}
	w.add(agent.ModelAnswered{
		Turn: w.ended.Turn, Step: w.ended.Steps,
		Answer: agent.Answer{Message: e.Message, Stop: stop, Usage: e.Usage, Model: e.Model},
	})
}

func (w *writer) results(e Entry) {
	for _, b := range e.Message.Blocks {
		w.add(agent.CallFinished{Result: *b.Result, Tool: w.tools[b.Result.ID]})
	}
}

func (w *writer) end() {
	if w.open {
		w.add(w.ended)
		w.open = false
	}
}
