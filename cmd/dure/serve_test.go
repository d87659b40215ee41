//go:build unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/cli"
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

// call asks the server, and returns the answer of a status.
func (p *servedProgram) call(method, path, token, body string, want int) string {
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
	if err != nil || res.StatusCode != want {
		p.t.Fatalf("%s %s: %d %v, want %d\n%s\n%s", method, path, res.StatusCode, err, want, data, p.errs)
	}
	return string(data)
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
