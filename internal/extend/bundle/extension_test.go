package bundle

import (
	"strings"
	"testing"
	"testing/fstest"
)

// An extension is a module, an executable, or one that the program was built with, whose
// version is told.
func TestExtensionRuntimes(t *testing.T) {
	for spec, want := range map[string]string{
		"{ runtime: builtin, entry: known }":  "",
		"{ runtime: builtin, entry: other }":  "the program has no extension other",
		"{ runtime: mcp, entry: known }":      "there are no extensions of the runtime mcp",
		"{ runtime: node, entry: known }":     "the file known cannot be used",
		"{ runtime: process, entry: run.sh }": "",
		"{ entry: run.sh }":                   "",
	} {
		b, list := Load(Options{
			Sources: []Source{{FS: fstest.MapFS{
				"run.sh":       {Data: []byte("#!/bin/sh\n")},
				"goondan.yaml": {Data: []byte("apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: x }\nspec: " + spec + "\n")},
			}}},
			Compiled: func(name string) (string, bool) { return "1.2", name == "known" },
		})
		var said []string
		for _, p := range list {
			said = append(said, p.Message)
		}
		if got := strings.Join(said, "; "); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %s", spec, got)
		}
		if want != "" {
			continue
		}
		r := b.Report(list).Resources[0]
		if builtin := strings.Contains(spec, "builtin"); builtin != (r.Version == "1.2") || r.Runtime == "" {
			t.Errorf("%s: %+v", spec, r)
		}
	}
}
