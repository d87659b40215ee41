package archtest

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// The ceilings. Aim at a third of them.
const (
	maxFile     = 800 // lines of a file
	maxFunc     = 80  // lines of a function outside tests, where tables are long
	minComment  = 2   // lines of a package comment
	maxComment  = 10
	commentHint = "say what it owns, what it never does, which goroutines it starts"
)

// CheckComments finds packages whose comment is missing, given twice, or not of
// two to ten lines.
func CheckComments(t *Tree) []Fault {
	docs := map[string][]*File{}
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		if f.AST.Doc == nil {
			docs[f.Dir] = append(docs[f.Dir], nil...)
			continue
		}
		docs[f.Dir] = append(docs[f.Dir], f)
	}
	var faults []Fault
	for _, dir := range slices.Sorted(maps.Keys(docs)) {
		switch with := docs[dir]; len(with) {
		case 0:
			faults = append(faults, Fault{dir, 0, "has no package comment: " + commentHint})
		case 1:
			n := len(strings.Split(strings.TrimSpace(with[0].AST.Doc.Text()), "\n"))
			if n < minComment || n > maxComment {
				faults = append(faults, Fault{with[0].Path, 1, fmt.Sprintf("package comment of %d lines: %s, in %d to %d lines", n, commentHint, minComment, maxComment)})
			}
		default:
			for _, f := range with[1:] {
				faults = append(faults, Fault{f.Path, 1, "another package comment is in " + with[0].Path})
			}
		}
	}
	return faults
}

// CheckSizes finds files and functions over the ceilings, besides those that are generated. allowed has the paths,
// or path and function as "path: name", that may be longer, with their lengths;
// an entry that is longer than needed is a fault too, so that the list shrinks.
func CheckSizes(t *Tree, allowed map[string]int) []Fault {
	var faults []Fault
	check := func(f *File, key string, line, n, limit int) {
		may, listed := allowed[key]
		switch {
		case listed && (n <= limit || n < may):
			faults = append(faults, Fault{f.Path, line, fmt.Sprintf("%s has %d lines now: mend its entry in the allow list", key, n)})
		case !listed && n > limit, listed && n > may:
			faults = append(faults, Fault{f.Path, line, fmt.Sprintf("%s has %d lines, more than %d", key, n, max(limit, may))})
		}
	}
	for _, f := range t.Go {
		if ast.IsGenerated(f.AST) {
			continue
		}
		check(f, f.Path, 0, f.lines(), maxFile)
		if f.Test {
			continue
		}
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				n := f.line(fn.End()) - f.line(fn.Pos()) + 1
				check(f, f.Path+": "+fn.Name.Name, f.line(fn.Pos()), n, maxFunc)
			}
		}
	}
	return faults
}

// Limits of internal/app, which wires capabilities and has none itself, and of interfaces.
const (
	maxWiring     = 4000 // lines of internal/app without the packages below it
	maxWiringFile = 400
	maxAppMethods = 60
	maxInterface  = 13 // methods, those of embedded interfaces aside
)

// CheckWiring finds what makes internal/app the place for everything again: lines, long
// files, and methods on App.
func CheckWiring(t *Tree) []Fault {
	var faults []Fault
	lines, methods := 0, 0
	for _, f := range t.Go {
		if f.Test || f.Dir != "internal/app" {
			continue
		}
		n := f.lines()
		lines += n
		if n > maxWiringFile {
			faults = append(faults, Fault{f.Path, 0, fmt.Sprintf("it has %d lines, more than %d", n, maxWiringFile)})
		}
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv == nil {
				continue
			}
			if star, ok := fn.Recv.List[0].Type.(*ast.StarExpr); ok {
				if name, ok := star.X.(*ast.Ident); ok && name.Name == "App" {
					methods++
				}
			}
		}
	}
	if lines > maxWiring {
		faults = append(faults, Fault{"internal/app", 0, fmt.Sprintf("it has %d lines, more than %d: move a capability into a package of its own", lines, maxWiring)})
	}
	if methods > maxAppMethods {
		faults = append(faults, Fault{"internal/app", 0, fmt.Sprintf("App has %d methods, more than %d: ask a capability with a query", methods, maxAppMethods)})
	}
	return faults
}

// CheckTables finds tables in internal/app, such as by session ID: what a session has of a
// capability is in what that attaches, or in a table of its own. allowed says of a field what
// its keys are.
func CheckTables(t *Tree, allowed map[string]string) []Fault {
	var faults []Fault
	used := map[string]bool{}
	for _, f := range t.Go {
		if f.Test || f.Dir != "internal/app" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			ast.Inspect(spec.Type, func(n ast.Node) bool {
				field, ok := n.(*ast.Field)
				if !ok || !isTable(field.Type) {
					return true
				}
				for _, name := range field.Names {
					key := spec.Name.Name + "." + name.Name
					if used[key] = true; allowed[key] == "" {
						faults = append(faults, Fault{f.Path, f.line(name.Pos()), key + " is a table: what is known of a session belongs to its capability"})
					}
				}
				return true
			})
			return false
		})
	}
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		if !used[key] {
			faults = append(faults, Fault{"internal/app", 0, "there is no table " + key + ": take it off the list"})
		}
	}
	return faults
}

// isTable reports whether a type is a map by texts, or one of any keys.
func isTable(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.MapType:
		key, ok := x.Key.(*ast.Ident)
		return ok && key.Name == "string"
	case *ast.SelectorExpr:
		return fmt.Sprint(x.X) == "sync" && x.Sel.Name == "Map"
	}
	return false
}

// CheckInterfaces finds interfaces with too many methods.
func CheckInterfaces(t *Tree) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			i, ok := n.(*ast.InterfaceType)
			if !ok {
				return true
			}
			methods := 0
			for _, m := range i.Methods.List {
				methods += len(m.Names)
			}
			if methods > maxInterface {
				faults = append(faults, Fault{f.Path, f.line(i.Pos()), fmt.Sprintf("an interface has %d methods, more than %d", methods, maxInterface)})
			}
			return true
		})
	}
	return faults
}

// emptyWords name nothing; there is a better noun for each use.
var emptyWords = []string{"service", "manager", "util", "utils", "helper", "helpers", "impl", "core", "common"}

// CheckNames finds packages, files, types and functions that are named with
// words that name nothing. Handler is a word of HTTP only.
func CheckNames(t *Tree) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		report := func(line int, name string) {
			for _, w := range words(name) {
				if slices.Contains(emptyWords, w) || w == "handler" && !f.imports("net/http") {
					faults = append(faults, Fault{f.Path, line, fmt.Sprintf("%s: the word %q says nothing here", name, w)})
				}
			}
		}
		report(0, strings.TrimSuffix(path.Base(f.Path), ".go"))
		report(1, f.AST.Name.Name)
		for _, d := range f.AST.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				report(f.line(d.Pos()), d.Name.Name)
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if ts, ok := s.(*ast.TypeSpec); ok {
						report(f.line(ts.Pos()), ts.Name.Name)
					}
				}
			}
		}
	}
	return faults
}

func (f *File) imports(imp string) bool {
	return slices.ContainsFunc(f.AST.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == `"`+imp+`"` })
}

// words splits an identifier or a file name into lower-case words.
func words(name string) []string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' || r == '-' || r == '.' })
}
