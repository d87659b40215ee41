package control

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/protocol"
)

const (
	maxSaid     = 4096                   // messages of the host that files can be put back to
	rewoundTime = 5 * time.Second        // until the event of a rewind is read
	readTime    = 500 * time.Millisecond // until what came of a session that is closed is read
)

// session is a session of a connection.
type session struct {
	c     *conn
	open  agent.Open
	hello *job            // done when it is open, before anything is told of it; nil = there is none
	sess  *client.Session // set by run before the first job

	life context.Context
	end  context.CancelCauseFunc
	read chan struct{} // closed when its events are read no more
	done chan struct{} // closed when run has ended
	more chan struct{} // holds one value when there is a job

	mu      sync.Mutex
	jobs    []job               // guarded by mu
	over    bool                // no job is taken any more; guarded by mu
	waiting map[string]*request // messages of the host that the model has not read, by input; guarded by mu
	said    map[string]int64    // the number of the event before each, by request; guarded by mu
	lines   []string            // of said, in order; guarded by mu
	back    chan protocol.Rewound
	begun   map[string]*ask   // what the host is asked, by approval; guarded by mu
	settled map[string]string // who has answered those that it has answered, by approval; guarded by mu

	fold fold // of the goroutine that reads events
}

// job is what a session is asked for.
type job struct {
	r  *request // nil = nobody is answered
	do func(*session, context.Context) error
}

func openedBy(c *conn, o agent.Open, hello *job) *session {
	s := &session{
		c: c, open: o, hello: hello, read: make(chan struct{}), done: make(chan struct{}), more: make(chan struct{}, 1),
		waiting: map[string]*request{}, said: map[string]int64{}, begun: map[string]*ask{}, settled: map[string]string{},
	}
	s.life, s.end = context.WithCancelCause(c.life)
	return s
}

// ask has a session do something, after all that it was asked for before.
func (s *session) ask(j job) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.jobs = append(s.jobs, j)
	}
	s.mu.Unlock()
	if over {
		s.refuse(j, errEnded)
		return
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

var errEnded = &protocol.Error{Code: protocol.CodeEnded, Message: "the session has ended", Fix: "go on with it: resume in open"}

// run opens the session, and does what it is asked for.
func (s *session) run() {
	defer close(s.done)
	sess, err := s.c.program.Client.Open(s.life, s.open)
	if err != nil {
		close(s.read)
		s.c.forget(s)
		if s.hello != nil {
			s.c.refuse(s.hello.r, err)
		}
		s.drop(err)
		return
	}
	s.sess = sess
	s.c.know(s)
	if s.hello != nil {
		s.perform(*s.hello)
	}
	s.c.wg.Go(s.follow)
	for {
		s.mu.Lock()
		var next []job
		next, s.jobs = s.jobs, nil
		s.mu.Unlock()
		for _, j := range next {
			s.perform(j)
		}
		if len(next) > 0 {
			continue
		}
		select {
		case <-s.more:
		case <-s.life.Done():
			s.drop(errEnded)
			return
		}
	}
}

func (s *session) perform(j job) {
	if err := j.do(s, s.life); err != nil {
		s.refuse(j, err)
	}
}

// refuse tells whoever has asked for something that it is not done.
func (s *session) refuse(j job, err error) {
	if j.r != nil {
		s.c.refuse(j.r, err)
	}
}

// drop refuses what is left to do, and what comes.
func (s *session) drop(err error) {
	s.mu.Lock()
	jobs := s.jobs
	s.jobs, s.over = nil, true
	s.mu.Unlock()
	for _, j := range jobs {
		s.refuse(j, err)
	}
}

// know notes that a session is open, unless it was given up before.
func (c *conn) know(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all[s] {
		c.sessions[s.sess.Info.ID] = s
	}
}

// forget notes that a session is not open any more.
func (c *conn) forget(s *session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, known := range c.sessions {
		if known == s {
			delete(c.sessions, id)
		}
	}
	if c.first == s {
		c.first = nil
	}
	delete(c.all, s)
}

// close gives the session up. Whoever else uses it keeps it.
func (s *session) close(why string) {
	s.mu.Lock()
	again := s.over
	s.over = true
	s.mu.Unlock()
	if again {
		<-s.done
		return
	}
	s.c.forget(s)
	if s.opened() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(s.life), closeTime)
		err := s.sess.Close(ctx)
		cancel()
		if err != nil {
			s.c.cfg.Logger.Warn("closing a session", "session", s.sess.Info.ID, "error", err)
		}
		late := time.NewTimer(readTime)
		select {
		case <-s.read:
		case <-late.C:
		}
		late.Stop()
	}
	s.end(errEnded)
	<-s.done
	<-s.read
	s.unread()
	if why != "" {
		s.c.send(protocol.TypeNotification, "", s.sess.Info.ID, protocol.NotificationData{Kind: "closed", Reason: why})
	}
}

// opened waits until the session is open, or it has turned out that it cannot be.
func (s *session) opened() bool {
	opened := make(chan struct{})
	s.mu.Lock()
	s.jobs = append(s.jobs, job{nil, func(*session, context.Context) error { close(opened); return nil }})
	s.mu.Unlock()
	select {
	case s.more <- struct{}{}:
	default:
	}
	late := time.NewTimer(closeTime)
	defer late.Stop()
	select {
	case <-opened:
		return true
	case <-late.C:
		s.end(errEnded)
		<-s.done
		return s.sess != nil
	case <-s.done:
		return s.sess != nil
	}
}

// unread answers the messages of the host that no turn has read to its end.
func (s *session) unread() {
	s.mu.Lock()
	left := s.waiting
	s.waiting = map[string]*request{}
	s.mu.Unlock()
	for _, r := range left {
		s.c.refuse(r, errEnded)
	}
	for _, r := range s.fold.read {
		s.c.refuse(r, errEnded)
	}
}

// say says something in the session. The answer comes with the end of the turn.
func (s *session) say(ctx context.Context, r *request, p protocol.UserMessagePayload) error {
	prompt := agent.Prompt{ID: "in-" + rand.Text(), Text: p.Text, Later: p.Later}
	for _, a := range p.Attachments {
		kind := agent.DocumentBlock
		if len(a.Type) > 6 && a.Type[:6] == "image/" {
			kind = agent.ImageBlock
		}
		prompt.Blocks = append(prompt.Blocks, agent.Block{Type: kind, Media: &agent.Media{Type: a.Type, Name: a.Name, Data: a.Data}})
	}
	if p.Text == "" && len(p.Attachments) == 0 {
		s.c.reply(r, s.sess.Info.ID)
		return nil
	}
	if err := s.readable(ctx, p.Text); err != nil {
		return err
	}
	s.mu.Lock()
	s.waiting[prompt.ID] = r
	s.mu.Unlock()
	if err := s.sess.Send(ctx, prompt); err != nil {
		s.mu.Lock()
		delete(s.waiting, prompt.ID)
		s.mu.Unlock()
		return err
	}
	return nil
}

func (s *session) setMode(ctx context.Context, r *request, p protocol.SetPermissionModePayload) error {
	switch agent.Mode(p.Mode) {
	case agent.ModeDefault, agent.ModeAcceptEdits, agent.ModePlan, agent.ModeDontAsk, agent.ModeBypass:
	default:
		return &protocol.Error{Code: protocol.CodePayload, Message: fmt.Sprintf("there is no permission mode %.40q", p.Mode), Fix: "default, acceptEdits, plan, dontAsk or bypassPermissions"}
	}
	return s.change(ctx, r, agent.Change{Mode: agent.Mode(p.Mode)})
}

func (s *session) setModel(ctx context.Context, r *request, p protocol.SetModelPayload) error {
	if p.Model == "" {
		return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of SetModel: model is missing"}
	}
	return s.change(ctx, r, agent.Change{Model: p.Model})
}

func (s *session) interrupt(ctx context.Context, r *request, _ protocol.InterruptPayload) error {
	return s.change(ctx, r, agent.Interrupt{})
}

// change sends a command, and answers the request when it was accepted.
func (s *session) change(ctx context.Context, r *request, cmd agent.Command) error {
	if err := s.sess.Send(ctx, cmd); err != nil {
		return err
	}
	s.c.reply(r, s.sess.Info.ID)
	return nil
}

func (s *session) contextUsage(ctx context.Context, r *request, _ protocol.GetContextUsagePayload) error {
	report, err := client.Query[agent.ContextReport](ctx, s.c.program.Client, agent.ContextUsage{Session: s.sess.Info.ID})
	if err != nil {
		return err
	}
	usage := protocol.ContextUsage{Model: report.Model, Used: report.Used, Window: report.Window, Status: report.Status, Parts: []protocol.ContextPart{}}
	for _, p := range report.Parts {
		usage.Parts = append(usage.Parts, protocol.ContextPart{Name: p.Name, Tokens: p.Tokens})
	}
	reply := replyTo(r.Message)
	reply.Context = &usage
	s.c.answer(r, protocol.TypeNotification, s.sess.Info.ID, reply)
	return nil
}

// rewind puts files back, and answers with what the log says of that.
func (s *session) rewind(ctx context.Context, r *request, p protocol.RewindFilesPayload) error {
	s.mu.Lock()
	to, known := s.said[p.Message]
	back := make(chan protocol.Rewound, 1)
	s.back = back
	s.mu.Unlock()
	switch {
	case p.Message != "" && p.To != 0:
		return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of RewindFiles: message excludes to"}
	case p.Message == "" && p.To <= 0:
		return &protocol.Error{Code: protocol.CodePayload, Message: "the payload of RewindFiles: neither message nor to"}
	case p.Message == "":
		to = p.To
	case !known:
		return &protocol.Error{Code: protocol.CodePayload, Message: fmt.Sprintf("no message %.40q of this connection is known", p.Message), Fix: "name an event with to"}
	}
	if err := s.sess.Send(ctx, agent.Rewind{To: to, Files: true, Conversation: p.Conversation, Force: p.Force, Only: p.Only}); err != nil {
		return err
	}
	late := time.NewTimer(rewoundTime)
	defer late.Stop()
	reply := replyTo(r.Message)
	select {
	case rewound := <-back:
		reply.Rewound = &rewound
	case <-late.C: // it is done: a host that does not read holds its events up
		reply.Rewound = &protocol.Rewound{To: to}
	case <-ctx.Done():
		return errEnded
	}
	s.c.answer(r, protocol.TypeNotification, s.sess.Info.ID, reply)
	return nil
}

// follow reads the events of the session until it ends.
func (s *session) follow() {
	err := s.events()
	close(s.read)
	s.mu.Lock()
	over := s.over
	s.mu.Unlock()
	if over || s.c.life.Err() != nil {
		return
	}
	why := "the session has ended"
	if err != nil && !errors.Is(err, context.Canceled) {
		why = err.Error()
	}
	s.close(why) // run ends by itself
}
