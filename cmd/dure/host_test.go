package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/internal/models/script"
)

// A host drives the program as the Agent SDKs do.
type host struct {
	t      *testing.T
	dir    string // its working folder
	env    []string
	model  *script.Server
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan wireLine
	stderr safeBuffer
	seen   []wireLine
}

// wireLine is a line of the output.
type wireLine struct {
	raw     string
	Type    string         `json:"type"`
	Subtype string         `json:"subtype"`
	fields  map[string]any // all of it
}

// is names what a line is.
func (l wireLine) is() string {
	if l.Subtype != "" {
		return l.Type + "/" + l.Subtype
	}
	if e, ok := l.fields["event"].(map[string]any); ok {
		return l.Type + "/" + e["type"].(string)
	}
	return l.Type
}

// safeBuffer is a buffer that another goroutine writes to.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer // guarded by mu
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// newHost returns a host whose program has a home and a workspace of its own, and asks a
// scripted model.
func newHost(t *testing.T, replies ...script.Reply) *host {
	t.Helper()
	srv, err := script.NewServer(script.Script{Replies: replies}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() })
	root := t.TempDir()
	h := &host{t: t, dir: filepath.Join(root, "work"), model: srv}
	for _, dir := range []string{h.dir, filepath.Join(root, "home")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	h.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Join(root, "home"), "DURE_HOME=" + filepath.Join(root, "dure"), "LANG=C.UTF-8",
		"ANTHROPIC_BASE_URL=" + srv.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script", "GORACE=" + atOnce,
		"CLAUDE_CODE_ENTRYPOINT=sdk-ts", "SYSTEMROOT=" + os.Getenv("SYSTEMROOT"),
	}
	return h
}

// usualArgs are what the SDK for TypeScript always gives.
var usualArgs = []string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json"}

// start starts the program.
func (h *host) start(args ...string) {
	h.t.Helper()
	h.cmd = exec.Command(dureProgram(h.t), args...)
	h.cmd.Dir, h.cmd.Env, h.cmd.Stderr = h.dir, h.env, &h.stderr
	in, err := h.cmd.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.in, h.lines, h.seen = in, make(chan wireLine, 1<<16), nil
	lines := h.lines
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				l := wireLine{raw: line}
				if json.Unmarshal([]byte(line), &l) != nil || json.Unmarshal([]byte(line), &l.fields) != nil {
					l.Type = "NO JSON"
				}
				lines <- l
			}
			if err != nil {
				return
			}
		}
	}()
	cmd := h.cmd
	h.t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
	})
}

// hostTime is more than anything takes that is waited for.
const hostTime = 5 * time.Minute

// say sends lines.
func (h *host) say(lines ...string) {
	h.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(h.in, l+"\n"); err != nil {
			h.t.Fatalf("writing %.100s: %v\n%s", l, err, h.stderr.String())
		}
	}
}

// initialise sends what hosts begin with, and returns what they are answered.
func (h *host) initialise(more string) map[string]any {
	h.t.Helper()
	h.say(`{"request_id":"i1","type":"control_request","request":{"subtype":"initialize"` + more + `}}`)
	return h.answer("i1")
}

// answer waits for the answer to a request.
func (h *host) answer(id string) map[string]any {
	h.t.Helper()
	for {
		l := h.until("control_response")
		if r := l.fields["response"].(map[string]any); r["request_id"] == id {
			return r
		}
	}
}

// user is a message of the user.
func user(words string) string {
	data, _ := json.Marshal(words) // it is a string
	return `{"type":"user","session_id":"","message":{"role":"user","content":[{"type":"text","text":` + string(data) + `}]},"parent_tool_use_id":null}`
}

// next returns the next line, or false when there are no more.
func (h *host) next() (wireLine, bool) {
	h.t.Helper()
	select {
	case l, ok := <-h.lines:
		if ok {
			h.seen = append(h.seen, l)
		}
		return l, ok
	case <-time.After(hostTime):
		h.t.Fatalf("nothing comes\n%s\n%s", h.told(), h.stderr.String())
		return wireLine{}, false
	}
}

// until returns the next line that is of a kind.
func (h *host) until(is string) wireLine {
	h.t.Helper()
	for {
		l, ok := h.next()
		if !ok {
			h.t.Fatalf("the output ends before %s\n%s\n%s", is, h.told(), h.stderr.String())
		}
		if l.is() == is || l.Type == is {
			return l
		}
	}
}

// told are the kinds of all lines so far, without those of the answers to requests.
func (h *host) told() string {
	var b strings.Builder
	for _, l := range h.seen {
		b.WriteString(l.is() + "\n")
	}
	return b.String()
}

// end closes the input, reads the rest, and wants an exit code.
func (h *host) end(code int) {
	h.t.Helper()
	_ = h.in.Close() // it may be closed already
	for {
		if _, ok := h.next(); !ok {
			break
		}
	}
	done := make(chan error, 1)
	go func() { done <- h.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(hostTime):
		h.t.Fatalf("it does not end\n%s", h.stderr.String())
	}
	if got := h.cmd.ProcessState.ExitCode(); got != code {
		h.t.Fatalf("exit code %d, want %d\n%s\n%s", got, code, h.told(), h.stderr.String())
	}
	for _, l := range h.seen {
		if l.Type == "NO JSON" {
			h.t.Errorf("a line is no JSON: %.200q", l.raw)
		}
		if len(l.raw) >= 1<<20 {
			h.t.Errorf("a line has %d bytes", len(l.raw))
		}
	}
}

// A host says what it is, asks something, and is told how that came out.
func TestHost(t *testing.T) {
	h := newHost(t, script.Reply{Text: "Hello back."})
	h.start(usualArgs...)
	r := h.initialise("")
	if r["subtype"] != "success" {
		t.Fatalf("%v", r)
	}
	h.say(user("Hello."))
	l := h.until("result")
	if l.Subtype != "success" || l.fields["result"] != "Hello back." || l.fields["is_error"] != false {
		t.Errorf("%s", l.raw)
	}
	h.end(0)
	want := "control_response\nsystem/init\nassistant\nresult/success\n"
	if got := h.told(); got != want {
		t.Errorf("%s", got)
	}
}
