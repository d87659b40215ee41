package shell

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// A counterexample is a command line whose reading once did not tell what it runs
// or writes.
type counterexample struct {
	// "rm curl > /w/0/d/out": the programs that it runs, the files that it writes.
	// "unreadable": that cannot be told at all.
	what string
	text string
}

// readCounterexamples reads testdata/counterexamples.txt: entries begin with a line
// "== " and what bash does; the command line follows.
func readCounterexamples(t *testing.T) []counterexample {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "counterexamples.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var all []counterexample
	for _, entry := range strings.Split("\n"+string(data), "\n== ")[1:] {
		what, text, _ := strings.Cut(entry, "\n")
		all = append(all, counterexample{what, strings.TrimSuffix(text, "\n")})
	}
	return all
}

// What was found once is told ever after, or said to be unreadable.
func TestCounterexamples(t *testing.T) {
	for _, c := range readCounterexamples(t) {
		e := Read(c.text, Options{
			Dir: "/w/0/d", Home: "/w/0/h", Vars: map[string]string{"HOME": "/w/0/h", "PATH": "/bin", "PWD": "/w/0/d"},
			Glob: func(string) ([]string, bool) { return nil, true },
		})
		if e.Unreadable != "" || e.Unparsed != "" {
			continue
		}
		var names []string
		var walk func([]agent.SimpleCommand)
		walk = func(commands []agent.SimpleCommand) {
			for _, c := range commands {
				names = append(names, c.Argv[0][strings.LastIndexByte(c.Argv[0], '/')+1:])
				walk(c.Runs)
			}
		}
		walk(e.Commands)
		programs, files, _ := strings.Cut(c.what, ">")
		for _, p := range strings.Fields(programs) {
			if p == "unreadable" {
				t.Errorf("%s\nis read: %v", c.text, names)
				continue
			}
			if !slices.Contains(names, p) {
				t.Errorf("%s\nruns %s; told are %v", c.text, p, names)
			}
		}
		for _, f := range strings.Fields(files) {
			if !slices.Contains(e.Writes, f) {
				t.Errorf("%s\nwrites %s; told are %v", c.text, f, e.Writes)
			}
		}
	}
}
