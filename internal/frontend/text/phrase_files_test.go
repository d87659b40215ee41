package text

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever is wrong with the fields of a file, with an agent or with a folder that is to be
// trusted is said in Korean.
func TestFilesSpeakKorean(t *testing.T) {
	said := sentences(t, "../../safety/trust", "New", "Errorf")
	for _, dir := range []string{"../../base/frontmatter", "../../extend/swarm"} {
		said = append(said, faults(t, dir)...)
	}
	if len(said) < 80 {
		t.Fatalf("%d sentences were found alone", len(said))
	}
	hangul := regexp.MustCompile(`\p{Hangul}`)
	english := regexp.MustCompile(`\b(the|is|are|has|does|not|of|to|it|that|be|write|a)\b`)
	ko := For("ko")
	for _, s := range said {
		if got := ko.Phrase(s); !hangul.MatchString(got) || english.MatchString(got) {
			t.Errorf("%s\n  is in Korean: %s", s, got)
		}
	}
	if got := ko.Phrase("line 3, column 5: tools has to be a list of texts, and is a group of fields"); got != "3번째 줄 5번째 글자: tools은(는) 글의 목록이어야 하는데 필드 묶음입니다" {
		t.Error(got)
	}
}

// faults are the sentences of the faults that a package makes, with something in the place
// of what differs.
func faults(t *testing.T, dir string) (said []string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	add := func(s string) {
		if strings.TrimSpace(strings.ReplaceAll(s, "X", "")) != "" {
			said = append(said, s)
		}
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && slices.Contains([]string{"Message", "Fix"}, key.Name) {
					add(spoken(n.Value))
				}
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Fault" && len(n.Args) > 1 {
					add(spoken(n.Args[0]))
					add("X " + spoken(n.Args[1]))
				}
			}
			return true
		})
	}
	return said
}

// spoken is the text that an expression stands for.
func spoken(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		if err != nil {
			return "X"
		}
		return filled(regexp.MustCompile(`%[a-z]`), "", s)
	case *ast.BinaryExpr:
		return spoken(e.X) + spoken(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return spoken(e.Args[0])
		}
	}
	return "X"
}
