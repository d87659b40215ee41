package survey

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// languageOf is the language of an ending.
var languageOf = map[string]string{
	".go": "Go", ".rs": "Rust", ".py": "Python", ".js": "JavaScript", ".mjs": "JavaScript", ".cjs": "JavaScript", ".jsx": "JavaScript",
	".ts": "TypeScript", ".tsx": "TypeScript", ".java": "Java", ".kt": "Kotlin", ".kts": "Kotlin", ".cs": "C#", ".fs": "F#", ".vb": "Visual Basic",
	".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".rb": "Ruby", ".php": "PHP", ".swift": "Swift", ".scala": "Scala",
	".ex": "Elixir", ".exs": "Elixir", ".erl": "Erlang", ".hs": "Haskell", ".lua": "Lua", ".dart": "Dart", ".sh": "Shell", ".ps1": "PowerShell",
	".sql": "SQL", ".vue": "Vue", ".svelte": "Svelte", ".html": "HTML", ".css": "CSS", ".scss": "CSS", ".zig": "Zig", ".jl": "Julia", ".r": "R",
	".tf": "Terraform",
}

// A manifest says how a part of a project is built.
type manifest struct {
	name string // a pattern of lower-case names
	take func(l *looking, file, dir string)
}

var manifests = []manifest{
	{"go.mod", (*looking).goModule},
	{"package.json", (*looking).node},
	{"cargo.toml", (*looking).cargo},
	{"pyproject.toml", (*looking).python},
	{"requirements*.txt", (*looking).python},
	{"setup.py", (*looking).python},
	{"pom.xml", (*looking).maven},
	{"build.gradle", (*looking).gradle},
	{"build.gradle.kts", (*looking).gradle},
	{"*.csproj", (*looking).dotnet},
	{"*.sln", (*looking).solution},
	{"makefile", func(l *looking, f, dir string) { l.targets(f, dir, "make ") }},
	{"gnumakefile", func(l *looking, f, dir string) { l.targets(f, dir, "make ") }},
	{"justfile", func(l *looking, f, dir string) { l.targets(f, dir, "just ") }},
	{"cmakelists.txt", func(l *looking, f, dir string) { l.command("build", "cmake -B build && cmake --build build", dir, f) }},
	{"gemfile", func(*looking, string, string) {}},
	{"composer.json", func(*looking, string, string) {}},
	{"mix.exs", func(l *looking, f, dir string) { l.command("test", "mix test", dir, f) }},
	{"package.swift", func(l *looking, f, dir string) {
		l.command("build", "swift build", dir, f)
		l.command("test", "swift test", dir, f)
	}},
}

// kinds are the kinds of commands by the words that scripts and targets are called.
var kinds = []struct {
	kind  string
	words []string
}{
	{"build", []string{"build", "compile", "all", "dist"}},
	{"test", []string{"test", "tests", "check", "unit", "e2e", "spec"}},
	{"lint", []string{"lint", "vet", "typecheck", "type-check", "types", "clippy"}},
	{"format", []string{"fmt", "format", "prettier"}},
	{"run", []string{"run", "start", "dev", "serve"}},
}

// kindOf is the kind of a command that is called by a word; "" = none.
func kindOf(word string) string {
	head, _, _ := strings.Cut(strings.ToLower(word), ":")
	for _, k := range kinds {
		if slices.Contains(k.words, head) {
			return k.kind
		}
	}
	return ""
}

// word is what a script or a target may be called to be taken over.
var word = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9:_.-]{0,39}$`) })

func (l *looking) goModule(f, dir string) {
	l.command("build", "go build ./...", dir, f)
	l.command("test", "go test ./...", dir, f)
	l.command("lint", "go vet ./...", dir, f)
	l.command("format", "gofmt -l .", dir, f)
	note(&l.r.Tests, "go test")
}

// node reads the names of scripts, and which packages it needs.
func (l *looking) node(f, dir string) {
	var p struct {
		Scripts         map[string]json.RawMessage `json:"scripts"`
		Dependencies    map[string]json.RawMessage `json:"dependencies"`
		DevDependencies map[string]json.RawMessage `json:"devDependencies"`
	}
	if json.Unmarshal([]byte(l.read(f)), &p) != nil {
		return
	}
	runs := "npm run "
	for _, lock := range []struct{ file, runs string }{{"pnpm-lock.yaml", "pnpm run "}, {"yarn.lock", "yarn run "}, {"bun.lock", "bun run "}, {"bun.lockb", "bun run "}} {
		if l.has[path.Join(dir, lock.file)] || l.has[lock.file] {
			runs = lock.runs
			break
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Scripts)) {
		if kind := kindOf(name); kind != "" && word().MatchString(name) {
			l.command(kind, runs+name, dir, f)
		}
	}
	for _, deps := range []map[string]json.RawMessage{p.Dependencies, p.DevDependencies} {
		for _, k := range [][2]string{
			{"react", "React"}, {"vue", "Vue"}, {"next", "Next.js"}, {"nuxt", "Nuxt"}, {"svelte", "Svelte"}, {"@angular/core", "Angular"}, {"express", "Express"}, {"@nestjs/core", "NestJS"},
		} {
			if _, ok := deps[k[0]]; ok {
				note(&l.r.Frameworks, k[1])
			}
		}
		for _, k := range []string{"jest", "vitest", "mocha", "ava", "@playwright/test", "cypress"} {
			if _, ok := deps[k]; ok {
				note(&l.r.Tests, k)
			}
		}
	}
}

func (l *looking) cargo(f, dir string) {
	l.command("build", "cargo build", dir, f)
	l.command("test", "cargo test", dir, f)
	l.command("lint", "cargo clippy", dir, f)
	l.command("format", "cargo fmt --check", dir, f)
	note(&l.r.Tests, "cargo test")
	l.mentions(f, &l.r.Frameworks, [][2]string{{"actix-web", "Actix"}, {"axum", "Axum"}, {"rocket", "Rocket"}, {"tokio", "Tokio"}})
}

// mentions notes what a file names.
func (l *looking) mentions(f string, to *[]string, names [][2]string) (said string) {
	said = strings.ToLower(l.read(f))
	for _, n := range names {
		if strings.Contains(said, n[0]) {
			note(to, n[1])
		}
	}
	return said
}

func (l *looking) python(f, dir string) {
	said := l.mentions(f, &l.r.Frameworks, [][2]string{{"django", "Django"}, {"fastapi", "FastAPI"}, {"flask", "Flask"}})
	runs := ""
	switch {
	case l.has[path.Join(dir, "uv.lock")]:
		runs = "uv run "
	case l.has[path.Join(dir, "poetry.lock")]:
		runs = "poetry run "
	}
	for _, k := range []struct{ name, kind, run string }{
		{"pytest", "test", "pytest"}, {"ruff", "lint", "ruff check ."}, {"mypy", "lint", "mypy ."}, {"black", "format", "black --check ."}, {"tox", "test", "tox"},
	} {
		if strings.Contains(said, k.name) {
			l.command(k.kind, runs+k.run, dir, f)
			if k.kind == "test" {
				note(&l.r.Tests, k.name)
			}
		}
	}
}

func (l *looking) maven(f, dir string) {
	runs := "mvn"
	if l.has[path.Join(dir, "mvnw")] {
		runs = "./mvnw"
	}
	l.command("build", runs+" package", dir, f)
	l.command("test", runs+" test", dir, f)
	l.mentions(f, &l.r.Frameworks, [][2]string{{"spring-boot", "Spring Boot"}, {"quarkus", "Quarkus"}})
	l.mentions(f, &l.r.Tests, [][2]string{{"junit", "JUnit"}})
}

func (l *looking) gradle(f, dir string) {
	runs := "gradle"
	if l.has[path.Join(dir, "gradlew")] {
		runs = "./gradlew"
	}
	l.command("build", runs+" build", dir, f)
	l.command("test", runs+" test", dir, f)
	l.mentions(f, &l.r.Frameworks, [][2]string{{"springframework", "Spring"}, {"ktor", "Ktor"}, {"com.android", "Android"}})
	l.mentions(f, &l.r.Tests, [][2]string{{"junit", "JUnit"}})
}

func (l *looking) dotnet(f, dir string) {
	l.command("build", "dotnet build", dir, f)
	said := l.mentions(f, &l.r.Frameworks, [][2]string{{"microsoft.net.sdk.web", "ASP.NET"}, {"<usewpf>true", "WPF"}, {"microsoft.net.sdk", ".NET"}})
	for _, t := range []string{"xunit", "nunit", "mstest"} {
		if strings.Contains(said, t) {
			note(&l.r.Tests, t)
			l.command("test", "dotnet test", dir, f)
		}
	}
}

func (l *looking) solution(f, dir string) {
	l.command("build", "dotnet build", dir, f)
	l.command("test", "dotnet test", dir, f)
	note(&l.r.Frameworks, ".NET")
}

var target = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^([A-Za-z0-9][A-Za-z0-9_.-]{0,39})[^\n:=]*:(?:[^=]|$)`)
})

// targets reads the names of the targets of a make file.
func (l *looking) targets(f, dir, runs string) {
	const most = 200
	for _, m := range target().FindAllStringSubmatch(l.read(f), most) {
		if kind := kindOf(m[1]); kind != "" {
			l.command(kind, runs+m[1], dir, f)
		}
	}
}

// actions is the name of the one whose files are read.
const actions = "GitHub Actions"

// ciOf is what runs the checks that a file describes; "" = it describes none.
func ciOf(f string) string {
	dir, base := path.Split(f)
	switch {
	case dir == ".github/workflows/" && (strings.HasSuffix(base, ".yml") || strings.HasSuffix(base, ".yaml")):
		return actions
	case f == ".gitlab-ci.yml":
		return "GitLab CI"
	case f == "Jenkinsfile":
		return "Jenkins"
	case f == "azure-pipelines.yml":
		return "Azure Pipelines"
	case f == ".circleci/config.yml":
		return "CircleCI"
	case f == ".travis.yml":
		return "Travis CI"
	case f == "bitbucket-pipelines.yml":
		return "Bitbucket Pipelines"
	}
	return ""
}

// step is a step of a workflow that gives one plain command of a program that builds or
// tests: no pipes, variables or substitutions.
var step = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^\s*(?:- )?run:\s*((?:go|make|just|npm|pnpm|yarn|bun|cargo|pytest|tox|ruff|mypy|dotnet|mvn|\./mvnw|gradle|\./gradlew|golangci-lint|uv|poetry)(?: [A-Za-z0-9_./:=@*-]+){0,8})\s*$`)
})

func (l *looking) workflow(f string) {
	const most = 50
	for _, m := range step().FindAllStringSubmatch(l.read(f), most) {
		l.command("ci", m[1], "", f)
	}
}

// instructs reports whether a file tells an agent what to do.
func instructs(f, low string) bool {
	switch {
	case slices.Contains([]string{"agents.md", "claude.md", "dure.md", "ax.md", "gemini.md"}, low):
		return true
	case slices.Contains([]string{".cursorrules", ".windsurfrules", ".clinerules", ".goosehints", ".github/copilot-instructions.md", ".junie/guidelines.md"}, f):
		return true
	}
	for _, pattern := range []string{".cursor/rules/*", ".github/instructions/*", ".claude/rules/*", ".dure/rules/*", ".clinerules/*"} {
		if ok, _ := path.Match(pattern, f); ok {
			return true
		}
	}
	return false
}
