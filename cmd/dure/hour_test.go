//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"

	"dure/internal/models/script"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// An hour is what a new user does first: ordinary mistakes and questions, one
// after the other in the same home, and what dure answers.
type hour struct {
	t    *testing.T
	dir  string // work, home and dure are in it
	env  map[string]string
	srv  *script.Server
	done []func()
}

// A step is one thing that the user does.
type step struct {
	title  string
	before func(h *hour)
	args   []string
	sh     string            // instead of args: for a shell
	in     string            // standard input
	env    map[string]string // of this step
	keep   string            // lines of the answer that are kept; "" = all
	ko     bool              // asked in Korean too
	rows   uint16            // with cols: in a terminal of that size
	cols   uint16
	signal bool        // Ctrl-C as soon as the model is asked
	need   func() bool // what the machine must have; nil = nothing
}

// hello is a model that says hello.
const hello = `{"by_step": true, "replies": [{"text": "Hello."}, {"text": "Hello again."}, {"text": "And again."}]}`

// serve starts a scripted model, which accepts only the key, if there is one.
func (h *hour) serve(text, key string) {
	h.t.Helper()
	s, err := script.Parse([]byte(text))
	if err != nil {
		h.t.Fatal(err)
	}
	if h.srv, err = script.NewServer(s, script.Options{Key: key}); err != nil {
		h.t.Fatal(err)
	}
	srv := h.srv
	h.done = append(h.done, func() { _ = srv.Close() })
	h.env["ANTHROPIC_BASE_URL"], h.env["ANTHROPIC_API_KEY"], h.env["DURE_MODEL"] = h.srv.URL(), "sk-secret-of-the-user", "script"
}

func (h *hour) write(name, content string) {
	h.t.Helper()
	path := filepath.Join(h.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		h.t.Fatal(err)
	}
}

// settings writes the user's settings; "" removes them.
func (h *hour) settings(content string) {
	path := filepath.Join(h.dir, "dure", "settings.json")
	if content == "" {
		_ = os.Remove(path)
		return
	}
	h.write("dure/settings.json", content)
}

// log returns the log that holds a text.
func (h *hour) log(text string) string {
	found, err := filepath.Glob(filepath.Join(h.dir, "dure/sessions/*/*/log.*.jsonl"))
	for _, path := range found {
		if data, rerr := os.ReadFile(path); rerr == nil && strings.Contains(string(data), text) {
			return path
		}
	}
	h.t.Fatalf("no log holds %s: %v", text, err)
	return ""
}

// change rewrites a log.
func (h *hour) change(path string, f func([]byte) []byte) {
	data, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, f(data), 0o600)
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// run does a step and returns what the user sees.
func (h *hour) run(s step) string {
	h.t.Helper()
	if s.before != nil {
		s.before(h)
	}
	cmd := exec.Command(dureProgram(h.t), s.args...)
	if s.sh != "" {
		cmd = exec.Command("sh", "-c", s.sh)
	}
	cmd.Dir = filepath.Join(h.dir, "work")
	env := map[string]string{}
	for _, m := range []map[string]string{h.env, s.env} {
		for k, v := range m {
			env[k] = v
		}
	}
	for k, v := range env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	var out bytes.Buffer
	var err error
	limit := time.AfterFunc(runLimit, func() { _ = cmd.Process.Kill() })
	defer limit.Stop()
	switch {
	case s.cols > 0:
		err = h.terminal(cmd, s, &out)
	default:
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(s.in), &out, &out
		if err = cmd.Start(); err == nil {
			if s.signal {
				h.interrupt(cmd)
			}
			err = cmd.Wait()
		}
	}
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		h.t.Fatalf("%s: %v", s.title, err)
	}
	if m := trace.FindString(out.String()); m != "" {
		h.t.Errorf("%s: the answer holds %q", s.title, m)
	}
	if strings.Contains(out.String(), "sk-secret") {
		h.t.Errorf("%s: the answer holds the key", s.title)
	}
	return h.normal(kept(out.String(), s.keep)) + fmt.Sprintf("[exit code %d]\n", code)
}

// busy leaves a session named busy running until the end.
func (h *hour) busy() {
	model := h.env["ANTHROPIC_BASE_URL"]
	h.serve(`{"replies": [{"text": "Hello.", "faults": [{"kind": "slow"}]}]}`, "")
	cmd := exec.Command(dureProgram(h.t), "-p", "--name", "busy", "hello")
	cmd.Dir = filepath.Join(h.dir, "work")
	for k, v := range h.env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	if err := cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.done = append(h.done, func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(runLimit); len(h.srv.Requests()) == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // a request makes no noise
	}
	h.env["ANTHROPIC_BASE_URL"] = model
}

// interrupt presses Ctrl-C as soon as the model has been asked.
func (h *hour) interrupt(cmd *exec.Cmd) {
	before := len(h.srv.Requests())
	for end := time.Now().Add(runLimit); len(h.srv.Requests()) == before && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // a request makes no noise
	}
	_ = cmd.Process.Signal(os.Interrupt)
}

// terminal runs a command in a terminal.
func (h *hour) terminal(cmd *exec.Cmd, s step, out *bytes.Buffer) error {
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: s.rows, Cols: s.cols})
	if err != nil {
		return err
	}
	defer f.Close()
	_, _ = out.ReadFrom(f) // it ends with an error: the other side is gone
	text := strings.ReplaceAll(out.String(), "\r\n", "\n")
	out.Reset()
	out.WriteString(text)
	return cmd.Wait()
}

func kept(s, pattern string) string {
	if pattern == "" {
		return s
	}
	match := regexp.MustCompile(pattern)
	var b strings.Builder
	for line := range strings.Lines(s) {
		if match.MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// What differs between machines and runs, and how it is written.
var differs = []struct {
	match *regexp.Regexp
	as    string
}{
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "ID"},
	{regexp.MustCompile(`127\.0\.0\.1:\d{2,}`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`go1\.\d+(\.\d+)?\S* \w+/\w+( [0-9a-f]{12})?`), "GO SYSTEM COMMIT"},
	{regexp.MustCompile(`( · )?\d+(\.\d+)? (ms|s)\b`), ""},
	{regexp.MustCompile(`ID(은\(는\)|은|는)`), "ID은(는)"},
	{regexp.MustCompile(`(process|프로세스) \d+`), "$1 PID"},
	{regexp.MustCompile(`\d{4}-\d{2}-\d{2}`), "DAY"},
	{regexp.MustCompile(`\d{2}:\d{2}:\d{2}(\.\d+)?Z?`), "CLOCK"},
	{regexp.MustCompile(`\b\d+( of log\.)`), "BYTE$1"},
	{regexp.MustCompile(`(log\.\d+\.jsonl의) \d+`), "$1 BYTE"},
	{regexp.MustCompile(`"(duration_ms|duration_api_ms)":\d+`), `"$1":TIME`},
	{regexp.MustCompile(`req_\w+`), "REQUEST"},
	{regexp.MustCompile(`\d+\.\dk( +)\d+\.\dk( +)\$\d+\.\d+`), "READ${1}WRITE${2}COST"}, // the prompt names folders of any length
}

// counted are tokens and what they cost. They are shown as they were, and compared as
// if they were all the same: the prompt names folders, whose names have any length.
var counted = regexp.MustCompile(`\b\d+\.\dk\b|\$0\.\d{4}\b`)

// normal takes out what differs between machines and runs.
func (h *hour) normal(s string) string {
	if host, err := os.Hostname(); err == nil && host != "" {
		s = strings.ReplaceAll(s, "on "+host+")", "on HOST)")
		s = strings.ReplaceAll(s, "on "+host+",", "on HOST,")
		s = strings.ReplaceAll(s, "("+host+"의", "(HOST의")
	}
	s = strings.ReplaceAll(s, h.dir, "/u")
	for _, d := range differs {
		s = d.match.ReplaceAllString(s, d.as)
	}
	return s
}

func (s step) line() string {
	if s.sh != "" {
		return "$ " + s.sh
	}
	var words []string
	for _, k := range []string{"LANG", "LC_ALL", "NO_COLOR", "HTTPS_PROXY", "HTTP_PROXY", "DURE_HOME"} {
		if v, ok := s.env[k]; ok {
			words = append(words, k+"="+v)
		}
	}
	words = append(words, "dure")
	for _, a := range s.args {
		if a == "" || strings.ContainsAny(a, " \n\"{}*?$") {
			a = "'" + strings.ReplaceAll(a, "\n", `\n`) + "'"
		}
		words = append(words, a)
	}
	line := "$ " + strings.Join(words, " ")
	if s.in != "" {
		line += " <input"
	}
	if s.cols > 0 {
		line += fmt.Sprintf(" # in a terminal of %d columns and %d rows", s.cols, s.rows)
	}
	if s.signal {
		line += " # and Ctrl-C"
	}
	return line
}

// TestNewUsersHour does what a new user does, and compares the answers with those
// that were read and found good. Those of steps that need what the machine lacks
// are not compared.
func TestNewUsersHour(t *testing.T) {
	t.Parallel()
	for _, lang := range []string{"en", "ko"} {
		t.Run(lang, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join("testdata", "hour", lang+".txt")
			old, err := os.ReadFile(path)
			if err != nil && !*update {
				t.Fatal(err)
			}
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			h := &hour{t: t, dir: dir, env: map[string]string{
				"PATH": os.Getenv("PATH"), "HOME": filepath.Join(dir, "home"), "DURE_HOME": filepath.Join(dir, "dure"), "GORACE": atOnce,
				"LANG": "C.UTF-8", "TERM": "xterm", "TZ": "UTC", "DURE_LANG": lang,
			}}
			for _, name := range []string{"work", "home"} {
				if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			defer func() {
				for _, f := range slices.Backward(h.done) {
					f()
				}
			}()
			var got strings.Builder
			for _, s := range hourSteps() {
				section := "# " + s.title + "\n"
				if s.need != nil && !s.need() {
					if at := strings.Index(string(old), section); at >= 0 && (lang == "en" || s.ko) {
						end := strings.Index(string(old[at:]), "\n\n")
						got.WriteString(string(old[at : at+end+2]))
					}
					continue
				}
				answer := h.run(s)
				if lang == "en" || s.ko {
					got.WriteString(section + s.line() + "\n" + answer + "\n")
				}
			}
			if *update {
				if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(counted.ReplaceAllString(string(old), "N"), counted.ReplaceAllString(got.String(), "N")); d != "" {
				t.Error(d)
			}
		})
	}
}

// hourSteps are the steps, in order.
func hourSteps() []step {
	return slices.Concat(firstSteps(), keySteps(), networkSteps(), workSteps(), sessionSteps(), settingsSteps(), serverSteps(), surroundingSteps())
}

func firstSteps() []step {
	return []step{
		{title: "Which version is this?", args: []string{"version"}},
		{title: "Is there a newer one?", args: []string{"version", "--check"}, ko: true},
		{title: "What can it do?", args: []string{"--help"}, ko: true},
		{title: "Help on a command that was misspelt", args: []string{"help", "sesions"}, ko: true},
		{title: "Help on a command within a command", args: []string{"help", "models", "test"}},
		{title: "A flag that does not exist", args: []string{"--no-such-flag"}, ko: true},
		{title: "A flag that was misspelt", args: []string{"--modell", "opus", "hello"}, ko: true},
		{title: "A command that was misspelt", args: []string{"sesions"}, ko: true},
		{title: "A flag without its value", args: []string{"-p", "--model"}},
		{title: "An empty task", args: []string{"-p", ""}, ko: true},
		{title: "Completion for a shell that there is none for", args: []string{"completion", "tcsh"}, ko: true},
		{title: "Completion, but how?", args: []string{"completion"}},
	}
}

func keySteps() []step {
	return []step{
		{title: "No key", args: []string{"-p", "hello"}, ko: true},
		{title: "No key, for a program", args: []string{"-p", "--output-format", "json", "hello"}},
		{title: "A key on the command line", args: []string{"login", "anthropic", "sk-secret-of-the-user"}, ko: true},
		{title: "A provider that does not exist", args: []string{"login", "antropic"}, in: "x", ko: true},
		{title: "No key behind the pipe", args: []string{"login", "anthropic"}, ko: true},
		{title: "Something that is no key", args: []string{"login", "--file", "anthropic"}, in: "two words\n", ko: true},
		{title: "A key in a pipe", args: []string{"login", "--file", "anthropic"}, in: "sk-secret-of-the-user\n", ko: true},
		{title: "Where do keys come from?", args: []string{"providers"}, keep: "^(NAME|anthropic|openai|ollama|이름)", ko: true},
		{title: "Forget the key", args: []string{"logout", "anthropic"}, ko: true},
		{title: "Forget it again", args: []string{"logout", "anthropic"}},
		{title: "A model that was misspelt", args: []string{"-p", "--model", "claude-opsu-5-5", "hello"}, ko: true},
		{title: "A model of a provider that does not exist", args: []string{"-p", "--model", "nowhere/gpt-4", "hello"}},
		{title: "Which models are there?", args: []string{"models", "haiku"}},
		{title: "Models that there are none of", args: []string{"models", "nothing-like-it"}, ko: true},
		{
			title: "A key that is not accepted", args: []string{"-p", "hello"}, ko: true,
			before: func(h *hour) { h.serve(hello, "another-key") },
		},
		{title: "Does the model answer?", args: []string{"models", "test"}, ko: true},
	}
}

func networkSteps() []step {
	key := map[string]string{"ANTHROPIC_API_KEY": "sk-secret-of-the-user"}
	at := func(url string) map[string]string {
		return map[string]string{"ANTHROPIC_API_KEY": key["ANTHROPIC_API_KEY"], "ANTHROPIC_BASE_URL": url}
	}
	return []step{
		{title: "An address without https://", args: []string{"-p", "hello"}, env: at("api.example.com"), ko: true},
		{title: "An address where nobody answers", args: []string{"models", "test", "sonnet"}, env: at("http://127.0.0.1:1"), ko: true},
		{
			title: "What answers is a web page", args: []string{"models", "test"},
			before: func(h *hour) { h.serve(`{"replies": [{"text": "x", "faults": [{"kind": "html"}]}]}`, "") },
		},
		{
			title: "https:// where there is no TLS", args: []string{"models", "test", "sonnet"},
			before: func(h *hour) {
				h.env["ANTHROPIC_BASE_URL"] = strings.Replace(h.srv.URL(), "http://", "https://", 1)
			},
		},
		{
			title: "A certificate that nobody has signed", args: []string{"models", "test", "sonnet"}, ko: true,
			before: func(h *hour) {
				srv := httptest.NewUnstartedServer(http.NotFoundHandler())
				srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
				srv.StartTLS()
				h.done = append(h.done, srv.Close)
				h.env["ANTHROPIC_BASE_URL"] = srv.URL
			},
		},
		{title: "A proxy that is not there", args: []string{"models", "test", "sonnet"}, env: at("http://model.example"), ko: true, before: func(h *hour) {
			h.settings(`{"network": {"proxy": "http://127.0.0.1:1"}}`)
		}},
		{title: "A proxy with a typing mistake", args: []string{"-p", "hello"}, env: at("http://model.example"), ko: true, before: func(h *hour) {
			h.settings(`{"network": {"proxy": "htp://proxy:3128"}}`)
		}},
		{title: "Certificates that are not there", args: []string{"-p", "hello"}, env: key, ko: true, before: func(h *hour) {
			h.settings(`{"network": {"ca": "~/company.pem"}}`)
		}},
		{title: "Certificates that are none", args: []string{"-p", "hello"}, env: key, ko: true, before: func(h *hour) {
			h.write("home/company.pem", "no certificate\n")
		}},
		{title: "Models switched off", args: []string{"-p", "hello"}, env: key, ko: true, before: func(h *hour) {
			h.settings(`{"ai": false}`)
		}},
		{title: "The network switched off", args: []string{"-p", "--model", "sonnet", "hello"}, env: at("https://model.example"), ko: true, before: func(h *hour) {
			h.settings(`{"network": {"mode": "off"}}`)
		}},
	}
}

func workSteps() []step {
	return []step{
		{title: "A first task", args: []string{"-p", "--name", "first", "hello"}, before: func(h *hour) { h.settings(""); h.serve(hello, "") }},
		{title: "A task from a pipe", args: []string{"-p"}, in: "hello\n"},
		{title: "No terminal, and no -p", args: []string{"hello there"}},
		{title: "A task that begins with a slash", args: []string{"-p", "/etc/hosts is odd"}},
		{title: "Input that is no text", args: []string{"-p", "what is this?"}, in: "\x00\x01\x02", ko: true},
		{title: "Far too much input", args: []string{"-p", "sum it up"}, in: strings.Repeat("0123456789abcdef", 700_000), ko: true},
		{title: "A format that does not exist", args: []string{"-p", "--output-format", "xml", "hello"}, ko: true},
		{title: "A format of another program", args: []string{"-p", "--output-format", "yaml", "hello"}},
		{title: "A permission mode that does not exist", args: []string{"-p", "--permission-mode", "yolo", "hello"}, ko: true},
		{title: "No steps at all", args: []string{"-p", "--max-turns", "0", "hello"}, ko: true},
		{title: "Flags that exclude each other", args: []string{"-c", "-r", "x"}, ko: true},
		{title: "Print mode and line mode", args: []string{"-p", "-i", "hello"}},
		{title: "A folder that does not exist", args: []string{"-p", "--add-dir", "../nowhere", "hello"}, ko: true},
		{
			title: "File names with blanks, line feeds and Hangul", args: []string{"-p", "--verbose", "read them"}, ko: true,
			before: func(h *hour) {
				h.write("work/한글 이름.txt", "one\n")
				h.write("work/two\nlines.txt", "two\n")
				h.serve(`{"by_step": true, "replies": [{"calls": [
					{"tool": "Read", "input": {"file_path": "한글 이름.txt"}}, {"tool": "Read", "input": {"file_path": "two\nlines.txt"}}
				]}, {"text": "Read."}]}`, "")
			},
		},
		{
			title: "A command that nobody has allowed", args: []string{"-p", "clean up"}, ko: true,
			before: func(h *hour) {
				h.serve(`{"by_step": true, "replies": [{"calls": [{"tool": "Bash", "input": {"command": "rm -rf build"}}]}, {"text": "I may not."}]}`, "")
			},
		},
		{
			title: "Ctrl-C", args: []string{"-p", "hello"}, signal: true, ko: true,
			before: func(h *hour) {
				h.serve(`{"replies": [{"text": "Hello.", "faults": [{"kind": "slow"}]}]}`, "")
			},
		},
	}
}

func sessionSteps() []step {
	return []step{
		{title: "Go on", args: []string{"-c", "-p", "and again"}, before: func(h *hour) { h.serve(hello, "") }},
		{
			title: "A session that another process has", args: []string{"-p", "-r", "busy", "me too"}, ko: true,
			before: func(h *hour) { h.busy() },
		},
		{title: "A session that does not exist", args: []string{"-p", "-r", "yesterday", "hello"}, ko: true},
		{title: "Nothing to go on with", args: []string{"-p", "-c"}, ko: true},
		{title: "A session for a program", args: []string{"verify", "--json", "nothing-like-it"}},
		{
			title: "A log that was changed", args: []string{"-p", "-r", "first", "hello"}, ko: true,
			before: func(h *hour) {
				h.change(h.log(`"title":"first"`), func(b []byte) []byte { return bytes.Replace(b, []byte("turn"), []byte("turm"), 1) })
			},
		},
		{title: "Where was it changed?", args: []string{"verify", "first"}, ko: true},
		{
			title: "A log of a newer version", args: []string{"-p", "-r", "from-tomorrow", "hello"}, ko: true,
			before: func(h *hour) {
				const line = `{"v":99,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"session.opened","id":"e1","d":{"session":"from-tomorrow","workdir":"/"}`
				sum := crc32.Checksum([]byte(line), crc32.MakeTable(crc32.Castagnoli))
				h.write("dure/sessions/2026-01/from-tomorrow/log.000001.jsonl", fmt.Sprintf("%s,\"c\":\"%08x\"}\n", line, sum))
			},
		},
		{title: "What has it cost?", args: []string{"usage", "--by", "model"}, ko: true},
		{title: "By what?", args: []string{"usage", "--by", "week"}, ko: true},
		{title: "Since when?", args: []string{"usage", "--since", "yesterday"}, ko: true},
	}
}

// serverSteps are about servers of the Model Context Protocol.
func serverSteps() []step {
	file := func(text string) func(*hour) { return func(h *hour) { h.write("work/.mcp.json", text) } }
	return []step{
		{title: "Which servers are there?", args: []string{"mcp"}, ko: true},
		{title: "A server without a command", args: []string{"mcp", "add", "files"}, ko: true},
		{title: "A server as a command line", args: []string{"mcp", "add", "files", "--", "npx", "-y", "files-server", "."}, ko: true},
		{title: "The same server once more", args: []string{"mcp", "add", "files", "--", "npx"}, ko: true},
		{title: "A server that was misspelt", args: []string{"mcp", "get", "file"}, ko: true},
		{title: "A server with a name that is none", args: []string{"mcp", "add", "my server", "https://mcp.example.com"}, ko: true},
		{title: "Servers that the project brings", args: []string{"mcp", "list"}, ko: true, before: file(`{
  "mcpServers": {
    "tickets": {"type": "http", "url": "https://tickets.example.com/mcp", "headers": {"Authorization": "Bearer ${TICKETS}"}},
    "broken": {"type": "htp", "url": "https://x.example.com"},
  }
}
`)},
		{title: "A yes before there is trust", args: []string{"mcp", "approve", "tickets"}, ko: true},
		{title: "A file of servers with a comma too few", args: []string{"mcp"}, ko: true, before: file("{\n  \"mcpServers\": {\n    \"a\": {\"command\": \"a\"}\n    \"b\": {\"command\": \"b\"}\n  }\n}\n")},
		{title: "Take a server out", args: []string{"mcp", "remove", "files"}, ko: true, before: func(h *hour) { _ = os.Remove(filepath.Join(h.dir, "work", ".mcp.json")) }},
	}
}

func settingsSteps() []step {
	return []step{
		{title: "A comma too few", args: []string{"-p", "hello"}, ko: true, before: func(h *hour) {
			h.settings("{\n  \"model\": \"script\"\n  \"effort\": \"low\"\n}\n")
		}},
		{title: "A list where a word belongs", args: []string{"-p", "hello"}, ko: true, before: func(h *hour) { h.settings(`{"model": ["script"]}`) }},
		{title: "A key that was misspelt", args: []string{"-p", "hello"}, ko: true, before: func(h *hour) { h.settings(`{"permision_mode": "plan"}`) }},
		{title: "A rule for a tool that does not exist", args: []string{"-p", "--allow", "Bsah", "hello"}, ko: true, before: func(h *hour) { h.settings("") }},
		{title: "Settings that are not there", args: []string{"-p", "--settings", "nowhere.json", "hello"}, ko: true},
	}
}

func surroundingSteps() []step {
	linux := func() bool { return runtime.GOOS == "linux" }
	return []step{
		{title: "A home that is a file", args: []string{"-p", "hello"}, env: map[string]string{"DURE_HOME": "/dev/null/x"}, ko: true, need: linux},
		{title: "No home", args: []string{"-p", "hello"}, env: map[string]string{"DURE_HOME": "", "HOME": ""}, ko: true, need: linux},
		{title: "Nothing installed", args: []string{"doctor"}, env: map[string]string{"PATH": "/nowhere"}, keep: "git|bash", ko: true, need: linux},
		{title: "What is configured?", args: []string{"doctor"}, keep: "^(ok|warn|fail|정상|주의|실패) +(settings|profile|model|provider|key|fallback|network|proxy|mode|rules|설정|작업 종류|모델|제공자|키|대체 모델|네트워크|프록시|모드|규칙)  ", ko: true},
		{title: "A locale without letters", args: []string{"doctor"}, env: map[string]string{"LC_ALL": "C"}, keep: "locale|LANG|로캘", ko: true},
		{title: "A Korean locale", args: []string{"-p"}, env: map[string]string{"LANG": "ko_KR.UTF-8", "DURE_LANG": ""}},
		{title: "A small terminal", args: []string{"models", "opus-5-5"}, cols: 50, rows: 20, ko: true},
		{title: "Help in a small terminal", args: []string{"help", "usage"}, cols: 50, rows: 20, ko: true},
		{title: "A smaller one", args: []string{"doctor"}, cols: 20, rows: 10, keep: "(?i)columns|칸"},
		{title: "No colours", args: []string{"doctor"}, env: map[string]string{"NO_COLOR": "1"}, cols: 60, rows: 20, keep: "60 columns|60칸", ko: true},
		{
			title: "A folder that is gone", sh: "mkdir gone && cd gone && rmdir ../gone && dure -p hello", ko: true, need: linux,
		},
		{
			title: "A disk that is full", sh: "dure sessions >/dev/full", ko: true, need: linux,
		},
	}
}
