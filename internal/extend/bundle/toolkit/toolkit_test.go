package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/changeset"
	"dure/internal/prooftest"
	"dure/internal/safety/workspace"
	"dure/internal/tools/files"
)

// desk is a session of an agent with all kits, in a workspace.
type desk struct {
	t    *testing.T
	work string
	home string
	tool func(entry, export, name, description string) (agent.Tool, bool)
	n    int
}

func newDesk(t *testing.T, c Config) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, work: filepath.Join(dir, "work"), home: filepath.Join(dir, "home")}
	for _, sub := range []string{d.work, d.home} {
		if err := os.Mkdir(sub, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	ws, err := workspace.New(workspace.Config{Root: d.work})
	if err != nil {
		t.Fatal(err)
	}
	c.Workspace, c.Home = ws, d.home
	d.tool = New(c)
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	name = filepath.Join(d.work, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644)); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	data, err := os.ReadFile(filepath.Join(d.work, filepath.FromSlash(name)))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// call is a call of an export that was planned, and has not run.
type call struct {
	d       *desk
	tool    agent.Tool
	call    agent.Call
	effects agent.Effects
	err     error // of planning
}

func (d *desk) plan(entry, export, in string) call {
	d.t.Helper()
	d.n++
	one, ok := d.tool(entry, export, entry+"__"+export, "")
	if !ok {
		d.t.Fatalf("there is no %s.%s", entry, export)
	}
	c := call{d: d, tool: one, call: agent.Call{ID: string(rune('a' + d.n)), Tool: entry + "__" + export, Input: json.RawMessage(in)}}
	c.effects, c.err = one.Plan(d.t.Context(), agent.ToolContext{}, c.call)
	return c
}

// run is what the call comes to: a result, or the code of an error and what it says.
func (c call) run(ctx context.Context) (agent.Result, string) {
	c.d.t.Helper()
	if te, ok := errors.AsType[*agent.ToolError](c.err); ok {
		return agent.Result{}, string(te.Code) + ": " + te.Message
	}
	r, err := c.tool.Run(ctx, agent.ToolContext{}, c.call)
	switch {
	case err != nil || c.err != nil:
		c.d.t.Fatalf("%s: %v, %v", c.call.Input, c.err, err)
	case r.Error != nil:
		return r, string(r.Error.Code) + ": " + r.Error.Message
	}
	return r, string(r.Output)
}

func (d *desk) does(entry, export, in string) string {
	d.t.Helper()
	_, said := d.plan(entry, export, in).run(d.t.Context())
	return said
}

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

// A kit has the exports that it says, also in the form of older bundles, under the name and
// with the description that a bundle gives them; what there is not is not made.
func TestExports(t *testing.T) {
	for entry, want := range map[string][]string{
		"calculator": {"add", "multiply"}, "file": {"read", "write"}, "skills": {"list"},
		"bundle": {"commitChangeset", "openChangeset"}, "Bash": nil, "": nil,
	} {
		if got := Exports(entry); !slices.Equal(got, want) {
			t.Errorf("%s has %q", entry, got)
		}
	}
	for of, want := range map[[2]string]bool{
		{"file", "read"}: true, {"file", "file.read"}: true, {"file", "a.b.read"}: true, {"file", "read."}: false,
		{"file", "add"}: false, {"calculator", "calc.add"}: true, {"none", "add"}: false, {"file", ""}: false,
	} {
		if got := Has(of[0], of[1]); got != want {
			t.Errorf("%q: %v", of, got)
		}
		if _, ok := newDesk(t, Config{}).tool(of[0], of[1], "x", ""); ok != want {
			t.Errorf("%q is made: %v", of, ok)
		}
	}
	one, _ := newDesk(t, Config{}).tool("calculator", "add", "sum__up", "Sums up.")
	if s := one.Spec(); s.Name != "sum__up" || s.Description != "Sums up." || s.Limit != limit {
		t.Errorf("%+v", s)
	}
	for _, entry := range []string{"calculator", "file", "skills", "bundle"} {
		for _, export := range Exports(entry) {
			one, _ := newDesk(t, Config{}).tool(entry, export, "x", "")
			var schema struct {
				Type       string
				Additional *bool `json:"additionalProperties"`
			}
			s := one.Spec()
			if err := json.Unmarshal(s.Input, &schema); err != nil || schema.Type != "object" || schema.Additional == nil || *schema.Additional || s.Description == "" {
				t.Errorf("%s.%s takes %s, %v", entry, export, s.Input, err)
			}
		}
	}
}

func TestCalculator(t *testing.T) {
	d := newDesk(t, Config{})
	for _, tt := range []struct{ export, in, want string }{
		{"add", `{"a":2,"b":0.5}`, `{"result":2.5,"expression":"2 + 0.5 = 2.5"}`},
		{"multiply", `{"a":-6,"b":7}`, `{"result":-42,"expression":"-6 × 7 = -42"}`},
		{"multiply", `{"a":0,"b":1e308}`, `{"result":0,"expression":"0 × 1e+308 = 0"}`},
		{"multiply", `{"a":1e308,"b":10}`, "E_TOOL_INPUT: the result is too large"},
		{"add", `{"a":1e308,"b":1e308}`, "too large"},
		{"add", `{"a":1}`, "a and b have to be numbers"},
		{"add", `{"a":1,"b":null}`, "a and b have to be numbers"},
		{"add", `{"a":"1","b":2}`, "does not fit"},
		{"add", `{"a":1e999,"b":2}`, "does not fit"},
		{"add", `{"a":1,"b":2,"c":3}`, "does not fit"},
	} {
		p := d.plan("calculator", tt.export, tt.in)
		if _, got := p.run(t.Context()); !strings.Contains(got, tt.want) {
			t.Errorf("%s %s: %s, want %s", tt.export, tt.in, got, tt.want)
		}
		if e, _ := json.Marshal(p.effects); string(e) != "{}" {
			t.Errorf("%s touches %s", tt.export, e)
		}
	}
}

func TestSkills(t *testing.T) {
	if got := newDesk(t, Config{}).does("skills", "list", `{}`); got != `{"skills":[]}` {
		t.Errorf("none: %s", got)
	}
	d := newDesk(t, Config{Skills: func() []Skill { return []Skill{{Name: "sort", Description: "<Sorts>"}} }})
	if got := d.does("skills", "list", `{}`); got != `{"skills":[{"name":"sort","description":"<Sorts>"}]}` {
		t.Error(got)
	}
}

// Reading says what stands there, as it is encoded, and how much there is.
func TestFileRead(t *testing.T) {
	d := newDesk(t, Config{})
	d.write("a.txt", "höre")
	d.write("b.bin", "\x00\xff\x01")
	d.write("long.txt", strings.Repeat("é", usualRead))
	d.write("empty", "")
	if err := os.WriteFile(filepath.Join(d.home, "h.txt"), []byte("home"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return `{"path":` + quoted(filepath.Join(d.work, name)) + `,` }
	for _, tt := range []struct{ in, want string }{
		{`{"path":"a.txt"}`, at("a.txt") + `"size":5,"truncated":false,"content":"höre"}`},
		{`{"path":"./x/../a.txt","encoding":"utf-8"}`, at("a.txt") + `"size":5,"truncated":false,"content":"höre"}`},
		{`{"path":"a.txt","maxBytes":2}`, `"size":5,"truncated":true,"content":"h"}`}, // half of a letter is left out
		{`{"path":"a.txt","maxBytes":5}`, `"truncated":false,"content":"höre"}`},
		{`{"path":"a.txt","maxBytes":3.0}`, `"truncated":true,"content":"hö"}`},
		{`{"path":"a.txt","maxBytes":0}`, `"size":5,"truncated":true,"content":""}`},
		{`{"path":"a.txt","maxBytes":2,"encoding":"hex"}`, `"truncated":true,"content":"68c3"}`},
		{`{"path":"b.bin","encoding":"base64"}`, `"size":3,"truncated":false,"content":"AP8B"}`},
		{`{"path":"b.bin"}`, "E_FILE_BINARY: "},
		{`{"path":"b.bin","maxBytes":2}`, "E_FILE_BINARY: "}, // what is cut is no part of a letter
		{`{"path":"empty"}`, `"size":0,"truncated":false,"content":""}`},
		{`{"path":"~/h.txt"}`, `"content":"home"}`},
		{`{"path":"none.txt"}`, string(files.ErrFileMissing)},
		{`{"path":"."}`, string(files.ErrFileType)},
		{`{"path":"a.txt/b"}`, "E_"},
		{`{"path":""}`, "the path is empty"},
		{`{"path":"a\u0000b"}`, "NUL"},
		{`{"path":"a.txt","maxBytes":1.5}`, "does not fit"},
		{`{"path":"a.txt","maxBytes":-1}`, `"truncated":true,"content":""}`}, // its schema refuses it before
		{`{"path":"a.txt","more":1}`, "does not fit"},
	} {
		if got := d.does("file", "read", tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.in, got, tt.want)
		}
	}
	var got readAnswer
	if err := json.Unmarshal([]byte(d.does("file", "read", `{"path":"long.txt"}`)), &got); err != nil || !got.Truncated || len(got.Content) != usualRead || got.Size != 2*usualRead {
		t.Errorf("%d bytes of %d, %v, %v", len(got.Content), got.Size, got.Truncated, err)
	}
}

// Writing makes what is missing, and says what it has done for those who keep account of it;
// what cannot be written is left as it is.
func TestFileWrite(t *testing.T) {
	d := newDesk(t, Config{Masked: func(s string) bool { return strings.Contains(s, "[masked]") }})
	d.write("a.txt", "old")
	d.write("ro.txt", "old")
	if err := os.Chmod(filepath.Join(d.work, "ro.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ in, file, want, holds string }{
		{`{"path":"a.txt","content":"new"}`, "a.txt", `"size":3,"written":true}`, "new"},
		{`{"path":"x/y/z.bin","content":"AAEC","encoding":"base64"}`, "x/y/z.bin", `"size":3,"written":true}`, "\x00\x01\x02"},
		{`{"path":"h.bin","content":"00ff","encoding":"hex"}`, "h.bin", `"size":2,"written":true}`, "\x00\xff"},
		{`{"path":"a.txt","content":""}`, "a.txt", `"size":0,"written":true}`, ""},
		{`{"path":"a.txt"}`, "a.txt", "content is missing", ""},
		{`{"path":"a.txt","content":"?","encoding":"base64"}`, "a.txt", "content is no base64", ""},
		{`{"path":"a.txt","content":"0","encoding":"hex"}`, "a.txt", "content is no hex", ""},
		{`{"path":"a.txt","content":"my [masked] key"}`, "a.txt", string(files.ErrFileMasked), ""},
		{`{"path":"a.txt","content":"bXkgW21hc2tlZF0=","encoding":"base64"}`, "a.txt", string(files.ErrFileMasked), ""},
		{`{"path":"a.txt","content":` + quoted(strings.Repeat("x", workspace.MaxText+1)) + `}`, "a.txt", "larger than 10 MiB", ""},
		{`{"path":"ro.txt","content":"new"}`, "ro.txt", string(files.ErrFileReadOnly), "old"},
		{`{"path":"x","content":"new"}`, "x/y/z.bin", string(files.ErrFileType), "\x00\x01\x02"},
		{`{"path":"a.txt/b","content":"new"}`, "a.txt", string(files.ErrFileType), ""},
	} {
		if got := d.does("file", "write", tt.in); !strings.Contains(got, tt.want) {
			t.Errorf("%.80s: %s, want %s", tt.in, got, tt.want)
		}
		if got := d.read(tt.file); got != tt.holds {
			t.Errorf("%.80s: %s holds %q, want %q", tt.in, tt.file, got, tt.holds)
		}
	}
	p := d.plan("file", "write", `{"path":"a.txt","content":"new"}`)
	r, _ := p.run(t.Context())
	if len(p.effects.Writes) != 1 || p.effects.Writes[0] != filepath.Join(d.work, "a.txt") || len(r.Files) != 1 || !r.Files[0].Wrote || r.Files[0].SHA256 != workspace.Sum([]byte("new")) {
		t.Errorf("%+v, %+v", p.effects, r.Files)
	}
}

// A path that leads out of the workspace says so to the gate, and one that leads elsewhere
// than when it was decided about is neither read nor written.
func TestFileElsewhere(t *testing.T) {
	d := newDesk(t, Config{})
	d.write("a.txt", "mine")
	secret := filepath.Join(d.home, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		`{"path":"../home/secret"}`: secret, `{"path":"x/../../home/secret"}`: secret,
		`{"path":` + quoted(secret) + `}`: secret, `{"path":"~/secret"}`: secret,
	} {
		if e := d.plan("file", "read", in).effects; !slices.Equal(e.Reads, []string{want}) {
			t.Errorf("%s reads %q", in, e.Reads)
		}
		if e := d.plan("file", "write", strings.Replace(in, "}", `,"content":"x"}`, 1)).effects; !slices.Equal(e.Writes, []string{want}) {
			t.Errorf("%s writes %q", in, e.Writes)
		}
	}
	link := filepath.Join(d.work, "link")
	prooftest.Link(t, os.Symlink("a.txt", link))
	read, write := d.plan("file", "read", `{"path":"link"}`), d.plan("file", "write", `{"path":"link","content":"x"}`)
	if err := errors.Join(os.Remove(link), os.Symlink(secret, link)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []call{read, write} {
		if _, got := c.run(t.Context()); !strings.HasPrefix(got, string(files.ErrFileChanged)) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", c.call.Tool, got)
		}
	}
	if data, _ := os.ReadFile(secret); string(data) != "secret" {
		t.Errorf("it was written: %q", data)
	}
}

const clerk = `apiVersion: goondan.ai/v1
kind: Model
metadata: { name: fast }
spec: { provider: anthropic, model: script }
---
apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: clerk }
spec: { modelConfig: { modelRef: Model/fast }, prompt: { system: Sort letters. } }
`

// bundled is a desk whose agent is of a bundle.
func bundled(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, Config{})
	d.write("b/goondan.yaml", clerk)
	d.write("b/tool.js", "1")
	ws, err := workspace.New(workspace.Config{Root: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.tool = New(Config{Workspace: ws, Changes: changeset.New(changeset.Config{
		Dir: filepath.Join(d.work, "b"), Records: filepath.Join(d.home, "records"), Workspace: ws,
		Load: func(files fs.FS) []bundle.Problem {
			_, list := bundle.Load(bundle.Options{Sources: []bundle.Source{{FS: files}}})
			return list
		},
	})})
	return d
}

// A changeset says where it is and how much there is in it, and a commit what it writes and
// removes, before it is decided about and afterwards; each is more than an edit.
func TestChangeset(t *testing.T) {
	d := bundled(t)
	p := d.plan("bundle", "openChangeset", `{"reason":"better"}`)
	folder := filepath.Join(d.work, changeset.Folder, "cs-1")
	if _, got := p.run(t.Context()); got != `{"changesetId":"cs-1","folder":`+quoted(folder)+`,"files":2,"reason":"better"}` || len(p.effects.Writes) != 1 || p.effects.Powers != "" {
		t.Errorf("%s, %+v", got, p.effects)
	}
	d.write(".changesets/cs-1/goondan.yaml", strings.Replace(clerk, "Sort letters", "Burn letters", 1))
	if err := os.Remove(filepath.Join(folder, "tool.js")); err != nil {
		t.Fatal(err)
	}
	p = d.plan("bundle", "commitChangeset", `{"changesetId":"cs-1","message":"faster"}`)
	want := []string{filepath.Join(d.work, "b", "goondan.yaml"), filepath.Join(d.work, "b", "tool.js"), folder}
	if !slices.Equal(p.effects.Writes, want) || p.effects.Powers == "" {
		t.Errorf("%+v", p.effects)
	}
	r, got := p.run(t.Context())
	if !strings.HasPrefix(got, `{"changesetId":"cs-1","message":"faster","written":["goondan.yaml"],"removed":["tool.js"],"counts":`) ||
		!strings.HasPrefix(r.Text, "Committed cs-1.\nWritten: goondan.yaml\nRemoved: tool.js\n") || !strings.Contains(d.read("b/goondan.yaml"), "Burn") {
		t.Errorf("%s: %s", r.Text, got)
	}
}

// What is not as it was decided about is not committed, nor is what nobody has decided about.
func TestChangesetDecided(t *testing.T) {
	d := bundled(t)
	d.does("bundle", "openChangeset", `{}`)
	d.write(".changesets/cs-1/tool.js", "2")
	p := d.plan("bundle", "commitChangeset", `{"changesetId":"cs-1"}`)
	preview := func() string { return p.tool.(committing).Preview(p.call) }
	if got := preview(); !strings.HasPrefix(got, "diff tool.js tool.js\n") || !strings.Contains(got, "\n-1\n") || !strings.Contains(got, "\n+2\n") {
		t.Errorf("it would change %s", got)
	}
	d.write(".changesets/cs-1/tool.js", "3")
	if got := preview(); got != "" {
		t.Errorf("something else is shown than was planned: %s", got)
	}
	if _, got := p.run(t.Context()); !strings.HasPrefix(got, string(changeset.ErrConflict)) || d.read("b/tool.js") != "1" {
		t.Errorf("another content: %s, %s", got, d.read("b/tool.js"))
	}
	one, _ := d.tool("bundle", "commitChangeset", "x", "")
	r, err := one.Run(t.Context(), agent.ToolContext{}, agent.Call{ID: "undecided", Input: json.RawMessage(`{"changesetId":"cs-1"}`)})
	if err != nil || r.Error == nil || r.Error.Code != changeset.ErrConflict || d.read("b/tool.js") != "1" {
		t.Errorf("undecided: %+v, %v, %s", r, err, d.read("b/tool.js"))
	}
	if got := d.does("bundle", "commitChangeset", `{"changesetId":"cs-1"}`); !strings.Contains(got, `"written":["tool.js"]`) {
		t.Errorf("once more: %s", got)
	}
	for in, want := range map[string]string{
		`{"changesetId":"cs-9"}`: string(changeset.ErrUnknown), `{"changesetId":"../b"}`: string(changeset.ErrUnknown),
		`{"changesetId":"cs-1"}`: string(changeset.ErrUnknown), `{}`: string(changeset.ErrUnknown), `{"changesetId":1}`: "does not fit",
		`{"changesetId":"cs-1","force":true}`: "does not fit",
	} {
		if got := d.does("bundle", "commitChangeset", in); !strings.Contains(got, want) {
			t.Errorf("%s: %s", in, got)
		}
	}
	nowhere := newDesk(t, Config{})
	for export, in := range map[string]string{"openChangeset": `{}`, "commitChangeset": `{"changesetId":"cs-1"}`} {
		if got := nowhere.does("bundle", export, in); !strings.Contains(got, "no bundle to change") {
			t.Errorf("%s without a bundle: %s", export, got)
		}
	}
}
