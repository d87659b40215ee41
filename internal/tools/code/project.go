package code

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/tools/kit"
)

// The bounds of the search for a project.
const (
	maxAbove   = 32      // folders above the working folder
	maxBeside  = 1_000   // entries of the working folder
	maxProject = 1 << 20 // bytes of a project file
	maxMention = 10      // projects that are named when there are several
)

// A kind of project: what shows that a folder is one, and how it is built and
// tested; nil = it has no such step.
type toolchain struct {
	name  string
	marks []string // names of files; * stands for anything
	build func(dir string) []string
	test  func(dir string) []string
}

func always(argv ...string) func(string) []string { return func(string) []string { return argv } }

// toolchains are those that are known, those that say most about a folder first.
func toolchains() []toolchain {
	return []toolchain{
		{"go", []string{"go.mod"}, always("go", "build", "./..."), always("go", "test", "./...")},
		{"cargo", []string{"Cargo.toml"}, always("cargo", "build", "--all-targets"), always("cargo", "test")},
		{"node", []string{"package.json"}, script("build"), script("test")},
		{
			"python",
			[]string{"pyproject.toml", "pytest.ini", "tox.ini", "setup.py", "setup.cfg"},
			nil, always(python(), "-m", "pytest", "-q"),
		},
		{"maven", []string{"pom.xml"}, own("mvnw", "mvn", "-q", "-B", "compile"), own("mvnw", "mvn", "-q", "-B", "test")},
		{
			"gradle",
			[]string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"},
			own("gradlew", "gradle", "--console=plain", "assemble"), own("gradlew", "gradle", "--console=plain", "test"),
		},
		{"dotnet", []string{"*.sln", "*.slnx", "*.csproj", "*.fsproj"}, always("dotnet", "build"), always("dotnet", "test")},
		{"make", []string{"Makefile", "makefile", "GNUmakefile"}, target("build", "all"), target("test", "check")},
	}
}

func python() string {
	if runtime.GOOS == "windows" {
		return "python"
	}
	return "python3"
}

// own prefers the project's own copy of a program.
func own(wrapper, program string, args ...string) func(string) []string {
	return func(dir string) []string {
		name := wrapper
		if runtime.GOOS == "windows" {
			name += map[string]string{"mvnw": ".cmd", "gradlew": ".bat"}[wrapper]
		}
		if regular(filepath.Join(dir, name)) {
			program = filepath.Join(dir, name)
		}
		return append([]string{program}, args...)
	}
}

// script runs a script of package.json with the package manager whose lock file
// is there.
func script(name string) func(string) []string {
	return func(dir string) []string {
		var p struct {
			Scripts map[string]string `json:"scripts"`
		}
		if json.Unmarshal(contents(filepath.Join(dir, "package.json")), &p) != nil {
			return nil
		}
		text := p.Scripts[name]
		if text == "" || strings.Contains(text, "no test specified") { // as npm init leaves it
			return nil
		}
		manager := "npm"
		for _, m := range [][2]string{{"pnpm-lock.yaml", "pnpm"}, {"yarn.lock", "yarn"}, {"bun.lock", "bun"}, {"bun.lockb", "bun"}} {
			if regular(filepath.Join(dir, m[0])) {
				manager = m[1]
			}
		}
		return []string{manager, "run", name}
	}
}

// target runs the first target that the makefile has.
func target(names ...string) func(string) []string {
	return func(dir string) []string {
		for _, file := range []string{"GNUmakefile", "makefile", "Makefile"} {
			for line := range strings.Lines(string(contents(filepath.Join(dir, file)))) {
				before, _, ok := strings.Cut(line, ":")
				if !ok || strings.HasPrefix(line, "\t") {
					continue
				}
				for _, t := range strings.Fields(before) {
					if slices.Contains(names, t) {
						return []string{"make", t}
					}
				}
			}
		}
		return nil
	}
}

func regular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// contents returns a small regular file, or nothing.
func contents(path string) []byte {
	if !regular(path) {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = f.Close() }() // only read
	data, err := io.ReadAll(io.LimitReader(f, maxProject))
	if err != nil {
		return nil
	}
	return data
}

// project finds the project that a folder belongs to: it is in the folder, in
// the nearest one above it that is part of the workspace, or in the only one
// right below it.
func (c *Code) project(dir, kind string) (plan, error) {
	at := dir
	for range maxAbove {
		if p, ok := stepsOf(at, kind); ok {
			return p, nil
		}
		up := filepath.Dir(at)
		if up == at || !c.Workspace.Inside(up) {
			break
		}
		at = up
	}
	var found []plan
	var names []string
	for _, name := range folders(dir) {
		if p, ok := stepsOf(filepath.Join(dir, name), kind); ok {
			found, names = append(found, p), append(names, name)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return plan{}, kit.Refuse(agent.ErrInput, "there are several projects: "+strings.Join(names[:min(len(names), maxMention)], ", "), `Say which with command, as in "cd `+names[0]+` && …".`)
	}
	return plan{}, kit.Refuse(agent.ErrInput, "there is no project here of which it is known how to "+map[string]string{
		kindBuild: "build it", kindTest: "test it", kindAll: "build and test it",
	}[kind], "Say what to run with command.")
}

// folders returns the names of the folders in a folder that may hold a project.
func folders(dir string) []string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()   // only read
	entries, _ := d.ReadDir(maxBeside) // what came before an error counts
	var names []string
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "node_modules" && e.Name() != "vendor" {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// stepsOf returns the steps for the project in a folder; false = there is none
// that has them.
func stepsOf(dir, kind string) (plan, bool) {
	for _, t := range toolchains() {
		if !marked(dir, t.marks) {
			continue
		}
		p := plan{dir: dir}
		for _, s := range []struct {
			kind string
			argv func(string) []string
		}{{kindBuild, t.build}, {kindTest, t.test}} {
			if s.argv == nil || kind != kindAll && kind != s.kind {
				continue
			}
			if argv := s.argv(dir); argv != nil {
				p.steps = append(p.steps, step{argv, argv})
			}
		}
		if len(p.steps) > 0 {
			return p, true
		}
	}
	return plan{}, false
}

func marked(dir string, marks []string) bool {
	for _, m := range marks {
		if !strings.Contains(m, "*") {
			if regular(filepath.Join(dir, m)) {
				return true
			}
			continue
		}
		if hits, err := filepath.Glob(filepath.Join(quoteGlob(dir), m)); err == nil && len(hits) > 0 {
			return true
		}
	}
	return false
}

// quoteGlob makes a folder a pattern that only it matches.
func quoteGlob(dir string) string {
	if runtime.GOOS == "windows" {
		return dir // a backslash quotes nothing there, and names have no * or ?
	}
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(dir)
}
