package protocol

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

var update = flag.Bool("update", false, "write the schemas, and the types that are made of them")

const (
	schemas    = "../../docs/protocol"
	typescript = "../../sdk/typescript"
)

// The schemas that are published are those of the Go types, and the TypeScript types those
// of the schemas.
func TestSchemasArePublished(t *testing.T) {
	about := comments(t)
	request, message := schemaOf("A request, which a host sends.", Requests(), about), schemaOf("A message, which a host is sent.", Messages(), about)
	for name, data := range map[string][]byte{
		filepath.Join(schemas, "request.json"):     encoded(t, request),
		filepath.Join(schemas, "message.json"):     encoded(t, message),
		filepath.Join(typescript, "protocol.d.ts"): []byte(typesOf(request, message)),
		filepath.Join(typescript, "methods.d.ts"):  []byte(methodTypes(t, request)),
		filepath.Join(typescript, "methods.mjs"):   []byte(methodTable()),
	} {
		name = filepath.FromSlash(name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(name, data, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), data) {
			t.Errorf("%s is not what the types say: go test ./client/protocol -run Schemas -update", name)
		}
	}
}

// The schemas take what they should, and refuse the rest.
func TestSchemasDecide(t *testing.T) {
	about := comments(t)
	request := resolved(t, schemaOf("", Requests(), about))
	for _, tt := range []struct {
		line string
		ok   bool
	}{
		{`{"type":"Initialize","id":"1"}`, true},
		{`{"type":"Initialize","id":"1","payload":{"settings":{},"agents":{"a":{"prompt":"x"}},"hooks":[{"event":"Stop"}],"open":{"mode":"plan"}}}`, true},
		{`{"type":"UserMessage","id":"1","session":"s","payload":{"text":"x","attachments":[{"type":"image/png","data":"AAAA"}]}}`, true},
		{`{"type":"Initialize","payload":{}}`, false},
		{`{"type":"SetModel","id":"1","payload":{"model":1}}`, false},
		{`{"type":"SetPermissionMode","id":"1","payload":{"mode":"free"}}`, false},
		{`{"type":"SetPermissionMode","id":"1"}`, false},
		{`{"type":"Nothing","id":"1"}`, false},
		{`{"type":"CanUseToolResponse","id":"1","payload":{"behavior":"allow","input":[]}}`, false},
	} {
		var v any
		if err := json.Unmarshal([]byte(tt.line), &v); err != nil {
			t.Fatal(err)
		}
		if err := request.Validate(v); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.line, err)
		}
	}
}

func resolved(t *testing.T, schema map[string]any) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(encoded(t, schema), &s); err != nil {
		t.Fatal(err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func encoded(t *testing.T, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// comments are the comments of types and fields in the sources, by "Type" and "Type.Field".
func comments(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	said := func(groups ...*ast.CommentGroup) string {
		for _, g := range groups {
			if g != nil {
				return strings.Join(strings.Fields(g.Text()), " ")
			}
		}
		return ""
	}
	for _, name := range []string{"protocol.go", "requests.go", "messages.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				ts, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				all[ts.Name.Name] = said(ts.Doc, g.Doc)
				st, ok := ts.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, field := range st.Fields.List {
					for _, n := range field.Names {
						all[ts.Name.Name+"."+n.Name] = said(field.Doc, field.Comment)
					}
				}
			}
		}
	}
	return all
}

// schemaOf is the schema of messages of the given types.
func schemaOf(title string, types map[Type]any, about map[string]string) map[string]any {
	defs := map[string]any{}
	var union []any
	for _, name := range slices.Sorted(maps.Keys(types)) {
		payload := reflect.TypeOf(types[name])
		define(payload, defs, about)
		required := []string{"type"}
		answers := name == TypeInitializeResult || name == TypeCanUseTool || name == TypeHookEvent
		if _, request := Requests()[name]; request || answers {
			required = append(required, "id")
		}
		if needs := defs[payload.Name()].(map[string]any)["required"].([]string); len(needs) > 0 {
			required = append(required, "payload")
		}
		defs[string(name)] = map[string]any{
			"type": "object", "required": required,
			"properties": map[string]any{
				"type":    map[string]string{"const": string(name)},
				"id":      map[string]any{"type": "string", "minLength": 1, "maxLength": MaxID},
				"session": map[string]any{"type": "string", "maxLength": MaxID},
				"payload": map[string]string{"$ref": "#/$defs/" + payload.Name()},
			},
		}
		union = append(union, map[string]string{"$ref": "#/$defs/" + string(name)})
	}
	return map[string]any{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, "oneOf": union, "$defs": defs}
}

// define adds the schema of a struct.
func define(st reflect.Type, defs map[string]any, about map[string]string) {
	if defs[st.Name()] != nil {
		return
	}
	properties, required := map[string]any{}, []string{}
	schema := map[string]any{"type": "object", "description": about[st.Name()], "properties": properties, "required": required}
	defs[st.Name()] = schema
	for i := range st.NumField() {
		f := st.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		s := valueOf(f.Type, f.Tag, defs, about)
		if d := about[st.Name()+"."+f.Name]; d != "" {
			s["description"] = d
		}
		properties[name] = s
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	schema["required"] = required
}

// valueOf is the schema of a value.
func valueOf(v reflect.Type, tag reflect.StructTag, defs map[string]any, about map[string]string) map[string]any {
	switch {
	case tag.Get("schema") == "object":
		return map[string]any{"type": "object"}
	case v == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case v == reflect.TypeFor[[]byte]():
		return map[string]any{"type": "string", "contentEncoding": "base64"}
	}
	switch v.Kind() {
	case reflect.Pointer:
		return valueOf(v.Elem(), tag, defs, about)
	case reflect.Struct:
		define(v, defs, about)
		return map[string]any{"$ref": "#/$defs/" + v.Name()}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": valueOf(v.Elem(), "", defs, about)}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": valueOf(v.Elem(), "", defs, about)}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.String:
		s := map[string]any{"type": "string"}
		if list := tag.Get("enum"); list != "" {
			s["enum"] = strings.Split(list, ",")
		}
		return s
	}
	panic(fmt.Sprintf("no schema for %s", v))
}

// typesOf writes TypeScript types of the definitions of schemas.
func typesOf(request, message map[string]any) string {
	var b strings.Builder
	b.WriteString(generated)
	written := map[string]bool{}
	for _, side := range []struct {
		name   string
		schema map[string]any
	}{{"Request", request}, {"Message", message}} {
		defs := side.schema["$defs"].(map[string]any)
		var union []string
		for _, name := range slices.Sorted(maps.Keys(defs)) {
			def := defs[name].(map[string]any)
			kind, _ := def["properties"].(map[string]any)["type"].(map[string]string)
			if kind["const"] != "" {
				union = append(union, name)
			}
			if !written[name] {
				written[name] = true
				writeType(&b, name, def)
			}
		}
		fmt.Fprintf(&b, "\nexport type %s =\n  | %s;\n", side.name, strings.Join(union, "\n  | "))
	}
	return b.String()
}

func writeType(b *strings.Builder, name string, def map[string]any) {
	b.WriteString("\n")
	if d, _ := def["description"].(string); d != "" {
		fmt.Fprintf(b, "/** %s */\n", d)
	}
	properties, required := def["properties"].(map[string]any), def["required"].([]string)
	fmt.Fprintf(b, "export interface %s {\n", name)
	for _, field := range slices.Sorted(maps.Keys(properties)) {
		s := map[string]any{}
		switch p := properties[field].(type) {
		case map[string]any:
			s = p
		case map[string]string:
			for k, v := range p {
				s[k] = v
			}
		}
		if d, _ := s["description"].(string); d != "" {
			fmt.Fprintf(b, "  /** %s */\n", d)
		}
		optional := "?"
		if slices.Contains(required, field) {
			optional = ""
		}
		fmt.Fprintf(b, "  %s%s: %s;\n", field, optional, typeScript(s))
	}
	b.WriteString("}\n")
}

func typeScript(s map[string]any) string {
	if ref, _ := s["$ref"].(string); ref != "" {
		return strings.TrimPrefix(ref, "#/$defs/")
	}
	if c, _ := s["const"].(string); c != "" {
		return fmt.Sprintf("%q", c)
	}
	if list, _ := s["enum"].([]string); list != nil {
		return `"` + strings.Join(list, `" | "`) + `"`
	}
	switch s["type"] {
	case "string":
		return "string"
	case "integer", "number":
		return "number"
	case "boolean":
		return "boolean"
	case "array":
		return typeScript(s["items"].(map[string]any)) + "[]"
	case "object":
		return "Record<string, unknown>"
	}
	return "unknown"
}
