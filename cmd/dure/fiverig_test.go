//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/frontend/acp"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/sdk"
	"dure/internal/frontend/serve"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// shown is what a front-end has been shown so far. It is safe for concurrent use.
type shown[T any] struct {
	t    *testing.T
	who  string
	over chan struct{} // closed when nothing more comes

	mu   sync.Mutex
	list []T           // guarded by mu
	more chan struct{} // closed when there is more; guarded by mu
	next int           // behind what was waited for; belongs to the test
}

func newShown[T any](t *testing.T, who string) *shown[T] {
	return &shown[T]{t: t, who: who, over: make(chan struct{}), more: make(chan struct{})}
}

func (s *shown[T]) add(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = append(s.list, v)
	close(s.more)
	s.more = make(chan struct{})
}

// all is everything so far.
func (s *shown[T]) all() []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// until waits for the next one that is as is says, behind the last that was waited for.
func (s *shown[T]) until(is func(T) bool) T {
	s.t.Helper()
	late := time.NewTimer(hostTime)
	defer late.Stop()
	over := s.over
	for {
		s.mu.Lock()
		list, more := s.list, s.more
		s.mu.Unlock()
		for ; s.next < len(list); s.next++ {
			if v := list[s.next]; is(v) {
				s.next++
				return v
			}
		}
		select {
		case <-more:
		case <-over:
			if over = nil; len(s.all()) == s.next {
				s.t.Fatalf("%s: it ends before what is waited for", s.who)
			}
		case <-late.C:
			s.t.Fatalf("%s: what is waited for does not come; so far\n%.4000v", s.who, list)
		}
	}
}

// ends waits until nothing more comes.
func (s *shown[T]) ends() {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(hostTime):
		s.t.Fatalf("%s: it does not end", s.who)
	}
}

// five is a program whose session has five front-ends.
type five struct {
	t       *testing.T
	p       *program
	session string
	close   func()
}

// newFive builds a program with a home and a working folder of its own, and a model that
// follows a script.
func newFive(t *testing.T, replies ...script.Reply) *five {
	t.Helper()
	model, err := script.NewServer(script.Script{Replies: replies}, script.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closed := sync.OnceFunc(func() { _ = model.Close() })
	t.Cleanup(closed)
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work", "home"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, value := range map[string]string{
		"HOME": filepath.Join(dir, "home"), "DURE_HOME": filepath.Join(dir, "home", "dure"), "LANG": "C.UTF-8", "TERM": "dumb",
		"ANTHROPIC_BASE_URL": model.URL(), "ANTHROPIC_API_KEY": "scripted", "DURE_MODEL": "script",
	} {
		t.Setenv(name, value)
	}
	t.Chdir(filepath.Join(dir, "work"))
	p := &program{text: text.For("en"), err: os.Stderr, signals: make(chan os.Signal, 1)}
	p.flags.sandbox, p.flags.sessionID = "off", "5f3a1c1e-5d0b-4f43-9f0e-2b8f0c6f7a55"
	a, err := p.open()
	if err != nil {
		t.Fatal(err)
	}
	f := &five{t: t, p: p, session: p.flags.sessionID}
	f.close = sync.OnceFunc(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		closed()
	})
	t.Cleanup(f.close)
	return f
}

// shared is the session for whoever has not opened it.
func (f *five) shared() *client.Session { return f.p.opened.Shared().Attach(f.session) }

// followed are the events of the session, as the program has them.
func (f *five) followed() *shown[agent.Event] {
	s := newShown[agent.Event](f.t, "the log")
	ctx, cancel := context.WithCancel(context.Background())
	f.t.Cleanup(cancel)
	go func() {
		defer close(s.over)
		for e, err := range f.shared().Events(ctx, 0) {
			if err != nil {
				return
			}
			if !e.Live() {
				s.add(short(e))
			}
		}
	}()
	return s
}

// short is an event without what makes it long.
func short(e agent.Event) agent.Event {
	if b, ok := e.Body.(agent.SettingsChanged); ok && len(b.Title) > 8 {
		b.Title = strings.Clone(b.Title[:8])
		e.Body = b
	}
	return e
}

// streamed is a front-end that is spoken with over streams.
type streamed[T any] struct {
	*shown[T]
	in    io.WriteCloser
	ended chan error
}

// say writes lines to the front-end.
func (c *streamed[T]) say(lines ...string) {
	c.t.Helper()
	for _, l := range lines {
		if _, err := io.WriteString(c.in, l+"\n"); err != nil {
			c.t.Fatalf("%s: writing %s: %v", c.who, l, err)
		}
	}
}

// leave ends the input, and waits for the end of the front-end.
func (c *streamed[T]) leave() {
	c.t.Helper()
	_ = c.in.Close() // it may have gone
	select {
	case err := <-c.ended:
		if err != nil {
			c.t.Errorf("%s: %v", c.who, err)
		}
	case <-time.After(hostTime):
		c.t.Fatalf("%s does not leave", c.who)
	}
	c.ends()
}

// lineMode is line mode, which opens the session.
func (f *five) lineMode() *streamed[string] {
	f.t.Helper()
	theirs, in, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	out, ours, err := os.Pipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.p.in, f.p.out = theirs, ours
	c := f.p.cliOf(f.p.opened.Shared())
	o := f.p.chatOptions()
	if o.Open, err = f.p.openOptions(f.t.Context(), c, c.Point); err != nil {
		f.t.Fatal(err)
	}
	t := &streamed[string]{newShown[string](f.t, "line mode"), in, make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		t.ended <- c.Interact(ctx, o)
		_ = errors.Join(ours.Close(), theirs.Close()) // they were only for it
	}()
	go func() {
		defer close(t.over)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if t.add(strings.Clone(line[:min(len(line), 1000)])); err != nil {
				_ = out.Close() // it has ended
				return
			}
		}
	}()
	f.t.Cleanup(func() { cancel(); _ = in.Close() }) // they may have ended
	f.wait("line mode opens its session", func() bool { return f.p.opened.Runs(f.session) })
	return t
}

// wait waits for something to be so.
func (f *five) wait(what string, so func() bool) {
	f.t.Helper()
	if !waited(so) {
		f.t.Fatalf("it does not come to it that %s", what)
	}
}

// waited reports whether something has come to be so.
func waited(so func() bool) bool {
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	late := time.NewTimer(hostTime)
	defer late.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-late.C:
			return false
		}
	}
	return true
}

// wireFrame is a message in JSON.
type wireFrame struct {
	raw    string
	fields any
}

// at is a member of a member.
func (l wireFrame) at(path ...string) any {
	v := l.fields
	for _, name := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[name]
	}
	return v
}

// framed starts a front-end that speaks lines of JSON.
func (f *five) framed(who string, run func(ctx context.Context, in io.Reader, out io.Writer) error) *streamed[wireFrame] {
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	t := &streamed[wireFrame]{newShown[wireFrame](f.t, who), in, make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		t.ended <- run(ctx, theirs, ours)
		_ = errors.Join(ours.Close(), theirs.Close()) // they have no errors
	}()
	go func() {
		defer close(t.over)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			l := wireFrame{raw: line}
			if err := json.Unmarshal([]byte(line), &l.fields); err != nil {
				f.t.Errorf("%s: %v: %.200q", who, err, line)
			}
			if len(line) < 32<<10 { // the rest is long, and looked at by nobody
				t.add(l)
			}
		}
	}()
	f.t.Cleanup(func() { cancel(); _ = in.Close() })
	return t
}

// host is a host of the Agent SDKs that joins the session.
func (f *five) host() *streamed[wireFrame] {
	f.t.Helper()
	p := &program{text: f.p.text, err: f.p.err, opened: f.p.opened}
	p.flags.workdir, p.flags.resume, p.flags.host.permissionTool = f.p.flags.workdir, f.session, "stdio"
	h := f.framed("the host", func(ctx context.Context, in io.Reader, out io.Writer) error {
		var h *sdk.Host
		h = sdk.New(sdk.Config{
			Options: sdk.Options{Lines: true}, In: in, Out: out, Err: io.Discard, Now: time.Now, Text: p.text,
			Start: func(ctx context.Context, init *sdk.Initialize) (sdk.Program, error) {
				return p.hostProgram(ctx, h, init)
			},
		})
		if code := h.Run(ctx); code != 0 {
			return fmt.Errorf("it ends with %d", code)
		}
		return nil
	})
	h.say(`{"request_id":"i1","type":"control_request","request":{"subtype":"initialize"}}`)
	if r := h.until(is("i1", "response", "request_id")); r.at("response", "subtype") != "success" {
		f.t.Fatal(r.raw)
	}
	return h
}

// editor is an editor that loads the session.
func (f *five) editor() *streamed[wireFrame] {
	f.t.Helper()
	e := f.framed("the editor", func(ctx context.Context, in io.Reader, out io.Writer) error {
		return acp.New(f.p.acpConfig()).Run(ctx, in, out)
	})
	e.say(`{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":1}}`)
	e.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":"l","method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, f.session, f.p.flags.workdir))
	if l := e.until(is("l", "id")); l.at("result") == nil {
		f.t.Fatal(l.raw)
	}
	return e
}

// fiveServer serves the session over HTTP.
type fiveServer struct {
	t    *testing.T
	at   string
	stop func()
}

const fiveToken = "a-token-of-the-test"

// narrow are connections that hold little.
type narrow struct{ net.Listener }

func (n narrow) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if t, ok := c.(*net.TCPConn); ok && err == nil {
		err = t.SetWriteBuffer(64 << 10)
	}
	return c, err
}

func (f *five) serve() *fiveServer {
	f.t.Helper()
	s, err := serve.New(serve.Config{
		Client: f.p.opened.Shared(), Token: fiveToken, Version: "1", Workdir: f.p.flags.workdir, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	l, err := auth.Listen(f.t.Context(), "127.0.0.1:0")
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, narrow{l}) }()
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(stop)
	return &fiveServer{f.t, l.Addr().String(), stop}
}

// post sends a command, and returns what it is answered.
func (s *fiveServer) post(path, body string) (int, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, "http://"+s.at+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+fiveToken)
	r.Header.Set("Content-Type", "application/json")
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// fiveReader reads events over a connection of its own.
type fiveReader struct {
	*shown[agent.Event]
	conn *net.TCPConn
	goOn func() // has one that stands still read
}

// reader is a reader of all events of a session. One that is still reads nothing yet, not
// even what the connection has brought.
func (s *fiveServer) reader(session string, still bool) *fiveReader {
	s.t.Helper()
	c, err := new(net.Dialer).DialContext(s.t.Context(), "tcp", s.at)
	if err != nil {
		s.t.Fatal(err)
	}
	r := &fiveReader{shown: newShown[agent.Event](s.t, "the reader"), conn: c.(*net.TCPConn)}
	if err := r.conn.SetReadBuffer(64 << 10); err != nil {
		s.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET /v1/sessions/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", session, s.at, fiveToken); err != nil {
		s.t.Fatal(err)
	}
	begin := make(chan struct{})
	if r.goOn = sync.OnceFunc(func() { close(begin) }); !still {
		r.goOn()
	}
	s.t.Cleanup(func() { r.goOn(); _ = c.Close() }) // it may be closed
	go func() {
		defer close(r.over)
		<-begin
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			s.t.Errorf("the answer to a reader: %v", err)
			return
		}
		defer res.Body.Close()
		for lines := bufio.NewReader(res.Body); ; {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return
			}
			data, ok := bytes.CutPrefix(line, []byte("data: "))
			var e agent.Event
			if ok && json.Unmarshal(data, &e) == nil && !e.Live() {
				r.add(short(e))
			}
		}
	}()
	return r
}

// kill ends the connection as the end of a process does that was killed.
func (r *fiveReader) kill() {
	r.t.Helper()
	if err := errors.Join(r.conn.SetLinger(0), r.conn.Close()); err != nil {
		r.t.Error(err)
	}
	r.ends()
}

// kind says that an event is of the kind of a body.
func kind(b agent.Body) func(agent.Event) bool {
	return func(e agent.Event) bool { return e.Kind() == b.Kind() }
}

func sameAs(last agent.Event) func(agent.Event) bool {
	return func(e agent.Event) bool { return e.Seq == last.Seq }
}

// is says what a member of a message is.
func is(value string, path ...string) func(wireFrame) bool {
	return func(l wireFrame) bool { return l.at(path...) == value }
}

func containing(words string) func(string) bool {
	return func(line string) bool { return strings.Contains(line, words) }
}

// numbers name events as all front-ends know them.
func numbers(list []agent.Event) (all []string) {
	for _, e := range list {
		all = append(all, fmt.Sprint(e.Seq, " ", e.Kind(), " ", e.ID))
	}
	return all
}

// toldByLog is what was said and done in a session, in short.
func toldByLog(list []agent.Event) string {
	var all []string
	for _, e := range list {
		switch b := e.Body.(type) {
		case agent.ModelAnswered:
			all = append(all, b.Said())
			for _, c := range b.Message.Calls() {
				all = append(all, c.ID)
			}
		case agent.CallFinished:
			all = append(all, b.Result.ID+":done")
		}
	}
	return strings.Join(all, " ")
}

// toldToHost is likewise what a host was told.
func toldToHost(list []wireFrame) string {
	var all []string
	for _, l := range list {
		parts, _ := l.at("message", "content").([]any)
		for _, part := range parts {
			switch p := (wireFrame{fields: part}); fmt.Sprint(l.at("type"), " ", p.at("type")) {
			case "assistant text":
				all = append(all, fmt.Sprint(p.at("text")))
			case "assistant tool_use":
				all = append(all, fmt.Sprint(p.at("id")))
			case "user tool_result":
				all = append(all, fmt.Sprint(p.at("tool_use_id"))+":done")
			}
		}
	}
	return strings.Join(all, " ")
}

// toldToEditor is likewise what an editor was told.
func toldToEditor(list []wireFrame) string {
	var all []string
	for _, l := range list {
		u := wireFrame{fields: l.at("params", "update")}
		switch u.at("sessionUpdate") {
		case "agent_message_chunk":
			all = append(all, fmt.Sprint(u.at("content", "text")))
		case "tool_call":
			all = append(all, fmt.Sprint(u.at("toolCallId")))
		case "tool_call_update":
			if u.at("status") == "completed" {
				all = append(all, fmt.Sprint(u.at("toolCallId"))+":done")
			}
		}
	}
	return strings.Join(all, " ")
}

// held is the memory in use, in bytes.
func held() int64 {
	runtime.GC()
	runtime.GC() // what had finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// fewer waits until there are no more goroutines than there were.
func fewer(t *testing.T, than int) {
	t.Helper()
	if !waited(func() bool { return runtime.NumGoroutine() <= than }) {
		stacks := make([]byte, 1<<20)
		t.Errorf("%d goroutines, and there were %d:\n%s", runtime.NumGoroutine(), than, stacks[:runtime.Stack(stacks, true)])
	}
}
