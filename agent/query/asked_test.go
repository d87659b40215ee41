package query_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
)

// named returns the strings that the methods of a name return, of this package and of the
// vocabulary, with the types that have them.
func named(t *testing.T, method string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, dir := range []string{".", ".."} {
		maps.Copy(all, namedIn(t, dir, method))
	}
	return all
}

func namedIn(t *testing.T, dir, method string) map[string]string {
	t.Helper()
	//nolint:staticcheck // ParseDir has no types, and none are needed
	pkgs, err := parser.ParseDir(token.NewFileSet(), dir, func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	var decls []ast.Decl
	for _, pkg := range pkgs {
		for _, f := range pkg.Files {
			decls = append(decls, f.Decls...)
		}
	}
	for _, d := range decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || fn.Name.Name != method {
			continue
		}
		name, err := strconv.Unquote(fn.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = fn.Recv.List[0].Type.(*ast.Ident).Name
	}
	return all
}

// Every query and every command has a way over the wire, under its own name.
func TestWireKnowsAll(t *testing.T) {
	queries := named(t, "Query")
	for name, typ := range queries {
		q, err := query.DecodeQuery(name, []byte("{}"))
		if err != nil || q.Query() != name {
			t.Errorf("query %s: %v, %v", typ, q, err)
		}
		if asked, _, ok := query.QueryTypes(name); !ok || asked.Name() != typ {
			t.Errorf("%s is %v, want %s", name, asked, typ)
		}
	}
	commands := named(t, "Command")
	for name, typ := range commands {
		c, err := agent.DecodeCommand(name, []byte("{}"))
		if err != nil || c.Command() != name {
			t.Errorf("command %s: %v, %v", typ, c, err)
		}
	}
	if len(queries) != len(query.Queries()) || len(commands) != len(agent.Commands()) {
		t.Errorf("%d of %d queries, %d of %d commands", len(queries), len(query.Queries()), len(commands), len(agent.Commands()))
	}
	for _, name := range []string{"", "nothing", "Sessions", "sessions/"} {
		if q, err := query.DecodeQuery(name, []byte("{}")); err == nil {
			t.Errorf("query %q: %v", name, q)
		}
		if a, err := query.DecodeAnswer(name, []byte("{}")); err == nil {
			t.Errorf("answer %q: %v", name, a)
		}
	}
}

// Answers come back as what is said at their query.
func TestAnswersTravel(t *testing.T) {
	for name, data := range map[string]string{"sessions.sweep": "3", "links.fill": `"https://x.example"`, "files": `["a.go"]`, "system": `{"os":"linux"}`} {
		a, err := query.DecodeAnswer(name, []byte(data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		switch v := a.(type) {
		case int:
			if v != 3 {
				t.Errorf("%s: %d", name, v)
			}
		case string:
			if v != "https://x.example" {
				t.Errorf("%s: %q", name, v)
			}
		case []string:
			if !slices.Equal(v, []string{"a.go"}) {
				t.Errorf("%s: %q", name, v)
			}
		case query.System:
			if v.OS != "linux" {
				t.Errorf("%s: %+v", name, v)
			}
		default:
			t.Errorf("%s: %T", name, a)
		}
	}
}
