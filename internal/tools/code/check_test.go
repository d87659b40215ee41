package code

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
)

// What programs write when something is wrong, and what is found in it.
func TestFindings(t *testing.T) {
	for name, tt := range map[string]struct{ output, want string }{
		"go build": {
			"# x/pkg\npkg/a.go:3:5: undefined: x\npkg/a.go:3:5: undefined: x\n./b.go:10:2: declared and not used: y\nnote: module requires Go 1.99\n",
			"errors:\n  pkg/a.go:3: undefined: x\n  ./b.go:10: declared and not used: y\n",
		},
		"go test": {
			"--- FAIL: TestA (0.00s)\n    a_test.go:12: got 1, want 2\n    --- FAIL: TestA/sub_case (0.00s)\n        a_test.go:20: \n            one\nFAIL\nFAIL\tx/pkg\t0.003s\nFAIL\tx/bad [build failed]\nok  \tx/fine\t0.1s\n",
			"failing tests:\n  TestA\n  TestA/sub_case\n  x/bad [build failed]\nerrors:\n  a_test.go:12: got 1, want 2\n",
		},
		"go panic": {
			"panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/x.go:5 +0x1\n",
			"",
		},
		"go vet": {"# x\nvet: ./a.go:3:1: expected declaration\n", "errors:\n  ./a.go:3: expected declaration\n"},
		"tsc": {
			"src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\nsrc/b.ts(1,1): warning TS1: x\n",
			"errors:\n  src/a.ts:3: error TS2322: Type 'string' is not assignable to type 'number'.\n",
		},
		"eslint": {
			"\n/src/a.js\n  3:5   error    'x' is not defined  no-undef\n  4:1   warning  Unexpected console  no-console\n\n/src/b.js\n  1:1  error  Parsing error\n",
			"errors:\n  /src/a.js:3: error 'x' is not defined no-undef\n  /src/b.js:1: error Parsing error\n",
		},
		"pytest": {
			"tests/test_a.py:5: AssertionError\n=========================== short test summary info ============================\nFAILED tests/test_a.py::test_one - assert 1 == 2\nERROR tests/test_b.py - ImportError: no x\n1 failed in 0.02s\n",
			"failing tests:\n  tests/test_a.py::test_one\n  tests/test_b.py\nerrors:\n  tests/test_a.py:5: AssertionError\n",
		},
		"unittest": {
			"FAIL: test_x (tests.T)\n----\nTraceback (most recent call last):\n  File \"/src/t.py\", line 4, in test_x\n    self.assertEqual(1, 2)\nAssertionError: 1 != 2\n",
			"failing tests:\n  test_x (tests.T)\nerrors:\n  /src/t.py:4: AssertionError: 1 != 2\n",
		},
		"cargo": {
			"error[E0425]: cannot find value `x` in this scope\n --> src/main.rs:2:5\n  |\nwarning: unused variable\n --> src/lib.rs:1:1\ntest tests::works ... FAILED\ntest tests::fine ... ok\nthread 'tests::works' (123) panicked at src/lib.rs:10:5:\n",
			"failing tests:\n  tests::works\nerrors:\n  src/main.rs:2: error[E0425]: cannot find value `x` in this scope\n  src/lib.rs:10: thread 'tests::works' (123) panicked\n",
		},
		"gcc": {
			"a.c: In function 'main':\na.c:3:5: error: 'x' undeclared\na.c:4:5: warning: unused\nC:\\src\\b.c:7: fatal error: y.h: No such file\n",
			"errors:\n  a.c:3: error: 'x' undeclared\n  C:\\src\\b.c:7: fatal error: y.h: No such file\n",
		},
		"maven": {
			"[ERROR] /src/A.java:[12,5] cannot find symbol\n[ERROR] com.x.ATest.works -- Time elapsed: 0.1 s <<< FAILURE!\n",
			"failing tests:\n  com.x.ATest.works\nerrors:\n  /src/A.java:12: cannot find symbol\n",
		},
		"gradle": {
			"e: file:///src/A.kt:3:5 Unresolved reference: x\nATest > works FAILED\n",
			"failing tests:\n  ATest > works\nerrors:\n  /src/A.kt:3: Unresolved reference: x\n",
		},
		"dotnet": {
			"A.cs(1,2): error CS1002: ; expected [/src/x.csproj]\n  Failed X.Tests.Works [3 ms]\n",
			"failing tests:\n  X.Tests.Works\nerrors:\n  A.cs:1: error CS1002: ; expected [/src/x.csproj]\n",
		},
		"jest":   {"  ● suite › works\n\n    expect(1)\n", "failing tests:\n  suite › works\n"},
		"node":   {"✖ works (1.2ms)\n✔ fine (1ms)\n", "failing tests:\n  works\n"},
		"tap":    {"ok 1 - fine\nnot ok 2 - works\n", "failing tests:\n  works\n"},
		"rspec":  {"rspec ./spec/a_spec.rb:4 # works\n", "failing tests:\n  ./spec/a_spec.rb:4\n"},
		"clocks": {"12:30:45 starting\nsee http://x.org:80: no\n2026-01-01 00:00:00: hello\n", ""},
		"many": {
			strings.Repeat("x.go:1: a\n", 3) + manyLines(25), "errors:\n  x.go:1: a\n" + strings.ReplaceAll(manyLines(19), "x.go", "  x.go") + "  [6 more]\n",
		},
	} {
		if got := find(tt.output).String(); got != tt.want {
			t.Errorf("%s:\n%s\n-- want\n%s", name, got, tt.want)
		}
	}
}

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x.go:%d: b\n", i+100)
	}
	return b.String()
}

func FuzzFind(f *testing.F) {
	f.Add("a.go:1:2: x\n--- FAIL: T\n --> a.rs:1:1\n")
	f.Add("error: x\n/a.js\n  1:1  error  x\n")
	f.Fuzz(func(t *testing.T, output string) {
		r := find(output)
		if len(r.errors) > maxFindings || len(r.tests) > maxFindings || len(r.String()) > 2*maxFindings*700 {
			t.Errorf("%d errors, %d tests, %d bytes", len(r.errors), len(r.tests), len(r.String()))
		}
	})
}

// How a project is built and tested is told by its files.
func TestProjects(t *testing.T) {
	py := python()
	for name, tt := range map[string]struct {
		files map[string]string
		kind  string
		want  [][]string
		fault string
	}{
		"go":           {map[string]string{"go.mod": ""}, kindAll, [][]string{{"go", "build", "./..."}, {"go", "test", "./..."}}, ""},
		"go and make":  {map[string]string{"go.mod": "", "Makefile": "test:\n\tx\n"}, kindTest, [][]string{{"go", "test", "./..."}}, ""},
		"cargo":        {map[string]string{"Cargo.toml": ""}, kindBuild, [][]string{{"cargo", "build", "--all-targets"}}, ""},
		"npm":          {map[string]string{"package.json": `{"scripts":{"build":"tsc","test":"jest"}}`}, kindAll, [][]string{{"npm", "run", "build"}, {"npm", "run", "test"}}, ""},
		"pnpm":         {map[string]string{"package.json": `{"scripts":{"test":"jest"}}`, "pnpm-lock.yaml": ""}, kindAll, [][]string{{"pnpm", "run", "test"}}, ""},
		"npm init":     {map[string]string{"package.json": `{"scripts":{"test":"echo \"Error: no test specified\" && exit 1"}}`}, kindTest, nil, "no project here of which it is known how to test it"},
		"broken JSON":  {map[string]string{"package.json": `{`}, kindTest, nil, "no project here"},
		"node as well": {map[string]string{"package.json": `{}`, "Makefile": "x: y\n\tz: q\nall test: x\n"}, kindTest, [][]string{{"make", "test"}}, ""},
		"python":       {map[string]string{"pyproject.toml": ""}, kindAll, [][]string{{py, "-m", "pytest", "-q"}}, ""},
		"python build": {map[string]string{"pyproject.toml": ""}, kindBuild, nil, "no project here of which it is known how to build it"},
		"maven":        {map[string]string{"pom.xml": ""}, kindTest, [][]string{{"mvn", "-q", "-B", "test"}}, ""},
		"gradle":       {map[string]string{"build.gradle.kts": ""}, kindBuild, [][]string{{"gradle", "--console=plain", "assemble"}}, ""},
		"dotnet":       {map[string]string{"x.csproj": ""}, kindTest, [][]string{{"dotnet", "test"}}, ""},
		"make":         {map[string]string{"Makefile": "CC := gcc\nbuild check: x\n\tall: no\n"}, kindAll, [][]string{{"make", "build"}, {"make", "check"}}, ""},
		"below":        {map[string]string{"app/go.mod": "", "docs/x.md": "", ".hidden/go.mod": "", "node_modules/package.json": "{}"}, kindTest, [][]string{{"go", "test", "./..."}}, ""},
		"several":      {map[string]string{"app/go.mod": "", "web/package.json": `{"scripts":{"test":"x"}}`}, kindTest, nil, "there are several projects: app, web"},
		"nothing":      {nil, kindAll, nil, "no project here of which it is known how to build and test it"},
		"a folder":     {map[string]string{"go.mod/x": ""}, kindTest, nil, "no project here"},
	} {
		d := newDesk(t)
		for file, text := range tt.files {
			d.put(file, text)
		}
		e, err := d.tools["check"].Plan(t.Context(), d.context(), d.call(in{"kind": tt.kind}))
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %+v %v", name, e, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(e, agent.Effects{Commands: commands(tt.want)}) {
			t.Errorf("%s: %+v %v", name, e, err)
		}
	}
	// The nearest project above the working folder, within the workspace.
	d := newDesk(t)
	d.put("go.mod", "")
	d.put("sub/deep/x.go", "")
	p, err := d.code.project(filepath.Join(d.root, "sub", "deep"), kindTest)
	if err != nil || p.dir != d.root {
		t.Errorf("%+v %v", p, err)
	}
}

// A project's own wrapper is run, by its whole name.
func TestWrapper(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the wrapper is a shell script")
	}
	d := newDesk(t)
	d.put("build.gradle", "")
	d.put("gradlew", "#!/bin/sh\necho \"$@ $CI\"; pwd\n")
	want := [][]string{{filepath.Join(d.root, "gradlew"), "--console=plain", "assemble"}, {filepath.Join(d.root, "gradlew"), "--console=plain", "test"}}
	e, err := d.tools["check"].Plan(t.Context(), d.context(), d.call(in{"kind": "all"}))
	if err != nil || !reflect.DeepEqual(e.Commands, commands(want)) {
		t.Errorf("%+v %v", e, err)
	}
	r := d.do("check", in{"kind": "all"})
	got := seconds.ReplaceAllString(strings.ReplaceAll(r.Text, d.root, "ROOT"), "(N s)")
	if want := "ROOT/gradlew --console=plain assemble: passed (N s)\nROOT/gradlew --console=plain test: passed (N s)\n--- output ---\n" +
		"$ ROOT/gradlew --console=plain assemble\n--console=plain assemble 1\nROOT\n$ ROOT/gradlew --console=plain test\n--console=plain test 1\nROOT"; got != want {
		t.Errorf("%s\n-- want\n%s", got, want)
	}
	d.put("gradlew", "#!/bin/sh\nexit 3\n")
	if r := d.do("check", in{"kind": "all"}); strings.Contains(r.Text, "test:") || !strings.Contains(r.Text, "failed with exit code 3") {
		t.Errorf("it went on after the build had failed: %s", r.Text)
	}
}

var seconds = regexp.MustCompile(`\([\d.]+ s\)`)

// Failing checks are counted and end in a refusal; a check that passes, and the
// user, begin anew.
func TestRounds(t *testing.T) {
	skipWithoutShell(t)
	d := newDesk(t)
	fail, pass := in{"command": "echo a.go:3: broken >&2; exit 1"}, in{"command": "true"}
	text := func(input in) string {
		return seconds.ReplaceAllString(d.do("check", input).Text, "(N s)")
	}
	want := "echo a.go:3: broken >&2; exit 1: failed with exit code 1 (N s)\nerrors:\n  a.go:3: broken\n[1 of 5 failed checks in a row]\n--- output ---\na.go:3: broken"
	if got := text(fail); got != want {
		t.Errorf("%s\n-- want\n%s", got, want)
	}
	if got := text(pass); got != "true: passed (N s)" {
		t.Errorf("%q", got)
	}
	for range 5 {
		if r := d.do("check", fail); r.Failed() {
			t.Errorf("a check that did its work is a failure: %+v", r)
		}
	}
	refusal := "5 checks in a row have failed, which is the most that are made\nStop mending. Tell the user what fails, what you have tried, and what you think is the cause."
	if r := d.do("check", pass); r.Text != refusal || r.Error == nil || r.Error.Code != agent.ErrTool {
		t.Errorf("%+v", r)
	}
	d.code.Reset()
	r := d.do("check", fail)
	var a checkAnswer
	if err := json.Unmarshal(r.Output, &a); err != nil {
		t.Fatal(err)
	}
	a.Seconds = 0
	if want := (checkAnswer{Commands: []string{fail["command"].(string)}, ExitCode: 1, Tests: []string{}, Errors: []finding{{"a.go", 3, "broken"}}, Round: 1}); !reflect.DeepEqual(a, want) {
		t.Errorf("%+v\nwant %+v", a, want)
	}
}

// Long output is streamed whole, behind its summary.
func TestLongOutput(t *testing.T) {
	skipWithoutShell(t)
	d := newDesk(t)
	r := d.do("check", in{"command": "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; echo '--- FAIL: TestX (0.1s)'; exit 2"})
	if r.Stream == nil {
		t.Fatalf("%+v", r)
	}
	data, err := io.ReadAll(r.Stream)
	r.Stream.Close()
	text := string(data)
	if err != nil || !strings.Contains(text, "failing tests:\n  TestX\n") || !strings.Contains(text, "--- output ---\nline 0\n") || !strings.Contains(text, "line 2999\n") {
		t.Errorf("%d bytes, %v: %.300s", len(text), err, text)
	}
}

func commands(list [][]string) (all []agent.SimpleCommand) {
	for _, argv := range list {
		all = append(all, agent.SimpleCommand{Argv: argv})
	}
	return all
}

func TestCheckPlan(t *testing.T) {
	d := newDesk(t)
	plan := d.tools["check"].Plan
	e, err := plan(t.Context(), d.context(), d.call(in{"command": " make -j2 test "}))
	if err != nil || !reflect.DeepEqual(e.Commands, commands([][]string{{"sh", "-c", "make -j2 test"}})) || e.Unreadable == "" {
		t.Errorf("%+v %v", e, err)
	}
	for _, bad := range []in{{"command": "a\x00b"}, {"kind": "deploy"}} {
		if _, err := plan(t.Context(), d.context(), d.call(bad)); err == nil {
			t.Errorf("%v is planned", bad)
		}
	}
	// What is run is what was decided about.
	d.put("go.mod", "")
	c := d.call(in{})
	if _, err := plan(t.Context(), d.context(), c); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(d.root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	d.put("Makefile", "test:\n\ttouch ran\n")
	if r, err := d.tools["check"].Run(t.Context(), d.context(), c); err != nil || !r.Failed() || r.Error.Code != errFileChanged {
		t.Errorf("%+v %v", r, err)
	}
}

// A check that is cancelled is over at once, and counts for nothing.
func TestCheckCancelled(t *testing.T) {
	skipWithoutShell(t)
	d := newDesk(t)
	ctx, cancel := context.WithCancel(t.Context())
	ctx = agent.WithCallEnv(ctx, agent.CallEnv{Progress: func(string) { cancel() }})
	r, err := d.tools["check"].Run(ctx, d.context(), d.call(in{"command": "echo begun; sleep 60"}))
	if err != nil || !r.Failed() || r.Error.Code != agent.ErrAborted || d.code.failed != 0 {
		t.Errorf("%+v %v", r, err)
	}
}

// The loop in earnest: a test fails, is mended, and passes.
func TestCheckGo(t *testing.T) {
	prooftest.Program(t, "go")
	d := newDesk(t)
	d.put("go.mod", "module x\n\ngo 1.26\n")
	d.put("a_test.go", "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {\n\tt.Error(\"broken\")\n}\n")
	if r := d.do("check", in{}); !strings.Contains(r.Text, "failing tests:\n  TestA\nerrors:\n  a_test.go:6: broken\n") {
		t.Errorf("%+v", r)
	}
	d.put("a_test.go", "package x\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n")
	if r := d.do("check", in{}); !strings.HasPrefix(r.Text, "go test ./...: passed") || d.code.failed != 0 {
		t.Errorf("%+v", r)
	}
}

func skipWithoutShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for sh")
	}
}
