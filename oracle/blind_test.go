package oracle_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// unread are the objects in which a library keeps any member, because they are
// other people's: inputs of calls, results, and schemas.
var unread = []string{
	"contents[].parts[].functionCall.args",
	"contents[].parts[].functionResponse.response",
	"messages[].content[].input",
	"tools[].functionDeclarations[].parametersJsonSchema",
	"tools[].function.parameters",
	"tools[].input_schema",
	"tools[].parameters",
}

// TestUnknownMembersAreSeen puts a member that nobody knows into each kind of
// object of a request: were the library to keep it, it could not tell whether the
// adapter's members exist.
func TestUnknownMembersAreSeen(t *testing.T) {
	list := targets()
	answers := pool(t, list)
	for _, target := range list {
		t.Run(target.name, func(t *testing.T) {
			in := newInbox(t)
			m := target.open("http://127.0.0.1:1") // never dialled
			defer m.Close()
			seen := map[string]bool{} // kinds of objects, and whether the member was missed
			for n := range 40 {
				r := maker{rand.New(rand.NewPCG(seed, uint64(n)))}.request(answers, m.Info().Provider)
				body, err := m.Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				for _, path := range objects(body) {
					if _, done := seen[path]; done || slices.ContainsFunc(unread, func(p string) bool { return strings.HasPrefix(path, p) }) {
						continue
					}
					var ours any
					if err := json.Unmarshal(insert(body, path), &ours); err != nil {
						t.Fatal(err)
					}
					if err := target.send(t.Context(), in.URL, insert(body, path)); err != nil {
						seen[path] = true // the library refuses
						continue
					}
					found := map[string]string{}
					differences{extras: target.extras, used: map[string]int{}, found: found}.compare(in.take().Body, ours, "")
					seen[path] = len(found) > 0
				}
			}
			var missed []string
			for path, found := range seen {
				if !found {
					missed = append(missed, path)
				}
			}
			slices.Sort(missed)
			if diff := cmp.Diff([]string(nil), missed); diff != "" {
				t.Errorf("members that nobody knows pass in: %s", diff)
			}
			t.Logf("%d kinds of objects", len(seen))
		})
	}
}

// objects returns the paths of the objects of a JSON value, each once.
func objects(body []byte) []string {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	paths := map[string]bool{}
	walk(v, "", func(path string, _ map[string]any) { paths[path] = true })
	return slices.Sorted(maps.Keys(paths))
}

// insert returns body with a member that nobody knows in the first object of a
// path.
func insert(body []byte, path string) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return body
	}
	done := false
	walk(v, "", func(at string, object map[string]any) {
		if at == path && !done {
			object["nobody_knows"], done = 1, true
		}
	})
	changed, _ := json.Marshal(v) // it came from JSON
	return changed
}

// walk calls visit for each object of a JSON value.
func walk(v any, path string, visit func(path string, object map[string]any)) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			walk(item, path+"[]", visit)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			walk(v[name], strings.TrimPrefix(path+"."+name, "."), visit)
		}
		visit(path, v)
	}
}
