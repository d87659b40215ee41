package sandbox

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/internal/prooftest"
)

var updateProfiles = flag.Bool("update-profiles", false, "write the profiles of macOS anew")

// What a confinement becomes on macOS, as text.
func TestSeatbelt(t *testing.T) {
	for _, tt := range []struct {
		name  string
		grant Grant
		net   Net
	}{
		{"off", Grant{}, NetOff},
		{"proxy", Grant{}, NetProxy},
		{"open", Grant{ReadOnly: true}, NetOpen},
		{"granted", Grant{Writes: []string{"DIR/out/new", "DIR/w/.git/config"}, Reads: []string{"DIR/home/.ssh/known_hosts"}}, NetOff},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := seatbeltWorld(t)
			in := func(paths []string) []string {
				for i := range paths {
					paths[i] = strings.ReplaceAll(paths[i], "DIR", dir)
				}
				return paths
			}
			tt.grant.Writes, tt.grant.Reads = in(tt.grant.Writes), in(tt.grant.Reads)
			s, err := newSeatbelt(Confinement{
				Roots:        in([]string{"DIR/link"}),
				Extra:        in([]string{"DIR/missing", "/"}),
				Writable:     in([]string{"DIR/cache", "DIR/gone"}),
				Protect:      in([]string{"DIR/w/vendor", "DIR/w/sub/Secret Plan/x"}),
				ProtectNames: []string{".git/hooks", ".git/config", ".idea", ".vscode", "HEAD"},
				PresentNames: []string{".npmrc", ".yarnrc"},
				Hide:         in([]string{"DIR/home/.ssh", "DIR/home/.aws", "DIR/w/.env"}),
				Read:         in([]string{"DIR/cache"}),
				Net:          tt.net,
			}, tt.grant, dir+"/tmp", 4711)
			if err != nil {
				t.Fatal(err)
			}
			if tt.net == NetOpen {
				s.tty = "/dev/ttys007"
			}
			text, params, err := s.profile()
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(text, dir) {
				t.Errorf("a path stands in the profile:\n%s", text)
			}
			got := strings.ReplaceAll(text+"\n"+strings.Join(params, "\n")+"\n", dir, "DIR")
			golden := filepath.Join("testdata", "seatbelt", tt.name+".txt")
			if *updateProfiles {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// seatbeltWorld makes a workspace that a link leads to, a cache and a home.
func seatbeltWorld(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(
		t, dir, "w/.git/hooks/x", "", "w/.git/config", "", "w/vendor/x", "", "w/.npmrc", "", "w/.env", "", "w/sub/x", "",
		"cache/x", "", "home/.ssh/known_hosts", "", "tmp/x", "", "out/x", "",
	)
	for _, link := range [][2]string{{"w", "link"}, {"out", "w/.idea"}} {
		prooftest.Link(t, os.Symlink(filepath.Join(dir, link[0]), filepath.Join(dir, link[1])))
	}
	return dir
}

func TestSeatbeltJudges(t *testing.T) {
	dir := seatbeltWorld(t)
	s, err := newSeatbelt(Confinement{
		Roots: []string{dir + "/w"}, ProtectNames: []string{".git/hooks", ".vscode"},
		Hide: []string{dir + "/home/.ssh"}, Read: []string{dir + "/home/.ssh/known_hosts"},
	}, Grant{Writes: []string{dir + "/out"}}, dir+"/tmp", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want Denial
	}{
		{"/w/x", Denial{}},
		{"/link/x", Denial{}},
		{"/tmp/x", Denial{}},
		{"/out/x", Denial{}},
		{"/w/.git/hooks/pre-commit", Denial{DeniedWrite, "PATH", "protected"}},
		{"/w/.Git/HOOKS/x", Denial{DeniedWrite, "PATH", "protected"}},
		{"/w/.vscode", Denial{DeniedWrite, "PATH", "protected"}},
		{"/w/.vscodes", Denial{}},
		{"/home/.ssh/id", Denial{DeniedRead, "PATH", "hidden"}},
		{"/home/.ssh/known_hosts", Denial{DeniedWrite, "PATH", "outside"}},
		{"/home/x", Denial{DeniedWrite, "PATH", "outside"}},
	} {
		got, is := s.judge(dir + tt.path)
		if tt.want.Target != "" {
			tt.want.Target = dir + tt.path
		}
		if got != tt.want || is != (got != Denial{}) {
			t.Errorf("%s: %+v", tt.path, got)
		}
	}
}

func TestSeatbeltView(t *testing.T) {
	dir := seatbeltWorld(t)
	s, err := newSeatbelt(Confinement{
		Roots: []string{dir + "/link"}, Writable: []string{dir + "/cache"}, ProtectNames: []string{".git/hooks", ".vscode"},
		Hide: []string{dir + "/home/.ssh"}, Read: []string{dir + "/home/.ssh/known_hosts", dir + "/cache"},
	}, Grant{Writes: []string{dir + "/out/new"}}, dir+"/tmp", 0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range s.view(dir + "/tmp") {
		got = append(got, string(m.Access)+" "+strings.TrimPrefix(m.Path, dir))
	}
	want := []string{
		"ro /", "rw /cache", "hidden /home/.ssh", "ro /home/.ssh/known_hosts", "rw /out/new",
		"private /tmp", "rw /w", "ro /w/.git/hooks", "ro /w/.vscode",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSeatbeltRefuses(t *testing.T) {
	dir := seatbeltWorld(t)
	many := make([]string, maxParams+1)
	for i := range many {
		many[i] = dir + "/w"
	}
	for _, c := range []Confinement{
		{Roots: []string{"/"}},
		{Roots: []string{dir + "/missing"}},
		{Roots: []string{dir + "/w"}, Writable: many},
		{Roots: []string{dir + "/w"}, Protect: []string{dir + "/w/" + strings.Repeat("a/", maxProfile/100)}},
	} {
		s, err := newSeatbelt(c, Grant{}, dir+"/tmp", 0)
		if err == nil {
			_, _, err = s.profile()
		}
		if err == nil {
			t.Errorf("%.100v became a profile", c)
		}
	}
}

// What is spelt as its folder spells it stays, as does what is missing.
func TestTrueCase(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "Read Me/x", "")
	s := &seatbelt{spelt: map[string]string{}}
	for _, name := range []string{"Read Me/x", "Read Me", "missing"} {
		if got, want := s.trueCase(filepath.Join(dir, name)), filepath.Join(dir, name); got != want {
			t.Errorf("%s became %s", want, got)
		}
	}
	if got := s.trueCase(filepath.Join(dir, "READ ME", "x")); foundAt(filepath.Join(dir, "READ ME")) && got != filepath.Join(dir, "Read Me", "x") {
		t.Errorf("another case stayed: %s", got)
	}
}

func TestCaseless(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{".git", "[.][gG][iI][tT]"},
		{"a b-1", "[aA][ ][bB][-][1]"},
		{`x")(allow default`, "[xX][^/]+[)][(][aA][lL][lL][oO][wW][ ][dD][eE][fF][aA][uU][lL][tT]"},
		{`a\"^]b`, "[aA][^/]+[bB]"},
		{"한x\n", "[^/]+[xX][^/]+"},
		{"$*[", "[$][*][[]"},
	} {
		if got := caseless(tt.name); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.name, got, tt.want)
		}
	}
}
