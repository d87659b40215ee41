package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/frontend/text"
)

var update = flag.Bool("update", false, "rewrite the goldens")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s:\n%s", name, d)
	}
}

// rig is line mode over a fake session and a made-up terminal, inside synctest.
type rig struct {
	t     *testing.T
	f     *fake
	vt    *vt
	keys  *io.PipeWriter
	done  chan error
	shots strings.Builder
}

type rigOptions struct {
	cols, rows int
	lang       string
	dumb       bool
	prompt     string
	resume     bool
	history    string
	notices    Notices
	move       func(context.Context, string, []string) (Place, error)
	told       <-chan string
}

func startRig(t *testing.T, f *fake, o rigOptions) *rig {
	t.Helper()
	if o.cols == 0 {
		o.cols, o.rows = 80, 24
	}
	r, w := io.Pipe()
	g := &rig{t: t, f: f, vt: &vt{cols: o.cols, rows: o.rows, dumb: o.dumb}, keys: w, done: make(chan error, 1)}
	term := Terminal{In: r, Out: g.vt, Size: func() (int, int) { return o.cols, o.rows }}
	if o.dumb {
		g.vt.cols = 0
		term.Size = func() (int, int) { return 0, 0 }
	} else {
		term.Escapes, term.Color = true, true
		term.Raw = func() (func(), error) { return func() {}, nil }
	}
	c := New(Config{Client: f.client(), Text: text.For(o.lang), In: r, Out: g.vt, Err: g.vt, Now: time.Now})
	open := agent.Open{Workdir: "/repo"}
	if o.resume {
		open = agent.Open{Session: "s1"}
	}
	go func() {
		g.done <- c.Interact(t.Context(), InteractOptions{
			Open: open, Prompt: o.prompt, Terminal: term, Version: "1.2.3", History: o.history, Notices: o.notices, Move: o.move, Told: o.told,
		})
		r.Close()
	}()
	synctest.Wait()
	return g
}

// typing sends keys and waits until everything has come to rest.
func (g *rig) typing(s string) {
	g.t.Helper()
	if _, err := io.WriteString(g.keys, s); err != nil {
		g.t.Fatalf("typing %q: %v", s, err)
	}
	synctest.Wait()
}

func (g *rig) emit(bodies ...agent.Body) {
	g.f.emit(bodies...)
	synctest.Wait()
}

// shot adds the screen to the transcript.
func (g *rig) shot(what string) {
	fmt.Fprintf(&g.shots, "=== %s\n%s", what, g.vt)
}

// end closes the input and returns what Interact returned.
func (g *rig) end() error {
	g.keys.Close()
	return <-g.done
}

func fragments(step int, kind agent.DeltaKind, parts ...string) []agent.Body {
	var out []agent.Body
	for _, p := range parts {
		out = append(out, agent.Fragment{Step: step, What: kind, Text: p})
	}
	return out
}

func said(msg string, calls ...agent.Call) agent.ModelAnswered {
	m := agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: msg}}}
	for _, c := range calls {
		m.Blocks = append(m.Blocks, agent.Block{Type: agent.CallBlock, Call: &c})
	}
	return agent.ModelAnswered{Answer: agent.Answer{Message: m, Stop: agent.StopEnd}}
}

func call(id, tool, input string) agent.Call {
	return agent.Call{ID: id, Tool: tool, Input: json.RawMessage(input)}
}

func decided(c agent.Call, v agent.Verdict) agent.CallDecided {
	return agent.CallDecided{Proposal: agent.Proposal{Call: c}, Decision: agent.Decision{Verdict: v}}
}

func ended(reason agent.EndReason) agent.TurnEnded {
	m := agent.Money(12_300_000)
	return agent.TurnEnded{Turn: "t1", Reason: reason, Steps: 2, Millis: 4200, Usage: agent.Usage{Input: 1200, Output: 80, CacheRead: 3000}, Cost: &m}
}

func requested(attempt int) agent.ModelRequested {
	return agent.ModelRequested{Turn: "t1", Step: 1, Attempt: attempt, Model: "opus"}
}

// started is what follows a prompt.
func (g *rig) started() {
	p := g.f.lastInput()
	g.emit(agent.InputAdded{Input: p, Text: "x"}, agent.TurnStarted{Turn: "t1"}, requested(1))
}

var (
	readCall = call("c1", "file-system__read", `{"file_path":"/repo/src/한글.go"}`)
	editCall = call("c2", "file-system__edit", `{"file_path":"/repo/main.go","old_string":"a := 1\n","new_string":"a := 2\n"}`)
	bashCall = call("c3", "bash__exec", `{"command":"go test ./... 2>&1 | tail -n 20"}`)
	patchOut = json.RawMessage(`{"structuredPatch":[{"oldStart":1,"newStart":1,"lines":[" package main","-a := 1","+a := 2"]}]}`)
)

// TestScreens is a whole turn as a person sees it: thinking, an attempt that
// breaks off, calls, an approval, a change, an answer with hostile text.
func TestScreens(t *testing.T) {
	for _, o := range []rigOptions{
		{cols: 80, rows: 24, lang: "en"},
		{cols: 80, rows: 24, lang: "ko"},
		{cols: 50, rows: 20, lang: "en"},
		{cols: 50, rows: 20, lang: "ko"},
		{cols: 200, rows: 60, lang: "en"},
		{cols: 20, rows: 30, lang: "en"},
		{cols: 20, rows: 30, lang: "ko"},
		{dumb: true, lang: "en"},
		{dumb: true, lang: "ko"},
	} {
		name := fmt.Sprintf("screen-%d-%s.txt", o.cols, o.lang)
		if o.dumb {
			name = fmt.Sprintf("screen-dumb-%s.txt", o.lang)
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { golden(t, name, wholeTurn(t, o)) })
		})
	}
}

func wholeTurn(t *testing.T, o rigOptions) string {
	enter := "\r"
	if o.dumb {
		enter = "\n"
	}
	g := startRig(t, newFake(), o)
	g.typing("테스트를 고쳐 줘" + enter)
	g.started()
	g.shot("a task was given")
	g.emit(fragments(1, agent.DeltaThinking, "First I have to see ", "what fails, and then why it does so at all.")...)
	g.emit(fragments(1, agent.DeltaText, "I'll look at ", "the te")...)
	g.shot("an answer comes")
	g.emit(agent.ModelFailed{Turn: "t1", Step: 1, Attempt: 1, Class: agent.FailServer, Error: "cut", Retry: true, Delay: 3000})
	g.shot("the connection broke")
	g.emit(requested(2))
	g.emit(fragments(1, agent.DeltaText, "I'll look at the te", "sts first.")...)
	g.emit(said("I'll look at the tests first.", readCall), decided(readCall, agent.Allow))
	g.emit(agent.CallStarted{ID: "c1", Tool: "file-system__read"})
	time.Sleep(2 * time.Second)
	synctest.Wait()
	g.shot("a call runs")
	g.emit(agent.CallFinished{Tool: "file-system__read", Millis: 12, Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: "1\ta\n2\tb\n3\tc\n"}})
	g.emit(agent.ApprovalAsked{ID: "a1", Reason: "writes inside the workspace ask", Proposal: agent.Proposal{Call: editCall, Effects: agent.Effects{Writes: []string{"/repo/main.go"}}}, Choices: []agent.Choice{
		{Remember: agent.RememberSession, Rules: []string{"Edit(main.go)"}},
	}})
	g.shot("an approval is asked")
	g.typing("yo" + enter)
	g.typing("s" + enter)
	g.emit(agent.ApprovalResolved{ID: "a1", Decision: agent.Decision{Verdict: agent.Allow}}, decided(editCall, agent.Allow), agent.CallStarted{ID: "c2", Tool: "file-system__edit"})
	g.emit(agent.CallFinished{Tool: "file-system__edit", Millis: 3, Result: agent.Result{ID: "c2", Status: agent.StatusOK, Text: "edited", Output: patchOut}})
	g.emit(decided(bashCall, agent.Allow), agent.CallStarted{ID: "c3", Tool: "bash__exec"}, agent.CallFinished{
		Tool: "bash__exec", Millis: 1500,
		Result: agent.Result{ID: "c3", Status: agent.StatusError, Text: "FAIL", Error: &agent.ToolError{Code: agent.ErrTool, Message: "exit code 1"}, Output: json.RawMessage(`{"exitCode":1}`)},
	})
	g.emit(fragments(2, agent.DeltaText, "Done: \x1b[31mred\x1b]0;evil\a and 가나다라마바사아자차카타파하 end.\n\n- one\n", "- two")...)
	g.emit(said("Done: \x1b[31mred\x1b]0;evil\a and 가나다라마바사아자차카타파하 end.\n\n- one\n- two"), ended(agent.EndDone))
	g.shot("the turn has ended")
	if err := g.end(); err != nil {
		t.Error(err)
	}
	g.shot("left")
	want := []string{
		`prompt {"text":"테스트를 고쳐 줘"}`,
		`resolve {"id":"a1","decision":{"verdict":"allow","by":"user"},"remember":"session","rules":["Edit(main.go)"]}`,
	}
	if d := cmp.Diff(want, g.f.commands()); d != "" {
		t.Error(d)
	}
	return g.shots.String()
}

// chatTest is one thing that line mode does, told by what was sent and what
// stands on the screen.
func TestLineMode(t *testing.T) {
	tests := []struct {
		name string
		o    rigOptions
		past []agent.Body
		do   func(g *rig)
		sent []string
		see  []string // in this order
		not  []string
		code int
	}{
		{
			name: "steering while a turn runs",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.typing("also two\r")
				g.emit(agent.InputQueued{Input: g.f.lastInput(), Text: "also two"})
			},
			sent: []string{`prompt {"text":"one"}`, `prompt {"text":"also two"}`},
			see:  []string{"> one", "> also two", "taken: it reaches the model"},
		},
		{
			name: "what others say is shown, what was said here is not said again",
			do: func(g *rig) {
				g.typing("mine\r")
				g.started()
				g.emit(agent.InputAdded{Input: "other", Text: "theirs \x1b[2J"}, agent.InputAdded{Input: "x", Text: "go on", Origin: "hook:stop"})
			},
			sent: []string{`prompt {"text":"mine"}`},
			see:  []string{"> mine", "> theirs ␛[2J", "> hook:stop: go on"},
			not:  []string{"> x"},
		},
		{
			name: "Ctrl-C interrupts the turn",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.typing("\x03")
				g.emit(ended(agent.EndInterrupted))
			},
			sent: []string{`prompt {"text":"one"}`, `interrupt {}`},
			see:  []string{"interrupting", "· interrupted"},
		},
		{
			name: "Ctrl-C twice leaves",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.typing("\x03\x03")
			},
			sent: []string{`prompt {"text":"one"}`, `interrupt {}`},
			see:  []string{"dure -r s1"},
			code: ExitInterrupted,
		},
		{
			name: "Ctrl-C clears what was typed, and slowly it does not leave",
			do: func(g *rig) {
				g.typing("wrong\x03")
				time.Sleep(2 * time.Second)
				g.typing("\x03")
				time.Sleep(2 * time.Second)
				g.typing("right\r")
			},
			sent: []string{`prompt {"text":"right"}`},
			see:  []string{"Ctrl-C again quits", "> right"},
			not:  []string{"wrong"},
		},
		{
			name: "Ctrl-D leaves an empty line only",
			do:   func(g *rig) { g.typing("ab\x01\x04\r"); g.typing("\x04") },
			sent: []string{`prompt {"text":"b"}`},
			see:  []string{"> b", "dure -r s1"},
		},
		{
			name: "a denial with a reason; the draft survives the question",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.typing("and th")
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall, Effects: agent.Effects{
					Commands: []agent.SimpleCommand{{Argv: []string{"go", "test", "./..."}}, {Argv: []string{"tail", "-n", "20"}}}, Hosts: []string{"example.com:443", "*"},
				}}})
				g.typing("n not the network\r")
				g.emit(agent.ApprovalResolved{ID: "a1"})
				g.typing("en\r")
			},
			sent: []string{
				`prompt {"text":"one"}`,
				`resolve {"id":"a1","decision":{"verdict":"deny","reason":"not the network","by":"user"}}`,
				`prompt {"text":"and then"}`,
			},
			see: []string{"? Bash needs your word", "go test ./... 2\u003e\u00261 | tail -n 20", "contacts: example.com:443, any public host", "y = yes"},
			not: []string{"runs: bash -c"},
		},
		{
			name: "an answer that holds always, with another rule; what is not offered is asked again",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(agent.ApprovalAsked{ID: "a1", Rule: "Bash(git *)", Proposal: agent.Proposal{Call: bashCall, Risk: agent.RiskHigh}, Choices: []agent.Choice{
					{Remember: agent.RememberAlways, Rules: []string{"Bash(git push *)", "Edit(a,b)"}},
				}})
				g.typing("s\r")
				g.typing("a Bash(git push\r")
				g.typing("a Bash(git push origin *), Edit(x,y)\r")
				g.emit(agent.ApprovalResolved{ID: "a1"})
			},
			sent: []string{
				`prompt {"text":"one"}`,
				`resolve {"id":"a1","decision":{"verdict":"allow","by":"user"},"remember":"always","rules":["Bash(git push origin *)","Edit(x,y)"]}`,
			},
			see: []string{
				"rule: Bash(git *)", "risk: high", "always in this folder: Bash(git push *), Edit(a,b)", "y/a/n> s", "Please answer y/a/n.", "Rules look like",
			},
		},
		{
			name: "two answers for the session; what is no rule is not taken for one; a call is shown by its fields",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				call := agent.Call{ID: "c1", Tool: "web__fetch", Input: json.RawMessage(`{"url":"https://a.example/x","prompt":"read\nall","n":[1,2]}`)}
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: call}, Choices: []agent.Choice{
					{Remember: agent.RememberSession, Rules: []string{"Edit(a)"}},
					{Remember: agent.RememberSession, Rules: []string{"Edit(b/**)"}},
				}})
				g.typing("s go ahead\r")
				g.typing("s2 npm\r")
				g.typing("s2\r")
				g.emit(agent.ApprovalResolved{ID: "a1"})
				denied := agent.Failure(agent.ErrDenied, `Tool "WebFetch" denied`, "")
				denied.ID = "c1"
				g.emit(decided(call, agent.Deny), agent.CallFinished{Tool: "web__fetch", Result: denied})
				why := agent.Failure(agent.ErrBlockedByHook, `Tool "WebFetch" denied: not now`, "")
				why.ID = "c1"
				g.emit(agent.CallFinished{Tool: "web__fetch", Result: why})
			},
			sent: []string{
				`prompt {"text":"one"}`,
				`resolve {"id":"a1","decision":{"verdict":"allow","by":"user"},"remember":"session","rules":["Edit(b/**)"]}`,
			},
			see: []string{
				"? WebFetch needs your word", "url: https://a.example/x", "prompt: read", "all", "n: [1,2]", "s = yes, for this session: Edit(a)",
				"s2 = yes, for this session: Edit(b/**)", "Rules look like", "y/s/s2/n> s2 npm", "Rules look like", "denied", "denied: not now",
			},
			not: []string{"denied: Tool", "denied:\n"},
		},
		{
			name: "what cannot be told is said once",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				effects := agent.Effects{Unreadable: "what sh runs: it is piped"}
				g.emit(agent.ApprovalAsked{ID: "a1", Reason: "what it would do cannot be told: " + effects.Unreadable, Proposal: agent.Proposal{Call: bashCall, Effects: effects}})
			},
			sent: []string{`prompt {"text":"one"}`},
			see:  []string{"why: what it would do cannot be told: what sh runs: it is piped", "y = yes"},
			not:  []string{"  what it would do"},
		},
		{
			name: "Ctrl-C at an approval denies and interrupts",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}})
				g.typing("\x03")
			},
			sent: []string{
				`prompt {"text":"one"}`,
				`resolve {"id":"a1","decision":{"verdict":"deny","reason":"the user interrupted","by":"user","stop":true}}`,
				`interrupt {}`,
			},
		},
		{
			name: "nothing of a change that waits for approval is behind the edge of the screen, or without a shape",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{
					Call:    call("c9", "file-system__write", `{"file_path":"/repo/a\u200b.go","content":"x`+strings.Repeat(" ", 300)+`behind\u2060it\n`+strings.Repeat("y", 2000)+`last"}`),
					Effects: agent.Effects{Writes: []string{"/repo/a\u200b.go"}},
				}, Rule: "Write(a\u200b.go)", Choices: []agent.Choice{{Remember: agent.RememberSession, Rules: []string{"Write(a\u200b.go)"}}}})
				g.typing("n\r")
			},
			sent: []string{`prompt {"text":"one"}`, `resolve {"id":"a1","decision":{"verdict":"deny","by":"user"}}`},
			see:  []string{"a\ufffd.go", "behind\ufffdit", "characters not shown", "last", "Write(a\ufffd.go)"},
			not:  []string{"\u200b", "\u2060"},
		},
		{
			name: "an approval that somebody else answers goes away",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}})
				g.emit(agent.ApprovalResolved{ID: "a1", Decision: agent.Decision{Verdict: agent.Allow}})
				g.typing("y\r")
			},
			sent: []string{`prompt {"text":"one"}`, `prompt {"text":"y"}`},
		},
		{
			name: "questions by number and in own words",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{
					Call: call("c9", "user__ask", `{"questions":[{"question":"Which way?","header":"Way","options":[{"label":"Left","description":"shorter"},{"label":"Right"}]},`+
						`{"question":"What with?","options":[{"label":"Salt"},{"label":"Oil"}],"multiSelect":true},{"question":"Anything?","options":[]}]}`),
					Effects: agent.Effects{User: true},
				}})
				g.typing("2\r1, 2\rno thanks\r")
			},
			sent: []string{
				`prompt {"text":"one"}`,
				`resolve {"id":"a1","decision":{"verdict":"allow","by":"user","input":{"answers":{"Anything?":"no thanks","What with?":"Salt, Oil","Which way?":"Right"},"questions":"…"}}}`,
			},
			see: []string{"? [Way] Which way?", "1. Left - shorter", "2. Right", "answer> 2", "What with?", "1. Salt", "Anything?"},
		},
		{
			name: "lines that go on, blocks, pastes",
			do: func(g *rig) {
				g.typing("one \\\rtwo\r")
				g.typing("\"\"\"\ra\rb\"\"\"\r")
				g.typing("\x1b[200~p\r\nq\x1b[201~!\r")
			},
			sent: []string{`prompt {"text":"one \ntwo"}`, `prompt {"text":"a\nb"}`, `prompt {"text":"p\nq!"}`},
		},
		{
			name: "slash commands",
			do: func(g *rig) {
				g.f.answers = map[string]any{"models": []agent.ModelInfo{{ID: "opus", Aliases: []string{"o"}}}}
				g.typing("/helpp\r/model\r/model sonnet\r/mode PLAN\r/mode x\r/cost\r/status\r")
				g.emit(agent.SettingsChanged{Model: "sonnet", Mode: agent.ModePlan})
			},
			sent: []string{`change {"model":"sonnet"}`, `change {"mode":"plan"}`},
			see: []string{
				"There is no command /helpp. Did you mean /help?", "model: opus", "opus, o", "There is no mode x.",
				"0 turns", "cost: $0.0000", "session s1", "folder /repo", "idle", "model: sonnet", "permission mode: plan",
			},
		},
		{
			name: "/quit leaves, and says how to come back to what was done",
			do:   func(g *rig) { g.typing("/good\r/quit\r") },
			sent: []string{`rate {"good":true}`},
			see:  []string{"dure -r s1"},
		},
		{
			name: "a session in which nothing was done is not one to come back to",
			do:   func(g *rig) { g.typing("/quit\r") },
			not:  []string{"dure -r s1"},
		},
		{
			name: "a turn that was cut short goes on with Enter",
			o:    rigOptions{resume: true},
			past: []agent.Body{agent.InputAdded{Text: "fix it"}, agent.TurnStarted{Turn: "t1"}, said("I have begun"), ended(agent.EndInterrupted)},
			do:   func(g *rig) { g.typing("\r") },
			sent: []string{`continue {}`},
			see:  []string{"session s1 goes on: 1 turn so far", "> fix it", "I have begun", "cut short"},
		},
		{
			name: "what a session had asked is asked again when its turn goes on",
			o:    rigOptions{resume: true},
			past: []agent.Body{agent.InputAdded{Text: "fix it"}, agent.TurnStarted{Turn: "t1"}, agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}}},
			do:   func(g *rig) { g.typing("\r"); g.typing("y\r") },
			sent: []string{`continue {}`, `resolve {"id":"a1","decision":{"verdict":"allow","by":"user"}}`},
			see:  []string{"> fix it", "cut short", "? Bash needs your word"},
		},
		{
			name: "a session that is whole is gone on with",
			o:    rigOptions{resume: true, prompt: "more"},
			past: []agent.Body{agent.TurnStarted{Turn: "t1"}, ended(agent.EndDone)},
			sent: []string{`prompt {"text":"more"}`},
			see:  []string{"goes on", "> more"},
			not:  []string{"cut short"},
		},
		{
			name: "another attempt that says something else replaces the first",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(fragments(1, agent.DeltaText, "The first answer ")...)
				g.emit(agent.ModelFailed{Class: agent.FailServer, Retry: true}, requested(2))
				g.emit(fragments(1, agent.DeltaText, "The second answer.")...)
				g.emit(said("The second answer."), ended(agent.EndDone))
			},
			sent: []string{`prompt {"text":"one"}`},
			see:  []string{"another attempt", "The second answer."},
			not:  []string{"The first answer"},
		},
		{
			name: "fragments that did not come are made up for",
			do: func(g *rig) {
				g.typing("one\r")
				g.started()
				g.emit(fragments(1, agent.DeltaText, "Begin")...)
				g.emit(said("Begin and end."))
				g.emit(requested(1), said("Whole."), ended(agent.EndDone))
			},
			sent: []string{`prompt {"text":"one"}`},
			see:  []string{"Begin and end.", "Whole."},
		},
		{
			name: "how turns end",
			do: func(g *rig) {
				g.typing("one\r")
				failed := ended(agent.EndFailed)
				failed.Fail, failed.Error, failed.Cost = agent.FailAuth, "invalid x-api-key", nil
				g.emit(ended(agent.EndLimit), ended(agent.EndStopped), failed)
			},
			sent: []string{`prompt {"text":"one"}`},
			see: []string{
				"the limit of 2 steps is reached. Say how to go on.", "something was denied",
				"error: the model's service does not accept the key (invalid x-api-key)", "dure doctor", "cost unknown",
			},
		},
		{
			name: "remarks",
			do: func(g *rig) {
				g.emit(agent.Note{Level: "warn", Text: "careful\x1b"}, agent.ContextThreshold{Used: 160_000, Window: 200_000, Ratio: .8},
					agent.LogRepaired{Bytes: 1}, agent.ChildOpened{Agent: "helper", Title: "look"}, agent.ChildEnded{Outcome: agent.Outcome{Reason: agent.EndDone}},
					agent.Unknown{Name: "from.the.future"})
			},
			see: []string{"· careful␛", "context 80 % full (160k of 200k tokens)", "1 byte cut off", "agent helper starts: look", "agent helper done (done)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake()
				f.past(tt.past...)
				g := startRig(t, f, tt.o)
				if tt.do != nil {
					tt.do(g)
				}
				screen := g.vt.String()
				g.f.Close(t.Context(), "s1")
				err := g.end()
				screen += g.vt.String()
				if code := ExitCode(err); code != tt.code {
					t.Errorf("exit code %d, want %d", code, tt.code)
				}
				check(t, screen, tt.see, append(tt.not, "WRONG"))
				if d := cmp.Diff(tt.sent, shortened(g.f.commands())); d != "" {
					t.Error(d)
				}
			})
		})
	}
}

// shortened leaves out what answers to questions repeat.
func shortened(sent []string) []string {
	for i, s := range sent {
		if from := strings.Index(s, `"questions":`); from >= 0 {
			sent[i] = s[:from] + `"questions":"…"}}}`
		}
	}
	return sent
}

func check(t *testing.T, screen string, see, not []string) {
	t.Helper()
	rest := screen
	for _, s := range see {
		_, after, ok := strings.Cut(rest, s)
		if !ok {
			t.Errorf("%q is not where it should be on\n%s", s, screen)
			return
		}
		rest = after
	}
	for _, s := range not {
		if strings.Contains(screen, s) {
			t.Errorf("%q is on\n%s", s, screen)
		}
	}
}

// Where nothing can be taken back, a second attempt with the same words goes on
// where the first broke off, and one with other words says so.
func TestRetryOnDumbTerminal(t *testing.T) {
	for again, want := range map[string]string{
		"one two three": "dure: one two\nnote: the model's service has a fault, or the connection broke; another attempt (number 2)\n three\n",
		"something new": "dure: one two\nnote: the model's service has a fault, or the connection broke; another attempt (number 2)\n" +
			"note: what stands above since the last mark is void; the new answer:\ndure: something new\n",
		"one": "dure: one two\nnote: the model's service has a fault, or the connection broke; another attempt (number 2)\n" +
			"note: what stands above since the last mark is void; the new answer:\ndure: one\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			g := startRig(t, newFake(), rigOptions{dumb: true, lang: "en"})
			g.typing("go\n")
			g.started()
			g.emit(fragments(1, agent.DeltaText, "one", " two")...)
			g.emit(agent.ModelFailed{Class: agent.FailServer, Attempt: 1, Retry: true}, requested(2))
			for _, r := range again {
				g.emit(fragments(1, agent.DeltaText, string(r))...)
			}
			g.emit(said(again), ended(agent.EndDone))
			if err := g.end(); err != nil {
				t.Error(err)
			}
			check(t, g.vt.String(), []string{want}, []string{"WRONG"})
		})
	}
}

// A script on standard input answers approvals with its lines, in their order.
func TestPipedInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on = func(f *fake, c agent.Command) {
			switch c := c.(type) {
			case agent.Prompt:
				f.emit(agent.InputAdded{Input: c.ID, Text: c.Text}, agent.TurnStarted{}, agent.ApprovalAsked{ID: "a1", Proposal: agent.Proposal{Call: bashCall}})
			case agent.Resolve:
				f.emit(agent.ApprovalResolved{ID: c.ID}, ended(agent.EndDone))
			}
		}
		var out bytes.Buffer
		c := New(Config{Client: f.client(), Now: time.Now})
		err := c.Interact(t.Context(), InteractOptions{
			Open:     agent.Open{Workdir: "/repo"},
			Terminal: Terminal{In: strings.NewReader("do it\ny\nagain\nn\n"), Out: &out, Size: func() (int, int) { return 0, 0 }},
		})
		if err != nil {
			t.Error(err)
		}
		want := []string{
			`prompt {"text":"do it"}`, `resolve {"id":"a1","decision":{"verdict":"allow","by":"user"}}`,
			`prompt {"text":"again"}`, `resolve {"id":"a1","decision":{"verdict":"deny","by":"user"}}`,
		}
		if d := cmp.Diff(want, f.commands()); d != "" {
			t.Errorf("%s\n%s", d, out.String())
		}
	})
}

// Where nobody is left to type, an interrupted turn is the end.
func TestInterruptedWithoutInput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.on = func(f *fake, c agent.Command) {
			switch c := c.(type) {
			case agent.Prompt:
				f.emit(agent.InputAdded{Input: c.ID, Text: c.Text}, agent.TurnStarted{})
			case agent.Interrupt:
				f.emit(ended(agent.EndInterrupted))
			}
		}
		signals := make(chan os.Signal, 1)
		go func() {
			time.Sleep(5 * time.Second)
			signals <- os.Interrupt
		}()
		c := New(Config{Client: f.client(), Signals: signals, Now: time.Now})
		err := c.Interact(t.Context(), InteractOptions{
			Open: agent.Open{Workdir: "/repo"}, Prompt: "do it", Quiet: true,
			Terminal: Terminal{In: strings.NewReader(""), Out: io.Discard, Size: func() (int, int) { return 0, 0 }},
		})
		if code := ExitCode(err); code != ExitInterrupted {
			t.Errorf("exit code %d, want %d", code, ExitInterrupted)
		}
	})
}

func TestOpenRefused(t *testing.T) {
	f := newFake()
	f.refuse = &agent.Problem{Code: agent.ProblemOwned, Message: "session s1 is open in process 7"}
	c := New(Config{Client: f.client(), Now: time.Now})
	err := c.Interact(context.Background(), InteractOptions{Terminal: Terminal{In: strings.NewReader(""), Out: io.Discard}})
	if ExitCode(err) != ExitSession {
		t.Error(err)
	}
}

func TestHistory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history")
	h := openHistory(path)
	for _, s := range []string{"one", "two\nlines", "two\nlines", "", strings.Repeat("x", maxEntry+1), "셋"} {
		if err := h.add(s); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Error(info.Mode(), err)
	}
	if got := openHistory(path).entries; !slices.Equal(got, []string{"one", "two\nlines", "셋"}) {
		t.Errorf("%q", got)
	}
	for i := range 2 * maxHistory {
		if err := h.add(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	again := openHistory(path)
	data, err := os.ReadFile(path)
	if err != nil || len(again.entries) != maxHistory || again.entries[maxHistory-1] != fmt.Sprint(2*maxHistory-1) || bytes.Count(data, []byte("\n")) != maxHistory {
		t.Error(len(again.entries), bytes.Count(data, []byte("\n")), err)
	}
	e := &editor{history: &history{entries: []string{"one", "two"}}}
	e.set("draft")
	var seen []string
	for _, k := range []keyCode{keyUp, keyUp, keyUp, keyDown, keyDown, keyDown} {
		e.apply(key{code: k})
		seen = append(seen, e.buf)
	}
	if d := cmp.Diff([]string{"two", "one", "one", "two", "draft", "draft"}, seen); d != "" {
		t.Error(d)
	}
}
