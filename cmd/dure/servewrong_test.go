//go:build unix

package main

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"dure/internal/models/script"
)

// What a client asks wrongly is never said to be the fault of the server: each command and
// query takes nothing, and a text that means nothing in each of its texts.
func TestServeBlamesWhoAsks(t *testing.T) {
	t.Parallel()
	w := newEditorWorld(t, []script.Reply{{Text: "LAST"}})
	p := serveFor(t, w)
	var opened struct {
		Session struct {
			ID string `json:"id"`
		} `json:"session"`
	}
	var spec struct {
		Paths map[string]map[string]struct {
			RequestBody struct {
				Content map[string]struct {
					Schema struct {
						Ref string `json:"$ref"`
					}
				}
			} `json:"requestBody"`
		}
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Type any }
			}
		}
	}
	for _, err := range []error{
		json.Unmarshal([]byte(p.call("POST", "/v1/sessions", p.at.Token, `{}`, 201)), &opened),
		json.Unmarshal([]byte(p.call("GET", "/openapi.json", "", "", 200)), &spec),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	asked := 0
	for _, path := range slices.Sorted(maps.Keys(spec.Paths)) {
		if !strings.Contains(path, "/commands/") && !strings.HasPrefix(path, "/v1/queries/") {
			continue
		}
		bodies := []string{`{}`}
		form := spec.Paths[path]["post"].RequestBody.Content["application/json"].Schema.Ref
		fields := spec.Components.Schemas[form[strings.LastIndex(form, "/")+1:]].Properties
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			if fields[key].Type == "string" {
				bodies = append(bodies, `{"`+key+`":"zz"}`)
			}
		}
		if strings.HasSuffix(path, "/commands/prompt") {
			bodies = []string{`{}`, `{"id":"zz"}`} // a text is one
		}
		for _, body := range bodies {
			asked++
			if status, said := p.ask("POST", strings.Replace(path, "{id}", opened.Session.ID, 1), p.at.Token, body); status == 500 {
				t.Errorf("%s %s: %d %s", path, body, status, said)
			}
		}
	}
	if asked < 80 {
		t.Errorf("only %d were asked", asked)
	}
	said := p.call("POST", "/v1/sessions/"+opened.Session.ID+"/commands/prompt", p.at.Token, `{"id":"3"}`, 400)
	if !strings.Contains(said, `"code":"bad-request"`) || !strings.Contains(said, "text") {
		t.Errorf("a prompt without a text: %s", said)
	}
	p.call("POST", "/v1/sessions/"+opened.Session.ID+"/close", p.at.Token, `{}`, 200)
	p.call("POST", "/v1/sessions/"+opened.Session.ID+"/commands/prompt", p.at.Token, `{"id":"4"}`, 400)
	p.call("GET", "/v1/sessions/"+opened.Session.ID+"/events?after=99999", p.at.Token, "", 204)
}
