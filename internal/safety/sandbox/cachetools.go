package sandbox

import (
	"cmp"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// golang gives Go a build cache and a module cache of the workspace. What the
// user has downloaded is read as a proxy of files, so that nothing is fetched
// again and nothing can be put into it. Where there is no network there is no
// other proxy, and no database of checksums: what is in the files has been
// checked against it, and go.sum still holds.
func (p *cachePlan) golang() {
	p.own("GOCACHE", "go-build")
	if !p.ours("GOCACHE") {
		p.over(p.goCache(), "go-build")
	}
	if p.ours("GOPATH") || p.ours("GOMODCACHE") || !p.seed.mkdir("go/pkg/mod/cache/download") {
		return
	}
	settings := p.goSettings()
	paths := settings("GOPATH")
	if paths == "" {
		paths = filepath.Join(p.Home, "go")
	}
	p.add("GOPATH", filepath.Join(p.Dir, "go")+string(filepath.ListSeparator)+paths)
	p.add("GOMODCACHE", filepath.Join(p.Dir, "go", "pkg", "mod"))
	flags := settings("GOFLAGS")
	if !strings.Contains(flags, "-modcacherw") { // so that the cache can be removed
		flags = strings.TrimSpace(flags + " -modcacherw")
	}
	p.add("GOFLAGS", flags)

	real := settings("GOMODCACHE")
	if real == "" {
		real = filepath.Join(filepath.SplitList(paths)[0], "pkg", "mod")
	}
	real = filepath.Join(real, "cache", "download")
	if !foundAt(real) {
		return
	}
	p.read = append(p.read, real)
	files := (&url.URL{Scheme: "file", Path: filepath.ToSlash("/" + strings.TrimPrefix(real, "/"))}).String()
	if p.Net == NetOff || p.Net == "" {
		p.add("GOPROXY", files)
		p.add("GONOPROXY", "none") // private modules as well
		p.add("GOSUMDB", "off")
		return
	}
	if others := settings("GOPROXY"); others != "" {
		files += "," + others
	}
	p.add("GOPROXY", files)
}

// goCache returns where the user's builds are kept.
func (p *cachePlan) goCache() string {
	if dir := p.goSettings()("GOCACHE"); dir != "" {
		return dir
	}
	if dir := p.env("XDG_CACHE_HOME"); dir != "" {
		return filepath.Join(dir, "go-build")
	}
	return filepath.Join(p.Home, ".cache", "go-build")
}

// maxGoSettings is how much of a file with settings of Go is read.
const maxGoSettings = 64 << 10

// goSettings returns what Go takes for a setting: the variable, or else what
// "go env -w" has written, or else what Go came with.
func (p *cachePlan) goSettings() func(string) string {
	path := p.env("GOENV")
	if path == "" {
		switch config := p.env("XDG_CONFIG_HOME"); {
		case p.GOOS == "darwin":
			path = filepath.Join(p.Home, "Library", "Application Support", "go", "env")
		case config != "":
			path = filepath.Join(config, "go", "env")
		default:
			path = filepath.Join(p.Home, ".config", "go", "env")
		}
	}
	written := goFile(path)
	standard := goFile(filepath.Join(p.goRoot(), "go.env"))
	return func(name string) string {
		return cmp.Or(p.env(name), written[name], standard[name])
	}
}

// goRoot is where Go is installed, or "".
func (p *cachePlan) goRoot() string {
	if root := p.env("GOROOT"); root != "" {
		return root
	}
	program, err := filepath.EvalSymlinks(Find("go"))
	if err != nil {
		return ""
	}
	return filepath.Dir(filepath.Dir(program))
}

// goFile reads a file of settings; none, or "off", has none.
func goFile(path string) map[string]string {
	settings := map[string]string{}
	if !filepath.IsAbs(path) {
		return settings
	}
	text, err := readBounded(path, maxGoSettings)
	if err != nil {
		return settings
	}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		settings[name] = value
	}
	return settings
}

// javascript gives the package managers of JavaScript caches of the workspace.
// Those of Yarn and pnpm stay where a project has its own, or is linked to
// another one; npm complains of a variable that is only for pnpm.
func (p *cachePlan) javascript() {
	p.own("npm_config_cache", "npm")
	p.add("npm_config_update_notifier", "false")
	p.own("YARN_GLOBAL_FOLDER", "yarn-global")
	if !p.anywhere(".yarnrc.yml") {
		p.own("YARN_CACHE_FOLDER", "yarn")
	}
	if p.anywhere("pnpm-lock.yaml") && !p.anywhere("node_modules", ".modules.yaml") {
		p.own("npm_config_store_dir", "pnpm-store")
	}
	p.own("BUN_INSTALL_CACHE_DIR", "bun")
}

// rust gives Cargo a home of the workspace, with links to the crates that the
// user has downloaded, a copy of what the index says of them, and his settings,
// but not his tokens. The toolchains of rustup stay where they are.
func (p *cachePlan) rust() {
	real := p.real("CARGO_HOME", ".cargo")
	if p.ours("CARGO_HOME") || !p.seed.mkdir("cargo") {
		return
	}
	p.add("CARGO_HOME", filepath.Join(p.Dir, "cargo"))
	if p.Net == NetOff || p.Net == "" {
		p.add("CARGO_NET_OFFLINE", "true")
	}
	p.own("SCCACHE_DIR", "sccache")
	for _, name := range []string{"config.toml", "config"} {
		if file := filepath.Join(real, name); foundAt(file) {
			p.seed.link(filepath.Join("cargo", name), file)
		}
	}
	for _, folder := range []string{"registry", "git"} {
		if at := filepath.Join(real, folder); foundAt(at) {
			p.read = append(p.read, at)
		}
	}
	for _, registry := range p.seed.list(filepath.Join(real, "registry", "cache")) {
		p.seed.links(filepath.Join("cargo", "registry", "cache", registry), filepath.Join(real, "registry", "cache", registry))
	}
	p.seed.copy(filepath.Join("cargo", "registry", "index"), filepath.Join(real, "registry", "index"))
	for _, folder := range []string{"db", "checkouts"} {
		p.seed.links(filepath.Join("cargo", "git", folder), filepath.Join(real, "git", folder))
	}
}

// python gives the package managers of Python caches of the workspace. Virtual
// environments that stand in a cache are still found.
func (p *cachePlan) python() {
	p.own("PIP_CACHE_DIR", "pip")
	p.own("UV_CACHE_DIR", "uv")
	if p.GOOS == "linux" {
		p.keep("POETRY_VIRTUALENVS_PATH", p.real("XDG_CACHE_HOME", ".cache"), "pypoetry", "virtualenvs")
	}
}

// jvm gives Gradle a home and Maven a repository of the workspace, behind which
// they look into the user's own: Gradle since 6.2, Maven since 3.9.
func (p *cachePlan) jvm() {
	gradle := p.real("GRADLE_USER_HOME", ".gradle")
	p.own("GRADLE_USER_HOME", "gradle")
	if file := filepath.Join(gradle, "gradle.properties"); foundAt(file) {
		p.seed.link(filepath.Join("gradle", "gradle.properties"), file)
	}
	if foundAt(filepath.Join(gradle, "caches", "modules-2")) {
		p.keep("GRADLE_RO_DEP_CACHE", gradle, "caches")
	}
	args := p.env("MAVEN_ARGS")
	if strings.Contains(args, "maven.repo.local") || !p.seed.mkdir("maven") {
		return
	}
	args += " -Dmaven.repo.local=" + filepath.Join(p.Dir, "maven")
	if tail := filepath.Join(p.Home, ".m2", "repository"); foundAt(tail) && !strings.Contains(tail, " ") {
		args += " -Dmaven.repo.local.tail=" + tail
		p.read = append(p.read, tail)
	}
	if !strings.Contains(p.Dir, " ") { // Maven would take it for two
		p.add("MAVEN_ARGS", strings.TrimSpace(args))
	}
}

// others gives everything else that asks for a cache one of the workspace, but
// leads those to the user's own that keep in it what they have installed.
func (p *cachePlan) others() {
	p.own("CCACHE_DIR", "ccache")
	p.own("XDG_CACHE_HOME", "xdg")
	if p.GOOS == "linux" { // elsewhere they do not ask for it
		real := p.real("XDG_CACHE_HOME", ".cache")
		p.keep("COREPACK_HOME", real, "node", "corepack")
		p.keep("PLAYWRIGHT_BROWSERS_PATH", real, "ms-playwright")
		p.keep("CYPRESS_CACHE_FOLDER", real, "Cypress")
		p.keep("HF_HOME", real, "huggingface")
	}
	switch temp := p.env("TMPDIR"); {
	case p.GOOS == "darwin": // where it is the user's, and shared by everything
		p.own("TMPDIR", "tmp")
	case p.GOOS == "linux" && temp != "" && !p.ours("TMPDIR"):
		p.add("TMPDIR", "/tmp") // which is the commands' own
	}
}

// proxyEnv returns the variables by which programs find a proxy of package egress
// that listens on loopback at addr, host:port, and wants this token. ALL_PROXY
// speaks HTTP too: some programs that read it do not know SOCKS and refuse to
// start.
func proxyEnv(addr, token string) []string {
	u := url.URL{Scheme: "http", Host: addr}
	if token != "" {
		u.User = url.UserPassword("dure", token)
	}
	const direct = "localhost,127.0.0.1,::1"
	at, set := u.String(), []string(nil)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		set = append(set, name+"="+at, strings.ToLower(name)+"="+at)
	}
	return append(set,
		"NO_PROXY="+direct, "no_proxy="+direct,
		// These programs prefer their settings, which name a proxy that is out of reach.
		"npm_config_proxy="+at, "npm_config_https_proxy="+at, "npm_config_noproxy="+direct,
		"YARN_HTTP_PROXY="+at, "YARN_HTTPS_PROXY="+at,
		"CARGO_HTTP_PROXY="+at, "PIP_PROXY="+at,
		"NODE_USE_ENV_PROXY=1",
	)
}

// readBounded reads a file of no more than limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > limit {
		return nil, os.ErrInvalid
	}
	return os.ReadFile(path)
}
