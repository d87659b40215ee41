package code

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// readGo outlines Go exactly, with the language's own parser. Of a file with
// mistakes it shows what is before and between them.
func readGo(_ *language, text string) ([]symbol, string) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", text, parser.SkipObjectResolution)
	if file == nil {
		return nil, "it does not parse"
	}
	g := &golang{fset: fset, text: text}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			g.function(d)
		case *ast.GenDecl:
			for _, s := range d.Specs {
				g.spec(d, s)
			}
		}
	}
	if err != nil {
		return g.list, "it does not parse: symbols may be missing"
	}
	return g.list, ""
}

type golang struct {
	fset *token.FileSet
	text string
	list []symbol
}

func (g *golang) line(p token.Pos) int { return g.fset.PositionFor(p, false).Line }

// cut returns the source between two places.
func (g *golang) cut(from, to token.Pos) string {
	a, b := g.fset.PositionFor(from, false).Offset, g.fset.PositionFor(to, false).Offset
	if a < 0 || b < a || a > len(g.text) {
		return ""
	}
	return g.text[a:min(b, len(g.text))] // what is broken may end behind the file
}

func (g *golang) add(level int, kind, name, text string, n ast.Node, from token.Pos) {
	g.list = append(g.list, symbol{
		Kind: kind, Name: name, Line: g.line(from), End: max(g.line(n.End()), g.line(from)), Level: level, text: heading(text),
	})
}

func (g *golang) function(d *ast.FuncDecl) {
	end, kind, name := d.Type.End(), "func", d.Name.Name
	if d.Recv != nil && len(d.Recv.List) > 0 {
		kind = "method"
		name = strings.TrimLeft(receiver(d.Recv.List[0].Type), "*") + "." + name
	}
	g.add(1, kind, name, g.cut(d.Pos(), end), d, d.Pos())
}

// receiver names the type of a receiver without its parameters.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.ParenExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

func (g *golang) spec(d *ast.GenDecl, s ast.Spec) {
	from := s.Pos()
	if !d.Lparen.IsValid() {
		from = d.Pos()
	}
	switch s := s.(type) {
	case *ast.TypeSpec:
		g.typ(s, from)
	case *ast.ValueSpec:
		var names []string
		for _, n := range s.Names {
			names = append(names, n.Name)
		}
		text := strings.Join(names, ", ")
		if s.Type != nil {
			text += " " + g.cut(s.Type.Pos(), s.Type.End())
		}
		if len(s.Values) == 1 && g.line(s.Values[0].Pos()) == g.line(s.Values[0].End()) {
			text += " = " + g.cut(s.Values[0].Pos(), s.Values[0].End())
		}
		g.add(1, d.Tok.String(), strings.Join(names, ", "), d.Tok.String()+" "+text, s, from)
	}
}

func (g *golang) typ(s *ast.TypeSpec, from token.Pos) {
	head := "type " + g.cut(s.Pos(), s.Type.Pos())
	switch t := s.Type.(type) {
	case *ast.StructType:
		g.add(1, "struct", s.Name.Name, head+"struct", s, from)
		g.fields(3, "field", t.Fields)
	case *ast.InterfaceType:
		g.add(1, "interface", s.Name.Name, head+"interface", s, from)
		g.fields(2, "method", t.Methods)
	default:
		g.add(1, "type", s.Name.Name, head+g.cut(s.Type.Pos(), s.Type.End()), s, from)
	}
}

func (g *golang) fields(level int, kind string, list *ast.FieldList) {
	if list == nil {
		return
	}
	for _, f := range list.List {
		text := g.cut(f.Pos(), f.Type.End())
		if f.Names == nil {
			g.add(level, "embedded", strings.TrimSpace(text), text, f, f.Pos())
		}
		for _, n := range f.Names {
			g.add(level, kind, n.Name, fmt.Sprintf("%s%s", n.Name, g.cut(f.Names[len(f.Names)-1].End(), f.Type.End())), f, f.Pos())
		}
	}
}
