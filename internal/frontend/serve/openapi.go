package serve

import (
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"dure/agent"
)

func (s *Server) describeRoutes() []Route {
	return []Route{{
		Method: http.MethodGet, Path: "/openapi.json", Answer: func(*http.Request) (any, error) { return s.described(), nil }, Open: true, Name: "openapi",
		Summary: "This description, after OpenAPI 3.1.", OutType: "application/json",
	}}
}

var variable = regexp.MustCompile(`\{([a-z]+)\}`)

// describe makes the description of the routes.
func (s *Server) describe() schema {
	all := newSchemas()
	all.of(reflect.TypeFor[agent.Event]())
	for _, v := range []any{Draining{}, Ended{}} {
		all.of(reflect.TypeOf(v))
	}
	problem := all.of(reflect.TypeFor[Problem]())
	paths := schema{}
	for _, r := range s.routes {
		at, _ := paths[r.Path].(schema)
		if at == nil {
			at = schema{}
			paths[r.Path] = at
		}
		at[strings.ToLower(r.Method)] = s.operation(r, all)
	}
	return schema{
		"openapi": "3.1.0",
		"info":    schema{"title": "dure", "version": s.cfg.Version, "license": schema{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []schema{{"url": "/"}},
		"paths":   paths,
		"components": schema{
			"schemas":         all.named,
			"securitySchemes": schema{"token": schema{"type": "http", "scheme": "bearer"}},
			"responses": schema{"Problem": schema{
				"description": "What is wrong, after RFC 9457.",
				"content":     schema{"application/problem+json": schema{"schema": problem}},
			}},
		},
		"security": []schema{{"token": []string{}}},
	}
}

// operation describes a route.
func (s *Server) operation(r Route, all *schemas) schema {
	status := r.Status
	if status == 0 {
		status = http.StatusOK
	}
	good := schema{"description": http.StatusText(status)}
	switch {
	case r.OutType == "text/event-stream":
		good["description"] = "Server-sent events: those of the session have no name, their number as id, or none if they are live, and an Event as data; drain (Draining), bye and end (Ended), and error (Problem) are about the stream."
		good["content"] = schema{r.OutType: schema{"schema": schema{"type": "string"}}}
	case r.OutType != "":
		good["content"] = schema{r.OutType: schema{}}
	case r.Out != nil:
		good["content"] = schema{"application/json": schema{"schema": answer(all, r.Out)}}
	}
	op := schema{
		"operationId": r.Name, "summary": r.Summary,
		"responses": schema{strconv.Itoa(status): good, "default": schema{"$ref": "#/components/responses/Problem"}},
	}
	if r.Open {
		op["security"] = []schema{}
	}
	var parameters []schema
	for _, m := range variable.FindAllStringSubmatch(r.Path, -1) {
		parameters = append(parameters, schema{"name": m[1], "in": "path", "required": true, "schema": schema{"type": "string"}})
	}
	for _, p := range r.Query {
		parameters = append(parameters, p.describe("query"))
	}
	for _, p := range r.Header {
		parameters = append(parameters, p.describe("header"))
	}
	if parameters != nil {
		op["parameters"] = parameters
	}
	if r.In != nil {
		op["requestBody"] = schema{"content": schema{"application/json": schema{"schema": all.of(reflect.TypeOf(r.In))}}}
	}
	return op
}

// answer is the schema of an answer: a list may be null there.
func answer(all *schemas, out any) schema {
	t := reflect.TypeOf(out)
	if k := t.Kind(); k == reflect.Slice || k == reflect.Map {
		return schema{"anyOf": []schema{all.of(t), {"type": "null"}}}
	}
	return all.of(t)
}

func (p Parameter) describe(in string) schema {
	kinds := map[reflect.Kind]string{reflect.Int64: "integer", reflect.Bool: "boolean"}
	kind := kinds[p.Type]
	if kind == "" {
		kind = "string"
	}
	typ := schema{"type": kind}
	if p.Many {
		typ = schema{"type": "array", "items": typ}
	}
	d := schema{"name": p.Name, "in": in, "schema": typ, "description": p.Summary}
	if p.Needed {
		d["required"] = true
	}
	return d
}
