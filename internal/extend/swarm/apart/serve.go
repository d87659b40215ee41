package apart

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
)

// Parent is the program that this one works for, as the process of an agent; nil = none. It
// decides about each call, asks the person and keeps the budget.
type Parent struct {
	line  *line
	job   Job
	alone sync.WaitGroup // of what listens to it

	mu   sync.Mutex
	gone bool   // the parent is; guarded by mu
	park func() // leaves the session as it is; nil = there is none yet; guarded by mu
}

// Program is the program of the process.
type Program struct {
	// Run runs the session to its end, and calls opened once it is open.
	Run func(ctx context.Context, child plug.Apart, opened func(id string)) (agent.Outcome, error)

	// Follow reads the log of the session, Tell puts a text of another agent before its
	// model, and Park leaves it as it is. They are called while it is open.
	Follow func(ctx context.Context, session string) iter.Seq2[agent.Event, error]
	Tell   func(ctx context.Context, session, id, text, by string) error
	Park   func()

	Close func() error
}

// Serve is the life of the process of an agent: it reads its task from in, runs the session
// in the program that build makes for it, writes to out what is to be known of it, and ends
// when in does.
func Serve(ctx context.Context, in io.Reader, out io.Writer, build func(*Parent, json.RawMessage) (Program, error)) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var u *Parent
	begun := make(chan error, 1)
	var tell func(id, text, by string) error
	ready := make(chan struct{})
	go func() { // it ends with the process at the latest, which waits for nothing more then
		err := readLines(in, func(m swarm.Message) error {
			switch m.Type {
			case swarm.Delegate:
				if u != nil {
					return errors.New("it has a task already")
				}
				u = &Parent{line: newLine(out, m.To, m.From, m.Correlation)}
				err := json.Unmarshal([]byte(m.Payload), &u.job)
				begun <- err
				return err
			case swarm.Shutdown:
				end(errors.New("it was to end"))
				return nil
			case swarm.Event:
				n, err := noteOf(m)
				switch {
				case err != nil || u == nil:
					return errNoMessage
				case n.Kind == kindTell:
					<-ready
					a := note{Kind: kindAnswer}
					if err := tell(n.Message, n.Text, n.By); err != nil {
						a.Error = err.Error()
					}
					return u.line.send(swarm.Event, m.Correlation, a, false)
				default:
					u.line.answered(m.Correlation, n)
				}
			}
			return nil
		})
		if u != nil {
			u.left()
		}
		end(fmt.Errorf("%w: %w", errGone, err))
		if u != nil {
			u.line.hangUp()
		}
		select {
		case begun <- err:
		default:
		}
	}()
	select {
	case err := <-begun:
		if err != nil {
			return fmt.Errorf("reading the task: %w", err)
		}
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	p, err := build(u, u.job.Program)
	if err != nil {
		tell = func(string, string, string) error { return err }
		close(ready)
		return errors.Join(err, u.line.send(swarm.DelegateResult, u.line.task, result{Error: err.Error()}, true))
	}
	tell = func(id, text, by string) error { return p.Tell(ctx, u.job.Child.Open.New, id, text, by) }
	close(ready)
	outcome, err := u.run(ctx, p)
	r := result{Outcome: outcome}
	if err != nil {
		r.Error = err.Error()
	}
	return errors.Join(p.Close(), u.line.send(swarm.DelegateResult, u.line.task, r, err != nil))
}

// run runs the session.
func (u *Parent) run(ctx context.Context, p Program) (agent.Outcome, error) {
	job := u.job.Child
	job.Question, job.Reserve = u.question, u.reserve
	watch, leave := context.WithCancel(ctx)
	out, err := p.Run(ctx, job, func(id string) {
		u.leaves(p.Park)
		_ = u.line.tell(note{Kind: kindOpened}) // whoever is gone has ended the context
		u.alone.Go(func() {
			for e, err := range p.Follow(watch, id) {
				if _, ok := e.Body.(agent.CallDecided); ok && err == nil {
					_ = u.line.tell(note{Kind: kindDid, Event: &e}) // as above
				}
			}
		})
	})
	leave()
	u.alone.Wait()
	return out, err
}

// leaves takes how the session is left as it is when the parent is gone, and does so where it
// is already.
func (u *Parent) leaves(park func()) {
	u.mu.Lock()
	gone := u.gone
	u.park = park
	u.mu.Unlock()
	if gone {
		park()
	}
}

// left leaves the session as it is: the parent is gone, and what is not decided, answered and
// paid for goes on with the next one. That nobody answers is no decision, and no word on the
// budget.
func (u *Parent) left() {
	u.mu.Lock()
	u.gone = true
	park := u.park
	u.mu.Unlock()
	if park != nil {
		park()
	}
}

// question asks the person that the parent has.
func (u *Parent) question(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
	n, err := u.line.ask(ctx, note{Kind: kindQuestion, Approval: id, Via: child, Proposal: &p, Decision: &d})
	if err == nil && n.Decision == nil {
		err = errNoMessage
	}
	if err != nil {
		return agent.Decision{}, err
	}
	return *n.Decision, nil
}

// reserve asks the budget of the parent.
func (u *Parent) reserve(request, unit plug.Amount, least, most int) (int, func(plug.Amount), error) {
	n, err := u.line.ask(context.Background(), note{Kind: kindReserve, Request: request, Unit: unit, Least: least, Most: most})
	if err != nil {
		return 0, nil, err
	}
	if n.Error != "" {
		return 0, nil, &plug.Refused{Message: n.Error, Unpriced: n.Unpriced}
	}
	return n.Most, func(spent plug.Amount) {
		_ = u.line.tell(note{Kind: kindSettle, Hold: n.Hold, Request: spent}) // whoever is gone keeps no budget
	}, nil
}

// Works reports whether a session is one that the process was started for.
func (u *Parent) Works(parent string) bool { return u != nil && u.job.Child.Parent == parent }

// Lets returns the tools that the parent lets an agent have; nil = all.
func (u *Parent) Lets(parent string) []string {
	if !u.Works(parent) {
		return nil
	}
	return u.job.Tools
}

// Stage has the parent decide. What the policy of this process would ask for, the parent's
// knows better, which has what was granted meanwhile. The zero Stage = it is no parent's.
func (u *Parent) Stage(b plug.Session) plug.Stage {
	if !u.Works(b.Parent) {
		return plug.Stage{}
	}
	return plug.Stage{Name: "parent", Decide: func(ctx context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
		n, err := u.line.ask(ctx, note{Kind: kindDecide, Proposal: &p, Decision: &soFar})
		if err == nil && n.Decision == nil {
			err = errNoMessage
		}
		if err != nil {
			return agent.Decision{}, err
		}
		return *n.Decision, nil
	}}
}

// Mirrored tells the parent what was written of the session for other programs, or why
// nothing more will be.
func (u *Parent) Mirrored(child string, lines []byte, err error) {
	for len(lines) > 0 {
		part := mirrorPart(lines)
		lines = lines[len(part):]
		if wrong := u.line.tell(note{Kind: kindMirrored, Message: child, Text: string(part)}); wrong != nil && err == nil {
			err = wrong
		}
	}
	if err != nil {
		_ = u.line.tell(note{Kind: kindMirrored, Message: child, Error: err.Error()}) // whoever is gone keeps no store
	}
}

// mirrorPart is the beginning of some lines that goes to the parent at a time.
func mirrorPart(lines []byte) []byte {
	if len(lines) <= maxMirrored {
		return lines
	}
	end := bytes.LastIndexByte(lines[:maxMirrored], '\n')
	if end < 0 {
		end = bytes.IndexByte(lines, '\n')
	}
	if end < 0 {
		return lines
	}
	return lines[:end+1]
}
