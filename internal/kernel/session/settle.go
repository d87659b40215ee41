package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// maxNotice is how many bytes of an outcome the model reads unasked: its end,
// where errors stand.
const maxNotice = 2000

// maxBegins is how many characters of an agent's report it reads besides, where those
// are not all.
const maxBegins = 100

// firstOf is the first n characters of a text.
func firstOf(text string, n int) string {
	for i := range text {
		if n--; n < 0 {
			return text[:i]
		}
	}
	return text
}

// settled is the command that [agent.Settle] becomes.
type settled struct {
	fact    agent.CallSettled
	granted *agent.AuthGranted // what it has waited for; nil = nothing of the kind
}

// bodies are the events of an outcome.
func (c settled) bodies() []agent.Body {
	if c.granted == nil {
		return []agent.Body{c.fact}
	}
	g := *c.granted
	g.Handle = c.fact.Handle
	return []agent.Body{g, c.fact}
}

// Command returns the name of the command.
func (settled) Command() string { return "settled" }

// settle passes the outcome of a pending call through the guard and hands it to
// the owner. An outcome may be quicker than the result that announces it, which
// is waited for.
func (s *Session) settle(ctx context.Context, st agent.Settlement) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	defer func() {
		if st.Result.Stream != nil {
			_ = st.Result.Stream.Close() // read to its end by now, or of no use
		}
	}()
	p, pending, over := s.awaitPending(ctx, st.Handle)
	switch {
	case over:
		return nil
	case !pending && ctx.Err() != nil:
		return context.Cause(ctx)
	case !pending:
		return fmt.Errorf("settling %s: %w", st.Handle, journal.ErrClosed)
	}
	spec := agent.Spec{Name: p.Tool}
	if t, ok := s.parts.Catalog().Find(p.Tool); ok {
		spec = t.Spec()
	}
	call := agent.Call{ID: p.ID, Tool: p.Tool}
	r, err := s.points.Guard.Check(context.WithoutCancel(ctx), spec, call, st.Result)
	if err != nil {
		r = agent.Failure(agent.ErrWithheld, "The result was withheld: "+err.Error(), "")
	}
	r.ID, r.Stream, r.Handle = p.ID, nil, st.Handle
	fact := agent.CallSettled{Handle: st.Handle, ID: p.ID, Tool: p.Tool, Result: r, Notice: notice(st.Handle, r)}
	out := settled{fact, st.Granted}
	if err = s.Send(ctx, out); err != nil && s.life.Err() != nil {
		return s.leave(out) // the owner has left, and the log is still ours
	}
	return err
}

// leave records an outcome for the model to read when the session is opened
// again.
func (s *Session) leave(c settled) error {
	var pending, open bool
	s.rec.read(func(st *transcript.State) {
		_, pending = st.Pending[c.fact.Handle]
		open = st.Turn.Open
	})
	if !pending {
		return nil
	}
	return s.rec.append(journal.Batch{Sync: journal.Barrier}, c.queued(open)...)
}

// settledOrigin is the origin of input that only has the model read of outcomes.
const settledOrigin = "settled"

// queued returns the events of an outcome that nobody is woken for. An open turn
// reads of it at its next step, else it waits for the next input.
func (c settled) queued(open bool) []agent.Body {
	if !open {
		return c.bodies()
	}
	return append(c.bodies(), agent.InputQueued{Input: inputOf(c.fact.Handle), Origin: settledOrigin})
}

// inputOf names the input that has the model read of an outcome.
func inputOf(handle string) string { return "settled:" + handle }

// awaitPending returns the pending call of a handle, once it is in the log, or
// that it was settled before. It reports neither when ctx is done first.
func (s *Session) awaitPending(ctx context.Context, handle string) (p agent.PendingCall, pending, over bool) {
	look := func() bool {
		s.rec.read(func(st *transcript.State) {
			p, pending = st.Pending[handle]
			over = slices.ContainsFunc(st.Settled, func(c agent.CallSettled) bool { return c.Handle == handle })
		})
		return pending || over
	}
	var head int64
	s.rec.read(func(st *transcript.State) { head = st.Head })
	if look() {
		return p, pending, over
	}
	for e, err := range s.rec.follow(ctx, head) {
		if err != nil {
			break
		}
		if _, ok := e.Body.(agent.CallFinished); ok && look() {
			break
		}
	}
	return p, pending, over
}

// settled records an outcome, and lets the model read it: at the next step of a
// running turn, else in a turn of its own.
func (r *runner) settled(c settled) error {
	var pending, open bool
	r.rec.read(func(s *transcript.State) {
		_, pending = s.Pending[c.fact.Handle]
		open = s.Turn.Open
	})
	if !pending {
		return nil
	}
	batch := journal.Batch{Sync: journal.Barrier}
	if open = open || r.cancel != nil; open || r.life.Err() != nil {
		return r.rec.append(batch, c.queued(open)...)
	}
	if err := r.rec.append(batch, append(c.bodies(), agent.InputAdded{Input: inputOf(c.fact.Handle), Origin: settledOrigin})...); err != nil {
		return err
	}
	return r.start()
}

// loseHandles settles what an earlier process had begun and could not finish. Its
// processes, if there still are any, are ended first. What the session that this
// one was forked from has begun is that session's own. What can still come out is left, and
// work of children goes on, see [plug.Points], or waits until the session is opened to ask
// models.
func (s *Session) loseHandles(st *transcript.State, forkOf string, modelless bool) []agent.Body {
	var bodies []agent.Body
	for _, h := range slices.Sorted(maps.Keys(st.Pending)) {
		if forkOf == "" && s.points.Awaits != nil && s.points.Awaits(h) {
			continue
		}
		p := st.Pending[h]
		if forkOf == "" && p.Key != "" && s.points.Revive != nil {
			if r := s.points.Revive(h, p); r != nil {
				if !modelless {
					s.revived = append(s.revived, r)
				}
				continue
			}
		}
		text := "The program ended while " + h + " was running; its outcome is unknown."
		if forkOf != "" {
			text = "This session was forked from another one while " + h + " was running there; its outcome is unknown here."
		} else if s.reg.cfg.Reap != nil {
			for _, proc := range p.Spawned {
				s.reg.cfg.Reap(proc)
			}
		}
		r := agent.Failure(agent.ErrLost, text, "Look at the state of things, and start it again if it is still needed.")
		r.ID, r.Handle = p.ID, h
		fact := agent.CallSettled{Handle: h, ID: p.ID, Tool: p.Tool, Result: r, Notice: notice(h, r), Lost: true}
		bodies = append(bodies, settled{fact: fact}.queued(st.Turn.Open)...)
	}
	return bodies
}

// resurrect has work go on that the gate has let begin in an earlier program: only a call
// that was allowed to run has been answered as pending.
func (s *Session) resurrect() {
	for _, r := range s.revived {
		r.Resurrect()
	}
}

// loseSkills says of skills that an earlier process ran in the background that nothing
// will come of them.
func loseSkills(st *transcript.State, forkOf string) (bodies []agent.Body) {
	why := "the program ended while it ran"
	if forkOf != "" {
		why = "this session was forked from another one while it ran there"
	}
	for _, k := range st.Apart {
		bodies = append(bodies, agent.SkillCompleted{
			Run: k.Run, Skill: k.Name, Error: why,
			Text: "[Fork skill result] " + k.Name + "\nIt did not come to its end: " + why + ". Start it again if it is still needed.",
		})
	}
	return bodies
}

// ofAgents begins the handles of agents. What stands behind a dash in one tells the times
// apart that an agent has gone on.
const ofAgents = "child:"

// outcomeOf returns how a pending call came out, if it has and is at hand: of an agent, the
// newest time.
func (s *Session) outcomeOf(handle string) (r agent.Result, ok bool) {
	s.rec.read(func(st *transcript.State) {
		for _, c := range slices.Backward(st.Settled) {
			if c.Handle == handle || strings.HasPrefix(handle, ofAgents) && strings.HasPrefix(c.Handle, handle+"-") {
				r, ok = c.Result, true
				return
			}
		}
	})
	return r, ok
}

// notice is what the model reads of an outcome. It says that this is output and
// not the user speaking, and where that ends: the user's next words stand right
// behind it.
func notice(handle string, r agent.Result) string {
	how := "has ended"
	switch {
	case r.Error != nil && r.Error.Code == agent.ErrLost:
		how = "is lost"
	case r.Failed():
		how = "has failed"
	}
	text := strings.TrimRight(r.Text, "\n")
	part := "Its output"
	if cut := len(text) - maxNotice; cut > 0 {
		begins := ""
		if strings.HasPrefix(handle, ofAgents) { // an agent says first what matters
			begins = fmt.Sprintf("It begins %q. ", firstOf(text, maxBegins))
		}
		text = strings.ToValidUTF8(text[cut:], "")
		part = begins + fmt.Sprintf("The last %d bytes of its output", len(text))
	}
	if text == "" {
		return fmt.Sprintf("[Task %s %s, without output. This is a message of the program, not of the user.]", handle, how)
	}
	mark := markOf(handle, text)
	return fmt.Sprintf("[Task %s %s. This is a message of the program, not of the user. %s, up to the mark %s:]\n%s\n[%s: end of the output]",
		handle, how, part, mark, text, mark)
}

// markOf returns a mark that a text cannot have written: a hash of the text itself.
func markOf(handle, text string) string {
	sum := sha256.Sum256([]byte(handle + "\x00" + text))
	return hex.EncodeToString(sum[:6])
}
