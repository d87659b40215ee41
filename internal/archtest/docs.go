package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// CheckDeps compares the modules that the sources import with the table of
// docs/deps.md, both ways.
func CheckDeps(t *Tree) []Fault {
	const page = "docs/deps.md"
	modules := requirements(t.Page("go.mod"))
	used := map[string]bool{}
	for _, f := range t.Go {
		for _, spec := range f.AST.Imports {
			imp, _ := strconv.Unquote(spec.Path.Value)
			if m := moduleOf(imp, modules); m != "" {
				used[m] = true
			}
		}
	}
	return compare(page, "module", slices.Sorted(maps.Keys(used)), cells(t.Page(page)))
}

var requirement = regexp.MustCompile(`(?m)^(?:require)?\s+(\S+\.\S+/?\S*) v\S+`)

// requirements returns the paths of all modules that a go.mod requires.
func requirements(gomod string) []string {
	var all []string
	for _, m := range requirement.FindAllStringSubmatch(gomod, -1) {
		all = append(all, m[1])
	}
	return all
}

// moduleOf returns the module with the longest path that holds the package.
func moduleOf(pkg string, modules []string) string {
	best := ""
	for _, m := range modules {
		if (pkg == m || strings.HasPrefix(pkg, m+"/")) && len(m) > len(best) {
			best = m
		}
	}
	return best
}

// CheckEvents compares the event kinds of the vocabulary, and the fields of
// each, with docs/events.md, both ways.
func CheckEvents(t *Tree) []Fault {
	const page = "docs/events.md"
	kinds := eventKinds(t)
	sections := codeSections(t.Page(page))
	faults := compare(page, "event", slices.Sorted(maps.Keys(kinds)), slices.Sorted(maps.Keys(sections)))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		if text, ok := sections[kind]; ok {
			faults = append(faults, compare(page, kind+" field", kinds[kind], cells(text))...)
		}
	}
	return faults
}

// eventKinds returns the JSON names of the fields of every event type, by kind.
func eventKinds(t *Tree) map[string][]string {
	structs := map[string]*ast.StructType{}
	names := map[string]string{} // type: kind
	for _, d := range vocabulary(t) {
		switch d := d.(type) {
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					if st, ok := ts.Type.(*ast.StructType); ok {
						structs[ts.Name.Name] = st
					}
				}
			}
		case *ast.FuncDecl:
			if typ, kind := kindMethod(d); kind != "" {
				names[typ] = kind
			}
		}
	}
	kinds := map[string][]string{}
	for typ, kind := range names {
		kinds[kind] = fields(structs, typ)
	}
	return kinds
}

// vocabulary returns the declarations of package agent and of those below it.
func vocabulary(t *Tree) []ast.Decl {
	var decls []ast.Decl
	for _, f := range t.Go {
		if below(f.Dir, Vocabulary) && !f.Test {
			decls = append(decls, f.AST.Decls...)
		}
	}
	return decls
}

// kindMethod recognises: func (T) Kind() string { return "kind" }.
func kindMethod(d *ast.FuncDecl) (typ, kind string) {
	if d.Name.Name != "Kind" || d.Recv == nil || len(d.Body.List) != 1 {
		return "", ""
	}
	recv, ok := d.Recv.List[0].Type.(*ast.Ident)
	ret, ok2 := d.Body.List[0].(*ast.ReturnStmt)
	if !ok || !ok2 || len(ret.Results) != 1 {
		return "", ""
	}
	return recv.Name, text(ret.Results[0])
}

// text returns the value of a string literal, or "".
func text(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return ""
	}
	s, _ := strconv.Unquote(lit.Value)
	return s
}

// fields returns the JSON names of a struct's fields, those of embedded structs
// included.
func fields(structs map[string]*ast.StructType, typ string) []string {
	st := structs[typ]
	if st == nil {
		return nil
	}
	var names []string
	for _, f := range st.Fields.List {
		if len(f.Names) == 0 {
			if id, ok := f.Type.(*ast.Ident); ok {
				names = append(names, fields(structs, id.Name)...)
			}
			continue
		}
		if f.Tag == nil {
			continue
		}
		tag := jsonTag.FindStringSubmatch(f.Tag.Value)
		if tag != nil && tag[1] != "-" {
			names = append(names, tag[1])
		}
	}
	return names
}

var jsonTag = regexp.MustCompile(`json:"([^",]+)`)

// CheckErrors compares the codes that programs and people meet with the tables
// of docs/errors.md, both ways: each type of code has a section of its own. The guide has
// the exit codes too, in every language.
func CheckErrors(t *Tree) []Fault {
	const page = "docs/errors.md"
	var faults []Fault
	for _, code := range []struct{ typ, heading string }{
		{"ErrorCode", "Tool errors"},
		{"FailureClass", "Model failures"},
		{"ProblemCode", "Problems"},
		{"EndReason", "Ends of a turn"},
		{"BundleCode", "Problems of bundles"},
	} {
		faults = append(faults, compare(page, code.typ, constants(t, code.typ), cells(section(t.Page(page), code.heading)))...)
	}
	faults = append(faults, compare(page, "tool's code", toolCodes(t), cells(section(t.Page(page), "Errors of the built-in tools")))...)
	exits := exitCodes(t)
	for _, table := range []struct{ page, text string }{
		{page, section(t.Page(page), "Exit codes")},
		{"docs/guide.md", part(t.Page("docs/guide.md"), "Exit codes")},
		{"docs/ko/guide.md", part(t.Page("docs/ko/guide.md"), "종료 코드")},
	} {
		faults = append(faults, compare(table.page, "exit code", exits, cells(table.text))...)
	}
	return faults
}

// toolCodes returns the codes that the built-in tools add to the vocabulary's.
func toolCodes(t *Tree) []string {
	var codes []string
	for _, f := range t.Go {
		if f.Test || !strings.HasPrefix(f.Dir, "internal/") {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && toolCode.MatchString(lit.Value) {
				codes = append(codes, text(lit))
			}
			return true
		})
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

var toolCode = regexp.MustCompile(`^"E_[A-Z_]+"$`)

// exitCodes returns the values of the constants of internal/frontend/cli that are named
// after exits.
func exitCodes(t *Tree) []string {
	var codes []string
	for _, f := range t.Go {
		if f.Dir != "internal/frontend/cli" || f.Test {
			continue
		}
		for _, s := range constSpecs(f.AST.Decls) {
			lit, ok := s.Values[0].(*ast.BasicLit)
			if ok && lit.Kind == token.INT && strings.HasPrefix(s.Names[0].Name, "Exit") {
				codes = append(codes, lit.Value)
			}
		}
	}
	return codes
}

// constSpecs returns the constants that are given a value of their own.
func constSpecs(decls []ast.Decl) []*ast.ValueSpec {
	var specs []*ast.ValueSpec
	for _, d := range decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.CONST {
			continue
		}
		for _, s := range g.Specs {
			if vs := s.(*ast.ValueSpec); len(vs.Values) == 1 {
				specs = append(specs, vs)
			}
		}
	}
	return specs
}

// constants returns the values of the vocabulary's string constants of a type.
func constants(t *Tree, typ string) []string {
	var values []string
	for _, s := range constSpecs(vocabulary(t)) {
		if id, ok := s.Type.(*ast.Ident); ok && id.Name == typ {
			values = append(values, text(s.Values[0]))
		}
	}
	return values
}

// compare reports what the code has and the page lacks, and the reverse.
func compare(page, what string, code, doc []string) []Fault {
	var faults []Fault
	for _, name := range code {
		if !slices.Contains(doc, name) {
			faults = append(faults, Fault{page, 0, fmt.Sprintf("%s %q is not described", what, name)})
		}
	}
	for _, name := range doc {
		if !slices.Contains(code, name) {
			faults = append(faults, Fault{page, 0, fmt.Sprintf("%s %q does not exist", what, name)})
		}
	}
	return faults
}

var firstCell = regexp.MustCompile("(?m)^\\| `([^`]+)`")

// cells returns the names in backquotes that open the rows of tables.
func cells(markdown string) []string {
	var names []string
	for _, m := range firstCell.FindAllStringSubmatch(markdown, -1) {
		names = append(names, m[1])
	}
	return names
}

// section returns the text below the second-level heading, up to the next one.
func section(markdown, heading string) string {
	_, rest, _ := strings.Cut(markdown, "\n## "+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// part returns the text below the third-level heading, up to the next heading.
func part(markdown, heading string) string {
	_, rest, _ := strings.Cut(markdown, "\n### "+heading+"\n")
	body, _, _ := strings.Cut(rest, "\n#")
	return body
}

var codeHeading = regexp.MustCompile("(?m)^#+ `([^`]+)`.*$|^#+ .*$")

// codeSections returns the text below each heading that starts with a name in
// backquotes, by name.
func codeSections(markdown string) map[string]string {
	sections := map[string]string{}
	all := codeHeading.FindAllStringSubmatchIndex(markdown, -1)
	for i, m := range all {
		end := len(markdown)
		if i+1 < len(all) {
			end = all[i+1][0]
		}
		if m[2] >= 0 {
			sections[markdown[m[2]:m[3]]] = markdown[m[1]:end]
		}
	}
	return sections
}
