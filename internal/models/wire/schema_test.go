package wire

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestToolSchema(t *testing.T) {
	for _, c := range []struct{ name, in, schema, rules string }{
		{"one that fits", `{"type": "object", "properties": {"b": {"type": "string"}, "a": {}}}`, `{"type":"object","properties":{"b":{"type":"string"},"a":{}}}`, ""},
		{"nothing said", `{}`, `{"type":"object","properties":{}}`, ""},
		{"no properties", `{"type":"object","additionalProperties":false}`, `{"type":"object","properties":{},"additionalProperties":false}`, ""},
		{"several types", `{"type":["object","null"],"properties":{"a":{"type":"integer"}}}`, `{"type":"object","properties":{"a":{"type":"integer"}}}`, ""},
		{
			"rules about the whole", `{"type":"object","properties":{"a":{},"b":{}},"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]}}`,
			`{"type":"object","properties":{"a":{},"b":{}}}`, `{"oneOf":[{"required":["a"]},{"required":["b"]}],"not":{"required":["c"]}}`,
		},
		{
			"arrays of anything", `{"properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"type":"array","items":{"type":"array"}},"items":{"anyOf":[{"type":"array"},{"type":"string"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{}},"c":{"type":"array","items":{"type":"array","items":{}}},"items":{"anyOf":[{"type":"array","items":{}},{"type":"string"}]}}}`, "",
		},
		{
			"tuples of older drafts", `{"properties":{"a":{"type":"array","items":[{"type":"array"},{}],"additionalItems":false},"b":{"items":{},"additionalItems":true}}}`,
			`{"type":"object","properties":{"a":{"type":"array","prefixItems":[{"type":"array","items":{}},{}],"items":false},"b":{"items":{},"additionalItems":true}}}`, "",
		},
		{
			"values that look like schemas", `{"properties":{"a":{"default":{"type":"array"},"enum":[{"type":"array"}]},"default":{"type":"array"}}}`,
			`{"type":"object","properties":{"a":{"default":{"type":"array"},"enum":[{"type":"array"}]},"default":{"type":"array","items":{}}}}`, "",
		},
		{"a property of the name type", `{"properties":{"type":{"type":"string","enum":["array"]}}}`, `{"type":"object","properties":{"type":{"type":"string","enum":["array"]}}}`, ""},
		{"a name that is there twice", `{"title":"a","properties":{"x":{"type":"string"},"x":{}},"title":"b"}`, `{"type":"object","title":"b","properties":{"x":{}}}`, ""},
		{"properties that are none", `{"properties":[1]}`, `{"type":"object","properties":{}}`, ""},
		{"text", `{"title":"\u003ca\u003e \"b\"","description":"é"}`, `{"type":"object","properties":{},"title":"<a> \"b\"","description":"é"}`, ""},
	} {
		schema, rules, ok := ToolSchema(json.RawMessage(c.in))
		if !ok || string(schema) != c.schema || string(rules) != c.rules {
			t.Errorf("%s:\ngot  %s and %s\nwant %s and %s", c.name, schema, rules, c.schema, c.rules)
		}
	}
	for _, bad := range []string{``, `[]`, `1`, `{`, `null`} {
		if _, _, ok := ToolSchema(json.RawMessage(bad)); ok {
			t.Errorf("%q was taken", bad)
		}
	}
}

func FuzzToolSchema(f *testing.F) {
	for _, s := range []string{`{"type":"object","properties":{"a":{"type":"array"}}}`, `{"anyOf":[{}],"$defs":{"x":{"type":"array"}}}`, strings.Repeat(`{"items":`, 100) + `{}` + strings.Repeat(`}`, 100), `{"tYpe":"a","properties":{"a":{"type":"b"}}}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		schema, rules, ok := ToolSchema(json.RawMessage(s))
		if !ok {
			return
		}
		var top, properties map[string]json.RawMessage // a struct would take "tYpe" for "type"
		err := json.Unmarshal(schema, &top)
		if err == nil {
			err = json.Unmarshal(top["properties"], &properties)
		}
		if err != nil || string(top["type"]) != `"object"` || properties == nil || rules != nil && !json.Valid(rules) {
			t.Fatalf("%s became %s and %s: %v", s, schema, rules, err)
		}
		if again, more, ok := ToolSchema(schema); !ok || string(again) != string(schema) || more != nil {
			t.Fatalf("%s, once more, is %s and %s", schema, again, more)
		}
	})
}
