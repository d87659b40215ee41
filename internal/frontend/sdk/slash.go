package sdk

import (
	"strings"
	"time"

	"dure/agent"
	"dure/internal/frontend/text"
)

// compactCommand is the message by which hosts have a conversation shortened.
const compactCommand = "/compact"

// compacting is a conversation that is being shortened for a message of the host.
type compacting struct {
	id    string // of the message; "" = none is
	began time.Time
}

// compactsFor reports whether a message wants the conversation shortened, and what it wants
// kept.
func compactsFor(m message) (focus string, ok bool) {
	if m.Plain || len(m.Blocks) > 0 {
		return "", false
	}
	words := strings.TrimSpace(m.Text)
	rest, ok := strings.CutPrefix(words, compactCommand)
	focus = strings.TrimSpace(rest)
	return focus, ok && (rest == "" || len(focus) < len(rest)) // a blank, or a new line, ends its name
}

// compact shortens the conversation for a message. It has no turn, but a beginning, and a result.
func (h *Host) compact(m message, focus string) {
	h.grace = nil
	h.setState(stateRunning)
	h.aside(m)
	if err := h.sess.Send(h.ctx, agent.Compact{Focus: focus}); err != nil {
		h.failure(err)
		h.rest()
		return
	}
	h.show.compacting = compacting{m.ID, h.c.Now()}
	busy := "compacting"
	h.out.put(status{head: h.head("system", "status", ""), Status: &busy})
}

// uncompact gives up waiting for a conversation to be shortened: the user has.
func (h *Host) uncompact() { h.compactOver(h.c.Text.Say(text.TurnInterrupted)) }

// compactOver tells what came of it: why says why the conversation stays as it is.
func (h *Host) compactOver(why string) {
	c := h.show.compacting
	if c.id == "" {
		return
	}
	h.show.compacting = compacting{}
	if why != "" {
		h.out.put(status{head: h.head("system", "status", ""), Compact: "failed", Wrong: why})
	}
	h.aloneOver(why, c.began)
}
