//go:build unix

package app_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/state/transcript"
)

// A session that waits for its jobs does nothing, also one that keeps nothing on
// disk, until the jobs end: then it is woken, and told of each of them once.
func TestWaitingForJobsCostsNothing(t *testing.T) {
	const jobs, watch = 16, time.Second
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		if r.Step > 0 {
			return script.Reply{Text: "Noted."}
		}
		var calls []script.Call
		for i := range jobs {
			calls = append(calls, script.Call{ID: fmt.Sprint("j", i), Tool: "Bash", Input: input(fields{
				"command": "while [ ! -e go ]; do sleep 0.2; done", "run_in_background": true,
			})})
		}
		return script.Reply{Calls: calls}
	}})
	k := w.talk(app.Flags{Skip: true, Scratch: true}, agent.Open{Scratch: true})
	if end := k.answer("Go.", nil); end.Reason != agent.EndDone {
		t.Fatalf("%+v", end)
	}
	before, asked := spent(t), len(w.model.Requests())
	<-time.After(watch) // what is measured, and not waited for
	cost := spent(t) - before
	t.Logf("%v of the processor in %v with %d jobs", cost, watch, jobs)
	if limit := watch / 20; cost > limit {
		t.Errorf("waiting took %v of the processor, more than %v", cost, limit)
	}
	if n := len(w.model.Requests()); n != asked {
		t.Errorf("%d requests while nothing happened", n-asked)
	}
	w.write("go", "")
	state, told := transcript.New(), map[string]int{}
	for _, e := range k.seen {
		state.Apply(e)
	}
	for len(state.Settled) < jobs || len(state.Notices) > 0 || !rests(state) {
		state.Apply(k.until("an event", func(agent.Event) bool { return true }))
	}
	for _, c := range state.Settled {
		told[c.Handle]++
	}
	if len(told) != jobs {
		t.Errorf("%d of %d jobs were settled", len(told), jobs)
	}
	k.sound()
	for _, bad := range refusals(w.model) {
		t.Error(bad)
	}
}

// spent is the time that this process has had of the processor.
func spent(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
