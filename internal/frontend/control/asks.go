package control

import (
	"crypto/rand"
	"fmt"
	"time"

	"dure/agent"
	"dure/client/protocol"
)

// ask is something that the host is asked, and has not answered in time yet.
type ask struct {
	id    string
	reply chan *request // holds the host's answer
	over  chan struct{} // closed when it is settled elsewhere
	none  chan struct{} // closed when the host answers nothing any more
}

// register makes an ask that the host may answer; nil = it answers nothing any more.
func (c *conn) register(kind string) *ask {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		return nil
	}
	a := &ask{id: kind + "-" + rand.Text(), reply: make(chan *request, 1), over: make(chan struct{}), none: make(chan struct{})}
	c.asks[a.id] = a
	return a
}

// retire takes an ask away, so that an answer comes too late from now on. It reports whether
// nobody had taken it.
func (c *conn) retire(a *ask, why string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asks[a.id] != a {
		return false
	}
	delete(c.asks, a.id)
	c.past[a.id] = why
	if c.order = append(c.order, a.id); len(c.order) > maxPast {
		delete(c.past, c.order[0])
		c.order = c.order[1:]
	}
	return true
}

// deafen says that the host answers nothing any more.
func (c *conn) deafen() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.deaf {
		return
	}
	c.deaf = true
	for _, a := range c.asks {
		close(a.none)
	}
}

// reached hands an answer of the host to what waits for it.
func (c *conn) reached(r *request) {
	c.mu.Lock()
	a := c.asks[r.ID]
	why, known := c.past[r.ID]
	c.mu.Unlock()
	if a != nil && c.retire(a, "it was answered before") {
		a.reply <- r
		return
	}
	if a != nil {
		why, known = "it was answered before", true
	}
	if known {
		c.refuse(r, &protocol.Error{Code: protocol.CodeLate, Message: "the answer came too late: " + why})
		return
	}
	c.refuse(r, &protocol.Error{Code: protocol.CodeUnknownAsk, Message: "nothing with this id was asked"})
}

// canUseTool takes the host's word on a call.
func (c *conn) canUseTool(r *request) {
	p, err := protocol.Payload[protocol.CanUseToolResponsePayload](r.Message)
	if err == nil {
		err = sensible(p)
	}
	if err != nil {
		c.refuse(r, err)
		return
	}
	c.reached(r)
}

// sensible checks an answer before it counts: one that cannot be read settles nothing.
func sensible(p protocol.CanUseToolResponsePayload) error {
	bad := func(why string) error {
		return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of CanUseToolResponse: " + why}
	}
	switch {
	case p.Behavior != string(agent.Allow) && p.Behavior != string(agent.Deny):
		return bad("behavior is allow or deny")
	case len(p.Input) > 0 && p.Input[0] != '{':
		return bad("input is no JSON object")
	case p.Remember != "" && p.Remember != agent.RememberSession && p.Remember != agent.RememberAlways:
		return bad("remember is session or always")
	}
	return nil
}

// hookCallback takes the host's answer to an event of hooks.
func (c *conn) hookCallback(r *request) {
	if _, err := protocol.Payload[protocol.HookCallbackPayload](r.Message); err != nil {
		c.refuse(r, err)
		return
	}
	c.reached(r)
}

// approval puts what the session asks to the host.
func (s *session) approval(seq int64, b agent.ApprovalAsked) {
	if !s.c.host.CanUseTool {
		s.other(agent.Event{Seq: seq, Body: b}) // somebody else answers it
		return
	}
	in := b.Proposal.Call.Input
	if len(in) > maxText {
		s.c.wg.Go(func() { s.resolve(s.word(b, agent.Deny, "it needs approval, and is too long to be shown to the host")) })
		return
	}
	a := s.c.register("ask")
	if a == nil {
		s.c.wg.Go(func() { s.resolve(s.word(b, agent.Deny, "it needs approval, and the host is gone")) })
		return
	}
	s.mu.Lock()
	s.begun[b.ID] = a
	s.mu.Unlock()
	d := protocol.CanUseToolData{
		Seq: seq, Call: b.Proposal.Call.ID, Tool: b.Proposal.Call.Tool, Input: in, Reason: b.Reason, Rule: b.Rule, Child: b.Child,
		Timeout: s.c.host.CanUseToolTimeout,
	}
	d.Diff, _ = cut(b.Diff, maxDiff)
	for _, c := range b.Choices {
		d.Choices = append(d.Choices, protocol.Choice{Remember: c.Remember, Rules: c.Rules})
	}
	s.c.wg.Go(func() { s.await(a, b) })
	s.emit(protocol.TypeCanUseTool, a.id, d)
}

// await waits for the host's word, and hands it to the session.
func (s *session) await(a *ask, b agent.ApprovalAsked) {
	late := time.NewTimer(s.c.askTime())
	defer late.Stop()
	select {
	case r := <-a.reply:
		s.answer(a, b, r)
		return
	case <-a.over:
		return
	case <-late.C:
		why := fmt.Sprintf("it needs approval, and the host has not answered within %s", s.c.askTime())
		if !s.c.retire(a, "the time was over, and the call was denied") {
			break // just now
		}
		no := s.word(b, agent.Deny, why)
		no.Decision.Code = agent.ErrApprovalTimeout
		s.resolve(no)
		return
	case <-a.none:
		if !s.c.retire(a, "the connection ends") {
			break
		}
		s.resolve(s.word(b, agent.Deny, "it needs approval, and the host is gone"))
		return
	case <-s.life.Done():
		s.c.retire(a, "the session was closed")
		return
	}
	select {
	case r := <-a.reply:
		s.answer(a, b, r)
	case <-a.over:
	case <-s.life.Done():
	}
}

// word is an answer to an approval.
func (s *session) word(b agent.ApprovalAsked, v agent.Verdict, why string) agent.Resolve {
	return agent.Resolve{ID: b.ID, Decision: agent.Decision{Verdict: v, By: s.c.name, Reason: why}}
}

// resolve sends an answer to the session. What cannot be sent is denied when the session ends.
func (s *session) resolve(w agent.Resolve) {
	if err := s.sess.Send(s.life, w); err != nil && s.life.Err() == nil {
		s.c.cfg.Logger.Warn("answering an approval", "session", s.sess.Info.ID, "error", err)
	}
}

// answer hands the host's word to the session, and tells the host whether it has counted.
func (s *session) answer(a *ask, b agent.ApprovalAsked, r *request) {
	p, _ := protocol.Payload[protocol.CanUseToolResponsePayload](r.Message) // it was read before
	w := s.word(b, agent.Verdict(p.Behavior), p.Reason)
	if w.Decision.Verdict == agent.Allow {
		w.Remember, w.Rules = p.Remember, p.Rules
		if len(p.Input) > 0 {
			w.Decision.Input = p.Input
		}
	}
	if err := s.sess.Send(s.life, w); err != nil {
		s.c.refuse(r, err)
		return
	}
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-a.over:
	case <-late.C: // accepted, and nothing has contradicted it yet
	case <-s.life.Done():
		s.c.refuse(r, errEnded)
		return
	}
	s.mu.Lock()
	by := s.settled[b.ID]
	delete(s.settled, b.ID)
	s.mu.Unlock()
	if by != "" && by != s.c.name {
		s.c.refuse(r, &protocol.Error{Code: protocol.CodeLate, Message: "the answer came too late: " + by + " was first"})
		return
	}
	s.c.reply(r, s.sess.Info.ID)
}

// resolved takes in that an approval was answered, by whomever.
func (s *session) resolved(b agent.ApprovalResolved) {
	s.mu.Lock()
	a := s.begun[b.ID]
	delete(s.begun, b.ID)
	if a != nil {
		s.settled[b.ID] = b.Decision.By
	}
	s.mu.Unlock()
	if a == nil {
		return
	}
	if s.c.retire(a, "somebody else was first") {
		s.mu.Lock()
		delete(s.settled, b.ID) // nobody will look
		s.mu.Unlock()
	}
	close(a.over)
}
