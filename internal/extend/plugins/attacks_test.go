package plugins

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// An attack is something hostile that somebody is made to install. Each goes all the way
// that a person's command takes, and leaves nothing behind.
type attack struct {
	what string
	from offer
	says string // what is said of it
}

// An offer puts something hostile into a folder, or onto the network, and returns what a
// person would write to install it.
type offer func(t *testing.T, dir string, pages map[string][]byte) (word string)

const (
	card  = `{"name": "evil", "version": "1.0.0"}`
	cards = ".claude-plugin/plugin.json"
)

// zipped and tarred offer an archive with a plugin and these entries.
func zipped(list ...member) offer {
	return func(t *testing.T, dir string, _ map[string][]byte) string {
		return kept(t, dir, "evil.zip", zipOf(t, append([]member{{name: cards, data: card}}, list...)...))
	}
}

func tarred(list ...member) offer {
	return func(t *testing.T, dir string, _ map[string][]byte) string {
		return kept(t, dir, "evil.tar.gz", tarOf(t, append([]member{{name: cards, data: card}}, list...)...))
	}
}

func kept(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	at := filepath.Join(dir, name)
	if err := os.WriteFile(at, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return at
}

// laid offers a folder of these files.
func laid(files string) offer {
	return func(t *testing.T, dir string, _ map[string][]byte) string {
		write(t, filepath.Join(dir, "evil"), files)
		return filepath.Join(dir, "evil")
	}
}

// linked offers a folder with a link in it.
func linked(to string) offer {
	return func(t *testing.T, dir string, _ map[string][]byte) string {
		at := laid("-- "+cards+" --\n"+card+"\n")(t, dir, nil)
		prooftest.Link(t, os.Symlink(to, filepath.Join(at, "link")))
		return at
	}
}

// listed offers a marketplace with one plugin, evil, of these fields.
func listed(fields string) offer {
	return func(t *testing.T, dir string, _ map[string][]byte) string {
		write(t, filepath.Join(dir, "market"), "-- "+marketFile+" --\n"+`{"name": "team", "plugins": [{"name": "evil", `+fields+"}]}\n"+
			"-- p/"+cards+" --\n"+`{"name": "other"}`+"\n-- q/"+cards+" --\n"+`{"name": "evil", "hooks": "./h.json"}`+"\n")
		return "market:" + filepath.Join(dir, "market")
	}
}

// written is what somebody is told to type.
func written(word string) offer {
	return func(*testing.T, string, map[string][]byte) string { return word }
}

// packed offers a package of a registry.
func packed(dist string) offer {
	return func(t *testing.T, _ string, pages map[string][]byte) string {
		pages["https://registry.npmjs.org/evil"] = []byte(`{"dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"dist": ` + dist + `}}}`)
		pages["https://registry.npmjs.org/evil.tgz"] = tarOf(t, member{name: cards, data: card})
		return "npm:evil"
	}
}

// attacks is the table. What a plugin does once it is installed is up to the gate, and has
// a table of its own.
func attacks() []attack {
	many := make([]member, 50)
	for i := range many {
		many[i] = member{name: fmt.Sprintf("f%d", i)}
	}
	zeros := strings.Repeat("\x00", 17<<20)
	long := strings.Repeat("x", 300_000)
	return []attack{
		// Ways out of the folder.
		{"a zip that climbs out", zipped(member{name: "../../evil"}), "leads out"},
		{"a tar that climbs out", tarred(member{name: "a/../../evil"}), "leads out"},
		{"a zip with an absolute name", zipped(member{name: "/tmp/evil"}), "absolute path"},
		{"a zip with a drive", zipped(member{name: `C:\evil`}), "not every system"},
		{"a zip with a share", zipped(member{name: `\\host\share\evil`}), "not every system"},
		{"a zip with a link", zipped(member{name: "l", data: "/etc", mode: 0o777 | os.ModeSymlink}), "link or a device"},
		{"a tar with a link", tarred(member{name: "l", link: "/etc/passwd", kind: tar.TypeSymlink}), "link or a device"},
		{"a tar with a hard link", tarred(member{name: "l", link: "/etc/passwd", kind: tar.TypeLink}), "link or a device"},
		{"a tar that writes through its link", tarred(member{name: "l", link: "/tmp", kind: tar.TypeSymlink}, member{name: "l/evil"}), "link or a device"},
		{"a folder with a link to a file elsewhere", linked("/etc/passwd"), "leads out"},
		{"a folder with a link to a folder above", linked("../.."), "leads out"},
		{"a manifest that names a file elsewhere", laid("-- " + cards + " --\n" + `{"name": "evil", "hooks": "../../hooks.json"}`), "does not lead to something"},
		{"a manifest that names an absolute folder", laid("-- " + cards + " --\n" + `{"name": "evil", "skills": "/etc"}`), "does not lead to something"},
		{"a marketplace that names a folder of the machine", listed(`"source": {"source": "directory", "path": "/etc"}`), "has no evil"},
		{"a marketplace that climbs out", listed(`"source": "./../../etc"`), "has no evil"},
		{"a marketplace that names a file by its address", listed(`"source": {"source": "url", "url": "file:///etc"}`), "has no evil"},

		// What is no file, or has a name that means something else elsewhere.
		{"a tar with a device", tarred(member{name: "d", kind: tar.TypeChar}), "link or a device"},
		{"a tar with a pipe", tarred(member{name: "p", kind: tar.TypeFifo}), "link or a device"},
		{"a device of Windows", zipped(member{name: "skills/nul.md"}), "device on Windows"},
		{"a stream of Windows", zipped(member{name: "a.md:b"}), "not every system"},
		{"a name that ends with a dot", zipped(member{name: "a."}), "not every system keeps"},
		{"a name that turns its direction", zipped(member{name: "a\u202edm.exe"}), "cannot be seen"},
		{"a name that is no text", tarred(member{name: "a\xff"}), "UTF-8"},
		{"a name twice", zipped(member{name: "a"}, member{name: "a"}), "twice"},
		{"the manifest twice", zipped(member{name: cards, data: `{"name": "good"}`}), "twice"},
		{"the manifest in another case", zipped(member{name: ".CLAUDE-plugin/plugin.json", data: `{"name": "good"}`}), "one name on some systems"},
		{"a file under a file", zipped(member{name: "a"}, member{name: "a/b"}), "twice"},

		// Too much.
		{"a bomb", zipped(member{name: "zeros", data: zeros}), "times its size"},
		{"a bomb in a tar", tarred(member{name: "zeros", data: zeros}), "times its size"},
		{"too many files", zipped(many...), "more than 40 files"},
		{"a path that is too deep", zipped(member{name: strings.Repeat("a/", 40) + "b"}), "too deep"},
		{"a manifest that is too long", laid("-- " + cards + " --\n" + `{"name": "evil", "description": "` + long + `"}`), "larger than"},
		{"a host that never stops", func(_ *testing.T, _ string, pages map[string][]byte) string {
			pages["https://evil.example/a.zip"] = []byte(strings.Repeat("PK", 1<<20))
			return "https://evil.example/a.zip"
		}, "too large"},

		// What is not what it says.
		{"an archive with another hash", listed(`"source": {"source": "archive", "url": "https://evil.example/b.zip", "sha256": "` + strings.Repeat("0", 64) + `"}`), "has to have 0000"},
		{"a package with another hash", packed(`{"tarball": "https://registry.npmjs.org/evil.tgz", "integrity": "sha512-AAAA"}`), "not the one that the registry describes"},
		{"a package without a hash", packed(`{"tarball": "https://registry.npmjs.org/evil.tgz"}`), "no hash of it"},
		{"a package that lies elsewhere", packed(`{"tarball": "https://evil.example/evil.tgz", "integrity": "sha512-AAAA"}`), "another host"},
		{"a plugin under the name of another", listed(`"source": "./p"`), "the plugin there is named other"},
		{"a manifest that brings more than the marketplace says", listed(`"source": "./q", "strict": false, "skills": ["./s"]`), "one of them has to go"},
		{"a manifest that says a key twice", laid("-- " + cards + " --\n" + `{"name": "evil", "hooks": "./a", "Hooks": "./b"}`), "stands there twice"},
		{"a manifest whose name is a path", laid("-- " + cards + " --\n" + `{"name": "../evil"}`), "is no name"},
		{"a manifest whose name is an option", laid("-- " + cards + " --\n" + `{"name": "--yes"}`), "is no name"},
		{"an archive that is a page", func(t *testing.T, dir string, _ map[string][]byte) string {
			return kept(t, dir, "evil.zip", []byte("<!doctype html>"))
		}, "neither a zip nor a tar"},
		{"a marketplace under the name of the vendor", func(t *testing.T, dir string, _ map[string][]byte) string {
			write(t, filepath.Join(dir, "m"), "-- "+marketFile+" --\n"+`{"name": "claude-plugins-official", "plugins": []}`)
			return "market:" + filepath.Join(dir, "m")
		}, "names that begin with"},

		// What is more than a name to git, or runs something.
		{"a repository that is an option", written("git+--upload-pack=touch evil"), "no source"},
		{"a helper of git", written("git+ext::sh -c touch evil"), "no source"},
		{"a helper behind an address", written("ext::sh -c 'touch evil'"), "no such file"},
		{"ssh with a command", written("git+ssh://-oProxyCommand=touch evil/x"), "no source"},
		{"a branch that is an option", written("owner/repo#--upload-pack=touch"), "the ref"},
		{"a branch that climbs", written("owner/repo#a/../../b"), "the ref"},
		{"an address with a password", written("https://user:secret@evil.example/r.git"), "a user or a password"},
		{"an address that is not encrypted", written("http://evil.example/a.zip"), "https://"},
		{"a marketplace with a branch that is an option", listed(`"source": {"source": "github", "repo": "a/b", "ref": "--exec=x"}`), "has no evil"},
		{"a marketplace that runs a command", listed(`"source": {"source": "command", "command": "touch evil"}`), "has no evil"},
		{"a package that is an option", written("npm:--registry=https://evil.example"), "the package"},
	}
}

func TestAttacks(t *testing.T) {
	t.Parallel()
	for _, a := range attacks() {
		t.Run(a.what, func(t *testing.T) {
			top := t.TempDir()
			s := newStore(t)
			s.Limits = Limits{Files: 40, Archive: 1 << 20}
			pages := map[string][]byte{"https://evil.example/b.zip": zipOf(t, member{name: cards, data: card})}
			s.Get = func(ctx context.Context, address string, most int64, to io.Writer) error {
				return web(pages)(ctx, address, most, to)
			}
			err := offered(t.Context(), s, a.from(t, top, pages), top)
			if err == nil || !strings.Contains(err.Error(), a.says) {
				t.Errorf("it says %v", err)
			}
			if list, err := s.List(); err != nil || len(list) > 0 {
				t.Errorf("installed: %+v, %v", list, err)
			}
			// But for the marketplace that was added, nothing is left.
			for _, line := range left(t, filepath.Dir(s.Dir)) {
				if !strings.HasPrefix(line, "plugins/plugins.json") && !strings.Contains(line, ".team/team/") {
					t.Errorf("left behind: %s", line)
				}
			}
			if _, err := os.Lstat(filepath.Join(top, "evil.txt")); err == nil {
				t.Error("something was written outside")
			}
		})
	}
}

// offered does what a person's command does with a word.
func offered(ctx context.Context, s *Store, word, dir string) error {
	if at, ok := strings.CutPrefix(word, "market:"); ok {
		if _, err := s.AddMarket(ctx, Source{Kind: FromFolder, Path: at}, ""); err != nil {
			return err
		}
		word = "evil@team"
	}
	src, err := ParseSource(word, dir)
	if err == nil {
		_, err = s.Prepare(ctx, src)
	}
	return err
}

// left are the files below a folder, which may not be there.
func left(t *testing.T, dir string) []string {
	t.Helper()
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return tree(t, dir)
}
