package sandbox

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What programs say when the system refuses them something, and the path that it
// is about.
func TestWitness(t *testing.T) {
	for _, tt := range []struct{ says, path string }{
		{"/bin/sh: 1: cannot create /refused/a: Read-only file system", "/refused/a"},
		{"bash: line 1: /refused/a: Read-only file system", "/refused/a"},
		{"touch: cannot touch '/refused/a b': Permission denied", "/refused/a b"},
		{"touch: cannot touch ‘/refused/a’: Operation not permitted", "/refused/a"},
		{"cat: /refused/a: No such file or directory", "/refused/a"},
		{"OSError: [Errno 30] Read-only file system: '/refused/a'", "/refused/a"},
		{"Error: EROFS: read-only file system, open '/refused/a'", "/refused/a"},
		{"open /refused/a: read-only file system", "/refused/a"},
		{"error: could not write config file refused/a: Device or resource busy", "/here/refused/a"},
		{"mkdir: cannot create directory 'refused': File exists", "/here/refused"},
		{"Cannot connect to the Docker daemon at unix:///refused/docker.sock. Is it running?", "/refused/docker.sock"},
		{"mv: cannot move '/allowed/a' to '/refused/a': Read-only file system", "/refused/a"},
		{"cat: /allowed/a: Permission denied", ""},
		{"all is well with /refused/a", ""},
		{"Permission denied", ""},
		{strings.Repeat("x", maxLine) + " /refused/a: Permission denied", ""},
	} {
		w := &witness{dir: "/here", judge: func(path string, _ complaint) (Denial, bool) {
			return Denial{Target: path}, strings.HasPrefix(path, "/refused/") || strings.HasPrefix(path, "/here/refused")
		}}
		var out strings.Builder
		to := w.over(&out)
		for _, part := range []string{tt.says[:len(tt.says)/2], tt.says[len(tt.says)/2:], "\nmore"} {
			_, _ = to.Write([]byte(part))
		}
		var want []Denial
		if tt.path != "" {
			want = []Denial{{Target: tt.path}}
		}
		if diff := cmp.Diff(want, w.list()); diff != "" || out.String() != tt.says+"\nmore" {
			t.Errorf("%.80s:\n%s", tt.says, diff)
		}
	}
}

// However the output is cut, it passes unchanged, and what is kept is bounded.
func FuzzWitness(f *testing.F) {
	f.Add("a: /x: Permission denied\n'y' Read-only file system\n", 3)
	f.Add("\xff\x00İ: permission denied: '\n'", 1)
	f.Fuzz(func(t *testing.T, text string, chunk int) {
		w := &witness{dir: "/", judge: func(path string, _ complaint) (Denial, bool) { return Denial{Target: path}, true }}
		var out strings.Builder
		to := w.over(&out)
		for rest := text; rest != ""; {
			n := min(max(chunk, 1), len(rest))
			_, _ = to.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if out.String() != text || len(w.list()) > maxDenials {
			t.Errorf("%q came out, and %d were denied", out.String(), len(w.list()))
		}
	})
}
