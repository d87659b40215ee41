package control_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/client"
	"dure/client/protocol"
	"dure/internal/frontend/control"
	"dure/internal/frontend/text"
)

// locked opens no session: it says so when it is told to, or when nobody waits any more.
type locked struct {
	*still
	fail chan struct{}
}

func (l locked) Open(ctx context.Context, _ agent.Open) (agent.SessionInfo, error) {
	select {
	case <-l.fail:
		return agent.SessionInfo{}, errors.New("it cannot be opened")
	case <-ctx.Done():
		return agent.SessionInfo{}, context.Cause(ctx)
	}
}

// A host that leaves, or gives a session up, while that is being opened has its answers, one
// for each request, when it turns out that it cannot be opened, or that this takes too long.
func TestLeavesWhileItOpens(t *testing.T) {
	for name, tt := range map[string]struct {
		last string // what the host sends while its session is being opened
		fail bool   // the session fails to open; else that takes for ever
		code protocol.Code
	}{
		"goes, and it fails":            {last: `{"type":"Terminate","id":"end"}`, fail: true, code: protocol.CodeInternal},
		"goes, and it takes long":       {last: `{"type":"Terminate","id":"end"}`, code: protocol.CodeEnded},
		"is gone, and it fails":         {fail: true, code: protocol.CodeInternal},
		"is gone, and it takes long":    {code: protocol.CodeEnded},
		"gives it up, and it fails":     {last: `{"type":"Terminate","id":"end","session":"s"}`, fail: true, code: protocol.CodeInternal},
		"gives it up, it takes so long": {last: `{"type":"Terminate","id":"end","session":"s"}`, code: protocol.CodeEnded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := locked{&still{all: map[string]chan struct{}{}}, make(chan struct{})}
				cfg := l.config()
				cfg.Lasting = false
				cfg.Start = func(context.Context, control.Begin) (control.Program, error) {
					return control.Program{Client: client.New(l), Workdir: "/", Mode: agent.ModeDefault, Text: text.For("en")}, nil
				}
				inR, inW := io.Pipe()
				outR, outW := io.Pipe()
				done := make(chan error, 1)
				go func() {
					done <- control.Serve(t.Context(), cfg, control.NewLines(inR, outW))
					_ = inR.Close()
					_ = outW.Close()
				}()
				answers, read := map[string]protocol.Message{}, make(chan struct{})
				go func() {
					defer close(read)
					for in := protocol.NewReader(outR, 0); ; {
						line, err := in.Next()
						if err != nil {
							return
						}
						m, err := protocol.Decode(line)
						if _, again := answers[m.ID]; err != nil || again {
							t.Errorf("%s: %v", line, err)
						}
						answers[m.ID] = m
					}
				}()
				for _, line := range []string{`{"type":"Initialize","id":"hello","payload":{"open":{"resume":"s"}}}`, `{"type":"UserMessage","id":"say","payload":{"text":"Hello"}}`, tt.last} {
					if _, err := io.WriteString(inW, line+"\n"); err != nil {
						t.Fatal(err)
					}
				}
				if tt.last == "" {
					_ = inW.Close()
				}
				synctest.Wait()
				if tt.fail {
					close(l.fail)
				}
				time.Sleep(time.Minute) // more than an end may take
				_ = inW.Close()
				if err := <-done; err != nil {
					t.Error(err)
				}
				<-read
				for _, id := range []string{"hello", "say"} {
					if e, err := protocol.Payload[protocol.ErrorData](answers[id]); err != nil || answers[id].Type != protocol.TypeError || e.Code != tt.code {
						t.Errorf("%s is answered by %+v, %v", id, answers[id], err)
					}
				}
				if m, want := answers["end"], tt.last != ""; (m.Type == protocol.TypeNotification) != want {
					t.Errorf("the end is answered by %+v", m)
				}
			})
		})
	}
}

// tardy opens sessions when it is told to.
type tardy struct {
	*still
	open chan struct{}
}

func (s tardy) Open(ctx context.Context, o agent.Open) (agent.SessionInfo, error) {
	select {
	case <-s.open:
		return s.still.Open(ctx, o)
	case <-ctx.Done():
		return agent.SessionInfo{}, context.Cause(ctx)
	}
}

// A session that was given up while it was being opened can be gone on with.
func TestGivenUpWhileItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tardy{&still{all: map[string]chan struct{}{}}, make(chan struct{})}
		cfg := s.config()
		cfg.Start = func(context.Context, control.Begin) (control.Program, error) {
			return control.Program{Client: client.New(s), Workdir: "/", Mode: agent.ModeDefault, Text: text.For("en")}, nil
		}
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		done := make(chan error, 1)
		go func() {
			done <- control.Serve(t.Context(), cfg, control.NewLines(inR, outW))
			_ = inR.Close()
			_ = outW.Close()
		}()
		answers := make(chan protocol.Message, 8)
		go func() {
			defer close(answers)
			for in := protocol.NewReader(outR, 0); ; {
				line, err := in.Next()
				if err != nil {
					return
				}
				if m, err := protocol.Decode(line); err != nil {
					t.Errorf("%s: %v", line, err)
				} else if m.ID != "" {
					answers <- m
				}
			}
		}()
		say := func(lines ...string) {
			for _, line := range lines {
				if _, err := io.WriteString(inW, line+"\n"); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
		}
		say(`{"type":"Initialize","id":"hello","payload":{"open":{"resume":"s"}}}`, `{"type":"Terminate","id":"end","session":"s"}`)
		close(s.open)
		for _, want := range []struct {
			id string
			is protocol.Type
		}{{"hello", protocol.TypeInitializeResult}, {"end", protocol.TypeNotification}} {
			if m := <-answers; m.ID != want.id || m.Type != want.is {
				t.Errorf("%s: %+v", want.id, m)
			}
		}
		say(`{"type":"UserMessage","id":"again","payload":{"open":{"resume":"s"}}}`)
		if m := <-answers; m.ID != "again" || m.Type != protocol.TypeNotification || m.Session != "s" {
			t.Errorf("%+v: %s", m, m.Payload)
		}
		_ = inW.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		for m := range answers {
			t.Errorf("%+v", m)
		}
	})
}
