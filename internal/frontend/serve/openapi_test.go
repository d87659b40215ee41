package serve

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/agent"
	"dure/agent/query"
)

// spec is the published description, as far as tests look at it.
type spec struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct {
		Schemas map[string]json.RawMessage
	}
}

type operation struct {
	OperationID string `json:"operationId"`
	Security    *[]map[string][]string
	RequestBody struct {
		Content map[string]struct{ Schema json.RawMessage }
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]struct{ Schema json.RawMessage }
	}
}

func (g *rig) spec() spec {
	g.t.Helper()
	if g.described != nil {
		return *g.described
	}
	var d spec
	data, err := json.Marshal(g.server.described())
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		g.t.Fatal(err)
	}
	g.described = &d
	return d
}

// resolved are the schemas that were looked at before, by their text: all servers of the
// tests describe the same.
var resolved sync.Map

// check validates a value against a schema of the description.
func (d spec) check(part json.RawMessage, value []byte) error {
	var v any
	if err := json.Unmarshal(value, &v); err != nil {
		return err
	}
	form, ok := resolved.Load(string(part))
	if !ok {
		made, err := d.resolve(part)
		if err != nil {
			return err
		}
		form, _ = resolved.LoadOrStore(string(part), made)
	}
	return form.(*jsonschema.Resolved).Validate(v)
}

func (d spec) resolve(part json.RawMessage) (*jsonschema.Resolved, error) {
	local := func(data []byte) string {
		return strings.ReplaceAll(string(data), "#/components/schemas/", "#/$defs/")
	}
	var all jsonschema.Schema
	defs, err := json.Marshal(d.Components.Schemas)
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal([]byte(`{"allOf":[`+local(part)+`],"$defs":`+local(defs)+`}`), &all); err != nil {
		return nil, err
	}
	return all.Resolve(nil)
}

// escaped is a part of a path that stands for any.
var escaped = regexp.MustCompile(`\\\{[a-z]+\\\}`)

// fits looks whether an answer is as it is described.
func (g *rig) fits(r *http.Request, res *http.Response, data []byte) {
	g.t.Helper()
	d := g.spec()
	kind := res.Header.Get("Content-Type")
	if kind == "application/problem+json" {
		if err := d.check([]byte(`{"$ref":"#/components/schemas/Problem"}`), data); err != nil {
			g.t.Errorf("%s %s: the problem: %v: %s", r.Method, r.URL, err, data)
		}
		return
	}
	for path, operations := range d.Paths {
		o, ok := operations[strings.ToLower(r.Method)]
		at := "^" + escaped.ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$"
		if !ok || !regexp.MustCompile(at).MatchString(r.URL.Path) {
			continue
		}
		content, ok := o.Responses[strconv.Itoa(res.StatusCode)]
		if !ok {
			if res.StatusCode != http.StatusNoContent && res.StatusCode != http.StatusPartialContent {
				g.t.Errorf("%s %s: %d is not described", r.Method, r.URL, res.StatusCode)
			}
			return
		}
		if kind == "application/json" && len(content.Content[kind].Schema) > 0 {
			if err := d.check(content.Content[kind].Schema, data); err != nil {
				g.t.Errorf("%s %s: %v: %s", r.Method, r.URL, err, data)
			}
		}
		return
	}
	g.t.Errorf("%s %s is not described", r.Method, r.URL)
}

func noFiles(context.Context, string) (Files, error) { return nil, errors.New("no files") }

// Every route is described, under a name of its own, with what it takes and gives.
func TestDescribed(t *testing.T) {
	g := start(t, func(c *Config) {
		c.Files = noFiles
		c.Routes = []Route{{Method: "POST", Path: "/v1/else", Serve: func(http.ResponseWriter, *http.Request) {}, Name: "else", Summary: "Others' route."}}
	})
	var d spec
	r := g.request("GET", "/openapi.json", "")
	r.Header.Del("Authorization")
	status, data := g.do(r)
	if err := json.Unmarshal(data, &d); status != 200 || err != nil || d.OpenAPI != "3.1.0" {
		t.Fatalf("%d, %v, %.200s", status, err, data)
	}
	var names []string
	for _, route := range g.server.routes {
		o, ok := d.Paths[route.Path][strings.ToLower(route.Method)]
		if !ok || o.OperationID != route.Name || route.Name == "" || route.Summary == "" || slices.Contains(names, route.Name) {
			t.Errorf("%s %s is described as %+v", route.Method, route.Path, o)
		}
		if names = append(names, route.Name); route.Open != (o.Security != nil && len(*o.Security) == 0) {
			t.Errorf("%s %s: who needs a token is described as %v", route.Method, route.Path, o.Security)
		}
	}
	n := 0
	for _, operations := range d.Paths {
		n += len(operations)
	}
	if n != len(g.server.routes) || n < len(agent.Commands())+len(query.Queries())+10 {
		t.Errorf("%d operations of %d routes", n, len(g.server.routes))
	}
	for _, m := range regexp.MustCompile(`"#/components/schemas/([^"]*)"`).FindAllStringSubmatch(string(data), -1) {
		if d.Components.Schemas[m[1]] == nil {
			t.Errorf("%s is referred to, and not described", m[1])
		}
	}
}

// What is sent and stored fits its description, and what does not is told apart.
func TestDescriptionsHold(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	d := g.spec()
	event := json.RawMessage(`{"$ref":"#/components/schemas/Event"}`)
	for _, kind := range agent.Kinds() {
		b, err := agent.DecodeBody(agent.Version, kind, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(agent.Event{Seq: 1, ID: "e", Body: b})
		if err != nil {
			t.Fatal(err)
		}
		if err := d.check(event, data); err != nil {
			t.Errorf("%s: %v: %s", kind, err, data)
		}
	}
	if err := d.check(event, []byte(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"of.later","id":"e","d":{"a":1}}`)); err != nil {
		t.Errorf("a kind of a later version: %v", err)
	}
	for _, wrong := range []string{`{}`, `{"v":1,"seq":"1","ep":1,"ts":"x","k":"note","id":"e","d":{}}`, `{"v":1,"seq":1,"ep":1,"ts":"x","k":"note","id":"e","d":{"text":3}}`} {
		if d.check(event, []byte(wrong)) == nil {
			t.Errorf("%s is taken for an event", wrong)
		}
	}
	for _, name := range agent.Commands() {
		c, err := agent.DecodeCommand(name, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		data, err := agent.EncodeCommand(c)
		if err != nil {
			t.Fatal(err)
		}
		part := d.Paths["/v1/sessions/{id}/commands/"+name]["post"].RequestBody.Content["application/json"].Schema
		if err := d.check(part, data); err != nil {
			t.Errorf("command %s: %v: %s", name, err, data)
		}
	}
}
