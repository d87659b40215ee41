package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/prooftest"
)

// put writes files below dir, given as pairs of name and text.
func put(t *testing.T, dir string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(dir, files[i])
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tree lists what is below dir: files with their text, links with where they lead.
func tree(t *testing.T, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			all = append(all, rel+" -> "+to)
		case e.Type().IsRegular() && e.Name() != usedFile:
			text, _ := os.ReadFile(path)
			all = append(all, rel+": "+string(text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// spoken returns s with the folders of a test in place of their paths.
func spoken(s []string, names ...string) []string {
	short := make([]string, len(s))
	for i := range s {
		short[i] = strings.NewReplacer(names...).Replace(s[i])
	}
	slices.Sort(short)
	return short
}

func TestCacheVariables(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths are those of Unix, as its confinement is")
	}
	home, work := t.TempDir(), t.TempDir()
	cache := filepath.Join(t.TempDir(), "caches", "w")
	put(
		t, home,
		"goroot/go.env", "GOPROXY=https://distribution.example\n",
		".config/go/env", "GOFLAGS=-buildvcs=false\nGOPROXY=https://goproxy.example\n",
		"go/pkg/mod/cache/download/x", "",
		".cache/ms-playwright/x", "", ".m2/repository/x", "", ".gradle/caches/modules-2/x", "",
	)
	for _, tt := range []struct {
		name string
		c    CacheConfig
		want []string
	}{
		{"network off", CacheConfig{GOOS: "linux"}, []string{
			"BUN_INSTALL_CACHE_DIR=CACHE/bun", "CARGO_HOME=CACHE/cargo", "CARGO_NET_OFFLINE=true", "CCACHE_DIR=CACHE/ccache",
			"GOCACHE=CACHE/go-build", "GOFLAGS=-buildvcs=false -modcacherw", "GOMODCACHE=CACHE/go/pkg/mod", "GONOPROXY=none",
			"GOPATH=CACHE/go:HOME/go", "GOPROXY=file://HOME/go/pkg/mod/cache/download", "GOSUMDB=off",
			"GRADLE_RO_DEP_CACHE=HOME/.gradle/caches", "GRADLE_USER_HOME=CACHE/gradle", "MAVEN_ARGS=-Dmaven.repo.local=CACHE/maven -Dmaven.repo.local.tail=HOME/.m2/repository",
			"PIP_CACHE_DIR=CACHE/pip", "PLAYWRIGHT_BROWSERS_PATH=HOME/.cache/ms-playwright", "SCCACHE_DIR=CACHE/sccache", "UV_CACHE_DIR=CACHE/uv",
			"XDG_CACHE_HOME=CACHE/xdg", "YARN_CACHE_FOLDER=CACHE/yarn", "YARN_GLOBAL_FOLDER=CACHE/yarn-global",
			"npm_config_cache=CACHE/npm", "npm_config_update_notifier=false",
		}},
		{"proxy, and what the user has set", CacheConfig{GOOS: "linux", Net: NetProxy, Env: []string{
			"GOFLAGS=-mod=mod", "GOPROXY=a,b", "GOPROXY=https://p.example|direct", "GOPATH=" + home + "/go:/other", "MAVEN_ARGS=-q", "TMPDIR=/var/scratch",
			"PLAYWRIGHT_BROWSERS_PATH=/browsers", "GRADLE_USER_HOME=" + home + "/gradle", "XDG_CONFIG_HOME=/config",
			"CARGO_HOME=" + work + "/.cargo", "PIP_CACHE_DIR=" + work + "/.pip", "UV_CACHE_DIR=" + work + "-not/uv", "npm_config_cache=" + work,
		}}, []string{
			"BUN_INSTALL_CACHE_DIR=CACHE/bun", "CCACHE_DIR=CACHE/ccache",
			"GOCACHE=CACHE/go-build", "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE=CACHE/go/pkg/mod",
			"GOPATH=CACHE/go:HOME/go:/other", "GOPROXY=file://HOME/go/pkg/mod/cache/download,https://p.example|direct",
			"GRADLE_USER_HOME=CACHE/gradle", "MAVEN_ARGS=-q -Dmaven.repo.local=CACHE/maven -Dmaven.repo.local.tail=HOME/.m2/repository",
			"TMPDIR=/tmp", "UV_CACHE_DIR=CACHE/uv", "XDG_CACHE_HOME=CACHE/xdg", "YARN_CACHE_FOLDER=CACHE/yarn", "YARN_GLOBAL_FOLDER=CACHE/yarn-global",
			"npm_config_update_notifier=false",
		}},
		{"settings of Go itself", CacheConfig{GOOS: "linux", Net: NetProxy, Env: []string{"GOENV=off", "GOROOT=" + home + "/goroot", "GOFLAGS=-modcacherw"}}, []string{
			"BUN_INSTALL_CACHE_DIR=CACHE/bun", "CARGO_HOME=CACHE/cargo", "CCACHE_DIR=CACHE/ccache", "GOCACHE=CACHE/go-build",
			"GOFLAGS=-modcacherw", "GOMODCACHE=CACHE/go/pkg/mod", "GOPATH=CACHE/go:HOME/go", "GOPROXY=file://HOME/go/pkg/mod/cache/download,https://distribution.example",
			"GRADLE_RO_DEP_CACHE=HOME/.gradle/caches", "GRADLE_USER_HOME=CACHE/gradle", "MAVEN_ARGS=-Dmaven.repo.local=CACHE/maven -Dmaven.repo.local.tail=HOME/.m2/repository",
			"PIP_CACHE_DIR=CACHE/pip", "PLAYWRIGHT_BROWSERS_PATH=HOME/.cache/ms-playwright", "SCCACHE_DIR=CACHE/sccache", "UV_CACHE_DIR=CACHE/uv",
			"XDG_CACHE_HOME=CACHE/xdg", "YARN_CACHE_FOLDER=CACHE/yarn", "YARN_GLOBAL_FOLDER=CACHE/yarn-global",
			"npm_config_cache=CACHE/npm", "npm_config_update_notifier=false",
		}},
		{"macOS", CacheConfig{GOOS: "darwin", Net: NetOpen, Env: []string{"GOPATH=" + work, "TMPDIR=/var/folders/x"}}, []string{
			"BUN_INSTALL_CACHE_DIR=CACHE/bun", "CARGO_HOME=CACHE/cargo", "CCACHE_DIR=CACHE/ccache", "GOCACHE=CACHE/go-build",
			"GRADLE_RO_DEP_CACHE=HOME/.gradle/caches", "GRADLE_USER_HOME=CACHE/gradle", "MAVEN_ARGS=-Dmaven.repo.local=CACHE/maven -Dmaven.repo.local.tail=HOME/.m2/repository",
			"PIP_CACHE_DIR=CACHE/pip", "SCCACHE_DIR=CACHE/sccache", "TMPDIR=CACHE/tmp", "UV_CACHE_DIR=CACHE/uv",
			"XDG_CACHE_HOME=CACHE/xdg", "YARN_CACHE_FOLDER=CACHE/yarn", "YARN_GLOBAL_FOLDER=CACHE/yarn-global",
			"npm_config_cache=CACHE/npm", "npm_config_update_notifier=false",
		}},
	} {
		tt.c.Dir, tt.c.Home, tt.c.Roots = cache, home, []string{work}
		got, err := PrepareCaches(tt.c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, spoken(got.Set, cache, "CACHE", home, "HOME", work, "WORK")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff([]string{cache}, got.Writable); diff != "" {
			t.Errorf("%s: writable (-want +got):\n%s", tt.name, diff)
		}
		for _, entry := range got.Set { // what is named is there
			_, value, _ := strings.Cut(entry, "=")
			if strings.HasPrefix(value, cache) && !foundAt(filepath.SplitList(value)[0]) {
				t.Errorf("%s: %s is missing", tt.name, entry)
			}
		}
	}
}

// A project that keeps its packages itself, or is linked to another store, keeps
// doing so.
func TestCachesOfProjects(t *testing.T) {
	for _, tt := range []struct {
		files []string
		want  string
	}{
		{nil, "YARN_CACHE_FOLDER"},
		{[]string{".yarnrc.yml", ""}, ""},
		{[]string{".yarnrc.yml", "", "pnpm-lock.yaml", ""}, "npm_config_store_dir"},
		{[]string{".yarnrc.yml", "", "pnpm-lock.yaml", "", "node_modules/.modules.yaml", ""}, ""},
	} {
		work := t.TempDir()
		put(t, work, tt.files...)
		got, err := PrepareCaches(CacheConfig{Dir: t.TempDir(), Home: t.TempDir(), Roots: []string{work}, GOOS: "linux"})
		if err != nil {
			t.Fatal(err)
		}
		set := ""
		for _, entry := range got.Set {
			if name := variable(entry); name == "YARN_CACHE_FOLDER" || name == "npm_config_store_dir" {
				set += name
			}
		}
		if set != tt.want {
			t.Errorf("%v: %q, want %q", tt.files, set, tt.want)
		}
	}
}

// What the user has downloaded is linked or copied, his tokens are not, and a
// second time adds what is new.
func TestCargoHome(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	put(
		t, home,
		".cargo/config.toml", "[build]", ".cargo/credentials.toml", "secret", ".cargo/bin/cargo", "x",
		".cargo/registry/cache/r/a-1.0.0.crate", "A", ".cargo/registry/src/r/a-1.0.0/lib.rs", "x",
		".cargo/registry/index/r/config.json", "{}", ".cargo/registry/index/r/.cache/a/a", "entry", ".cargo/registry/index/r/.git/HEAD", "x",
		".cargo/git/db/repo/HEAD", "x",
	)
	c := CacheConfig{Dir: dir, Home: home, GOOS: "linux"}
	if _, err := PrepareCaches(c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"config.toml -> HOME/.cargo/config.toml",
		"git/db/repo -> HOME/.cargo/git/db/repo",
		"registry/cache/r/a-1.0.0.crate -> HOME/.cargo/registry/cache/r/a-1.0.0.crate",
		"registry/index/r/.cache/a/a: entry",
		"registry/index/r/config.json: {}",
	}
	if diff := cmp.Diff(want, spoken(tree(t, filepath.Join(dir, "cargo")), home, "HOME")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	put(t, dir, "cargo/registry/index/r/.cache/a/a", "newer")
	put(t, home, ".cargo/registry/cache/r/b-1.0.0.crate", "B")
	if _, err := PrepareCaches(c); err != nil {
		t.Fatal(err)
	}
	want[3] = "registry/index/r/.cache/a/a: newer"
	want = slices.Insert(want, 3, "registry/cache/r/b-1.0.0.crate -> HOME/.cargo/registry/cache/r/b-1.0.0.crate")
	if diff := cmp.Diff(want, spoken(tree(t, filepath.Join(dir, "cargo")), home, "HOME")); diff != "" {
		t.Errorf("later (-want +got):\n%s", diff)
	}
}

// Commands write what they like into their caches. What is prepared there later
// does not follow them out.
func TestCachesLeadNowhere(t *testing.T) {
	home, dir, outside := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, home, ".cargo/registry/index/r/config.json", "{}", ".cargo/registry/cache/r/a.crate", "A", ".cargo/config.toml", "x")
	put(t, outside, "victim", "as it was")
	for _, rel := range []string{"cargo", "go/pkg", "xdg", "tmp"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, rel)), 0o755); err != nil {
			t.Fatal(err)
		}
		prooftest.Link(t, os.Symlink(outside, filepath.Join(dir, rel)))
	}
	if err := os.Symlink(filepath.Join(outside, "victim"), filepath.Join(dir, usedFile)); err != nil {
		t.Fatal(err)
	}
	got, err := PrepareCaches(CacheConfig{Dir: dir, Home: home, GOOS: "darwin", Net: NetProxy})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"victim: as it was"}, tree(t, outside)); diff != "" {
		t.Errorf("outside (-want +got):\n%s", diff)
	}
	for _, entry := range got.Set {
		switch variable(entry) {
		case "CARGO_HOME", "GOMODCACHE", "XDG_CACHE_HOME", "TMPDIR":
			t.Errorf("%s leads out", entry)
		}
	}
}

// Nor does it follow links that stand further down.
func TestSeedsLeadNowhere(t *testing.T) {
	home, dir, outside := t.TempDir(), t.TempDir(), t.TempDir()
	put(t, home, ".cargo/registry/index/r/config.json", "{}", ".cargo/registry/cache/r/a.crate", "A", ".cargo/git/db/repo/HEAD", "x")
	put(t, dir, "cargo/registry/cache/x", "", "cargo/git/x", "")
	for _, rel := range []string{"cargo/registry/index", "cargo/registry/cache/r", "cargo/git/db"} {
		prooftest.Link(t, os.Symlink(outside, filepath.Join(dir, rel)))
	}
	if _, err := PrepareCaches(CacheConfig{Dir: dir, Home: home, GOOS: "linux"}); err != nil {
		t.Fatal(err)
	}
	if left := tree(t, outside); left != nil {
		t.Errorf("outside there is %v", left)
	}
}

func TestSeedBounds(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	put(t, from, "a", "1", "b", "2", "c", "3")
	for _, tt := range []struct {
		files int
		bytes int64
		want  []string
	}{
		{0, 10, nil},
		{2, 10, []string{"a: 1", "b: 2"}},
		{10, 2, []string{"a: 1", "b: 2"}},
		{10, 10, []string{"a: 1", "b: 2", "c: 3"}},
	} {
		dir := filepath.Join(to, strings.Repeat("x", tt.files+int(tt.bytes)+1))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		s := seed{root: root, files: tt.files, bytes: tt.bytes}
		s.copy(".", from)
		root.Close()
		if diff := cmp.Diff(tt.want, tree(t, dir)); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt, diff)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPrune(t *testing.T) {
	parent := t.TempDir()
	now := time.Now()
	for _, d := range []struct {
		name string
		age  time.Duration
	}{{"old", CacheAge + time.Hour}, {"kept", CacheAge + time.Hour}, {"new", CacheAge - time.Hour}} {
		put(t, parent, d.name+"/go/x", "", d.name+"/"+usedFile, "")
		at := now.Add(-d.age)
		if err := os.Chtimes(filepath.Join(parent, d.name, usedFile), at, at); err != nil {
			t.Fatal(err)
		}
	}
	put(t, parent, "foreign/x", "", "file", "")
	if err := PruneCaches(parent, filepath.Join(parent, "kept"), now); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"file", "foreign", "kept", "new"}, left); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := PruneCaches(filepath.Join(parent, "none"), "", now); err != nil {
		t.Error(err)
	}
}

func TestOverlay(t *testing.T) {
	env := []string{"A=1", "B=2", "A=3", "=C:=x"}
	if diff := cmp.Diff([]string{"B=2", "=C:=x", "A=4", "D=5"}, Overlay(env, []string{"A=4", "D=5"})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"A=1", "B=2", "A=3", "=C:=x"}, env); diff != "" {
		t.Errorf("it was changed (-want +got):\n%s", diff)
	}
}

func TestProxyEnv(t *testing.T) {
	for _, tt := range []struct{ token, want string }{
		{"", "http://127.0.0.1:8080"}, {"s/p:x", "http://dure:s%2Fp%3Ax@127.0.0.1:8080"},
	} {
		want := []string{
			"HTTP_PROXY=URL", "http_proxy=URL", "HTTPS_PROXY=URL", "https_proxy=URL", "ALL_PROXY=URL", "all_proxy=URL",
			"NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1",
			"npm_config_proxy=URL", "npm_config_https_proxy=URL", "npm_config_noproxy=localhost,127.0.0.1,::1",
			"YARN_HTTP_PROXY=URL", "YARN_HTTPS_PROXY=URL", "CARGO_HTTP_PROXY=URL", "PIP_PROXY=URL", "NODE_USE_ENV_PROXY=1",
		}
		got := proxyEnv("127.0.0.1:8080", tt.token)
		for i := range got {
			got[i] = strings.ReplaceAll(got[i], tt.want, "URL")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}
