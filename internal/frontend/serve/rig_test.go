package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/auth"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// logs are sessions in memory: events that tests store, and commands that came.
type logs struct {
	mu   sync.Mutex
	cond *sync.Cond
	of   map[string]*log
	last agent.Open // what was opened last

	refuse error // what commands are answered with; nil = they are taken
}

type log struct {
	events  []agent.Event
	live    []agent.Event // only the newest are kept for readers that are awake
	shown   int           // that there have ever been
	open    bool
	came    []agent.Command
	workdir string
	tags    []string
	parent  string
}

func newLogs() *logs {
	l := &logs{of: map[string]*log{}}
	l.cond = sync.NewCond(&l.mu)
	return l
}

// store appends to the log of a session, or shows what has no number.
func (l *logs) store(id string, bodies ...agent.Body) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.storeLocked(id, bodies...)
}

func (l *logs) storeLocked(id string, bodies ...agent.Body) {
	s := l.of[id]
	for _, b := range bodies {
		e := agent.Event{Time: time.Unix(1, 0).UTC(), ID: "e", Body: b}
		if _, ok := b.(agent.Fragment); ok {
			s.live, s.shown = append(s.live, e), s.shown+1
			continue
		}
		e.Seq, e.Epoch = int64(len(s.events)+1), 1
		s.events = append(s.events, e)
	}
	l.cond.Broadcast()
}

func (l *logs) Open(_ context.Context, o agent.Open) (agent.SessionInfo, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = o
	id := o.Session
	if l.of[id] == nil && id != "" {
		return agent.SessionInfo{}, missing(id)
	}
	if id == "" {
		if id = o.New; id == "" {
			id = fmt.Sprintf("s%d", len(l.of)+1)
		}
		l.of[id] = &log{workdir: o.Workdir}
	}
	if l.of[id].open {
		return agent.SessionInfo{}, &agent.Problem{Code: agent.ProblemOwned, Message: "it is open", Args: map[string]string{"session": id}}
	}
	l.of[id].open = true
	l.storeLocked(id, agent.SessionOpened{Session: id})
	return l.info(id), nil
}

func (l *logs) info(id string) agent.SessionInfo {
	s := l.of[id]
	i := agent.SessionInfo{ID: id, Head: int64(len(s.events)), Workdir: s.workdir, Status: "idle", Tags: s.tags, Parent: s.parent, Created: "2026-01-01T00:00:00Z", Updated: "2026-01-01T00:00:00Z"}
	if s.open {
		i.Status = "running"
	}
	return i
}

func missing(id string) error {
	return &agent.Problem{Code: agent.ProblemMissing, Message: "there is no session " + id, Args: map[string]string{"session": id}}
}

func (l *logs) Send(_ context.Context, id string, c agent.Command) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.of[id]
	if s == nil {
		return missing(id)
	}
	if l.refuse != nil {
		return l.refuse
	}
	s.came = append(s.came, c)
	if b, ok := c.(agent.Change); ok && b.Tags != nil {
		s.tags = *b.Tags
	}
	if r, ok := c.(agent.Resolve); ok {
		asked := false
		for _, e := range s.events {
			if q, ok := e.Body.(agent.ApprovalAsked); ok && q.ID == r.ID {
				asked = true
			}
			if a, ok := e.Body.(agent.ApprovalResolved); ok && a.ID == r.ID {
				return nil
			}
		}
		if asked {
			if r.Decision.By == "" {
				r.Decision.By = "user"
			}
			l.storeLocked(id, agent.ApprovalResolved(r))
		}
	}
	return nil
}

func (l *logs) Events(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error] {
	return func(yield func(agent.Event, error) bool) {
		stop := context.AfterFunc(ctx, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.cond.Broadcast()
		})
		defer stop()
		l.mu.Lock()
		defer l.mu.Unlock()
		s := l.of[id]
		if s == nil {
			l.mu.Unlock()
			yield(agent.Event{}, missing(id))
			l.mu.Lock()
			return
		}
		seen := s.shown
		for {
			var e agent.Event
			switch {
			case ctx.Err() != nil:
				return
			case int(after) < len(s.events):
				e = s.events[after]
				after = e.Seq
			case seen < s.shown:
				e = s.live[seen]
				seen++
			case !s.open:
				return
			default:
				l.cond.Wait()
				continue
			}
			l.mu.Unlock()
			more := yield(e, nil)
			l.mu.Lock()
			if !more {
				return
			}
		}
	}
}

func (l *logs) Query(_ context.Context, q agent.Query) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch q := q.(type) {
	case agent.FindSession:
		name := q.Name
		if l.of[name] == nil && slices.Contains([]string{"s", "the title", ""}, name) {
			name = "s1" // which they may all mean
		}
		if l.of[name] == nil {
			return nil, missing(q.Name)
		}
		return l.info(name), nil
	case agent.ListSessions:
		list := agent.SessionList{Sessions: []agent.SessionInfo{}}
		for _, id := range slices.Sorted(maps.Keys(l.of)) {
			if q.Tag == "" || slices.Contains(l.of[id].tags, q.Tag) {
				list.Sessions = append(list.Sessions, l.info(id))
			}
		}
		return list, nil
	case query.RemoveSession:
		if l.of[q.Session].open {
			return nil, &agent.Problem{Code: agent.ProblemOwned, Message: "it is open"}
		}
		delete(l.of, q.Session)
		return query.RemovedSession{Session: q.Session}, nil
	case query.Diff:
		return query.DiffReport{Session: q.Session, Files: []query.FileDiff{}}, nil
	case agent.ContextUsage:
		return agent.ContextReport{}, nil
	case query.DescribeSystem:
		return query.System{OS: "test"}, nil
	case query.ListModels:
		return []agent.ModelInfo(nil), nil
	}
	return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
}

func (l *logs) Close(_ context.Context, id string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.of[id]; s != nil {
		s.open = false
	}
	l.cond.Broadcast()
	return nil
}

// rooted are the files of a folder, for tests.
type rooted struct{ *os.Root }

func (r rooted) Open(name string) (*os.File, error) {
	if info, err := r.Stat(name); err != nil || !info.Mode().IsRegular() {
		return nil, fsError(err)
	}
	return r.Root.Open(name)
}

func (r rooted) ReadDir(name string, most int) ([]fs.DirEntry, error) {
	d, err := r.Root.Open(name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return d.ReadDir(most)
}

func fsError(err error) error {
	if err == nil {
		return fs.ErrInvalid
	}
	return err
}

const secret = "a-token-of-the-test"

// rig is a server that runs, and its sessions.
type rig struct {
	t      *testing.T
	logs   *logs
	server *Server
	url    string
	http   *http.Client

	described *spec        // once somebody has looked
	stop      func() error // has the server end, and waits for it
}

func start(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	l := newLogs()
	cfg := Config{Client: client.New(client.Share(l)), Token: secret, Version: "1.2.3", Workdir: t.TempDir(), Drain: time.Second}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	port, err := auth.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, port) }()
	g := &rig{t: t, logs: l, server: s, url: "http://" + port.Addr().String(), http: &http.Client{Transport: &http.Transport{}}}
	g.stop = sync.OnceValue(func() error {
		cancel()
		err := <-ended
		g.http.CloseIdleConnections()
		return err
	})
	t.Cleanup(func() {
		if err := g.stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// request makes a request with what clients send.
func (g *rig) request(method, path, body string) *http.Request {
	g.t.Helper()
	r, err := http.NewRequestWithContext(g.t.Context(), method, g.url+path, strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (g *rig) do(r *http.Request) (int, []byte) {
	g.t.Helper()
	res, err := g.http.Do(r)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	g.fits(r, res, data)
	return res.StatusCode, data
}

// get answers into v, and wants a status.
func (g *rig) call(method, path, body string, want int, v any) {
	g.t.Helper()
	if method == http.MethodPost && body == "" {
		body = "{}"
	}
	status, data := g.do(g.request(method, path, body))
	if status != want {
		g.t.Fatalf("%s %s: %d, want %d: %s", method, path, status, want, data)
	}
	if v != nil {
		if err := json.Unmarshal(data, v); err != nil {
			g.t.Fatalf("%s %s: %v: %s", method, path, err, data)
		}
	}
}

// message is what came of a stream.
type message struct {
	id    int64 // 0 = none
	event string
	data  string
}

// stream is a reader of events.
type stream struct {
	res  *http.Response
	scan *bufio.Scanner
	stop context.CancelFunc
}

func newStream(res *http.Response, cancel context.CancelFunc) *stream {
	s := &stream{res, bufio.NewScanner(res.Body), cancel}
	s.scan.Buffer(nil, 1<<20)
	return s
}

func (g *rig) read(path string, header ...string) *stream {
	g.t.Helper()
	r := g.request(http.MethodGet, path, "")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	ctx, cancel := context.WithCancel(g.t.Context())
	res, err := g.http.Do(r.WithContext(ctx))
	if err != nil {
		g.t.Fatal(err)
	}
	s := newStream(res, cancel)
	g.t.Cleanup(s.close)
	if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		g.t.Fatalf("%s: %d %s", path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	return s
}

func (s *stream) close() {
	s.stop()
	_ = s.res.Body.Close()
}

// next returns the next message; false = there is none any more.
func (s *stream) next() (m message, ok bool) {
	for s.scan.Scan() {
		name, value, _ := strings.Cut(s.scan.Text(), ": ")
		switch name {
		case "id":
			m.id, _ = strconv.ParseInt(value, 10, 64)
		case "event":
			m.event = value
		case "data":
			m.data = value
		case "":
			if m.data != "" {
				return m, true
			}
		}
	}
	return m, false
}

// event is the next event of the session.
func (s *stream) next1(t *testing.T) agent.Event {
	t.Helper()
	m, ok := s.next()
	var e agent.Event
	if !ok || m.event != "" || json.Unmarshal([]byte(m.data), &e) != nil || e.Seq != m.id {
		t.Fatalf("no event came: %+v, %v", m, ok)
	}
	return e
}

// raw sends bytes over a connection of its own, and reads what comes until it ends.
func (g *rig) raw(data string) net.Conn {
	g.t.Helper()
	c, err := new(net.Dialer).DialContext(g.t.Context(), "tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		g.t.Fatal(err)
	}
	if _, err := io.Copy(c, bytes.NewReader([]byte(data))); err != nil {
		g.t.Logf("writing: %v", err) // the server may have said no before
	}
	return c
}

func note(i int) agent.Body { return agent.Note{Text: fmt.Sprint("note ", i)} }
