package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"dure/agent"
	"dure/internal/safety/workspace"
)

// desk is a workspace with the file tools of a session.
type desk struct {
	*testing.T
	ws, out string // folders: the workspace, and one beside it
	files   Files
	tools   map[string]agent.Tool
	calls   int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{T: t, ws: filepath.Join(dir, "ws"), out: filepath.Join(dir, "out")}
	d.check(os.Mkdir(d.ws, 0o755))
	d.check(os.Mkdir(d.out, 0o755))
	w, err := workspace.New(workspace.Config{Root: d.ws})
	d.check(err)
	d.files = Files{Workspace: w, Blob: func(handle string) (string, bool) {
		return filepath.Join(d.out, "blob"), handle == "output:abc123"
	}}
	d.open()
	return d
}

// open makes the tools anew, as when a session is resumed.
func (d *desk) open() {
	d.tools = map[string]agent.Tool{}
	for _, t := range d.files.Tools() {
		d.tools[strings.TrimPrefix(t.Spec().Name, "file-system__")] = t
	}
}

func (d *desk) check(err error) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
}

// put writes a file of the workspace behind the session's back.
func (d *desk) put(name, content string) {
	d.Helper()
	if !filepath.IsAbs(name) {
		name = filepath.Join(d.ws, name)
	}
	d.check(os.MkdirAll(filepath.Dir(name), 0o755))
	d.check(os.WriteFile(name, []byte(content), 0o644))
}

func (d *desk) get(name string) string {
	data, err := os.ReadFile(filepath.Join(d.ws, name))
	if errors.Is(err, fs.ErrNotExist) {
		return "(missing)"
	}
	d.check(err)
	return string(data)
}

func (d *desk) context() agent.ToolContext { return agent.ToolContext{Workdir: d.ws} }

// newCall makes a call with input, a struct or map or JSON.
func (d *desk) newCall(input any) agent.Call {
	d.calls++
	raw, ok := input.(string)
	if !ok {
		data, err := json.Marshal(input)
		d.check(err)
		raw = string(data)
	}
	return agent.Call{ID: "call-" + string(rune('a'+d.calls%26)), Input: json.RawMessage(raw)}
}

// do plans and runs a call as the loop does.
func (d *desk) do(tool string, input any) agent.Result {
	d.Helper()
	t, c := d.tools[tool], d.newCall(input)
	_, err := t.Plan(d.Context(), d.context(), c)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return agent.Failure(te.Code, te.Message, te.Suggestion)
	}
	d.check(err)
	if k, ok := t.(agent.Checker); ok {
		_, err := k.Mark(d.Context(), d.context(), c)
		d.check(err)
	}
	r, err := t.Run(d.Context(), d.context(), c)
	d.check(err)
	if r.Failed() && (r.Error == nil || len(r.Error.Message) > 1000 || r.Error.Suggestion == "" && r.Error.Code != agent.ErrTool) {
		d.Errorf("%s: an error that does not help: %+v", tool, r.Error)
	}
	return r
}

// text does a call and returns what the model reads, without the path of the workspace.
func (d *desk) text(tool string, input any) string {
	d.Helper()
	r := d.do(tool, input)
	text := r.Text
	if r.Failed() {
		text = string(r.Error.Code) + ": " + text
	}
	return strings.NewReplacer(d.ws, "WS", d.out, "OUT").Replace(text)
}

// want fails unless a call's text is want.
func (d *desk) want(tool string, input any, want string) {
	d.Helper()
	if got := d.text(tool, input); got != want {
		d.Errorf("%s %v:\n%s\n-- want\n%s", tool, input, got, want)
	}
}

type in map[string]any

func TestSpecsAreSmallAndComplete(t *testing.T) {
	d := newDesk(t)
	size := 0
	for _, tool := range d.files.Tools() {
		s := tool.Spec()
		size += len(s.Name) + len(s.Description) + len(s.Input)
		if !json.Valid(s.Input) || s.Description == "" || s.Group != "files" || s.Risk == "" || s.Limit == 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
		if _, ok := tool.(agent.Checker); ok != (s.Class == agent.Checkable) {
			t.Errorf("%s is of class %s", s.Name, s.Class)
		}
	}
	if size > 6_000 {
		t.Errorf("the model reads %d bytes about the file tools", size)
	}
	t.Logf("%d bytes", size)
}

func TestPlan(t *testing.T) {
	d := newDesk(t)
	d.files.Home = "/home/u"
	d.open()
	d.put("f", "x")
	for _, c := range []struct {
		tool   string
		input  in
		reads  string
		writes string
	}{
		{"read", in{"file_path": "f"}, "WS/f", ""},
		{"read", in{"file_path": "../out/x"}, "OUT/x", ""},
		{"read", in{"file_path": "~/x"}, "/home/u/x", ""},
		{"read", in{"file_path": "output:abc123"}, "", ""},
		{"write", in{"file_path": d.ws + "/a//b", "content": ""}, "", "WS/a/b"},
		{"edit", in{"file_path": "f", "old_string": "x", "new_string": "y"}, "WS/f", "WS/f"},
		{"multi-edit", in{"file_path": "f", "edits": []in{}}, "WS/f", "WS/f"},
		{"list", in{}, "WS", ""},
		{"glob", in{"pattern": "*.go"}, "WS", ""},
		{"glob", in{"pattern": "sub/dir/**/*.go", "path": "a"}, "WS/a/sub/dir", ""},
		{"glob", in{"pattern": "/etc/*.conf"}, "/etc", ""},
		{"glob", in{"pattern": "../out/*"}, "OUT", ""},
		{"grep", in{"pattern": "x"}, "WS", ""},
		{"grep", in{"pattern": "x", "path": "output:abc123"}, "", ""},
	} {
		e, err := d.tools[c.tool].Plan(t.Context(), d.context(), d.newCall(c.input))
		short := strings.NewReplacer(d.ws, "WS", d.out, "OUT")
		if got := short.Replace(strings.Join(e.Reads, " ") + ">" + strings.Join(e.Writes, " ")); err != nil || got != c.reads+">"+c.writes {
			t.Errorf("%s %v: %s, %v", c.tool, c.input, got, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	d := newDesk(t)
	for _, c := range []struct{ tool, input string }{
		{"read", `{"file_path":""}`},
		{"read", `{"file_path":"a\u0000b"}`},
		{"read", `{"file_path":7}`},
		{"read", `{"file_path":"x","other":1}`},
		{"read", `[]`},
		{"write", `{"file_path":"x"}`},
		{"write", `{"file_path":"x","content":null}`},
		{"edit", `{"file_path":"x","old_string":""}`},
		{"edit", `{"file_path":"x","new_string":""}`},
		{"multi-edit", `{"file_path":"x","edits":[]}`},
		{"glob", `{"pattern":""}`},
		{"glob", `{"pattern":"a["}`},
		{"glob", `{"pattern":"*/../../x"}`},
		{"glob", `{"pattern":"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"}`},
		{"glob", `{"pattern":"` + strings.Repeat("{"+strings.Repeat(",", 99)+"}", 8) + `z"}`},
		{"glob", `{"pattern":"[{]` + strings.Repeat("{"+strings.Repeat(",", 40)+"}", 7) + `z"}`},
		{"glob", `{"pattern":"` + strings.Repeat("{a[}]"+strings.Repeat(",", 40)+"}", 7) + `z"}`},
		{"list", `{"ignore":["x"` + strings.Repeat(`,"x"`, maxPatterns) + `]}`},
		{"grep", `{"pattern":"x","glob":"x` + strings.Repeat(" x", maxPatterns) + `"}`},
		{"grep", `{"pattern":"(((.?){10}){10}){10}y"}`},
		{"grep", `{"pattern":"((.?){30}){30}y","multiline":true}`},
		{"grep", `{"pattern":""}`},
		{"grep", `{"pattern":"("}`},
		{"grep", `{"pattern":"x","type":"klingon"}`},
		{"grep", `{"pattern":"x","glob":"["}`},
		{"grep", `{"pattern":"x","output_mode":"all"}`},
		{"list", `{"ignore":["["]}`},
		{"read", `{"file_path":"x","offset":1.5}`},
		{"read", `{"file_path":"x","offset":1e99}`},
	} {
		if got := d.text(c.tool, c.input); !strings.HasPrefix(got, "E_TOOL_INPUT: ") {
			t.Errorf("%s %s: %s", c.tool, c.input, got)
		}
	}
	if got := d.get("x"); got != "(missing)" {
		t.Errorf("x was made: %q", got)
	}
}

// A link that is turned elsewhere between the decision and the run must not be
// followed: nobody agreed to where it leads now.
func TestLinkTurnedAfterTheDecision(t *testing.T) {
	d := newDesk(t)
	d.put("a", "first")
	d.put("b", "second")
	name := filepath.Join(d.ws, "link")
	d.check(os.Symlink("a", name))
	for tool, input := range map[string]in{"read": {"file_path": "link"}, "write": {"file_path": "link", "content": "x"}} {
		c := d.newCall(input)
		_, err := d.tools[tool].Plan(t.Context(), d.context(), c)
		d.check(err)
		d.check(os.Remove(name))
		d.check(os.Symlink("b", name))
		r, err := d.tools[tool].Run(t.Context(), d.context(), c)
		if err != nil || !r.Failed() || r.Error.Code != ErrFileChanged {
			t.Errorf("%s: %+v, %v", tool, r, err)
		}
		d.check(os.Remove(name))
		d.check(os.Symlink("a", name))
	}
	if d.get("a") != "first" || d.get("b") != "second" {
		t.Error("written")
	}
}

// faulty is a file system on which some things fail.
type faulty struct {
	workspace.FS
	open, write error
}

func (f faulty) Open(path string) (workspace.File, error) {
	if f.open != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: f.open}
	}
	return f.FS.Open(path)
}

func (f faulty) Write(path string, data []byte, o workspace.WriteOptions) (fs.FileInfo, error) {
	if f.write != nil {
		return nil, &fs.PathError{Op: "write", Path: path, Err: f.write}
	}
	return f.FS.Write(path, data, o)
}

func TestFaultsOfTheDisk(t *testing.T) {
	d := newDesk(t)
	d.put("f", "old\n")
	write := in{"file_path": "new", "content": "x"}
	for _, c := range []struct {
		name  string
		fault faulty
		tool  string
		input in
		want  string
	}{
		{"no permission to read", faulty{open: fs.ErrPermission}, "read", in{"file_path": "f"}, "E_FILE_ACCESS: permission denied: WS/f"},
		{"no permission to look", faulty{open: fs.ErrPermission}, "grep", in{"pattern": "x", "path": "f"}, "E_FILE_ACCESS: permission denied: WS/f"},
		{"no permission to write", faulty{write: fs.ErrPermission}, "write", write, "E_FILE_ACCESS: permission denied: WS/new"},
		{"full", faulty{write: syscall.ENOSPC}, "write", write, "E_DISK_FULL: no space left on the disk for WS/new; the file is as it was"},
		{"other", faulty{write: errors.New("the disk is on fire")}, "write", write, "E_TOOL: write WS/new: the disk is on fire"},
		{"changed in the last moment", faulty{write: workspace.ErrChanged}, "write", write, "E_FILE_CHANGED: WS/new was changed by someone else in this moment; nothing was written"},
	} {
		c.fault.FS = d.files.Workspace
		d.files.FS = c.fault
		d.open()
		if got, _, _ := strings.Cut(d.text(c.tool, c.input), "\n"); got != c.want {
			t.Errorf("%s: %s", c.name, got)
		}
	}
}

func TestCancelled(t *testing.T) {
	d := newDesk(t)
	d.put("f", strings.Repeat("x\n", 10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for tool, input := range map[string]in{
		"read": {"file_path": "f"}, "write": {"file_path": "g", "content": "x"}, "grep": {"pattern": "x"}, "glob": {"pattern": "*"}, "list": {},
	} {
		_, err := d.tools[tool].Run(ctx, d.context(), d.newCall(input))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", tool, err)
		}
	}
	if d.get("g") != "(missing)" {
		t.Error("written")
	}
}

// The tools of a session serve the calls of one answer at once.
func TestReadsRunAtOnce(t *testing.T) {
	d := newDesk(t)
	for i := range 100 {
		d.put(fmt.Sprintf("f%02d", i), count(1, 50))
	}
	var wg sync.WaitGroup
	for i := range 4 {
		for tool, input := range map[string]string{
			"read": fmt.Sprintf(`{"file_path":"f%02d","offset":10.0}`, i), "grep": `{"pattern":"line 5"}`, "glob": `{"pattern":"f*"}`, "list": `{}`,
		} {
			c := agent.Call{ID: fmt.Sprint(tool, i), Input: json.RawMessage(input)}
			wg.Go(func() {
				if _, err := d.tools[tool].Plan(t.Context(), d.context(), c); err != nil {
					t.Error(err)
				}
				if r, err := d.tools[tool].Run(t.Context(), d.context(), c); err != nil || r.Failed() {
					t.Error(r, err)
				}
			})
		}
	}
	wg.Wait()
}
