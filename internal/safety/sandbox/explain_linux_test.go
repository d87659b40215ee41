package sandbox

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/internal/safety/sandbox/inner"
)

// What Explain says can be done with the paths of a workspace in which something is
// hidden is what can be done.
func TestExplainHiddenInWorkspace(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			root := t.TempDir()
			hidden := filepath.Join(root, ".env")
			if err := os.WriteFile(hidden, []byte("secret\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			b, _ := confined(t, m, func(c *Confinement) { c.Roots, c.ProtectNames, c.Hide = []string{root}, nil, []string{hidden} })
			out, _ := output(t, b, root, "cat .env", Grant{})
			all, err := b.ExplainCmd(Cmd{Dir: root})
			if err != nil {
				t.Fatal(err)
			}
			var got []Mount
			for _, one := range all {
				if one.Path == root || one.Path == hidden {
					got = append(got, one)
				}
			}
			want := []Mount{{Path: root, Access: Write}}
			if out != "secret\n" {
				want = append(want, Mount{Path: hidden, Access: Masked})
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("its output is %q, and it could (-want +got):\n%s", out, diff)
			}
		})
	}
}

// A hold that vanishes once it was made fails the command that relies on it.
func TestLostHold(t *testing.T) {
	b, root := confined(t, byNamespaces, nil)
	path, other := filepath.Join(root, ".mcp.json"), filepath.Join(root, "never", "made")
	release, err := b.cell.holds.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w := &walls{spec: inner.Spec{Mounts: []inner.Mount{{Path: path}, {Path: other}}}}
	w.dropLost(&b.cell.holds, []string{path, other})
	if diff := cmp.Diff([]inner.Mount{{Path: path}}, w.spec.Mounts); diff != "" {
		t.Errorf("the mounts (-want +got):\n%s", diff)
	}
}
