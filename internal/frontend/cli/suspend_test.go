package cli

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

// An editor has the terminal to itself: what is typed while it runs is its own.
func TestMemoryOpensTheEditor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		screen := &vt{cols: 60, rows: 20}
		r, w := io.Pipe()
		var did []string
		note := func(s string) { did = append(did, s) }
		signals := make(chan os.Signal, 1)
		term := Terminal{
			In: r, Out: screen, Escapes: true, Size: func() (int, int) { return 60, 20 },
			Raw: func() (func(), error) { note("raw"); return func() { note("restored") }, nil },
		}
		c := New(Config{Client: f.client(), Text: text.For("en"), In: r, Out: screen, Err: screen, Now: time.Now, Signals: signals})
		done := make(chan error, 1)
		edit := func(_ context.Context, path string) error {
			b := make([]byte, 100)
			n, err := r.Read(b)
			note("edited " + path + ": " + string(b[:n]))
			signals <- os.Interrupt
			return err
		}
		go func() {
			done <- c.Interact(t.Context(), InteractOptions{
				Open: agent.Open{Workdir: "/repo"}, Terminal: term, Version: "1", Edit: edit,
				MakeMemory: func(_, scope string) (query.MemoryPlace, error) {
					return query.MemoryPlace{Scope: scope, Path: "/repo/AGENTS.local.md", Exists: true}, nil
				},
			})
		}()
		synctest.Wait()
		for _, s := range []string{"/memory local\r", "for the editor", "next"} {
			if _, err := io.WriteString(w, s); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		s := screen.String()
		for _, want := range []string{"/repo/AGENTS.local.md", "next request", "> next"} {
			if !strings.Contains(s, want) {
				t.Errorf("%q is not on the screen:\n%s", want, s)
			}
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.Close()
		if d := cmp.Diff([]string{"raw", "restored", "edited /repo/AGENTS.local.md: for the editor", "raw", "restored"}, did); d != "" {
			t.Error(d)
		}
	})
}

// Ctrl-Z gives the terminal back, stops, and takes it over again with what was
// being typed still there.
func TestSuspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		screen := &vt{cols: 60, rows: 20}
		r, w := io.Pipe()
		var did []string
		note := func(s string) { did = append(did, s) }
		term := Terminal{
			In: r, Out: screen, Escapes: true, Size: func() (int, int) { return 60, 20 },
			Raw:     func() (func(), error) { note("raw"); return func() { note("restored") }, nil },
			Suspend: func() { note("stopped") },
		}
		c := New(Config{Client: f.client(), Text: text.For("en"), In: r, Out: screen, Err: screen, Now: time.Now})
		done := make(chan error, 1)
		go func() {
			done <- c.Interact(t.Context(), InteractOptions{Open: agent.Open{Workdir: "/repo"}, Terminal: term, Version: "1", Notice: "dure 2 is out"})
		}()
		synctest.Wait()
		if _, err := io.WriteString(w, "half a ta\x1ask"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := screen.String(); !strings.Contains(s, "> half a task") || !strings.Contains(s, "dure 2 is out") {
			t.Errorf("the screen is\n%s", s)
		}
		w.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		r.Close()
		if d := cmp.Diff([]string{"raw", "restored", "stopped", "raw", "restored"}, did); d != "" {
			t.Error(d)
		}
	})
}
