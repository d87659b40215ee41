package inbound

import (
	"context"
	"fmt"
	"time"

	"dure/agent"
	"dure/client"
)

// Ask has a session of its own answer one text, and closes it.
func Ask(ctx context.Context, c client.Client, o agent.Open, input, text string) (session, said string, err error) {
	sess, err := c.Open(ctx, o)
	if err != nil {
		return "", "", err
	}
	defer func() {
		const most = 10 * time.Second
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		if cerr := sess.Close(closing); cerr != nil && err == nil {
			err = fmt.Errorf("closing the session: %w", cerr)
		}
	}()
	if err := sess.Send(ctx, agent.Prompt{ID: input, Text: text}); err != nil {
		return sess.Info.ID, "", err
	}
	var h heard
	_, err = follow(ctx, sess, &h, 0, func(i string) bool { return i == input })
	return sess.Info.ID, h.text, err
}
