package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/frontend/text"
)

// printed is what print mode left behind.
type printed struct {
	out, err string
	code     int
	sent     []string
}

// printing runs print mode on a session that answers commands with turn.
func printing(t *testing.T, o PrintOptions, signals []os.Signal, turn func(f *fake, c agent.Command), past ...agent.Body) (p printed) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.past(agent.TurnStarted{}, ended(agent.EndDone))
		f.past(past...)
		f.on = turn
		var out, errs bytes.Buffer
		sig := make(chan os.Signal, 2)
		c := New(Config{Client: f.client(), Text: text.For("en"), Out: &out, Err: &errs, Signals: sig, Now: time.Now})
		go func() {
			for _, s := range signals {
				time.Sleep(5 * time.Second)
				sig <- s
			}
		}()
		o.Open.Workdir = "/repo"
		err := c.Print(t.Context(), o)
		Report(&errs, c.Text, err, false)
		p = printed{out.String(), errs.String(), ExitCode(err), f.commands()}
		if f.opened.Approver {
			t.Error("print mode says that somebody answers")
		}
	})
	return p
}

// aTurn emits a turn with a denied call and an answer.
func aTurn(f *fake, c agent.Command) {
	p, ok := c.(agent.Prompt)
	if !ok {
		return
	}
	f.emit(agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnStarted{}, requested(1))
	f.emit(fragments(1, agent.DeltaText, "Let me ", "see.")...)
	first := said("Let me see.", bashCall)
	first.Stop = agent.StopCalls
	denied := decided(bashCall, agent.Deny)
	denied.Decision.Reason = "nobody is there to ask"
	last := said("All is well.\x1b[0m")
	last.Millis = 700
	f.emit(first, denied, agent.CallFinished{Tool: "bash__exec", Result: agent.Failure(agent.ErrDenied, "nobody is there to ask", "")}, last, ended(agent.EndDone))
}

// endsAs emits a turn that ends in a certain way.
func endsAs(e agent.TurnEnded) func(f *fake, c agent.Command) {
	return func(f *fake, c agent.Command) {
		if p, ok := c.(agent.Prompt); ok {
			f.emit(agent.InputAdded{Input: p.ID, Text: p.Text}, agent.TurnStarted{}, e)
		}
	}
}

func TestPrintText(t *testing.T) {
	got := printing(t, PrintOptions{Prompt: "how is it?", Format: FormatText}, nil, aTurn)
	want := printed{
		out: "All is well.\x1b[0m\n", // for programs, as it is
		err: "1 call was denied:\n  Bash go test ./... 2>&1 | tail -n 20 · nobody is there to ask\n" +
			"Nobody was there to ask. Allow tools with --allow, or choose a --permission-mode.\n",
		sent: []string{`prompt {"text":"how is it?"}`},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(printed{})); d != "" {
		t.Error(d)
	}
}

// On a terminal, an answer is text and nothing else.
func TestPrintOnTerminal(t *testing.T) {
	got := printing(t, PrintOptions{Prompt: "how is it?", Format: FormatText, Terminal: true}, nil, aTurn)
	if want := "All is well.␛[0m\n"; got.out != want {
		t.Errorf("%q, want %q", got.out, want)
	}
}

func TestPrintJSON(t *testing.T) {
	got := printing(t, PrintOptions{Prompt: "x", Format: FormatJSON}, nil, aTurn)
	const want = `{"type":"result","subtype":"success","is_error":false,"duration_ms":0,"duration_api_ms":700,"num_turns":2,` +
		`"result":"All is well.\u001b[0m","stop_reason":"end_turn","session_id":"s1","total_cost_usd":0.0246,` +
		`"usage":{"input_tokens":1200,"output_tokens":80,"cache_read_input_tokens":3000,"cache_creation_input_tokens":0},` +
		`"modelUsage":{"opus":{"inputTokens":0,"outputTokens":0,"cacheReadInputTokens":0,"cacheCreationInputTokens":0,"webSearchRequests":0,` +
		`"costUSD":0,"contextWindow":0,"maxOutputTokens":0}},` +
		`"permission_denials":[{"tool_name":"bash__exec","tool_use_id":"c3","tool_input":{"command":"go test ./... 2\u003e\u00261 | tail -n 20"}}],` +
		`"terminal_reason":"completed"}` + "\n"
	if d := cmp.Diff(want, got.out); d != "" || got.code != 0 {
		t.Error(got.code, d)
	}
}

// How turns end, as scripts see it.
func TestPrintEnds(t *testing.T) {
	fail := func(class agent.FailureClass) agent.TurnEnded {
		e := ended(agent.EndFailed)
		e.Fail, e.Error, e.Cost = class, "the words of the service", nil
		return e
	}
	tests := []struct {
		end  agent.TurnEnded
		code int
		json string // subtype is_error terminal_reason cost
		says string
	}{
		{ended(agent.EndDone), 0, "success false completed 0.0246", ""},
		{ended(agent.EndLimit), 8, "error_max_turns true max_turns 0.0246", "limit of 2 steps"},
		{ended(agent.EndInterrupted), 130, "error_during_execution true aborted_streaming 0.0246", "interrupted"},
		{ended(agent.EndRefused), 1, "success true completed 0.0246", "refused"},
		{ended(agent.EndStopped), 3, "error_during_execution true hook_stopped 0.0246", "denied"},
		{fail(agent.FailAuth), 4, "success true api_error null", "dure doctor"},
		{fail(agent.FailQuota), 4, "success true api_error null", "used up"},
		{fail(agent.FailDown), 5, "success true api_error null", "no connection"},
		{fail(agent.FailServer), 1, "success true api_error null", "the words of the service"},
		{fail(agent.FailContext), 1, "success true prompt_too_long null", "too long"},
		{fail(agent.FailNotFound), 2, "success true api_error null", "dure models"},
		{agent.TurnEnded{Reason: agent.EndFailed, Error: "writing: no space"}, 1, "error_during_execution true turn_setup_failed 0.0123", "no space"},
	}
	for _, tt := range tests {
		name := fmt.Sprint(tt.end.Reason, " ", tt.end.Fail)
		got := printing(t, PrintOptions{Prompt: "x", Format: FormatJSON}, nil, endsAs(tt.end))
		var r struct {
			Subtype  string   `json:"subtype"`
			IsError  bool     `json:"is_error"`
			Terminal string   `json:"terminal_reason"`
			Cost     *float64 `json:"total_cost_usd"`
		}
		decodeJSON(t, got.out, &r)
		money := "null"
		if r.Cost != nil {
			money = fmt.Sprintf("%.4f", *r.Cost)
		}
		if s := fmt.Sprint(r.Subtype, " ", r.IsError, " ", r.Terminal, " ", money); s != tt.json {
			t.Errorf("%s: %s, want %s", name, s, tt.json)
		}
		if got.code != tt.code || !strings.Contains(got.err, tt.says) || (tt.says == "" && got.err != "") {
			t.Errorf("%s: exit code %d, want %d; %s", name, got.code, tt.code, got.err)
		}
	}
}

func TestPrintNDJSON(t *testing.T) {
	for live, want := range map[bool]string{
		false: "input.added turn.started model.requested model.answered call.decided call.finished model.answered turn.ended",
		true: "input.added turn.started model.requested model.fragment model.fragment model.answered call.decided call.finished " +
			"model.answered turn.ended",
	} {
		// A session that is gone on with: what was before is not printed again.
		o := PrintOptions{Prompt: "x", Format: FormatNDJSON, Live: live, Open: agent.Open{Session: "s1"}}
		got := printing(t, o, nil, aTurn)
		var kinds []string
		for line := range strings.Lines(got.out) {
			var e agent.Event
			decodeJSON(t, line, &e)
			again, err := e.MarshalJSON()
			if err != nil || string(again)+"\n" != line {
				t.Errorf("%s is not as the log has it", line)
			}
			kinds = append(kinds, e.Kind())
		}
		if d := cmp.Diff(want, strings.Join(kinds, " ")); d != "" {
			t.Error(d)
		}
	}
	first := printing(t, PrintOptions{Prompt: "x", Format: FormatNDJSON}, nil, aTurn)
	if !strings.HasPrefix(first.out, `{"v":1,"seq":1,"ep":1,"ts":"2000-01-01T00:00:00Z","k":"session.opened"`) {
		t.Errorf("a new session begins with %.100s", first.out)
	}
}

// A call that was put aside, and whose tool is not there any more when somebody goes on:
// programs are told, also when the model has an answer to that.
func TestPrintWithoutTheTool(t *testing.T) {
	aside := agent.CallDeferred{Turn: "t1", Step: 1, Call: agent.Call{ID: "c1", Tool: "mcp__a__b"}, By: "hook:command a"}
	for _, tt := range []struct {
		name   string
		result agent.Result
		want   string // terminal_reason and is_error
	}{
		{"gone", agent.Failure(agent.ErrToolNotFound, "Unknown tool: mcp__a__b", ""), "tool_deferred_unavailable true"},
		{"there", agent.OK("fine"), "completed false"},
		{"it fails", agent.Failure(agent.ErrTool, "no", ""), "completed false"},
	} {
		got := printing(t, PrintOptions{Format: FormatJSON, Open: agent.Open{Session: "s1"}}, nil, func(f *fake, c agent.Command) {
			if _, ok := c.(agent.Continue); ok {
				r := tt.result
				r.ID = "c1"
				f.emit(agent.TurnStarted{Attempt: 1}, agent.CallFinished{Result: r, Tool: "mcp__a__b"}, said("Went on."), ended(agent.EndDone))
			}
		}, agent.TurnStarted{Turn: "t1"}, aside)
		var r struct {
			IsError  bool   `json:"is_error"`
			Terminal string `json:"terminal_reason"`
		}
		decodeJSON(t, got.out, &r)
		if s := fmt.Sprint(r.Terminal, " ", r.IsError); s != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, s, tt.want)
		}
	}
}

func TestPrintContinues(t *testing.T) {
	got := printing(t, PrintOptions{Format: FormatText, Open: agent.Open{Session: "s1"}}, nil, func(f *fake, c agent.Command) {
		if _, ok := c.(agent.Continue); ok {
			f.emit(agent.TurnStarted{Attempt: 1}, said("Went on."), ended(agent.EndDone))
		}
	})
	if d := cmp.Diff(printed{out: "Went on.\n", sent: []string{"continue {}"}}, got, cmp.AllowUnexported(printed{})); d != "" {
		t.Error(d)
	}
}

func TestPrintSignals(t *testing.T) {
	hangs := func(f *fake, c agent.Command) {
		switch c := c.(type) {
		case agent.Prompt:
			f.emit(agent.InputAdded{Input: c.ID}, agent.TurnStarted{})
		case agent.Interrupt:
			f.emit(ended(agent.EndInterrupted))
		}
	}
	deaf := func(f *fake, c agent.Command) {
		if _, ok := c.(agent.Prompt); ok {
			hangs(f, c)
		}
	}
	const prompt, stop = `prompt {"text":"x"}`, "interrupt {}"
	for _, tt := range []struct {
		name    string
		signals []os.Signal
		turn    func(*fake, agent.Command)
		want    printed
	}{
		{"one interrupt ends the turn", []os.Signal{os.Interrupt}, hangs, printed{err: "error: interrupted\nGo on later: dure -r s1\n", code: 130, sent: []string{prompt, stop}}},
		{"a second one does not wait", []os.Signal{os.Interrupt, os.Interrupt}, deaf, printed{code: 130, sent: []string{prompt, stop}}},
		{"termination", []os.Signal{syscall.SIGTERM}, hangs, printed{code: 143, sent: []string{prompt}}},
	} {
		got := printing(t, PrintOptions{Prompt: "x", Format: FormatText}, tt.signals, tt.turn)
		if d := cmp.Diff(tt.want, got, cmp.AllowUnexported(printed{})); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestPrintLosesSession(t *testing.T) {
	got := printing(t, PrintOptions{Prompt: "x", Format: FormatText}, nil, func(f *fake, _ agent.Command) {
		f.Close(t.Context(), "s1")
	})
	if got.code != 1 || got.err != "error: the session ended before its turn did\n" {
		t.Errorf("%+v", got)
	}
}

// From the first second on a terminal is told what goes on, and the line is
// gone when the answer comes.
func TestPrintProgress(t *testing.T) {
	got := printing(t, PrintOptions{Prompt: "x", Format: FormatText, Progress: true, Verbose: true, Columns: func() int { return 40 }}, nil, func(f *fake, c agent.Command) {
		p, ok := c.(agent.Prompt)
		if !ok {
			return
		}
		f.emit(agent.InputAdded{Input: p.ID}, agent.TurnStarted{}, requested(1))
		go func() {
			time.Sleep(1500 * time.Millisecond)
			f.emit(decided(readCall, agent.Allow), agent.CallStarted{ID: "c1", Tool: "file-system__read"})
			time.Sleep(time.Second)
			f.emit(agent.CallFinished{Tool: "file-system__read", Result: agent.Result{ID: "c1", Status: agent.StatusOK}}, ended(agent.EndDone))
		}()
	})
	const want = "\r\x1b[K1.0 s · step 1 · waiting for the model" + "\r\x1b[K2.0 s · step 1 · Read" + "\r\x1b[K" + "Read src/한글.go · no output\n"
	if d := cmp.Diff(want, got.err); d != "" {
		t.Error(d)
	}
}

func TestExitCode(t *testing.T) {
	wrap := func(c agent.ProblemCode) error { return fmt.Errorf("opening: %w", &agent.Problem{Code: c}) }
	for err, want := range map[error]int{
		nil:                                      0,
		errors.New("x"):                          1,
		wrap(agent.ProblemUsage):                 2,
		wrap(agent.ProblemSettings):              2,
		wrap(agent.ProblemModel):                 2,
		wrap(agent.ProblemWorkdir):               2,
		wrap(agent.ProblemOver):                  2,
		wrap(agent.ProblemOver):                  2,
		wrap(agent.ProblemNoKey):                 4,
		wrap(agent.ProblemAuth):                  4,
		wrap(agent.ProblemEndpoint):              5,
		wrap(agent.ProblemOwned):                 6,
		wrap(agent.ProblemDamaged):               6,
		wrap(agent.ProblemMissing):               6,
		wrap(agent.ProblemUnclear):               6,
		wrap(agent.ProblemVersion):               6,
		wrap(agent.ProblemHome):                  7,
		wrap(agent.ProblemDisk):                  7,
		wrap(agent.ProblemProvider):              1,
		wrap(agent.ProblemInternal):              1,
		&Exited{Code: 130}:                       130,
		&agent.ModelError{Class: agent.FailDown}: 5,
	} {
		if got := ExitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestReport(t *testing.T) {
	for _, tt := range []struct {
		lang string
		err  error
		want string
	}{
		{"en", &agent.Problem{Code: agent.ProblemNoKey, Message: "no key\x1b[2J", Fix: "set it"}, "error: no key␛[2J\nSet it\n"},
		{"ko", &agent.Problem{Code: agent.ProblemNoKey, Message: "no key", Fix: "set it", Args: map[string]string{"provider": "Anthropic", "name": "anthropic", "variable": "KEY"}}, "오류: Anthropic 키가 없습니다\ndure login anthropic 명령으로 저장하거나 KEY 환경 변수를 설정하세요. 키 없이 보려면: dure demo\n"},
		{"en", errors.New("odd"), "error: odd\n"},
		{"en", &Exited{Code: 1, Err: errors.New("shown already")}, ""},
		{"en", nil, ""},
	} {
		var b bytes.Buffer
		Report(&b, text.For(tt.lang), tt.err, false)
		if b.String() != tt.want {
			t.Errorf("%q, want %q", b.String(), tt.want)
		}
	}
}
