package code

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

var update = flag.Bool("update", false, "write what the tests expect")

// desk is a workspace with the tools of a session.
type desk struct {
	*testing.T
	root  string
	code  *Code
	tools map[string]agent.Tool
	calls int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.New(workspace.Config{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	box := sandbox.New(sandbox.Config{Temp: t.TempDir()})
	t.Cleanup(func() { box.Close() })
	d := &desk{T: t, root: root, tools: map[string]agent.Tool{}}
	d.code = New(Config{Workspace: ws, Box: box, Env: os.Environ()})
	for _, tool := range d.code.Tools() {
		d.tools[strings.TrimPrefix(tool.Spec().Name, "code__")] = tool
	}
	return d
}

func (d *desk) put(name, content string) {
	d.Helper()
	path := filepath.Join(d.root, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		d.Fatal(err)
	}
}

type in map[string]any

func (d *desk) call(input in) agent.Call {
	d.Helper()
	data, err := json.Marshal(input)
	if err != nil {
		d.Fatal(err)
	}
	d.calls++
	return agent.Call{ID: fmt.Sprint("c", d.calls), Input: data}
}

func (d *desk) context() agent.ToolContext { return agent.ToolContext{Workdir: d.root} }

// do plans and runs a call.
func (d *desk) do(tool string, input in) agent.Result {
	d.Helper()
	t, c := d.tools[tool], d.call(input)
	_, err := t.Plan(d.Context(), d.context(), c)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion)
	}
	if err != nil {
		d.Fatal(err)
	}
	r, err := t.Run(d.Context(), d.context(), c)
	if err != nil {
		d.Fatal(err)
	}
	return r
}

// Each language has a sample with what is easily taken for a declaration and is
// none. Beside it is what its outline has to be.
func TestLanguages(t *testing.T) {
	samples, err := filepath.Glob("testdata/outline/sample.*")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, sample := range samples {
		if filepath.Ext(sample) == ".outline" {
			continue
		}
		d := newDesk(t)
		data, err := os.ReadFile(sample)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(sample)
		for _, ends := range []string{"\n", "\r\n"} {
			d.put(name, strings.ReplaceAll(string(data), "\n", ends))
			got := d.do("outline", in{"path": name, "depth": 3}).Text + "\n"
			if *update && ends == "\n" {
				if err := os.WriteFile(sample+".outline", []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(sample + ".outline")
			if err != nil || got != string(want) {
				t.Errorf("%s with %q: %v\n%s\n-- want\n%s", name, ends, err, got, want)
			}
		}
		seen[languageOf(name).name] = true
	}
	for _, l := range languages() {
		if !seen[l.name] {
			t.Errorf("%s has no sample", l.name)
		}
	}
}

func TestOutline(t *testing.T) {
	d := newDesk(t)
	d.put("a.go", "package a\n\nfunc One() {}\n\ntype T struct {\n\tX int\n}\n")
	d.put("sub/b.py", "class B:\n    def m(self):\n        pass\n")
	d.put("sub/broken.go", "package a\n\nfunc Fine() {}\n\nfunc broken() {\n")
	d.put("data.json", "{\"a\": 1}\n")
	d.put("no.xyz", "text\n")
	d.put("bin.go", "package \x00\x01\x02")
	d.put("large.go", strings.Repeat("// x\n", maxSource/5+1))
	d.put("empty/readme.txt", "")
	for _, tt := range []struct {
		input in
		want  string
	}{
		{in{"path": "."}, "a.go (Go, 7 lines)\n3-3\tfunc One()\n5-7\ttype T struct\nsub/b.py (Python, 3 lines, best effort)\n1-3\tclass B\n2-3\t  def m(self)\nsub/broken.go (Go, 5 lines; it does not parse: symbols may be missing)\n3-3\tfunc Fine()\n5-5\tfunc broken()"},
		{in{"path": "sub", "depth": 1}, "sub/b.py (Python, 3 lines, best effort)\n1-3\tclass B\nsub/broken.go (Go, 5 lines; it does not parse: symbols may be missing)\n3-3\tfunc Fine()\n5-5\tfunc broken()"},
		{in{"path": filepath.Join(d.root, "data.json")}, "data.json (JSON, 1 line)\n1-1\ta"},
		{in{"path": "empty"}, "[no file of a known programming language]"},
		{in{"path": "no.xyz"}, "there is no outline for no.xyz: its language is not known\nRead the file, or search it with grep."},
		{in{"path": "missing.go"}, d.root + "/missing.go does not exist\nLook for it with the glob or list tool."},
		{in{"path": "bin.go"}, d.root + "/bin.go is not a text file\nUse a command that understands its format."},
		{in{"path": "large.go"}, d.root + "/large.go is larger than 2 MiB\nSearch it with grep, or read it in pages."},
	} {
		if got := d.do("outline", tt.input).Text; got != tt.want {
			t.Errorf("%v:\n%s\n-- want\n%s", tt.input, got, tt.want)
		}
	}
	r := d.do("outline", in{"path": "a.go", "depth": 1})
	want := `{"depth":1,"files":[{"path":"a.go","language":"Go","lines":7,"symbols":[{"kind":"func","name":"One","line":3,"end":3,"level":1},{"kind":"struct","name":"T","line":5,"end":7,"level":1}],"exact":true}]}`
	if string(r.Output) != want {
		t.Errorf("%s\nwant %s", r.Output, want)
	}
	e, err := d.tools["outline"].Plan(t.Context(), d.context(), d.call(in{"path": "sub/../a.go"}))
	if err != nil || len(e.Reads) != 1 || e.Reads[0] != filepath.Join(d.root, "a.go") {
		t.Errorf("%+v %v", e, err)
	}
}

// A link that leads elsewhere than when it was decided about is not followed.
func TestOutlineLink(t *testing.T) {
	d := newDesk(t)
	d.put("a.go", "package a\n")
	d.put("b.go", "package b\n\nfunc Secret() {}\n")
	link := filepath.Join(d.root, "l.go")
	prooftest.Link(t, os.Symlink("a.go", link))
	tool, c := d.tools["outline"], d.call(in{"path": "l.go"})
	if _, err := tool.Plan(t.Context(), d.context(), c); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(link), os.Symlink("b.go", link)); err != nil {
		t.Fatal(err)
	}
	if r, err := tool.Run(t.Context(), d.context(), c); err != nil || !r.Failed() || r.Error.Code != errFileChanged {
		t.Errorf("%+v %v", r, err)
	}
}

// What is too much is cut, and said to be: a folder loses depth before files.
func TestOutlineBounds(t *testing.T) {
	d := newDesk(t)
	var b strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&b, "def function_%d(): pass\n", i)
	}
	d.put("many.py", b.String())
	r := d.do("outline", in{"path": "many.py"})
	if len(r.Text) > outlineBudget || !strings.Contains(r.Text, "only the first 2000 symbols") || !strings.Contains(r.Text, "more symbols; name a smaller part") {
		t.Errorf("%d bytes: …%s", len(r.Text), r.Text[len(r.Text)-100:])
	}
	for i := range 120 {
		d.put(fmt.Sprintf("pkg/f%03d.py", i), "class LongEnoughToBeShown:\n    def one_method_of_it(self, with_a_parameter):\n        pass\n    def another_method_of_it(self, with_a_parameter):\n        pass\n")
	}
	r = d.do("outline", in{"path": "pkg"})
	if len(r.Text) > outlineBudget || !strings.Contains(r.Text, "f119.py") || strings.Contains(r.Text, "one_method") {
		t.Errorf("%d bytes: %s", len(r.Text), r.Text)
	}
	for i := range 400 {
		d.put(fmt.Sprintf("wide/f%03d.go", i), "package wide\n")
	}
	r = d.do("outline", in{"path": "wide"})
	if len(r.Text) > outlineBudget || !strings.Contains(r.Text, "[100 more files are not outlined; name a folder below]") {
		t.Errorf("%d bytes: …%s", len(r.Text), r.Text[max(0, len(r.Text)-300):])
	}
}

func TestSpecs(t *testing.T) {
	d := newDesk(t)
	size := 0
	for name, tool := range d.tools {
		s := tool.Spec()
		if len(s.Description) > 420 || len(s.Input) > 520 || !json.Valid(s.Input) {
			t.Errorf("%s: %d bytes of description, %d of schema", name, len(s.Description), len(s.Input))
		}
		size += len(s.Description) + len(s.Input)
	}
	t.Logf("the tools take %d bytes of a request", size)
	text := strings.Repeat(readSample(t, "sample.ts"), 100)
	start := time.Now()
	n := len(languageOf("x.ts").outline("x.ts", text).Symbols)
	t.Logf("%d symbols in %d kB of TypeScript take %v", n, len(text)/1000, time.Since(start))
}

func readSample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "outline", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// No file keeps the outline busy: each of these is as large as a file may be.
func TestOutlineTime(t *testing.T) {
	size := maxSource / 8 // still minutes for what takes the square of it
	if prooftest.Long() {
		size = maxSource
	}
	deep := func(line string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			b.WriteString(strings.Repeat(" ", min(i, 900)) + line + "\n")
		}
		return b.String()
	}
	for name, text := range map[string]string{
		"headings.md":  strings.Repeat("# a\n", size/4),
		"deeper.md":    strings.Repeat("# a\n## a\n### a\n", size/16),
		"open.sql":     strings.Repeat("create table a\n", size/15),
		"deep.py":      deep("class A:"),
		"deep.rb":      deep("class A"),
		"deep.yaml":    deep("a:"),
		"braces.java":  strings.Repeat("class A {\n", size/10),
		"classes.ts":   strings.Repeat("class A\n\n\n", size/10),
		"blank.rs":     "fn a()" + strings.Repeat("\n", size),
		"quotes.c":     strings.Repeat("'", size),
		"comments.cpp": strings.Repeat("/*", size/2),
		"slashes.js":   strings.Repeat("([/", size/3),
		"long.js":      strings.Repeat("class A {", size/9),
		"parens.go":    "package a\nvar x = " + strings.Repeat("(", size/2),
		"deep.json":    strings.Repeat(`{"a":`, size/5),
		"keys.json":    "{" + strings.Repeat(`"a":1,`, size/6),
	} {
		start := time.Now()
		n := len(languageOf(name).outline(name, text).Symbols)
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %d symbols took %v", name, n, took)
		} else if took > 500*time.Millisecond {
			t.Logf("%s: %d symbols took %v", name, n, took)
		}
	}
}

// Whatever a file holds, its outline names lines that it has, in their order.
func FuzzOutline(f *testing.F) {
	samples, err := os.ReadDir(filepath.Join("testdata", "outline"))
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range samples {
		if filepath.Ext(s.Name()) != ".outline" {
			f.Add(s.Name(), readSample(f, s.Name()))
		}
	}
	f.Add("x.md", "#\n# \n#### \n```\n")
	f.Add("x.rs", "'{'' '\\u{1}' 'a fn x() {")
	f.Add("x.json", `{"a":[{"b":`)
	f.Fuzz(func(t *testing.T, name, text string) {
		l := languageOf(name)
		if l == nil || strings.ContainsRune(text, '\r') {
			return
		}
		o := l.outline(name, text)
		lines, last := strings.Count(text, "\n")+1, 0
		for _, s := range o.Symbols {
			if s.Line < 1 || s.End < s.Line || s.End > lines || s.Level < 1 || len(s.text) > maxHeading+3 {
				t.Fatalf("%+v in %d lines", s, lines)
			}
			if s.Line < last {
				t.Fatalf("%+v comes after line %d", s, last)
			}
			last = s.Line
		}
	})
}
