package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/prooftest"
)

// Ordinary work with toolchains is done confined, without a network, on what this
// machine has already.
func TestToolchains(t *testing.T) {
	t.Parallel()
	const goMod = "module example.test/tool\n\ngo 1.26.0\n\nrequire golang.org/x/sys VERSION\n"
	const goFile = "package tool\n\nimport \"golang.org/x/sys/cpu\"\n\nfunc Line() bool { return cpu.IsBigEndian }\n"
	const goTest = "package tool\n\nimport \"testing\"\n\nfunc TestLine(t *testing.T) {\n\tif Line() {\n\t\tt.Fatal()\n\t}\n}\n"
	version, sums := dependency(t)
	for _, tt := range []struct {
		name   string
		needs  []string
		slow   bool // when nothing is compiled yet
		files  []string
		script string
		out    string // is somewhere in the output
	}{
		{
			"go build",
			[]string{"go"},
			true,
			[]string{"go.mod", strings.ReplaceAll(goMod, "VERSION", version), "go.sum", sums, "tool.go", goFile},
			"go build ./... && go env GOMODCACHE", "/go/pkg/mod",
		},
		{
			"go test",
			[]string{"go"},
			true,
			[]string{"go.mod", strings.ReplaceAll(goMod, "VERSION", version), "go.sum", sums, "tool.go", goFile, "tool_test.go", goTest},
			"go test ./... && go vet ./...", "ok  \texample.test/tool",
		},
		{
			"go get",
			[]string{"go"},
			false,
			[]string{"go.mod", "module example.test/tool\n\ngo 1.26.0\n", "tool.go", goFile},
			"go get golang.org/x/sys@" + version + " && go list -deps ./... && cat go.sum", "golang.org/x/sys " + version + " h1:",
		},
		{
			"npm test",
			[]string{"node", "npm"},
			false,
			[]string{"package.json", `{"name": "tool", "scripts": {"test": "node tool.js"}}`, "tool.js", `console.log("from " + process.env.npm_lifecycle_event)`},
			"npm test", "from test",
		},
		{
			"cargo build",
			[]string{"cargo"},
			false,
			[]string{"Cargo.toml", "[package]\nname = \"tool\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/main.rs", `fn main() { println!("from rust") }`},
			"cargo build && target/debug/tool", "from rust",
		},
		{
			"python -m unittest",
			[]string{"python3"},
			false,
			[]string{"test_tool.py", "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(True)\n"},
			"python3 -m unittest", "OK",
		},
		{
			"python -m venv",
			[]string{"python3"},
			false, nil,
			"python3 -m venv --without-pip v && v/bin/python -c 'import sys; print(sys.prefix)'", "/v",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, program := range tt.needs {
				needs(t, program)
			}
			if tt.slow && !prooftest.Long() {
				t.Skip("the first compilation takes long: DURE_LONG=1 runs it")
			}
			if strings.HasPrefix(tt.name, "go ") && version == "" {
				t.Skip("the module is vendored, or was never downloaded")
			}
			t.Parallel()
			b, root, env := toolBox(t, nil)
			put(t, root, tt.files...)
			var out strings.Builder
			exit, err := b.Run(t.Context(), Cmd{Argv: []string{"/bin/sh", "-c", tt.script}, Dir: root, Env: env, Out: &out, Timeout: 2 * time.Minute})
			if err != nil || exit.Code != 0 || !strings.Contains(out.String(), tt.out) {
				t.Errorf("%v, %+v: %s", err, exit, out.String())
			}
		})
	}
}

// toolBox returns a box that confines, its workspace, and the environment of its
// commands. The user's own caches are as they were when the test ends.
func toolBox(t *testing.T, change func(*Confinement)) (*Box, string, []string) {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "GOFLAGS=") })
	env = append(env, "PWD="+root)
	caches, err := PrepareCaches(CacheConfig{Dir: CacheDir(t.TempDir(), root), Roots: []string{root}, Home: home, Env: env, Net: NetOff})
	if err != nil {
		t.Fatal(err)
	}
	before := stamps(home)
	t.Cleanup(func() {
		if diff := cmp.Diff(before, stamps(home)); diff != "" {
			t.Errorf("the user's caches have changed (-before +after):\n%s", diff)
		}
	})
	c := &Confinement{
		Roots: []string{root}, Writable: caches.Writable, Read: caches.Read, ProtectNames: ProtectNames(), PresentNames: PresentNames(),
		Hide: Hidden(home, env), Net: NetOff,
	}
	if change != nil {
		change(c)
	}
	b := New(Config{Temp: t.TempDir(), Confine: c})
	t.Cleanup(func() { b.Close() })
	probe, err := b.Run(t.Context(), Cmd{Argv: []string{"/bin/sh", "-c", "! touch " + home + "/.dure-probe 2>/dev/null"}, Dir: root, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	if probe.Code != 0 {
		_ = os.Remove(filepath.Join(home, ".dure-probe"))
		prooftest.Lacking(t, "sandbox", "commands are not confined")
	}
	return b, root, Overlay(env, caches.Set)
}

// stamps says when folders of the user's caches were changed last.
func stamps(home string) map[string]time.Time {
	found := map[string]time.Time{}
	for _, rel := range []string{"go/pkg/mod", "go/pkg/mod/cache/download/golang.org/x/sys/@v", ".cargo", ".npm", ".cache/pip"} {
		if info, err := os.Stat(filepath.Join(home, filepath.FromSlash(rel))); err == nil {
			found[rel] = info.ModTime()
		}
	}
	return found
}

// dependency returns a module that this one was built with, and its lines of
// go.sum; "" when it is not among what was downloaded.
func dependency(t *testing.T) (version, sums string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[0] == "golang.org/x/sys" {
			sums += line
			version = strings.TrimSuffix(fields[1], "/go.mod")
		}
	}
	home, _ := os.UserHomeDir()
	cache := os.Getenv("GOMODCACHE")
	if cache == "" {
		cache = filepath.Join(home, "go", "pkg", "mod")
	}
	if !foundAt(filepath.Join(cache, "cache", "download", "golang.org", "x", "sys", "@v", version+".zip")) {
		return "", ""
	}
	return version, sums
}
