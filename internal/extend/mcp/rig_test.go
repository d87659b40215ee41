package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/prooftest"
)

func TestMain(m *testing.M) {
	switch mode := os.Getenv("DURE_MCP_SERVER"); mode {
	case "":
	case "suite":
		if err := runScenario(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	default:
		program(mode)
		return
	}
	goleak.VerifyTestMain(prooftest.Many{M: m})
}

// slow is how long a test waits for what has to happen.
const slow = time.Minute

// message is what a peer receives.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// peer is a server that says what it likes, line by line.
type peer struct {
	in   *bufio.Reader
	out  io.Writer
	quit func()

	mu   sync.Mutex
	seen []message
}

func (p *peer) line(text string) { _, _ = io.WriteString(p.out, text+"\n") }

func (p *peer) reply(m message, result string) {
	p.line(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`)
}

func (p *peer) fail(m message, code int, text string) {
	p.line(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, m.ID, code, text))
}

const (
	hello     = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"fake","version":"1"}}`
	oneTool   = `{"tools":[{"name":"t","description":"does it","inputSchema":{"type":"object"}}]}`
	saysOK    = `{"content":[{"type":"text","text":"ok"}]}`
	aQuestion = `{"jsonrpc":"2.0","id":"q%d","method":"roots/list"}`
)

// serve answers until the connection ends. What script takes is not answered here.
func (p *peer) serve(script func(*peer, message) bool) {
	for {
		text, err := p.in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m message
		_ = json.Unmarshal(text, &m)
		p.mu.Lock()
		p.seen = append(p.seen, m)
		p.mu.Unlock()
		if script != nil && script(p, m) {
			continue
		}
		switch {
		case m.Method == "" || m.ID == nil:
		case m.Method == "initialize":
			p.reply(m, hello)
		case m.Method == "tools/list":
			p.reply(m, oneTool)
		case m.Method == "tools/call":
			p.reply(m, saysOK)
		default:
			p.fail(m, -32601, "no "+m.Method)
		}
	}
}

// asked counts the messages of a method.
func (p *peer) asked(method string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.seen {
		if m.Method == method {
			n++
		}
	}
	return n
}

// rig starts fake servers by their names.
type rig struct {
	t       *testing.T
	scripts map[string]func(*peer, message) bool
	real    map[string]func() *sdk.Server
	wg      sync.WaitGroup

	mu     sync.Mutex
	peers  map[string][]*peer
	starts map[string]int
	refuse map[string]error
}

func newRig(t *testing.T) *rig {
	return &rig{t: t, scripts: map[string]func(*peer, message) bool{}, real: map[string]func() *sdk.Server{}, peers: map[string][]*peer{}, starts: map[string]int{}, refuse: map[string]error{}}
}

// start is a [Config.Start].
func (r *rig) start(ctx context.Context, s servers.Server, _ io.Writer) (io.ReadWriteCloser, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[s.Name]++
	if err := r.refuse[s.Name]; err != nil {
		return nil, err
	}
	ours, theirs := net.Pipe()
	if make := r.real[s.Name]; make != nil {
		r.wg.Go(func() { _ = make().Run(ctx, &sdk.IOTransport{Reader: theirs, Writer: theirs}) })
		return ours, nil
	}
	p := &peer{in: bufio.NewReader(theirs), out: theirs, quit: func() { theirs.Close() }}
	r.peers[s.Name] = append(r.peers[s.Name], p)
	script := r.scripts[s.Name]
	r.wg.Go(func() { defer theirs.Close(); p.serve(script) })
	return ours, nil
}

func (r *rig) count(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[name]
}

// last returns the newest peer of a name.
func (r *rig) last(name string) *peer {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.peers[name]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// open connects a set and waits until all servers have been tried.
func (r *rig) open(c Config) *Set {
	r.t.Helper()
	if c.Start == nil {
		c.Start = r.start
	}
	s := New(c)
	r.t.Cleanup(func() { s.Close(); r.wg.Wait() })
	s.Connect()
	ctx, cancel := context.WithTimeout(r.t.Context(), slow)
	defer cancel()
	if err := s.Wait(ctx); err != nil {
		r.t.Fatal("waiting for the servers: ", err)
	}
	return s
}

func stdio(names ...string) (list []servers.Server) {
	for _, n := range names {
		list = append(list, servers.Server{Name: n, Type: servers.Stdio, Command: n})
	}
	return list
}

// run calls a tool by its canonical name.
func run(t *testing.T, s *Set, name, input string) agent.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), slow)
	defer cancel()
	return runIn(ctx, t, s, name, input)
}

func runIn(ctx context.Context, t *testing.T, s *Set, name, input string) agent.Result {
	t.Helper()
	for _, tool := range s.Tools() {
		if tool.Spec().Name == name {
			r, err := tool.Run(ctx, agent.ToolContext{}, agent.Call{ID: "c1", Tool: name, Input: json.RawMessage(input)})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return r
		}
	}
	var have []string
	for _, tool := range s.Tools() {
		have = append(have, tool.Spec().Name)
	}
	t.Fatalf("no tool %s among %s; %+v", name, strings.Join(have, ", "), s.Status())
	return agent.Result{}
}

// wants checks the one clear error of a call.
func wants(t *testing.T, r agent.Result, code agent.ErrorCode, part string) {
	t.Helper()
	if r.Error == nil || r.Error.Code != code || !strings.Contains(r.Text, part) {
		t.Fatalf("got %q with %v, want %s with %q", r.Text, r.Error, code, part)
	}
}

// state returns the state of a server.
func state(s *Set, name string) Status {
	for _, st := range s.Status() {
		if st.Server.Name == name {
			return st
		}
	}
	return Status{}
}
