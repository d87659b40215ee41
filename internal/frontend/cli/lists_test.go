package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

func decodeJSON(t *testing.T, s string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), v); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
}

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func lister(f *fake, lang string) (*CLI, *bytes.Buffer) {
	var out bytes.Buffer
	return New(Config{
		Client: f.client(), Text: text.For(lang), In: strings.NewReader("2\nrest"), Out: &out, Err: &out,
		Now: func() time.Time { return noon },
	}), &out
}

func TestLists(t *testing.T) {
	five, fifteen := 5.0, 15.0
	money := agent.Money(1_500_000_000)
	f := newFake()
	f.answers = map[string]any{
		"sessions": agent.SessionList{More: 7, Sessions: []agent.SessionInfo{
			{ID: "s1", Title: "고치기\x1b[2J", Status: "idle", Updated: "2026-01-02T11:59:30Z", Turns: 3, Cost: &money},
			{ID: "s22", Title: "other", Status: "interrupted", Updated: "2026-01-02T10:00:00Z", Turns: 12},
		}},
		"models": []agent.ModelInfo{
			{ID: "opus", Provider: "anthropic", Aliases: []string{"o"}, Window: 200_000, MaxOut: 64_000, Price: &agent.Price{Input: &five, Output: &fifteen}},
			{ID: "own", Provider: "here"},
		},
		"diagnose": []query.Finding{
			{Name: "key", State: "fail", Detail: "there is none", Fix: "set it"}, {Name: "home", State: "ok", Detail: "/h"}, {Name: "git", State: "warn", Detail: "old"},
		},
		"session":       agent.SessionInfo{ID: "s1"},
		"verify":        agent.SealReport{Session: "s1", OK: true, Events: 40, Seals: 1, Open: 2},
		"replay.verify": agent.ReplayReport{Session: "s1", At: 7, Problem: "the system prompt differs"},
	}
	for _, tt := range []struct {
		name string
		lang string
		run  func(c *CLI) error
		want string
		code int
	}{
		{"sessions", "en", func(c *CLI) error { return c.Sessions(t.Context(), agent.ListSessions{}, false) }, "" +
			"ID   CHANGED   STATE        TURNS  COST     TITLE\n" +
			"s1   30 s ago  idle         3      $1.5000  고치기␛[2J\n" +
			"s22  2 h 0 min ago  interrupted  12     -        other\n" +
			"7 more: --limit 0 lists them; --all does, with those put away\n", 0},
		{"models", "ko", func(c *CLI) error { return c.Models(t.Context(), ModelsOptions{}) }, "" +
			"모델      제공자     컨텍스트   출력  백만 토큰당 $ 입력/출력\n" +
			"opus (o)  anthropic      200k  64.0k  5/15\n" +
			"own       here              -      -  알 수 없음\n", 0},
		{"doctor", "en", func(c *CLI) error { return c.Doctor(t.Context(), nil, false) }, "" +
			"fail  key   there is none\n            mend: set it\nok    home  /h\nwarn  git   old\n1 fault, 1 warning\n", 1},
		{"verify", "en", func(c *CLI) error { return c.Verify(t.Context(), "", "/", false) }, "s1: 40 events, 1 seal, unchanged\n2 events after the last seal\n", 0},
		{"replay", "en", func(c *CLI) error { return c.Replay(t.Context(), "s1", "", false) }, "s1: event 7 is not what follows from those before it: the system prompt differs\n", 1},
		{
			"replay as JSON", "en", func(c *CLI) error { return c.Replay(t.Context(), "s1", "", true) },
			"{\n  \"session\": \"s1\",\n  \"ok\": false,\n  \"requests\": 0,\n  \"at\": 7,\n  \"problem\": \"the system prompt differs\"\n}\n", 1,
		},
		{"pick", "en", func(c *CLI) error {
			id, err := c.Pick(t.Context(), "/")
			if id != "s22" {
				t.Errorf("picked %s", id)
			}
			return err
		}, " 1.  고치기␛[2J  30 s ago       s1\n 2.  other       2 h 0 min ago  s22\n7 more are listed by: dure sessions --limit 0\nNumber of the session: ", 0},
	} {
		c, out := lister(f, tt.lang)
		if code := ExitCode(tt.run(c)); code != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, code, tt.code)
		}
		want := tt.want
		if tt.name == "sessions" { // the longest cell rules
			want = strings.ReplaceAll(strings.ReplaceAll(want, "CHANGED   ", "CHANGED        "), "30 s ago  ", "30 s ago       ")
		}
		if d := cmp.Diff(want, out.String()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestShow(t *testing.T) {
	f := newFake()
	f.answers = map[string]any{"session": agent.SessionInfo{ID: "s1", Workdir: "/repo"}}
	f.emit(agent.InputAdded{Input: "i", Text: "fix\nit\x1b[2J"}, agent.TurnStarted{Turn: "t1"}, requested(1))
	f.emit(fragments(1, agent.DeltaText, "live")...)
	f.emit(said("I'll look.", readCall), decided(readCall, agent.Allow), agent.CallStarted{ID: "c1", Tool: "file-system__read", Class: agent.Read},
		agent.CallFinished{Tool: "file-system__read", Millis: 12, Result: agent.Result{ID: "c1", Status: agent.StatusOK, Text: "a\nb"}},
		agent.Note{Level: "warn", Text: "careful"}, ended(agent.EndDone), agent.LogSealed{From: 1, To: 9, Hash: "h"},
		agent.Unknown{Name: "from.the.future", Raw: json.RawMessage(`{"x":1}`)})
	for i := range f.all {
		f.all[i].Time = noon.Local()
	}
	f.closed = true
	c, out := lister(f, "en")
	if err := c.Show(t.Context(), "s1", "", false); err != nil {
		t.Fatal(err)
	}
	golden(t, "show.txt", strings.ReplaceAll(out.String(), noon.Local().Format(time.TimeOnly), "12:00:00"))
	out.Reset()
	if err := c.Show(t.Context(), "s1", "", true); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != int(f.seq) || strings.Contains(out.String(), "fragment") {
		t.Errorf("%d lines of %d\n%s", n, f.seq, out.String())
	}
	f.answers = nil
	if err := c.Show(t.Context(), "nothing", "", false); ExitCode(err) != ExitSession {
		t.Error(err)
	}
}

func TestMainArg(t *testing.T) {
	for _, tt := range []struct{ tool, input, want string }{
		{"bash__exec", `{"command":"a\nb\t c","description":"x"}`, "Bash a b c"},
		{"file-system__read", `{"file_path":"/repo/a/b.go","limit":3}`, "Read a/b.go"},
		{"file-system__read", `{"file_path":"/etc/passwd"}`, "Read /etc/passwd"},
		{"file-system__grep", `{"pattern":"x","path":"/repo"}`, "Grep x"},
		{"file-system__multi-edit", `{"file_path":"/repo/x","edits":[]}`, "Edit x"},
		{"todo__write", `{"todos":[{"content":"a","status":"completed"},{"content":"b","status":"in_progress"}]}`, "Todo 1/2 b"},
		{"user__ask", `{"questions":[{"question":"Which?"},{"question":"Why?"}],"answers":{"Which?":"Left"}}`, "Question Which? Left; Why?"},
		{"mcp__github__list_prs", `{}`, "github/list_prs"},
		{"memory__append", `{"note":"The port is 80.","scope":"user"}`, "MemoryAppend The port is 80."},
		{"odd__tool", `{"n":1}`, `odd__tool {"n":1}`},
		{"odd\x1b", `[1]`, "odd␛"},
		{"bash__exec", `{"command":7}`, `Bash {"command":7}`},
	} {
		if got := callLine(call("c", tt.tool, tt.input), "/repo"); got != tt.want {
			t.Errorf("%s %s: %q, want %q", tt.tool, tt.input, got, tt.want)
		}
	}
}

func TestContextLines(t *testing.T) {
	r := agent.ContextReport{Used: 30_000, Window: 100_000, Ratio: .3, Parts: []agent.ContextPart{
		{Name: "system_prompt", Tokens: 4_000, Parts: []agent.ContextPart{{Name: "identity", Tokens: 1_000}, {Name: "current-state", Tokens: 3_000}}}, {Name: "memory_files", Tokens: 200}, {Name: "messages", Tokens: 26_000}, {Name: "autocompact_buffer", Tokens: 20_000}, {Name: "free_space", Tokens: 50_000},
	}}
	got := strings.Join(append(contextLines(text.For("en"), r, 80), contextLines(text.For("ko"), r, 80)...), "\n") + "\n"
	golden(t, "context.txt", got)
}
