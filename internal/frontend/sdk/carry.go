package sdk

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
)

// carried are the built-in commands that are carried out for hosts, beside [compactCommand].
var carried = []string{"clear", "compact", "context", "cost"}

// reading is what a message was found to be that begins as a command does.
type reading struct {
	is    query.CommandRead
	words string // what there is to say, of a command that only tells something
	err   error
}

// slashed reports whether a message may be a command: what a session makes prompts of it sends,
// what is built in is carried out here or refused, and the model reads none of it as prose.
func slashed(m message) bool { return !m.Plain && len(m.Blocks) == 0 && strings.HasPrefix(m.Text, "/") }

// reads finds out what a message is, beside the loop: whoever offers commands may be inside of
// the host.
func (h *Host) reads(m message) {
	h.show.reading, h.grace = true, nil
	h.setState(stateRunning)
	c, id, began := h.prog.Client, h.session, h.c.Now()
	h.wg.Go(func() {
		var r reading
		r.is, r.err = client.Query[query.CommandRead](h.ctx, c, query.ReadCommand{Session: id, Text: m.Text})
		if r.err == nil && r.is.Is == query.ReadRun && r.is.Name == "context" {
			r.words, r.err = h.contextWords(h.ctx, c, id)
		}
		select {
		case h.events <- found{then: func() { h.carry(m, r, began) }}:
		case <-h.ctx.Done():
		}
	})
}

// carry does what a message asks for.
func (h *Host) carry(m message, r reading, began time.Time) {
	h.show.reading = false
	name := "/" + text.Cut(text.OneLine(r.is.Name), maxNamed)
	switch is := r.is; {
	case h.closing:
	case r.err != nil:
		h.refuses(r.err)
	case is.Is == query.ReadSend:
		h.send(m)
	case is.Is == query.ReadRun && is.Name == "compact":
		h.compact(m, is.Arguments)
	case is.Is == query.ReadRun && is.Name == "clear":
		h.clear(m, began)
	case is.Is == query.ReadRun && is.Name == "context":
		h.tell(m, r.words, began)
	case is.Is == query.ReadRun && is.Name == "cost":
		all, _ := h.cost()["total_cost_usd"].(float64)
		h.tell(m, h.c.Text.Say(text.CostTotal, "cost", "$"+strconv.FormatFloat(all, 'f', 4, 64)), began)
	case is.Is == query.ReadRun, is.Is == query.ReadRefuse && is.Kind == query.CommandBuiltIn:
		h.refuses(errors.New(h.c.Text.Say(text.HostCommand, "name", name, "list", "/"+strings.Join(carried, ", /"))))
	case is.Is == query.ReadRefuse:
		h.refuses(errors.New(h.c.Text.Say(text.CommandOff, "name", name, "why", text.Cut(text.OneLine(is.Why), maxWhy))))
	default:
		words := h.c.Text.Say(text.SlashUnknown, "name", name)
		if len(is.Near) > 0 {
			words += " " + h.c.Text.Say(text.CommandNear, "list", "/"+text.OneLine(strings.Join(is.Near, ", /")))
		}
		h.refuses(errors.New(words))
	}
}

// Bounds of what is said of a command.
const (
	maxNamed = 80
	maxWhy   = 400
)

// refuses says that a command is not carried out.
func (h *Host) refuses(err error) {
	h.failure(err)
	h.rest()
}

// aside shows that a message is taken for which there is no turn.
func (h *Host) aside(m message) {
	h.out.put(h.beginning())
	if h.c.Replay {
		h.replay(agent.Event{Time: h.c.Now()}, m)
	}
}

// tell answers a message with words of the program's own.
func (h *Host) tell(m message, words string, began time.Time) {
	h.aside(m)
	h.out.put(struct {
		head
		Content string `json:"content"`
	}{h.head("system", "local_command_output", ""), words})
	h.aloneOver(words, began)
}

// clear has the session forget what was said in it. It stays the same session, in which files
// are as they are.
func (h *Host) clear(m message, began time.Time) {
	if h.show.first > 0 {
		if err := h.sess.Send(h.ctx, agent.Rewind{To: h.show.first - 1, Conversation: true}); err != nil {
			h.refuses(err)
			return
		}
	}
	h.aside(m)
	h.out.put(struct {
		head
		To      string `json:"new_conversation_id"`
		Trigger string `json:"trigger"`
		Message string `json:"user_message_uuid"`
	}{h.head("conversation_reset", "", ""), h.session, "clear", m.ID})
	h.aloneOver("", began)
}

// aloneOver is the result of a message that had no turn.
func (h *Host) aloneOver(words string, began time.Time) {
	r := h.show.Result("")
	r.Type, r.Subtype, r.IsError, r.TerminalReason = "result", "success", false, "completed"
	r.Result, r.Errors, r.NumTurns, r.StopReason, r.Denials, r.Deferred, r.Structured = words, nil, 0, nil, nil, nil, nil
	r.Usage, r.DurationAPIMS, r.FirstMS = view.ResultUsage{}, 0, 0
	r.DurationMS = h.c.Now().Sub(began).Milliseconds()
	h.result(r)
	h.rest()
}

// contextWords says what fills the window of the model.
func (h *Host) contextWords(ctx context.Context, c client.Client, session string) (string, error) {
	r, err := client.Query[agent.ContextReport](ctx, c, agent.ContextUsage{Session: session})
	if err != nil {
		return "", err
	}
	lines := []string{h.c.Text.Say(text.ContextUsed, "used", r.Used, "window", r.Window, "percent", int(100*r.Ratio))}
	for _, p := range r.Parts {
		if p.Tokens > 0 {
			lines = append(lines, fmt.Sprintf("%s: %d", categoryOf(p).Name, p.Tokens))
		}
	}
	return strings.Join(lines, "\n"), nil
}
