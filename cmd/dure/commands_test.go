//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"github.com/spf13/cobra"

	"dure/internal/frontend/text"
	"dure/internal/models/script"
)

// mostLocal is how many commands may work on the machine itself only.
const mostLocal = 12

// runLines runs command lines in a process of their own.
func runLines(t *testing.T, w editorWorld, list []commandLine) []commandLine {
	t.Helper()
	in, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	path, err := exec.LookPath("dure-lines")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stderr = w.env, w.work, strings.NewReader(string(in)), os.Stderr
	out, err := cmd.Output()
	var ran []commandLine
	if err == nil {
		err = json.Unmarshal(out, &ran)
	}
	if err != nil || len(ran) != len(list) {
		t.Fatalf("%v\n%.1000s", err, out)
	}
	return ran
}

// commandRow is a line of the table: words of a command line, with single quotes as in a shell,
// then perhaps "<" and its input. "local:" in front means that a server cannot be asked, and
// "fails:" that the command ends with an error.
type commandRow struct {
	line         string
	cmd          *cobra.Command
	local, fails bool
	commandLine
}

var commandWord = regexp.MustCompile(`'[^']*'|\S+`)

func commandRows(t *testing.T, root *cobra.Command, table string, named map[string]string) (rows []commandRow) {
	t.Helper()
	for line := range strings.Lines(table) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		r := commandRow{line: line}
		line, r.local = strings.CutPrefix(line, "local: ")
		line, r.fails = strings.CutPrefix(line, "fails: ")
		line, in, _ := strings.Cut(line, " < ")
		r.In = in
		for _, word := range commandWord.FindAllString(line, -1) {
			r.Args = append(r.Args, os.Expand(strings.Trim(word, "'"), func(name string) string { return named[name] }))
		}
		cmd, _, err := root.Find(r.Args)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		r.cmd = cmd
		if cmd.Flags().Lookup("json") != nil {
			r.Args = append(r.Args, "--json")
		}
		rows = append(rows, r)
	}
	return rows
}

// commandTree are the commands that help shows, by their paths.
func commandTree(cmd *cobra.Command) map[string]*cobra.Command {
	all := map[string]*cobra.Command{}
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			all[c.CommandPath()] = c
			maps.Copy(all, commandTree(c))
		}
	}
	return all
}

// Each command of the program writes the same JSON when it asks a server that has the same
// home and the same folder. Some work on the machine itself only, and say why.
func TestCommandsAskServers(t *testing.T) {
	t.Parallel()
	table, err := txtar.ParseFile("testdata/commands.txtar")
	if err != nil {
		t.Fatal(err)
	}
	w := newEditorWorld(t, []script.Reply{
		{When: "make it", Calls: []script.Call{{ID: "c1", Tool: "Write", Input: json.RawMessage(`{"file_path":"made.txt","content":"made\n"}`)}}},
		{When: "made.txt", Text: "It is made."},
		{When: "hello", Text: "Hello."},
		{When: "the word ok", Text: "ok"},
	})
	root := (&program{text: text.For("en")}).root()
	rows := commandRows(t, root, string(table.Comment), prepareCommands(t, w, table))

	tree := commandTree(root)
	uncovered := maps.Clone(tree)
	for _, r := range rows {
		delete(uncovered, r.cmd.CommandPath())
	}
	if len(uncovered) > 0 {
		t.Errorf("these commands have no row in testdata/commands.txtar: %q", slices.Sorted(maps.Keys(uncovered)))
	}
	maps.DeleteFunc(tree, func(_ string, c *cobra.Command) bool { return c.Annotations[localReason] == "" })
	if len(tree) > mostLocal {
		t.Errorf("%d commands work on the machine itself only, and %d may: %q", len(tree), mostLocal, slices.Sorted(maps.Keys(tree)))
	}

	kept := filepath.Dir(w.work) + "-kept"
	copied := func(from, to string) {
		if out, err := exec.CommandContext(t.Context(), "cp", "-a", from, to).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	copied(filepath.Dir(w.work), kept)
	here := linesOf(rows, func(r commandRow) bool { return !r.local })
	wanted := runLines(t, w, here)
	if err := os.RemoveAll(filepath.Dir(w.work)); err != nil {
		t.Fatal(err)
	}
	copied(kept, filepath.Dir(w.work))

	p := serveFor(t, w, "--guarded", "--drain", "1ms")
	there := linesOf(rows, func(commandRow) bool { return true })
	for i := range there {
		there[i].Args = append([]string{"--server", p.at.URL}, there[i].Args...)
	}
	// The client has a home and a folder of its own, so that what it would answer by itself differs.
	far := w
	far.home, far.work = t.TempDir(), t.TempDir()
	far.env = append(slices.Clone(w.env), "HOME="+far.home, "DURE_HOME="+filepath.Join(far.home, "dure"), "ANTHROPIC_API_KEY=", "DURE_MODEL=", serveVar+"="+p.at.Token)
	for i, got := range runLines(t, far, there) {
		r := rows[i]
		if r.local {
			if want := "does not work with --server: " + r.cmd.Annotations[localReason]; got.Code != 2 || !strings.Contains(got.Err, want) {
				t.Errorf("%s: exit %d, %s, want an error that says %q", r.line, got.Code, got.Err, want)
			}
			continue
		}
		want := wanted[0]
		wanted = wanted[1:]
		if r.fails != (want.Code != 0) {
			t.Errorf("%s: exit %d\n%s", r.line, want.Code, want.Err)
		}
		if d := cmp.Diff(shownLine(want), shownLine(got)); d != "" {
			t.Errorf("%s: without and with --server:\n%s", r.line, d)
		}
	}
}

func linesOf(rows []commandRow, some func(commandRow) bool) (list []commandLine) {
	for _, r := range rows {
		if some(r) {
			list = append(list, r.commandLine)
		}
	}
	return list
}

// changing are parts of answers that differ from one run to the next.
var changing = []struct {
	part *regexp.Regexp
	mask string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+(Z|[+-]\d\d:\d\d)`), "TIME"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\d`), "DAY"},
	{regexp.MustCompile(`[0-9.]+ [KMG]iB`), "SIZE"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`), "SESSION"},
	{regexp.MustCompile(`"(ms|first_ms|milliseconds|bytes|memoryFree|diskFree|cost|cache_read|cache_write)": "?\d+"?`), "NUMBER"},
	{regexp.MustCompile(`"time": "DAY [0-9:]+ UTC"`), "TIME"},
	{regexp.MustCompile(`in \d+ ms`), "in MS"},
	{regexp.MustCompile(`-?\d+ s off the endpoint's`), "SECONDS off the endpoint's"}, // whose clock shows whole seconds
	{regexp.MustCompile(`"seconds": "-?\d+"`), "SECONDS"},
	{regexp.MustCompile(`dure_[A-Z2-7]{26}`), "TOKEN"},
	{regexp.MustCompile(`"id": "[0-9a-z]{8,16}"`), "ID"},
}

// shownLine is what a command has written: its output, and its error.
func shownLine(l commandLine) string {
	shown := fmt.Sprintf("exit %d\n%s", l.Code, l.Out)
	if l.Code != 0 {
		shown += l.Err
	}
	for _, c := range changing {
		shown = c.part.ReplaceAllString(shown, c.mask)
	}
	return shown
}

// prepareCommands makes what the rows are about, and returns the names that they use.
func prepareCommands(t *testing.T, w editorWorld, table *txtar.Archive) map[string]string {
	t.Helper()
	for _, f := range table.Files {
		path := filepath.Join(filepath.Dir(w.work), f.Name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, f.Data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran := runLines(t, w, []commandLine{
		{Args: []string{"-p", "--session-id", "s1", "--permission-mode", "acceptEdits", "make it"}},
		{Args: []string{"-p", "--session-id", "s2", "hello"}},
		{Args: []string{"-p", "--session-id", "s3", "hello"}},
		{Args: []string{"export", "s3", "-o", "../s3.jsonl"}},
		{Args: []string{"schedule", "add", "0 9 * * *", "hello", "--json"}},
		{Args: []string{"mcp", "add", "none", "no-such-program", "--scope", "user"}},
		{Args: []string{"plugin", "install", "../kit", "--json"}},
	})
	for i, l := range ran[:6] {
		if l.Code != 0 {
			t.Fatalf("%q: exit %d\n%s%s", ran[i].Args, l.Code, l.Out, l.Err)
		}
	}
	var schedule struct{ ID string }
	if err := json.Unmarshal([]byte(ran[4].Out), &schedule); err != nil {
		t.Fatal(err)
	}
	hash := regexp.MustCompile(`"sha256": "([0-9a-f]{64})"`).FindStringSubmatch(ran[6].Out)
	if hash == nil {
		t.Fatalf("%s%s", ran[6].Out, ran[6].Err)
	}
	return map[string]string{"SCHEDULE": schedule.ID, "HASH": hash[1]}
}
