package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"slices"
	"strings"
)

// Contracts are the structs by which a session and its capabilities know each other.
var Contracts = []string{"internal/kernel/session.Parts", "internal/kernel/plug.Session"}

// maxContract is how many fields such a struct has. Those of a struct that is declared for
// the contract alone count among them.
const maxContract = 15

// declared is the declaration of a type.
type declared struct {
	file *File
	spec *ast.TypeSpec
}

// CheckContracts finds contracts with too many fields.
func CheckContracts(t *Tree, contracts []string) []Fault {
	types := map[string]declared{}
	users := map[string][]string{} // of a type: the types and the signatures of functions that name it
	for _, f := range t.Go {
		if f.Test {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				named(f, n.Type, func(name string) { users[name] = append(users[name], n.Name.Name+"()") })
				return false
			case *ast.TypeSpec:
				self := f.Dir + "." + n.Name.Name
				types[self] = declared{f, n}
				named(f, n.Type, func(name string) { users[name] = append(users[name], self) })
				return false
			}
			return true
		})
	}
	var faults []Fault
	for _, contract := range contracts {
		counted := map[string]bool{contract: true}
		var fields func(f *File, x ast.Expr) int
		fields = func(f *File, x ast.Expr) (n int) {
			s, ok := x.(*ast.StructType)
			if !ok {
				return 0
			}
			for _, field := range s.Fields.List {
				each := 1 + fields(f, field.Type)
				named(f, field.Type, func(name string) {
					one, ok := types[name]
					if ok && !counted[name] && !slices.ContainsFunc(users[name], func(user string) bool { return user != contract && user != name }) {
						counted[name] = true
						each += fields(one.file, one.spec.Type)
					}
				})
				n += each * max(1, len(field.Names))
			}
			return n
		}
		at, ok := types[contract]
		if !ok {
			faults = append(faults, Fault{contract, 0, "there is no such contract"})
			continue
		}
		if n := fields(at.file, at.spec.Type); n > maxContract {
			faults = append(faults, Fault{at.file.Path, at.file.line(at.spec.Pos()), fmt.Sprintf("%s has %d fields, more than %d: move a field to the capability that needs it", path.Base(contract), n, maxContract)})
		}
	}
	return faults
}

// named tells which types an expression names, with the folders of their packages.
func named(f *File, x ast.Node, tell func(name string)) {
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			named(f, n.Type, tell) // its own names are no types
			return false
		case *ast.SelectorExpr:
			for _, spec := range f.AST.Imports {
				if dir, ours := ownImport(spec); ours && path.Base(dir) == fmt.Sprint(n.X) {
					tell(dir + "." + n.Sel.Name)
				}
			}
			return false
		case *ast.Ident:
			tell(f.Dir + "." + n.Name)
		}
		return true
	})
}

// CheckLookups finds code between the capabilities and the gate that looks for a stage, a hook
// or a section by its name: each has a typed place, and names are for people.
func CheckLookups(t *Tree) []Fault {
	var faults []Fault
	for _, f := range t.Go {
		between := f.Dir == "internal/app" || strings.HasPrefix(f.Dir+"/", "internal/kernel/")
		if f.Test || !between {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			var tag ast.Expr
			literal := false
			switch n := n.(type) {
			case *ast.BinaryExpr:
				b, ok := n.Y.(*ast.BasicLit)
				tag, literal = n.X, ok && b.Kind == token.STRING && len(b.Value) > len(`""`) && (n.Op == token.EQL || n.Op == token.NEQ)
			case *ast.SwitchStmt:
				tag, literal = n.Tag, true
			}
			if sel, ok := tag.(*ast.SelectorExpr); ok && literal && sel.Sel.Name == "Name" {
				faults = append(faults, Fault{f.Path, f.line(n.Pos()), "something is looked up by its name: give it a place of its own in plug.Points"})
			}
			return true
		})
	}
	return faults
}
