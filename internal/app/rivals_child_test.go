//go:build unix

package app_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
)

// runRival opens the session as soon as it is told to, as often as it takes, has a
// prompt answered, and leaves when it is told to. It prints what it was refused, and what it was told.
func runRival(task childTask) error {
	a, err := app.New(options(task.Work, task.Home, task.URL, app.Flags{}))
	if err != nil {
		return err
	}
	ctx, c := context.Background(), a.Client()
	fmt.Println("ready")
	orders := bufio.NewReader(os.Stdin)
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	var s *client.Session
	for s == nil {
		begun := time.Now()
		s, err = c.Open(ctx, agent.Open{Session: crashID})
		if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemOwned {
			fmt.Println("refused", time.Since(begun).Milliseconds(), p.Args["pid"])
		} else if err != nil {
			return err
		}
	}
	fmt.Println("open")
	if err := s.Send(ctx, agent.Prompt{ID: task.Rival, Text: "Is it so?"}); err != nil {
		return err
	}
	fmt.Println("ack", task.Rival)
	if err := untilAnswered(ctx, s, task.Rival); err != nil {
		return err
	}
	if _, err := orders.ReadString('\n'); err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	fmt.Println("left")
	return nil
}

// untilAnswered prints the events up to the end of the turn that answers a prompt.
func untilAnswered(ctx context.Context, s *client.Session, prompt string) error {
	entered := false
	for e, err := range s.Events(ctx, s.Info.Head) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		fmt.Println("e", e.Seq, e.ID)
		switch b := e.Body.(type) {
		case agent.InputAdded:
			entered = entered || b.Input == prompt
		case agent.TurnEnded:
			if entered {
				return nil
			}
		}
	}
	return errors.New("the events ended before the turn")
}
