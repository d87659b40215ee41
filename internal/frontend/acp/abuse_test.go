package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// still are sessions that answer whatever is said with nothing.
type still struct {
	mu   sync.Mutex
	all  map[string]chan agent.Event // that are open
	made int

	models []agent.ModelInfo   // of a provider p
	told   func(agent.Resolve) // what was answered to questions; nil = nobody is told
}

// ask puts a question in a session.
func (s *still) ask(session, question string) {
	s.happens(session, agent.ApprovalAsked{ID: question, Proposal: agent.Proposal{Call: agent.Call{ID: "c-" + question, Tool: "t", Input: []byte("{}")}}})
}

// happens has something happen in a session.
func (s *still) happens(session string, b agent.Body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[session] <- agent.Event{Body: b}
}

func newStill() *still { return &still{all: map[string]chan agent.Event{}} }

// config is what a server over these sessions is made of.
func (s *still) config() Config {
	return Config{
		Text: text.For("en"), Version: "test", Logger: slog.New(slog.DiscardHandler),
		Ready: func(context.Context) error { return nil },
		Open: func(Folder) (Place, error) {
			return Place{Client: client.New(s), Mode: agent.ModeDefault, Modes: []agent.Mode{agent.ModeDefault}, Close: func() error { return nil }}, nil
		},
	}
}

func (s *still) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := o.Session
	if id == "" {
		s.made++
		id = fmt.Sprint("s", s.made)
	}
	if s.all[id] != nil {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemOwned, Message: "it is open"}
	}
	s.all[id] = make(chan agent.Event, 1000)
	return agent.SessionInfo{ID: id, Workdir: "/"}, nil
}

func (s *still) Send(_ context.Context, id string, c agent.Command) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.all[id]
	if events == nil {
		return &agent.Problem{Code: agent.ProblemMissing, Message: "it is not open"}
	}
	if r, ok := c.(agent.Resolve); ok && s.told != nil {
		s.told(r)
	}
	if p, ok := c.(agent.Prompt); ok && len(events) < cap(events)-3 {
		events <- agent.Event{Body: agent.InputAdded{Input: p.ID, Text: p.Text}}
		events <- agent.Event{Body: agent.TurnStarted{}}
		events <- agent.Event{Body: agent.TurnEnded{Reason: agent.EndDone}}
	}
	return nil
}

func (s *still) Events(ctx context.Context, id string, _ int64) iter.Seq2[agent.Event, error] {
	s.mu.Lock()
	events := s.all[id]
	s.mu.Unlock()
	return func(yield func(agent.Event, error) bool) {
		for events != nil { // it is open
			select {
			case e, ok := <-events:
				if !ok || !yield(e, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

func (s *still) Query(_ context.Context, q agent.Query) (any, error) {
	switch q := q.(type) {
	case agent.FindSession:
		return agent.SessionInfo{ID: q.Name, Workdir: "/"}, nil
	case agent.ListSessions:
		return agent.SessionList{}, nil
	case query.ListCommands:
		return []query.CommandInfo{}, nil
	case query.ListModels:
		return s.models, nil
	case query.ListProviders:
		return []query.ProviderInfo{{Name: "p", Local: true}}, nil
	case query.ReadCommand:
		return query.CommandRead{Is: query.ReadSend}, nil
	}
	return nil, &agent.Problem{Code: agent.ProblemMissing, Message: "there is nothing"}
}

func (s *still) Close(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if events := s.all[id]; events != nil {
		close(events)
		delete(s.all, id)
	}
	return nil
}

// wire is a client that sends bytes as they are, and looks at nothing by itself.
type wire struct {
	t   *testing.T
	in  *io.PipeWriter
	out *io.PipeReader
	r   *bufio.Reader
	end chan error
}

func newWire(t *testing.T, ctx context.Context, c Config) *wire {
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	w := &wire{t: t, in: in, out: out, r: bufio.NewReaderSize(out, 64<<10), end: make(chan error, 1)}
	go func() {
		err := New(c).Run(ctx, theirs, ours)
		_ = theirs.Close() // pipes in memory have no errors
		_ = ours.Close()
		w.end <- err
	}()
	return w
}

func (w *wire) send(s string) {
	w.t.Helper()
	if _, err := io.WriteString(w.in, s+"\n"); err != nil {
		w.t.Fatal(err)
	}
}

// put sends a line, unless the server is over: then nothing comes back.
func (w *wire) put(s string) { _, _ = io.WriteString(w.in, s+"\n") }

// next returns the next line of the server.
func (w *wire) next() message {
	w.t.Helper()
	line, err := w.r.ReadBytes('\n')
	if err != nil {
		w.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		w.t.Fatalf("%v: %.200s", err, line)
	}
	for _, f := range shapeFaults(m.Method, line) {
		w.t.Error(f)
	}
	return m
}

// open opens sessions.
func (w *wire) open(n int) {
	w.t.Helper()
	w.send(hello)
	w.next()
	for i := range n {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`, i))
		m := w.next()
		for string(m.ID) != fmt.Sprint(i) {
			m = w.next()
		}
		if m.Error != nil {
			w.t.Fatal(m.Error)
		}
	}
}

// question returns the next question that is put to the client's person.
func (w *wire) question() message {
	w.t.Helper()
	m := w.next()
	for m.Method != "session/request_permission" {
		m = w.next()
	}
	return m
}

// leave ends the input, and waits for the end of the server.
func (w *wire) leave() {
	w.t.Helper()
	go func() { _, _ = io.Copy(io.Discard, w.r) }() // ends with the server
	_ = w.in.Close()                                // pipes in memory have no errors
	if err := w.over(); err != nil {
		w.t.Error(err)
	}
}

// over waits for the end of the server.
func (w *wire) over() error {
	w.t.Helper()
	select {
	case err := <-w.end:
		return err
	case <-time.After(stallTime + patience): // the clock may be a test's
		w.t.Fatal("the server does not end")
	}
	return nil
}

const hello = `{"jsonrpc":"2.0","id":"hello","method":"initialize","params":{"protocolVersion":1}}`

// Whatever a line is, it is answered as JSON-RPC says, and the next one is served.
func TestLines(t *testing.T) {
	w := newWire(t, t.Context(), newStill().config())
	long := strings.Repeat("9", maxID+1)
	for _, tt := range []struct {
		line string
		code int    // 0 = no answer
		id   string // as it stands in the answer
	}{
		{"garbage", codeParse, "null"},
		{"\xff\xfe\x00", codeParse, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"`, codeParse, "null"},
		{strings.Repeat("[", 1<<20), codeParse, "null"},
		{`[]`, codeRequest, "null"},
		{`[{"jsonrpc":"2.0","id":1,"method":"session/list"}]`, codeRequest, "null"},
		{`"text"`, codeRequest, "null"},
		{`null`, codeRequest, "null"},
		{`0`, codeRequest, "null"},
		{`{}`, codeRequest, "null"},
		{`{"jsonrpc":"2.0","id":{},"method":"session/list"}`, codeRequest, "null"},
		{`{"jsonrpc":"2.0","id":[1],"method":"session/list"}`, codeRequest, "null"},
		{`{"jsonrpc":"2.0","id":true,"method":"session/list"}`, codeRequest, "null"},
		{`{"jsonrpc":"2.0","id":` + long + `,"method":"session/list"}`, codeRequest, "null"},
		{`{"jsonrpc":"2.0","id":1,"method":5}`, codeRequest, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":{"a":1},"params":{}}`, codeRequest, "1"},
		{`{"jsonrpc":2.0,"id":1,"method":"session/list"}`, codeRequest, "1"},
		{`{"jsonrpc":"1.0","id":1,"method":"session/list"}`, codeRequest, "1"},
		{`{"id":1,"method":"session/list"}`, codeRequest, "1"},
		{`{"jsonrpc":"2.0","id":1}`, codeRequest, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, codeRequest, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/list"}`, codeRequest, "1"}, // before initialize
		{`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":null}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":[1]}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"one"}}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1}}`, 0, ""}, // a notification that is none
		{`{"jsonrpc":"2.0","id":1,"method":"session/list"}`, codeRequest, "1"},            // and so still before it
		{hello, 1, `"hello"`},
		{`{"jsonrpc":"2.0","id":"a","method":"no/such/method","params":{}}`, codeMethod, `"a"`},
		{`{"jsonrpc":"2.0","id":"a","method":"session/cancel","params":{"sessionId":"s"}}`, codeMethod, `"a"`},
		{`{"jsonrpc":"2.0","id":null,"method":"no/such/method"}`, codeMethod, "null"},
		{`{"jsonrpc":"2.0","id":1.5,"method":"no/such/method"}`, codeMethod, "1.5"},
		{`{"jsonrpc":"2.0","id":-1,"method":"session/new","params":"text"}`, codeParams, "-1"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":1}}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":{}}}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":[],"prompt":1}}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"session/set_config_option","params":{"sessionId":"s","configId":{},"value":[]}}`, codeParams, "1"},
		{`{"jsonrpc":"2.0","method":"no/such/notification","params":{}}`, 0, ""},
		{`{"jsonrpc":"2.0","method":"session/cancel","params":[]}`, 0, ""},
		{`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":7}}`, 0, ""},
		{`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":{}}}`, 0, ""},
		{`{"jsonrpc":"2.0","method":"session/prompt","params":{}}`, 0, ""},
		{`{"jsonrpc":"2.0","id":99,"result":{}}`, 0, ""}, // nobody has asked
		{`{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, 0, ""},
		{`{"jsonrpc":"2.0","id":99,"error":"text"}`, 0, ""},
		{"   \t \r", 0, ""},
		{"", 0, ""},
	} {
		w.send(tt.line)
		if tt.code == 0 { // what comes next is the answer to what is sent next
			continue
		}
		m := w.next()
		if tt.code == 1 {
			if m.Error != nil || string(m.ID) != tt.id {
				t.Errorf("%.100s: %+v, %v", tt.line, m, m.Error)
			}
			continue
		}
		if m.Error == nil || m.Error.Code != tt.code || string(m.ID) != tt.id || m.Error.Message == "" {
			t.Errorf("%.100s: id %s, %v; want %s, %d", tt.line, m.ID, m.Error, tt.id, tt.code)
		}
	}
	w.send(hello)
	if m := w.next(); string(m.ID) != `"hello"` || m.Error != nil {
		t.Errorf("what comes last: %s, %v", m.ID, m.Error)
	}
	w.leave()
}

// A line may be as long as the bound says. Of one that is longer nothing is kept, and it is
// answered.
func TestGiantLines(t *testing.T) {
	w := newWire(t, t.Context(), newStill().config())
	most := hello[:len(hello)-1] + strings.Repeat(" ", maxLine-len(hello)) + "}"
	go w.put(most)
	if m := w.next(); string(m.ID) != `"hello"` || m.Error != nil {
		t.Errorf("the longest: %s, %v", m.ID, m.Error)
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const times = 8
	go func() {
		piece := bytes.Repeat([]byte("x"), 1<<20)
		for range times * maxLine / len(piece) {
			if _, err := w.in.Write(piece); err != nil {
				t.Error(err)
			}
		}
		w.put("")
		w.put(hello)
	}()
	if m := w.next(); string(m.ID) != "null" || m.Error == nil || m.Error.Code != codeParse {
		t.Errorf("a longer one: %s, %v", m.ID, m.Error)
	}
	if m := w.next(); string(m.ID) != `"hello"` || m.Error != nil {
		t.Errorf("what follows: %s, %v", m.ID, m.Error)
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > times*maxLine {
		t.Errorf("a line of %d MiB took %d MiB", times*maxLine>>20, grown>>20)
	}
	w.leave()
}

// A message comes in whatever pieces.
func TestPieces(t *testing.T) {
	w := newWire(t, t.Context(), newStill().config())
	go func() {
		for _, b := range []byte(hello + "\r\n\n" + hello + "\n") {
			if _, err := w.in.Write([]byte{b}); err != nil {
				t.Error(err)
			}
		}
	}()
	for range 2 {
		if m := w.next(); m.Error != nil || string(m.ID) != `"hello"` {
			t.Errorf("%s: %v", m.ID, m.Error)
		}
	}
	w.leave()
}

// 10,000 requests of a client that reads none of the answers before it has sent all of them,
// in no order: each is answered, by its ID, and once.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	w := newWire(t, t.Context(), newStill().config())
	w.send(hello)
	if m := w.next(); m.Error != nil {
		t.Fatal(m.Error)
	}
	const n = 10_000
	lines := []string{
		`"method":"session/list","params":{}`, `"method":"no/such"`, `"method":"session/close","params":{"sessionId":"none"}`,
		`"method":"session/prompt","params":{"sessionId":"none","prompt":[{"type":"text","text":"x"}]}`, `"method":"authenticate","params":{"methodId":"kept-key"}`,
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(n) {
		w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, i, lines[i%len(lines)]))
	}
	seen := make([]int, n)
	for range n {
		m := w.next()
		i := -1
		if json.Unmarshal(m.ID, &i) != nil || i < 0 || i >= n {
			t.Fatalf("an answer to %s", m.ID)
		}
		seen[i]++
	}
	if i := slices.IndexFunc(seen, func(times int) bool { return times != 1 }); i >= 0 {
		t.Errorf("%d was answered %d times", i, seen[i])
	}
	w.leave()
}

// A client that asks on and on and never reads is not read any more: what waits for it is
// bounded. When it reads, all is answered.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWire(t, t.Context(), newStill().config())
		sent, stop := 0, false
		var mu sync.Mutex
		go func() {
			for {
				mu.Lock()
				over := stop
				sent++
				mu.Unlock()
				if over {
					_ = w.in.Close()
					return
				}
				w.put(hello)
			}
		}()
		synctest.Wait() // for nothing to go on
		mu.Lock()
		stuck := sent
		stop = true
		mu.Unlock()
		if stuck < 2 || stuck > maxUnread/messageCost+10 {
			t.Errorf("%d lines were taken", stuck)
		}
		for range stuck {
			if m := w.next(); m.Error != nil {
				t.Fatal(m.Error)
			}
		}
		if err := w.over(); err != nil {
			t.Error(err)
		}
	})
}

// A client whose input ends, or that is to be left, and that reads nothing of what is for
// it, is waited for no longer than the bounds say; so is one whose output has ended.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(w *wire, cancel func()){
		"the input ends":                    func(w *wire, _ func()) { _ = w.in.Close() },
		"it is to be left":                  func(_ *wire, cancel func()) { cancel() },
		"the output ends":                   func(w *wire, _ func()) { _ = w.out.Close() },
		"the input ends within a message":   func(w *wire, _ func()) { _ = w.in.CloseWithError(io.ErrUnexpectedEOF) },
		"the output ends, and then the in.": func(w *wire, _ func()) { _, _ = w.out.Close(), w.in.Close() },
	} {
		for _, full := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", nothing moves: ", full), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w := newWire(t, ctx, newStill().config())
					w.send(hello)
					w.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}`)
					if full {
						go func() {
							for {
								if _, err := io.WriteString(w.in, hello+"\n"); err != nil {
									return
								}
							}
						}()
						synctest.Wait()
					} else {
						_, _ = io.WriteString(w.in, `{"jsonrpc":"2.0","id":2`)
					}
					before := time.Now()
					leave(w, cancel)
					if err := w.over(); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					most := 5 * closeTime
					if full { // the end of the input cannot be seen
						most += stallTime
					}
					if took := time.Since(before); took > most { // by the clock of the bubble
						t.Errorf("it took %s", took)
					}
					_ = w.out.Close() // what is stuck in it ends, as with a process
					_ = w.in.Close()
				})
			})
		}
	}
}

// An ID is free again once its request is answered, and a request with one that runs is
// refused without a trace.
func TestDuplicates(t *testing.T) {
	w := newWorld(t, script.Reply{Text: strings.Repeat("word ", 2000), DelayMS: 20}, script.Reply{Text: "again"})
	e := w.connect(`{}`)
	id := e.open(w.work, "")
	turn := e.send("session/prompt", `{"sessionId":`+quote(id)+`,"prompt":[{"type":"text","text":"go"}]}`)
	e.wait("words", func() bool { return strings.Contains(e.shown(), "agent_message_chunk") })
	again := `{"jsonrpc":"2.0","id":` + turn + `,"method":"session/prompt","params":{"sessionId":` + quote(id) + `,"prompt":[{"type":"text","text":"twice"}]}}`
	for range 2 * maxPrompts {
		e.line(again)
		if m := e.got(turn); m.Error == nil || m.Error.Code != codeRequest {
			t.Fatalf("twice: %+v", m)
		}
		e.mu.Lock()
		delete(e.answers, turn)
		e.asked[turn] = "session/prompt"
		e.mu.Unlock()
	}
	e.line(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":` + quote(id) + `}}`)
	if m := e.got(turn); m.Error != nil || stopOf(m.Result) != stopCancelled {
		t.Fatalf("the turn: %+v", m)
	}
	if stop := e.prompt(id, "again"); stop != stopEnd {
		t.Errorf("the next turn: %s", stop)
	}
	for _, r := range w.model.Requests() {
		if strings.Contains(string(r.Body), "twice") {
			t.Error("what was refused has reached the model")
		}
	}
}

// An answer that is none is no yes, and is not waited for any longer; answers come in any
// order, and only the first one to a question counts.
func TestOddAnswers(t *testing.T) {
	yes := `{"outcome":{"outcome":"selected","optionId":"` + answerOnce + `"}}`
	for name, lines := range map[string][]string{
		"an error that is a text": {`{"jsonrpc":"2.0","id":%s,"error":"no"}`, `{"jsonrpc":"2.0","id":%s,"result":` + yes + `}`},
		"another version":         {`{"jsonrpc":"1.0","id":%s,"result":` + yes + `}`},
		"both":                    {`{"jsonrpc":"2.0","id":%s,"result":` + yes + `,"error":{"code":1,"message":"m"}}`},
		"a list":                  {`{"jsonrpc":"2.0","id":%s,"result":[` + yes + `]}`},
		"null":                    {`{"jsonrpc":"2.0","id":%s,"result":null}`, `{"jsonrpc":"2.0","id":%s,"error":{"code":1,"message":"m"}}`},
		"an option of no list":    {`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"selected","optionId":"allow_7"}}}`},
		"a no and then a yes":     {`{"jsonrpc":"2.0","id":%s,"result":{"outcome":{"outcome":"cancelled"}}}`, `{"jsonrpc":"2.0","id":%s,"result":` + yes + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStill()
			w := newWire(t, t.Context(), s.config())
			w.open(1)
			got := make(chan agent.Resolve, 4)
			s.told = func(r agent.Resolve) { got <- r }
			s.ask("s1", "q1")
			m := w.question()
			for _, l := range lines {
				w.send(strings.ReplaceAll(l, "%s", string(m.ID)))
			}
			select {
			case r := <-got:
				if r.ID != "q1" || r.Decision.Verdict != agent.Deny {
					t.Errorf("%+v", r)
				}
			case <-time.After(patience):
				t.Error("the question waits")
			}
			w.leave()
			if len(got) > 0 {
				t.Errorf("answered twice: %+v", <-got)
			}
		})
	}
}

// Answers come in any order, and each belongs to its question.
func TestAnswersInAnyOrder(t *testing.T) {
	s := newStill()
	got := make(chan agent.Resolve, 100)
	s.told = func(r agent.Resolve) { got <- r }
	w := newWire(t, t.Context(), s.config())
	const n = 20
	w.open(n)
	asked := map[string]string{} // question to the ID of its request
	for i := range n {
		s.ask(fmt.Sprint("s", i+1), fmt.Sprint("q", i))
	}
	for range n {
		m := w.question()
		var in permissionIn
		if err := json.Unmarshal(m.Params, &in); err != nil {
			t.Fatal(err)
		}
		asked[strings.TrimPrefix(in.Call.ID, "c-")] = string(m.ID)
	}
	for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(n) {
		answer := answerDeny
		if i%2 == 0 {
			answer = answerOnce
		}
		w.send(`{"jsonrpc":"2.0","id":` + asked[fmt.Sprint("q", i)] + `,"result":{"outcome":{"outcome":"selected","optionId":"` + answer + `"}}}`)
	}
	for range n {
		select {
		case r := <-got:
			i := -1
			if _, err := fmt.Sscanf(r.ID, "q%d", &i); err != nil || (r.Decision.Verdict == agent.Allow) != (i%2 == 0) {
				t.Errorf("%+v", r)
			}
		case <-time.After(patience):
			t.Fatal("a question waits")
		}
	}
	w.leave()
}

// A session that is opened, closed and deleted from all sides at once comes to one end.
func TestClosedFromAllSides(t *testing.T) {
	t.Parallel()
	for range 20 {
		w := newWire(t, t.Context(), newStill().config())
		w.open(1)
		const n = 60
		go func() {
			lines := []string{
				`"method":"session/load","params":{"sessionId":"s1","cwd":"/","mcpServers":[]}`, `"method":"session/close","params":{"sessionId":"s1"}`,
				`"method":"session/resume","params":{"sessionId":"s1","cwd":"/"}`, `"method":"session/set_mode","params":{"sessionId":"s1","modeId":"default"}`,
				`"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"x"}]}`,
			}
			for i := range n {
				w.put(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,%s}`, 1000+i, lines[i%len(lines)]))
			}
		}()
		late := time.AfterFunc(patience, func() { _ = w.out.CloseWithError(errors.New("not all was answered")) })
		seen := map[string]bool{}
		for len(seen) < n {
			if m := w.next(); m.Method == "" {
				seen[string(m.ID)] = true
			}
		}
		late.Stop()
		w.leave()
	}
}

// Whatever a client sends, what comes back are messages, and the connection ends with its
// input.
func FuzzLines(f *testing.F) {
	const opened = hello + "\n" + `{"jsonrpc":"2.0","id":1,"method":"session/load","params":{"sessionId":"s1","cwd":"/","mcpServers":[]}}` + "\n"
	for _, seed := range []string{
		"", "garbage\n\xff\x00\n{}", hello, "[1]\nnull\n" + hello,
		opened + `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s1","prompt":[{"type":"text","text":"/x y"},{"type":"resource_link","uri":"file:///a%20b#L1:2","name":"n"},{"type":"resource","resource":{"uri":"u","text":""}},{"type":"image","data":"AAAA","mimeType":"image/png"}]}}`,
		opened + `{"jsonrpc":"2.0","id":"a","method":"session/list","params":{"cursor":"1"}}` + "\n" + `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s1"}}`,
		opened + `{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"/x","additionalDirectories":["/y"],"mcpServers":[{"name":"a","command":"b","args":["$c"],"env":[{"name":"D","value":"$e"}]},{"type":"http","name":"f","url":"g","headers":[]}]}}`,
		opened + `{"jsonrpc":"2.0","id":4,"method":"session/set_config_option","params":{"sessionId":"s1","configId":"mode","value":"default"}}` + "\n" + `{"jsonrpc":"2.0","id":1,"result":{}}`,
		opened + `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}` + "\n" + `{"jsonrpc":"2.0","id":5,"method":"authenticate","params":{"methodId":"kept-key"}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		out := &kept{}
		if err := New(newStill().config()).Run(t.Context(), bytes.NewReader(data), out); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			var m message
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			for _, f := range shapeFaults(m.Method, []byte(line)) {
				t.Error(f)
			}
		}
	})
}

// kept keeps what is written.
type kept struct {
	mu sync.Mutex
	b  strings.Builder
}

func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.Write(p)
}

func (k *kept) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.b.String()
}
