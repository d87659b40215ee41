package acp

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/internal/prooftest"
)

// official is the schema of the protocol, as the official SDK has it.
type official struct {
	raw    map[string]any
	byName sync.Map // definition to what checks it
}

// schema is the official schema; nil = it is not here. ACP_SDK is a folder in which npm has
// installed @agentclientprotocol/sdk.
var schema = sync.OnceValues(func() (*official, error) {
	dir := os.Getenv("ACP_SDK")
	if dir == "" {
		return nil, nil
	}
	data, err := os.ReadFile(filepath.Join(dir, "node_modules", "@agentclientprotocol", "sdk", "schema", "v1", "schema.json"))
	if err != nil {
		return nil, err
	}
	o := &official{}
	return o, json.Unmarshal(data, &o.raw)
})

// sdk returns the folder of the official SDK, or ends a test that needs it.
func sdk(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ACP_SDK")
	if dir == "" {
		prooftest.Lacking(t, "acp-sdk", "ACP_SDK is not set")
	}
	return dir
}

// definitions are what a message of a method is, by what of it.
func (o *official) definition(method, part string) string {
	for name, d := range o.raw["$defs"].(map[string]any) {
		def, _ := d.(map[string]any)
		if def["x-method"] != method {
			continue
		}
		response := strings.HasSuffix(name, "Response")
		if part == "result" && response || part == "params" && !response {
			return name
		}
	}
	return ""
}

// check looks at a value by a definition.
func (o *official) check(name string, data json.RawMessage) (faults []string) {
	v, ok := o.byName.Load(name)
	if !ok {
		root := map[string]any{"$schema": o.raw["$schema"], "$defs": o.raw["$defs"], "$ref": "#/$defs/" + name}
		text, err := json.Marshal(root)
		if err != nil {
			return []string{err.Error()}
		}
		var s jsonschema.Schema
		if err := json.Unmarshal(text, &s); err != nil {
			return []string{err.Error()}
		}
		r, err := s.Resolve(nil)
		if err != nil {
			return []string{err.Error()}
		}
		v, _ = o.byName.LoadOrStore(name, r)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return []string{err.Error()}
	}
	if err := v.(*jsonschema.Resolved).Validate(value); err != nil {
		faults = append(faults, fmt.Sprintf("%s: %v: %.600s", name, err, data))
	}
	for _, odd := range o.odd(map[string]any{"$ref": "#/$defs/" + name}, value, name) {
		faults = append(faults, fmt.Sprintf("%s is no field of the schema: %.600s", odd, data))
	}
	return faults
}

// odd are the fields of a value that a definition does not know: the schema lets them
// pass, and so a name that is wrong.
func (o *official) odd(def map[string]any, value any, at string) (names []string) {
	object, ok := value.(map[string]any)
	if list, is := value.([]any); is {
		for _, one := range list {
			names = append(names, o.least(o.all(def, "items", nil), one, at+"[]")...)
		}
		return names
	}
	if !ok {
		return nil
	}
	known := map[string][]map[string]any{}
	open := len(o.all(def, "additionalProperties", nil)) > 0
	o.fields(def, object, known, map[string]bool{})
	if len(known) == 0 {
		return nil // anything
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		defs, ok := known[name]
		if !ok && !open {
			names = append(names, at+"."+name)
		}
		names = append(names, o.least(defs, object[name], at+"."+name)...)
	}
	return names
}

// least is odd by the definition that knows most.
func (o *official) least(defs []map[string]any, value any, at string) (names []string) {
	for i, d := range defs {
		if got := o.odd(d, value, at); i == 0 || len(got) < len(names) {
			names = got
		}
	}
	return names
}

// fields collects the fields that an object may have by a definition.
func (o *official) fields(def, object map[string]any, known map[string][]map[string]any, seen map[string]bool) {
	if ref, ok := def["$ref"].(string); ok {
		if seen[ref] {
			return
		}
		seen[ref] = true
		o.fields(o.named(ref), object, known, seen)
	}
	properties, _ := def["properties"].(map[string]any)
	for name, p := range properties {
		field, _ := p.(map[string]any)
		if want, ok := field["const"]; ok && object[name] != want {
			return // another kind of it
		}
		known[name] = append(known[name], field)
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := def[key].([]any)
		for _, d := range list {
			if sub, ok := d.(map[string]any); ok {
				o.fields(sub, object, known, seen)
			}
		}
	}
}

func (o *official) named(ref string) map[string]any {
	d, _ := o.raw["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
	return d
}

// all collects what a definition says of a key that holds definitions.
func (o *official) all(def map[string]any, key string, list []map[string]any) []map[string]any {
	if ref, ok := def["$ref"].(string); ok {
		list = o.all(o.named(ref), key, list)
	}
	switch d := def[key].(type) {
	case map[string]any:
		list = append(list, d)
	case bool:
		if d {
			list = append(list, map[string]any{})
		}
	}
	for _, of := range []string{"allOf", "anyOf", "oneOf"} {
		subs, _ := def[of].([]any)
		for _, s := range subs {
			if sub, ok := s.(map[string]any); ok {
				list = o.all(sub, key, list)
			}
		}
	}
	return list
}

// schemaFaults looks at a message by the official schema.
func schemaFaults(method string, m map[string]json.RawMessage) []string {
	o, err := schema()
	if err != nil {
		return []string{err.Error()}
	}
	if o == nil {
		return nil
	}
	var faults []string
	for _, part := range []string{"params", "result"} {
		if m[part] == nil {
			continue
		}
		name := o.definition(method, part)
		if name == "" {
			faults = append(faults, fmt.Sprintf("the schema knows no %s of %q", part, method))
			continue
		}
		faults = append(faults, o.check(name, m[part])...)
	}
	if m["error"] != nil {
		faults = append(faults, o.check("Error", m["error"])...)
	}
	return faults
}

// The schema that messages are looked at by finds what is wrong with them.
func TestSchemaFindsFaults(t *testing.T) {
	sdk(t)
	for _, tt := range []struct{ method, line, want string }{
		{"session/prompt", `{"jsonrpc":"2.0","id":1,"result":{"stopReason":"bored"}}`, "PromptResponse"},
		{"session/update", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[{"content":"x","priority":"medium","status":"begun"}]}}}`, "SessionNotification"},
		{"session/update", `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"t","lokations":[]}}}`, "lokations"},
		{"session/new", `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A","about":"x"}]}}}`, "about"},
		{"session/load", `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"x"}}`, "Error"},
	} {
		if got := strings.Join(faultsOf(tt.method, []byte(tt.line)), "\n"); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s", tt.line, got)
		}
	}
	if got := faultsOf("session/update", []byte(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call_update","toolCallId":"c","rawInput":{"any":[1]},"content":[{"type":"diff","path":"/x","newText":""}]}}}`)); len(got) > 0 {
		t.Error(got)
	}
}
