//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"dure/internal/frontend/cli"
	"dure/internal/models/script"
)

// servedProgram is the program as it serves sessions.
type servedProgram struct {
	t    *testing.T
	at   served
	cmd  *exec.Cmd
	errs *bytes.Buffer
	http *http.Client
	over func() (code int) // waits for its end
}

// serveFor starts the program as a server, and waits until it serves.
func serveFor(t *testing.T, w editorWorld, args ...string) *servedProgram {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	p := &servedProgram{t: t, errs: &bytes.Buffer{}, http: &http.Client{Transport: &http.Transport{}}}
	p.cmd = exec.CommandContext(ctx, dureProgram(t), append([]string{"serve", "--json"}, args...)...)
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = w.env, w.work, p.errs
	out, err := p.cmd.StdoutPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	p.over = func() int {
		t.Helper()
		if err := <-ended; errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Fatalf("it did not end: %v\n%s", err, p.errs)
		}
		return p.cmd.ProcessState.ExitCode()
	}
	read := bufio.NewReader(out)
	line, err := read.ReadBytes('\n')
	go func() {
		_, _ = io.Copy(io.Discard, read) // it says nothing more
		ended <- p.cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		p.http.CloseIdleConnections()
	})
	if err != nil || json.Unmarshal(line, &p.at) != nil || p.at.URL == "" {
		cancel()
		t.Fatalf("it does not serve: %q %v, exit %d\n%s", line, err, p.over(), p.errs)
	}
	return p
}

// ask asks the server.
func (p *servedProgram) ask(method, path, token, body string) (int, string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, p.at.URL+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Content-Type", "application/json")
	res, err := p.http.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// call asks the server, and returns the answer of a status.
func (p *servedProgram) call(method, path, token, body string, want int) string {
	p.t.Helper()
	status, data := p.ask(method, path, token, body)
	if status != want {
		p.t.Fatalf("%s %s: %d, want %d\n%s\n%s", method, path, status, want, data, p.errs)
	}
	return data
}

// asking is what the model says in a turn that waits for an answer of a person.
func asking() []script.Reply {
	return []script.Reply{{Calls: []script.Call{{ID: "c1", Tool: "Bash", Input: json.RawMessage(`{"command":"touch made"}`)}}}, {Text: "LAST"}}
}

// askedTurn begins a turn that waits for an answer, and returns the session, its events as
// far as that, and the question.
func (p *servedProgram) askedTurn() (session string, events *bufio.Reader, question string) {
	p.t.Helper()
	var opened struct {
		Session struct {
			ID string `json:"id"`
		} `json:"session"`
	}
	if err := json.Unmarshal([]byte(p.call("POST", "/v1/sessions", p.at.Token, `{"approver":true}`, 201)), &opened); err != nil {
		p.t.Fatal(err)
	}
	session = opened.Session.ID
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, p.at.URL+"/v1/sessions/"+session+"/events", nil)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+p.at.Token)
	res, err := p.http.Do(r)
	if err != nil || res.StatusCode != http.StatusOK {
		p.t.Fatal(res.Status, err)
	}
	p.t.Cleanup(func() { res.Body.Close() })
	p.call("POST", "/v1/sessions/"+session+"/commands/prompt", p.at.Token, `{"text":"go"}`, 200)
	events = bufio.NewReader(res.Body)
	seen := p.until(events, `"k":"approval.asked"`)
	var asked struct {
		D struct {
			ID string `json:"id"`
		} `json:"d"`
	}
	_, data, _ := strings.Cut(seen[strings.LastIndex(strings.TrimSpace(seen), "\n")+1:], "data: ")
	if err := json.Unmarshal([]byte(data), &asked); err != nil {
		p.t.Fatalf("%v: %s", err, data)
	}
	return session, events, asked.D.ID
}

// until reads events up to one that holds a text, and returns them.
func (p *servedProgram) until(events *bufio.Reader, what string) string {
	p.t.Helper()
	var seen strings.Builder
	for {
		line, err := events.ReadString('\n')
		if seen.WriteString(line); strings.Contains(line, what) {
			return seen.String()
		}
		if err != nil {
			p.t.Fatalf("%s does not come: %v\n%s\n%s", what, err, seen.String(), p.errs)
		}
	}
}

func (p *servedProgram) signal(s os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// A server that is told to end lets the turn that runs come to its end.
func TestServeDrains(t *testing.T) {
	t.Parallel()
	p := serveFor(t, newEditorWorld(t, asking()), "--drain", "2m")
	session, events, question := p.askedTurn()
	p.signal(syscall.SIGTERM)
	p.until(events, "event: drain")
	p.call("GET", "/readyz", "", "", 503)
	p.call("POST", "/v1/sessions", p.at.Token, `{}`, 503)
	p.call("GET", "/healthz", "", "", 200)
	p.call("POST", "/v1/sessions/"+session+"/commands/resolve", p.at.Token, `{"id":"`+question+`","decision":{"verdict":"deny"}}`, 200)
	if seen := p.until(events, `"k":"turn.ended"`); !strings.Contains(seen, "LAST") || !strings.Contains(seen, `"reason":"done"`) {
		t.Errorf("the turn: %s", seen)
	}
	if code := p.over(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.errs)
	}
}

// A turn that has no time left is stopped, and its session can be gone on with.
func TestServeStopsTurns(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, asking())
	p := serveFor(t, w, "--drain", "1ms")
	session, events, _ := p.askedTurn()
	p.signal(os.Interrupt)
	p.until(events, "event: bye")
	if code := p.over(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.errs)
	}
	verified(t, w, session)
}

// Whoever sends a second signal does not wait, and nothing that was accepted is lost.
func TestServeEndsAtOnce(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, asking())
	p := serveFor(t, w, "--drain", "1h")
	session, events, _ := p.askedTurn()
	p.signal(syscall.SIGTERM)
	p.until(events, "event: drain")
	p.signal(syscall.SIGTERM)
	if code := p.over(); code != cli.ExitTerminated {
		t.Errorf("exit %d\n%s", code, p.errs)
	}
	verified(t, w, session)
}

// verified looks whether a session is whole.
func verified(t *testing.T, w editorWorld, session string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, dureProgram(t), "verify", session)
	cmd.Env, cmd.Dir = w.env, w.work
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the session is not whole: %v\n%s", err, out)
	}
}

// certify makes a certificate of this machine, and returns its files and a client that knows
// it and reaches whatever host at one address.
func certify(t *testing.T, dir, name string) (cert, key string, reach func(addr string) *http.Client) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	made, err := x509.CreateCertificate(rand.Reader, form, form, &secret.PublicKey, secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	known := x509.NewCertPool()
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: made}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	leaf, err := x509.ParseCertificate(made)
	if err != nil {
		t.Fatal(err)
	}
	known.AddCert(leaf)
	return cert, key, func(addr string) *http.Client {
		return &http.Client{Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: known, MinVersion: tls.VersionTLS12},
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		}}
	}
}

// dure runs the program, wants an exit code, and returns what it says.
func (w editorWorld) dure(t *testing.T, want int, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, dureProgram(t), args...)
	cmd.Env, cmd.Dir = w.env, w.work
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != want {
		t.Fatalf("%q: %v, want %d\n%s", args, err, want, out)
	}
	return string(out)
}

// With a certificate it is served over TLS alone, under the names of the certificate, to
// users with their tokens; users are added, listed and removed while it is served.
func TestServeTLS(t *testing.T) {
	w := newEditorWorld(t, asking())
	cert, key, reach := certify(t, w.home, "dure.example")
	ann := strings.TrimSpace(w.dure(t, 0, "serve", "user", "add", "ann"))
	p := serveFor(t, w, "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(p.at.URL, "https://127.0.0.1:") {
		t.Fatalf("served at %s", p.at.URL)
	}
	addr := strings.TrimPrefix(p.at.URL, "https://")
	p.http = reach(addr)
	p.call("GET", "/healthz", "", "", 200)
	p.call("GET", "/v1/about", "", "", 401)
	p.call("GET", "/v1/about", ann+"x", "", 401)
	p.call("GET", "/v1/about", ann, "", 200)
	p.call("GET", "/v1/about", p.at.Token, "", 200)
	p.call("POST", "/v1/sessions", ann, `{"mode":"bypassPermissions"}`, 403)
	p.call("POST", "/v1/sessions", ann, `{}`, 201)
	p.call("POST", "/v1/queries/system", ann, `{}`, 403)
	p.call("GET", "/metrics", ann, "", 200)

	var bob struct{ Token, Scope string }
	if err := json.Unmarshal([]byte(w.dure(t, 0, "serve", "user", "add", "bob", "--scope", "read", "--json")), &bob); err != nil || bob.Scope != "read" {
		t.Fatalf("%+v %v", bob, err)
	}
	if seen := p.call("GET", "/v1/sessions", bob.Token, "", 200); !strings.Contains(seen, `"sessions":[]`) {
		t.Errorf("bob sees %s", seen)
	}
	if seen := p.call("GET", "/v1/sessions", ann, "", 200); !strings.Contains(seen, `"user:ann"`) {
		t.Errorf("ann sees %s", seen)
	}
	p.call("POST", "/v1/sessions", bob.Token, `{}`, 403)
	list := w.dure(t, 0, "serve", "user", "list")
	if !strings.Contains(list, "ann\twrite\t") || !strings.Contains(list, "bob\tread\t") || strings.Contains(list, ann) {
		t.Errorf("the list: %s", list)
	}
	w.dure(t, 0, "serve", "user", "remove", "bob")
	p.call("GET", "/v1/about", bob.Token, "", 401)

	p.at.URL = "https://dure.example" // the name of the certificate, and no other
	p.call("GET", "/v1/about", ann, "", 200)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://dure.example/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	res, err := p.http.Do(r)
	if err != nil || res.StatusCode != http.StatusForbidden {
		t.Fatalf("under another name: %v %v", res, err)
	}
	res.Body.Close()
	r, err = http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/healthz", nil)
	if err != nil {
		t.Fatal(err)
	}
	plain := &http.Client{Transport: &http.Transport{}}
	if res, err = plain.Do(r); err == nil && res.StatusCode == http.StatusOK {
		t.Error("it answers without TLS")
	}
	if err == nil {
		res.Body.Close()
	}
	plain.CloseIdleConnections()
	p.signal(syscall.SIGTERM)
	if code := p.over(); code != 0 {
		t.Errorf("exit %d\n%s", code, p.errs)
	}
	if strings.Contains(p.errs.String(), ann) {
		t.Errorf("the token is said: %s", p.errs)
	}
}

// Nothing is opened to others without TLS, or without users; and what is no certificate, no
// user or no scope is said at once.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, nil)
	cert, key, _ := certify(t, w.home, "dure.example")
	others, another, _ := certify(t, w.home, "other.example")
	refused := func(what string, args ...string) {
		t.Helper()
		if said := w.dure(t, 2, append([]string{"serve"}, args...)...); !strings.Contains(said, what) {
			t.Errorf("%q: it says %s", args, said)
		}
	}
	for _, addr := range []string{"0.0.0.0:0", "[::]:0", ":0", "192.0.2.1:0", "dure.example:0", "localhost.dure.example:0"} {
		refused("dure serve user add", "--addr", addr)
		refused("dure serve user add", "--addr", addr, "--tls-cert", cert, "--tls-key", key) // there are no users
	}
	refused("--tls-cert", "--addr", "127.0.0.1:0", "--tls-cert", cert)
	refused("--tls-cert", "--addr", "127.0.0.1:0", "--tls-key", key)
	refused("--tls-cert", "--tls-cert", cert, "--tls-key", another)
	refused("--tls-cert", "--tls-cert", others+"x", "--tls-key", another)
	refused("--tls-cert", "--tls-cert", key, "--tls-key", key)
	refused("127.0.0.1:0", "--addr", "127.0.0.1")
	refused("a name is", "user", "add", "Ann")
	refused("a name is", "user", "add")
	refused("a scope is", "user", "add", "ann", "--scope", "king")
	refused("no such user", "user", "remove", "ann")
	w.dure(t, 0, "serve", "user", "add", "ann")
	refused("such a user already", "user", "add", "ann")
	refused("dure serve user add", "--addr", "0.0.0.0:0") // there is no certificate
	w.env = append(w.env, "DURE_SERVE_TOKEN=short")
	refused("DURE_SERVE_TOKEN", "--addr", "127.0.0.1:0")
}

// A server tells collectors of its requests and turns, as long as it runs and at its end, when
// telemetry is switched on; and nobody else.
func TestServeTells(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told bytes.Buffer
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if _, err := io.Copy(&told, r.Body); err != nil || r.URL.Path != "/v1/metrics" {
			t.Errorf("%s: %v", r.URL, err)
		}
	}))
	defer collector.Close()
	has := func(what string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(told.String(), what)
	}
	w := newEditorWorld(t, asking())
	w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json", "OTEL_METRICS_EXPORTER=otlp", "OTEL_METRIC_EXPORT_INTERVAL=200", "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS=30000")
	off := serveFor(t, w)
	off.call("GET", "/v1/about", off.at.Token, "", 200)
	off.signal(syscall.SIGTERM)
	if code := off.over(); code != 0 || has("http.server") {
		t.Errorf("switched off: exit %d, told %s", code, told.String())
	}
	w.env = append(w.env, "CLAUDE_CODE_ENABLE_TELEMETRY=1")
	p := serveFor(t, w)
	p.call("GET", "/v1/about", p.at.Token, "", 200)
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for !has(`"/v1/about"`) {
		select {
		case <-look.C:
		case <-limit.C:
			t.Fatalf("the collector is not told of requests: %s\n%s", told.String(), p.errs)
		}
	}
	_, events, _ := p.askedTurn()
	p.signal(syscall.SIGTERM)
	p.until(events, "event: drain")
	p.signal(syscall.SIGTERM)
	p.over()
	p = serveFor(t, w, "--drain", "1ms")
	p.call("GET", "/v1/sessions", p.at.Token, "", 200)
	p.signal(syscall.SIGTERM)
	if code := p.over(); code != 0 || !has(`"/v1/sessions"`) || !has("dure.serve.readers") || !has("dure.approvals.waiting") || !has("dure.turns.running") {
		t.Errorf("exit %d, told %s\n%s", code, told.String(), p.errs)
	}
	if has(p.at.Token) || has(w.work) {
		t.Error("the collector is told a secret")
	}
}
