//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/agent/query"
)

// servedSpec is what a server says of its routes.
type servedSpec struct {
	Paths map[string]map[string]struct {
		RequestBody servedContent
		Responses   map[string]servedContent
	}
	Components struct{ Schemas json.RawMessage }
}

type servedContent struct {
	Content map[string]struct{ Schema json.RawMessage }
}

// takes returns those of some fields that a query takes.
func (d servedSpec) takes(t *testing.T, path string, fields map[string]any) map[string]any {
	t.Helper()
	var ref struct {
		Name string `json:"$ref"`
	}
	var all map[string]struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(d.Paths[path]["post"].RequestBody.Content["application/json"].Schema, &ref); err != nil {
		t.Fatal(path, err)
	}
	if err := json.Unmarshal(d.Components.Schemas, &all); err != nil {
		t.Fatal(err)
	}
	in, ok := all[strings.TrimPrefix(ref.Name, "#/components/schemas/")]
	if !ok {
		t.Fatalf("%s takes %q, which is nowhere", path, ref.Name)
	}
	maps.DeleteFunc(fields, func(k string, _ any) bool { return in.Properties[k] == nil })
	return fields
}

// form is the form of what the route answers with 200.
func (d servedSpec) form(t *testing.T, path string) *jsonschema.Resolved {
	t.Helper()
	part := d.Paths[path]["post"].Responses["200"].Content["application/json"].Schema
	defs, err := json.Marshal(d.reached(t, part))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(`{"allOf":[`+string(part)+`],"$defs":`+string(defs)+`}`, "#/components/schemas/", "#/$defs/")
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(text), &s); err != nil || len(part) == 0 {
		t.Fatalf("%s is described as %s: %v", path, part, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reached are the components that a schema refers to, itself or by way of others.
func (d servedSpec) reached(t *testing.T, part json.RawMessage) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(d.Components.Schemas, &all); err != nil {
		t.Fatal(err)
	}
	reached := map[string]json.RawMessage{}
	for parts := []json.RawMessage{part}; len(parts) > 0; parts = parts[1:] {
		for _, m := range component.FindAllSubmatch(parts[0], -1) {
			name := string(m[1])
			if one, ok := all[name]; ok && reached[name] == nil {
				reached[name] = one
				parts = append(parts, one)
			}
		}
	}
	return reached
}

var component = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// What the program itself answers to queries is as it is described, and the files of a session
// are those of its folder, without what is likely to hold secrets.
func TestServeAnswers(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, asking())
	for path, text := range map[string]string{"in.txt": "inside", "sub/deep.txt": "deep", ".env": "KEY=hidden", "../out.txt": "hidden"} {
		at := filepath.Join(w.work, path)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../out.txt", filepath.Join(w.work, "link")); err != nil {
		t.Fatal(err)
	}
	p := serveFor(t, w, "--drain", "1ms")
	session, _, _ := p.askedTurn()
	var d servedSpec
	if err := json.Unmarshal([]byte(p.call("GET", "/openapi.json", "", "", 200)), &d); err != nil {
		t.Fatal(err)
	}
	answered := 0
	refusals := map[string]string{
		"commit.prepare":    "tool", // the folder is in no repository
		"decisions.explain": "usage",
	}
	for _, name := range query.Queries() {
		fields := map[string]any{"session": session, "name": session, "a": session, "b": session, "text": "1+1", "to": 1, "seq": 1}
		switch name {
		case "memory":
			fields["text"] = true
		case "agents":
			delete(fields, "name")
		case "web.search":
			continue // it asks others
		}
		switch access := query.AccessTo(name); {
		case access.Guarded:
			refusals[name] = "guarded"
		case access.Local != "":
			refusals[name] = "local"
		}
		path := "/v1/queries/" + name
		body, err := json.Marshal(d.takes(t, path, fields))
		if err != nil {
			t.Fatal(err)
		}
		status, data := p.ask("POST", path, p.at.Token, string(body))
		if code, told := refusals[name]; told && (status < 400 || status >= 500 || !strings.Contains(data, `"code":"`+code+`"`)) {
			t.Errorf("%s is to be refused as %s: %d %s", name, code, status, data)
		}
		if status != 200 {
			if status >= 500 {
				t.Errorf("%s: %d %s", name, status, data)
			}
			t.Logf("%s: %d %.200s", name, status, data)
			continue
		}
		answered++
		var v any
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := d.form(t, path).Validate(v); err != nil {
			t.Errorf("%s answers otherwise than described: %v\n%.1000s", name, err, data)
		}
	}
	if answered < 30 {
		t.Errorf("%d queries were answered", answered)
	}
	at := "/v1/sessions/" + session
	if seen := p.call("GET", at+"/files", p.at.Token, "", 200); !strings.Contains(seen, `"in.txt"`) || !strings.Contains(seen, `"folder"`) {
		t.Errorf("the folder: %s", seen)
	}
	if seen := p.call("GET", at+"/file?path=sub/deep.txt", p.at.Token, "", 200); seen != "deep" {
		t.Errorf("a file: %q", seen)
	}
	for path, want := range map[string]int{".env": 403, "none": 404, "sub": 400, "../out.txt": 400} {
		p.call("GET", at+"/file?path="+path, p.at.Token, "", want)
	}
	if status, data := p.ask("GET", at+"/file?path=link", p.at.Token, ""); status < 400 || status >= 500 || strings.Contains(data, "hidden") {
		t.Errorf("a link that leads out: %d %s", status, data)
	}
}
