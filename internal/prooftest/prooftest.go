// Package prooftest has what the tests of all packages agree on: how much of a long
// proof runs, and what the machine may lack.
//
// DURE_LONG=1 asks for the whole of every proof. DURE_REQUIRE names, with commas
// between them, programs and abilities that the machine is said to have: a test that
// needs one of them fails without it, and is skipped without any other. DURE_KEEP names
// a folder in which tests of whole programs leave their workspaces and homes.
package prooftest

import (
	"flag"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Long reports whether the whole of every proof is asked for.
func Long() bool { return os.Getenv("DURE_LONG") != "" }

// Kept returns a new folder below the one of DURE_KEEP, which stays, or else a temporary one.
func Kept(t testing.TB) string {
	t.Helper()
	keep := os.Getenv("DURE_KEEP")
	if keep == "" {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp(keep, "kept-")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Sample returns the cases that a proof looks at: all of them if the whole is asked
// for, and otherwise those that keep wants, and of the others the first and every so
// many after it. They are the same each time, in their order, and never none.
func Sample[C any](t testing.TB, cases []C, every int, keep func(C) bool) []C {
	t.Helper()
	if len(cases) == 0 || every < 1 {
		t.Fatalf("of %d cases, every %d. is none", len(cases), every)
	}
	if Long() {
		return cases
	}
	var some []C
	others := 0
	for _, c := range cases {
		if keep != nil && keep(c) {
			some = append(some, c)
			continue
		}
		if others%every == 0 {
			some = append(some, c)
		}
		others++
	}
	t.Logf("%d of %d cases: DURE_LONG=1 looks at all", len(some), len(cases))
	return some
}

// Required reports whether the machine is said to have something.
func Required(what string) bool {
	return slices.Contains(strings.Split(os.Getenv("DURE_REQUIRE"), ","), what)
}

// Lacking ends a test for want of something: it is skipped, or has failed where the
// machine is said to have that.
func Lacking(t testing.TB, what string, why any) {
	t.Helper()
	if Required(what) {
		t.Fatalf("DURE_REQUIRE names %s: %v", what, why)
	}
	t.Skipf("no %s on this machine: %v", what, why)
}

// Program returns where a program is, without which the test is Lacking it.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Lacking(t, name, err)
	}
	return path
}

// Link ends a test whose links could not be made, which is no fault on Windows: there
// it takes a privilege.
func Link(t testing.TB, err error) {
	t.Helper()
	if err != nil && runtime.GOOS == "windows" {
		t.Skip("links need a privilege on Windows: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Many runs the tests of a package, four at a time on each processor unless -parallel says
// otherwise: for tests that mostly wait, for processes, servers and the disk. Their garbage
// is small, and is collected less often than by default.
type Many struct{ M *testing.M }

// Run runs them and returns the exit code, as [testing.M.Run] does.
func (m Many) Run() int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))) // a number, which the flag takes
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200)
	}
	return m.M.Run()
}
