package verify_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/tools/verify"
)

func TestFindings(t *testing.T) {
	for _, tt := range []struct{ name, before, after, want string }{
		{"a.go", "package a\n", "package a\n\nfunc f() {}\n", ""},
		{"a.go", "package a\n", "package a\n\nfunc f() {\n", "it parsed before and does not now: line 3: expected '}', found 'EOF'"},
		{"a.go", "package\n", "package a(\n", ""},
		{"a.go", "+", "package a(\n", "it does not parse: line 1: expected ';', found '('"}, // + = it is new
		{"a.json", `{"a":1}`, "{\"a\":\n1,}", "it parsed before and does not now: line 2: invalid character '}' looking for beginning of object key string"},
		{"a.json", "{", "[", ""},
		{"tsconfig.json", "+", "{ // comment\n}", ""},
		{"a.svg", "<svg/>", "<svg>", "it parsed before and does not now: line 1: unexpected EOF"},
		{"a.xml", "<a>한글</a>", "<a>글</a>", ""},
		{"a.txt", "가\n", "\xb0\xa1\n", "it was valid UTF-8 before and is not now"},
		{"a.txt", "\xb0\xa1\n", "\xb0\xa2\n", ""},
		{"a.txt", "one\r\ntwo\r\n", "one\r\ntwo\n", "its lines ended with CRLF before and end with LF and CRLF now"},
		{"a.txt", "one\ntwo\n", "one\r\ntwo\r\n", "its lines ended with LF before and end with CRLF now"},
		{"a.txt", "one\r\ntwo\n", "one\ntwo\n", ""},
		{"a.txt", "\xef\xbb\xbfone\n", "one\n", "it began with a byte order mark before and does not now"},
		{"a.txt", "one\n", "\xef\xbb\xbfone\n", "it begins with a byte order mark now"},
		{"a.txt", "one\n", "one\n<<<<<<< mine\na\n=======\nb\n>>>>>>> theirs\n", "line 2: a mark of an unresolved merge"},
		{"a.md", "one\n", "<<<<<<< quoted\nTitle\n===\n", ""},
		{"a.txt", "<<<<<<< a\n=======\n>>>>>>> b\n", "x\n<<<<<<< a\n=======\n>>>>>>> b\n", ""},
		{"a.txt", "one\n", "o\x00e\n", "it has a NUL byte now: it was text before"},
		{"a.go", "package a\n", "", ""},
	} {
		before, there := tt.before, true
		if before == "+" {
			before, there = "", false
		}
		if got := strings.Join(verify.Findings(tt.name, []byte(before), []byte(tt.after), there), "; "); got != tt.want {
			t.Errorf("%s: %q becomes %q: %s\nwant %s", tt.name, before, tt.after, got, tt.want)
		}
	}
}

// disk is files by their paths.
type disk map[string]string

func (d disk) read(path string, limit int) ([]byte, bool, error) {
	s, ok := d[path]
	if !ok {
		return nil, false, fs.ErrNotExist
	}
	return []byte(s[:min(len(s), limit)]), len(s) > limit, nil
}

func sum(s string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(s))) }

func TestWrap(t *testing.T) {
	large := strings.Repeat("x", verify.MaxBytes+1)
	for _, tt := range []struct {
		name    string
		effects agent.Effects
		class   agent.Class
		does    func(d disk) agent.Result
		want    string // the text of the result
		changed []string
	}{
		{"what it says", agent.Effects{Writes: []string{"/a.go"}}, agent.Checkable, func(d disk) agent.Result {
			d["/a.go"] = "package b\n"
			return agent.Result{Text: "Written.", Files: []agent.FileState{{Path: "/a.go", SHA256: sum("package b\n"), Wrote: true}}}
		}, "Written.", []string{"/a.go"}},
		{"something else", agent.Effects{Writes: []string{"/a.go"}}, agent.Checkable, func(d disk) agent.Result {
			return agent.Result{Text: "Written.", Files: []agent.FileState{{Path: "/a.go", SHA256: sum("package b\n"), Wrote: true}}}
		}, "Written.\nverification: a.go: it is not what the call says it has written; read it again", []string{"/a.go"}},
		{"nothing", agent.Effects{Writes: []string{"/n.go"}}, agent.Checkable, func(disk) agent.Result {
			return agent.Result{Text: "Written.", Files: []agent.FileState{{Path: "/n.go", SHA256: "x", Wrote: true}}}
		}, "Written.\nverification: n.go: the call says that it was written, and it is not there", []string{"/n.go"}},
		{"gone, and not", agent.Effects{Writes: []string{"/a.go"}}, agent.Checkable, func(disk) agent.Result {
			return agent.Result{Text: "Deleted.", Files: []agent.FileState{{Path: "/a.go", Wrote: true, Gone: true}}}
		}, "Deleted.\nverification: a.go: the call says that it is gone, and it is there", []string{"/a.go"}},
		{"a command", agent.Effects{Commands: []agent.SimpleCommand{{Writes: []string{"/a.go"}}}}, agent.Unsafe, func(d disk) agent.Result {
			d["/a.go"] = "package"
			return agent.Result{Text: "ok"}
		}, "ok\nverification: a.go: it parsed before and does not now: line 1: expected 'IDENT', found 'EOF'", []string{"/a.go"}},
		{"a command that failed", agent.Effects{Writes: []string{"/a.go"}}, agent.Unsafe, func(d disk) agent.Result {
			d["/a.go"] = "package"
			return agent.Result{Status: agent.StatusError, Text: "exit 1"}
		}, "exit 1\nverification: a.go: it parsed before and does not now: line 1: expected 'IDENT', found 'EOF'", []string{"/a.go"}},
		{"nothing changed", agent.Effects{Writes: []string{"/bad.go"}}, agent.Unsafe, func(disk) agent.Result { return agent.Result{Text: "ok"} }, "ok", nil},
		{"only read", agent.Effects{Writes: []string{"/a.go"}}, agent.Read, func(d disk) agent.Result {
			d["/a.go"] = "package"
			return agent.Result{Text: "ok"}
		}, "ok", nil},
		{"what is large", agent.Effects{Writes: []string{"/a.json"}}, agent.Unsafe, func(d disk) agent.Result {
			d["/a.json"] = large
			return agent.Result{Text: "ok"}
		}, "ok", []string{"/a.json"}},
		{"a stream", agent.Effects{Writes: []string{"/a.go"}}, agent.Unsafe, func(d disk) agent.Result {
			d["/a.go"] = "package"
			return agent.Result{Stream: io.NopCloser(strings.NewReader("much"))}
		}, "much\nverification: a.go: it parsed before and does not now: line 1: expected 'IDENT', found 'EOF'\n", []string{"/a.go"}},
	} {
		d := disk{"/a.go": "package a\n", "/bad.go": "package", "/a.json": "{}"}
		var changed []string
		c := verify.Config{
			Read:    d.read,
			Shown:   func(path string) string { return strings.TrimPrefix(path, "/") },
			Changed: func(_ agent.ToolContext, paths []string) { changed = append(changed, paths...) },
		}
		run := c.Wrap(func(context.Context, agent.ToolContext, agent.Call) (agent.Result, error) { return tt.does(d), nil })
		ctx := agent.WithCallEnv(t.Context(), agent.CallEnv{Class: tt.class, Effects: tt.effects})
		r, err := run(ctx, agent.ToolContext{}, agent.Call{})
		text := r.Text
		if r.Stream != nil {
			all, rerr := io.ReadAll(r.Stream)
			text = string(all)
			if cerr := r.Stream.Close(); rerr != nil || cerr != nil {
				t.Error(rerr, cerr)
			}
		}
		if err != nil || text != tt.want || !slices.Equal(changed, tt.changed) {
			t.Errorf("%s: %q, changed %q, %v\nwant %q, %q", tt.name, text, changed, err, tt.want, tt.changed)
		}
	}
}

func FuzzFindings(f *testing.F) {
	f.Add("a.go", []byte("package a\n"), []byte("package a\nfunc"), true)
	f.Add("a.json", []byte("{}"), []byte("{\"a\":"), true)
	f.Add("a.xml", []byte("<a/>"), []byte("<a>&b;"), false)
	f.Add("a.txt", []byte("<<<<<<< a\n"), []byte("<<<<<<< a\n=======\n>>>>>>> b"), true)
	f.Fuzz(func(t *testing.T, name string, before, after []byte, there bool) {
		for _, l := range verify.Findings(name, before, after, there) {
			if strings.ContainsAny(l, "\r\n") || len(l) > 300 {
				t.Fatalf("%q", l)
			}
		}
		if there && len(verify.Findings(name, after, after, true)) > 0 {
			t.Fatalf("nothing has changed: %q", verify.Findings(name, after, after, true))
		}
	})
}
