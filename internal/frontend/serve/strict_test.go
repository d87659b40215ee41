package serve

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"dure/agent"
)

// What a body has that nobody reads is refused with its name, as is a value of another type, by
// every command and query.
func TestBodiesAreReadStrictly(t *testing.T) {
	g := start(t, func(c *Config) { c.Guarded = true })
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	tried := 0
	for _, r := range g.server.routes {
		if !strings.Contains(r.Path, "/commands/") && !strings.Contains(r.Path, "/queries/") && r.Name != "closeSession" {
			continue
		}
		path := strings.Replace(r.Path, "{id}", "s", 1)
		var p Problem
		for body, names := range map[string]string{`{"txt":"typo"}`: `"txt"`, `[]`: "array", `3`: "number", `{"a":`: ""} {
			p = Problem{}
			g.call("POST", path, body, 400, &p)
			if p.Code != badRequest || !strings.Contains(p.Detail, names) || p.Fix == "" {
				t.Errorf("%s %s: %+v", path, body, p)
			}
		}
		keys := schema{}
		newSchemas().fields(reflect.TypeOf(r.In), keys, new([]string))
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if kind := keys[key].(schema)["type"]; kind == nil || kind == "object" {
				continue
			}
			body, err := json.Marshal(map[string]any{key: map[string]int{"x": 1}})
			if err != nil {
				t.Fatal(err)
			}
			p = Problem{}
			g.call("POST", path, string(body), 400, &p)
			if p.Code != badRequest || !strings.Contains(p.Detail+p.Fix, key) {
				t.Errorf("%s %s: %+v", path, body, p)
			}
			tried++
		}
	}
	if tried < 50 {
		t.Errorf("only %d keys were tried", tried)
	}
	var p Problem
	g.call("POST", "/v1/sessions/s/commands/prompt", `{"id":"3","txt":"typo"}`, 400, &p)
	if !strings.Contains(p.Fix, "text") {
		t.Errorf("nothing is said that helps: %+v", p)
	}
	if g.logs.of["s"].came != nil {
		t.Errorf("what is wrong has come to the session: %+v", g.logs.of["s"].came)
	}
}

// What a session refuses because of how it was asked is the fault of the request.
func TestWhatIsAskedWronglyIsABadRequest(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	g.logs.refuse = &agent.Problem{Code: agent.ProblemUsage, Message: "the prompt is empty", Fix: "say in text what is to be done"}
	var p Problem
	g.call("POST", "/v1/sessions/s/commands/prompt", `{}`, 400, &p)
	if p.Code != badRequest || p.Fix != "say in text what is to be done" {
		t.Errorf("%+v", p)
	}
}

// Who leaves a session has to have opened it; without a name all leave.
func TestWhoLeaves(t *testing.T) {
	g := start(t, nil)
	g.call("POST", "/v1/sessions", `{"new":"s"}`, 201, nil)
	var p Problem
	g.call("POST", "/v1/sessions/s/close", `{"user":"user_nobody"}`, 404, &p)
	if p.Code != noUser || p.Fix == "" {
		t.Errorf("%+v", p)
	}
	var left Closed
	if g.call("POST", "/v1/sessions/s/close", `{}`, 200, &left); left.Left != 1 {
		t.Errorf("%+v", left)
	}
	if g.call("POST", "/v1/sessions/s/close", `{}`, 200, &left); left.Left != 0 {
		t.Errorf("nobody was left, and %+v", left)
	}
	g.call("POST", "/v1/sessions/none/close", `{}`, 404, &p)
	if p.Code != string(agent.ProblemMissing) {
		t.Errorf("%+v", p)
	}
}
