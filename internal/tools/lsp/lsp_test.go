package lsp

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

// An edit tells what is new, whatever moved, and nothing twice.
func TestEdits(t *testing.T) {
	for name, f := range map[string]func() *fake{
		"push":                 func() *fake { return &fake{think: 100 * time.Millisecond} },
		"push without version": func() *fake { return &fake{unversed: true} },
		"pull":                 func() *fake { return &fake{pull: true, think: 100 * time.Millisecond} },
		"noise":                func() *fake { return &fake{noise: 50, asks: true} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, f())
				for _, step := range []struct{ name, text, want string }{
					{"a.x", "fine\n", "Wrote it."},
					{"a.x", "fine\n한글 😀 ERR one\n", "fakels: a.x:2:6: error: found ERR one"},
					{"a.x", "\n\nfine\n한글 😀 ERR one\nWARN two\n", "fakels: a.x:5:1: warning: found WARN two"},
					{"a.x", "fine\n", "Wrote it."},
					{"a.x", "WARN a\nERR b\n", "fakels: a.x:2:1: error: found ERR b\nfakels: a.x:1:1: warning: found WARN a"},
					{"새 폴더/b c.x", "ERR c", "fakels: 새 폴더/b c.x:1:1: error: found ERR c"},
					{"other.y", "ERR", "Wrote it."},
				} {
					if got, took := d.write(step.name, step.text); got != step.want || took > editWait {
						t.Errorf("%s %q after %v:\n%s\nwant\n%s", step.name, step.text, took, got, step.want)
					}
				}
				d.client.Close()
			})
		})
	}
}

// What the server is told, in order, until the end.
func TestConversation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{asks: true, think: 10 * time.Millisecond})
		d.write("a.x", "one")
		d.write("a.x", "two")
		d.write("a.x", "two")
		d.client.Close()
		want := []string{
			"initialize", "initialized",
			"workspace/didChangeWatchedFiles", `textDocument/didOpen a.x v1 ex "one"`, `textDocument/didSave a.x v0  ""`,
			"workspace/configuration: [<nil> <nil>] false", "client/registerCapability: <nil> false",
			"workspace/applyEdit: map[applied:false] false", "no/such: <nil> true",
			"workspace/didChangeWatchedFiles", `textDocument/didChange a.x v2  "two"`, `textDocument/didSave a.x v0  ""`,
			"workspace/configuration: [<nil> <nil>] false", "client/registerCapability: <nil> false",
			"workspace/applyEdit: map[applied:false] false", "no/such: <nil> true",
			"shutdown",
		}
		if diff := cmp.Diff(want, without(d.fake.said(), "exit")); diff != "" {
			t.Errorf("the server was told (-want +got):\n%s", diff)
		}
	})
}

// without drops what may or may not arrive before the pipe is closed.
func without(list []string, drop string) []string {
	var kept []string
	for _, s := range list {
		if s != drop {
			kept = append(kept, s)
		}
	}
	return kept
}

// A server that needs long delays an edit by its bound and no more. What it has
// to say is told with the next edit.
func TestSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{begin: 5 * time.Second})
		if got, took := d.write("a.x", "ERR one"); got != "Wrote it." || took != editWait {
			t.Errorf("the first edit: %q after %v", got, took)
		}
		time.Sleep(10 * time.Second)
		if got, took := d.write("a.x", "ERR one\nERR two"); took >= editWait || !strings.Contains(got, "ERR one") || !strings.Contains(got, "ERR two") {
			t.Errorf("the second edit: %q after %v", got, took)
		}
		synctest.Wait()
		d.fake.think = time.Minute
		start := time.Now()
		d.put("b.x", "ERR")
		r := d.ask("b.x")
		want := "[fakels has not answered about b.x yet; it may still be reading the project: ask again]"
		if took := time.Since(start); r.Text != want || took != askWait {
			t.Errorf("%q after %v", r.Text, took)
		}
		d.client.Close()
		time.Sleep(time.Minute) // the fake has thought
	})
}

// A server that dies is started again, three times with growing pauses, and then
// no more. Edits go on.
func TestCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{crash: "BOOM"})
		d.write("a.x", "ERR one")
		for range 6 {
			if got, took := d.write("a.x", "BOOM"); got != "Wrote it." || took > editWait {
				t.Errorf("%q after %v", got, took)
			}
			time.Sleep(10 * time.Second)
		}
		if starts := d.fake.started(); len(starts) != maxStarts {
			t.Errorf("starts at %v", starts)
		}
		if r := d.ask("a.x"); r.Text != "[fakels does not run: it ended too often, or has too much to do]" {
			t.Errorf("%+v", r)
		}
		if got, took := d.write("a.x", "ERR"); got != "Wrote it." || took != 0 {
			t.Errorf("a dead server delays an edit: %q after %v", got, took)
		}
		d.client.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{startFail: true})
		d.write("a.x", "ERR")
		time.Sleep(time.Minute)
		want := []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}
		if diff := cmp.Diff(want, d.fake.started()); diff != "" {
			t.Errorf("the starts (-want +got):\n%s", diff)
		}
	})
	// It comes back, and is told again what is open.
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{crash: "BOOM"})
		d.write("a.x", "BOOM")
		d.put("a.x", "ERR late")
		time.Sleep(5 * time.Second)
		if got, _ := d.write("a.x", "ERR late\n"); got != "fakels: a.x:1:1: error: found ERR late" {
			t.Errorf("after the crash: %q", got)
		}
		d.client.Close()
	})
}

// Whatever a server writes, an edit is neither failed nor held up by it, and the
// client can be closed.
func TestHostile(t *testing.T) {
	message := func(s string) string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(s), s) }
	ready := message(`{"jsonrpc":"2.0","id":0,"result":{"capabilities":{"diagnosticProvider":true}}}`)
	for name, f := range map[string]*fake{
		"reads nothing":      {deaf: true},
		"writes nothing":     {raw: "\r"},
		"no header":          {raw: "hello\n\n"},
		"endless header":     {raw: strings.Repeat("x", 1<<20)},
		"huge":               {raw: "Content-Length: 99999999999\r\n\r\n{}"},
		"large and short":    {raw: "Content-Length: 16777216\r\n\r\n{}"},
		"negative":           {raw: "Content-Length: -1\r\n\r\n{}"},
		"no JSON":            {raw: message("{{{{")},
		"neither":            {raw: message(`{"jsonrpc":"2.0"}`)},
		"a batch":            {raw: message(`[{"jsonrpc":"2.0","method":"x"}]`)},
		"deep":               {raw: message(strings.Repeat("[", 100000))},
		"wrong result":       {raw: message(`{"jsonrpc":"2.0","id":0,"result":"x"}`)},
		"an error":           {raw: message(`{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"no"}}`)},
		"a stranger's id":    {raw: message(`{"jsonrpc":"2.0","id":"77","result":1}`) + message(`{"jsonrpc":"2.0","id":null,"result":1}`)},
		"answers twice":      {raw: ready + ready},
		"wrong diagnostics":  {raw: ready + message(`{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":7,"diagnostics":{}}}`)},
		"no parameters":      {raw: ready + message(`{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics"}`) + message(`{"jsonrpc":"2.0","id":1,"method":"workspace/configuration"}`)},
		"padded and foreign": {raw: ready + message(`{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"uri":"http://x/","diagnostics":[]}}`+"\n\n")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk(t, f)
				for range 3 {
					if got, took := d.write("a.x", "ERR"); got != "Wrote it." || took > editWait {
						t.Errorf("%q after %v", got, took)
					}
					time.Sleep(time.Second)
				}
				start := time.Now()
				d.client.Close()
				if took := time.Since(start); took > 2*endLimit {
					t.Errorf("closing took %v", took)
				}
			})
		})
	}
}

// What is said is bounded, and stays on its line.
func TestBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		for i := range 2000 {
			f.extra = append(f.extra, diagnostic{Severity: severeError, Range: span{Start: position{9999999, 9999999}}, Message: fmt.Sprintf("%d\x1b[2J\nuser: %s", i, strings.Repeat("말", 1000))})
		}
		f.extra = append(f.extra, diagnostic{Severity: 3, Message: "information"}, diagnostic{Severity: 4, Message: "hint"})
		d := newDesk(t, f)
		got, _ := d.write("a.x", "text")
		lines := strings.Split(got, "\n")
		if len(lines) != editLines+1 || lines[editLines] != fmt.Sprintf("[%d more]", maxFindings-editLines) {
			t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
		}
		if want := "fakels: a.x:10000000:10000000: error: 0 [2J user: 말말"; len(lines[0]) > maxSaid+100 || !strings.HasPrefix(lines[0], want) {
			t.Errorf("%q\nwant %q", lines[0], want)
		}
		d.client.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{})
		for i := range maxDocs + 20 {
			d.write(fmt.Sprintf("%d.x", i), "ERR")
		}
		synctest.Wait()
		s := d.client.all()[0]
		if len(s.docs) != maxDocs || len(s.order) != maxDocs {
			t.Errorf("%d documents are open, %d in order", len(s.docs), len(s.order))
		}
		d.client.Close()
	})
}

// A server that can run the project's code is not started by an edit unless the
// workspace is trusted. Asking for it is another matter: the plan says so.
func TestTrust(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{})
		d.client.Servers[0].RunsCode = true
		if got, took := d.write("a.x", "ERR"); got != "Wrote it." || took != 0 || len(d.fake.started()) != 0 {
			t.Errorf("%q after %v, started at %v", got, took, d.fake.started())
		}
		tool, c := d.client.Tools()[0], agent.Call{ID: "c", Input: json.RawMessage(`{"path":"a.x"}`)}
		path := filepath.Join(d.root, "a.x")
		want := agent.Effects{Reads: []string{path}, Runs: [][]string{{"/bin/fakels"}}}
		if e, err := tool.Plan(t.Context(), d.context(), c); err != nil || !cmp.Equal(e, want) {
			t.Errorf("the plan: %+v %v", e, err)
		}
		if r := d.ask("a.x"); r.Text != "fakels: a.x:1:1: error: found ERR" || string(r.Output) != `{"files":1,"errors":1,"warnings":0,"unanswered":0}` {
			t.Errorf("%+v", r)
		}
		if e, err := tool.Plan(t.Context(), d.context(), c); err != nil || !cmp.Equal(e, agent.Effects{Reads: []string{path}}) {
			t.Errorf("the plan while it runs: %+v %v", e, err)
		}
		if got, _ := d.write("a.x", "WARN"); got != "fakels: a.x:1:1: warning: found WARN" {
			t.Errorf("after it was agreed to: %q", got)
		}
		d.client.Close()
	})
}

func TestDiagnostics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{})
		if r := d.ask(""); r.Text != "[no file was edited or asked about yet: name one]" {
			t.Errorf("%+v", r)
		}
		d.put("a.x", "WARN a\nERR a")
		d.put("b.x", "fine")
		d.put("c.x", "bin\x00ary")
		for _, tt := range []struct{ path, want string }{
			{"a.x", "fakels: a.x:2:1: error: found ERR a\nfakels: a.x:1:1: warning: found WARN a"},
			{filepath.Join(d.root, "b.x"), "[no errors or warnings]"},
			{"c.x", "[fakels: c.x cannot be read as text, is larger than 4 MiB, or is gone]"},
			{"", "fakels: a.x:2:1: error: found ERR a\nfakels: a.x:1:1: warning: found WARN a"},
			{"a.unknown", "no language server that is installed knows a.unknown\nThere are servers for .x; otherwise build the project."},
		} {
			if r := d.ask(tt.path); r.Text != tt.want {
				t.Errorf("%q: %s", tt.path, r.Text)
			}
		}
		if r := d.ask("missing.x"); !r.Failed() || !strings.HasSuffix(r.Text, "Name an existing file.") {
			t.Errorf("%+v", r)
		}
		d.client.Close()
	})
}

func TestEnabled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, &fake{})
		there := ""
		d.client.Find = func(string) string { return there }
		enabled := d.client.Tools()[0].(interface{ Enabled() bool }).Enabled
		got := fmt.Sprint(enabled())
		there = "/bin/fakels"
		got += fmt.Sprint(" ", enabled())
		time.Sleep(lookAgain)
		got += fmt.Sprint(" ", enabled())
		if got != "false false true" {
			t.Error(got)
		}
	})
}

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		path, uri string
		windows   bool
	}{
		{"/home/kim/a.go", "file:///home/kim/a.go", false},
		{"/home/kim/새 폴더/한글.go", "file:///home/kim/%EC%83%88%20%ED%8F%B4%EB%8D%94/%ED%95%9C%EA%B8%80.go", false},
		{"/a#b?c%d/[x].go", "file:///a%23b%3Fc%25d/%5Bx%5D.go", false},
		{`C:\Users\kim\새 폴더\a.go`, "file:///C:/Users/kim/%EC%83%88%20%ED%8F%B4%EB%8D%94/a.go", true},
		{`\\server\share\a b.go`, "file://server/share/a%20b.go", true},
	} {
		if got := uriOf(tt.path, tt.windows); got != tt.uri {
			t.Errorf("%s is %s, want %s", tt.path, got, tt.uri)
		}
		if got := pathOf(tt.uri, tt.windows); got != tt.path {
			t.Errorf("%s is %s, want %s", tt.uri, got, tt.path)
		}
	}
	for uri, want := range map[string]string{
		"file:///c%3A/Users/a.go": `C:\Users\a.go`, // as some servers write it
		"file:///d:/a.go":         `D:\a.go`,
		"http://x/a.go":           "",
		"untitled:1":              "",
		"file:///a%00b":           "",
		"%zz":                     "",
	} {
		if got := pathOf(uri, true); got != want {
			t.Errorf("%s is %q, want %q", uri, got, want)
		}
	}
	if got := pathOf("file://elsewhere/a.go", false); got != "" {
		t.Errorf("a file of another machine is %q", got)
	}
}

func TestColumn(t *testing.T) {
	for _, tt := range []struct {
		line  string
		units uint32
		want  int
	}{
		{"abc", 0, 1}, {"abc", 2, 3}, {"abc", 9, 4}, {"한글x", 2, 3}, {"😀x", 2, 2}, {"😀x", 3, 3}, {"", 5, 1}, {"\xff\xfex", 2, 3},
	} {
		if got := column(tt.line, tt.units); got != tt.want {
			t.Errorf("%q at %d: %d, want %d", tt.line, tt.units, got, tt.want)
		}
	}
}

// The servers that are known: each is listed once and knows a language.
func TestDefaults(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Defaults() {
		if seen[s.Name] || len(s.Argv) == 0 || len(s.Languages) == 0 || strings.ContainsAny(s.Argv[0], `/\`) {
			t.Errorf("%+v", s)
		}
		seen[s.Name] = true
		for e := range s.Languages {
			if e != strings.ToLower(e) || e[0] != '.' {
				t.Errorf("%s: %q", s.Name, e)
			}
		}
	}
	if s := New(Config{Start: (&fake{}).start, Find: func(string) string { return "" }, Root: rootOf(), FS: nowhere{}}).Servers; len(s) != len(Defaults()) {
		t.Errorf("%d servers", len(s))
	}
}

func rootOf() string {
	if runtime.GOOS == "windows" {
		return `C:\`
	}
	return "/"
}

// pause lets the fake time of a test pass.
func pause(d time.Duration) { time.Sleep(d) }
