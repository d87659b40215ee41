//go:build unix

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
)

// official are the ways to speak with the official server that has everything.
var official = map[string]string{"stdio": servers.Stdio, "streamableHttp": servers.HTTP, "sse": servers.SSE}

// inputs are what its tools need, where that is more than nothing.
var inputs = map[string]string{
	"echo": `{"message":"hi"}`, "get-sum": `{"a":2,"b":3}`, "get-annotated-message": `{"messageType":"error","includeImage":true}`,
	"get-structured-content": `{"location":"New York"}`, "trigger-long-running-operation": `{"duration":1,"steps":4}`,
	"trigger-sampling-request": `{"prompt":"2+2?","maxTokens":20}`, "get-resource-reference": `{"resourceType":"Text","resourceId":1}`,
	"get-resource-links": `{"count":3}`, "gzip-file-as-resource": `{"name":"a.gz","data":"data:text/plain,hello"}`,
	"trigger-url-elicitation": `{"url":"https://example.com/confirm","message":"Confirm it."}`,
}

// says is what the answers of tools have in them.
var says = map[string]string{
	"echo": "hi", "get-sum": "5", "get-env": "PATH", "trigger-long-running-operation": "completed", "trigger-sampling-request": "4",
	"trigger-elicitation-request": "Ann", "get-roots-list": "/w", "get-resource-links": "demo://resource",
}

// Everything that the official servers have can be used.
func TestOfficialServers(t *testing.T) {
	dir, node := suiteFolder(t)
	script := filepath.Join(dir, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	for mode, kind := range official {
		t.Run(mode, func(t *testing.T) {
			def := servers.Server{Name: "every", Type: kind, Command: node, Args: []string{script, mode}, Timeout: time.Minute}
			if kind != servers.Stdio {
				def.URL = listening(t, node, script, mode)
			}
			shown := make(chan string, 1000)
			s := newRig(t).open(Config{
				Servers: []servers.Server{def}, Start: boxed(t), HTTP: plainHTTP(t), Roots: func() []string { return []string{"/w"} },
				Ask: func(context.Context, string, agent.Question) (agent.Answer, error) {
					return agent.Answer{Message: agent.Message{Role: agent.Assistant, Blocks: agent.UserText("4").Blocks}, Model: "m"}, nil
				},
				Elicit: func(_ context.Context, q Elicitation) (plug.ElicitReply, error) {
					if q.URL != "" && q.Host != "example.com" {
						t.Errorf("the person is sent to %s", q.URL)
					}
					content := map[string]any{}
					for _, f := range q.Fields {
						if f.Name == "name" {
							content[f.Name] = "Ann"
						}
						if f.Name == "check" {
							content[f.Name] = true
						}
					}
					return plug.ElicitReply{Action: Accept, Content: content}, nil
				},
			})
			if st := state(s, "every"); st.State != Connected || st.Tools < 15 || st.Prompts < 4 || st.Resources < 7 || st.Templates < 2 {
				t.Fatalf("it is %+v", st)
			}
			images := 0
			ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Progress: func(text string) { shown <- text }})
			for _, tool := range s.Tools() {
				tool := tool.(*Tool)
				input := inputs[tool.Remote()]
				if input == "" {
					input = "{}"
				}
				if tool.Remote() == "simulate-research-query" { // it can only be begun as a task, which is an extension
					wants(t, runIn(ctx, t, s, tool.Spec().Name, `{"topic":"tea"}`), agent.ErrTool, "requires task")
					continue
				}
				r, err := tool.Run(ctx, agent.ToolContext{}, agent.Call{Input: json.RawMessage(input)})
				if err != nil || r.Failed() || !strings.Contains(r.Text, says[tool.Remote()]) {
					t.Errorf("%s: %v: %s", tool.Remote(), err, r.Text)
				}
				for _, b := range r.Blocks {
					if b.Type == agent.ImageBlock {
						images++
					}
				}
			}
			if images < 2 || len(shown) == 0 {
				t.Errorf("%d images, %d signs of progress", images, len(shown))
			}
			for _, p := range s.Prompts() {
				args := map[string]string{}
				for _, a := range p.Arguments {
					args[a.Name] = map[string]string{"resourceType": "Text", "resourceId": "1"}[a.Name]
					if args[a.Name] == "" {
						args[a.Name] = "Paris"
					}
				}
				if msgs, err := s.Prompt(t.Context(), "every", p.Name, args); err != nil || len(msgs) == 0 {
					t.Errorf("prompt %s: %d messages, %v", p.Name, len(msgs), err)
				}
			}
			for _, res := range s.Resources() {
				if r, err := s.Read(t.Context(), "every", res.URI); err != nil || r.Text == "" && len(r.Blocks) == 0 {
					t.Errorf("resource %s: %+v, %v", res.URI, r, err)
				}
			}
		})
	}
}

// listening starts the official server on a port and returns its address.
func listening(t *testing.T, node, script, mode string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	c := exec.Command(node, script, mode)
	c.Env = append(os.Environ(), fmt.Sprintf("PORT=%d", port))
	out, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		for in := bufio.NewScanner(out); in.Scan(); {
			continue
		}
	}()
	t.Cleanup(func() { _ = c.Process.Kill(); <-drained; _ = c.Wait() })
	at := fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(slow); time.Now().Before(end); wait(50 * time.Millisecond) {
		if conn, err := net.Dial("tcp", at); err == nil {
			conn.Close()
			return "http://" + at + map[string]string{"streamableHttp": "/mcp", "sse": "/sse"}[mode]
		}
	}
	t.Fatal("the server does not listen")
	return ""
}

// The official server for files works on the folders of the session, and on no others.
func TestOfficialFiles(t *testing.T) {
	dir, node := suiteFolder(t)
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	s := newRig(t).open(Config{
		Servers: []servers.Server{{Name: "files", Type: servers.Stdio, Command: node, Args: []string{script, root}}},
		Start:   boxed(t), Roots: func() []string { return []string{root} },
	})
	in := func(v map[string]any) string { data, _ := json.Marshal(v); return string(data) }
	file := filepath.Join(root, "a.txt")
	if r := run(t, s, "mcp__files__write_file", in(map[string]any{"path": file, "content": "tea"})); r.Failed() {
		t.Fatal(r.Text)
	}
	if r := run(t, s, "mcp__files__read_text_file", in(map[string]any{"path": file})); r.Text != "tea" {
		t.Errorf("reading: %q", r.Text)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "tea" {
		t.Errorf("the file has %q, %v", data, err)
	}
	if r := run(t, s, "mcp__files__read_text_file", in(map[string]any{"path": "/etc/hosts"})); !r.Failed() {
		t.Errorf("a file outside was read: %q", r.Text)
	}
}
