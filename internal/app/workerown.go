package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"dure/agent"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/budget"
	"dure/internal/kernel/plug"
)

// upper is the program that this one works for, as the process of an agent; nil = none. It
// decides about each call, asks the person and keeps the budget.
type upper struct {
	line  *workerLine
	job   workerJob
	alone sync.WaitGroup // of what listens to it

	mu   sync.Mutex
	gone bool   // the parent is; guarded by mu
	park func() // leaves the session as it is; nil = there is none yet; guarded by mu
}

// ServeAgent is the life of the process of an agent: it reads its task from in, runs the
// session, writes to out what is to be known of it, and ends when in does.
func ServeAgent(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var u *upper
	begun := make(chan error, 1)
	var tell func(id, text, by string) error
	ready := make(chan struct{})
	go func() { // it ends with the process at the latest, which waits for nothing more then
		err := readWorkerLines(in, func(m swarm.Message) error {
			switch m.Type {
			case swarm.Delegate:
				if u != nil {
					return errors.New("it has a task already")
				}
				u = &upper{line: newWorkerLine(out, m.To, m.From, m.Correlation)}
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
				case n.Kind == workerTell:
					<-ready
					a := workerNote{Kind: workerAnswer}
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
	a, err := u.program()
	if err != nil {
		tell = func(string, string, string) error { return err }
		close(ready)
		return errors.Join(err, u.line.send(swarm.DelegateResult, u.line.task, workerResult{Error: err.Error()}, true))
	}
	tellMember := a.members.tell(a.patterns.Redact)
	tell = func(id, text, by string) error { return tellMember(ctx, u.job.Child.Open.New, id, text, by) }
	close(ready)
	outcome, err := u.run(ctx, a)
	r := workerResult{Outcome: outcome}
	if err != nil {
		r.Error = err.Error()
	}
	return errors.Join(a.Close(), u.line.send(swarm.DelegateResult, u.line.task, r, err != nil))
}

// workerResult is the payload of the message that a process ends with.
type workerResult struct {
	Outcome agent.Outcome `json:"outcome"`
	Error   string        `json:"error,omitempty"`
}

// program builds the program of the process.
func (u *upper) program() (*App, error) {
	a, err := New(Options{
		Flags: u.job.Flags, Environ: os.Environ(), UserHome: u.job.Home, Workdir: u.job.Workdir, Language: u.job.Language,
		Version: u.job.Version, Keychain: u.job.Keychain,
	})
	if err != nil {
		return nil, err
	}
	a.upper = u
	return a, nil
}

// run runs the session.
func (u *upper) run(ctx context.Context, a *App) (agent.Outcome, error) {
	reg, err := a.open()
	if err != nil {
		return agent.Outcome{}, err
	}
	job := u.job.Child
	job.Question, job.Reserve = u.question, u.reserve
	watch, leave := context.WithCancel(ctx)
	out, err := reg.RunApart(ctx, job, func(id string) {
		u.leaves(func() { reg.Park(func(string) bool { return true }) })
		_ = u.line.tell(workerNote{Kind: workerOpened}) // whoever is gone has ended the context
		u.alone.Go(func() {
			for e, err := range reg.Events(watch, id, 0) {
				if _, ok := e.Body.(agent.CallDecided); ok && err == nil {
					_ = u.line.tell(workerNote{Kind: workerDid, Event: &e}) // as above
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
func (u *upper) leaves(park func()) {
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
func (u *upper) left() {
	u.mu.Lock()
	u.gone = true
	park := u.park
	u.mu.Unlock()
	if park != nil {
		park()
	}
}

// question asks the person that the parent has.
func (u *upper) question(ctx context.Context, id, child string, p agent.Proposal, d agent.Decision) (agent.Decision, error) {
	n, err := u.line.ask(ctx, workerNote{Kind: workerQuestion, Approval: id, Via: child, Proposal: &p, Decision: &d})
	if err == nil && n.Decision == nil {
		err = errNoMessage
	}
	if err != nil {
		return agent.Decision{}, err
	}
	return *n.Decision, nil
}

// reserve asks the budget of the parent.
func (u *upper) reserve(request, unit budget.Amount, least, most int) (int, func(budget.Amount), error) {
	n, err := u.line.ask(context.Background(), workerNote{Kind: workerReserve, Request: request, Unit: unit, Least: least, Most: most})
	if err != nil {
		return 0, nil, err
	}
	if n.Error != "" {
		return 0, nil, budget.Refused(n.Error, n.Unpriced)
	}
	return n.Most, func(spent budget.Amount) {
		_ = u.line.tell(workerNote{Kind: workerSettle, Hold: n.Hold, Request: spent}) // whoever is gone keeps no budget
	}, nil
}

// works reports whether a session is one that the process was started for.
func (u *upper) works(parent string) bool { return u != nil && u.job.Child.Parent == parent }

// lets returns the tools that the parent lets an agent have; nil = all.
func (u *upper) lets(parent string) []string {
	if !u.works(parent) {
		return nil
	}
	return u.job.Tools
}

// stage has the parent decide. What the policy of this process would ask for, the parent's
// knows better, which has what was granted meanwhile. The zero Stage = it is no parent's.
func (u *upper) stage(b plug.Session) plug.Stage {
	if !u.works(b.Parent) {
		return plug.Stage{}
	}
	return plug.Stage{Name: "parent", Decide: func(ctx context.Context, p agent.Proposal, soFar agent.Decision) (agent.Decision, error) {
		n, err := u.line.ask(ctx, workerNote{Kind: workerDecide, Proposal: &p, Decision: &soFar})
		if err == nil && n.Decision == nil {
			err = errNoMessage
		}
		if err != nil {
			return agent.Decision{}, err
		}
		return *n.Decision, nil
	}}
}
