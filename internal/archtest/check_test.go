package archtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// Each rule is given a small module that breaks it, and one that keeps it.
func TestRules(t *testing.T) {
	small := []Layer{
		{Paths: []string{"agent", "client"}},
		{Paths: []string{"internal/low"}, May: []string{"client"}},
		{Paths: []string{"internal/high"}, May: []string{"internal/low/a"}},
		{Paths: []string{"internal/app", "cmd"}, May: []string{"internal/high", "internal/low", "internal/app"}},
	}
	sideways := []Exception{{"internal/low/b", "internal/low/a", "b is made of a"}}
	for _, tt := range []struct {
		name  string
		check func(*Tree) []Fault
		files map[string]string
		want  []string
	}{
		{
			name:  "wiring grows",
			check: CheckWiring,
			files: map[string]string{
				"internal/app/a.go":        "package app\ntype App struct{}\n" + strings.Repeat("func (a *App) m() {}\n", maxAppMethods+1),
				"internal/app/b.go":        "package app\n" + strings.Repeat("\n", maxWiring),
				"internal/app/a_test.go":   "package app\n" + strings.Repeat("\n", maxWiring),
				"internal/app/config/c.go": "package config\n" + strings.Repeat("\n", maxWiring),
			},
			want: []string{
				fmt.Sprintf("internal/app/b.go: it has %d lines, more than %d", maxWiring+1, maxWiringFile),
				fmt.Sprintf("internal/app: it has %d lines, more than %d: move a capability into a package of its own", maxWiring+maxAppMethods+4, maxWiring),
				fmt.Sprintf("internal/app: App has %d methods, more than %d: ask a capability with a query", maxAppMethods+1, maxAppMethods),
			},
		},
		{
			name: "tables by session",
			check: func(t *Tree) []Fault {
				return CheckTables(t, map[string]string{"App.answers": "name of a query", "App.gone": "key"})
			},
			files: map[string]string{
				"internal/app/a.go":        "package app\ntype App struct {\n\tanswers map[string]int\n\tcounts map[int]int\n\topen sync.Map\n\tof struct{ all, more map[string]*App }\n}",
				"internal/app/a_test.go":   "package app\ntype rig struct{ all map[string]int }",
				"internal/app/config/c.go": "package config\ntype C struct{ all map[string]int }",
			},
			want: []string{
				"internal/app/a.go:5: App.open is a table: what is known of a session belongs to its capability",
				"internal/app/a.go:6: App.all is a table: what is known of a session belongs to its capability",
				"internal/app/a.go:6: App.more is a table: what is known of a session belongs to its capability",
				"internal/app: there is no table App.gone: take it off the list",
			},
		},
		{
			name:  "lookups by name",
			check: CheckLookups,
			files: map[string]string{
				"internal/app/a.go":            "package app\nfunc f(s S) bool {\n\tswitch s.Name {\n\t}\n\treturn s.Name == \"\" || s.Name == other ||\n\t\ts.Name != \"policy\"\n}",
				"internal/kernel/session/b.go": "package session\nfunc f(s S) bool { return s.At == \"x\" || s.Name == \"hooks\" }",
				"internal/app/config/c.go":     "package config\nfunc f(s S) bool { return s.Name == \"hooks\" }",
			},
			want: []string{
				"internal/app/a.go:3: something is looked up by its name: give it a place of its own in plug.Points",
				"internal/app/a.go:6: something is looked up by its name: give it a place of its own in plug.Points",
				"internal/kernel/session/b.go:2: something is looked up by its name: give it a place of its own in plug.Points",
			},
		},
		{
			name:  "interfaces are small",
			check: CheckInterfaces,
			files: map[string]string{
				"a/a.go": "package a\ntype (\n\tSmall interface{ A(); B() }\n\tLarge interface {\n" + strings.Repeat("\t\tM()\n", maxInterface+1) + "\t}\n)",
			},
			want: []string{fmt.Sprintf("a/a.go:4: an interface has %d methods, more than %d", maxInterface+1, maxInterface)},
		},
		{
			name:  "contracts grow",
			check: func(t *Tree) []Fault { return CheckContracts(t, []string{"a.Large", "a.Small", "a.Lost"}) },
			files: map[string]string{
				"a/a.go": "package a\nimport \"dure/b\"\ntype Own struct{ A, B, C int; own *Own }\ntype Shared struct{ A, B, C int }\nfunc use(Shared) {}\n" +
					"type Small struct {\n\tShared\n\tC b.Other\n" + strings.Repeat("\tF int\n", maxContract-2) + "}\n" +
					"type Large struct {\n\tOwn\n\tb map[string]b.B\n" + strings.Repeat("\tF int\n", maxContract-2) + "}\n",
				"b/b.go": "package b\ntype (\n\tB struct{ A int }\n\tOther struct{ A, B int }\n\tUser struct{ o []Other }\n)",
			},
			want: []string{
				fmt.Sprintf("a/a.go:%d: a.Large has %d fields, more than %d: move a field to the capability that needs it", 7+maxContract+1, maxContract+5, maxContract),
				"a.Lost: there is no such contract",
			},
		},
		{
			name:  "imports go downwards",
			check: func(t *Tree) []Fault { return CheckLayers(t, small, sideways) },
			files: map[string]string{
				"internal/low/a/a.go":      "package a\nimport _ \"dure/agent\"\nimport _ \"dure/internal/low/a/part\"",
				"internal/low/a/part/p.go": "package part\nimport _ \"dure/internal/low/a\"",
				"internal/low/b/b.go":      "package b\nimport _ \"dure/internal/low/a/part\"\nimport _ \"dure/client/remote\"",
				"internal/high/c/c.go":     "package c\nimport _ \"dure/internal/low/a\"",
				"internal/app/app.go":      "package app\nimport _ \"dure/internal/high/c\"",
				"cmd/dure/main.go":         "package main\nimport _ \"dure/internal/app\"",
				"internal/low/a/a_test.go": "package a\nimport _ \"dure/internal/app\"",
			},
		},
		{
			name:  "imports sideways, upwards and into the unknown",
			check: func(t *Tree) []Fault { return CheckLayers(t, small, sideways) },
			files: map[string]string{
				"internal/low/a/a.go":   "package a\nimport _ \"dure/internal/low/b\"",
				"internal/low/ab/ab.go": "package ab\n\nimport (\n\t\"fmt\"\n\t_ \"dure/internal/app\"\n\t_ \"dure/internal/lower\"\n)",
				"internal/high/c/c.go":  "package c\nimport _ \"dure/internal/low/b\"",
				"agent/x.go":            "package agent\nimport _ \"dure/internal/low/a\"",
				"internal/lower/n.go":   "package n",
			},
			want: []string{
				"agent/x.go:2: agent must not import internal/low/a",
				"internal/high/c/c.go:2: internal/high/c must not import internal/low/b",
				"internal/low/a/a.go:2: internal/low/a must not import internal/low/b",
				"internal/low/ab/ab.go:5: internal/low/ab must not import internal/app",
				"internal/low/ab/ab.go:6: internal/low/ab must not import internal/lower",
				"internal/lower/n.go: package internal/lower has no layer: add it to Layers",
				"internal/low/b: nothing needs the exception for internal/low/a: delete it",
			},
		},
		{
			name: "a table that leads upwards",
			check: func(t *Tree) []Fault {
				return CheckTable(t, append(small[:3:3], Layer{Paths: []string{"internal/gone"}}, small[3], Layer{Paths: []string{"internal/top"}, May: []string{"internal/high", "internal/far"}}),
					[]Exception{{"internal/low/a", "internal/high", "no"}, {"internal/high/c", "internal/low/b", "yes"}})
			},
			files: map[string]string{
				"agent/a.go": "package agent", "client/c.go": "package client", "internal/low/a/a.go": "package a", "internal/high/c/c.go": "package c",
				"internal/app/a.go": "package app", "cmd/dure/m.go": "package main", "internal/top/t.go": "package top",
			},
			want: []string{
				"internal/gone: has a layer and no packages",
				"internal/top: may import internal/far, which is not below it",
				"internal/low/a: has an exception for internal/high, which is above it",
			},
		},
		{
			name:  "more than a reader keeps in mind",
			check: func(t *Tree) []Fault { return CheckTable(t, nil, make([]Exception, 13)) },
			files: map[string]string{
				"internal/a/x.go": "package a", "internal/b/x.go": "package b", "internal/b/c/x.go": "package c",
			},
			want: []string{"internal: 0 layers, 13 exceptions, 2 folders: at most 13, 12 and 14"},
		},
		{
			name:  "rooms that import each other",
			check: CheckCycles,
			files: map[string]string{
				"internal/low/a/a.go":      "package a\nimport _ \"dure/internal/low/b\"\nimport _ \"dure/agent\"",
				"internal/low/b/b.go":      "package b\nimport _ \"dure/internal/low/c\"",
				"internal/low/c/part/c.go": "package part\nimport _ \"dure/internal/low/a/part\"\nimport _ \"dure/internal/low/c\"",
			},
			want: []string{"internal/low/a: imports itself: internal/low/a → internal/low/b → internal/low/c → internal/low/a"},
		},
		{
			name:  "imports that nobody has",
			check: CheckImports,
			files: map[string]string{
				"agent/a.go":                  "package agent\nimport \"example.org/x\"\nimport \"context\"",
				"internal/a/a.go":             "package a\nimport (\n\"log\"\n\"C\"\n\"log/slog\"\n\"testing\"\n)",
				"internal/a/storetest/run.go": "package storetest\nimport \"testing\"",
			},
			want: []string{
				"agent/a.go:2: imports example.org/x: the vocabulary uses the standard library only",
				"internal/a/a.go:3: imports log: use log/slog at the edges, return errors elsewhere",
				"internal/a/a.go:4: imports C: the binary is built without cgo",
				"internal/a/a.go:6: imports testing: only tests, and packages whose names end in test, may",
			},
		},
		{
			name: "powers belong to few",
			check: func(t *Tree) []Fault {
				return CheckPowers(t, []Power{{Import: "os/exec", Packages: []string{"internal/a"}, Why: "no"}})
			},
			files: map[string]string{
				"internal/a/sub/a.go":  "package sub\nimport \"os/exec\"",
				"internal/ab/a.go":     "package ab\nimport \"os/exec\"",
				"internal/b/b_test.go": "package b\nimport \"os/exec\"",
			},
			want: []string{"internal/ab/a.go:2: imports os/exec: no"},
		},
		{
			name:  "reading the environment, also under another name",
			check: CheckEnvironment,
			files: map[string]string{
				"internal/app/config/c.go": "package config\nimport \"os\"\nvar x = os.Getenv(\"X\")",
				"internal/a/a.go":          "package a\nimport sys \"os\"\nvar x, _ = sys.LookupEnv(\"X\")\nvar y = sys.Args",
				"internal/b/b.go":          "package b\nvar os struct{ Getenv int }\nvar x = os.Getenv",
				"internal/c/c_test.go":     "package c\nimport \"os\"\nvar x = os.Getenv(\"X\")",
				"cmd/dure/main.go":         "package main\nimport \"os\"\nvar x = os.Environ()",
			},
			want: []string{"internal/a/a.go:3: sys.LookupEnv reads the environment: take it from the Config"},
		},
		{
			name:  "package comments",
			check: CheckComments,
			files: map[string]string{
				"internal/a/a.go":      "// Package a keeps things\n// and starts nothing.\npackage a",
				"internal/a/b.go":      "package a",
				"internal/b/a.go":      "package b",
				"internal/c/a.go":      "// Package c is one line.\npackage c",
				"internal/d/a.go":      "// Package d\n// keeps.\npackage d",
				"internal/d/b.go":      "// Package d\n// again.\npackage d",
				"internal/e/a.go":      "// Package e" + strings.Repeat("\n// and more", 10) + "\npackage e",
				"internal/f/f_test.go": "package f",
			},
			want: []string{
				"internal/b: has no package comment: " + commentHint,
				"internal/c/a.go:1: package comment of 1 lines: " + commentHint + ", in 2 to 10 lines",
				"internal/d/b.go:1: another package comment is in internal/d/a.go",
				"internal/e/a.go:1: package comment of 11 lines: " + commentHint + ", in 2 to 10 lines",
			},
		},
		{
			name: "sizes, and an allow list that shrinks",
			check: func(t *Tree) []Fault {
				return CheckSizes(t, map[string]int{"internal/a/a.go: old": 90, "internal/a/a.go: mended": 85, "internal/a/long.go": 900})
			},
			files: map[string]string{
				"internal/a/a.go": "package a\n" +
					"func fits() {" + strings.Repeat("\n", 79) + "}\n" +
					"func long() {" + strings.Repeat("\n", 80) + "}\n" +
					"func old() {" + strings.Repeat("\n", 89) + "}\n" +
					"func mended() {\n}\n",
				"internal/a/long.go":    "package a" + strings.Repeat("\n//", 900),
				"internal/a/most.go":    "package a" + strings.Repeat("\n//", 799),
				"internal/a/over.go":    "package a" + strings.Repeat("\n//", 800),
				"internal/a/of_test.go": "package a\nfunc table() {" + strings.Repeat("\n", 200) + "}\n",
			},
			want: []string{
				"internal/a/a.go:82: internal/a/a.go: long has 81 lines, more than 80",
				"internal/a/a.go:253: internal/a/a.go: mended has 2 lines now: mend its entry in the allow list",
				"internal/a/long.go: internal/a/long.go has 901 lines, more than 900",
				"internal/a/over.go: internal/a/over.go has 801 lines, more than 800",
			},
		},
		{
			name:  "words that name nothing",
			check: CheckNames,
			files: map[string]string{
				"internal/util/x.go":        "package util",
				"internal/a/read_helper.go": "package a\ntype ToolManager struct{}\nfunc newServiceX() {}\nfunc hardcore() { coreDump() }",
				"internal/b/h.go":           "package b\nimport \"net/http\"\ntype pageHandler struct{}",
				"internal/c/h.go":           "package c\ntype pageHandler struct{}",
			},
			want: []string{
				`internal/a/read_helper.go: read_helper: the word "helper" says nothing here`,
				`internal/a/read_helper.go:2: ToolManager: the word "manager" says nothing here`,
				`internal/a/read_helper.go:3: newServiceX: the word "service" says nothing here`,
				`internal/c/h.go:2: pageHandler: the word "handler" says nothing here`,
				`internal/util/x.go:1: util: the word "util" says nothing here`,
			},
		},
		{
			name:  "tests that sleep",
			check: func(t *Tree) []Fault { return CheckSleeps(t, map[string]string{"internal/b/b_test.go": "measures"}) },
			files: map[string]string{
				"internal/a/a_test.go": "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }",
				"internal/a/s_test.go": "package a\nimport (\n\"time\"\n\"testing/synctest\"\n)\nfunc g() { time.Sleep(1); synctest.Wait() }",
				"internal/b/b_test.go": "package b\nimport \"time\"\nfunc f() { time.Sleep(1) }",
				"internal/c/c.go":      "package c\nimport \"time\"\nfunc f() { time.Sleep(1) }",
			},
			want: []string{"internal/a/a_test.go:3: time.Sleep in a test: use testing/synctest or wait for what you wait for"},
		},
		{
			name: "phrases",
			check: func(t *Tree) []Fault {
				return CheckWords(t, append(Phrases, Literal("/where/it/was", "a path"), Phrase{Match: regexp.MustCompile("h[ou]st"), Has: []string{"st"}, Why: "a host"}))
			},
			files: map[string]string{
				"docs/x.md":       "one\nsee issue 12 and /where/it/was/built, it failed to start\n",
				"internal/a/a.go": "package a\n\n// TODO: later\nvar err = \"failed to open\"\n",
				"testdata/s.txt":  "no such hust\n",
				"go.sum":          "host",
			},
			want: []string{
				`docs/x.md:2: "issue 1": say what the thing is: readers have no list of issues`,
				`docs/x.md:2: "/where/it/was": a path`,
				`internal/a/a.go:3: "// TODO": do it, or leave it out`,
				`internal/a/a.go:4: "\"failed to": an error says what was being done: reading x: cause`,
				`testdata/s.txt:1: "hust": a host`,
			},
		},
		{
			name:  "dependencies are argued for",
			check: CheckDeps,
			files: map[string]string{
				"go.mod":               "module dure\n\ngo 1.26.0\n\nrequire example.org/one v1.0.0\n\nrequire (\n\texample.org/one/v2 v2.0.0\n\texample.org/far v0.1.0 // indirect\n)\n",
				"internal/a/a.go":      "package a\nimport \"example.org/one/v2/part\"",
				"internal/a/a_test.go": "package a\nimport \"example.org/one\"",
				"docs/deps.md":         "| module |\n|---|\n| `example.org/one` | tests |\n| `example.org/far` | why |\n",
			},
			want: []string{
				`docs/deps.md: module "example.org/one/v2" is not described`,
				`docs/deps.md: module "example.org/far" does not exist`,
			},
		},
		{
			name:  "every event and field is described",
			check: CheckEvents,
			files: map[string]string{
				"agent/e.go": "package agent\ntype (\n\tOne struct {\n\t\tA int `json:\"a\"`\n\t\tB int `json:\"b,omitempty\"`\n\t\tInner\n\t\tC int `json:\"-\"`\n\t}\n\tInner struct {\n\t\tD int `json:\"d\"`\n\t}\n\tTwo struct{}\n\tU struct{ n string }\n)\n" +
					"func (One) Kind() string { return \"one.done\" }\nfunc (Two) Kind() string { return \"two.done\" }\nfunc (u U) Kind() string { return u.n }",
				"docs/events.md": "# Events\n\n### `one.done`\n\n| field | |\n|---|---|\n| `a` | x |\n| `e` | x |\n\n### `three.done`\n",
			},
			want: []string{
				`docs/events.md: event "two.done" is not described`,
				`docs/events.md: event "three.done" does not exist`,
				`docs/events.md: one.done field "b" is not described`,
				`docs/events.md: one.done field "d" is not described`,
				`docs/events.md: one.done field "e" does not exist`,
			},
		},
		{
			name:  "every code is described in its section",
			check: CheckErrors,
			files: map[string]string{
				"agent/e.go":                 "package agent\nconst (\n\tA ErrorCode = \"E_A\"\n\tB ErrorCode = \"E_B\"\n\tC FailureClass = \"c\"\n)\nconst D EndReason = \"d\"",
				"docs/errors.md":             "# Errors\n\n## Tool errors\n\n| `E_A` | x |\n| `c` | x |\n\n## Model failures\n\n| `c` | x |\n\n## Ends of a turn\n\n| `d` | x |\n\n## Errors of the built-in tools\n\n| `E_T` | x |\n\n## Exit codes\n\n| `0` | x |\n| `9` | x |\n",
				"internal/tools/t.go":        "package tools\nvar a, b = \"E_T\", \"E_U\"",
				"docs/guide.md":              "# Guide\n\n## In scripts\n\n| `x` | x |\n\n### Exit codes\n\n| `0` | x |\n| `2` | x |\n\n### More\n\n| `y` | x |\n",
				"docs/ko/guide.md":           "# Guide\n\n### 종료 코드\n\n| `2` | x |\n| `3` | x |\n",
				"internal/frontend/cli/e.go": "package cli\nconst (\n\tExitOK = 0\n\tExitBad = 2\n\tOther = 7\n)",
			},
			want: []string{
				`docs/errors.md: ErrorCode "E_B" is not described`,
				`docs/errors.md: ErrorCode "c" does not exist`,
				`docs/errors.md: tool's code "E_U" is not described`,
				`docs/errors.md: exit code "2" is not described`,
				`docs/errors.md: exit code "9" does not exist`,
				`docs/ko/guide.md: exit code "0" is not described`,
				`docs/ko/guide.md: exit code "3" does not exist`,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := faultsOf(t, tt.check, tt.files)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}

func faultsOf(t *testing.T, check func(*Tree) []Fault, files map[string]string) []string {
	t.Helper()
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	tree, err := Load(fsys)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range check(tree) {
		got = append(got, fmt.Sprint(f))
	}
	return got
}

func TestLoadLeavesOutWhatIsNotTheModule(t *testing.T) {
	got := faultsOf(t, func(tree *Tree) []Fault {
		var all []Fault
		for _, p := range tree.Text {
			all = append(all, Fault{Path: p.Path, What: "text"})
		}
		for _, f := range tree.Go {
			all = append(all, Fault{Path: f.Path, What: "go"})
		}
		return all
	}, map[string]string{
		"go.mod":                   "module dure",
		"a/a.go":                   "package a",
		"a/testdata/broken.go":     "packag",
		"tools/go.mod":             "module tools",
		"tools/x.go":               "package x",
		".git/config":              "x",
		"dist/dure":                "x",
		"a/a.test":                 "x",
		"docs/architecture/p.md":   "x",
		"internal/distance/bin.go": "package distance",
	})
	want := []string{
		"a/a.go: text", "a/testdata/broken.go: text", "docs/architecture/p.md: text",
		"go.mod: text", "internal/distance/bin.go: text", "a/a.go: go", "internal/distance/bin.go: go",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loaded (-want +got):\n%s", diff)
	}
}
