package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// confined returns a box with a workspace, that confines by one mechanism.
func confined(t testing.TB, mechanism string, change func(*Confinement)) (*Box, string) {
	t.Helper()
	root := t.TempDir()
	c := &Confinement{Roots: []string{root}, ProtectNames: ProtectNames(), PresentNames: PresentNames()}
	if change != nil {
		change(c)
	}
	b := New(Config{Temp: t.TempDir(), Confine: c, Mechanisms: []string{mechanism}})
	t.Cleanup(func() { b.Close() })
	if got := b.cell.find(b.watcher.ready); got.mechanism != mechanism {
		prooftest.Lacking(t, "sandbox", fmt.Sprint(mechanism, " does not confine: ", got.parts))
	}
	return b, root
}

var mechanisms = []string{byBwrap, byNamespaces, byLandlock}

func output(t testing.TB, b *Box, dir, script string, g Grant) (string, Exit) {
	t.Helper()
	var out strings.Builder
	cmd := sh(script)
	cmd.Dir, cmd.Out, cmd.Grant = dir, &out, g
	exit, err := b.Run(t.Context(), cmd)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	exit.Duration = 0
	return out.String(), exit
}

// What a confinement adds to the time of a command: at once after another, and
// after a pause, as short as a model makes one.
func BenchmarkConfined(b *testing.B) {
	for _, m := range append([]string{"bare"}, mechanisms...) {
		for _, pause := range []time.Duration{0, 5 * time.Millisecond} {
			b.Run(m+"/"+pause.String(), func(b *testing.B) {
				box := newBox(b)
				if m != "bare" {
					box, _ = confined(b, m, func(c *Confinement) { c.Hide = Hidden(os.Getenv("HOME"), os.Environ()) })
				}
				cmd := Cmd{Argv: []string{"/bin/true"}, Dir: "/"}
				for b.Loop() {
					if exit, err := box.Run(b.Context(), cmd); err != nil || exit.Code != 0 {
						b.Fatal(exit, err)
					}
					b.StopTimer()
					<-time.After(pause)
					b.StartTimer()
				}
			})
		}
	}
}

// Commands live and die as without a confinement: the tests of that are run once
// more, confined by each mechanism.
func TestConfinedLife(t *testing.T) {
	const tests = "^(TestRun|TestRunCannotStart|TestTalk|TestOutAfterTheEnd|TestSignal|TestProcessStop|TestInputThatNobodyReads|TestTerminal|TestTerminalSession|TestClosedBox|TestStartUnderContext)$"
	const stopped = "^TestEscapesDieWithWhatIsStopped$/^(stop|close)"
	const orphans = "^(TestNothingSurvivesKillOfParent|TestNothingSurvivesByLeavingItsGroup|TestTerminalDoesNotSurviveKillOfParent)$"
	t.Parallel() // it mostly waits
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			if m == byBwrap && !prooftest.Long() {
				t.Skip("as by namespaces, which takes seconds: DURE_LONG=1 runs it")
			}
			t.Parallel()
			confined(t, m, nil)
			runs := []string{tests, stopped}
			if m == byLandlock && !prooftest.Long() { // the rest runs by namespaces
				runs[0] = "^(TestRun|TestSignal|TestTerminal|TestClosedBox)$"
			}
			if m == byLandlock { // elsewhere numbers of processes differ inside
				runs = append(runs, orphans)
			}
			for _, run := range runs {
				cmd := exec.Command(os.Args[0], "-test.run", run, "-test.parallel", "8") // they mostly wait
				cmd.Env = append(os.Environ(), "DURE_TEST_CONFINED="+m)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%s: %v\n%s", run, err, out)
				}
			}
		})
	}
}

// A program that is killed without notice leaves no process, no hold and no
// folder behind; a workspace is as it was.
func TestConfinedKillOfParent(t *testing.T) {
	t.Parallel()
	needs(t, "flock")
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			confined(t, m, nil)
			root, temp := t.TempDir(), t.TempDir()
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), "DURE_TEST_PARENT=setsid sh -c 'env | grep ^DURE_BOX=; sleep 600; true' & wait", "DURE_TEST_WORKSPACE="+root, "DURE_TEST_CONFINED="+m, "TMPDIR="+temp)
			out, err := parent.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			mark := strings.TrimSpace(line)
			box, _, _ := strings.Cut(mark, ".")
			eventually(t, "there is a spare for the next command", func() bool { return count(box) > 0 })
			if count(mark) == 0 || !isHold(filepath.Join(root, ".mcp.json")) {
				t.Fatal("the command does not run, or nothing is held")
			}
			_ = parent.Process.Kill()
			_ = parent.Wait()
			eventually(t, "all processes are gone", func() bool { return count(mark)+count(box) == 0 })
			for _, dir := range []string{root, temp} {
				eventually(t, "what was made is gone", func() bool { left, _ := os.ReadDir(dir); return len(left) == 0 })
			}
		})
	}
}

// Two programs share a hold: the one that ends first leaves it to the other.
func TestHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "held")
	var a, b holds
	first, err := a.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	first()
	a.wait()
	if !isHold(path) {
		t.Error("it was taken from the other")
	}
	second()
	b.wait()
	if present(path) || isHold(path) {
		t.Error("it was left")
	}
	third, err := a.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(path, "of the user")
	if err := errors.Join(os.Chmod(path, 0o700), os.WriteFile(mine, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	third()
	a.wait()
	if !present(mine) {
		t.Error("what the user had put there was removed")
	}
}

// A hold that somebody removes while it is in use is made anew for who comes next,
// and goes with the last of them.
func TestHoldsThatVanish(t *testing.T) {
	path := filepath.Join(t.TempDir(), "held")
	var h holds
	first, err := h.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	second, err := h.take([]string{path})
	if err != nil {
		t.Fatal(err)
	}
	if !isHold(path) {
		t.Error("what was removed is not held")
	}
	first()
	h.wait()
	if !isHold(path) {
		t.Error("it was taken from the other")
	}
	second()
	h.wait()
	if present(path) || isHold(path) {
		t.Error("it was left")
	}
}

// Ordinary work is as it is without a confinement.
func TestConfinedWork(t *testing.T) {
	t.Parallel()
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			t.Parallel()
			for _, tt := range []struct{ name, needs, script, want string }{
				{"git", "git", `git init -q .; git config user.name n; git config user.email e@x; echo a > a; git add a; git commit -qm one; git status --short; git log --format=%s`, "one\n"},
				{"temporary files", "mktemp", `f=$(mktemp); echo a > $f; cat $f`, "a\n"},
				{"what commands share", "cat", `cat /tmp/shared 2>/dev/null || echo b > /tmp/shared; cat /tmp/shared`, "b\n"},
				{"devices", "head", `head -c 4 /dev/zero | wc -c; echo x > /dev/null; head -c 1 /dev/urandom | wc -c`, "4\n1\n"},
				{"pipes and descriptors", "bash", `bash -c 'cat <(echo a) /dev/fd/3 3<<<b; echo c >/dev/stdout'`, "a\nb\nc\n"},
				{"late output", "bash", `exec bash -c 'exec > >(cat); echo late'`, "late\n"},
				{"terminals", "python3", `python3 -c 'import pty; pty.spawn(["echo","a"])'`, "a\r\n"},
				{"shared memory", "python3", `python3 -c 'import multiprocessing as m; print(m.Value("i", 7).value)'`, "7\n"},
				{"Go", "go", `mkdir g; cd g; printf 'module m\ngo 1.20\n' > go.mod; printf 'package m\nimport "testing"\nfunc TestM(t *testing.T) {}\n' > m_test.go; GOFLAGS=-mod=mod GOPROXY=off GOCACHE=$PWD/cache HOME=$PWD go test ./... | cut -c1-4`, "ok  \n"},
			} {
				t.Run(tt.name, func(t *testing.T) {
					needs(t, tt.needs)
					if tt.needs == "go" && !prooftest.Long() {
						t.Skip("takes seconds: DURE_LONG=1 runs it")
					}
					b, root := confined(t, m, nil)
					if tt.name == "git" && m != byLandlock { // making a repository takes a grant
						if out, _ := output(t, b, root, "git init -q . && git config user.name n && git config user.email e@x", Grant{Writes: []string{filepath.Join(root, ".git")}}); out != "" {
							t.Fatal(out)
						}
						_, tt.script, _ = strings.Cut(tt.script, "e@x; ")
					}
					if m == byLandlock && (tt.name == "shared memory" || tt.name == "terminals" || tt.name == "what commands share") {
						t.Skip("Explain owns up to it")
					}
					if out, exit := output(t, b, root, tt.script, Grant{}); out != tt.want || exit.Code != 0 {
						t.Errorf("%q, %+v; want %q", out, exit, tt.want)
					}
				})
			}
		})
	}
}

// A folder that is not there any more, and one that nobody can mean, take nothing from
// the commands of the others.
func TestFoldersThatDoNotCount(t *testing.T) {
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			more := t.TempDir()
			b, root := confined(t, m, func(c *Confinement) {
				c.Extra = []string{filepath.Join(more, "missing"), "/", more}
			})
			if out, exit := output(t, b, root, "echo a > "+more+"/x && cat "+more+"/x; touch /usr/x 2> /dev/null && echo outside", Grant{}); out != "a\n" {
				t.Errorf("%q, %v", out, exit)
			}
		})
	}
}

// What its confinement hides from a command is not the fault of what it would start; what
// is not there, or nothing that anybody could start, is.
func TestBlameInside(t *testing.T) {
	hidden := t.TempDir()
	for _, m := range mechanisms {
		t.Run(m, func(t *testing.T) {
			b, root := confined(t, m, func(c *Confinement) { c.Hide = []string{hidden} })
			for name, text := range map[string]string{root + "/script": "#!" + root + "/missing\n", root + "/text": "hello", hidden + "/guard": "#!/bin/sh\n"} {
				if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for program, want := range map[string]bool{root + "/script": true, root + "/text": true, root + "/missing": true, "./missing": true, hidden + "/guard": false} {
				_, err := b.Start(t.Context(), Cmd{Argv: []string{program}, Dir: root})
				if err == nil || errors.Is(err, ErrProgram) != want {
					t.Errorf("%s: %v, to blame: %v", program, err, errors.Is(err, ErrProgram))
				}
			}
		})
	}
}
