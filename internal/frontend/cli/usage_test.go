package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func spentOn(name string, requests int, cost agent.Money, unpriced int) query.UsageRow {
	return query.UsageRow{
		Name: name, Requests: requests, Cost: cost, Unpriced: unpriced,
		Usage: agent.Usage{Input: 1200 * requests, Output: 80 * requests, CacheRead: 34_000 * requests, CacheWrite: 900},
	}
}

func usageOf(by string, rows ...query.UsageRow) query.UsageSummary {
	sum := query.UsageSummary{By: by, Rows: rows, Sessions: 3}
	for _, r := range rows {
		sum.Total.Requests += r.Requests
		sum.Total.Usage = sum.Total.Usage.Add(r.Usage)
		sum.Total.Cost += r.Cost
		sum.Total.Unpriced += r.Unpriced
	}
	return sum
}

// Every list, in terminals of every width and in both languages. Nothing is wider
// than its terminal, from 50 columns on.
func TestListsAtWidths(t *testing.T) {
	five, fifteen := 5.0, 15.0
	sum := usageOf(
		"project", spentOn("/home/나그네/밭/두레 👨‍👩‍👧", 12, 3_250_000_000, 0), spentOn("/srv/a-rather-long-name-of-a-project", 3, 400_000_000, 2), spentOn("/x", 1, 0, 1),
	)
	sum.Skipped = []string{"s9"}
	f := newFake()
	f.answers = map[string]any{
		"usage": sum,
		"sessions": agent.SessionList{More: 9950, Sessions: []agent.SessionInfo{
			{ID: "0193b5a2-7f3e-7c11-9d2a-3f9f6a1b2c3d", Title: "실패하는 테스트를 고치고 이유를 설명해 줘", Status: "idle", Updated: "2026-01-02T11:59:30Z", Turns: 3},
		}},
		"models":    []agent.ModelInfo{{ID: "opus", Provider: "anthropic", Aliases: []string{"o"}, Window: 200_000, MaxOut: 64_000, Price: &agent.Price{Input: &five, Output: &fifteen}}},
		"providers": []query.ProviderInfo{{Name: "anthropic", Type: "anthropic", URL: "https://api.example/v1", Key: "environment (A_KEY)"}, {Name: "here", Type: "chat", URL: "http://127.0.0.1:1", Local: true}},
		"diagnose": []query.Finding{
			{Group: "configured", Name: "data", State: "ok", Code: "data.ok", Args: map[string]string{"path": "/home/나그네/.local/share/dure"}},
			{Group: "enforced", Name: "sandbox", State: "warn", Code: "sandbox.none"},
			{Group: "machine", Name: "clock", State: "fail", Code: "clock.fail", Args: map[string]string{"seconds": "412"}},
		},
	}
	for _, lang := range []string{"en", "ko"} {
		var all strings.Builder
		for _, columns := range []int{20, 50, 80, 200, 0} {
			for _, list := range []struct {
				name string
				run  func(c *CLI) error
			}{
				{"usage", func(c *CLI) error {
					return c.Usage(t.Context(), UsageOptions{By: "project", Home: "/home/나그네"})
				}},
				{"chart", func(c *CLI) error {
					return c.Usage(t.Context(), UsageOptions{By: "project", Home: "/home/나그네", Chart: true})
				}},
				{"sessions", func(c *CLI) error { return c.Sessions(t.Context(), agent.ListSessions{}, false) }},
				{"models", func(c *CLI) error { return c.Models(t.Context(), ModelsOptions{}) }},
				{"providers", func(c *CLI) error { return c.Providers(t.Context(), false) }},
				{"doctor", func(c *CLI) error { return c.Doctor(t.Context(), nil, false) }},
			} {
				c, out := lister(f, lang)
				c.Columns = func() int { return columns }
				if err := list.run(c); err != nil && ExitCode(err) != ExitFailed {
					t.Errorf("%s: %v", list.name, err)
				}
				fmt.Fprintf(&all, "=== %s, %d columns\n%s", list.name, columns, out)
				for line := range strings.Lines(out.String()) {
					if w := text.Width(strings.TrimRight(line, "\n")); columns >= 50 && w > columns && !strings.Contains(line, ":") {
						t.Errorf("%s at %d columns: %d wide: %s", list.name, columns, w, line)
					}
				}
			}
		}
		golden(t, "lists-"+lang+".txt", all.String())
	}
}

// A chart is drawn with what the terminal can show.
func TestChartInASCII(t *testing.T) {
	f := newFake()
	f.answers = map[string]any{"usage": usageOf("day", spentOn("2026-01-01", 4, 1_000_000_000, 0), spentOn("2026-01-02", 1, 10_000_000, 0))}
	c, out := lister(f, "en")
	c.Plain, c.Columns = true, func() int { return 40 }
	if err := c.Usage(t.Context(), UsageOptions{By: "day", Chart: true}); err != nil {
		t.Fatal(err)
	}
	want := "2026-01-01  $1.0000  ##################\n2026-01-02  $0.0100  #\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}

func TestUsageAsJSON(t *testing.T) {
	want := usageOf("day", spentOn("2026-01-01", 4, 1_000_000_000, 0))
	f := newFake()
	f.answers = map[string]any{"usage": want}
	c, out := lister(f, "ko")
	if err := c.Usage(t.Context(), UsageOptions{By: "day", JSON: true}); err != nil {
		t.Fatal(err)
	}
	var got query.UsageSummary
	decodeJSON(t, out.String(), &got)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestCheckModel(t *testing.T) {
	cents := agent.Money(12_000_000)
	for _, tt := range []struct {
		name, lang string
		check      query.ModelCheck
		want       string
		code       int
	}{
		{
			"answers", "en",
			query.ModelCheck{Model: "opus", URL: "https://a", OK: true, Millis: 900, First: 400, Usage: agent.Usage{Input: 14, Output: 2}, Cost: &cents},
			"opus at https://a answers: in 900 ms, its first word after 400 ms, 14 in / 2 out, $0.0120\n", ExitOK,
		},
		{
			"key", "ko",
			query.ModelCheck{Model: "opus", URL: "https://a", Class: agent.FailAuth, Error: "auth (HTTP 401): no"},
			"https://a의 opus: 모델 서비스가 키를 받아들이지 않습니다\n  auth (HTTP 401): no\n키와 계정을 확인하세요. 키의 출처는 dure doctor가 보여 줍니다.\n", ExitKey,
		},
		{
			"busy", "en",
			query.ModelCheck{Model: "opus", URL: "https://a", Class: agent.FailRate, Error: "slow\x1b[2J down"},
			"opus at https://a: the model's service limits how much you may ask\n  slow␛[2J down\nWait a little, and try again.\n", ExitFailed,
		},
		{
			"down", "en",
			query.ModelCheck{Model: "opus", URL: "https://a", Class: agent.FailDown, Error: "refused"},
			"opus at https://a: no connection to the model's service\n  refused\nCheck the base URL, the network and the proxy: dure doctor.\n", ExitUnreachable,
		},
	} {
		f := newFake()
		f.answers = map[string]any{"models.check": tt.check}
		c, out := lister(f, tt.lang)
		if code := ExitCode(c.CheckModel(t.Context(), "", false)); code != tt.code {
			t.Errorf("%s: exit code %d, want %d", tt.name, code, tt.code)
		}
		if d := cmp.Diff(tt.want, out.String()); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

// Errors are objects where the output is one, with the code that stays.
func TestReportJSON(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{&agent.Problem{Code: agent.ProblemModel, Message: "no <model>", Fix: "take another"}, `{"error":{"code":"unknown-model","message":"no <model>","fix":"Take another"}}`},
		{&agent.ModelError{Class: agent.FailQuota, Message: "paid up"}, `{"error":{"code":"quota","message":"the account at the model's service is used up: quota: paid up","fix":"Top the account up, or use another key or model."}}`},
		{context.Canceled, `{"error":{"code":"interrupted","message":"context canceled"}}`},
		{errors.New("odd"), `{"error":{"code":"internal","message":"odd"}}`},
	} {
		var b bytes.Buffer
		Report(&b, text.For("en"), tt.err, true)
		if d := cmp.Diff(tt.want+"\n", b.String()); d != "" {
			t.Error(d)
		}
	}
}

// What takes more than a second says so on a terminal, and leaves nothing behind.
func TestBusy(t *testing.T) {
	for _, tt := range []struct {
		on   bool
		took time.Duration
		want string
	}{
		{true, 2500 * time.Millisecond, "\r\x1b[Kreading the logs · 1.0 s\r\x1b[Kreading the logs · 2.0 s\r\x1b[K"},
		{true, 900 * time.Millisecond, ""},
		{false, time.Minute, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			var b bytes.Buffer
			c := New(Config{Text: text.For("en"), Err: &b, Now: time.Now, Progress: tt.on})
			stop := c.busy(text.BusyUsage)
			time.Sleep(tt.took)
			stop()
			if d := cmp.Diff(tt.want, b.String()); d != "" {
				t.Error(d)
			}
		})
	}
}

// Tasks that run on when print mode ends are named.
func TestPrintPending(t *testing.T) {
	turn := func(f *fake, c agent.Command) {
		p, ok := c.(agent.Prompt)
		if !ok {
			return
		}
		pending := func(id, handle string) agent.CallFinished {
			return agent.CallFinished{Tool: "bash__exec", Result: agent.Result{ID: id, Status: agent.StatusPending, Handle: handle}}
		}
		server, build := call("j1", "bash__exec", `{"command":"serve"}`), call("j2", "bash__exec", `{"command":"build"}`)
		f.emit(agent.InputAdded{Input: p.ID}, agent.TurnStarted{}, requested(1), said("", server, build),
			decided(server, agent.Allow), decided(build, agent.Allow), pending("j1", "job:1"), pending("j2", "job:2"),
			agent.CallSettled{Handle: "job:2", ID: "j2"}, said("Started."), ended(agent.EndDone))
	}
	p := printing(t, PrintOptions{Prompt: "go", Format: FormatText}, nil, turn)
	want := "1 background task still ran and was stopped: Bash serve\nLine mode lets them run on while it is open: dure -r s1\n"
	if d := cmp.Diff(want, p.err); d != "" || p.code != ExitOK {
		t.Errorf("exit code %d, %s", p.code, d)
	}
}

// Agents that a turn has handed work to are waited for, and what is said then is the answer;
// an interrupt ends that wait, and what has been said stands.
func TestPrintWaitsForAgents(t *testing.T) {
	back := func(f *fake) {
		f.emit(agent.CallSettled{Handle: "child:1", ID: "j1"}, agent.InputAdded{Input: "settled:child:1"}, agent.TurnStarted{}, requested(1), said("It is built."), ended(agent.EndDone))
	}
	for name, tt := range map[string]struct {
		signals  []os.Signal
		back     bool
		out, err string
	}{
		"comes back":  {nil, true, "It is built.\n", ""},
		"interrupted": {[]os.Signal{os.Interrupt}, false, "Handed over.\n", "1 background task still ran and was stopped: Agent build\nLine mode lets them run on while it is open: dure -r s1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := printing(t, PrintOptions{Prompt: "go", Format: FormatText}, tt.signals, func(f *fake, c agent.Command) {
				p, ok := c.(agent.Prompt)
				if !ok {
					return
				}
				build := call("j1", "Agent", `{"description":"build"}`)
				f.emit(agent.InputAdded{Input: p.ID}, agent.TurnStarted{}, requested(1), said("", build), decided(build, agent.Allow),
					agent.CallFinished{Tool: "Agent", Result: agent.Result{ID: "j1", Status: agent.StatusPending, Handle: "child:1"}},
					said("Handed over."), ended(agent.EndDone))
				if tt.back {
					back(f)
				}
			})
			if p.out != tt.out || p.err != tt.err || p.code != ExitOK {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestAccountLines(t *testing.T) {
	c, out := lister(newFake(), "en")
	for _, err := range []error{
		c.LoggedIn("openai", "keychain", "", false), c.LoggedIn("openai", "file", "OPENAI_API_KEY", false), c.LoggedOut("openai", true, false),
		c.LoggedOut("openai", false, true),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	want := "The key of openai is kept in the keychain of the system.\n" +
		"The key of openai is kept in the file credentials.json, which only you can read.\nOPENAI_API_KEY is set too, and is stronger.\n" +
		"The key of openai is forgotten.\n{\n  \"provider\": \"openai\",\n  \"removed\": false\n}\n"
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
