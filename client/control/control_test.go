package control_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "dure/client/control"
	"dure/client/protocol"
	"dure/internal/models/script"
)

func write(path string) []script.Call {
	in, err := json.Marshal(map[string]string{"file_path": path, "content": "x"})
	if err != nil {
		panic(err)
	}
	return []script.Call{{Tool: "Write", Input: in}}
}

// A host talks, decides, asks and sets, whichever way it has come.
func TestHost(t *testing.T) {
	replies := []script.Reply{{Calls: write("yes.txt")}, {Text: "Written."}, {Calls: write("no.txt")}, {Text: "Well."}}
	cfg := client.Config{
		CanUseTool: func(_ context.Context, session string, q protocol.CanUseToolData) protocol.CanUseToolResponsePayload {
			if session == "" || !strings.Contains(string(q.Input), "yes.txt") {
				return protocol.CanUseToolResponsePayload{Behavior: "deny", Reason: "not that"}
			}
			return protocol.CanUseToolResponsePayload{Behavior: "allow"}
		},
	}
	talk := func(t *testing.T, s scene, begin func(client.Config) *client.Host) {
		said, cfg := make(chan string, 64), cfg
		cfg.Message = func(m protocol.Message) {
			if m.Type == protocol.TypeAssistantMessage {
				p, _ := protocol.Payload[protocol.AssistantMessageData](m)
				said <- p.Text
			}
		}
		h := begin(cfg)
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if hello := h.Hello(); hello.Version != protocol.Version || hello.Program.Version != "test" {
			t.Errorf("%+v", hello)
		}
		res, session, err := h.Say(ctx, "", protocol.UserMessagePayload{Text: "Write"})
		if err != nil || session == "" || res.Status != "done" || res.Text != "Written." {
			t.Errorf("%+v, %v", res, err)
		}
		<-said // the call
		if got := <-said; got != "Written." {
			t.Errorf("%q", got)
		}
		if _, err := os.Stat(filepath.Join(s.dir, "work", "yes.txt")); err != nil {
			t.Error(err)
		}
		res, _, err = h.Say(ctx, session, protocol.UserMessagePayload{Text: "Again"})
		if err != nil || len(res.Denials) != 1 || res.Denials[0].Reason != "not that" {
			t.Errorf("%+v, %v", res, err)
		}
		if usage, err := h.ContextUsage(ctx, session); err != nil || usage.Used == 0 {
			t.Errorf("%+v, %v", usage, err)
		}
		if err := errors.Join(h.SetPermissionMode(ctx, session, "plan"), h.Interrupt(ctx, session)); err != nil {
			t.Error(err)
		}
		err = h.SetModel(ctx, "nobody", "m")
		if e, ok := errors.AsType[*protocol.Error](err); !ok || e.Code != protocol.CodeNoSession {
			t.Errorf("%v", err)
		}
		other, err := h.Open(ctx, protocol.OpenSession{Title: "another"})
		if err != nil || other == "" || other == session {
			t.Errorf("%q, %v", other, err)
		}
		if err := errors.Join(h.CloseSession(ctx, other), h.Close(), h.Close()); err != nil {
			t.Error(err)
		}
		if err := h.Interrupt(ctx, session); !errors.Is(err, client.ErrClosed) {
			t.Errorf("after the end: %v", err)
		}
	}
	t.Run("child", func(t *testing.T) {
		s := setting(t, replies...)
		talk(t, s, func(cfg client.Config) *client.Host { return s.child(t, cfg) })
	})
	t.Run("server", func(t *testing.T) {
		s := setting(t, replies...)
		talk(t, s, func(cfg client.Config) *client.Host {
			h, err := client.Dial(t.Context(), s.server(t), secret, cfg)
			if err != nil {
				t.Fatal(err)
			}
			return h
		})
	})
}

// Whoever waits no longer has its answer at once; what runs can be stopped then.
func TestCancel(t *testing.T) {
	s := setting(t, script.Reply{Text: strings.Repeat("On and on. ", 40_000), DelayMS: 20})
	tokens := make(chan protocol.Message, 1)
	h := s.child(t, client.Config{Message: func(m protocol.Message) {
		if m.Type == protocol.TypeAssistantToken {
			select {
			case tokens <- m:
			default:
			}
		}
	}})
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan error, 1)
	go func() {
		_, _, err := h.Say(ctx, "", protocol.UserMessagePayload{Text: "Talk"})
		said <- err
	}()
	m := <-tokens
	cancel()
	if err := <-said; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := errors.Join(h.Interrupt(t.Context(), m.Session), h.Close()); err != nil {
		t.Error(err)
	}
}

// A program that ends by itself, or is none, is an error and no wait for ever.
func TestGone(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []client.Command{
		{Path: filepath.Join(t.TempDir(), "nothing")},
		{Path: exe, Args: []string{"-test.list", "^$"}, Env: append(os.Environ(), asVar+"=dure", dirVar+"=/dev/null")},
	} {
		h, err := client.Start(t.Context(), c, client.Config{})
		if err == nil {
			t.Errorf("%s: it has begun", c.Path)
			_ = h.Close()
		}
	}
	if _, err := client.Dial(t.Context(), setting(t).server(t), "another-token-altogether", client.Config{}); err == nil || !strings.Contains(err.Error(), http.StatusText(http.StatusUnauthorized)) || strings.Contains(err.Error(), "another-token") {
		t.Errorf("%v", err)
	}
}

// The context of a child ends it.
func TestContext(t *testing.T) {
	s := setting(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	h, err := client.Start(ctx, client.Command{Path: exe, Env: s.env()}, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	waiting, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for !errors.Is(err, client.ErrClosed) && waiting.Err() == nil {
		err = h.Interrupt(waiting, "")
	}
	if waiting.Err() != nil {
		t.Errorf("it lives on: %v", err)
	}
	if err := h.Close(); err != nil {
		t.Error(err)
	}
}

// A program that reads nothing any more holds nobody up: not who says a lot, not who comes
// after them, and not the end.
func TestDeaf(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	life, kill := context.WithCancel(t.Context())
	defer kill()
	h, err := client.Start(life, client.Command{Path: exe, Env: append(os.Environ(), asVar+"=deaf")}, client.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	held := make(chan error, 2)
	go func() {
		_, _, err := h.Say(ctx, "", protocol.UserMessagePayload{Text: strings.Repeat("Listen. ", 1<<20)})
		held <- err
	}()
	go func() { held <- h.Interrupt(ctx, "") }()
	cancel()
	for range 2 {
		select {
		case err := <-held:
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("a request outlives its context")
		}
	}
	kill()
	closed := make(chan error, 1)
	go func() { closed <- h.Close() }()
	select {
	case err := <-closed:
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(2 * patience):
		t.Fatal("Close hangs")
	}
}
