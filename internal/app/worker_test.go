//go:build unix

package app_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
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
	t.Parallel()
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

// What the session may not do that an agent works for, the agent in its process may not
// either, and what it would have to ask for, the agent asks the same person for.
func TestAProcessIsNeverWider(t *testing.T) {
	t.Parallel()
	write := doing("Write", fields{"file_path": "out.txt", "content": "x"})
	for _, c := range []struct {
		name, kind string
		flags      app.Flags
		says       string
		written    bool
	}{
		{"a rule that denies", "", app.Flags{Mode: "bypassPermissions", Deny: []string{"Write"}}, "deny rule Write", false},
		{"a plan", "", app.Flags{Mode: "plan"}, "mode plan", false},
		{"nobody to ask", "", app.Flags{}, "nobody is there to ask", false},
		{"a mode that asks less", "permissionMode: bypassPermissions\n", app.Flags{}, "nobody is there to ask", false},
		{"a mode that asks more", "permissionMode: dontAsk\n", app.Flags{Mode: "acceptEdits"}, "mode dontAsk", false},
		{"a tool that it has not", "tools: Read\n", app.Flags{Mode: "acceptEdits"}, "Unknown tool", false},
		{"a rule that allows", "", app.Flags{Allow: []string{"Write"}}, "Created out.txt", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, handing(write, hand("a1", fields{"prompt": "Write it.", "subagent_type": "own"})))
			w.kind("own", "---\nname: own\ndescription: Works.\nisolation: process\n"+c.kind+"---\nYou work.\n")
			k := w.talkWith(w.inProcesses(c.flags), agent.Open{})
			k.turn(whole)
			if r := k.result("a1"); !strings.Contains(r.Text, c.says) || (w.read("out.txt") != "") != c.written {
				t.Errorf("it came to %s", r.Text)
			}
			k.sound()
		})
	}
}

// The tools that the session has not, an agent in its process has not.
func TestAProcessHasNoMoreTools(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("Write", fields{"file_path": "out.txt", "content": "x"}), apart))
	w.kind("lead", "---\nname: lead\ndescription: Leads.\ntools: Read, Agent\n---\nYou lead.\n")
	k := w.talkWith(w.inProcesses(app.Flags{Mode: "bypassPermissions", Agent: "lead"}), agent.Open{})
	k.turn(whole)
	if r := k.result("a1"); !strings.Contains(r.Text, "Unknown tool") || w.read("out.txt") != "" {
		t.Errorf("it came to %s", r.Text)
	}
	for _, r := range w.ofAgents() {
		if got := toolsIn(t, r.Body); !slices.Equal(got, []string{"Read"}) {
			t.Errorf("it has %v", got)
		}
	}
}

// A person is asked by the session, with the agent's name on the question, and what is
// allowed for the session holds for the agent too.
func TestAProcessAsks(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{true, false} {
		steps := func(r script.Request) script.Reply {
			switch r.Step {
			case 0:
				return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Write", Input: input(fields{"file_path": "one", "content": "1"})}}}
			case 1:
				return script.Reply{Calls: []script.Call{{ID: "c2", Tool: "Write", Input: input(fields{"file_path": "one", "content": "2"})}}}
			}
			return script.Reply{Text: "It said: " + r.Last, Stop: agent.StopEnd}
		}
		w := newWorld(t, script.Script{}, handing(steps, apart))
		k := w.talkWith(w.inProcesses(app.Flags{}), agent.Open{Approver: true})
		var asked []agent.ApprovalAsked
		k.answer(whole, func(q agent.ApprovalAsked) agent.Resolve {
			asked = append(asked, q)
			if !yes {
				return no()
			}
			r := agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow}}
			for _, c := range q.Choices {
				if c.Remember == agent.RememberSession {
					r.Remember, r.Rules = c.Remember, c.Rules
				}
			}
			return r
		})
		want, content := 2, ""
		if yes {
			want, content = 1, "2"
		}
		if len(asked) != want || asked[0].Child == "" || asked[0].Proposal.Call.Tool == "" {
			t.Fatalf("yes %v: asked %d times, %+v", yes, len(asked), asked[0].Choices)
		}
		if r := k.result("a1"); w.read("one") != content || strings.Contains(r.Text, "rather not") == yes {
			t.Errorf("yes %v: %s", yes, r.Text)
		}
		k.sound()
	}
}

// What an agent spends in its process counts for the session that it works for, whose
// budget it cannot leave.
func TestAProcessSpends(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("Glob", fields{"pattern": "*"}), apart))
	k := w.talkWith(w.inProcesses(app.Flags{Budget: app.Budget{Tokens: 13_000}}), agent.Open{})
	k.turn(whole)
	if said := k.result("a1").Text; !strings.Contains(said, "come to its limit") || !strings.Contains(said, ", 1 calls") {
		t.Errorf("it came to %s\n%s", said, names(k.seen))
	}
	if n := len(w.ofAgents()); n != 1 {
		t.Errorf("it asked the model %d times", n)
	}
}

// Whatever a process does that is none of ours, one clear error comes of it, and nothing
// stays behind.
func TestAProcessThatIsNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, does, says string }{
		{"garbage", `echo hello; sleep 600`, `what it wrote is no message: "hello`},
		{"half a message", `echo '{"type":"event","correlationId":"x","payload":"{}"}'; sleep 600`, "what it wrote is no message"},
		{"a question about nothing", `echo '{"type":"event","correlationId":"x","payload":"{\"kind\":\"decide\"}"}'; sleep 600`, "what it wrote is no message"},
		{"a line without an end", `head -c 20000000 /dev/zero | tr '\0' x; sleep 600`, "a line has more than 16 MiB"},
		{"an end", `echo it broke >&2; exit 3`, "ended before its work did (exit code 3): it broke"},
		{"another program", `exec cat`, "what it wrote is no message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "?"} }, apart))
			o := options(w.work, w.home, w.model.URL(), app.Flags{})
			mark := "WORKER_PROOF=" + w.home
			o.Environ = append(o.Environ, mark)
			o.Worker = []string{"/bin/sh", "-c", c.does}
			k := w.talkWith(o, agent.Open{})
			if end := k.turn(whole); end.Reason != agent.EndDone {
				t.Fatal(names(k.seen))
			}
			if r := k.result("a1"); !r.Failed() || !strings.Contains(r.Text, c.says) {
				t.Errorf("it came to %s", r.Text)
			}
			if left := carrying(mark); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			k.sound()
		})
	}
}

// A process that hangs ends when its turn is interrupted.
func TestAProcessThatHangs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "?"} }, apart))
	o := options(w.work, w.home, w.model.URL(), app.Flags{})
	o.Worker = []string{"/bin/sh", "-c", "exec sleep 600"}
	if !prooftest.Long() {
		o.WorkerGrace = time.Second
	}
	k := w.talkWith(o, agent.Open{})
	k.send(agent.Prompt{Text: whole})
	body[agent.ChildOpened](k)
	k.send(agent.Interrupt{})
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndInterrupted {
		t.Errorf("it ended as %s", end.Reason)
	}
}

// A process that is killed fails its call, and its session goes on in another one.
func TestAProcessThatIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		text := string(r.Body)
		switch {
		case strings.Contains(text, whole) && r.Step == 0:
			return script.Reply{Calls: []script.Call{apart}}
		case strings.Contains(text, whole) && r.Step == 1:
			id := agentResumed.FindStringSubmatch(text)
			if id == nil {
				return script.Reply{Text: "It cannot go on.", Stop: agent.StopEnd}
			}
			return script.Reply{Calls: []script.Call{hand("a2", fields{"prompt": "Go on.", "resume": id[1], "isolation": "process"})}}
		case strings.Contains(text, whole):
			return script.Reply{Text: "All done.", Stop: agent.StopEnd}
		case r.Step == 0:
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "echo $PPID; sleep 600"})}}}
		}
		return script.Reply{Text: "On it went.", Stop: agent.StopEnd}
	}})
	o := w.inProcesses(app.Flags{Mode: "bypassPermissions"})
	mark := "WORKER_PROOF=" + w.home
	o.Environ = append(o.Environ, mark)
	k := w.talkWith(o, agent.Open{})
	k.send(agent.Prompt{Text: whole})
	child := body[agent.ChildOpened](k).Child
	pid := 0
	for deadline := time.Now().Add(patience); pid == 0 && time.Now().Before(deadline); <-time.After(20 * time.Millisecond) {
		started := false
		for e, err := range k.Client.Attach(child).Events(t.Context(), 0) {
			if err != nil {
				break // it is not there yet
			}
			if b, ok := e.Body.(agent.SessionOpened); ok {
				pid = b.PID
			}
			if _, ok := e.Body.(agent.CallStarted); ok {
				started = true
			}
		}
		if !started {
			pid = 0
		}
	}
	if p, err := os.FindProcess(pid); pid == 0 || err != nil || p.Kill() != nil {
		t.Fatal("it has not begun")
	}
	if end := body[agent.TurnEnded](k); end.Reason != agent.EndDone {
		t.Fatal(names(k.seen))
	}
	if r := k.result("a1"); !r.Failed() || !strings.Contains(r.Text, "ended before its work did") || strings.Contains(r.Text, "goroutine") {
		t.Errorf("it came to %s", r.Text)
	}
	if r := k.result("a2"); r.Failed() || !strings.Contains(r.Text, "On it went.") {
		t.Errorf("it went on to %s", r.Text)
	}
	if left := carrying(mark); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	k.sound()
}

var agentResumed = regexp.MustCompile(`resume (c[a-z2-7]{32})`)
