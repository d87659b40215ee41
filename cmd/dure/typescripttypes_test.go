package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"dure/internal/prooftest"
)

// The compiler of TypeScript, as it is on npm, takes the types of the client for what they are
// meant to be: what programs do with every method of it, and what they must not.
func TestTypeScriptTypes(t *testing.T) {
	npm := os.Getenv("TYPESCRIPT")
	if npm == "" {
		prooftest.Lacking(t, "typescript", "TYPESCRIPT names no folder where npm has installed it")
	}
	compiler, err := filepath.Abs(filepath.Join(npm, "node_modules", "typescript", "lib", "tsc.js"))
	if err != nil {
		t.Fatal(err)
	}
	node := prooftest.Program(t, "node")
	const client = "../../sdk/typescript"
	uses, err := os.ReadFile("testdata/typescript/types.mts")
	if err != nil {
		t.Fatal(err)
	}
	methods, err := os.ReadFile(filepath.Join(client, "methods.d.ts"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^  (\w+)\(payload`).FindAllSubmatch(methods, -1)
	if len(declared) < 9 {
		t.Errorf("the methods are %q", declared)
	}
	for _, m := range declared {
		if !strings.Contains(string(uses), "host."+string(m[1])+"(") {
			t.Errorf("types.mts does not use %s", m[1])
		}
	}

	compile := func(t *testing.T, program string) (string, error) {
		t.Helper()
		dir := t.TempDir()
		modules := filepath.Join(dir, "node_modules", "dure-control")
		if err := os.MkdirAll(modules, 0o700); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"package.json", "control.d.ts", "methods.d.ts", "protocol.d.ts"} {
			data, err := os.ReadFile(filepath.Join(client, name))
			if err == nil {
				err = os.WriteFile(filepath.Join(modules, name), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "types.mts"), []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), sceneTime)
		defer stop()
		cmd := exec.CommandContext(ctx, node, compiler, "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022",
			"--lib", "es2022,esnext.disposable,dom", "types.mts")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := compile(t, string(uses)); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// And it looks: what is wrong is refused where nothing expects it.
	if out, err := compile(t, strings.ReplaceAll(string(uses), "@ts-expect-error", "")); err == nil || strings.Count(out, "error TS") != strings.Count(string(uses), "// @ts-expect-error") {
		t.Errorf("%v\n%s", err, out)
	}
}
