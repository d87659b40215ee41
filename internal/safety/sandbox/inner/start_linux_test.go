package inner

import (
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// What this package imports is initialised before every command that is confined,
// with all that it imports in turn: each of these was measured.
func TestImports(t *testing.T) {
	want := []string{
		"encoding/binary", "errors", "golang.org/x/sys/unix", "os", "path", "runtime", "strconv", "strings", "syscall", "unsafe",
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range file.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, path)
		}
	}
	slices.Sort(got)
	if got = slices.Compact(got); !slices.Equal(got, want) {
		t.Errorf("it imports %q\nwant %q", got, want)
	}
}
