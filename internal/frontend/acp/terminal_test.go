package acp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// screens are the terminals of a client, none of which runs anything.
type screens struct {
	t      *testing.T
	refuse bool          // to make any
	long   bool          // what runs ends when it is killed
	allow  string        // the answer to questions
	late   chan struct{} // one is made when it is closed; nil = at once
	killed chan struct{} // closed when one was

	mu   sync.Mutex
	made terminalIn
}

func (s *screens) answer(method string, params json.RawMessage) (any, *wireError) {
	if method == "session/request_permission" {
		return map[string]any{"outcome": map[string]string{"outcome": "selected", "optionId": s.allow}}, nil
	}
	var in ofTerminal
	if err := json.Unmarshal(params, &in); err != nil || method != "terminal/create" && in.ID != "T1" {
		s.t.Errorf("%s: %s, %v", method, params, err)
	}
	switch method {
	case "terminal/create":
		if s.refuse {
			return nil, &wireError{Code: codeInternal, Message: "no room"}
		}
		if s.late != nil {
			<-s.late
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err := json.Unmarshal(params, &s.made); err != nil {
			s.t.Error(err)
		}
		return map[string]string{"terminalId": "T1"}, nil
	case "terminal/wait_for_exit":
		if s.long {
			<-s.killed
		}
		return map[string]any{"exitCode": 3}, nil
	case "terminal/kill":
		close(s.killed)
		return struct{}{}, nil
	case "terminal/output":
		return map[string]any{"output": "FROM THE TERMINAL\n", "truncated": false, "exitStatus": map[string]any{"signal": "SIGKILL"}}, nil
	}
	return struct{}{}, nil
}

// Commands run on the client's terminals where it has some and the user has turned the
// sandbox off, and nowhere else; what is denied does not run there either.
func TestTerminals(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "bash")
	for name, tt := range map[string]struct {
		caps, box, input string
		allow            string
		refuse, long     bool
		cancel           bool
		asked, model     string // what the client is asked for, what the model gets
	}{
		"shown": {
			caps: `{"terminal":true}`, box: "off", input: `{"command":"echo IN THE BOX"}`, allow: answerOnce,
			asked: "create wait_for_exit output release", model: "FROM THE TERMINAL\\nexit code 3",
		},
		"too long": {
			caps: `{"terminal":true}`, box: "off", input: `{"command":"sleep 60","timeout":1000}`, allow: answerOnce, long: true,
			asked: "create wait_for_exit kill output release", model: "took longer than 1s",
		},
		"cancelled": {
			caps: `{"terminal":true}`, box: "off", input: `{"command":"sleep 60"}`, allow: answerOnce, long: true, cancel: true,
			asked: "create wait_for_exit kill output release",
		},
		"refused": {
			caps: `{"terminal":true}`, box: "off", input: `{"command":"echo IN THE BOX"}`, allow: answerOnce, refuse: true,
			asked: "create", model: "IN THE BOX",
		},
		"denied":       {caps: `{"terminal":true}`, box: "off", input: `{"command":"touch x"}`, allow: answerDeny},
		"confined":     {caps: `{"terminal":true}`, box: "auto", input: `{"command":"echo IN THE BOX"}`, allow: answerOnce, model: "IN THE BOX"},
		"not offered":  {caps: `{}`, box: "off", input: `{"command":"echo IN THE BOX"}`, allow: answerOnce, model: "IN THE BOX"},
		"a background": {caps: `{"terminal":true}`, box: "off", input: `{"command":"echo IN THE BOX","run_in_background":true}`, allow: answerOnce, model: "runs in the background"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Bash", tt.input)}}, script.Reply{Text: "done"}, script.Reply{Text: "done"})
			w.box = tt.box
			e := w.connect(tt.caps)
			s := &screens{t: t, refuse: tt.refuse, long: tt.long, allow: tt.allow, killed: make(chan struct{})}
			e.on = s.answer
			id := e.open(w.work, "")
			turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"run it"}]}`)
			if tt.cancel {
				e.wait("the terminal", func() bool { return strings.Contains(e.shown(), `"terminalId":"T1"`) })
				e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
			}
			if m := e.got(turn); m.Error != nil || (stopOf(m.Result) == stopCancelled) != tt.cancel {
				t.Errorf("%+v", m)
			}
			asked := func() string { // but for questions
				methods := strings.ReplaceAll(strings.Join(e.calls, " "), "session/request_permission", "")
				return strings.TrimSpace(strings.ReplaceAll(methods, "terminal/", ""))
			}
			e.wait(tt.asked, func() bool { return asked() == tt.asked })
			requests := w.model.Requests()
			if last := string(requests[len(requests)-1].Body); !strings.Contains(last, tt.model) {
				t.Errorf("the model has: %.3000s", last[max(0, len(last)-3000):])
			}
			if tt.asked == "" || tt.refuse {
				return
			}
			if s.made.Session != id || s.made.Cwd != w.work || len(s.made.Args) != 2 || s.made.Args[0] != "-c" || s.made.Limit != maxTerminal {
				t.Errorf("made: %+v", s.made)
			}
			var shown []string // what the client has been told of the call, in order
			for _, u := range e.told("tool_call_update") {
				data, _ := json.Marshal(u["content"]) // of a map always encodes
				if strings.Contains(string(data), `"terminalId":"T1"`) {
					shown = append(shown, fmt.Sprint(u["status"]))
				}
			}
			if want := fmt.Sprint([]any{nil, callFailed}); fmt.Sprint(shown) != want {
				t.Errorf("shown: %v, want %s", shown, want)
			}
		})
	}
}

// A terminal that the client makes when its person has cancelled the turn already is ended and
// given back, and the turn does not wait for it.
func TestLateTerminal(t *testing.T) {
	prooftest.Program(t, "bash")
	w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Bash", `{"command":"sleep 60"}`)}}, script.Reply{Text: "done"})
	w.box = "off"
	e := w.connect(`{"terminal":true}`)
	s := &screens{t: t, allow: answerOnce, late: make(chan struct{}), killed: make(chan struct{})}
	e.on = s.answer
	id := e.open(w.work, "")
	turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"run it"}]}`)
	calls := func() string { return strings.Join(e.calls, " ") }
	e.wait("a terminal", func() bool { return strings.HasSuffix(calls(), "terminal/create") })
	e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
	if m := e.got(turn); m.Error != nil || stopOf(m.Result) != stopCancelled {
		t.Errorf("%+v", m)
	}
	close(s.late)
	e.wait("its end", func() bool { return strings.HasSuffix(calls(), "terminal/create terminal/kill terminal/release") })
}

// An answer that cannot be understood is no refusal: the client may have begun the command,
// which is not run a second time then. Only what the client itself refuses runs elsewhere.
func TestGarbledTerminal(t *testing.T) {
	t.Parallel()
	prooftest.Program(t, "bash")
	for name, tt := range map[string]struct {
		method, line string
		here         bool // it runs here
	}{
		"an error that is a text":        {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"error":"no"}`, false},
		"an error whose code is a text":  {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"error":{"code":"x","message":"no"}}`, false},
		"an error without a code":        {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"error":{"message":"no"}}`, false},
		"a result and an error":          {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":{"terminalId":"T1"},"error":{"code":1,"message":"no"}}`, false},
		"another version":                {"terminal/create", `{"jsonrpc":"1.0","id":{ID},"result":{"terminalId":"T1"}}`, false},
		"a list":                         {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":["T1"]}`, false},
		"a name that is a number":        {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":{"terminalId":7}}`, false},
		"no name":                        {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":{}}`, false},
		"null":                           {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":null}`, false},
		"an end that is none":            {"terminal/wait_for_exit", `{"jsonrpc":"2.0","id":{ID},"error":7}`, false},
		"an end that is refused":         {"terminal/wait_for_exit", `{"jsonrpc":"2.0","id":{ID},"error":{"code":-32603,"message":"no"}}`, false},
		"an output that is none":         {"terminal/output", `{"jsonrpc":"2.0","id":{ID},"result":7}`, false},
		"an output that is refused":      {"terminal/output", `{"jsonrpc":"2.0","id":{ID},"error":{"code":-32603,"message":"no"}}`, false},
		"a refusal":                      {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"error":{"code":-32603,"message":"no"}}`, true},
		"a refusal with an empty result": {"terminal/create", `{"jsonrpc":"2.0","id":{ID},"result":null,"error":{"code":-32603,"message":"no"}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, script.Reply{Calls: []script.Call{makes("c1", "Bash", `{"command":"echo ran >> count"}`)}}, script.Reply{Text: "done"})
			w.box = "off"
			e := w.connect(`{"terminal":true}`)
			s := &screens{t: t, allow: answerOnce, killed: make(chan struct{})}
			e.on = s.answer
			e.garbled = func(method string) string {
				if method == tt.method {
					return tt.line
				}
				return ""
			}
			if stop := e.prompt(e.open(w.work, ""), "run it"); stop != stopEnd {
				t.Errorf("it ended with %s", stop)
			}
			data, err := os.ReadFile(filepath.Join(w.work, "count"))
			if here := string(data) == "ran\n"; here != tt.here || !here && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it ran here: %q, %v; want %v", data, err, tt.here)
			}
			e.mu.Lock()
			made := slices.DeleteFunc(slices.Clone(e.calls), func(m string) bool { return m != "terminal/create" })
			e.mu.Unlock()
			requests := w.model.Requests()
			last := string(requests[len(requests)-1].Body)
			if len(made) != 1 || strings.Contains(last, "It may have run") == tt.here {
				t.Errorf("%d were made, the model has: %.2000s", len(made), last[max(0, len(last)-2000):])
			}
		})
	}
}

// A terminal is shown with its call whichever the client is told of first, and nobody waits
// for the other.
func TestTerminalIsShown(t *testing.T) {
	for name, steps := range map[string][]func(x *session){
		"known before": {func(x *session) { x.begun("c1") }, func(x *session) { x.showTerminal("c1", "T1") }},
		"known after":  {func(x *session) { x.showTerminal("c1", "T1") }, func(x *session) { x.begun("c1") }},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := io.Pipe()
			out, told := io.Pipe()
			s := New(Config{})
			s.line = newLine(in, told)
			x := &session{s: s, id: "s1"}
			for _, step := range steps {
				step(x)
			}
			s.line.close()
			go func() { // ends with the line
				<-s.line.done
				_ = told.Close() // it has no errors
			}()
			data, err := io.ReadAll(out)
			_ = in.Close() // likewise
			if n := strings.Count(string(data), `"terminalId":"T1"`); err != nil || n != 1 || x.endedOn("c1") != "T1" {
				t.Errorf("shown %d times: %s, %v", n, data, err)
			}
			<-s.line.over
		})
	}
}

// A client that never says that it has taken a terminal back holds up nothing that ran on it.
func TestUnreleasedTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, theirs := io.Pipe()
		out, ours := io.Pipe()
		s := New(Config{})
		s.life, s.end = context.WithCancel(t.Context())
		s.line = newLine(in, ours)
		var served sync.WaitGroup
		served.Go(func() { // what the server reads
			for data := range s.line.in {
				s.take(data)
			}
		})
		released := 0
		served.Go(func() { // the client
			for r := bufio.NewScanner(out); r.Scan(); {
				var m message
				if err := json.Unmarshal(r.Bytes(), &m); err != nil {
					t.Error(err)
				}
				result := map[string]string{"terminal/create": `{"terminalId":"T1"}`, "terminal/wait_for_exit": `{"exitCode":0}`, "terminal/output": `{"output":"DONE","truncated":false}`}[m.Method]
				if m.Method == "terminal/release" {
					released++
				}
				if result != "" {
					_, _ = io.WriteString(theirs, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":`+result+"}\n") // it is read
				}
			}
		})
		began := time.Now()
		got, err := terminal{&session{s: s, id: "s1"}}.Run(t.Context(), agent.TerminalCommand{Call: "c1", Argv: []string{"echo"}})
		if took := time.Since(began); took != 0 || err != nil || got.Output != "DONE" || got.Code != 0 {
			t.Errorf("it took %v: %+v, %v", took, got, err)
		}
		s.terminals.Wait()
		if took := time.Since(began); took != askTime {
			t.Errorf("the answer was waited for %v", took)
		}
		s.end()
		s.line.close()
		_ = theirs.Close() // pipes have no errors
		<-s.line.done
		_ = ours.Close()
		<-s.line.over
		close(s.line.in)
		served.Wait()
		if released != 1 {
			t.Errorf("it was given back %d times", released)
		}
	})
}
