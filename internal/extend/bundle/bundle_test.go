package bundle

import (
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
)

var update = flag.Bool("update", false, "write what tests expect")

func load(t *testing.T, dir string, getenv func(string) (string, bool)) (*Bundle, []Problem) {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Load(Options{Sources: []Source{{FS: root.FS()}}, Getenv: getenv})
}

func told(list []Problem) string {
	var b strings.Builder
	for _, p := range list {
		fmt.Fprintf(&b, "%s:%d:%d [%d] %s %s %s\n  %s\n  > %s\n", p.File, p.Line, p.Column, p.Doc, p.Severity, p.Code, p.Path, p.Message, p.Suggestion)
	}
	return b.String()
}

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// A bundle in the public format loads as it is.
func TestPublicFormat(t *testing.T) {
	b, list := load(t, "testdata/public", func(string) (string, bool) { return "set", true })
	for _, p := range list {
		if p.Code != query.BundleMigrate {
			t.Errorf("%v", p)
		}
	}
	if len(list) != 1 { // the older shape of a tool
		t.Errorf("%s", told(list))
	}
	data, err := json.MarshalIndent(b.Resources, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "public.json", string(data)+"\n")
	clerk, ok := b.Agent(Ref{Kind: KindAgent, Name: "clerk"})
	if !ok || clerk.Model == nil || !strings.Contains(clerk.Prompt, "# not a comment") {
		t.Fatalf("%+v", clerk)
	}
	if got := slices.Sorted(func(yield func(string) bool) {
		for name := range clerk.Calls() {
			if !yield(name) {
				return
			}
		}
	}); !slices.Equal(got, []string{"letters__draft", "letters__send", "stamp__default"}) {
		t.Error(got)
	}
	if got := string(clerk.Extensions[0].Spec.(*Extension).Config); got != `{"limit":3,"where":{"file":"notes.txt"}}` {
		t.Error(got)
	}
	if writer, ok := b.Agent(Ref{Kind: KindAgent, Name: "writer"}); !ok || writer.Prompt != "You write letters.\n" {
		t.Errorf("%q", writer.Prompt)
	}
}

// What an older version wrote is read, and told how it is written now.
func TestOldFormat(t *testing.T) {
	b, list := load(t, "testdata/old", func(string) (string, bool) { return "set", true })
	golden(t, "old.txt", told(list))
	planner, ok := b.Agent(Ref{Kind: KindAgent, Name: "planner"})
	if !ok || len(planner.Tools) != 1 {
		t.Fatalf("%+v", planner)
	}
	tool := planner.Tools[0].Spec.(*Tool)
	if tool.ErrorLimit != 2000 {
		t.Errorf("the selector says otherwise, and comes last: %d", tool.ErrorLimit)
	}
	if e := tool.Exports[0]; e.Call != "chatTools__chat_postMessage" || e.Alias != "chat.postMessage" {
		t.Errorf("%+v", e)
	}
	if r, _ := b.Find(Ref{Kind: KindTool, Name: "chatTools"}); r.Spec.(*Tool).ErrorLimit != DefaultErrorLimit {
		t.Error("what one agent says otherwise holds for all")
	}
	if r, _ := b.Find(Ref{Kind: KindConnector, Name: "cli"}); r.Spec.(*Connector).Entry != Terminal {
		t.Errorf("%+v", r.Spec)
	}
}

// All mistakes of a run are told at once, each at its place.
func TestMistakes(t *testing.T) {
	_, list := load(t, "testdata/wrong", nil)
	golden(t, "wrong.txt", told(list))
	for _, p := range list {
		if p.HelpURL == "" || p.Suggestion == "" {
			t.Errorf("%+v", p)
		}
	}
}

func one(files map[string]string) fs.FS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func tool(name, entry string) string {
	return "apiVersion: goondan.ai/v1\nkind: Tool\nmetadata: {name: " + name + "}\nspec: {runtime: http, entry: \"" + entry + "\", exports: [{name: x}]}\n"
}

// Of two resources of one name, the last one counts, but for that of a source which is
// trusted more.
func TestLastWins(t *testing.T) {
	source := func(name, entry string, trust int) Source {
		return Source{Name: name, Trust: trust, FS: one(map[string]string{"tools.yaml": tool("t", entry)})}
	}
	for _, tt := range []struct {
		sources []Source
		want    string
	}{
		{[]Source{source("a", "https://a/", 1), source("b", "https://b/", 1)}, "https://b/"},
		{[]Source{source("a", "https://a/", 2), source("b", "https://b/", 1)}, "https://a/"},
		{[]Source{source("a", "https://a/", 1), source("b", "https://b/", 2)}, "https://b/"},
	} {
		b, list := Load(Options{Sources: tt.sources})
		if r, _ := b.Find(Ref{Kind: KindTool, Name: "t"}); r.Spec.(*Tool).Entry != tt.want || len(b.Resources) != 1 {
			t.Errorf("%+v", r.Spec)
		}
		if len(list) != 1 || list[0].Code != query.BundleOverride || list[0].Severity != query.BundleWarning {
			t.Errorf("%s", told(list))
		}
	}
}

// What is written to exhaust a reader is refused.
func TestHostile(t *testing.T) {
	laughs := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		laughs += fmt.Sprintf("%c: &%c [", c, c) + strings.Repeat("*"+string(c-1)+",", 9) + "*" + string(c-1) + "]\n"
	}
	for name, tt := range map[string]struct {
		text string
		want query.BundleCode
	}{
		"references that stand for millions": {laughs, query.BundleParse},
		"a reference to itself":              {"a: &a [*a]\n", query.BundleParse},
		"a merge with itself":                {"a: &a {<<: *a}\n", query.BundleParse},
		"depth":                              {strings.Repeat("[", 5000), query.BundleParse},
		"depth that ends":                    {strings.Repeat("[", 500) + strings.Repeat("]", 500), query.BundleParse},
		"size":                               {"a: " + strings.Repeat("x", maxFile), query.BundleFileTooLarge},
		"documents":                          {strings.Repeat("---\na: 1\n", maxDocuments+1), query.BundleTooManyDocuments},
		"tags":                               {"a: !!python/object x\n", query.BundleParse},
		"hidden lines":                       {"a: 1 # x\u2028kind: Tool\n", query.BundleParse},
		"no text":                            {"a: \xff\n", query.BundleParse},
		"twice":                              {"a: 1\na: 2\n", query.BundleParse},
	} {
		_, list := Load(Options{Sources: []Source{{FS: one(map[string]string{"goondan.yaml": tt.text})}}})
		if !slices.ContainsFunc(list, func(p Problem) bool { return p.Code == tt.want && p.Severity == query.BundleError && p.Line > 0 }) {
			t.Errorf("%s: %s", name, told(list))
		}
	}
}

// A file that an entry names is in the folder of the bundle, links included.
func TestEntriesStayInside(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.js")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "link.js")); err != nil {
		t.Fatal(err)
	}
	text := ""
	entries := []string{outside, "./link.js", "../x.js", "a/../../x.js", "a/../link.js", `..\x.js`, "."}
	for i, e := range entries {
		text += "---\n" + strings.Replace(tool(fmt.Sprint("t", i), strings.ReplaceAll(e, `\`, `\\`)), "runtime: http, ", "", 1)
	}
	if err := os.WriteFile(filepath.Join(dir, "tools.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	_, list := load(t, dir, nil)
	if len(list) != len(entries) {
		t.Errorf("%s", told(list))
	}
	for _, p := range list {
		if p.Code != query.BundleTraversal && p.Code != query.BundleEntry {
			t.Errorf("%v", p)
		}
	}
}

func packaged(name, version, deps string) string {
	return fmt.Sprintf("apiVersion: goondan.ai/v1\nkind: Package\nmetadata: {name: %q}\nspec: {version: %q, dependencies: [%s]}\n", name, version, deps)
}

// The packages of a bundle are those that it was locked with.
func TestPackages(t *testing.T) {
	files := map[string]string{
		"goondan.yaml": packaged("top", "1.0.0", `{name: "@x/base", version: ^1.2.0}`) +
			"---\napiVersion: goondan.ai/v1\nkind: Model\nmetadata: {name: m}\nspec: {provider: p, model: m}\n" +
			"---\napiVersion: goondan.ai/v1\nkind: Agent\nmetadata: {name: a}\nspec: {modelConfig: {modelRef: Model/m}, tools: [{kind: Tool, name: t, package: \"@x/base\"}]}\n",
		"node_modules/@x/base/goondan.yaml": packaged("@x/base", "1.3.0", "") + "---\n" + tool("t", "https://x/"),
	}
	codes := func() (all []query.BundleCode) {
		_, list := Load(Options{Sources: []Source{{FS: one(files)}}})
		for _, p := range list {
			all = append(all, p.Code)
		}
		return all
	}
	if got := codes(); !slices.Equal(got, []query.BundleCode{query.BundleNoLock}) {
		t.Fatal(got)
	}
	b, list := Load(Options{Sources: []Source{{FS: one(files)}}, Locking: true})
	if len(list) > 0 {
		t.Fatal(told(list))
	}
	lock, err := b.WriteLock()
	if err != nil {
		t.Fatal(err)
	}
	files[LockFile] = string(lock)
	if got := codes(); got != nil {
		t.Fatal(got)
	}
	files["node_modules/@x/base/more.js"] = "changed"
	if got := codes(); !slices.Equal(got, []query.BundleCode{query.BundleIntegrity}) {
		t.Error(got)
	}
	delete(files, "node_modules/@x/base/more.js")
	files["node_modules/@x/base/node_modules/y/y.js"] = "added"
	if got := codes(); !slices.Equal(got, []query.BundleCode{query.BundleIntegrity}) {
		t.Error("what a package imports is not locked:", got)
	}
	delete(files, "node_modules/@x/base/node_modules/y/y.js")
	files["node_modules/@x/base/goondan.yaml"] = packaged("@x/base", "2.0.0", "") + "---\n" + tool("t", "https://x/")
	if got := codes(); !slices.Contains(got, query.BundleVersion) || !slices.Contains(got, query.BundleIntegrity) {
		t.Error(got)
	}
	files["node_modules/@x/base/goondan.yaml"] = tool("t", "https://x/")
	if got := codes(); !slices.Contains(got, query.BundleNoManifest) {
		t.Error(got)
	}
	delete(files, "node_modules/@x/base/goondan.yaml")
	if got := codes(); !slices.Equal(got, []query.BundleCode{query.BundleNotInstalled}) { // and not each reference into it
		t.Error(got)
	}
	files["node_modules/@x/base/goondan.yaml"] = packaged("@x/base", "1.2.0", `{name: other}`)
	files["node_modules/other/goondan.yaml"] = packaged("other", "1.0.0", `{name: "@x/base"}`)
	if got := codes(); !slices.Contains(got, query.BundleCircular) {
		t.Error(got)
	}
}

func TestRanges(t *testing.T) {
	for want, fits := range map[string][]string{
		"":               {"1.0.0", "0.0.1", "!1.0.0-a"},
		"*":              {"1.0.0", "9.9.9"},
		"1.2.3":          {"1.2.3", "!1.2.4", "!1.2.2", "!1.2.3-a"},
		"1.2":            {"1.2.0", "1.2.9", "!1.3.0"},
		"1.x":            {"1.0.0", "1.9.9", "!2.0.0"},
		"^1.2.3":         {"1.2.3", "1.9.0", "!1.2.2", "!2.0.0", "!2.0.0-a"},
		"^0.2.3":         {"0.2.3", "0.2.9", "!0.3.0"},
		"^0.0.3":         {"0.0.3", "!0.0.4"},
		"^0.0.3-alpha":   {"0.0.3-alpha", "0.0.3-beta", "0.0.3", "!0.0.4"},
		"~1.2.3":         {"1.2.3", "1.2.9", "!1.3.0"},
		"~1":             {"1.0.0", "1.9.0", "!2.0.0"},
		">=1.2.0 <2.0.0": {"1.2.0", "1.9.9", "!2.0.0", "!1.1.9"},
		">1.2.3":         {"1.2.4", "!1.2.3"},
		"<=1.2.3":        {"1.2.3", "0.0.0", "!1.2.4"},
		"1.0.0 || ^3.0":  {"1.0.0", "3.5.0", "!2.0.0", "!4.0.0"},
	} {
		r, err := parseRange(want)
		if err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		for _, v := range fits {
			v, not := strings.CutPrefix(v, "!")
			if r.has(v) == not {
				t.Errorf("%q and %s: %v", want, v, !not)
			}
		}
	}
	for _, s := range []string{"newest", "1.2.3.4", "=>1", "1..2", "-1", "^"} {
		if _, err := parseRange(s); err == nil {
			t.Errorf("%q is a range", s)
		}
	}
}

func TestValues(t *testing.T) {
	text := "apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {name: m}\nspec: {provider: p, model: m, apiKey: {valueFrom: {env: MY_KEY}}}\n"
	env := map[string]string{}
	getenv := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	sources := []Source{{FS: one(map[string]string{"model.yaml": text})}}
	if _, list := Load(Options{Sources: sources}); len(list) > 0 {
		t.Error(told(list))
	}
	if _, list := Load(Options{Sources: sources, Getenv: getenv}); len(list) != 1 || list[0].Code != query.BundleValue {
		t.Error(told(list))
	}
	env["MY_KEY"] = "k"
	b, list := Load(Options{Sources: sources, Getenv: getenv})
	if len(list) > 0 {
		t.Fatal(told(list))
	}
	m, _ := b.Find(Ref{Kind: KindModel, Name: "m"})
	if got, err := b.Resolve(m.Spec.(*Model).APIKey, nil); got != "k" || err != nil {
		t.Error(got, err)
	}
	if _, err := b.Resolve(Value{Secret: "x"}, nil); err == nil {
		t.Error("a secret that is not stored has a value")
	}
	want := map[string]string{"A": "1", "B": "two words", "C": "x#y", "D": "line\nnext", "E": "", "F": `a\nb`}
	if diff := cmp.Diff(want, ReadEnv([]byte("A=1\nexport B=\"two words\"\nC=x#y # told\nD=\"line\\nnext\"\n# no\nE=\nF='a\\nb'\n1X=2\nnothing\n"))); diff != "" {
		t.Error(diff)
	}
}

func FuzzLoad(f *testing.F) {
	for _, dir := range []string{"public", "old", "wrong"} {
		files, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
		if err != nil || files == nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		b, list := Load(Options{Sources: []Source{{FS: one(map[string]string{"goondan.yaml": string(data)})}}})
		if _, err := json.Marshal(b.Resources); err != nil {
			t.Error(err)
		}
		for _, p := range list {
			if p.Code == "" || p.Message == "" || strings.Contains(p.Message, "%!") {
				t.Errorf("%+v", p)
			}
		}
	})
}
