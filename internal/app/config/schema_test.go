package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "rewrite the published schema")

// The published schema is the one that the table makes.
func TestSchemaIsPublished(t *testing.T) {
	const path = "../../../docs/settings.schema.json"
	if *update {
		if err := os.WriteFile(path, Schema(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(data, Schema()) {
		t.Errorf("%s is not what the table says (%v): go test ./internal/app/config -run SchemaIsPublished -update", path, err)
	}
}

// What the schema takes and what is read are the same.
func TestSchemaAgrees(t *testing.T) {
	skipWindows(t)
	var s jsonschema.Schema
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	schema, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		file string
		good bool
	}{
		{wishes, true},
		{`{"providers": {"p": {"type": "chat", "headers": {"a": "b"}}}, "profiles": {"chat": {"model": "x"}}, "env": {"A": "b"}}`, true},
		{`{"$schema": "x", "unknown": 1}`, true},
		{`{"model": 1}`, false},
		{`{"maxSteps": 1.5}`, false},
		{`{"maxSteps": -1}`, false},
		{`{"permissions": {"defaultMode": "yolo"}}`, false},
		{`{"permissions": {"defaultMode": "manual"}}`, true},
		{`{"permissions": {"deny": ["Bash", {"tool": "Write"}]}}`, true},
		{`{"permissions": {"deny": "Bash"}}`, false},
		{`{"compact": {"threshold": 2}}`, false},
		{`{"env": {"A": 1}}`, false},
		{`{"enabledPlugins": {"a@b": true}, "skillOverrides": {"a": "off"}}`, true},
		{`{"enabledPlugins": {"a@b": "yes"}}`, false},
		{`{"providers": {"p": {"type": "x"}}}`, false},
		{`{"language": "fr"}`, false},
		{`{"reflexion": {"maxEntries": 51}}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(tt.file), &v); err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(v); (err == nil) != tt.good {
			t.Errorf("%s: the schema says %v", tt.file, err)
		}
		if _, err := Load(machine{files: map[string]string{userFile: tt.file}}.sources()); (err == nil) != tt.good {
			t.Errorf("%s: reading it says %v", tt.file, err)
		}
	}
}

// Every default that the table names is one that can be set.
func TestDefaultsAreValues(t *testing.T) {
	skipWindows(t)
	for _, k := range Keys() {
		if k.Default == "" || k.Path == "$schema" {
			continue
		}
		said := &written{}
		to := said
		for _, word := range bytes.Split([]byte(k.Path), []byte(".")) {
			to = to.kid(string(word))
		}
		to.raw = json.RawMessage(k.Default)
		var f spelling
		f.write(said)
		before, err := Load(machine{}.sources())
		if err != nil {
			t.Fatal(err)
		}
		if c, err := Load(machine{files: map[string]string{userFile: f.out.String()}}.sources()); err != nil {
			t.Errorf("%s: %v", k.Path, err)
		} else if k.Path == "compact.threshold" || k.Path == "memory.depth" {
			continue // left to others where nobody says anything
		} else if c.Mode != before.Mode || c.Model != before.Model || c.Compact.Auto != before.Compact.Auto || c.Retention != before.Retention || c.Reflexion != before.Reflexion || c.Plan != before.Plan ||
			c.Verification != before.Verification || c.Network.Mode != before.Network.Mode || c.NoAI != before.NoAI || c.NoTaskState != before.NoTaskState || c.NoCheckpoints != before.NoCheckpoints ||
			c.Memory.Off != before.Memory.Off || c.Context != before.Context || c.Sandbox.Off != before.Sandbox.Off || c.Trust != before.Trust || c.Durability != before.Durability {
			t.Errorf("%s is another by default than the table says", k.Path)
		}
	}
}
