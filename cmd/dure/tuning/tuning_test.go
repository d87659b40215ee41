package tuning

import (
	"go/build"
	"slices"
	"testing"
)

// Values that the library reads are left as they are.
func TestReadable(t *testing.T) {
	for value, want := range map[string]bool{"": true, "a=b": true, "a=b, c=": true, "junk": false, "a=b,junk": false, ",": false} {
		if got := readable(value); got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
}

// What it imports, the library's reader imports: only then it is initialised before.
func TestImportsLittle(t *testing.T) {
	p, err := build.ImportDir(".", 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range p.Imports {
		if !slices.Contains([]string{"fmt", "os", "strings"}, path) {
			t.Errorf("it imports %s", path)
		}
	}
}
