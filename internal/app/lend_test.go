//go:build unix

package app_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/mcpserve"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
	"dure/internal/tools/catalog"
)

// borrower is another agent, as a client of ours.
type borrower struct {
	t   *testing.T
	app *app.App
	*mcp.ClientSession
	asked []string // what its person was asked
}

// saying answers whatever the person of a client is asked.
func saying(answer string) func(*mcp.ElicitParams) *mcp.ElicitResult {
	return func(*mcp.ElicitParams) *mcp.ElicitResult {
		if answer == "" {
			return &mcp.ElicitResult{Action: "decline"}
		}
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": answer}}
	}
}

// borrow connects a client to a program that serves over streams. Its person says what person
// does; nil = there is none. version is that of the protocol; "" = the newest.
func (w *world) borrow(o app.Options, version string, c mcpserve.Config, person func(*mcp.ElicitParams) *mcp.ElicitResult) *borrower {
	w.t.Helper()
	a, ctx := w.program(o), w.t.Context()
	tools, err := client.Query[[]agent.Spec](ctx, a.Client(), query.ListLendable{})
	if err != nil {
		w.t.Fatal(err)
	}
	c.Client, c.Text, c.Version, c.Workdir, c.Logger = a.Client(), text.For("en"), "test", w.work, slog.New(slog.DiscardHandler)
	c.Tools, c.Name, c.Read = tools, catalog.Claude.Name, app.ReadTool
	c.Lend = func(ctx context.Context, title string, asks bool) (mcpserve.Lent, error) {
		return a.Embedding.Lend(ctx, title, asks)
	}
	if c.Sessions == "" {
		c.Sessions = mcpserve.Own
	}
	s, err := mcpserve.New(ctx, c)
	if err != nil {
		w.t.Fatal(err)
	}
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- s.Run(context.WithoutCancel(ctx), theirs, ours) }()
	b := &borrower{t: w.t, app: a}
	opts := &mcp.ClientOptions{Capabilities: &mcp.ClientCapabilities{}}
	if person != nil {
		opts.ElicitationHandler = func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			b.asked = append(b.asked, r.Params.Message)
			return person(r.Params), nil
		}
	}
	agent := mcp.NewClient(&mcp.Implementation{Name: "borrower", Version: "1"}, opts)
	b.ClientSession, err = agent.Connect(ctx, &mcp.IOTransport{Reader: out, Writer: in}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = in.Close() // a pipe
		if err := <-ended; err != nil {
			w.t.Errorf("serving: %v", err)
		}
		if err := s.Close(); err != nil {
			w.t.Errorf("closing the server: %v", err)
		}
		_, _ = out.Close(), b.Close()
	})
	return b
}

// use calls a tool and returns what it says, and whether that is an error.
func (b *borrower) use(tool string, in fields) (said string, failed bool) {
	b.t.Helper()
	r, err := b.CallTool(b.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: in})
	if err != nil {
		b.t.Fatalf("%s: %v", tool, err)
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			said += t.Text
		}
	}
	return said, r.IsError
}

// lent are the events of the sessions whose tools were lent.
func (b *borrower) lent() (events []agent.Event) {
	b.t.Helper()
	list, err := client.Query[agent.SessionList](b.t.Context(), b.app.Client(), agent.ListSessions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, i := range list.Sessions {
		if i.Title != "mcp serve" {
			continue
		}
		for e, err := range b.app.Client().Attach(i.ID).Events(b.t.Context(), 0) {
			if err != nil {
				b.t.Fatal(err)
			}
			if events = append(events, e); e.Seq >= i.Head {
				break
			}
		}
	}
	return events
}

// modelless is a world in which no model can be asked.
func (w *world) modelless(f app.Flags) app.Options {
	o := options(w.work, w.home, w.model.URL(), f)
	o.Environ = o.Environ[:3]
	return o
}

// versions are the forms of the protocol: with requests of the server's own, and without.
var versions = []string{"2025-11-25", ""}

// The tools that others call pass the gate: what the rules ask is put to the client's
// person, what they deny is denied, and where nobody can be asked the answer is no. No model
// is needed, and the log has it all.
func TestLentToolsPassTheGate(t *testing.T) {
	t.Parallel()
	for _, version := range versions {
		t.Run("protocol "+version, func(t *testing.T) {
			for _, tt := range []struct {
				name   string
				flags  app.Flags
				person func(*mcp.ElicitParams) *mcp.ElicitResult
				runs   bool
				asked  int
				said   string
			}{
				{name: "once", person: saying("allow_once"), runs: true, asked: 2},
				{name: "session", person: saying("allow_session"), runs: true, asked: 1},
				{name: "no", person: saying("deny"), asked: 2, said: "the client's user has not agreed"},
				{name: "declined", person: saying(""), asked: 2, said: "the client's user has not agreed"},
				{name: "nobody", said: "nobody is there to ask"},
				{name: "allowed", flags: app.Flags{Allow: []string{"Bash(touch *)"}}, runs: true},
				{name: "denied", flags: app.Flags{Deny: []string{"Bash(touch *)"}}, person: saying("allow_once"), said: "denied"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					t.Parallel()
					w := newWorld(t, script.Script{}, script.Options{})
					b := w.borrow(w.modelless(tt.flags), version, mcpserve.Config{}, tt.person)
					for range 2 {
						said, failed := b.use("Bash", fields{"command": "touch made"})
						if failed == tt.runs || !strings.Contains(said, tt.said) {
							t.Errorf("it says %q, failed: %t", said, failed)
						}
					}
					if made := strings.Contains(w.listed(), "made"); made != tt.runs {
						t.Errorf("it ran: %t", made)
					}
					if len(b.asked) != tt.asked {
						t.Errorf("asked %d times: %q", len(b.asked), b.asked)
					}
					events := b.lent()
					for _, problem := range gated(events) {
						t.Error(problem)
					}
					for _, d := range all[agent.CallDecided](events) {
						if d.Proposal.Origin != "mcp:borrower" {
							t.Errorf("the call is of %q", d.Proposal.Origin)
						}
					}
					if n := len(all[agent.CallDecided](events)); n != 2 {
						t.Errorf("%d decisions in\n%s", n, names(events))
					}
				})
			}
		})
	}
}

// What a person is asked names the tool and shows its whole input, without what cannot be
// seen; what is too long for that is denied unasked.
func TestLentToolsAskWithAllThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	b := w.borrow(w.modelless(app.Flags{}), versions[0], mcpserve.Config{}, saying("deny"))
	b.use("Bash", fields{"command": "touch \u202egpj.exe # \x1b[2K"})
	if len(b.asked) != 1 || !strings.Contains(b.asked[0], "whether Bash may run") || !strings.Contains(b.asked[0], "    touch \ufffdgpj.exe # \u241b[2K") {
		t.Errorf("asked %q", b.asked)
	}
	said, _ := b.use("Bash", fields{"command": "touch x # " + strings.Repeat("y", 20_000)})
	if len(b.asked) != 1 || !strings.Contains(said, "too long to be shown") {
		t.Errorf("it says %q, asked %d times", said, len(b.asked))
	}
}

// Hooks of the user have their word on calls of others.
func TestLentToolsRunHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	o := w.modelless(app.Flags{Allow: []string{"Bash"}, Settings: `{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"echo the hook says no >&2; exit 2"}]}],"SessionStart":[{"hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"SessionStart\",\"initialUserMessage\":\"begin\"}}'"}]}]}}`})
	b := w.borrow(o, "", mcpserve.Config{}, nil)
	said, failed := b.use("Bash", fields{"command": "touch made"})
	if !failed || !strings.Contains(said, "the hook says no") || w.listed() != "" {
		t.Errorf("it says %q; made: %q", said, w.listed())
	}
	if n := len(all[agent.TurnStarted](b.lent())); n != 0 {
		t.Errorf("%d turns were started", n)
	}
}

// The log of what was called is sealed when the session is closed, and can be executed again.
func TestLentSessionsAreSealed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	w.write("a.txt", "hello\n")
	a := w.program(w.modelless(app.Flags{}))
	tools, err := client.Query[[]agent.Spec](t.Context(), a.Client(), query.ListLendable{Only: []string{"Read"}})
	if err != nil || len(tools) != 1 {
		t.Fatalf("tools: %v, %v", tools, err)
	}
	l, err := a.Embedding.Lend(t.Context(), "lent", false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Call(t.Context(), "c1", "mcp:test", tools[0], []byte(`{"file_path":"a.txt"}`))
	if err != nil || !strings.Contains(r.Text, "hello") {
		t.Fatalf("%+v, %v", r, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	seals, err := client.Query[agent.SealReport](t.Context(), a.Client(), agent.VerifySeals{Session: l.ID()})
	if err != nil || !seals.OK || seals.Seals != 1 || seals.Open != 0 {
		t.Errorf("the seals: %+v, %v", seals, err)
	}
	again, err := client.Query[agent.ReplayReport](t.Context(), a.Client(), query.VerifyReplay{Session: l.ID()})
	if err != nil || !again.OK {
		t.Errorf("the replay: %+v, %v", again, err)
	}
}

// Work in the background tells those who ask for it how it came out, and wakes no model.
func TestLentToolsWakeNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{Func: func(script.Request) script.Reply { return script.Reply{Text: "I was asked."} }})
	b := w.borrow(options(w.work, w.home, w.model.URL(), app.Flags{Allow: []string{"Bash"}}), "", mcpserve.Config{}, nil)
	said, failed := b.use("Bash", fields{"command": "echo done", "run_in_background": true})
	handle := regexp.MustCompile(`job:[A-Za-z0-9_-]+`).FindString(said)
	if failed || handle == "" {
		t.Fatalf("it says %q", said)
	}
	if said, failed = b.use("TaskOutput", fields{"task_id": handle, "block": true}); failed || !strings.Contains(said, "done") {
		t.Errorf("it says %q", said)
	}
	if n := len(all[agent.TurnStarted](b.lent())); n != 0 || len(w.model.Requests()) != 0 {
		t.Errorf("%d turns were started, %d requests were made", n, len(w.model.Requests()))
	}
}

// Files are resources as far as they may be read, commands and skills are prompts, and what
// belongs to a conversation is not lent.
func TestLentFilesAndPrompts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	w.lay(map[string]string{
		"work/a file.txt": "hello\n", "work/.env": "TOKEN=abc\n", "secret.txt": "outside\n",
		"home/.claude/commands/greet.md": "---\ndescription: Greets.\n---\nSay hello to $ARGUMENTS. !`touch made`\n",
	})
	b := w.borrow(w.modelless(app.Flags{Deny: []string{"Read(.env)"}}), "", mcpserve.Config{}, saying("allow_once"))
	ctx := t.Context()
	r, err := b.ReadResource(ctx, &mcp.ReadResourceParams{URI: "dure://files/a%20file.txt"})
	if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, "hello") {
		t.Errorf("a file: %+v, %v", r, err)
	}
	for _, uri := range []string{"dure://files/.env", "dure://files/..%2fsecret.txt", "dure://files/../secret.txt", "dure://files/", "dure://files/none", "dure://other"} {
		if r, err := b.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %+v", uri, r.Contents[0])
		}
	}
	if len(b.asked) != 0 {
		t.Errorf("somebody was asked for a resource: %q", b.asked)
	}
	values, err := b.Complete(ctx, &mcp.CompleteParams{
		Ref: &mcp.CompleteReference{Type: "ref/resource", URI: "dure://files/{+path}"}, Argument: mcp.CompleteParamsArgument{Name: "path", Value: "a f"},
	})
	if err != nil || len(values.Completion.Values) == 0 || values.Completion.Values[0] != "a file.txt" {
		t.Errorf("completed: %+v, %v", values, err)
	}
	p, err := b.GetPrompt(ctx, &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"arguments": "Kim"}})
	if err == nil || !strings.Contains(err.Error(), "runs only where that needs no question") || strings.Contains(w.listed(), "made") {
		t.Errorf("a prompt with a command that nobody allows: %+v, %v", p, err)
	}
	w.lay(map[string]string{"home/.claude/commands/greet.md": "---\ndescription: Greets.\n---\nSay hello to $ARGUMENTS.\n"})
	if p, err = b.GetPrompt(ctx, &mcp.GetPromptParams{Name: "debug", Arguments: map[string]string{"arguments": "it hangs"}}); err != nil || len(p.Messages) != 1 {
		t.Errorf("a skill: %+v, %v", p, err)
	}
	list, err := b.ListTools(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		if slices.Contains([]string{"Agent", "Task", "AskUserQuestion", "TodoWrite", "Skill", "ExitPlanMode", "EnterPlanMode", "Recall"}, tool.Name) {
			t.Errorf("%s is lent", tool.Name)
		}
	}
}

// A client starts sessions, hears what comes of them, and answers what they ask through its
// person. It sees no others, and cannot allow anything by itself.
func TestServedSessions(t *testing.T) {
	t.Parallel()
	touch := script.Reply{When: "Please touch", Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
	for _, version := range versions {
		t.Run("protocol "+version, func(t *testing.T) {
			w := newWorld(t, script.Script{}, script.Options{Func: func(r script.Request) script.Reply {
				if strings.Contains(r.Last, "Please touch") {
					return touch
				}
				return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
			}})
			o := options(w.work, w.home, w.model.URL(), app.Flags{})
			other := w.talkWith(o, agent.Open{})
			other.turn("hello")
			if err := other.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			b := w.borrow(o, version, mcpserve.Config{}, saying("allow_once"))
			got := progressOf(t, b, "session_start", fields{"prompt": "Please touch it.", "title": "mine"})
			if got.Status != "done" || got.Answer != "So it is." || len(b.asked) != 1 || !strings.Contains(w.listed(), "made") {
				t.Fatalf("it came to %+v, asked %q, made %q", got, b.asked, w.listed())
			}
			if again := progressOf(t, b, "session_send", fields{"session": got.Session, "prompt": "more"}); again.Status != "done" || again.After <= got.After {
				t.Errorf("it came to %+v", again)
			}
			said, _ := b.use("session_list", nil)
			if !strings.Contains(said, got.Session) || strings.Contains(said, other.Info.ID) {
				t.Errorf("listed: %s", said)
			}
			for _, tool := range []string{"session_events", "session_send", "session_stop", "session_answer"} {
				if said, failed := b.use(tool, fields{"session": other.Info.ID, "prompt": "x", "approval": "x", "answer": "deny"}); !failed || !strings.Contains(said, "there is no session") {
					t.Errorf("%s on a session of somebody else: %s", tool, said)
				}
			}
			said, _ = b.use("session_events", fields{"session": got.Session, "limit": 3})
			var events mcpserve.Events
			if err := json.Unmarshal([]byte(said), &events); err != nil || len(events.Events) != 3 || events.After != 3 {
				t.Errorf("events: %s, %v", said, err)
			}
			r, err := b.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "dure://sessions/" + got.Session})
			if err != nil || !strings.Contains(r.Contents[0].Text, "So it is.") {
				t.Errorf("the session as a resource: %+v, %v", r, err)
			}
			if said, failed := b.use("session_stop", fields{"session": got.Session}); failed {
				t.Errorf("stopping: %s", said)
			}
		})
	}
}

// A client that cannot ask anybody has the calls of its sessions denied; one that may answer
// by itself is told what they ask.
func TestServedSessionsWithoutAPerson(t *testing.T) {
	t.Parallel()
	model := func(r script.Request) script.Reply {
		if strings.Contains(r.Last, "Please touch") {
			return script.Reply{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: input(fields{"command": "touch made"})}}}
		}
		return script.Reply{Text: "So it is.", Stop: agent.StopEnd}
	}
	w := newWorld(t, script.Script{}, script.Options{Func: model})
	o := options(w.work, w.home, w.model.URL(), app.Flags{})
	b := w.borrow(o, "", mcpserve.Config{}, nil)
	if got := progressOf(t, b, "session_start", fields{"prompt": "Please touch it."}); got.Status != "done" || w.listed() != "" {
		t.Errorf("it came to %+v, made %q", got, w.listed())
	}
	w = newWorld(t, script.Script{}, script.Options{Func: model})
	b = w.borrow(options(w.work, w.home, w.model.URL(), app.Flags{}), "", mcpserve.Config{Answers: true}, nil)
	got := progressOf(t, b, "session_start", fields{"prompt": "Please touch it."})
	if got.Status != "waiting" || len(got.Approvals) != 1 || got.Approvals[0].Tool != "Bash" {
		t.Fatalf("it came to %+v", got)
	}
	if said, failed := b.use("session_answer", fields{"session": got.Session, "approval": got.Approvals[0].ID, "answer": "allow"}); failed {
		t.Fatal(said)
	}
	said, _ := b.use("session_events", fields{"session": got.Session, "after": got.After, "wait_seconds": 60})
	for !strings.Contains(said, "turn.ended") {
		var events mcpserve.Events
		if err := json.Unmarshal([]byte(said), &events); err != nil || t.Context().Err() != nil {
			t.Fatalf("%s, %v", said, err)
		}
		said, _ = b.use("session_events", fields{"session": got.Session, "after": events.After, "wait_seconds": 60})
	}
	if !strings.Contains(w.listed(), "made") {
		t.Error("it was allowed, and did not run")
	}
	if said, failed := b.use("session_answer", fields{"session": got.Session, "approval": got.Approvals[0].ID, "answer": "deny"}); !failed || !strings.Contains(said, "answered before") {
		t.Errorf("a second answer: %s", said)
	}
}

func progressOf(t *testing.T, b *borrower, tool string, in fields) (p mcpserve.Progress) {
	t.Helper()
	said, failed := b.use(tool, in)
	if err := json.Unmarshal([]byte(said), &p); err != nil || failed {
		t.Fatalf("%s: %s, %v", tool, said, err)
	}
	return p
}
