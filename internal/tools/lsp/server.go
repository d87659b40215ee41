package lsp

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/jsonrpc2"

	"dure/internal/tools/kit"
)

// The bounds of one server.
const (
	maxStarts   = 4                // the first, and three after crashes
	firstPause  = time.Second      // before the second start; doubles
	beginLimit  = time.Minute      // for initialize: it may read the whole project
	writeLimit  = 10 * time.Second // for a message to be taken, and a question to be answered
	endLimit    = 500 * time.Millisecond
	maxDocs     = 100 // documents that are open at the same time
	maxQueue    = 100 // files that wait to be sent
	maxFindings = 500 // diagnostics of one document
	maxSaid     = 400 // bytes of the message of one
	pullTries   = 3
)

// server is one language server. The goroutine in run owns its process, and is
// the only one that sends documents.
type server struct {
	client *Client
	spec   Server
	argv   []string
	wake   chan struct{} // something is in queue

	mu      sync.Mutex
	queue   []string // paths to send
	docs    map[string]*document
	order   []string      // keys of docs, the oldest first
	changed chan struct{} // closed, and replaced, when something below or in docs changed
	ready   bool          // it has answered initialize
	off     bool          // it has crashed too often, or the client is closed
}

// document is a file as the server knows it.
type document struct {
	path    string
	open    bool
	version int    // of the text that was sent last
	sum     string // of that text

	asked int // how often somebody wanted to know
	sent  int // what asked was when the text was last compared
	fresh int // what sent was when diagnostics for it came

	findings []diagnostic
	settles  time.Time // until then more may come; zero = they are complete
	reported []diagnostic
}

// quiet is how long after published diagnostics others may follow. Servers
// publish in steps: gopls first says that a version has none, and some never say
// which version they mean.
const quiet = 200 * time.Millisecond

// tell says that something has changed. The caller holds mu.
func (s *server) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// ask queues a file and returns what its document's fresh has to reach; 0 = the
// server is off, or has too much to do.
func (s *server) ask(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.off {
		return 0
	}
	k := key(path)
	if !slices.Contains(s.queue, path) {
		if len(s.queue) == maxQueue {
			return 0
		}
		s.queue = append(s.queue, path)
	}
	d := s.docs[k]
	if d == nil {
		d = &document{path: path}
		s.docs[k] = d
		s.order = append(s.order, k)
	}
	d.asked++
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return d.asked
}

// next takes a file off the queue.
func (s *server) next() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) == 0 {
		return "", false
	}
	path := s.queue[0]
	s.queue = s.queue[1:]
	return path, true
}

// run starts the server, again after crashes, until the context ends.
func (s *server) run(ctx context.Context) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.off, s.ready = true, false
		s.tell()
	}()
	pause := firstPause
	for i := range maxStarts {
		if i > 0 {
			t := time.NewTimer(pause)
			select {
			case <-ctx.Done():
				t.Stop()
				return
			case <-t.C:
			}
			pause *= 2
		}
		s.live(ctx)
		if ctx.Err() != nil {
			return
		}
		s.forget()
	}
}

// forget makes all documents ones that have to be sent again.
func (s *server) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = false
	for k, d := range s.docs {
		d.open, d.sum = false, ""
		if d.asked > d.fresh && !slices.Contains(s.queue, d.path) && len(s.queue) < maxQueue {
			s.queue = append(s.queue, s.docs[k].path)
		}
	}
	s.tell()
}

// life is one process of a server.
type life struct {
	*server
	conn   *jsonrpc2.Conn
	can    initializeResult
	rootID string
}

// live runs one process until it dies, is cut off, or the context ends.
func (s *server) live(ctx context.Context) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	pipes, err := s.client.Start(own, s.argv, s.client.Root)
	if err != nil {
		return
	}
	st := newStream(once(pipes))
	l := &life{server: s, rootID: uriOf(s.client.Root, onWindows)}
	l.conn = jsonrpc2.NewConn(own, st, l, jsonrpc2.SetLogger(silent{}))
	defer func() {
		_ = l.conn.Close() // it may be closed already
		<-st.ended
	}()
	if !l.begin(ctx) {
		return
	}
	for {
		if path, ok := s.next(); ok {
			l.send(ctx, path)
			continue
		}
		select {
		case <-ctx.Done():
			l.end()
			return
		case <-l.conn.DisconnectNotify():
			return
		case <-s.wake:
		}
	}
}

// begin greets the server.
func (l *life) begin(ctx context.Context) bool {
	err := l.call(ctx, beginLimit, "initialize", initializeParams{
		ClientInfo: map[string]any{"name": "dure"}, RootURI: l.rootID, Options: l.spec.Options, Capabilities: capabilities,
		Folders: []folder{{l.rootID, filepath.Base(l.client.Root)}},
	}, &l.can)
	if err != nil || l.notify("initialized", struct{}{}) != nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ready = true
	l.tell()
	return true
}

// end says good-bye as the protocol wants it.
func (l *life) end() {
	if l.call(context.Background(), endLimit, "shutdown", nil, nil) == nil {
		_ = l.notify("exit", nil) // it ends in any case
	}
}

// call asks the server. One that takes or answers nothing is cut off at the
// limit: its pipe may be full, and then no context ends the writing.
func (l *life) call(ctx context.Context, limit time.Duration, method string, params, result any) error {
	cut := time.AfterFunc(limit, func() { _ = l.conn.Close() })
	defer cut.Stop()
	stop := context.AfterFunc(ctx, func() { cut.Reset(endLimit) })
	defer stop()
	return l.conn.Call(context.WithoutCancel(ctx), method, params, result)
}

func (l *life) notify(method string, params any) error {
	cut := time.AfterFunc(writeLimit, func() { _ = l.conn.Close() })
	defer cut.Stop()
	return l.conn.Notify(context.Background(), method, params)
}

// Handle answers what the server says of its own accord. It is called by the
// goroutine that reads.
func (l *life) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	if r.Notif {
		if r.Method == "textDocument/publishDiagnostics" && r.Params != nil {
			var p publishParams
			if json.Unmarshal(*r.Params, &p) == nil {
				l.published(p)
			}
		}
		return
	}
	// An answer that cannot be sent is the end of the connection, which others see.
	switch r.Method {
	case "workspace/configuration":
		var p struct{ Items []json.RawMessage }
		if r.Params != nil {
			_ = json.Unmarshal(*r.Params, &p) // without items there is nothing to say
		}
		_ = conn.Reply(ctx, r.ID, make([]any, min(len(p.Items), 1000)))
	case "workspace/workspaceFolders":
		_ = conn.Reply(ctx, r.ID, []folder{{l.rootID, filepath.Base(l.client.Root)}})
	case "workspace/applyEdit":
		_ = conn.Reply(ctx, r.ID, map[string]any{"applied": false})
	case "client/registerCapability", "client/unregisterCapability", "window/workDoneProgress/create",
		"window/showMessageRequest", "workspace/diagnostic/refresh", "workspace/semanticTokens/refresh",
		"workspace/inlayHint/refresh", "workspace/codeLens/refresh":
		_ = conn.Reply(ctx, r.ID, nil)
	default:
		_ = conn.ReplyWithError(ctx, r.ID, &jsonrpc2.Error{Code: jsonrpc2.CodeMethodNotFound, Message: "not here"})
	}
}

// published takes what the server has found in a document that is open.
func (l *life) published(p publishParams) {
	path := pathOf(p.URI, onWindows)
	if path == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d := l.docs[key(path)]
	if d == nil || !d.open || p.Version != nil && *p.Version != d.version {
		return
	}
	l.found(d, p.Diagnostics, time.Now().Add(quiet))
}

// found records diagnostics. The caller holds mu.
func (s *server) found(d *document, list []diagnostic, settles time.Time) {
	list = list[:min(len(list), maxFindings)]
	d.findings = make([]diagnostic, 0, len(list))
	for _, f := range list {
		if f.Severity < severeError {
			f.Severity = severeError // not given: it is for the client to choose
		}
		if f.Severity <= severeWarning {
			f.Message, f.Code, f.Source = clean(f.Message), nil, ""
			d.findings = append(d.findings, f)
		}
	}
	d.fresh, d.settles = d.sent, settles
	s.tell()
}

// clean makes one line of at most maxSaid bytes of what a server says.
func clean(s string) string {
	if len(s) > 2*maxSaid {
		s = s[:2*maxSaid]
	}
	return kit.Line(strings.ToValidUTF8(s, "\uFFFD"), maxSaid)
}

// once makes Close one that can be called again.
func once(p io.ReadWriteCloser) io.ReadWriteCloser { return &closing{ReadWriteCloser: p} }

type closing struct {
	io.ReadWriteCloser
	once sync.Once
	err  error
}

func (c *closing) Close() error {
	c.once.Do(func() { c.err = c.ReadWriteCloser.Close() })
	return c.err
}

// silent is a logger for what a server does against the protocol.
type silent struct{}

func (silent) Printf(string, ...any) {}
