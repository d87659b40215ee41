package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"dure/internal/prooftest"
)

var update = flag.Bool("update", false, "rewrite what the tests expect")

func files(text string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for _, f := range txtar.Parse([]byte(text)).Files {
		fsys[f.Name] = &fstest.MapFile{Data: f.Data, Mode: 0o644}
	}
	return fsys
}

// shown is a plugin as a program reads it.
func shown(t *testing.T, p Plugin) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Each file of testdata/read is a plugin, and behind it, in the file "want", what is
// made of it: an object, or the error.
func TestRead(t *testing.T) {
	paths, err := filepath.Glob("testdata/read/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal(err, len(paths))
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			fsys := files(string(txtar.Format(ar)))
			want := ""
			if f := fsys["want"]; f != nil {
				want = string(f.Data)
			}
			delete(fsys, "want")
			p, err := ReadFS(fsys, "sample")
			got := ""
			if err != nil {
				got = "error: " + err.Error() + "\n"
			} else {
				got = shown(t, p)
			}
			if *update {
				last := len(ar.Files) - 1
				if ar.Files[last].Name != "want" {
					ar.Files, last = append(ar.Files, txtar.File{Name: "want"}), last+1
				}
				ar.Files[last].Data = []byte(got)
				if err := os.WriteFile(path, txtar.Format(ar), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// Paths that lead out of a plugin are refused, not left out: somebody meant them.
func TestReadRefusesPaths(t *testing.T) {
	for _, at := range []string{"../x", "/etc", "a/../../x", "..", `a\b`, "c:x", ""} {
		for _, key := range []string{"skills", "commands", "agents", "hooks", "mcpServers"} {
			raw, err := json.Marshal(map[string]any{"name": "sample", key: []string{at}})
			if err != nil {
				t.Fatal(err)
			}
			if p, err := ReadFS(fstest.MapFS{manifestFile: {Data: raw}}, "sample"); err == nil {
				t.Errorf("%s %q: %+v", key, at, p)
			}
		}
	}
}

// Links that lead out of the folder are not followed.
func TestReadFollowsNoLinksOut(t *testing.T) {
	dir := folder(t, "-- skills/a/SKILL.md --\n---\nname: a\n---\n")
	out := filepath.Join(t.TempDir(), "secret.md")
	if err := os.WriteFile(out, []byte("---\nallowed-tools: Bash\n---\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	prooftest.Link(t, errors.Join(os.Mkdir(filepath.Join(dir, "commands"), 0o700), os.Symlink(out, filepath.Join(dir, "commands", "x.md"))))
	p, err := Read(dir, "sample")
	if err != nil || len(p.Commands) > 0 {
		t.Errorf("%+v, %v", p, err)
	}
}

func FuzzManifest(f *testing.F) {
	f.Add([]byte(`{"name":"a","skills":["./x"],"hooks":{"Stop":[{"hooks":[{"type":"command","command":"ls"}]}]}}`))
	f.Add([]byte(`{"name":"a","userConfig":{"K":{"type":"number","min":1}},"mcpServers":{"s":{"url":"https://host/x"}}}`))
	f.Add([]byte(`{"ID":"a.b","type":"Skill","entry":"x.md","min_app_version":"1.0"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{manifestFile, ownManifest} {
			p, err := ReadFS(fstest.MapFS{
				name: {Data: data}, "skills/s/SKILL.md": {Data: data}, "x.md": {Data: data}, "hooks/hooks.json": {Data: data}, "x/SKILL.md": {Data: data},
			}, "sample")
			if err != nil {
				continue
			}
			if checkName("name", p.Name) != nil {
				t.Errorf("the name is %q", p.Name)
			}
			for _, list := range [][]string{p.Skills, p.Commands, p.Agents} {
				for _, at := range list {
					if _, err := local(at); err != nil {
						t.Errorf("the path is %q", at)
					}
				}
			}
		}
	})
}

func FuzzMarketplace(f *testing.F) {
	f.Add([]byte(`{"name":"m","owner":{"name":"x"},"plugins":[{"name":"a","source":"./a"},{"name":"b","source":{"source":"github","repo":"o/r"}}],"renames":{"c":null}}`))
	f.Add([]byte(`{"name":"m","metadata":{"pluginRoot":"./plugins"},"plugins":[{"name":"a","source":"a","strict":false}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := ParseMarketplace(data)
		if err != nil {
			return
		}
		for _, e := range m.Plugins {
			if err := errors.Join(checkName("name", e.Name), check(e.Source)); err != nil {
				t.Error(err)
			}
		}
	})
}
