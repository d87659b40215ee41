package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"dure/agent"
)

// lastEvents is how many events at the end of a session hold its last turn.
const lastEvents = 10 * turnSteps

// opened says what a person sees of a session that was opened.
type opened struct {
	Millis float64 `json:"ms"` // until the last turn could be shown
	Answer string  `json:"answer"`
}

// openChild opens the long session and reads its last turn, as a front-end does.
func openChild(args []string) (any, error) {
	begun := time.Now()
	a, err := program(args[0])
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), runLimit)
	defer cancel()
	s, err := a.Client().Open(ctx, agent.Open{Session: longID})
	if err != nil {
		return nil, closing(a, err)
	}
	var out opened
	ended := false
	for e, err := range s.Events(ctx, max(0, s.Info.Head-lastEvents)) {
		if err != nil {
			return nil, closing(a, err)
		}
		switch b := e.Body.(type) {
		case agent.ModelAnswered:
			out.Answer = b.Message.Text()
		case agent.TurnEnded:
			ended = true
		}
		if e.Seq >= s.Info.Head {
			break
		}
	}
	out.Millis = time.Since(begun).Seconds() * 1000
	if !ended {
		return nil, closing(a, errors.New("the last turn is not there"))
	}
	if out.Answer == "" {
		return nil, closing(a, fmt.Errorf("the last turn has no answer in %d events", lastEvents))
	}
	return out, closing(a, nil)
}
