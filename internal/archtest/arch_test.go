package archtest

import (
	"os"
	"testing"
)

// sizesAllowed and sleepsAllowed are meant to stay empty.
var (
	sizesAllowed  = map[string]int{}
	sleepsAllowed = map[string]string{}
)

func TestModule(t *testing.T) {
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []struct {
		name   string
		faults []Fault
	}{
		{"layers", CheckLayers(tree, Layers)},
		{"imports", CheckImports(tree)},
		{"environment", CheckEnvironment(tree)},
		{"comments", CheckComments(tree)},
		{"sizes", CheckSizes(tree, sizesAllowed)},
		{"names", CheckNames(tree)},
		{"sleeps", CheckSleeps(tree, sleepsAllowed)},
	} {
		t.Run(rule.name, func(t *testing.T) {
			for _, f := range rule.faults {
				t.Error(f)
			}
		})
	}
}
