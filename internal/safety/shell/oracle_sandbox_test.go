//go:build linux

package shell

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// An oracle has bash really run command lines, in a box in which every program is
// a fake that writes down how it was called. Nothing of the machine can be reached
// from there but bash itself, dash for the fakes, and the programs that run others.
type oracle struct {
	base string // on this machine; /w in the box
	box  []string
}

// The programs of the box. A plain one prints a word and ends; the others are what
// they are called, and so is cat without operands.
var (
	fakePrograms = []string{
		"rm", "cp", "mv", "ls", "cat", "grep", "git", "curl", "npm", "go", "make", "id", "zap", "tee",
		"touch", "mkdir", "echo", "pwd", "true", "sort", "wc", "head", "sed", "awk", "python3", "sudo", "ssh", "docker",
	}
	realPrograms = []string{"timeout", "env", "xargs", "find", "nice", "nohup", "stdbuf", "setsid", "bash", "dash"}
)

const (
	oracleRoot  = "/w"
	oracleLimit = 20 * time.Second // of a batch
)

// files are what lies in the folder of each command line before it runs.
var oracleFiles = []string{"a.txt", "b.txt", "rm", "src/main.go", "src/x y"}

// A script that is run by its name is a program like any other: these do nothing.
const oracleText = "# text\n"

// newOracle skips a test on a machine that cannot run it, unless DURE_REQUIRE says
// that it can.
func newOracle(t *testing.T) *oracle {
	t.Helper()
	missing := func(program string, why error) {
		t.Helper()
		prooftest.Lacking(t, program, why)
	}
	o := &oracle{base: t.TempDir()}
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		missing("bwrap", err)
	}
	o.box = []string{
		bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--clearenv",
		"--ro-bind", "/usr/lib", "/usr/lib", "--ro-bind-try", "/usr/lib64", "/usr/lib64",
		"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", o.base, oracleRoot,
	}
	for _, dir := range []string{"/lib", "/lib64"} {
		switch target, err := os.Readlink(dir); {
		case err == nil:
			o.box = append(o.box, "--symlink", target, dir)
		default:
			o.box = append(o.box, "--ro-bind-try", dir, dir)
		}
	}
	for _, name := range append([]string{"cat"}, realPrograms...) {
		path, err := exec.LookPath(name)
		if err != nil {
			missing("bash", err)
		}
		o.box = append(o.box, "--ro-bind", path, "/real/"+name)
	}
	fakes := t.TempDir()
	o.fakes(t, fakes)
	o.box = append(o.box, "--ro-bind", fakes, "/bin", "--ro-bind", fakes, "/usr/bin",
		"--setenv", "PATH", "/bin", "--setenv", "FUNCNEST", "20", "/real/bash", "--norc", oracleRoot+"/driver")
	if err := os.WriteFile(filepath.Join(o.base, "driver"), []byte(oracleDriver), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := o.run(t, []string{"ls a | xargs rm"}); len(got[0].calls) != 3 {
		missing("bwrap", fmt.Errorf("the box does not run: %+v", got))
	}
	return o
}

// fakes writes the programs of the box: a call is written to descriptor 9 as its
// number of words and the words, each with a NUL behind it.
func (o *oracle) fakes(t *testing.T, dir string) {
	t.Helper()
	// Bash would find a real program where it looks for a script, and not run it.
	const trace = "#!/real/dash\n[ \"${BASH_VERSION-}\" ] && exit 126\nprintf '%s\\0' $(($#+1)) \"$0\" \"$@\" 2>/dev/null >&9\n"
	write := func(name, rest string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(trace+rest), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range fakePrograms {
		write(name, fmt.Sprintf("echo zap\nexit %d\n", i%3/2))
	}
	for _, name := range realPrograms {
		write(name, `exec /real/`+name+` "$@"`+"\n")
	}
	// What cat prints of its input is known where that is: it does so here, too.
	write("cat", "[ $# -eq 0 ] && exec /real/timeout 1 /real/cat\necho zap\n")
	write("sh", `exec /real/dash "$@"`+"\n")
}

// oracleDriver runs the scripts of a batch one after the other, and gives what they
// have left running a moment to be seen.
const oracleDriver = `ulimit -t 1 -f 1000 -n 256
while read -r n <&8; do
	cd /w/$n/d || exit 1
	HOME=/w/$n/h /real/bash --norc ../script </dev/null >/dev/null 2>&1 9>>../trace 8<&-
done 8</w/batch
cd /
/real/timeout 0.05 /real/dash -c 'read x <&7' 7<><(:) 2>/dev/null
: done >/w/done
`

// ran is what a command line did.
type ran struct {
	calls  [][]string // programs with their arguments, as they were called
	writes []string   // files that were made or changed; as the script sees them
	done   bool       // the batch came to its end
}

// place returns the folder of the n-th command line of a batch, in the box.
func oraclePlace(n int) string { return oracleRoot + "/" + strconv.Itoa(n) }

// run runs command lines, each in a folder of its own.
func (o *oracle) run(t *testing.T, scripts []string) []ran {
	t.Helper()
	var batch bytes.Buffer
	for n, s := range scripts {
		o.furnish(t, n, s)
		fmt.Fprintln(&batch, n)
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(o.base, "batch"), batch.Bytes(), 0o644))
	os.Remove(filepath.Join(o.base, "done"))
	ctx, cancel := context.WithTimeout(t.Context(), oracleLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.box[0], o.box[1:]...)
	out, _ := cmd.CombinedOutput()
	_, err := os.Stat(filepath.Join(o.base, "done"))
	done := err == nil
	if !done {
		t.Logf("a batch did not end: %s", out)
	}
	all := make([]ran, len(scripts))
	for n := range scripts {
		all[n] = o.collect(t, n)
		all[n].done = done
		must(os.RemoveAll(filepath.Join(o.base, strconv.Itoa(n))))
	}
	return all
}

// furnish makes the folder of a command line: d is where it runs, h its home.
func (o *oracle) furnish(t *testing.T, n int, script string) {
	t.Helper()
	dir := filepath.Join(o.base, strconv.Itoa(n))
	for _, sub := range []string{"d/src", "h", "o"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range oracleFiles {
		if err := os.WriteFile(filepath.Join(dir, "d", name), []byte(oracleText), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []struct{ name, text string }{{"script", script}, {"trace", ""}} {
		if err := os.WriteFile(filepath.Join(dir, f.name), []byte(f.text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// collect reads what a command line has left behind.
func (o *oracle) collect(t *testing.T, n int) ran {
	t.Helper()
	var r ran
	dir := filepath.Join(o.base, strconv.Itoa(n))
	trace, err := os.ReadFile(filepath.Join(dir, "trace"))
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Split(strings.TrimSuffix(string(trace), "\x00"), "\x00")
	for i := 0; i < len(words); {
		count, err := strconv.Atoi(words[i])
		if err != nil || i+1+count > len(words) {
			break // two calls that were written at the same time
		}
		r.calls = append(r.calls, words[i+1:i+1+count])
		i += 1 + count
	}
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		if !e.Type().IsRegular() || rel == "script" || rel == "trace" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		inner, inside := strings.CutPrefix(filepath.ToSlash(rel), "d/")
		if !inside || !slices.Contains(oracleFiles, inner) || string(data) != oracleText {
			r.writes = append(r.writes, oraclePlace(n)+"/"+filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// oracleRead reads a command line as it stands for the n-th of a batch.
func oracleRead(script string, n int) agent.Effects {
	dir := oraclePlace(n) + "/d"
	return Read(script, Options{
		Dir: dir, Home: oraclePlace(n) + "/h",
		Vars: map[string]string{"HOME": oraclePlace(n) + "/h", "PATH": "/bin", "PWD": dir},
		Glob: func(pattern string) ([]string, bool) {
			if !strings.HasPrefix(pattern, dir+"/") {
				return nil, false // the programs, and what else there may be
			}
			var found []string
			for _, name := range append([]string{"src"}, oracleFiles...) {
				if ok, err := filepath.Match(pattern, dir+"/"+name); err != nil {
					return nil, false
				} else if ok && !strings.HasPrefix(filepath.Base(name), ".") {
					found = append(found, dir+"/"+name)
				}
			}
			slices.Sort(found)
			return found, true
		},
	})
}

// missed says what a command line did that its reading does not tell, or "".
func missed(e agent.Effects, r ran) string {
	if e.Unreadable != "" || e.Unparsed != "" || e.Destructive != "" {
		return ""
	}
	var told []toldCommand
	gather(e.Commands, false, &told)
	for _, call := range r.calls {
		if !strings.Contains(call[0], "/") || len(r.writes) > 0 && slices.ContainsFunc(told, toldCommand.sources) {
			continue // of a script: a fake that a shell found in PATH, or what was written just before
		}
		if !slices.ContainsFunc(told, func(c toldCommand) bool { return c.named(call) }) {
			return fmt.Sprintf("it ran %q", call)
		}
		if !slices.ContainsFunc(told, func(c toldCommand) bool { return c.covers(call) }) {
			return fmt.Sprintf("it ran %q, with other words than it was told", call)
		}
	}
	for _, w := range r.writes {
		if !slices.Contains(e.Writes, w) {
			return "it wrote " + w
		}
	}
	return ""
}

// A toldCommand is a command of a reading.
type toldCommand struct {
	argv []string
	more bool // whoever runs it puts further words in
}

// gather lists commands with all that they run.
func gather(commands []agent.SimpleCommand, more bool, into *[]toldCommand) {
	for _, c := range commands {
		if len(c.Argv) > 0 {
			*into = append(*into, toldCommand{c.Argv, more})
			name := baseName(c.Argv[0])
			gather(c.Runs, more || name == "find" || name == "xargs", into)
		}
	}
}

func baseName(s string) string { return s[strings.LastIndexByte(s, '/')+1:] }

func (c toldCommand) named(call []string) bool { return baseName(c.argv[0]) == baseName(call[0]) }

// sources reports whether a command reads a script in place.
func (c toldCommand) sources() bool { return c.argv[0] == "." || c.argv[0] == "source" }

// covers reports whether a call is what a command says. Words that cannot be known
// stand as they are written.
func (c toldCommand) covers(call []string) bool {
	if !c.named(call) || c.more {
		return c.named(call)
	}
	for i, w := range c.argv[1:] {
		if strings.ContainsAny(w, "$`*?[{~<>\\") || strings.HasPrefix(w, "/dev/fd/") {
			return true
		}
		if i+1 >= len(call) || w != call[i+1] {
			return false
		}
	}
	return len(call) == len(c.argv)
}
