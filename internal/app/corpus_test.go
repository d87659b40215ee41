package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/app/eval"
)

// A policyCase is a line of testdata/policy: a case of dure policy eval, the verdict
// that is right, and why.
type policyCase struct {
	eval.Case
	Expect agent.Verdict `json:"expect"`
	Why    string        `json:"why"`
}

func (c policyCase) name() string { return strings.Trim(string(c.ID), `"`) }

// policyCorpora are the corpora, and the least number of cases that each has.
var policyCorpora = []struct {
	name string
	min  int
}{{"attacks", 280}, {"everyday", 1000}, {"more", 100}, {"paths", 120}}

// readPolicyCases returns the cases of a corpus, with its placeholders replaced.
func readPolicyCases(t *testing.T, name string, placed func(string) string) []policyCase {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "policy", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []policyCase
	for i, line := range bytes.Split(bytes.TrimSpace(data), []byte("\n")) {
		dec := json.NewDecoder(strings.NewReader(placed(string(line))))
		dec.DisallowUnknownFields()
		var c policyCase
		if err := dec.Decode(&c); err != nil {
			t.Fatalf("%s.jsonl:%d: %v", name, i+1, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// A policyTree is where the cases are decided.
type policyTree struct{ workspace, home, outside, beside string }

// newPolicyTree makes the tree that testdata/policy/fixture.txt describes.
func newPolicyTree(t *testing.T) policyTree {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	tree := policyTreeAt(base)
	if err := tree.plant(); err != nil {
		t.Fatal(err)
	}
	return tree
}

func policyTreeAt(base string) policyTree {
	return policyTree{
		workspace: filepath.Join(base, "work"), beside: filepath.Join(base, "work-evil"),
		outside: filepath.Join(base, "outside"), home: filepath.Join(base, "home"),
	}
}

// plant makes what fixture.txt describes.
func (tree policyTree) plant() error {
	text, err := os.ReadFile(filepath.Join("testdata", "policy", "fixture.txt"))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" && line[0] != '#' {
			kind, rest, _ := strings.Cut(line, " ")
			if err := tree.add(kind, tree.place(rest)); err != nil {
				return fmt.Errorf("fixture.txt: %s: %w", line, err)
			}
		}
	}
	return nil
}

func (tree policyTree) add(kind, rest string) error {
	path, target, _ := strings.Cut(rest, " -> ")
	if path[0] == '"' {
		unquoted, err := strconv.Unquote(path)
		if err != nil {
			return err
		}
		path = unquoted
	}
	folder := filepath.Dir(path)
	if kind == "dir" {
		folder = path
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	switch kind {
	case "dir":
		return nil
	case "file":
		return os.WriteFile(path, []byte("text\n"), 0o644)
	case "link":
		return os.Symlink(target, path)
	}
	return errors.New("it is neither dir, file nor link")
}

// place replaces the placeholders of a line. What ${FILL:n} stands for is n letters.
func (tree policyTree) place(line string) string {
	line = strings.NewReplacer(
		"${W}", tree.workspace, "${P}", tree.beside, "${O}", tree.outside, "${H}", tree.home,
	).Replace(line)
	for {
		before, rest, ok := strings.Cut(line, "${FILL:")
		if !ok {
			return line
		}
		number, after, _ := strings.Cut(rest, "}")
		n, _ := strconv.Atoi(number)
		line = before + strings.Repeat("a", n) + after
	}
}

// Every case can be read, has an id of its own and says why.
func TestPolicyCorpus(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	shell := map[agent.Verdict]int{}
	for _, f := range policyCorpora {
		cases := readPolicyCases(t, f.name, func(line string) string { return line })
		if len(cases) < f.min {
			t.Errorf("%s.jsonl has %d cases, want at least %d", f.name, len(cases), f.min)
		}
		for _, c := range cases {
			switch {
			case c.name() == "" || ids[c.name()]:
				t.Errorf("%s.jsonl: id %q is empty or used twice", f.name, c.name())
			case c.Tool == "" || c.Why == "" || len(c.Input) == 0:
				t.Errorf("%s: no tool, input or reason", c.name())
			case !slices.Contains([]agent.Verdict{agent.Allow, agent.AskUser, agent.Deny}, c.Expect):
				t.Errorf("%s: expects %q", c.name(), c.Expect)
			}
			ids[c.name()] = true
			if c.Tool == "Bash" {
				shell[c.Expect]++
			}
		}
	}
	if shell["ask"]+shell["deny"] < 280 || shell["allow"] < 170 {
		t.Errorf("commands by verdict: %v", shell)
	}
}
