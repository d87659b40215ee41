package gemini

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/models/script"
	"dure/internal/models/wire"
	"dure/internal/models/wiretest"
)

func TestParameters(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{
			"what is documented stays, in its order", `{"type":"object","title":"T","properties":{"b":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":9},"a":{"type":["string","null"],"format":"date-time","enum":["x","y"]},"n":{"type":"number","minimum":0,"maximum":1.5}},"required":["b"],"additionalProperties":{"type":"integer"},"propertyOrdering":["b"]}`,
			`{"type":"object","title":"T","properties":{"b":{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":9},"a":{"type":["string","null"],"format":"date-time","enum":["x","y"]},"n":{"type":"number","minimum":0,"maximum":1.5}},"required":["b"],"additionalProperties":{"type":"integer"}}`,
		},
		{"no parameters", `{"type":"object","properties":{},"required":[],"additionalProperties":false,"$schema":"x"}`, ``},
		{"any parameters", `{}`, `{"type":"object"}`},
		{
			"a type that is none", `{"type":"string","properties":{"a":{"type":"file"},"b":{"type":["string",7]},"c":{"type":["string"]}}}`,
			`{"type":"object","properties":{"a":{"description":"As JSON Schema: {\"type\":\"file\"}"},"b":{"description":"As JSON Schema: {\"type\":[\"string\",7]}"},"c":{"type":"string"}}}`,
		},
		{
			"limits that are excluded", `{"properties":{"a":{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10},"b":{"type":"number","exclusiveMinimum":0.5},"c":{"minimum":1,"exclusiveMinimum":true},"d":{"exclusiveMaximum":false}}}`,
			`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"maximum":9},"b":{"type":"number","minimum":0.5,"description":"As JSON Schema: {\"exclusiveMinimum\":0.5}"},"c":{"minimum":1,"description":"As JSON Schema: {\"exclusiveMinimum\":true}"},"d":{}}}`,
		},
		{
			"what is not documented is said", `{"properties":{"a":{"type":"string","pattern":"^<a>","minLength":2,"default":"aa","description":"An a.","format":"uri","x-order":1,"$comment":"c"},"b":{"not":{"type":"null"}}}}`,
			`{"type":"object","properties":{"a":{"type":"string","description":"An a.\nAs JSON Schema: {\"pattern\":\"^<a>\",\"minLength\":2,\"default\":\"aa\",\"format\":\"uri\"}"},"b":{"description":"As JSON Schema: {\"not\":{\"type\":\"null\"}}"}}}`,
		},
		{
			"values to choose from", `{"properties":{"a":{"const":"x"},"b":{"const":7},"c":{"const":true},"d":{"enum":["a",null]},"e":{"enum":[1,2]},"f":{"enum":[""]},"g":{"enum":[]},"h":{"enum":["p"],"const":"p"}}}`,
			`{"type":"object","properties":{"a":{"enum":["x"]},"b":{"enum":[7]},"c":{"description":"As JSON Schema: {\"const\":true}"},"d":{"description":"As JSON Schema: {\"enum\":[\"a\",null]}"},"e":{"enum":[1,2]},"f":{"description":"As JSON Schema: {\"enum\":[\"\"]}"},"g":{"description":"As JSON Schema: {\"enum\":[]}"},"h":{"enum":["p"],"description":"As JSON Schema: {\"const\":\"p\"}"}}}`,
		},
		{
			"alternatives", `{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"integer","exclusiveMinimum":1}]},"b":{"anyOf":[{}],"oneOf":[{}]},"c":{"type":"string","nullable":true}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer","minimum":2}]},"b":{"anyOf":[{}],"description":"As JSON Schema: {\"oneOf\":[{}]}"},"c":{"type":["string","null"]}}}`,
		},
		{
			"alternatives for all parameters", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"description":"As JSON Schema: {\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}"}`,
		},
		{"required of what is not described", `{"properties":{"a":{}},"required":["a","b"]}`, `{"type":"object","properties":{"a":{}},"required":["a"],"description":"As JSON Schema: {\"required\":[\"b\"]}"}`},
		{
			"lists of many forms", `{"properties":{"a":{"items":[{"type":"string"},{"type":"integer"}]},"b":{"prefixItems":[true,false]},"c":{"items":false},"d":{"items":true},"e":{"type":["null","array"]}}}`,
			`{"type":"object","properties":{"a":{"prefixItems":[{"type":"string"},{"type":"integer"}]},"b":{"prefixItems":[{},{"description":"No value is valid."}]},"c":{"description":"As JSON Schema: {\"items\":false}"},"d":{"items":{}},"e":{"type":["null","array"],"items":{}}}}`,
		},
		{
			"references", `{"properties":{"a":{"$ref":"#/definitions/My~1T%20x","description":"An a."},"b":{"$ref":"#/$defs/b"},"c":{"$ref":"#/$defs/none"},"d":{"$ref":"https://x.example/s"}},"definitions":{"My/T x":{"type":"string","minLength":1}},"$defs":{"b":{"$ref":"#/definitions/My~1T%20x"},"unused":{}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/My_T_x"}],"description":"An a."},"b":{"$ref":"#/$defs/b"},"c":{"description":"As JSON Schema: {\"$ref\":\"#/$defs/none\"}"},"d":{"description":"As JSON Schema: {\"$ref\":\"https://x.example/s\"}"}},"$defs":{"My_T_x":{"type":"string","description":"As JSON Schema: {\"minLength\":1}"},"b":{"$ref":"#/$defs/My_T_x"}}}`,
		},
		{
			"a root that is a reference", `{"$ref":"#/definitions/A","definitions":{"A":{"$ref":"#/definitions/B"},"B":{"type":"object","properties":{"x":{"type":"string"}}}}}`,
			`{"type":"object","properties":{"x":{"type":"string"}}}`,
		},
		{
			"recursion", `{"properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"left":{"$ref":"#/$defs/node"},"other":{"$ref":"#/$defs/twin"}}},"twin":{"items":{"$ref":"#/$defs/node"}}}}`,
			`{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"twin":{"items":{"description":"As JSON Schema: {\"$ref\":\"#/$defs/node\"}"}},"node":{"type":"object","properties":{"left":{"description":"As JSON Schema: {\"$ref\":\"#/$defs/node\"}"},"other":{"$ref":"#/$defs/twin"}}}}}`,
		},
		{
			"parts that are put together", `{"allOf":[{"$ref":"#/$defs/A"},{"properties":{"b":{"type":"string"}},"required":["b"]}],"properties":{"c":{}},"$defs":{"A":{"type":"object","properties":{"a":{}},"required":["a"]}}}`,
			`{"type":"object","properties":{"c":{},"a":{},"b":{"type":"string"}},"required":["a","b"]}`,
		},
		{"parts that contradict each other", `{"properties":{"c":{"type":"integer","allOf":[{"type":"string"}]}}}`, `{"type":"object","properties":{"c":{"type":"integer","description":"As JSON Schema: {\"allOf\":[{\"type\":\"string\"}]}"}}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parameters(json.RawMessage(c.in))
			if err != nil || string(got) != c.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, c.want)
			}
			if err := undocumented(got); err != nil {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestSchemasAreBounded(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 1000) + `{}` + strings.Repeat(`}}`, 1000)
	wide := `{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"type":"string"},`, 50_000) + `{}]}}}`
	var doubling strings.Builder // each definition refers twice to the next
	doubling.WriteString(`{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 100 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"d100":{}}}`)
	for name, in := range map[string]string{"deep": deep, "wide": wide, "doubling": doubling.String()} {
		out, err := parameters(json.RawMessage(in))
		if n := strings.Count(string(out), `"type"`); err != nil || n > maxSchemaNodes || len(out) > 2*len(in) {
			t.Errorf("%s: %d bytes became %d with %d types, %v", name, len(in), len(out), n, err)
		}
		if err := undocumented(out); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// undocumented says what the API does not document of a schema.
func undocumented(schema []byte) error {
	if len(schema) == 0 {
		return nil
	}
	var root map[string]any
	if err := json.Unmarshal(schema, &root); err != nil {
		return fmt.Errorf("%w in %s", err, schema)
	}
	if root["type"] != "object" {
		return fmt.Errorf("the root is of type %v", root["type"])
	}
	defs, _ := root["$defs"].(map[string]any)
	delete(root, "$defs")
	open := map[string]bool{}
	var walk func(s any, depth int) error
	all := func(list map[string]any, depth int) error {
		for _, s := range list {
			if err := walk(s, depth); err != nil {
				return err
			}
		}
		return nil
	}
	done := map[string]bool{}
	walk = func(v any, depth int) error {
		s, ok := v.(map[string]any)
		if !ok || depth > 2*maxSchemaDepth {
			return fmt.Errorf("%v at depth %d", v, depth)
		}
		for name, v := range s {
			var err error
			switch name {
			case "type", "format", "title", "description", "enum", "minItems", "maxItems", "minimum", "maximum", "required":
			case "items":
				err = walk(v, depth+1)
			case "properties":
				list, _ := v.(map[string]any)
				err = all(list, depth+1)
			case "additionalProperties":
				if _, ok := v.(bool); !ok {
					err = walk(v, depth+1)
				}
			case "anyOf", "prefixItems":
				list, ok := v.([]any)
				if !ok || len(list) == 0 || depth == 0 {
					return fmt.Errorf("%s is %v", name, v)
				}
				for _, s := range list {
					if err = walk(s, depth+1); err != nil {
						break
					}
				}
			case "$ref":
				ref, _ := v.(string)
				def := strings.TrimPrefix(ref, defsPrefix)
				switch _, found := defs[def]; {
				case !found, len(s) != 1, open[def]:
					return fmt.Errorf("reference %s in %v", ref, s)
				case !done[def]:
					open[def] = true
					err = walk(defs[def], 1)
					delete(open, def)
					done[def] = true
				}
			default:
				return fmt.Errorf("keyword %s", name)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return walk(root, 0)
}

// FuzzParameters checks that whatever a tool declares becomes a schema that the
// API documents, and the same one again.
func FuzzParameters(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"allOf":[{"$ref":"#/$defs/x"}]}}}`,
		`{"$ref":"#/$defs/","$defs":{"":{"$ref":"#/$defs/"}}}`, `{"allOf":[{"allOf":[{}]},7,{"properties":3}],"properties":[]}`,
		`{"properties":{"a":{"enum":[1,"a"],"const":{},"required":[1],"items":[],"type":[],"nullable":true,"minimum":"1","exclusiveMinimum":"x","additionalProperties":null}}}`,
		`{"properties":{"a":{"$ref":"#/definitions/a~1b"}},"definitions":{"a/b":{"format":"email"},"a_b":{}}}`, `[]`, `{"a":1`, `{} {}`, `{"type":"object","type":"string"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		if !json.Valid(schema) {
			return
		}
		got, err := parameters(schema)
		if err != nil {
			return
		}
		if err := undocumented(got); err != nil {
			t.Fatalf("%s became %s: %v", schema, got, err)
		}
		if again, err := parameters(slices.Clone(schema)); err != nil || string(again) != string(got) {
			t.Fatalf("%s became %s, and then %s", schema, got, again)
		}
	})
}

func TestSchemasPassTheScriptedServer(t *testing.T) {
	r := agent.Request{Messages: []agent.Message{says(agent.User, plain("hi"))}}
	for i, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/definitions/x","description":"d"}},"definitions":{"x":{"type":"object","properties":{"y":{"const":1}},"additionalProperties":false}}}`,
		`{"anyOf":[{"type":"object"},{"type":"null"}]}`, `{}`, `{"type":"object","properties":{}}`, `{"type":"object","enum":[{}]}`,
	} {
		r.Tools = append(r.Tools, agent.Spec{Name: fmt.Sprint("t", i), Input: json.RawMessage(schema)})
	}
	body := wiretest.MustEncode(t, New(wire.Config{Info: reader}), r)
	if err := script.Validate(script.Gemini, "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", nil, body); err != nil {
		t.Errorf("%v in %s", err, body)
	}
}
