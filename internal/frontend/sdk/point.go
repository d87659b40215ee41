package sdk

import (
	"context"
	"slices"
	"strings"

	"dure/agent"
	"dure/client"
	"dure/internal/state/transcript"
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

// DropsMore says why more than one turn, that of the message with this UUID, would be forgotten
// where a session goes back to an event; "" = it would not.
func DropsMore(ctx context.Context, c client.Client, session string, at int64, uuid string) (why string, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	info, err := client.Query[agent.SessionInfo](ctx, c, agent.FindSession{Name: session})
	if err != nil || info.Head <= at {
		return "", err
	}
	type entry struct {
		seq    int64
		what   string
		begins bool // it is the message itself
	}
	var gone []entry
	for e, err := range c.Attach(info.ID).Events(ctx, at) {
		if err != nil {
			return "", err
		}
		if e.Live() {
			continue
		}
		switch b := e.Body.(type) {
		case agent.InputAdded:
			id := transcript.InputID(b.Input, e.ID)
			gone = append(gone, entry{e.Seq, "the message " + id, id == uuid || b.Input == uuid})
		case agent.ModelAnswered:
			if b.Purpose == "" {
				gone = append(gone, entry{e.Seq, "an answer", false})
			}
		case agent.CallFinished:
			gone = append(gone, entry{e.Seq, "the result of a call", false})
		case agent.CallSettled:
			gone = append(gone, entry{e.Seq, "the outcome of work in the background", false})
		case agent.ConversationRewound: // that is forgotten already
			gone = slices.DeleteFunc(gone, func(x entry) bool { return x.seq > b.To })
		}
		if e.Seq >= info.Head {
			break
		}
	}
	begun := false
	for _, x := range gone {
		if begun = begun || x.begins; !begun || strings.HasPrefix(x.what, "the message ") && !x.begins || strings.HasSuffix(x.what, "background") {
			return x.what + " would be forgotten too, which is none of that turn", nil
		}
	}
	return "", nil
}
