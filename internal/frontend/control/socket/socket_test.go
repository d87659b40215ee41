package socket_test

import (
	"bufio"
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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"dure/agent"
	"dure/client/protocol"
	"dure/internal/app"
	"dure/internal/frontend/auth"
	"dure/internal/frontend/control"
	"dure/internal/frontend/control/socket"
	"dure/internal/frontend/serve"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for something that should come at once.
const patience = time.Minute

const secret = "a-token-of-the-test"

// rig is a server with a scripted model.
type rig struct {
	t     *testing.T
	addr  string
	users *auth.Users
	model *script.Server
	stop  func() error // has the server end, and waits for it
}

func start(t *testing.T, cfg socket.Config, replies ...script.Reply) *rig {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	for _, d := range []string{work, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	g := &rig{t: t, users: auth.OpenUsers(filepath.Join(dir, "users.json"))}
	if g.model, err = script.NewServer(script.Script{Replies: replies}, script.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.model.Close() })
	a, err := app.New(app.Options{
		Flags: app.Flags{PlainOff: true, NoReflexion: true}, UserHome: home, Workdir: work, Version: "test",
		Environ: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "DURE_HOME=" + filepath.Join(home, "dure"), "ANTHROPIC_BASE_URL=" + g.model.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Errorf("closing the program: %v", err)
		}
	})
	cfg.Ending, cfg.Full, cfg.Still = serve.Ending, serve.Full, serve.Still
	cfg.Control = control.Config{
		Version: "test", Logger: slog.New(slog.DiscardHandler), Text: text.For("en"),
		Start: func(context.Context, control.Begin) (control.Program, error) {
			return control.Program{Client: a.Shared(), Workdir: work, Mode: agent.ModeDefault, Text: text.For("en")}, nil
		},
	}
	s, err := serve.New(serve.Config{
		Client: a.Shared(), Token: secret, Version: "test", Workdir: work, Users: g.users,
		Routes: []serve.Route{serve.SocketRoute("/v1/control", "control", "A socket.", socket.New(cfg).ServeHTTP)},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := auth.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	g.addr = l.Addr().String()
	g.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// dial connects, with the token, and with headers beside it.
func (g *rig) dial(headers ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Authorization": {"Bearer " + secret}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	defer cancel()
	tr := &http.Transport{DisableKeepAlives: true}
	ws, res, err := websocket.Dial(ctx, "ws://"+g.addr+"/v1/control", &websocket.DialOptions{HTTPHeader: h, Host: h.Get("Host"), HTTPClient: &http.Client{Transport: tr}})
	if ws != nil {
		ws.SetReadLimit(protocol.MaxMessage)
		g.t.Cleanup(func() { _ = ws.CloseNow() })
	}
	return ws, res, err
}

// host is the other side of a socket.
type host struct {
	t  *testing.T
	ws *websocket.Conn
}

func (g *rig) host() *host {
	g.t.Helper()
	ws, res, err := g.dial()
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		g.t.Fatal(err)
	}
	return &host{g.t, ws}
}

func (h *host) send(line string) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	if err := h.ws.Write(ctx, websocket.MessageText, []byte(line)); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) read() (protocol.Message, error) {
	ctx, cancel := context.WithTimeout(h.t.Context(), patience)
	defer cancel()
	kind, data, err := h.ws.Read(ctx)
	if err != nil {
		return protocol.Message{}, err
	}
	if kind != websocket.MessageText {
		return protocol.Message{}, errors.New("a message is no text")
	}
	return protocol.Decode(data)
}

// next returns the payload of the next message of a type.
func next[T any](h *host, t protocol.Type) (T, protocol.Message) {
	h.t.Helper()
	for {
		m, err := h.read()
		if err != nil {
			h.t.Fatalf("%s did not come: %v", t, err)
		}
		if m.Type != t {
			continue
		}
		p, err := protocol.Payload[T](m)
		if err != nil {
			h.t.Fatal(err)
		}
		return p, m
	}
}

// ends wants the socket to be closed with a code.
func (h *host) ends(want websocket.StatusCode) {
	h.t.Helper()
	for {
		if _, err := h.read(); err != nil {
			if got := websocket.CloseStatus(err); got != want {
				h.t.Errorf("the socket was closed with %v: %v", got, err)
			}
			return
		}
	}
}

// A socket carries the protocol: a turn from its first to its last word, and the end.
func TestTurn(t *testing.T) {
	g := start(t, socket.Config{}, script.Reply{Text: "Hello, host."})
	h := g.host()
	h.send(`{"type":"Initialize","id":"0","payload":{"settings":{}}}`)
	if e, m := next[protocol.ErrorData](h, protocol.TypeError); e.Code != protocol.CodePayload || m.ID != "0" {
		t.Errorf("a host brings settings: %+v", e)
	}
	h.send(`{"type":"Initialize","id":"1"}`)
	if hello, _ := next[protocol.InitializeResultData](h, protocol.TypeInitializeResult); hello.Version != protocol.Version {
		t.Errorf("%+v", hello)
	}
	h.send(`{"type":"UserMessage","id":"2","payload":{"text":"Hello"}}`)
	if res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult); m.ID != "2" || res.Text != "Hello, host." {
		t.Errorf("%+v", res)
	}
	h.send(`{"type":"Terminate","id":"3"}`)
	for {
		if _, m := next[protocol.NotificationData](h, protocol.TypeNotification); m.ID == "3" {
			break
		}
	}
	h.ends(websocket.StatusNormalClosure)
}

// Nobody gets a socket but whoever has the token, or a user that may do everything; no page of
// another origin, and none that has this machine under a name of its own.
func TestStrangers(t *testing.T) {
	g := start(t, socket.Config{})
	write, err := g.users.Add("writer", auth.Write, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	all, err := g.users.Add("boss", auth.Admin, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		headers []string
		want    int
	}{
		{[]string{"Authorization", ""}, http.StatusUnauthorized},
		{[]string{"Authorization", "Bearer another-token-altogether"}, http.StatusUnauthorized},
		{[]string{"Authorization", "Bearer " + write}, http.StatusForbidden},
		{[]string{"Origin", "http://evil.example"}, http.StatusForbidden},
		{[]string{"Origin", "null"}, http.StatusForbidden},
		{[]string{"Origin", "http://localhost:1"}, http.StatusForbidden},
		{[]string{"Sec-Fetch-Site", "cross-site"}, http.StatusForbidden},
		{[]string{"Host", "evil.example"}, http.StatusForbidden},
		{[]string{"Authorization", "Bearer " + all}, http.StatusSwitchingProtocols},
		{[]string{"Origin", "http://" + g.addr}, http.StatusSwitchingProtocols},
	} {
		_, res, err := g.dial(c.headers...)
		if res == nil || res.StatusCode != c.want {
			t.Errorf("%q: %v, %v", c.headers, res, err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.addr+"/v1/control", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusUpgradeRequired {
		t.Errorf("without a socket: %s", res.Status)
	}
}

// A message that is too long is refused, and what follows it is read; what is no text ends it.
func TestMessages(t *testing.T) {
	h := start(t, socket.Config{}).host()
	h.send(`{"type":"Initialize","id":"1","payload":{"x":"` + strings.Repeat("x", protocol.MaxMessage) + `"}}`)
	if e, m := next[protocol.ErrorData](h, protocol.TypeError); e.Code != protocol.CodeTooLong || m.ID != "" {
		t.Errorf("%s %+v", m.ID, e)
	}
	h.send("garbage")
	if e, _ := next[protocol.ErrorData](h, protocol.TypeError); e.Code != protocol.CodeMalformed {
		t.Errorf("%+v", e)
	}
	h.send(`{"type":"Initialize","id":"1"}`)
	next[protocol.InitializeResultData](h, protocol.TypeInitializeResult)
	if err := h.ws.Write(t.Context(), websocket.MessageBinary, []byte(`{"type":"Interrupt","id":"2"}`)); err != nil {
		t.Fatal(err)
	}
	h.ends(websocket.StatusUnsupportedData)
}

// shake makes a socket by hand, of which the other side does nothing by itself.
func (g *rig) shake() (net.Conn, *bufio.Reader) {
	g.t.Helper()
	c, err := new(net.Dialer).DialContext(g.t.Context(), "tcp", g.addr)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		g.t.Fatal(err)
	}
	fmt.Fprintf(c, "GET /v1/control HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", g.addr, secret)
	r := bufio.NewReader(c)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		g.t.Fatal(res, err)
	}
	return c, r
}

// A host that does not answer any more is gone.
func TestSilent(t *testing.T) {
	g := start(t, socket.Config{Beat: time.Millisecond, Stall: 20 * time.Millisecond})
	_, r := g.shake()
	if _, err := io.Copy(io.Discard, r); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the socket stays open")
	}
}

// A host that asks and asks, and reads no answers, is gone after a time: what waits for it is
// bounded.
func TestNeverReads(t *testing.T) {
	g := start(t, socket.Config{Stall: 100 * time.Millisecond})
	c, _ := g.shake()
	ask := fmt.Sprintf(`{"type":"%s","id":"%s"}`, strings.Repeat("x", 30), strings.Repeat("i", 70))
	frame := append([]byte{0x81, 0x80 | byte(len(ask)), 0, 0, 0, 0}, ask...) // masked with nothing
	many := []byte(strings.Repeat(string(frame), 1000))
	for sent := 0; ; sent += len(many) {
		if _, err := c.Write(many); errors.Is(err, os.ErrDeadlineExceeded) || sent > 1<<30 {
			t.Fatalf("the socket stays open: %d bytes, %v", sent, err)
		} else if err != nil {
			return
		}
	}
}

// The end of the server waits for the turns of hosts, and begins none.
func TestDrain(t *testing.T) {
	g := start(t, socket.Config{}, script.Reply{Text: strings.Repeat("On and on. ", 40), DelayMS: 20})
	h, idle := g.host(), g.host()
	h.send(`{"type":"Initialize","id":"1"}`)
	h.send(`{"type":"UserMessage","id":"2","payload":{"text":"Talk"}}`)
	next[protocol.TokenData](h, protocol.TypeAssistantToken)
	stopped := make(chan error, 1)
	go func() { stopped <- g.stop() }()
	idle.ends(websocket.StatusGoingAway)
	if _, res, err := g.dial(); err == nil {
		t.Errorf("another host is let in: %s", res.Status)
	}
	res, m := next[protocol.SessionResultData](h, protocol.TypeSessionResult)
	if m.ID != "2" || res.Status != "done" || !strings.HasPrefix(res.Text, "On and on.") {
		t.Errorf("%+v", res)
	}
	h.ends(websocket.StatusGoingAway)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A host that leaves takes its sessions with it: what runs is interrupted.
func TestLeaves(t *testing.T) {
	g := start(t, socket.Config{}, script.Reply{Text: strings.Repeat("On and on. ", 40_000), DelayMS: 20})
	h := g.host()
	h.send(`{"type":"Initialize","id":"1"}`)
	h.send(`{"type":"UserMessage","id":"2","payload":{"text":"Talk"}}`)
	_, m := next[protocol.TokenData](h, protocol.TypeAssistantToken)
	_ = h.ws.CloseNow()
	late := time.NewTimer(patience)
	defer late.Stop()
	for status := "running"; status == "running" || status == "waiting"; {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+g.addr+"/v1/sessions/"+m.Session, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+secret)
		res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		var info agent.SessionInfo
		err = json.NewDecoder(res.Body).Decode(&info)
		_ = res.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		status = info.Status
		select {
		case <-late.C:
			t.Fatalf("the session is %q", status)
		default:
		}
	}
}

// The socket of a user who is removed ends, though it is in use.
func TestRemoved(t *testing.T) {
	g := start(t, socket.Config{Beat: 5 * time.Millisecond})
	token, err := g.users.Add("root", auth.Admin, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	theirs, _, err := g.dial("Authorization", "Bearer "+token)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.users.Remove("root"); err != nil {
		t.Fatal(err)
	}
	(&host{t, theirs}).ends(websocket.StatusPolicyViolation)
}
