package control_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"go.uber.org/goleak"

	"dure/agent"
	"dure/client"
	"dure/client/protocol"
	"dure/internal/app"
	"dure/internal/frontend/control"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should come at once.
const patience = time.Minute

// over is a client as a transport.
type over struct{ client.Client }

func (o over) Open(ctx context.Context, open agent.Open) (agent.SessionInfo, error) {
	s, err := o.Client.Open(ctx, open)
	if err != nil {
		return agent.SessionInfo{}, err
	}
	return s.Info, nil
}

func (o over) Send(ctx context.Context, id string, c agent.Command) error {
	return o.Attach(id).Send(ctx, c)
}

func (o over) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return o.Attach(id).Events(ctx, after)
}

func (o over) Query(ctx context.Context, q agent.Query) (any, error) {
	return client.Query[any](ctx, o.Client, q)
}

func (o over) Close(ctx context.Context, id string) error { return o.Attach(id).Close(ctx) }

// rig is a program with a scripted model, which hosts drive.
type rig struct {
	t     *testing.T
	work  string
	model *script.Server
	share client.Client // of all hosts
	cfg   control.Config
}

// newRig makes a program whose model gives the replies.
func newRig(t *testing.T, replies ...script.Reply) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, work: filepath.Join(dir, "work")}
	home := filepath.Join(dir, "home")
	for _, d := range []string{r.work, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if r.model, err = script.NewServer(script.Script{Replies: replies}, script.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.model.Close() })
	r.share = client.New(client.Share(over{r.program(home, nil).Client()}))
	r.cfg = control.Config{
		Version: "test", Logger: slog.New(slog.DiscardHandler), Text: text.For("en"), Own: true, Lasting: true,
		Start: func(_ context.Context, b control.Begin) (control.Program, error) {
			c := r.share
			if b.Hooks != nil {
				c = r.program(home, &app.Host{Hooks: b.Hooks, Call: b.Call}).Client()
			}
			return control.Program{Client: c, Workdir: r.work, Mode: agent.ModeDefault, Text: text.For("en")}, nil
		},
	}
	return r
}

// program builds a program, and ends it with the test.
func (r *rig) program(home string, h *app.Host) *app.App {
	r.t.Helper()
	a, err := app.New(app.Options{
		Flags: app.Flags{PlainOff: true, NoReflexion: true}, UserHome: home, Workdir: r.work, Version: "test", Host: h,
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"), "ANTHROPIC_BASE_URL=" + r.model.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script"},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if err := a.Close(); err != nil {
			r.t.Errorf("closing the program: %v", err)
		}
	})
	return a
}

// host is the other side of a connection. What it is sent has to be what the schema says.
type host struct {
	t    *testing.T
	in   *io.PipeWriter // of the program
	out  *io.PipeReader
	done chan struct{}
	err  error // of Serve, when done

	mu   sync.Mutex
	all  []protocol.Message
	news chan struct{}
	seen int          // that the test has looked at
	used map[int]bool // answers that it has
	over bool
}

// connect connects a host.
func (r *rig) connect() *host {
	r.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	h := &host{t: r.t, in: inW, out: outR, done: make(chan struct{}), news: make(chan struct{}, 1), used: map[int]bool{}}
	go func() {
		h.err = control.Serve(r.t.Context(), r.cfg, control.NewLines(inR, outW))
		_ = inR.Close()
		_ = outW.Close()
		close(h.done)
	}()
	read := make(chan struct{})
	go func() { defer close(read); h.read() }()
	r.t.Cleanup(func() {
		_ = inW.Close()
		select {
		case <-h.done:
		case <-time.After(patience):
			r.t.Error("the connection does not end")
		}
		_ = outR.Close()
		<-read
	})
	return h
}

func (h *host) read() {
	schema := published(h.t, "message.json")
	for in := protocol.NewReader(h.out, 0); ; {
		line, err := in.Next()
		if err != nil {
			h.mu.Lock()
			h.over = true
			h.mu.Unlock()
			h.signal()
			return
		}
		m, err := protocol.Decode(line)
		if err != nil {
			h.t.Errorf("%s: %v", line, err)
			continue
		}
		var v any
		if err := json.Unmarshal(line, &v); err != nil {
			h.t.Error(err)
		} else if err := schema.Validate(v); err != nil {
			h.t.Errorf("%.2000s\nis not what the schema says: %.500v", line, err)
		}
		h.mu.Lock()
		h.all = append(h.all, m)
		h.mu.Unlock()
		h.signal()
	}
}

func (h *host) signal() {
	select {
	case h.news <- struct{}{}:
	default:
	}
}

var schemas sync.Map

// published is a schema as it is published.
func published(t *testing.T, name string) *jsonschema.Resolved {
	if r, ok := schemas.Load(name); ok {
		return r.(*jsonschema.Resolved)
	}
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "protocol", name))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	schemas.Store(name, r)
	return r
}

// raw writes a line.
func (h *host) raw(line string) {
	h.t.Helper()
	if _, err := io.WriteString(h.in, line+"\n"); err != nil {
		h.t.Fatalf("writing %.80s: %v", line, err)
	}
}

// send sends a request, which has to be what the schema says.
func (h *host) send(t protocol.Type, id, session string, payload any) {
	h.t.Helper()
	line, err := protocol.Encode(t, id, session, payload)
	if err != nil {
		h.t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(line, &v); err != nil {
		h.t.Fatal(err)
	}
	if err := published(h.t, "request.json").Validate(v); err != nil {
		h.t.Errorf("%s\nis not what the schema says: %.500v", line, err)
	}
	h.raw(string(line))
}

// until returns the next message that is wanted, passing others over.
func (h *host) until(what string, want func(protocol.Message) bool) protocol.Message {
	h.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		h.mu.Lock()
		for h.seen < len(h.all) {
			m := h.all[h.seen]
			h.seen++
			if want(m) {
				h.mu.Unlock()
				return m
			}
		}
		over := h.over
		h.mu.Unlock()
		if over {
			h.t.Fatalf("%s did not come:\n%s", what, h.log())
		}
		select {
		case <-h.news:
		case <-late.C:
			h.t.Fatalf("%s did not come:\n%s", what, h.log())
		}
	}
}

// sent are the messages so far.
func (h *host) sent() []protocol.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// log is what the host was sent.
func (h *host) log() string {
	var s string
	for _, m := range h.sent() {
		s += fmt.Sprintf("%s %s %s %.300s\n", m.Type, m.ID, m.Session, m.Payload)
	}
	return s
}

// next returns the payload of the next message of a type.
func next[T any](h *host, t protocol.Type) (T, protocol.Message) {
	h.t.Helper()
	m := h.until(string(t), func(m protocol.Message) bool { return m.Type == t })
	p, err := protocol.Payload[T](m)
	if err != nil {
		h.t.Fatal(err)
	}
	return p, m
}

// answer returns the message that answers a request, however it does. Each is returned once.
func (h *host) answer(id string) protocol.Message {
	h.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for i := 0; ; {
		h.mu.Lock()
		for ; i < len(h.all); i++ {
			if m := h.all[i]; m.ID == id && !h.used[i] && m.Type != protocol.TypeCanUseTool && m.Type != protocol.TypeHookEvent {
				h.used[i] = true
				h.mu.Unlock()
				return m
			}
		}
		over := h.over
		h.mu.Unlock()
		if over {
			h.t.Fatalf("the answer to %s did not come:\n%s", id, h.log())
		}
		select {
		case <-h.news:
		case <-late.C:
			h.t.Fatalf("the answer to %s did not come:\n%s", id, h.log())
		}
	}
}

// refused returns the error that answers a request.
func (h *host) refused(id string) protocol.ErrorData {
	h.t.Helper()
	m := h.answer(id)
	if m.Type != protocol.TypeError {
		h.t.Fatalf("%s was answered by %s %s", id, m.Type, m.Payload)
	}
	e, err := protocol.Payload[protocol.ErrorData](m)
	if err != nil {
		h.t.Fatal(err)
	}
	return e
}

// begin initializes a connection.
func (h *host) begin(p protocol.InitializePayload) protocol.InitializeResultData {
	h.t.Helper()
	h.send(protocol.TypeInitialize, "init", "", p)
	r, m := next[protocol.InitializeResultData](h, protocol.TypeInitializeResult)
	if m.ID != "init" {
		h.t.Fatalf("the answer has the ID %q", m.ID)
	}
	return r
}

// replied wants a request to be answered with a reply.
func (h *host) replied(id string) protocol.NotificationData {
	h.t.Helper()
	m := h.answer(id)
	n, err := protocol.Payload[protocol.NotificationData](m)
	if err != nil || m.Type != protocol.TypeNotification || n.Kind != "reply" {
		h.t.Fatalf("%s was answered by %s %s", id, m.Type, m.Payload)
	}
	return n
}

// ends closes the host's side and returns what came of the connection.
func (h *host) ends() error {
	h.t.Helper()
	_ = h.in.Close()
	select {
	case <-h.done:
	case <-time.After(patience):
		h.t.Fatal("the connection does not end")
	}
	return h.err
}

// types are the types of the messages so far, of those that are wanted.
func (h *host) types(want ...protocol.Type) (list []protocol.Type) {
	for _, m := range h.sent() {
		if slices.Contains(want, m.Type) {
			list = append(list, m.Type)
		}
	}
	return list
}
