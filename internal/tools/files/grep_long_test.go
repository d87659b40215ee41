//go:build unix

package files

import (
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/prooftest"
	"dure/internal/safety/workspace"
)

// grove writes a tree of so many bytes, of files that look like source code.
func grove(t *testing.T, dir string, size int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields("func return if err nil error string int for range package import struct type var const map chan select switch case default value index result buffer reader writer context handler request response config server client session agent model token")
	for n := 0; size > 0; n++ {
		var b strings.Builder
		for want := 2_000 + rng.IntN(1<<rng.IntN(17)+1); b.Len() < want; {
			for range 3 + rng.IntN(9) {
				b.WriteString(words[rng.IntN(len(words))] + " ")
			}
			b.WriteString("\n")
		}
		if n%1000 == 500 {
			b.WriteString("const NEEDLE_12345z = needleInHaystack\n")
		}
		p := filepath.Join(dir, fmt.Sprintf("d%02d/e%02d/file%05d.go", n%23, n%7, n))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		size -= b.Len()
	}
}

const groveSize = 200 << 20

// spent is what a run took: time, and that of the processors.
type spent struct{ wall, cpu time.Duration }

// medians returns what two programs take that run in turns, so that both meet
// the same machine.
func medians(a, b func()) (of [2]spent) {
	const turns = 7
	var runs [2][]spent
	for range turns {
		for i, run := range []func(){a, b} {
			start, before := time.Now(), processors()
			run()
			runs[i] = append(runs[i], spent{time.Since(start), processors() - before})
		}
	}
	for i, r := range runs {
		slices.SortFunc(r, func(a, b spent) int { return cmp.Compare(a.wall, b.wall) })
		of[i].wall = r[turns/2].wall
		slices.SortFunc(r, func(a, b spent) int { return cmp.Compare(a.cpu, b.cpu) })
		of[i].cpu = r[turns/2].cpu
	}
	return of
}

// processors returns what this process and the programs that it ran have used.
func processors() (d time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			d += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return d
}

// How long searches of 200 MB take beside rg, in a folder and in a repository.
// They may take 1.5 times the processor time of rg in the middle, and twice that
// in each case: what other programs do meanwhile is not held against them.
func TestGrepSpeed(t *testing.T) {
	if !prooftest.Long() {
		t.Skip("takes minutes; set DURE_LONG")
	}
	rg := prooftest.Program(t, "rg")
	for _, place := range []string{"folder", "repository"} {
		t.Run(place, func(t *testing.T) {
			d := newDesk(t)
			grove(t, d.ws, groveSize)
			if place == "repository" {
				git := prooftest.Program(t, "git")
				d.check(exec.Command(git, "-C", d.ws, "init", "-q").Run())
				d.check(exec.Command(git, "-C", d.ws, "add", ".").Run())
				ws, err := workspace.New(workspace.Config{Root: d.ws, Git: git})
				d.check(err)
				d.files.Workspace = ws
				d.open()
			}
			var ratios []float64
			for _, c := range []struct{ pattern, mode, flags string }{
				{"needleInHaystack", modeFiles, ""},
				{"needleInHaystacks", modeFiles, ""},
				{"NEEDLEINHAYSTACK", modeFiles, "-i"},
				{`NEEDLE_\d+z = \w+`, modeFiles, ""},
				{`\bneedle\w*stack$`, modeFiles, ""},
				{`Needle|Haystack`, modeFiles, ""},
				{`[A-Z]{4,}\W[0-9]{5}`, modeFiles, ""},
				{`\b[a-z]+[A-Z][a-z]+[A-Z]\w+$`, modeFiles, ""},
				{"token", modeCount, ""},
				{"response (agent|model)", modeCount, ""},
				{"[aeiou]{3}[^a-z][xyz]", modeCount, ""},
				{"needle.*Hay", modeContent, ""},
			} {
				input := in{"pattern": c.pattern, "-i": c.flags != "", "output_mode": c.mode}
				if c.mode == modeCount {
					input["offset"] = 1_000_000 // all are counted
				}
				args := append(strings.Fields(c.flags), "--no-config", map[string]string{modeFiles: "-l", modeCount: "-c", modeContent: "-n"}[c.mode], "-e", c.pattern, "./")
				m := medians(func() { d.text("grep", input) }, func() {
					cmd := exec.Command(rg, args...)
					cmd.Dir, cmd.Stdout = d.ws, io.Discard
					_ = cmd.Run() // 1 = nothing found
				})
				wall, cpu := m[0].wall.Seconds()/m[1].wall.Seconds(), m[0].cpu.Seconds()/m[1].cpu.Seconds()
				ratios = append(ratios, cpu)
				t.Logf("%-30s %-18s %4d ms, rg %4d ms (%.2f); of processors %4d ms, rg %4d ms (%.2f)", c.pattern, c.mode,
					m[0].wall.Milliseconds(), m[1].wall.Milliseconds(), wall, m[0].cpu.Milliseconds(), m[1].cpu.Milliseconds(), cpu)
				if cpu > 3 {
					t.Errorf("%s takes %.1f times as long as rg", c.pattern, cpu)
				}
			}
			slices.Sort(ratios)
			if r := ratios[len(ratios)/2]; r > 1.5 {
				t.Errorf("searches take %.1f times as long as rg", r)
			}
		})
	}
}
