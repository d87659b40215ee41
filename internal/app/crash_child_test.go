//go:build unix

package app_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/prooftest"
)

// childVar has the task of a process that is to be killed. The test binary runs
// itself with it.
const childVar = "PROOF_CHILD"

// crashID is the session of all crash runs.
const crashID = "01900000-0000-7000-8000-000000000001"

// childTask is what a child is told.
type childTask struct {
	Work, Home, URL string

	Die  int64  // the boundary at which it dies; 0 = none
	Torn bool   // and it leaves half of what it was writing to the log
	At   string // the kind of new event at which it dies; "" = none
	Text string // of a prompt beside the first one
	Says string // the first prompt; "" = the usual one
	List bool   // print the names of all boundaries
	Ask  bool   // no rule allows anything: the user is asked, and says yes
	More bool   // two more prompts come while the first one is served

	Rival   string // a prompt; another process wants the session at the same time
	Story   string // the wire format of the session of the crash history; "" = it is another one
	Rewinds bool   // the conversation is shortened, put back and forked
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == app.WorkerCommand {
		if err := app.ServeAgent(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	task := os.Getenv(childVar)
	if task == "" {
		os.Exit(prooftest.Many{M: m}.Run())
	}
	if err := runChild(task); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// die is SIGKILL, from ourselves.
func die() {
	if p, err := os.FindProcess(os.Getpid()); err == nil {
		_ = p.Kill()
	}
	select {}
}

// boundaries counts the changes of the disk, and ends the process at one.
type boundaries struct {
	childTask
	n     atomic.Int64
	write sync.Mutex       // held from append.write to append.written when a write is torn
	sizes map[string]int64 // of the files of all logs before the write; guarded by write

	asked agent.ApprovalAsked // the question that waits for an answer
}

// pass is the fault of the store.
func (b *boundaries) pass(name string) {
	n := b.n.Add(1)
	if b.List {
		fmt.Printf("b %d %s\n", n, name)
	}
	if !b.Torn {
		if n == b.Die {
			die()
		}
		return
	}
	switch name {
	case "append.write":
		b.write.Lock()
		b.sizes = b.segments()
	case "append.written":
		if b.tear(n) {
			die()
		}
		b.write.Unlock()
	}
}

// tear cuts the write off that has just been made, if it is the first from a boundary on.
func (b *boundaries) tear(n int64) bool {
	if n < b.Die {
		return false
	}
	for path, now := range b.segments() {
		was := b.sizes[path]
		if now <= was {
			continue
		}
		if err := os.Truncate(path, was+(now-was)/2); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		fmt.Printf("torn %d\n", now-was)
		return true
	}
	return false
}

// segments returns the files of all logs, and their sizes.
func (b *boundaries) segments() map[string]int64 {
	paths, _ := filepath.Glob(filepath.Join(b.Home, "dure", "sessions", "*", "*", "log.*.jsonl"))
	sizes := map[string]int64{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			sizes[path] = info.Size()
		}
	}
	return sizes
}

// runChild opens the session, or resumes it, and runs its turn to the end. It
// prints each stored event as it learns of it: from then on nobody may forget
// it.
func runChild(task string) (err error) {
	b := &boundaries{}
	if err := json.Unmarshal([]byte(task), &b.childTask); err != nil {
		return err
	}
	if b.Rival != "" {
		return runRival(b.childTask)
	}
	flags := app.Flags{Allow: []string{"Bash", "Write", "Edit", "MultiEdit", "WorktreeMerge"}}
	if b.Ask {
		flags.Allow = nil
	}
	if b.Story != "" {
		flags = storyFlags(b.Story, b.URL)
	}
	o := options(b.Work, b.Home, b.URL, flags)
	o.Fault = b.pass
	a, err := app.New(o)
	if err != nil {
		return err
	}
	ctx := context.Background()
	s, err := b.open(ctx, a.Client())
	if err != nil {
		return err
	}
	follow := b.follow
	if b.Story != "" {
		follow = b.followStory
	}
	if b.Rewinds {
		follow = func(ctx context.Context, s *client.Session) error { return b.followRewinds(ctx, a.Client(), s) }
	}
	if err := follow(ctx, s); err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	fmt.Printf("end %d\n", b.n.Load())
	return nil
}

// open opens the session wherever its life was cut.
func (b *boundaries) open(ctx context.Context, c client.Client) (*client.Session, error) {
	model := ""
	if b.Story != "" {
		model = "here/script"
	}
	s, err := c.Open(ctx, agent.Open{Session: crashID, Approver: b.Ask})
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemMissing {
		return c.Open(ctx, agent.Open{New: crashID, Workdir: b.Work, Approver: b.Ask, Model: model})
	}
	return s, err
}

// each prints each stored event as it learns of it, and has step look at it until all is
// over.
func (b *boundaries) each(ctx context.Context, s *client.Session, step func(agent.Event) (over bool, err error)) error {
	for e, err := range s.Events(ctx, 0) {
		if err != nil {
			return err
		}
		if e.Live() {
			continue
		}
		fmt.Printf("e %d %s %s\n", e.Seq, e.ID, e.Kind())
		if over, err := step(e); over || err != nil {
			return err
		}
	}
	return errors.New("the events ended too early")
}

// send sends a command, and prints that a prompt is accepted.
func send(ctx context.Context, s *client.Session, c agent.Command) error {
	err := s.Send(ctx, c)
	if p, ok := c.(agent.Prompt); ok && err == nil {
		fmt.Println("ack", p.ID)
	}
	return err
}

// follow sees at the head of the log what is left to do.
func (b *boundaries) follow(ctx context.Context, s *client.Session) error {
	ended, entered := false, map[string]bool{}
	return b.each(ctx, s, func(e agent.Event) (over bool, err error) {
		switch body := e.Body.(type) {
		case agent.TurnStarted:
			ended = false
		case agent.InputAdded:
			ended, entered[body.Input] = false, true
		case agent.TurnEnded:
			ended = !b.More || len(entered) == 3
		case agent.ApprovalAsked:
			b.asked = body
		case agent.ApprovalResolved:
			b.asked = agent.ApprovalAsked{}
		}
		switch {
		case e.Seq > s.Info.Head && e.Kind() == b.At:
			die()
		case e.Seq > s.Info.Head && ended, e.Seq == s.Info.Head && ended && b.Text == "":
			return true, nil
		case e.Seq == s.Info.Head:
			err = b.goOn(ctx, s, ended)
		}
		if err == nil {
			err = b.answer(ctx, s, e.Seq)
		}
		return false, err
	})
}

// goOn sends the prompt, as a front-end does that does not know whether it
// arrived, and has a turn go on that was cut short.
func (b *boundaries) goOn(ctx context.Context, s *client.Session, ended bool) error {
	prompts := []agent.Prompt{{ID: "p1", Text: cmp.Or(b.Says, "Do all the steps.")}}
	if b.More {
		prompts = append(prompts, agent.Prompt{ID: "p2", Text: "Then this.", Later: true}, agent.Prompt{ID: "p3", Text: "And that."})
	}
	for _, p := range prompts {
		if err := send(ctx, s, p); err != nil {
			return err
		}
	}
	if ended {
		return s.Send(ctx, agent.Prompt{ID: "p2", Text: b.Text})
	}
	err := s.Send(ctx, agent.Continue{})
	if p := agent.ProblemOf(err); p != nil && p.Code == agent.ProblemUsage {
		return nil // the turn was faster, and its end is among the events to come
	}
	return err
}

// answer answers the question that waits, once the log has been read to its
// head. Nothing is to run once more that may have run before.
func (b *boundaries) answer(ctx context.Context, s *client.Session, seq int64) error {
	if b.asked.ID == "" || seq < s.Info.Head {
		return nil
	}
	d := agent.Decision{Verdict: agent.Allow}
	if strings.Contains(b.asked.Reason, "interrupted by a crash") {
		d.Verdict = agent.Deny
	}
	id := b.asked.ID
	b.asked = agent.ApprovalAsked{}
	return s.Send(ctx, agent.Resolve{ID: id, Decision: d})
}
