package lsp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/sourcegraph/jsonrpc2"

	"dure/agent"
	"dure/internal/safety/workspace"
)

// fake is a language server for .x files in this process. It finds an error at
// each ERR and a warning at each WARN.
type fake struct {
	begin     time.Duration // before it answers initialize
	think     time.Duration // before it publishes
	unversed  bool          // what it publishes has no version
	pull      bool          // it wants to be asked
	crash     string        // a text with this in it ends the server
	extra     []diagnostic  // found in every text
	noise     int           // messages about other files before each answer
	raw       string        // what it writes instead of answers
	deaf      bool          // it reads nothing
	asks      bool          // it asks questions of its own
	startFail bool

	mu     sync.Mutex
	starts []time.Duration // since the first one was due
	log    []string        // methods that it received, with the texts of documents
	due    time.Time
}

func (f *fake) start(_ context.Context, _ []string, _ string) (io.ReadWriteCloser, error) {
	f.mu.Lock()
	f.starts = append(f.starts, time.Since(f.due))
	f.mu.Unlock()
	if f.startFail {
		return nil, errors.New("no such program")
	}
	ours, theirs := net.Pipe()
	switch {
	case f.deaf:
	case f.raw != "":
		go func() {
			go func() { _, _ = io.Copy(io.Discard, theirs) }()
			_, _ = io.WriteString(theirs, f.raw)
		}()
	default:
		s := &fakeLife{fake: f, texts: map[string]string{}}
		jsonrpc2.NewConn(context.Background(), jsonrpc2.NewBufferedStream(theirs, jsonrpc2.VSCodeObjectCodec{}), s, jsonrpc2.SetLogger(silent{}))
	}
	return ours, nil
}

func (f *fake) said() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.log)
}

func (f *fake) started() []time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.starts)
}

type fakeLife struct {
	*fake
	texts map[string]string
}

func (s *fakeLife) Handle(ctx context.Context, conn *jsonrpc2.Conn, r *jsonrpc2.Request) {
	var p struct {
		TextDocument struct {
			URI, Text, LanguageID string
			Version               int
		}
		ContentChanges []wholeText
	}
	if r.Params != nil {
		_ = json.Unmarshal(*r.Params, &p)
	}
	d := p.TextDocument
	if len(p.ContentChanges) > 0 {
		d.Text = p.ContentChanges[0].Text
	}
	s.mu.Lock()
	note := r.Method
	if d.URI != "" {
		note += fmt.Sprintf(" %s v%d %s %q", filepath.Base(d.URI), d.Version, d.LanguageID, d.Text)
	}
	s.log = append(s.log, note)
	s.mu.Unlock()
	switch r.Method {
	case "initialize":
		pause(s.begin)
		can := map[string]any{"textDocumentSync": map[string]any{"openClose": true, "change": 1, "save": true}}
		if s.pull {
			can["diagnosticProvider"] = map[string]any{"interFileDependencies": true}
		}
		_ = conn.Reply(ctx, r.ID, map[string]any{"capabilities": can})
	case "shutdown":
		_ = conn.Reply(ctx, r.ID, nil)
	case "textDocument/didOpen", "textDocument/didChange":
		if s.crash != "" && strings.Contains(d.Text, s.crash) {
			_ = conn.Close()
			return
		}
		s.texts[d.URI] = d.Text
		if !s.pull {
			go s.publish(ctx, conn, d.URI, d.Version, s.find(d.Text))
		}
	case "textDocument/diagnostic":
		pause(s.think)
		_ = conn.Reply(ctx, r.ID, pullResult{"full", s.find(s.texts[d.URI])})
	}
}

func (s *fakeLife) publish(ctx context.Context, conn *jsonrpc2.Conn, uri string, version int, list []diagnostic) {
	pause(s.think)
	if s.asks {
		for _, m := range []string{"workspace/configuration", "client/registerCapability", "workspace/applyEdit", "no/such"} {
			var got any
			err := conn.Call(ctx, m, map[string]any{"items": []int{1, 2}}, &got)
			s.mu.Lock()
			s.log = append(s.log, fmt.Sprintf("%s: %v %v", m, got, err != nil))
			s.mu.Unlock()
		}
	}
	for i := range s.noise {
		_ = conn.Notify(ctx, "textDocument/publishDiagnostics", publishParams{URI: fmt.Sprintf("file:///other/%d.x", i), Diagnostics: list})
		_ = conn.Notify(ctx, "window/logMessage", map[string]any{"message": "noise"})
	}
	p := publishParams{URI: uri, Version: &version, Diagnostics: list}
	if s.unversed {
		p.Version = nil
		_ = conn.Notify(ctx, "textDocument/publishDiagnostics", publishParams{URI: uri}) // first nothing, then what there is
		pause(50 * time.Millisecond)
	}
	_ = conn.Notify(ctx, "textDocument/publishDiagnostics", p)
}

func (s *fakeLife) find(text string) []diagnostic {
	list := slices.Clone(s.extra)
	for n, line := range strings.Split(text, "\n") {
		for word, severity := range map[string]int{"ERR": severeError, "WARN": severeWarning} {
			if i := strings.Index(line, word); i >= 0 {
				at := position{uint32(n), uint32(len(utf16.Encode([]rune(line[:i]))))}
				list = append(list, diagnostic{Range: span{at, at}, Severity: severity, Message: "found " + line[i:]})
			}
		}
	}
	return list
}

// desk is a workspace with a client of a fake server.
type desk struct {
	*testing.T
	root   string
	fake   *fake
	client *Client
	edit   Run
}

func newDesk(t *testing.T, f *fake) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New(workspace.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	f.due = time.Now()
	d := &desk{T: t, root: root, fake: f}
	d.client = New(Config{
		Start: f.start, Root: root, FS: ws,
		Find:    func(p string) string { return map[string]string{"fakels": "/bin/fakels"}[p] },
		Servers: []Server{{Name: "fakels", Argv: []string{"fakels"}, Languages: map[string]string{".x": "ex"}}},
	})
	t.Cleanup(func() { d.client.Close() })
	d.edit = d.client.Wrap(nil, d.tool)
	return d
}

// tool writes a file: its input is a name and a text.
func (d *desk) tool(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	var in struct{ Name, Text string }
	if err := json.Unmarshal(c.Input, &in); err != nil {
		return agent.Result{}, err
	}
	d.put(in.Name, in.Text)
	r := agent.OK("Wrote it.")
	r.Files = []agent.FileState{{Path: filepath.Join(d.root, in.Name), Wrote: true}}
	return r, nil
}

func (d *desk) put(name, text string) {
	d.Helper()
	path := filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		d.Fatal(err)
	}
}

func (d *desk) context() agent.ToolContext { return agent.ToolContext{Workdir: d.root} }

// write edits a file and returns what the model reads, and how long it took.
func (d *desk) write(name, text string) (string, time.Duration) {
	d.Helper()
	input, err := json.Marshal(map[string]string{"Name": name, "Text": text})
	if err != nil {
		d.Fatal(err)
	}
	start := time.Now()
	r, err := d.edit(d.Context(), d.context(), agent.Call{ID: "c", Input: input})
	if err != nil || r.Failed() {
		d.Fatalf("the edit failed: %+v %v", r, err)
	}
	return strings.TrimPrefix(r.Text, "Wrote it.\n"), time.Since(start)
}

// ask calls code__diagnostics.
func (d *desk) ask(path string) agent.Result {
	d.Helper()
	input, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		d.Fatal(err)
	}
	tool, c := d.client.Tools()[0], agent.Call{ID: "c", Input: input}
	if _, err := tool.Plan(d.Context(), d.context(), c); err != nil {
		te, ok := errors.AsType[*agent.ToolError](err)
		if !ok {
			d.Fatal(err)
		}
		return agent.Failure(te.Code, te.Message, te.Suggestion)
	}
	r, err := tool.Run(d.Context(), d.context(), c)
	if err != nil {
		d.Fatal(err)
	}
	return r
}
