package cli

import (
	"context"
	"fmt"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Setup opens a session for what runs at its beginning alone, and says what that had to
// say.
func (c *CLI) Setup(ctx context.Context, o agent.Open) error {
	o.Approver, o.Ready = false, true
	sess, err := c.Client.Open(ctx, o)
	if err != nil {
		return err
	}
	for e, err := range sess.Events(ctx, 0) {
		if err != nil {
			break
		}
		if b, ok := e.Body.(agent.HookRan); ok {
			if line, _ := hookLine(c.Text, b); line != "" {
				fmt.Fprintln(c.Err, line)
			}
		}
		if e.Seq >= sess.Info.Head {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer cancel()
	fmt.Fprintln(c.Err, c.Text.Say(text.SetupDone))
	return sess.Close(ctx)
}
