package archtest

import (
	"fmt"
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// CheckImports finds imports that no package may have, and others than the
// standard library's in the vocabulary.
func CheckImports(t *Tree) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		for _, spec := range f.AST.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if why := banned(f, imp); why != "" {
				faults = append(faults, Fault{f.Path, f.line(spec.Pos()), "imports " + imp + ": " + why})
			}
		}
	}
	return faults
}

func banned(f *File, imp string) string {
	switch {
	case imp == "C":
		return "the binary is built without cgo"
	case imp == "log":
		return "use log/slog at the edges, return errors elsewhere"
	case imp == "io/ioutil" || imp == "math/rand":
		return "superseded in the standard library"
	case f.Dir == "agent" && !f.Test && (strings.Contains(imp, ".") || strings.HasPrefix(imp, Module+"/")):
		return "the vocabulary uses the standard library only"
	case imp == "testing" && !f.Test && !strings.HasSuffix(path.Base(f.Dir), "test"):
		return "only tests, and packages whose names end in test, may"
	}
	return ""
}

// environment lists the functions that read the process's environment.
var environment = map[string][]string{
	"os":      {"Getenv", "LookupEnv", "Environ", "ExpandEnv", "UserHomeDir", "UserConfigDir", "UserCacheDir"},
	"syscall": {"Getenv", "Environ"},
}

// CheckEnvironment finds packages that read the environment. Only settings,
// the wiring and commands do; everybody else is told.
func CheckEnvironment(t *Tree) []Fault {
	may := func(f *File) bool {
		return f.Test || strings.HasSuffix(path.Base(f.Dir), "test") ||
			f.Dir == "internal/app/config" || f.Dir == "internal/app" || f.Dir == "internal/bench" ||
			strings.HasPrefix(f.Dir, "cmd/")
	}
	return uses(t, environment, func(f *File, sel string) string {
		if may(f) {
			return ""
		}
		return sel + " reads the environment: take it from the Config"
	})
}

// CheckSleeps finds tests of internal packages that sleep. allowed has the
// paths of files that have to, with the reason.
func CheckSleeps(t *Tree, allowed map[string]string) []Fault {
	return uses(t, map[string][]string{"time": {"Sleep"}}, func(f *File, sel string) string {
		if !f.Test || !strings.HasPrefix(f.Dir, "internal/") || allowed[f.Path] != "" {
			return ""
		}
		for _, spec := range f.AST.Imports {
			if spec.Path.Value == `"testing/synctest"` {
				return "" // fake time
			}
		}
		return sel + " in a test: use testing/synctest or wait for what you wait for"
	})
}

// uses finds selections of the given functions, by import path, and asks judge
// about each. An empty answer is no fault.
func uses(t *Tree, funcs map[string][]string, judge func(f *File, sel string) string) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		names := map[string]string{} // local name of an import: its path
		for _, spec := range f.AST.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if _, ok := funcs[imp]; !ok {
				continue
			}
			name := path.Base(imp)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = imp
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			sel, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains(funcs[names[x.Name]], sel.Sel.Name) {
				return true
			}
			if why := judge(f, fmt.Sprintf("%s.%s", x.Name, sel.Sel.Name)); why != "" {
				faults = append(faults, Fault{f.Path, f.line(sel.Pos()), why})
			}
			return true
		})
	}
	return faults
}
