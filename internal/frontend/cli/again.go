package cli

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// A request is what the user said, and where it stands.
type request struct {
	seq    int64
	waited bool // it was said while a turn ran
	agent.InputAdded
}

// requests are those of the user that count, up to the head of info.
func (c *CLI) requests(ctx context.Context, info agent.SessionInfo) ([]request, error) {
	var all []request
	queued := map[string]bool{}
	for e, err := range c.Client.Attach(info.ID).Events(ctx, 0) {
		if err != nil {
			return nil, err
		}
		switch b := e.Body.(type) {
		case agent.InputQueued:
			queued[b.Input] = true
		case agent.InputAdded:
			if b.Origin == "" {
				all = append(all, request{e.Seq, queued[b.Input], b})
			}
		case agent.ConversationRewound:
			all = slices.DeleteFunc(all, func(r request) bool { return r.seq > b.To })
		}
		if e.Seq >= info.Head {
			break
		}
	}
	return all, nil
}

// Request returns where a session stood before the request at event seq, or before
// the newest one when it is 0.
func (c *CLI) Request(ctx context.Context, info agent.SessionInfo, seq int64) (before int64, err error) {
	all, err := c.requests(ctx, info)
	if err != nil {
		return 0, err
	}
	if seq == 0 && len(all) > 0 {
		seq = all[len(all)-1].seq
	}
	for _, r := range all {
		if r.seq == seq && !r.waited {
			return seq - 1, nil
		}
	}
	return 0, &agent.Problem{
		Code: agent.ProblemUsage, Message: c.Text.Say(text.NotARequest, "seq", seq), Fix: c.Text.Say(text.FixNotARequest),
	}
}

// slashEdit goes back to before a request and says something else there. Files stay
// as they are.
func (ch *chat) slashEdit(ctx context.Context, arg string) {
	n := 1
	first, rest, _ := strings.Cut(arg, " ")
	if k, err := strconv.Atoi(first); err == nil && k > 0 {
		n, arg = k, strings.TrimSpace(rest)
	}
	if arg == "" {
		ch.v.note(yellow, ch.usageOf(ctx, "edit"))
		return
	}
	ch.again(ctx, n, func(agent.InputAdded) agent.Prompt { return agent.Prompt{Text: arg} })
}

// slashRetry asks the newest request again.
func (ch *chat) slashRetry(ctx context.Context, _ string) {
	ch.again(ctx, 1, func(b agent.InputAdded) agent.Prompt { return agent.Prompt{Text: b.Text, Blocks: b.Parts} })
}

// again takes the conversation back to before the nth newest request and sends what
// say makes of it.
func (ch *chat) again(ctx context.Context, n int, say func(agent.InputAdded) agent.Prompt) {
	info, err := ch.Find(ctx, ch.sess.Info.ID, "")
	var all []request
	if err == nil {
		all, err = ch.requests(ctx, info)
	}
	if err == nil && n > len(all) {
		err = ch.tooFew(info, len(all), n)
	}
	if ch.failed(err) {
		return
	}
	r := all[len(all)-n]
	if ch.send(ctx, agent.Rewind{To: r.seq - 1, Conversation: true}) {
		ch.sayPrompt(ctx, say(r.InputAdded))
	}
}
