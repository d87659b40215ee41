//go:build unix

package app_test

import (
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
)

// An agent in the background reads what it is told while it works, and goes on with what it
// is told when it has ended: by its short ID, and with an outcome of its own each time.
func TestTellingAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		call := func(id, tool string, in fields) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: id, Tool: tool, Input: input(in)}}}
		}
		short := ""
		if i := strings.Index(body, "child:c"); i >= 0 {
			short = body[i+len("child:") : i+len("child:")+8]
		}
		switch {
		case !strings.Contains(body, whole) && strings.Contains(body, "And then?"):
			return script.Reply{Text: "Then this.", Stop: agent.StopEnd}
		case !strings.Contains(body, whole) && r.Step == 0:
			return call("c1", "Bash", fields{"command": "until [ -e go ]; do sleep 0.02; done; echo Found it."})
		case !strings.Contains(body, whole):
			if !strings.Contains(body, "Message of main, for whom you work") || !strings.Contains(body, "Look below, too.") {
				return script.Reply{Text: "Nobody said anything.", Stop: agent.StopEnd}
			}
			return script.Reply{Text: "Looked below, too.", Stop: agent.StopEnd}
		}
		switch r.Step {
		case 0:
			return call("a1", "Agent", fields{"prompt": "Look for it.", "run_in_background": true})
		case 1:
			return call("m1", "SendMessage", fields{"to": short, "message": "Look below, too."})
		case 2:
			return call("g1", "Bash", fields{"command": "touch go"})
		case 3:
			return call("o1", "TaskOutput", fields{"task_id": short, "timeout": 600000})
		case 4:
			return call("m2", "SendMessage", fields{"to": short, "message": "And then?"})
		case 5:
			return call("o2", "TaskOutput", fields{"task_id": short, "timeout": 600000})
		case 6:
			return call("s1", "TaskStop", fields{"task_id": short})
		case 7:
			return call("u1", "TaskOutput", fields{"task_id": "unknown"})
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}})
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	k.turn(whole)
	for id, want := range map[string]string{
		"m1": "reads it at its next step", "o1": ": completed\nLooked below, too.", "m2": "works in the background as child:c",
		"o2": ": completed\nThen this.", "s1": "had ended before.", "u1": "(general-purpose, over)",
	} {
		if r := k.result(id); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
	if len(all[agent.CallSettled](k.seen)) < 2 { // the tool can tell of it before the log does
		k.until("what the agent has said then", func(e agent.Event) bool { _, ok := e.Body.(agent.CallSettled); return ok })
		k.until("the end of what it wakes", func(e agent.Event) bool { _, ok := e.Body.(agent.TurnEnded); return ok })
	}
	settled := all[agent.CallSettled](k.seen)
	if len(settled) != 2 || settled[0].ID != "a1" || settled[1].ID != "m2" || settled[0].Handle == settled[1].Handle {
		t.Errorf("settled: %+v", settled)
	}
	if first := toolsIn(t, w.model.Requests()[0].Body); slices.Contains(first, "SendMessage") {
		t.Error("it is offered before there is anybody to tell")
	}
	k.sound()
}

// Who coordinates has no tool that changes anything, and those that it hands work to have
// all that the session may have.
func TestACoordinator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("Write", fields{"file_path": "out.txt", "content": "x"}),
		script.Call{ID: "p1", Tool: "Coordinate", Input: input(fields{"originalRequest": "Write it.", "tasks": []any{fields{"id": "write", "description": "Write it."}}})},
		script.Call{ID: "w1", Tool: "Write", Input: input(fields{"file_path": "own.txt", "content": "x"})}))
	k := w.talk(app.Flags{Agent: "coordinator", Mode: "acceptEdits"}, agent.Open{})
	k.turn(whole)
	if r := k.result("p1"); !strings.HasPrefix(r.Text, "1 of 1 tasks are over (100 %), 1 of them done") || w.read("out.txt") != "x" {
		t.Errorf("the plan: %s", r.Text)
	}
	stood := all[agent.CrewProgressed](k.seen)
	if len(stood) != 2 || stood[0].Status != "running" || stood[0].Call != "p1" || stood[1].Status != "completed" || stood[1].Percent != 100 || stood[1].Agent != "general-purpose" {
		t.Errorf("it stood as %+v", stood)
	}
	if r := k.result("w1"); !r.Failed() || w.read("own.txt") != "" {
		t.Errorf("it wrote by itself: %+v", r)
	}
	first := toolsIn(t, w.model.Requests()[0].Body)
	for _, tool := range []string{"Agent", "Coordinate", "Handoff", "SendMessage", "Read"} {
		if !slices.Contains(first, tool) {
			t.Errorf("it does not have %s: %v", tool, first)
		}
	}
	for _, tool := range []string{"Write", "Edit", "Bash", "WorktreeMerge", "GitCommit"} {
		if slices.Contains(first, tool) {
			t.Errorf("it has %s", tool)
		}
	}
	k.sound()
}

// A coordinator that somebody has started who may write nothing has agents that may write
// nothing either.
func TestACoordinatorOfAReader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		reply := func(tool string, in fields) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: tool, Input: input(in)}}}
		}
		switch {
		case r.Step > 0:
			return script.Reply{Text: "It said: " + r.Last, Stop: agent.StopEnd}
		case strings.Contains(body, whole):
			return reply("Agent", fields{"prompt": "Plan it.", "subagent_type": "coordinator"})
		case strings.Contains(body, "Plan it."):
			return reply("Agent", fields{"prompt": "Write it."})
		}
		return reply("Write", fields{"file_path": "out.txt", "content": "x"})
	}})
	w.kind("reader", "---\nname: reader\ndescription: x\ntools: Read, Agent\n---\nYou read.\n")
	k := w.talk(app.Flags{Agent: "reader", Mode: "acceptEdits"}, agent.Open{})
	k.turn(whole)
	if r := k.result("c1"); !strings.Contains(r.Text, "Unknown tool") || w.read("out.txt") != "" {
		t.Errorf("%s", r.Text)
	}
}

// What an agent tells who it works for is read there, marked as its own and without secrets.
func TestAnAgentTellsWhoItWorksFor(t *testing.T) {
	t.Parallel()
	const secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345"
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		call := func(id, tool string, in fields) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: id, Tool: tool, Input: input(in)}}}
		}
		if !strings.Contains(body, whole) {
			switch r.Step {
			case 0:
				return call("e1", "Handoff", fields{"type": "event", "to": "parent", "payload": "Half is done, with " + secret + "."})
			case 1:
				return call("b1", "Bash", fields{"command": "until [ -e go ]; do sleep 0.02; done"})
			}
			return script.Reply{Text: "All is done.", Stop: agent.StopEnd}
		}
		switch {
		case r.Step == 0:
			return call("h1", "Handoff", fields{"to": "worker", "payload": "Do it.", "correlationId": "mine"})
		case strings.Contains(body, "All is done."):
			return script.Reply{Text: "All done.", Stop: agent.StopEnd}
		case strings.Contains(body, "Half is done"):
			return call("g1", "Bash", fields{"command": "touch go"})
		}
		return call("n1", "Bash", fields{"command": "sleep 0.1"})
	}})
	w.kind("worker", "---\nname: worker\ndescription: Works.\n---\nYou work.\n")
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	k.turn(whole)
	var said []string
	for _, b := range all[agent.InputQueued](k.seen) {
		if b.Origin == "agent:worker" {
			said = append(said, b.Text)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "[Event of the agent worker. It is a message of an agent, not of the user") || strings.Contains(said[0], secret) || !strings.Contains(said[0], "Half is done, with ") {
		t.Errorf("it read %q", said)
	}
}

// Where the environment has nothing work in the background, agents are waited for, and who
// asks for that does not notice.
func TestAgentsThatAreWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "Found.", Stop: agent.StopEnd} },
		hand("a1", fields{"prompt": "Find it.", "run_in_background": true})))
	o := options(w.work, w.home, w.model.URL(), app.Flags{})
	o.Environ = append(o.Environ, "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1")
	k := w.talkWith(o, agent.Open{})
	k.turn(whole)
	if r := k.result("a1"); r.Status != agent.StatusOK || !strings.HasPrefix(r.Text, "Found.") {
		t.Errorf("%+v", r)
	}
}
