package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sizesAllowed is meant to stay empty, and sleepsAllowed nearly so. tablesAllowed has the keys
// of the tables in internal/app.
var (
	sizesAllowed  = map[string]int{}
	tablesAllowed = map[string]string{
		"Flags.Providers": "name of a provider",
		"App.answers":     "name of a query",
		"served.pictures": "input",
	}
	sleepsAllowed = map[string]string{
		"internal/safety/sandbox/sandbox_test.go": "the operating system does not say when it has reaped a process group",
	}
)

func TestModule(t *testing.T) {
	t.Parallel()
	tree, err := Load(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range []struct {
		name   string
		faults []Fault
	}{
		{"layers", CheckLayers(tree, Layers, Exceptions)},
		{"table", CheckTable(tree, Layers, Exceptions)},
		{"cycles", CheckCycles(tree)},
		{"imports", CheckImports(tree)},
		{"powers", CheckPowers(tree, Powers)},
		{"environment", CheckEnvironment(tree)},
		{"comments", CheckComments(tree)},
		{"sizes", CheckSizes(tree, sizesAllowed)},
		{"wiring", CheckWiring(tree)},
		{"tables", CheckTables(tree, tablesAllowed)},
		{"interfaces", CheckInterfaces(tree)},
		{"contracts", CheckContracts(tree, Contracts)},
		{"lookups", CheckLookups(tree)},
		{"names", CheckNames(tree)},
		{"sleeps", CheckSleeps(tree, sleepsAllowed)},
		{"words", CheckWords(tree, append(machine(t), Phrases...))},
		{"deps", CheckDeps(tree)},
		{"events", CheckEvents(tree)},
		{"errors", CheckErrors(tree)},
	} {
		t.Run(rule.name, func(t *testing.T) {
			for _, f := range rule.faults {
				t.Error(f)
			}
		})
	}
}

// machine returns what names the machine that runs the test: a file that holds
// one of these was written for that machine alone.
func machine(t *testing.T) []Phrase {
	const why = "a path or host of the machine that this was written on"
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{root}
	out, err := exec.Command("go", "env", "GOPROXY", "GOMODCACHE", "GOCACHE", "GOSUMDB").Output()
	if err != nil {
		t.Fatalf("asking go for its environment: %v", err)
	}
	for _, v := range strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' || r == ',' || r == '|' }) {
		names = append(names, strings.TrimPrefix(strings.TrimPrefix(v, "https://"), "http://"))
	}
	var phrases []Phrase
	for _, n := range names {
		if strings.ContainsAny(n, "./\\") && len(n) > 5 {
			phrases = append(phrases, Literal(n, why))
		}
	}
	return phrases
}
