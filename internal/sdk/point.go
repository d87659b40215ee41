package sdk

import (
	"context"

	"dure/agent"
	"dure/client"
	"dure/internal/transcript"
)

// EventOf returns the number of the event that a message comes from, by its UUID; 0 = there
// is none. The session need not be open.
func EventOf(ctx context.Context, c client.Client, session, uuid string) (int64, error) {
	if !transcript.IsUUID(uuid) {
		return 0, nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	info, err := client.Query[agent.SessionInfo](ctx, c, agent.FindSession{Name: session})
	if err != nil || info.Head == 0 {
		return 0, err
	}
	for e, err := range c.Attach(info.ID).Events(ctx, 0) {
		if err != nil {
			return 0, err
		}
		if e.Live() {
			continue
		}
		parts := 1
		switch b := e.Body.(type) {
		case agent.InputAdded:
			if transcript.InputID(b.Input, e.ID) == uuid {
				return e.Seq, nil
			}
		case agent.ModelAnswered:
			parts = len(b.Message.Blocks)
		}
		for i := range parts {
			if transcript.MessageID(e.ID, i) == uuid {
				return e.Seq, nil
			}
		}
		if e.Seq >= info.Head {
			break
		}
	}
	return 0, nil
}
