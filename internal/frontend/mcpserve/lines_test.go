package mcpserve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/frontend/text"
)

// bare is a server that has a tool which panics and one that waits, and nothing else.
func bare(t *testing.T) (s *Server, entered chan struct{}) {
	t.Helper()
	s = &Server{
		c:     Config{Text: text.For("en"), Logger: slog.New(slog.DiscardHandler), Sessions: None, Name: func(tool string) string { return tool }},
		slots: make(chan struct{}, maxAtOnce), loans: map[bool]*loan{}, errands: map[string]*errand{}, open: map[string]bool{},
	}
	s.life, s.end = context.WithCancel(context.WithoutCancel(t.Context()))
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "bare", Version: "1"}, nil)
	s.mcp.AddReceivingMiddleware(s.protect)
	schema := json.RawMessage(`{"type":"object"}`)
	entered = make(chan struct{}, maxAtOnce+1)
	s.mcp.AddTool(&mcp.Tool{Name: "panics", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		panic("as it does")
	})
	s.mcp.AddTool(&mcp.Tool{Name: "works", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.carryOut(ctx, req, func(ctx context.Context, _ person) (*mcp.CallToolResult, error) { panic("in its work") })
	})
	s.mcp.AddTool(&mcp.Tool{Name: "waits", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.carryOut(ctx, req, func(ctx context.Context, _ person) (*mcp.CallToolResult, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return nil, context.Cause(ctx)
		})
	})
	s.mcp.AddTool(&mcp.Tool{Name: "asks", InputSchema: schema}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return s.carryOut(ctx, req, func(ctx context.Context, p person) (*mcp.CallToolResult, error) {
			content, err := p.ask(ctx, &mcp.ElicitParams{Mode: "form", Message: "?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "string"}}}})
			if err != nil {
				return nil, err
			}
			said, _ := content["answer"].(string)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
		})
	})
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, entered
}

// raw is a client that writes what it likes.
type raw struct {
	t   *testing.T
	in  *io.PipeWriter
	out *bufio.Reader
	end chan error
}

func rawClient(t *testing.T, s *Server) *raw {
	t.Helper()
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	r := &raw{t, in, bufio.NewReader(out), make(chan error, 1)}
	go func() { r.end <- s.Run(context.WithoutCancel(t.Context()), theirs, ours) }()
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	return r
}

func (r *raw) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.in, line+"\n"); err != nil {
		r.t.Fatal(err)
	}
}

func (r *raw) hear() string {
	r.t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		r.t.Fatal(err)
	}
	return line
}

const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"raw","version":"1"}}}`

// Lines that are no messages, and such as are too long, are passed over with an error, and
// a request that panics has one; the connection goes on.
func TestLinesThatAreNoMessages(t *testing.T) {
	t.Parallel()
	s, _ := bare(t)
	r := rawClient(t, s)
	for _, junk := range []string{"junk", `{"a":1`, "[]", "null", `"x"`, `{}`, "\x00\xff", strings.Repeat("x", maxLine+1), `{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("y", maxLine) + `"}`} {
		r.say(junk)
		if got := r.hear(); !strings.Contains(got, "-32700") {
			t.Errorf("%.20q: %s", junk, got)
		}
	}
	r.say(hello)
	if got := r.hear(); !strings.Contains(got, `"serverInfo"`) {
		t.Fatal(got)
	}
	r.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	for _, tool := range []string{"panics", "works"} {
		r.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"` + tool + `"}}`)
		if got := r.hear(); !strings.Contains(got, "internal error") || strings.Contains(got, "as it does") {
			t.Errorf("%s: %s", tool, got)
		}
	}
	r.say(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if got := r.hear(); !strings.Contains(got, `"id":3`) {
		t.Error(got)
	}
	if err := r.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-r.end; err != nil {
		t.Error(err)
	}
}

// A request that its client cancels is over, and one whose client has gone is too.
func TestWorkEndsWithItsClient(t *testing.T) { synctest.Test(t, workEndsWithItsClient) }

func workEndsWithItsClient(t *testing.T) {
	s, entered := bare(t)
	r := rawClient(t, s)
	r.say(hello)
	r.hear()
	r.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	r.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waits"}}`)
	<-entered
	r.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
	for len(s.slots) > 0 { // until it is over
		r.say(`{"jsonrpc":"2.0","id":9,"method":"ping"}`)
		r.hear()
	}
	r.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"waits"}}`)
	<-entered
	begun := time.Now()
	if err := r.in.Close(); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, r.out) }() // ends with the pipe
	if err := <-r.end; err != nil {
		t.Error(err)
	}
	if took := time.Since(begun); took > closeTime+20*time.Second {
		t.Errorf("it took %s", took)
	}
}

// A server that is told to end does so, whatever runs in it.
func TestServerEndsWithItsContext(t *testing.T) {
	s, entered := bare(t)
	theirs, in := io.Pipe()
	out, ours := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, theirs, ours) }()
	r := &raw{t, in, bufio.NewReader(out), ended}
	t.Cleanup(func() { _, _ = in.Close(), out.Close() })
	r.say(hello)
	r.hear()
	r.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"waits"}}`)
	<-entered
	cancel()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
}

// More work than there is room for is refused at once.
func TestTooMuchAtOnce(t *testing.T) {
	s, entered := bare(t)
	r := rawClient(t, s)
	r.say(hello)
	r.hear()
	for i := range maxAtOnce {
		r.say(`{"jsonrpc":"2.0","id":"w` + strconv.Itoa(i) + `","method":"tools/call","params":{"name":"waits"}}`)
		<-entered
	}
	r.say(`{"jsonrpc":"2.0","id":"more","method":"tools/call","params":{"name":"waits"}}`)
	if got := r.hear(); !strings.Contains(got, "requests run already") {
		t.Error(got)
	}
}

// The state that a client comes back with is good for one time, and for the very call that it
// was given for.
func TestStatesOfWork(t *testing.T) {
	s, _ := bare(t)
	r := rawClient(t, s)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"raw","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}`
	call := func(arguments, more string) string {
		r.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"asks","arguments":` + arguments + more + `,` + meta + `}}`)
		return r.hear()
	}
	var asked struct {
		Result struct {
			RequestState  string
			InputRequests map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal([]byte(call(`{"a":1}`, "")), &asked); err != nil || asked.Result.RequestState == "" || len(asked.Result.InputRequests) != 1 {
		t.Fatalf("asked: %+v, %v", asked, err)
	}
	state := `,"requestState":"` + asked.Result.RequestState + `"`
	const yes = `,"inputResponses":{"approval":{"action":"accept","content":{"answer":"yes"}}}`
	for name, got := range map[string]string{
		"another state": call(`{"a":1}`, `,"requestState":"x"`+yes),
		"another call":  call(`{"a":2}`, state+yes),
		"no answer":     call(`{"a":1}`, state),
	} {
		if !strings.Contains(got, "-32602") {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := call(`{"a":1}`, state+yes); !strings.Contains(got, `"text":"yes"`) {
		t.Errorf("the answer: %s", got)
	}
	if got := call(`{"a":1}`, state+yes); !strings.Contains(got, "-32602") {
		t.Errorf("the answer once more: %s", got)
	}
}
