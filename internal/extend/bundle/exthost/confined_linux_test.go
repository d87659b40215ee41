package exthost

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
)

// Foreign code has what the box lets it have: it is bundled and runs confined by each of
// the mechanisms, reads its bundle, and changes the workspace alone.
func TestConfined(t *testing.T) {
	t.Parallel()
	const code = `import { writeFileSync, readFileSync } from "node:fs";
		const tries = (f) => { try { f(); return true; } catch { return false; } };
		export const handlers = { do: async (ctx, i) => [
			tries(() => writeFileSync(i.workspace + "/made", "x")),
			tries(() => writeFileSync(i.bundle + "/made", "x")),
			tries(() => readFileSync(i.bundle + "/a.js")),
			tries(() => writeFileSync(process.env.HOME + "/made", "x")),
			tries(() => readFileSync(i.bundle + "/.env")[0].toString()),
			await fetch("http://" + i.address).then(() => true, () => false),
		] };`
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, mechanism := range []string{"bwrap", "namespaces", "landlock"} {
		t.Run(mechanism, func(t *testing.T) {
			project, workspace, home := bundle(t, map[string]string{"code/a.js": code, "code/.env": "TOKEN=1"}), t.TempDir(), t.TempDir()
			root, roots := filepath.Join(project, "code"), []string{workspace, project}
			if mechanism == "landlock" { // which protects nothing in a root, and has the /tmp of all
				roots = roots[:1]
			}
			box := sandbox.New(sandbox.Config{
				Temp: t.TempDir(), Mechanisms: []string{mechanism},
				Confine: &sandbox.Confinement{
					Roots: roots, Protect: []string{root}, Hide: []string{filepath.Join(root, ".env")}, ProtectNames: sandbox.ProtectNames(),
				},
			})
			t.Cleanup(func() { _ = box.Close() })
			if r := box.Explain(); r.Mechanism != mechanism {
				prooftest.Lacking(t, "sandbox", strings.Join(r.Missing, " "))
			}
			h := host(t, root, withNode(t), func(c *Config) {
				c.Box, c.Dir = box, workspace
				c.Env = append(c.Env, "HOME="+home)
			})
			tl := tool(t, h, Resource{Name: "a", Runtime: Node, Entry: "a.js"})
			r := run(t, t.Context(), tl, `{"workspace":"`+workspace+`","bundle":"`+root+`","address":"`+strings.TrimPrefix(server.URL, "http://")+`"}`)
			wantOutput(t, r, `[true,false,true,false,false,false]`)
			if _, err := os.Stat(filepath.Join(workspace, "made")); err != nil {
				t.Error(err)
			}
		})
	}
}

// What a bundle does to the program that bundles it is an error, and nothing of the
// machine gets into a module.
func TestHostileModules(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("(", 300_000) + "1" + strings.Repeat(")", 300_000)
	root := bundle(t, map[string]string{
		"deep.js":      "export const handlers = { do: () => " + deep + " };",
		"json.js":      `import d from "./deep.json"; export const handlers = { do: () => d };`,
		"deep.json":    strings.Repeat("[", 300_000) + strings.Repeat("]", 300_000),
		"long.js":      "export const handlers = { do: () => 1 }; //" + strings.Repeat("x", 5<<20),
		"pipe.js":      `import "./pipe/fifo.js"; export const handlers = { do: () => 1 };`,
		"link.js":      `import s from "./secret.txt"; export const handlers = { do: () => s };`,
		"dir.js":       `import s from "./away/passwd.txt"; export const handlers = { do: () => s };`,
		"config.js":    `export const handlers = { do: () => 1 };`,
		"package.json": `{"sideEffects": false, "imports": {"#x": "/etc/passwd"}}`, "tsconfig.json": `{"extends": "/etc/passwd"}`,
		"private.js": `import x from "#x"; export const handlers = { do: () => x };`,
		"data.js":    `import x from "data:text/javascript,export default 1"; export const handlers = { do: () => x };`,
	})
	if err := os.Mkdir(filepath.Join(root, "pipe"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe", "fifo.js"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"secret.txt": "/etc/passwd", "away": "/etc"} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	h := host(t, root, withNode(t))
	for entry, want := range map[string]string{
		"deep.js": "gave up", "json.js": "gave up", "long.js": "longer than", "pipe.js": "no such file", "link.js": "escapes", "dir.js": "escapes",
		"private.js": "only files of the bundle", "data.js": "only files of the bundle",
	} {
		r := run(t, t.Context(), tool(t, h, Resource{Name: "x", Runtime: Node, Entry: entry}), `{}`)
		if r.Error == nil || !strings.Contains(r.Error.Message, want) {
			t.Errorf("%s: %s %s", entry, r.Text, r.Output)
		}
	}
	wantOutput(t, run(t, t.Context(), tool(t, h, Resource{Name: "x", Runtime: Node, Entry: "config.js"}), `{}`), "1")
}

// Nothing that a worker has started outlives its host.
func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	sleep := prooftest.Program(t, "sleep")
	h := host(t, bundle(t, map[string]string{
		"a.js": `import { spawn } from "node:child_process";
			export const handlers = { do: (ctx, i) => spawn(i.program, ["600"], { stdio: "ignore", detached: i.apart }).pid };`,
	}), withNode(t))
	tl := tool(t, h, Resource{Name: "a", Runtime: Node, Entry: "a.js"})
	var pids []string
	for _, apart := range []string{"false", "true"} {
		r := run(t, t.Context(), tl, `{"program":"`+sleep+`","apart":`+apart+`}`)
		if r.Failed() {
			t.Fatal(r.Text)
		}
		pids = append(pids, string(r.Output))
	}
	h.Close()
	late := time.After(patience)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for _, pid := range pids {
		for {
			line, err := os.ReadFile("/proc/" + pid + "/cmdline")
			if err != nil || !strings.HasSuffix(string(line), "\x00600\x00") { // a dead one has no line
				break
			}
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("process %s is still there", pid)
			}
		}
	}
}
