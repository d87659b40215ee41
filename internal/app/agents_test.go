//go:build unix

package app_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
)

// kind puts a type of agents into the user's folder.
func (w *world) kind(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.home, "dure", "agents", name+".md")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// whole begins the conversation that hands work to others; agents do not know it.
const whole = "Do the whole."

// handing is a model whose first answer makes calls and whose last says so. What agents
// say is for agents to tell.
func handing(agents func(script.Request) script.Reply, calls ...script.Call) script.Options {
	return script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case !strings.Contains(string(r.Body), whole):
			return agents(r)
		case r.Step < len(calls):
			return script.Reply{Calls: calls[r.Step : r.Step+1]}
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}}
}

// hand is a call that hands work to an agent.
func hand(id string, in fields) script.Call {
	return script.Call{ID: id, Tool: "Agent", Input: input(in)}
}

// doing makes one call and then answers with its result.
func doing(tool string, in fields) func(script.Request) script.Reply {
	return func(r script.Request) script.Reply {
		if r.Step == 0 {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: tool, Input: input(in)}}}
		}
		return script.Reply{Text: "It said: " + r.Last, Stop: agent.StopEnd}
	}
}

// asked returns the requests of agents, the first one of each kind of body.
func (w *world) ofAgents() (list []script.Recorded) {
	for _, r := range w.model.Requests() {
		if !strings.Contains(string(r.Body), whole) {
			list = append(list, r)
		}
	}
	return list
}

// toolsIn returns the names of the tools that a request offers.
func toolsIn(t *testing.T, body []byte) (names []string) {
	t.Helper()
	var req struct{ Tools []struct{ Name string } }
	if err := json.Unmarshal(body, &req); err != nil {
		t.Fatal(err)
	}
	for _, tool := range req.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

func TestAnAgentFromAFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("Glob", fields{"pattern": "*"}),
		hand("a1", fields{"description": "count", "prompt": "Count the files.", "subagent_type": "Counter"})))
	w.kind("counter", "---\nname: counter\ndescription: Counts things.\ntools: Glob, Agent, Nothing\nmaxTurns: 5\neffort: high\n---\nYou count.\n")
	w.write("one", "1")
	k := w.talk(app.Flags{}, agent.Open{})
	if end := k.turn(whole); end.Reason != agent.EndDone {
		t.Fatal(names(k.seen))
	}
	r := k.result("a1")
	if !strings.HasPrefix(r.Text, "It said: ") || !strings.Contains(r.Text, "\n\n[agentId c") || !strings.Contains(string(r.Output), `"agentType":"counter"`) || !strings.Contains(string(r.Output), `"totalToolUseCount":1`) {
		t.Errorf("the result is %q, %s", r.Text, r.Output)
	}
	body := string(w.ofAgents()[0].Body)
	if got := toolsIn(t, w.ofAgents()[0].Body); !slices.Equal(got, []string{"Agent", "Glob"}) || !strings.Contains(body, "You count.") || strings.Contains(body, "Counts things") && !strings.Contains(body, "Further types") {
		t.Errorf("the agent has %v in\n%s", got, body)
	}
	if added := all[agent.ContextAdded](k.seen); len(added) != 1 || !strings.Contains(added[0].Text, `- counter: "Counts things."`) {
		t.Errorf("the list is %+v", added)
	}
	k.sound()
	child := all[agent.ChildEnded](k.seen)[0].Outcome
	if problems := verified(t.Context(), k.Client, child.Session); len(problems) > 0 || child.Calls != 1 {
		t.Errorf("%+v: %v", child, problems)
	}
}

// An agent reads the context that comes with its task behind it, by whatever names both are
// given; one that is only white space is none.
func TestAnAgentsContext(t *testing.T) {
	t.Parallel()
	for context, want := range map[string]string{
		"The API is in api.go.": `Document the API.\n\n## Context\n\nThe API is in api.go.`, " \n": "Document the API.\"",
	} {
		w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "Done.", Stop: agent.StopEnd} },
			hand("a1", fields{"agent_type": "Explore", "task": "Document the API.", "context": context})))
		k := w.talk(app.Flags{}, agent.Open{})
		k.turn(whole)
		if r := k.result("a1"); r.Failed() || len(w.ofAgents()) != 1 {
			t.Fatalf("%q: %+v", context, r)
		}
		if body := string(w.ofAgents()[0].Body); !strings.Contains(body, want) || strings.Contains(body, "## Context") != strings.Contains(want, "## Context") {
			t.Errorf("%q: no %q in\n%s", context, want, body)
		}
		k.sound()
	}
}

// What an agent may do is never more than what the session may that starts it.
func TestAgentsAreNeverWider(t *testing.T) {
	t.Parallel()
	write := fields{"file_path": "out.txt", "content": "x"}
	for _, c := range []struct {
		name, file string
		flags      app.Flags
		does       func(script.Request) script.Reply
		says       string // a part of what came of it
		written    bool
	}{
		{"as the session", "", app.Flags{Mode: "acceptEdits"}, doing("Write", write), "Created out.txt", true},
		{"a mode that asks less", "permissionMode: bypassPermissions", app.Flags{}, doing("Write", write), "nobody is there to ask", false},
		{"a mode that asks less than plan", "permissionMode: acceptEdits", app.Flags{Mode: "plan"}, doing("Write", write), "denied: mode plan", false},
		{"a mode that asks more", "permissionMode: dontAsk", app.Flags{Mode: "acceptEdits"}, doing("Write", write), "mode dontAsk", false},
		{"a plan", "permissionMode: plan", app.Flags{Mode: "bypassPermissions"}, doing("Write", write), "plan", false},
		{"a rule that denies", "permissionMode: bypassPermissions", app.Flags{Mode: "bypassPermissions", Deny: []string{"Write"}}, doing("Write", write), "deny rule Write", false},
		{"a tool that it has not", "tools: Read", app.Flags{Mode: "acceptEdits"}, doing("Write", write), "Unknown tool", false},
		{"a tool that is taken away", "disallowedTools: Write", app.Flags{Mode: "acceptEdits"}, doing("Write", write), "Unknown tool", false},
		{"no tools", "tools: []", app.Flags{Mode: "acceptEdits"}, doing("Write", write), "Unknown tool", false},
		{"the part of a tool", "tools: Bash(echo hi *)", app.Flags{Mode: "bypassPermissions"}, doing("Bash", fields{"command": "echo hi there"}), "hi there", false},
		{"another part of it", "tools: Bash(git diff *)", app.Flags{Mode: "bypassPermissions"}, doing("Bash", fields{"command": "touch out.txt"}), "this agent has only Bash(git diff *)", false},
		{"a hook of its own", "hooks:\n  PreToolUse:\n    - matcher: Write\n      hooks:\n        - type: command\n          command: echo not you >&2; exit 2", app.Flags{Mode: "bypassPermissions"}, doing("Write", write), "not you", false},
		{"questions to the user", "", app.Flags{}, doing("AskUserQuestion", fields{"questions": []fields{}}), "Unknown tool", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, handing(c.does, hand("a1", fields{"prompt": "Write it.", "subagent_type": "worker"})))
			w.kind("worker", "---\nname: worker\ndescription: Works.\n"+c.file+"\n---\nYou work.\n")
			k := w.talk(c.flags, agent.Open{})
			k.turn(whole)
			said := k.result("a1").Text
			if last := w.ofAgents(); len(last) > 1 {
				said += string(last[1].Body)
			}
			if _, err := os.Stat(filepath.Join(w.work, "out.txt")); !strings.Contains(said, c.says) || (err == nil) != c.written {
				t.Errorf("written %v, and it came to\n%s", err == nil, said)
			}
			k.sound()
		})
	}
}

// An agent of an agent has no tool that the first one had not.
func TestAgentsOfAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
		if strings.Contains(string(r.Body), "You are first.") && r.Step == 0 {
			return script.Reply{Calls: []script.Call{hand("b1", fields{"prompt": "Go deeper.", "subagent_type": "second"})}}
		}
		if strings.Contains(string(r.Body), "You are second.") && r.Step == 0 {
			return script.Reply{Calls: []script.Call{hand("b2", fields{"prompt": "Go deepest.", "subagent_type": "third"})}}
		}
		return script.Reply{Text: "Deep.", Stop: agent.StopEnd}
	}, hand("a1", fields{"prompt": "Go deep.", "subagent_type": "first"})))
	w.kind("first", "---\nname: first\ndescription: x\ntools: Agent, Read, Glob\n---\nYou are first.\n")
	w.kind("second", "---\nname: second\ndescription: x\ntools: Agent, Read, Write, Bash\n---\nYou are second.\n")
	w.kind("third", "---\nname: third\ndescription: x\n---\nYou are third.\n")
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn(whole)
	want := map[string]string{"first": "Agent Glob Read", "second": "Agent Read", "third": "Read"}
	for _, r := range w.ofAgents() {
		for kind, tools := range want {
			if strings.Contains(string(r.Body), "You are "+kind+".") {
				if got := strings.Join(toolsIn(t, r.Body), " "); got != tools {
					t.Errorf("%s has %s", kind, got)
				}
				delete(want, kind)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("never asked: %v", want)
	}
}

// Rules on types and models see what would run, and not only what was written.
func TestRulesOnAgents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, deny string
		in         fields
		want       string
	}{
		{"by name", "Agent(Explore)", fields{"prompt": "x", "subagent_type": "explore"}, "the agent Explore cannot be used"},
		{"the usual one", "Agent(general-purpose)", fields{"prompt": "x"}, "the agent general-purpose cannot be used"},
		{"all of them", "Agent", fields{"prompt": "x"}, "E_TOOL"},
		{"by the older name", "Task(Plan)", fields{"prompt": "x", "subagent_type": "Plan"}, "the agent Plan cannot be used"},
		{"the model of the file", "Agent(model:claude-opus*)", fields{"prompt": "x", "subagent_type": "wise"}, "Agent(model:claude-opus*)"},
		{"the model of the call", "Agent(model:opus)", fields{"prompt": "x", "model": "opus"}, "Agent(model:opus)"},
		{"another one", "Agent(Plan)", fields{"prompt": "x"}, "Fine."},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "Fine.", Stop: agent.StopEnd} }, hand("a1", c.in)))
			w.kind("wise", "---\nname: wise\ndescription: x\nmodel: opus\n---\nYou are wise.\n")
			k := w.talk(app.Flags{Deny: []string{c.deny}, Settings: `{"smallModel": "haiku"}`}, agent.Open{})
			k.turn(whole)
			r := k.result("a1")
			if code := r.Text + fmt.Sprint(r.Error); !strings.Contains(code, c.want) {
				t.Errorf("it came to %s", code)
			}
		})
	}
}

// Several agents of one answer work beside each other.
func TestAgentsBesideEachOther(t *testing.T) {
	t.Parallel()
	const many = 4
	meeting := doing("Bash", fields{"command": fmt.Sprintf("mktemp -d here.XXXXXX; until [ $(ls -d here.* | wc -l) = %d ]; do sleep 0.02; done; echo We met.", many)})
	var calls []script.Call
	for i := range many {
		calls = append(calls, hand(fmt.Sprint("a", i), fields{"prompt": fmt.Sprint("Part ", i)}))
	}
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case !strings.Contains(string(r.Body), whole):
			return meeting(r)
		case r.Step == 0:
			return script.Reply{Calls: calls}
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}})
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	k.turn(whole)
	for i := range many {
		if r := k.result(fmt.Sprint("a", i)); !strings.Contains(r.Text, "We met.") {
			t.Errorf("%d: %s", i, r.Text)
		}
	}
	k.sound()
}

// A question of an agent reaches the person, with the agent's name; what is allowed for
// the session holds for the agent that asked, and for the next one.
func TestQuestionsOfAgents(t *testing.T) {
	t.Parallel()
	turn := func(r script.Request) script.Reply {
		if r.Step < 2 {
			return script.Reply{Calls: []script.Call{{ID: fmt.Sprint("w", r.Step), Tool: "Bash", Input: input(fields{"command": fmt.Sprint("touch made", r.Step)})}}}
		}
		return script.Reply{Text: "Made.", Stop: agent.StopEnd}
	}
	w := newWorld(t, script.Script{}, handing(turn, hand("a1", fields{"prompt": "Make it."}), hand("a2", fields{"prompt": "Make it again."})))
	k := w.talk(app.Flags{}, agent.Open{Approver: true})
	k.answer(whole, func(q agent.ApprovalAsked) agent.Resolve {
		if q.Proposal.Agent != "general-purpose" || q.Child == "" {
			t.Errorf("the question is %+v", q)
		}
		return agent.Resolve{ID: q.ID, Decision: agent.Decision{Verdict: agent.Allow}, Remember: agent.RememberSession, Rules: []string{"Bash(touch *)"}}
	})
	if n := len(all[agent.ApprovalAsked](k.seen)); n != 1 {
		t.Errorf("the person was asked %d times", n)
	}
	for _, id := range []string{"a1", "a2"} {
		if r := k.result(id); !strings.HasPrefix(r.Text, "Made.") || !strings.Contains(r.Text, ", 2 calls,") {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
}

// An agent in the background is looked at, told of when it ends, and goes on with
// another task; one that is stopped says so.
func TestAgentsInTheBackground(t *testing.T) {
	t.Parallel()
	looks := doing("Bash", fields{"command": "until [ -e go ]; do sleep 0.02; done; echo Found it."})
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		body := string(r.Body)
		call := func(id, tool string, in fields) script.Reply {
			return script.Reply{Calls: []script.Call{{ID: id, Tool: tool, Input: input(in)}}}
		}
		id := ""
		if i := strings.Index(body, "child:c"); i >= 0 {
			id = body[i+len("child:") : i+len("child:")+33]
		}
		switch {
		case strings.Contains(r.Last, "And then?"):
			return script.Reply{Text: "Then this.", Stop: agent.StopEnd}
		case !strings.Contains(body, whole):
			return looks(r)
		}
		switch r.Step {
		case 0:
			return call("a1", "Agent", fields{"prompt": "Look for it.", "run_in_background": true})
		case 1:
			return call("o1", "TaskOutput", fields{"task_id": id, "block": false})
		case 2:
			return call("r1", "Agent", fields{"prompt": "And then?", "resume": id})
		case 3:
			return call("g1", "Bash", fields{"command": "touch go"})
		case 4:
			return call("o2", "TaskOutput", fields{"task_id": "child:" + id})
		case 5:
			return call("r2", "Agent", fields{"prompt": "And then?", "resume": id})
		case 6:
			return call("s1", "TaskStop", fields{"task_id": id})
		}
		return script.Reply{Text: "All done.", Stop: agent.StopEnd}
	}})
	k := w.talk(app.Flags{Mode: "bypassPermissions"}, agent.Open{})
	k.turn(whole)
	for id, want := range map[string]string{
		"a1": "The agent general-purpose works in the background as child:c", "o1": ": running, ", "r1": "still runs",
		"o2": ": completed\nIt said: Found it.", "r2": "Then this.", "s1": "had ended before.",
	} {
		if r := k.result(id); !strings.Contains(r.Text, want) {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
	settled := all[agent.CallSettled](k.seen)
	if len(settled) != 1 || settled[0].ID != "a1" || !strings.HasPrefix(settled[0].Result.Text, "It said: Found it.") {
		t.Errorf("settled: %+v", settled)
	}
	k.sound()
}

// An agent that works when its session is closed has been stopped, and can go on when
// the session is opened again.
func TestClosingWithAgents(t *testing.T) {
	t.Parallel()
	began := make(chan struct{}, 9)
	w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
		switch {
		case strings.Contains(r.Last, "Go on."):
			return script.Reply{Text: "Here I am again.", Stop: agent.StopEnd}
		case !strings.Contains(string(r.Body), whole):
			began <- struct{}{}
			return script.Reply{Calls: []script.Call{{ID: "z", Tool: "Bash", Input: input(fields{"command": "sleep 60"})}}}
		case r.Step == 0:
			return script.Reply{Calls: []script.Call{hand("a1", fields{"prompt": "Wait.", "run_in_background": true})}}
		case r.Step == 2:
			i := strings.Index(string(r.Body), "resume c")
			return script.Reply{Calls: []script.Call{hand("a2", fields{"prompt": "Go on.", "resume": string(r.Body)[i+7 : i+7+33]})}}
		}
		return script.Reply{Text: "Good.", Stop: agent.StopEnd}
	}})
	flags := app.Flags{Allow: []string{"Bash"}}
	k := w.talk(flags, agent.Open{New: "one"})
	k.turn(whole)
	<-began
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	k = w.talk(flags, agent.Open{Session: "one"})
	settled := all[agent.CallSettled](k.seen)
	if len(settled) != 1 || settled[0].Lost || settled[0].Result.Error.Code != agent.ErrAborted {
		t.Errorf("settled: %+v", settled)
	}
	k.turn("Go on with that.")
	if r := k.result("a2"); !strings.HasPrefix(r.Text, "Here I am again.") {
		t.Errorf("it came to %s\n%s", r.Text, names(k.seen))
	}
	k.sound()
}

// An agent that comes to its limit says what it came to.
func TestAnAgentAtItsLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
		if len(toolsIn(t, r.Body)) == 0 || strings.Contains(string(r.Body), `"tool_choice":{"type":"none"}`) || r.Step == 2 {
			return script.Reply{Text: "I looked twice.", Stop: agent.StopEnd}
		}
		return script.Reply{Text: "I look.", Calls: []script.Call{{ID: fmt.Sprint("g", r.Step), Tool: "Glob", Input: input(fields{"pattern": fmt.Sprint("*", r.Step)})}}}
	}, hand("a1", fields{"prompt": "Look.", "subagent_type": "short"})))
	w.kind("short", "---\nname: short\ndescription: x\nmaxTurns: 2\n---\nYou look.\n")
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn(whole)
	if r := k.result("a1"); r.Failed() || !strings.HasPrefix(r.Text, "The agent has come to its limit; this is what it had said last:\nI looked twice.") {
		t.Errorf("it came to %s", r.Text)
	}
}

// A child of another session is nobody's to go on with.
func TestAChildOfAnother(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(script.Request) script.Reply { return script.Reply{Text: "Fine.", Stop: agent.StopEnd} }, hand("a1", fields{"prompt": "x"})))
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{}))
	k := w.talkTo(a, agent.Open{})
	k.turn(whole)
	child := all[agent.ChildEnded](k.seen)[0].Child
	_ = w.model.Close()
	var err error
	if w.model, err = script.NewServer(script.Script{}, handing(nil, hand("b1", fields{"prompt": "x", "resume": child}), hand("b2", fields{"prompt": "x", "resume": "../../etc"}))); err != nil {
		t.Fatal(err)
	}
	other := w.talk(app.Flags{}, agent.Open{})
	other.turn(whole)
	for _, id := range []string{"b1", "b2"} {
		if r := other.result(id); !strings.Contains(r.Text, "there is no agent") {
			t.Errorf("%s: %s", id, r.Text)
		}
	}
}

// A session may run as an agent; it does so when it is opened again.
func TestASessionAsAnAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, hello())
	w.kind("reader", "---\nname: reader\ndescription: x\ntools: Read, Agent(Explore)\npermissionMode: plan\ninitialPrompt: Begin with the README.\n---\nYou read.\n")
	k := w.talk(app.Flags{Agent: "Reader"}, agent.Open{New: "one"})
	k.turn("Hi.")
	opened := all[agent.SessionOpened](k.seen)[0]
	if opened.Agent != "reader" || opened.Mode != agent.ModePlan {
		t.Errorf("opened as %+v", opened)
	}
	if in := all[agent.InputAdded](k.seen); len(in) != 2 || in[0].Text+in[1].Text != "Begin with the README.Hi." {
		t.Errorf("it was told %+v", in)
	}
	if err := k.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.talk(app.Flags{}, agent.Open{Session: "one"}).turn("Hi again.")
	for _, r := range w.model.Requests() {
		if got := toolsIn(t, r.Body); !slices.Equal(got, []string{"Agent", "Read"}) || !strings.Contains(string(r.Body), "You read.") {
			t.Errorf("it has %v", got)
		}
	}
	a := w.program(options(w.work, w.home, w.model.URL(), app.Flags{Agent: "nobody"}))
	if _, err := a.Client().Open(t.Context(), agent.Open{}); agent.ProblemOf(err) == nil || !strings.Contains(err.Error(), `"nobody" is none of`) {
		t.Errorf("an agent that there is not: %v", err)
	}
	if _, err := app.New(options(w.work, w.home, w.model.URL(), app.Flags{Agents: "{"})); agent.ProblemOf(err) == nil {
		t.Errorf("agents that cannot be read: %v", err)
	}
}

// Going back to before an agent was started takes back what it did.
func TestRewindWithAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(doing("Write", fields{"file_path": "out.txt", "content": "x"}), hand("a1", fields{"prompt": "Write it."})))
	k := w.talk(app.Flags{Mode: "acceptEdits"}, agent.Open{})
	first := k.seen[len(k.seen)-1].Seq
	k.turn(whole)
	if w.read("out.txt") != "x" {
		t.Fatal("nothing was written")
	}
	k.send(agent.Rewind{To: first, Conversation: true, Files: true})
	back := body[agent.FilesRewound](k)
	body[agent.ConversationRewound](k)
	if w.read("out.txt") != "" {
		t.Errorf("it is still there: %+v", back)
	}
	list, err := client.Query[agent.SessionList](t.Context(), k.Client, agent.ListSessions{})
	if err != nil || len(list.Sessions) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	k.sound()
}

// What is handed over by message is answered by message, and does not go round.
func TestAHandoffOfASession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, handing(func(r script.Request) script.Reply {
		if strings.Contains(string(r.Body), "Give it back.") && r.Step == 0 {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Handoff", Input: input(fields{"to": "worker", "payload": "Again."})}}}
		}
		return script.Reply{Text: "It said: " + r.Last, Stop: agent.StopEnd}
	},
		script.Call{ID: "h1", Tool: "Handoff", Input: input(fields{"to": "worker", "payload": "Give it back.", "correlationId": "mine"})},
		script.Call{ID: "o1", Tool: "Coordinate", Input: input(fields{"tasks": []any{
			fields{"id": "a", "agentType": "worker", "description": "One."}, fields{"id": "b", "description": "Two.", "dependencies": []any{"a"}},
		}})}))
	w.kind("worker", "---\nname: worker\ndescription: Works.\n---\nYou work.\n")
	k := w.talk(app.Flags{}, agent.Open{})
	k.turn(whole)
	if r := k.result("h1"); r.Status != agent.StatusPending {
		t.Errorf("handed over: %+v", r)
	}
	if r := k.result("o1"); r.Failed() || !strings.HasPrefix(r.Text, "2 of 2 tasks are over (100 %), 2 of them done") || !strings.Contains(r.Text, "It builds on these results") {
		t.Errorf("the plan: %+v", r)
	}
	settled := all[agent.CallSettled](k.seen) // in the turn, or behind it
	if len(settled) == 0 {
		settled = []agent.CallSettled{body[agent.CallSettled](k)}
	}
	if text := settled[0].Result.Text; !strings.HasPrefix(text, "[delegate_result from worker, correlationId mine]") || !strings.Contains(text, "main → worker → worker would go round") {
		t.Errorf("the answer: %s", text)
	}
}
