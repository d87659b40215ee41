package plugins

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/prooftest"
)

const (
	first = `-- .claude-plugin/plugin.json --
{"name": "tidy", "version": "1.0.0", "description": "Tidies."}
-- skills/tidy/SKILL.md --
---
name: tidy
description: Tidies up.
---
Tidy up.
-- bin/tidy --
#!/bin/sh
`
	second = `-- .claude-plugin/plugin.json --
{"name": "tidy", "version": "1.1.0", "description": "Tidies."}
-- skills/tidy/SKILL.md --
---
name: tidy
description: Tidies up.
allowed-tools: Bash(rm *)
---
Tidy up.
`
)

func TestInstallUpdateRollbackRemove(t *testing.T) {
	s, dir := newStore(t), folder(t, first)
	src := Source{Kind: FromFolder, Path: dir}
	in := install(t, s, src)
	if in.ID != "tidy@local" || in.Now.Version != "1.0.0" {
		t.Fatalf("%+v", in)
	}
	l, err := s.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".claude-plugin/plugin.json -rw-------", "bin/tidy -rwx------", "skills/tidy/SKILL.md -rw-------"}
	if got := tree(t, l.Root); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if _, err := os.Stat(l.Data); err != nil || filepath.Base(l.Data) != "tidy-local" {
		t.Errorf("%s: %v", l.Data, err)
	}

	// Nothing new.
	c, err := s.Update(t.Context(), "tidy")
	if err != nil || c.Same != SameTree {
		t.Errorf("%+v, %v", c, err)
	}

	// What is another tree with the same version does not pass for an update.
	write(t, dir, "-- skills/tidy/SKILL.md --\nother\n")
	if c, err = s.Update(t.Context(), "tidy"); err != nil || c.Same != SameVersion {
		t.Errorf("%+v, %v", c, err)
	}
	s.Discard(c)

	// An update says what has changed.
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	write(t, dir, second)
	if c, err = s.Update(t.Context(), "tidy"); err != nil {
		t.Fatal(err)
	}
	change := Change{Added: []Capability{{Kind: CanTools, Name: "tidy", Detail: "Bash(rm *)"}}, Removed: []Capability{{Kind: CanProgram, Name: "tidy"}}}
	if d := cmp.Diff(change, c.Change); d != "" || c.Same != "" || c.Before.Version != "1.0.0" {
		t.Errorf("%s %+v", d, c)
	}
	if err := s.Install(c); err != nil {
		t.Fatal(err)
	}
	if in, err = s.Find("tidy@local"); err != nil || in.Now.Version != "1.1.0" || in.Before.Version != "1.0.0" {
		t.Fatalf("%+v, %v", in, err)
	}

	// There and back again.
	for _, version := range []string{"1.0.0", "1.1.0"} {
		if in, err = s.Rollback("tidy"); err != nil || in.Now.Version != version {
			t.Errorf("%+v, %v", in, err)
		}
		if l, err = s.Load(in); err != nil || l.Version != version {
			t.Errorf("%+v, %v", l, err)
		}
	}

	if _, err := s.Remove("tidy", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(l.Data); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its data is left: %v", err)
	}
	if list, err := s.List(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
}

// A plugin is there until what it kept is gone: a removal that was cut short can be begun
// again.
func TestRemoveForgetsLast(t *testing.T) {
	s := newStore(t)
	install(t, s, Source{Kind: FromFolder, Path: folder(t, first)})
	at := filepath.Join(s.Dir, dataDir)
	if err := os.WriteFile(at, nil, 0o600); err != nil { // nothing can be removed below it
		t.Fatal(err)
	}
	if _, err := s.Remove("tidy", false); err == nil {
		t.Error("it is removed")
	}
	if list, err := s.List(); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
	if err := os.Remove(at); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Remove("tidy", false); err != nil {
		t.Error(err)
	}
}

// A plugin of which a file was changed, added, taken away or made a program does not
// load, and going back to such a one is refused.
func TestChangedPluginsDoNotLoad(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(root string) error{
		"changed": func(root string) error {
			return os.WriteFile(filepath.Join(root, "skills/tidy/SKILL.md"), []byte("evil"), 0o600)
		},
		"added":      func(root string) error { return os.WriteFile(filepath.Join(root, "new"), nil, 0o600) },
		"taken away": func(root string) error { return os.Remove(filepath.Join(root, "bin/tidy")) },
		"renamed": func(root string) error {
			return os.Rename(filepath.Join(root, "bin/tidy"), filepath.Join(root, "bin/ls"))
		},
		"a link": func(root string) error {
			return errors.Join(os.Remove(filepath.Join(root, "bin/tidy")), os.Symlink("/bin/sh", filepath.Join(root, "bin/tidy")))
		},
		"gone": os.RemoveAll,
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newStore(t), folder(t, first)
			in := install(t, s, Source{Kind: FromFolder, Path: dir})
			l, err := s.Load(in)
			if err != nil {
				t.Fatal(err)
			}
			prooftest.Link(t, change(l.Root))
			if _, err := s.Load(in); err == nil {
				t.Error("it loads")
			}
			// To install it again mends it.
			if _, err := s.Load(install(t, s, Source{Kind: FromFolder, Path: dir})); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRollbackRefusesWhatWasChanged(t *testing.T) {
	s, dir := newStore(t), folder(t, first)
	src := Source{Kind: FromFolder, Path: dir}
	install(t, s, src)
	write(t, dir, second)
	in := install(t, s, src)
	if err := os.WriteFile(filepath.Join(s.treeDir(in.Before.Tree, "tidy"), "evil"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Rollback("tidy"); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if now, err := s.Find("tidy"); err != nil || now.Now.Tree != in.Now.Tree {
		t.Errorf("%+v, %v", now, err)
	}
}

// What nobody has said yes to is not there.
func TestPreparedIsNotInstalled(t *testing.T) {
	s := newStore(t)
	c, err := s.Prepare(t.Context(), Source{Kind: FromFolder, Path: folder(t, first)})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); err != nil || len(list) > 0 {
		t.Errorf("%+v, %v", list, err)
	}
	s.Discard(c)
	for _, dir := range []string{treesDir, stageDir} {
		if left, err := os.ReadDir(filepath.Join(s.Dir, dir)); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", dir, left, err)
		}
	}
	if err := s.Install(c); err == nil {
		t.Error("a candidate that was given up can be installed")
	}
}

func TestArchives(t *testing.T) {
	const manifest, skill = `{"name": "tidy"}`, "text"
	plain := zipOf(t, member{name: ".claude-plugin/plugin.json", data: manifest}, member{name: "skills/a/SKILL.md", data: skill})
	wrapped := tarOf(t, member{name: "tidy-main/.claude-plugin/plugin.json", data: manifest}, member{name: "tidy-main/skills/a/SKILL.md", data: skill})
	hash := func(data []byte) string { sum := sha256.Sum256(data); return hex.EncodeToString(sum[:]) }
	integrity := sha512.Sum512(wrapped)
	about := fmt.Sprintf(`{"dist-tags":{"latest":"2.0.1"},"versions":{"2.0.1":{"dist":{"tarball":"https://npm.example/t.tgz","integrity":"sha512-%s"}},
		"1.0.0":{"dist":{"tarball":"https://elsewhere.example/t.tgz","integrity":"x"}},"1.1.0":{"dist":{"tarball":"https://npm.example/t.tgz","integrity":"sha512-AAAA"}},
		"1.2.0":{"dist":{"tarball":"https://npm.example/t.tgz"}}}}`, base64.StdEncoding.EncodeToString(integrity[:]))
	file := filepath.Join(t.TempDir(), "tidy.zip")
	if err := os.WriteFile(file, plain, 0o600); err != nil {
		t.Fatal(err)
	}
	get := web(map[string][]byte{
		"https://a.example/tidy.zip": plain, "https://a.example/tidy.tar.gz": wrapped,
		"https://npm.example/@o%2Ftidy": []byte(about), "https://npm.example/t.tgz": wrapped,
	})
	npm := func(version string) Source {
		return Source{Kind: FromNPM, Package: "@o/tidy", Version: version, URL: "https://npm.example"}
	}
	for _, c := range []struct {
		src     Source
		version string // "" = refused
		says    string
	}{
		{Source{Kind: FromFile, Path: file}, hash(plain)[:12], ""},
		{Source{Kind: FromArchive, URL: "https://a.example/tidy.zip"}, hash(plain)[:12], ""},
		{Source{Kind: FromArchive, URL: "https://a.example/tidy.tar.gz", SHA256: hash(wrapped)}, hash(wrapped)[:12], ""},
		{Source{Kind: FromArchive, URL: "https://a.example/tidy.tar.gz", SHA256: hash(plain)}, "", "has to have"},
		{Source{Kind: FromArchive, URL: "https://a.example/gone.zip"}, "", "there is no"},
		{Source{Kind: FromArchive, URL: "http://a.example/tidy.zip"}, "", "https"},
		{npm(""), "2.0.1", ""},
		{npm("1.0.0"), "", "another host"},
		{npm("1.1.0"), "", "not the one"},
		{npm("1.2.0"), "", "no hash"},
		{npm("9.9.9"), "", "no version"},
	} {
		s := newStore(t)
		s.Get = get
		got, err := s.Prepare(t.Context(), c.src)
		if got.Release.Version != c.version || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %q, %v", c.src, got.Release.Version, err)
		}
	}
}

func TestMarketplace(t *testing.T) {
	dir := folder(t, `-- .claude-plugin/marketplace.json --
{"name": "team", "owner": {"name": "A Team"}, "metadata": {"pluginRoot": "./plugins"}, "renames": {"old": "tidy", "gone": null},
 "plugins": [
  {"name": "tidy", "source": "tidy", "category": "code"},
  {"name": "bare", "source": "./bare", "version": "3.0", "strict": false, "skills": ["./s"]},
  {"name": "clash", "source": "./clash", "strict": false, "skills": ["./s"]},
  {"name": "liar", "source": "./bare2"},
  {"name": "out", "source": "./../out"},
  {"name": "cmd", "source": {"source": "command", "command": "curl x | sh"}},
  {"name": "disk", "source": {"source": "directory", "path": "/etc"}},
  {"name": "file", "source": {"source": "url", "url": "file:///etc"}},
  {"name": "tidy", "source": "./other"}
 ]}
-- plugins/tidy/.claude-plugin/plugin.json --
{"name": "tidy", "version": "1.0.0"}
-- plugins/tidy/skills/a/SKILL.md --
-- bare/s/x/SKILL.md --
-- clash/.claude-plugin/plugin.json --
{"name": "clash", "skills": "./t"}
-- bare2/.claude-plugin/plugin.json --
{"name": "other"}
`)
	s := newStore(t)
	k, err := s.AddMarket(t.Context(), Source{Kind: FromFolder, Path: dir}, "")
	if err != nil || k.Name != "team" || k.Plugins != 4 {
		t.Fatalf("%+v, %v", k, err)
	}
	m, err := s.Market("team")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range m.Plugins {
		names = append(names, e.Name)
	}
	if want := []string{"tidy", "bare", "clash", "liar"}; !slices.Equal(names, want) || len(m.Warnings) != 5 {
		t.Errorf("%q, %q", names, m.Warnings)
	}
	for name, says := range map[string]string{
		"clash": "one of them has to go", "liar": "is named other", "old": "tidy now", "gone": "given up", "never": "has no never",
	} {
		if _, err := s.Prepare(t.Context(), Source{Kind: FromMarketplace, Package: name + "@team"}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tidy := install(t, s, Source{Kind: FromMarketplace, Package: "tidy@team"})
	bare := install(t, s, Source{Kind: FromMarketplace, Package: "bare@team"})
	if tidy.ID != "tidy@team" || bare.Now.Version != "3.0" {
		t.Errorf("%+v %+v", tidy, bare)
	}
	if l, err := s.Load(bare); err != nil || !slices.Equal(l.Skills, []string{"s/x"}) {
		t.Errorf("%+v, %v", l, err)
	}

	// An update asks the marketplace anew; one that has another name now is another one.
	write(t, dir, "-- plugins/tidy/.claude-plugin/plugin.json --\n{\"name\": \"tidy\", \"version\": \"2.0.0\"}\n")
	if c, err := s.Update(t.Context(), "tidy"); err != nil || c.Release.Version != "2.0.0" {
		t.Errorf("%+v, %v", c, err)
	}
	write(t, dir, "-- .claude-plugin/marketplace.json --\n{\"name\": \"other\", \"plugins\": []}\n")
	if _, err := s.Update(t.Context(), "tidy"); !errors.Is(err, ErrChanged) {
		t.Error(err)
	}
	if err := s.RemoveMarket("team"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(tidy); err != nil {
		t.Errorf("a plugin went with its marketplace: %v", err)
	}
	if _, err := s.Update(t.Context(), "tidy"); !errors.Is(err, ErrUnknown) {
		t.Error(err)
	}
}

// A marketplace elsewhere sends nobody to what runs on their own machine.
func TestMarketplaceNamesNothingHere(t *testing.T) {
	for from, fine := range map[string]bool{"https://far.example/m.json": false, "http://127.0.0.1:1/m.json": true} {
		s := newStore(t)
		asked := ""
		s.Get = func(ctx context.Context, address string, most int64, to io.Writer) error {
			if address != from {
				asked = address
			}
			return web(map[string][]byte{from: []byte(`{"name": "team", "plugins": [{"name": "evil", "source": {"source": "archive", "url": "http://localhost:2/drop"}}]}`)})(ctx, address, most, to)
		}
		if _, err := s.AddMarket(t.Context(), Source{Kind: FromURL, URL: from}, ""); err != nil {
			t.Fatal(err)
		}
		_, err := s.Prepare(t.Context(), Source{Kind: FromMarketplace, Package: "evil@team"})
		if err == nil || (asked != "") != fine {
			t.Errorf("%s: asked %q: %v", from, asked, err)
		}
	}
}

// What is not understood of a source is told, and how to write it.
func TestSourcesThatPeopleWrite(t *testing.T) {
	for word, want := range map[string]string{
		"git@github.com:owner/repo.git": "write https://HOST/OWNER/REPOSITORY",
		"ssh://git@host/repo":           "user or a password",
	} {
		if _, err := ParseSource(word, "/w"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", word, err)
		}
	}
	m, err := ParseMarketplace([]byte(`{"name": "team", "plugins": [{"name": "a"}]}`))
	if err != nil || len(m.Warnings) != 1 || !strings.Contains(m.Warnings[0], "a: it names no source") {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestMarketplaceNames(t *testing.T) {
	for name, src := range map[string]Source{
		"local": {Kind: FromFolder}, "inline": {Kind: FromFolder}, "builtin": {Kind: FromFolder},
		"claude-plugins-official": {Kind: FromGitHub, Repo: "somebody/else"}, "anthropic-tools": {Kind: FromFolder}, "Team": {Kind: FromFolder}, "../x": {Kind: FromFolder},
	} {
		if err := checkMarketName(name, src); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if err := checkMarketName("claude-plugins-official", Source{Kind: FromGitHub, Repo: "anthropics/x"}); err != nil {
		t.Error(err)
	}
}

// Two marketplaces of one name are not mixed up.
func TestMarketplaceOfTheSameName(t *testing.T) {
	const market = "-- .claude-plugin/marketplace.json --\n{\"name\": \"team\", \"plugins\": []}\n"
	s := newStore(t)
	one, two := folder(t, market), folder(t, market)
	if _, err := s.AddMarket(t.Context(), Source{Kind: FromFolder, Path: one}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AddMarket(t.Context(), Source{Kind: FromFolder, Path: two}, ""); !errors.Is(err, ErrInstalled) {
		t.Error(err)
	}
}

func TestOrphansGoAfterATime(t *testing.T) {
	s, dir := newStore(t), folder(t, first)
	now := time.Now()
	s.Now = func() time.Time { return now }
	in := install(t, s, Source{Kind: FromFolder, Path: dir})
	if _, err := s.Remove("tidy", true); err != nil {
		t.Fatal(err)
	}
	left := filepath.Join(s.Dir, treesDir, in.Now.Tree+".tidy")
	if _, err := os.Stat(left); err != nil {
		t.Errorf("a session that has it open would lose it: %v", err)
	}
	now = now.Add(orphanAge + time.Hour)
	install(t, s, Source{Kind: FromFolder, Path: folder(t, second)})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestMinVersion(t *testing.T) {
	files := func(v string) string {
		return "-- manifest.json --\n{\"id\": \"x\", \"type\": \"Skill\", \"min_app_version\": \"" + v + "\"}\n"
	}
	for v, ok := range map[string]bool{"1.2.3": true, "1.2": true, "0.9": true, "v1.0.0": true, "1.2.4": false, "2": false, "new": false} {
		_, err := newStore(t).Prepare(t.Context(), Source{Kind: FromFolder, Path: folder(t, files(v))})
		if (err == nil) != ok {
			t.Errorf("%s: %v", v, err)
		}
	}
}

// A book that somebody has tampered with names no folder outside, and nothing is used.
func TestBookIsHostile(t *testing.T) {
	for _, text := range []string{
		`{"version": 1, "plugins": [{"id": "a@b", "now": {"name": "../../x", "sha256": "` + strings.Repeat("0", 64) + `"}}]}`,
		`{"version": 1, "plugins": [{"id": "a@b", "now": {"name": "x", "sha256": "../../../etc"}}]}`,
		`{"version": 1, "plugins": [{"id": "../../x", "now": {"name": "x", "sha256": "` + strings.Repeat("0", 64) + `"}}]}`,
		`{"version": 1, "marketplaces": [{"name": "..", "sha256": "` + strings.Repeat("0", 64) + `"}]}`,
		`{"version": 99}`, `{"version": 1`, `[]`,
	} {
		s := newStore(t)
		if err := errors.Join(os.MkdirAll(s.Dir, 0o700), os.WriteFile(s.BookPath(), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		if list, err := s.List(); err == nil || len(list) > 0 {
			t.Errorf("%s: %+v", text, list)
		}
		if err := s.RemoveMarket("x"); err == nil {
			t.Errorf("%s: written to", text)
		}
		if now, err := os.ReadFile(s.BookPath()); err != nil || !bytes.Equal(now, []byte(text)) {
			t.Errorf("%s: %s, %v", text, now, err)
		}
	}
}

func TestTwoPluginsNeverShareData(t *testing.T) {
	s := newStore(t)
	const files = "-- .claude-plugin/marketplace.json --\n{\"name\": \"%s\", \"plugins\": [{\"name\": \"%s\", \"source\": \"./p\"}]}\n-- p/skills/a/SKILL.md --\n"
	for _, m := range [][2]string{{"c", "a-b"}, {"b-c", "a"}} {
		if _, err := s.AddMarket(t.Context(), Source{Kind: FromFolder, Path: folder(t, fmt.Sprintf(files, m[0], m[1]))}, ""); err != nil {
			t.Fatal(err)
		}
	}
	install(t, s, Source{Kind: FromMarketplace, Package: "a-b@c"})
	c, err := s.Prepare(t.Context(), Source{Kind: FromMarketplace, Package: "a@b-c"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(c); err == nil || !strings.Contains(err.Error(), "share") {
		t.Error(err)
	}
}

func TestCopyRefuses(t *testing.T) {
	out := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(out, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"absolute": out, "relative": "../../../../../../etc/passwd", "a folder": "skills", "nowhere": "nothing"} {
		dir := folder(t, first)
		prooftest.Link(t, os.Symlink(to, filepath.Join(dir, "link")))
		if _, err := newStore(t).Prepare(t.Context(), Source{Kind: FromFolder, Path: dir}); !errors.Is(err, ErrUnsafe) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := folder(t, first)
	if err := os.Symlink("SKILL.md", filepath.Join(dir, "skills/tidy/AGAIN.md")); err != nil {
		t.Fatal(err)
	}
	in := install(t, newStore(t), Source{Kind: FromFolder, Path: dir})
	if in.Now.Tree == "" {
		t.Error("a link within is no reason")
	}
}

func TestEnabled(t *testing.T) {
	yes, no := true, false
	all := func(v bool) map[string]bool { return map[string]bool{"a@m": v} }
	for _, c := range []struct {
		name    string
		choices Choices
		in      Installed
		off     bool
		want    bool
		by      string
	}{
		{"as the plugin says", nil, Installed{}, false, true, "plugin"},
		{"off as the plugin says", nil, Installed{}, true, false, "plugin"},
		{"by command", nil, Installed{On: &no}, false, false, "command"},
		{"in a folder", nil, Installed{On: &no, In: map[string]bool{"/w": true}}, true, true, "folder"},
		{"in another folder", nil, Installed{On: &no, In: map[string]bool{"/x": true}}, true, false, "command"},
		{"the user's file", Choices{{"user", all(false), true}}, Installed{}, false, false, "user"},
		{"a command is stronger than the user's file", Choices{{"user", all(false), true}}, Installed{On: &yes}, false, true, "command"},
		{"an administrator is stronger than all", Choices{{"managed", all(false), false}}, Installed{On: &yes, In: map[string]bool{"/w": true}}, false, false, "managed"},
		{"of another plugin", Choices{{"managed", map[string]bool{"b@m": false}, false}}, Installed{}, false, true, "plugin"},
	} {
		c.in.ID = "a@m"
		if on, by := c.choices.Enabled(c.in, c.off, "/w"); on != c.want || by != c.by {
			t.Errorf("%s: %v, %s", c.name, on, by)
		}
	}
}

func TestAllow(t *testing.T) {
	hub := Source{Kind: FromGitHub, Repo: "Team/Market"}
	same := Source{Kind: FromGit, URL: "https://github.com/team/market.git"}
	tagged := Source{Kind: FromGitHub, Repo: "team/market", Ref: "v1"}
	disk := Source{Kind: FromFolder, Path: "/srv/market"}
	for _, c := range []struct {
		name  string
		allow Allow
		src   Source
		ok    bool
	}{
		{"nothing is said", Allow{}, hub, true},
		{"nothing is allowed", Allow{Strict: true}, hub, false},
		{"it is allowed", Allow{Strict: true, Known: []Source{hub}}, same, true},
		{"another state of it is not", Allow{Strict: true, Known: []Source{hub}}, tagged, false},
		{"it is blocked", Allow{Blocked: []Source{hub}}, same, false},
		{"all its states are blocked", Allow{Blocked: []Source{hub}}, tagged, false},
		{"blocked is stronger", Allow{Strict: true, Known: []Source{hub}, Blocked: []Source{hub}}, hub, false},
		{"a host", Allow{Strict: true, Known: []Source{{Kind: "hostPattern", Host: `github\.com`}}}, hub, true},
		{"a host, whole", Allow{Strict: true, Known: []Source{{Kind: "hostPattern", Host: `hub`}}}, hub, false},
		{"a host is no folder", Allow{Strict: true, Known: []Source{{Kind: "hostPattern", Host: `.*`}}}, disk, false},
		{"a folder", Allow{Strict: true, Known: []Source{{Kind: "pathPattern", Place: `/srv/.*`}}}, disk, true},
		{"a pattern that cannot be read permits nothing", Allow{Strict: true, Known: []Source{{Kind: "hostPattern", Host: `(`}}}, hub, false},
		{"a pattern that cannot be read forbids all", Allow{Blocked: []Source{{Kind: "hostPattern", Host: `(`}}}, hub, false},
		{"a list that cannot be read forbids all", Allow{Unread: true}, disk, false},
	} {
		if err := c.allow.Check(c.src); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// What was installed does not load when its marketplace is not allowed any more.
func TestAllowHoldsAtLoad(t *testing.T) {
	dir := folder(t, "-- .claude-plugin/marketplace.json --\n{\"name\": \"team\", \"plugins\": [{\"name\": \"a\", \"source\": \"./p\"}]}\n-- p/skills/a/SKILL.md --\n")
	s := newStore(t)
	market := Source{Kind: FromFolder, Path: dir}
	if _, err := s.AddMarket(t.Context(), market, ""); err != nil {
		t.Fatal(err)
	}
	in := install(t, s, Source{Kind: FromMarketplace, Package: "a@team"})
	own := install(t, s, Source{Kind: FromFolder, Path: folder(t, first)})
	s.Allow = Allow{Strict: true, Known: []Source{market}}
	if _, err := s.Load(in); err != nil {
		t.Error(err)
	}
	if _, err := s.Load(own); !errors.Is(err, ErrForbidden) {
		t.Errorf("a plugin without a marketplace: %v", err)
	}
	s.Allow = Allow{Blocked: []Source{market}}
	if _, err := s.Load(in); !errors.Is(err, ErrForbidden) {
		t.Error(err)
	}
	if err := s.RemoveMarket("team"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(in); !errors.Is(err, ErrForbidden) {
		t.Errorf("to forget the marketplace gets around the list: %v", err)
	}
}

func TestValues(t *testing.T) {
	one, nine := 1.0, 9.0
	p := Plugin{Manifest: Manifest{Name: "a", Options: []Option{
		{Key: "n", Type: "number", Min: &one, Max: &nine, Default: json.RawMessage("5")},
		{Key: "b", Type: "boolean"},
		{Key: "dir", Type: "directory", Required: true},
		{Key: "list", Type: "string", Multiple: true},
		{Key: "token", Type: "string", Sensitive: true, Required: true},
	}}}
	for _, c := range []struct{ key, text, want string }{
		{"n", "3", "3"},
		{"n", "10", ""},
		{"n", "x", ""},
		{"n", "NaN", ""},
		{"b", "yes", "true"},
		{"b", "2", ""},
		{"dir", "relative", ""},
		{"dir", "/a/../b", `"/b"`},
		{"list", "a, b", `["a","b"]`},
		{"list", "a\nb", ""},
		{"none", "x", ""},
	} {
		o, err := p.Option(c.key)
		var v json.RawMessage
		if err == nil {
			v, err = Value(o, c.text)
		}
		if string(v) != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s=%s: %s, %v", c.key, c.text, v, err)
		}
	}
	secret := func(key string) string { return "s3cret" }
	chosen := []map[string]json.RawMessage{{"n": json.RawMessage("99"), "list": json.RawMessage(`["x","y"]`)}, {"n": json.RawMessage("7")}, {"token": json.RawMessage(`"open"`)}}
	open, secrets, missing := p.Values(chosen, secret)
	want := map[string]string{"n": "7", "list": "x,y"}
	if d := cmp.Diff(want, open) + cmp.Diff(map[string]string{"token": "s3cret"}, secrets) + cmp.Diff([]string{"dir"}, missing); d != "" {
		t.Error(d)
	}
}

func TestParseSource(t *testing.T) {
	sha := strings.Repeat("a", 40)
	for word, want := range map[string]Source{
		"./x":                           {Kind: FromFolder, Path: "/w/x"},
		"/a/b.zip":                      {Kind: FromFile, Path: "/a/b.zip"},
		"market.json":                   {Kind: FromFile, Path: "/w/market.json"},
		"owner/repo":                    {Kind: FromGitHub, Repo: "owner/repo"},
		"owner/repo#v1.0":               {Kind: FromGitHub, Repo: "owner/repo", Ref: "v1.0"},
		"github:owner/repo#" + sha:      {Kind: FromGitHub, Repo: "owner/repo", SHA: sha},
		"https://h.example/r.git":       {Kind: FromGit, URL: "https://h.example/r.git"},
		"https://h.example/a.zip?x=1":   {Kind: FromArchive, URL: "https://h.example/a.zip?x=1"},
		"https://h.example/market.json": {Kind: FromURL, URL: "https://h.example/market.json"},
		"npm:@o/p@1.0.0":                {Kind: FromNPM, Package: "@o/p", Version: "1.0.0"},
		"npm:p":                         {Kind: FromNPM, Package: "p"},
		"tidy@team":                     {Kind: FromMarketplace, Package: "tidy@team"},
	} {
		if got, err := ParseSource(word, "/w"); err != nil || got != want {
			t.Errorf("%s: %+v, %v", word, got, err)
		}
	}
	for _, word := range []string{
		"", "http://h.example/a.zip", "https://user:pass@h.example/r.git", "ext::sh -c x", "ssh://git@h.example/r", "https://h.example/r.git#--upload-pack=x",
		"npm:../x", "https:///x", "owner/repo#a..b", "git+ext::sh", "git+--upload-pack=x", "npm:p@--x", "file://host/x",
	} {
		if got, err := ParseSource(word, "/w"); err == nil && got.Kind != FromFolder {
			t.Errorf("%s: %+v", word, got)
		}
	}
}

// Each skill has a folder of its own; commands and agents are found by folder, and not
// where others that the plugin does not name would be found with them.
func TestFolders(t *testing.T) {
	s := newStore(t)
	in := install(t, s, Source{Kind: FromFolder, Path: folder(t, `-- .claude-plugin/plugin.json --
{"name": "f", "skills": "./one", "commands": ["./some/a.md", "./all/"], "agents": ["./agents/x.md"]}
-- one/SKILL.md --
-- skills/two/SKILL.md --
-- some/a.md --
-- some/b.md --
-- all/c.md --
-- all/deep/d.md --
-- agents/x.md --
`)})
	l, err := s.Load(in)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, kind := range []string{Skills, Commands, Agents} {
		dirs, left := l.Folders(kind)
		for _, dir := range dirs {
			rel, err := filepath.Rel(l.Root, dir)
			if err != nil {
				t.Fatal(err)
			}
			got[kind] = append(got[kind], filepath.ToSlash(rel))
		}
		for _, one := range left {
			got[kind] = append(got[kind], "not "+one.What+": "+one.Why)
		}
	}
	want := map[string][]string{
		Skills:   {"one", "skills/two"},
		Commands: {"all", "not some: the plugin names some of the commands in it, and not some/b.md"},
		Agents:   {"agents"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// No two plugins keep their data in the same folder because their names differ in what no
// folder is called; usual names are folders as the ecosystem has them.
func TestDataFoldersAreApart(t *testing.T) {
	s := &Store{Dir: t.TempDir()}
	seen := map[string]string{}
	for _, id := range []string{"x@skills-dir", "x@skills.dir", "x@skills dir", "x.y@m", "x-y@m", "x@@m", "a@b"} {
		dir := s.DataDir(id)
		if was := seen[dir]; was != "" {
			t.Errorf("%s and %s have the same folder %s", was, id, dir)
		}
		seen[dir] = id
	}
	if got := filepath.Base(s.DataDir("x@skills-dir")); got != "x-skills-dir" {
		t.Errorf("the folder is %s", got)
	}
}
