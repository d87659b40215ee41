package text

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Whatever the package of plugins says is said in Korean, whole: no sentence of it is
// known in part alone.
func TestPluginsSpeakKorean(t *testing.T) {
	said := sentences(t, "../../extend/plugins", "New", "Errorf", "Sprintf", "noSource", "say", "left", "bad", "because")
	if len(said) < 100 {
		t.Fatalf("%d sentences were found alone", len(said))
	}
	// What is the same in both languages.
	own := regexp.MustCompile(`\b(min_app_version|blockedMarketplaces|strictKnownMarketplaces|mcpServers|userConfig|defaultEnabled|dependencies|` +
		`strict|repo|sha|sha256|ref|zip|tar|git|name|source|plugins|https|dure|plugin|show|set|install|agent|settings|json|owner|folder|true|false|github|npm|ssh)\b|Windows|Markdown|Skill`)
	word := regexp.MustCompile(`[a-z]{2,}`)
	ko := For("ko")
	for _, s := range said {
		if got := ko.Phrase(s); word.MatchString(own.ReplaceAllString(got, "")) {
			t.Errorf("%s\n  is in Korean: %s", s, got)
		}
	}
}

// sentences are the texts that the functions of a package are called with, with
// something in the place of each of their verbs.
func sentences(t *testing.T, dir string, functions ...string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	verb := regexp.MustCompile(`%[a-z]`)
	found := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, data, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			called := ""
			switch f := call.Fun.(type) {
			case *ast.Ident:
				called = f.Name
			case *ast.SelectorExpr:
				called = f.Sel.Name
			}
			for i, arg := range call.Args {
				lit, ok := arg.(*ast.BasicLit)
				if !ok || lit.Kind != token.STRING || !slices.Contains(functions, called) || called == "left" && i == 0 {
					continue
				}
				s, err := strconv.Unquote(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(strings.ReplaceAll(s, "%", ""), " ") {
					found[filled(verb, called, s)] = true
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// filled is a sentence as it may be said.
func filled(verb *regexp.Regexp, called, s string) string {
	s = verb.ReplaceAllStringFunc(s, func(v string) string {
		return map[string]string{"%d": "7", "%q": `"X"`, "%w": "it is too large", "%v": "it is too large", "%s": "X"}[v]
	})
	if called == "bad" {
		return `"X" ` + s
	}
	return s
}
