//go:build unix

package app_test

import (
	"os"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

var apart = hand("a1", fields{"prompt": "Write it.", "isolation": "process", "description": "write it"})

// inProcesses has agents that want it work in processes: this test binary, see TestMain.
func (w *world) inProcesses(f app.Flags) app.Options {
	o := options(w.work, w.home, w.model.URL(), f)
	o.Worker = []string{os.Args[0], app.WorkerCommand}
	return o
}

// opened is how the session of an agent was opened, with the processes that did.
func (k *talk) opened(child string) (list []agent.SessionOpened) {
	k.t.Helper()
	for e, err := range k.Client.Attach(child).Events(k.t.Context(), 0) {
		if err != nil {
			k.t.Fatal(err)
		}
		if b, ok := e.Body.(agent.SessionOpened); ok {
			list = append(list, b)
		}
	}
	return list
}

// An agent in a process of its own does what one of this process does, and comes to the
// same.
func TestAnAgentInAProcess(t *testing.T) {
	w := newWorld(t, script.Script{}, handing(doing("Write", fields{"file_path": "out.txt", "content": "x"}), apart))
	k := w.talkWith(w.inProcesses(app.Flags{Mode: "acceptEdits"}), agent.Open{})
	if end := k.turn(whole); end.Reason != agent.EndDone {
		t.Fatal(names(k.seen))
	}
	if r := k.result("a1"); r.Failed() || !strings.Contains(r.Text, "Created out.txt") || !strings.Contains(r.Text, "1 calls") || w.read("out.txt") != "x" {
		t.Fatalf("it came to %+v", r)
	}
	ended := all[agent.ChildEnded](k.seen)
	if len(ended) != 1 || len(all[agent.ChildOpened](k.seen)) != 1 {
		t.Fatal(names(k.seen))
	}
	child := ended[0].Outcome.Session
	if opened := k.opened(child); len(opened) != 1 || opened[0].PID == os.Getpid() || opened[0].Parent != k.Info.ID {
		t.Errorf("opened %+v", opened)
	}
	for _, p := range verified(t.Context(), k.Client, child) {
		t.Error(p)
	}
	k.sound()
}
