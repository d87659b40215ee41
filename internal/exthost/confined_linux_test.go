package exthost

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/prooftest"
	"dure/internal/sandbox"
)

// Foreign code has what the box lets it have: it is bundled and runs confined by each of
// the mechanisms, reads its bundle, and changes the workspace alone.
func TestConfined(t *testing.T) {
	const code = `import { writeFileSync, readFileSync } from "node:fs";
		const tries = (f) => { try { f(); return true; } catch { return false; } };
		export const handlers = { do: async (ctx, i) => [
			tries(() => writeFileSync(i.workspace + "/made", "x")),
			tries(() => writeFileSync(i.bundle + "/made", "x")),
			tries(() => readFileSync(i.bundle + "/a.js")),
			tries(() => writeFileSync(process.env.HOME + "/made", "x")),
			await fetch("http://" + i.address).then(() => true, () => false),
		] };`
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	for _, mechanism := range []string{"bwrap", "namespaces", "landlock"} {
		t.Run(mechanism, func(t *testing.T) {
			root, workspace, home := bundle(t, map[string]string{"a.js": code}), t.TempDir(), t.TempDir()
			box := sandbox.New(sandbox.Config{
				Temp: t.TempDir(), Mechanisms: []string{mechanism},
				Confine: &sandbox.Confinement{Roots: []string{workspace}, ProtectNames: sandbox.ProtectNames()},
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
			wantOutput(t, r, `[true,false,true,false,false]`)
			if _, err := os.Stat(filepath.Join(workspace, "made")); err != nil {
				t.Error(err)
			}
		})
	}
}
