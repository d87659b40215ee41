package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"dure/agent"
	"dure/client"
)

// A session is opened, told, read, shared and closed.
func TestSession(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	var one, two Opened
	g.call("POST", "/v1/sessions", `{"approver":true}`, 201, &one)
	id := one.Session.ID
	if one.Session.Workdir == "" || one.User == "" {
		t.Errorf("opened: %+v", one)
	}
	g.call("POST", "/v1/sessions", `{"session":"`+id+`"}`, 201, &two)
	var info agent.SessionInfo
	g.call("GET", "/v1/sessions/"+id, "", 200, &info)
	var list agent.SessionList
	g.call("GET", "/v1/sessions?limit=5&archived=true&before=2030-01-02T03:04:05Z", "", 200, &list)
	if info.ID != id || len(list.Sessions) != 1 {
		t.Errorf("%+v, %+v", info, list)
	}
	s := g.read("/v1/sessions/" + id + "/events")
	if e := s.next1(t); e.Kind() != "session.opened" || e.Seq != 1 {
		t.Errorf("the first event: %+v", e)
	}
	var ok Accepted
	g.call("POST", "/v1/sessions/"+id+"/commands/prompt", `{"text":"hello"}`, 200, &ok)
	if p, is := g.logs.of[id].came[0].(agent.Prompt); !is || p.Text != "hello" || !ok.Accepted || ok.Queued {
		t.Errorf("came: %+v, %+v", g.logs.of[id].came, ok)
	}
	g.logs.store(id, agent.Fragment{What: "text", Text: "li"}, note(1))
	came := map[string]bool{}
	for range 2 {
		e := s.next1(t)
		came[e.Kind()] = e.Live()
	}
	if live, ok := came["note"]; live || !ok || !came["model.fragment"] {
		t.Errorf("came, and which is live: %v", came)
	}
	var left Closed
	g.call("POST", "/v1/sessions/"+id+"/close", `{"user":"`+one.User+`"}`, 200, &left)
	g.call("POST", "/v1/sessions/"+id+"/close", `{"user":"`+one.User+`"}`, 404, nil)
	g.call("GET", "/v1/sessions/"+id, "", 200, &info)
	if left.Left != 1 || info.Status != "running" {
		t.Errorf("one of two has left: %+v, %+v", left, info)
	}
	g.call("DELETE", "/v1/sessions/"+id, "", 409, nil)
	g.call("POST", "/v1/sessions/"+id+"/close", `{"user":"`+two.User+`"}`, 200, &left)
	if m, more := s.next(); m.event != "end" || !more {
		t.Errorf("at the end: %+v", m)
	}
	if _, more := s.next(); more {
		t.Error("the stream goes on behind its end")
	}
	g.call("POST", "/v1/sessions/"+id+"/commands/interrupt", "", 200, &ok)
	if !ok.Queued {
		t.Errorf("a command to a session that is closed: %+v", ok)
	}
	if status, _ := g.do(func() *http.Request {
		r := g.request("GET", "/v1/sessions/"+id+"/events", "")
		r.Header.Set("Last-Event-ID", "2")
		return r
	}()); status != 204 {
		t.Errorf("who comes back to what has ended is told %d", status)
	}
	if status, _ := g.do(g.request("GET", "/v1/sessions/"+id+"/events?after=99999", "")); status != 204 {
		t.Errorf("who asks for more of what has ended is told %d", status)
	}
	g.call("DELETE", "/v1/sessions/"+id+"?force=true", "", 200, nil)
	g.call("GET", "/v1/sessions/"+id, "", 404, nil)
}

// Whoever answers a question second is told so.
func TestAnsweredTwice(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	g.logs.store("s", agent.ApprovalAsked{ID: "ap_1"})
	answer := `{"id":"ap_1","decision":{"verdict":"allow"}}`
	g.call("POST", "/v1/sessions/s/commands/resolve", answer, 200, nil)
	for _, again := range []string{answer, strings.Replace(answer, "allow", "deny", 1)} {
		var p Problem
		g.call("POST", "/v1/sessions/s/commands/resolve", again, 409, &p)
		if p.Code != string(client.ProblemAnswered) || p.Args["verdict"] != "allow" || p.Args["by"] != "user" {
			t.Errorf("the second is told %+v", p)
		}
	}
	var p Problem
	g.call("POST", "/v1/sessions/s/commands/resolve", `{"id":"ap_2","decision":{"verdict":"allow"}}`, 404, &p)
	if p.Code != string(client.ProblemNoQuestion) {
		t.Errorf("%+v", p)
	}
	n := 0
	for _, e := range g.logs.of["s"].events {
		if e.Kind() == "approval.resolved" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d answers", n)
	}
}

// Nobody comes in without the token, nor a page of another origin or under another name.
func TestWhoComesIn(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	host := strings.TrimPrefix(g.url, "http://")
	_, port, _ := net.SplitHostPort(host)
	for _, tt := range []struct {
		name   string
		header map[string]string
		path   string
		want   int
		code   string
	}{
		{name: "the client", want: 200},
		{name: "its own origin", header: map[string]string{"Origin": "http://" + host, "Sec-Fetch-Site": "same-origin"}, want: 200},
		{name: "localhost", header: map[string]string{"Host": "localhost:" + port}, want: 200},
		{name: "no token", header: map[string]string{"Authorization": ""}, want: 401, code: "unauthorized"},
		{name: "another token", header: map[string]string{"Authorization": "Bearer " + secret + "x"}, want: 401, code: "unauthorized"},
		{name: "another scheme", header: map[string]string{"Authorization": "Basic " + secret}, want: 401, code: "unauthorized"},
		{name: "a token in the address", header: map[string]string{"Authorization": ""}, path: "/v1/queries/system?token=" + secret, want: 401, code: "unauthorized"},
		{name: "rebound to this machine", header: map[string]string{"Host": "evil.example:" + port}, want: 403, code: "host"},
		{name: "nearly localhost", header: map[string]string{"Host": "localhost.evil.example"}, want: 403, code: "host"},
		{name: "rebound, and looking at health", header: map[string]string{"Host": "evil.example"}, path: "/healthz", want: 403, code: "host"},
		{name: "forged by another origin", header: map[string]string{"Origin": "http://evil.example"}, want: 403, code: "origin"},
		{name: "forged by another port", header: map[string]string{"Origin": "http://127.0.0.1:1"}, want: 403, code: "origin"},
		{name: "forged by a page without origin", header: map[string]string{"Origin": "null"}, want: 403, code: "origin"},
		{name: "forged without saying from where", header: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403, code: "origin"},
		{name: "forged by a port of this machine", header: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403, code: "origin"},
		{name: "a form", header: map[string]string{"Content-Type": "text/plain"}, want: 415, code: "media-type"},
		{name: "another form", header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, want: 415, code: "media-type"},
		{name: "no such path", path: "/v1/nothing", want: 404, code: "no-route"},
		{name: "no such path, without a token", path: "/v1/nothing", header: map[string]string{"Authorization": ""}, want: 401, code: "unauthorized"},
		{name: "dots", path: "/v1/../v1/queries/system", want: 404, code: "no-route"},
		{name: "slashes", path: "//v1/queries/system", want: 404, code: "no-route"},
		{name: "another method", path: "/v1/sessions/x/events", want: 405, code: "method"},
		{name: "no such command", path: "/v1/sessions/x/commands/promt", want: 404, code: `no-route","fix":"take one of: accept, change`},
		{name: "no such query", path: "/v1/queries/sesions", want: 404, code: `no-route","fix":"take one of: agents`},
		{name: "no such path of a session", path: "/v1/sessions/x/y/commands/prompt", want: 404, code: "no-route"},
	} {
		path := "/v1/queries/system"
		if tt.path != "" {
			path = tt.path
		}
		r := g.request("POST", path, "{}")
		for k, v := range tt.header {
			if k == "Host" {
				r.Host = v
			} else if r.Header.Set(k, v); v == "" {
				r.Header.Del(k)
			}
		}
		status, data := g.do(r)
		if status != tt.want || tt.code != "" && !strings.Contains(string(data), `"code":"`+tt.code) {
			t.Errorf("%s: %d, want %d %s: %.200s", tt.name, status, tt.want, tt.code, data)
		}
		if status >= 400 && !strings.Contains(string(data), `"fix":"`) {
			t.Errorf("%s: nothing is said that helps: %s", tt.name, data)
		}
	}
	r := g.request("OPTIONS", "/v1/queries/system", "")
	r.Header.Set("Origin", g.url)
	r.Header.Set("Access-Control-Request-Method", "POST")
	res, err := g.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for name := range res.Header {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("a page may ask across origins: %s", name)
		}
	}
}

// Clients of OpenAI's API read errors in its shape alone: those of the door, and of what is not
// there, too.
func TestChatClientsReadErrors(t *testing.T) {
	g := start(t, nil)
	type chat struct {
		Error *struct{ Message, Type, Code string }
	}
	for _, tt := range []struct {
		path, token string
		want        chat
	}{
		{"/v1/chat/completions", "", chat{&struct{ Message, Type, Code string }{"", "invalid_request_error", "unauthorized"}}},
		{"/v1/models", "", chat{&struct{ Message, Type, Code string }{"", "invalid_request_error", "unauthorized"}}},
		{"/v1/responses", secret, chat{&struct{ Message, Type, Code string }{"", "invalid_request_error", "no-route"}}},
		{"/v1/queries/nothing", secret, chat{}},
		{"/v1/queries/system", "", chat{}},
	} {
		r := g.request("POST", tt.path, "{}")
		r.Header.Set("Authorization", "Bearer "+tt.token)
		_, data := g.do(r)
		var got chat
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%s: %v: %s", tt.path, err, data)
		}
		if got.Error != nil {
			if got.Error.Message == "" {
				t.Errorf("%s: nothing is said: %s", tt.path, data)
			}
			got.Error.Message = ""
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %s", tt.path, data)
		}
	}
}

// What leads out of the folder of a session, or is no file, is not read.
func TestPathTricks(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "work")
	for path, text := range map[string]string{"outside.txt": "secret", "work/in.txt": "inside", "work/sub/deep.txt": "deep"} {
		at := filepath.Join(root, filepath.FromSlash(path))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	linked := os.Symlink(filepath.Join(root, "outside.txt"), filepath.Join(dir, "link")) == nil &&
		os.Symlink(root, filepath.Join(dir, "up")) == nil && os.Symlink("..", filepath.Join(dir, "near")) == nil
	g := start(t, func(c *Config) {
		c.Files = func(_ context.Context, _ string) (Files, error) {
			r, err := os.OpenRoot(dir)
			return rooted{r}, err
		}
	})
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	status, data := g.do(g.request("GET", "/v1/sessions/s/file?path=sub/deep.txt", ""))
	if status != 200 || string(data) != "deep" {
		t.Fatalf("a file: %d %s", status, data)
	}
	var list Listing
	g.call("GET", "/v1/sessions/s/files", "", 200, &list)
	if len(list.Entries) < 2 || list.Path != "." {
		t.Errorf("%+v", list)
	}
	bad := []string{
		"..", "../outside.txt", "sub/../../outside.txt", "sub/../in.txt", "/etc/passwd", "//etc/passwd", "..%2foutside.txt", "%2e%2e%2foutside.txt", "%2e%2e/outside.txt",
		"..%5coutside.txt", `..\outside.txt`, "in.txt%00", "in.txt%00.png", "%00", "%0a", "%ff%fe", "%c0%ae%c0%ae/outside.txt", "./in.txt", "sub//deep.txt", "%252e%252e/outside.txt",
		"C:/Windows/win.ini", "%5c%5chost%5cshare", "sub", "nothing", "in.txt/x", strings.Repeat("a/", 3000),
	}
	if linked {
		bad = append(bad, "link", "up/outside.txt", "near/outside.txt")
	}
	for _, p := range bad {
		for _, at := range []string{"file", "files"} {
			if at == "files" && p == "sub" {
				continue
			}
			r := g.request("GET", "/v1/sessions/s/"+at, "")
			r.URL.RawQuery = "path=" + p
			if status, data := g.do(r); status < 400 || status >= 500 || strings.Contains(string(data), "secret") {
				t.Errorf("%s %s: %d %.200s", at, p, status, data)
			}
		}
	}
	for _, id := range []string{"..", "%2e%2e", "..%2f..%2fetc", "s%00", "s%2f..", "%ff"} {
		r := g.request("GET", "/v1/sessions/x/file?path=in.txt", "")
		r.URL.Opaque = g.url + "/v1/sessions/" + id + "/file?path=in.txt"
		r.URL.RawQuery = ""
		if status, data := g.do(r); status < 400 || status >= 500 {
			t.Errorf("session %s: %d %.200s", id, status, data)
		}
	}
}

// A client that says nothing more, or only half of it, is answered all the same.
func TestHalfClosed(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	body := `{"text":"half"}`
	c := g.raw(fmt.Sprintf("POST /v1/sessions/s/commands/prompt HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", secret, len(body), body))
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(c); err != nil || !strings.Contains(string(data), `"accepted":true`) {
		t.Errorf("a connection that is half closed: %v %s", err, data)
	}
	c = g.raw("POST /v1/sessions/s/commands/prompt HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(c); err != nil || !strings.Contains(string(data), `"code":"incomplete"`) {
		t.Errorf("a body that is cut short: %v %s", err, data)
	}
	if n := len(g.logs.of["s"].came); n != 1 {
		t.Errorf("%d commands came", n)
	}
}
