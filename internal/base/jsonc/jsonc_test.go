package jsonc

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"{\"a\": 1, // one\n\"b\": [1,2,/* x\ny */],}", "{\"a\": 1,       \n\"b\": [1,2     \n    ] }"},
		{`{"a": "// no \" comment, }"}`, `{"a": "// no \" comment, }"}`},
		{"1 // end", "1       "},
	} {
		got, err := Plain([]byte(tt.in))
		if err != nil || string(got) != tt.want {
			t.Errorf("%q: %q, %v", tt.in, got, err)
		}
	}
	if _, err := Plain([]byte("{\n/* open")); err == nil || err.Error() != "2: a comment is not closed" {
		t.Error(err)
	}
}

const file = `// Mine.
{
  "model": "x", // the best
  /* rules */
  "permissions": {
    "deny": ["a", "b"],
    "max_depth": 3 // deep
  }, "c": {},
  "last": [
    1,
  ],
}
`

func TestEdit(t *testing.T) {
	same := func(a, b string) bool {
		fold := func(s string) string { return strings.ToLower(strings.ReplaceAll(s, "_", "")) }
		return fold(a) == fold(b)
	}
	for _, tt := range []struct {
		name, in, path, value string // no value = unset
		old, now              string // what is another than before
	}{
		{"replace", file, "model", `"y"`, `"model": "x", //`, `"model": "y", //`},
		{"other spelling", file, "permissions.maxDepth", `4`, `"max_depth": 3 //`, `"max_depth": 4 //`},
		{"replace by many lines", file, "permissions.deny", `[{"tool":"Bash"}]`, `"deny": ["a", "b"],`, "\"deny\": [\n      {\n        \"tool\": \"Bash\"\n      }\n    ],"},
		{"behind the last, with its comment", file, "permissions.ask", `["c"]`, "3 // deep\n", "3, // deep\n    \"ask\": [\"c\"]\n"},
		{"behind a trailing comma", file, "new.er", `true`, "  ],\n}", "  ],\n  \"new\": {\n    \"er\": true\n  },\n}"},
		{"into an empty object", file, "c.d", `1`, `"c": {}`, "\"c\": {\n    \"d\": 1\n  }"},
		{"unset with its comment", file, "model", "", "  \"model\": \"x\", // the best\n", ""},
		{"unset the last", file, "permissions.maxDepth", "", "\"b\"],\n    \"max_depth\": 3 // deep\n", "\"b\"]\n"},
		{"unset within a line", file, "c", "", ` "c": {},`, ``},
		{"one line", `{"a": 1}`, "b", "2", `1}`, `1, "b": 2}`},
		{"one line with a comma", `{"a": 1,}`, "b", "2", `1,}`, `1, "b": 2,}`},
		{"unset in one line", `{"a": 1, "b": 2}`, "a", "", `"a": 1, `, ``},
		{"unset the last in one line", `{"a": 1, "b": 2}`, "b", "", `, "b": 2`, ``},
		{"unset the only one", `{"a": 1}`, "a", "", `"a": 1`, ``},
		{"windows", "{\r\n\t\"a\": 1\r\n}\r\n", "b", "2", "1\r\n", "1,\r\n\t\"b\": 2\r\n"},
		{"unset on windows", "{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}", "a", "", "\t\"a\": 1,\r\n", ""},
		{"nothing", "", "a.b", "1", "", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		{"comments alone", "// x", "a", "1", "x", "x\n{\n  \"a\": 1\n}\n"},
		{"the second of two", `{"a": 1, "A": 2}`, "a", "3", "2", "3"},
		{"comma on the next line", "{\n \"a\": 1\n , \"b\": 2\n}", "c", "3", "2\n", "2,\n \"c\": 3\n"},
	} {
		text, err := Read([]byte(tt.in), same)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		path := strings.Split(tt.path, ".")
		var got []byte
		if tt.value == "" {
			got, err = text.Unset(path...)
		} else {
			got, err = text.Set([]byte(tt.value), path...)
		}
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if strings.Count(tt.in, tt.old) != 1 && tt.in != "" {
			t.Fatalf("%s: %q does not stand there once", tt.name, tt.old)
		}
		if d := cmp.Diff(strings.Replace(tt.in, tt.old, tt.now, 1), string(got)); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}

func TestLists(t *testing.T) {
	const list = "{\n  \"deny\": [\n    \"a\", // one\n    \"b\" // two\n  ], \"one\": [\"x\"], \"none\": []\n}\n"
	for _, tt := range []struct {
		path, add, remove string
		old, now          string
	}{
		{"deny", `"c"`, "", "\"b\" // two\n", "\"b\", // two\n    \"c\"\n"},
		{"one", `"y"`, "", `["x"]`, `["x", "y"]`},
		{"none", `"y"`, "", `[]`, `["y"]`},
		{"new", `"y"`, "", "\"none\": []\n", "\"none\": [],\n  \"new\": [\"y\"]\n"},
		{"deny", "", `"a"`, "    \"a\", // one\n", ""},
		{"deny", "", `"b"`, "\"a\", // one\n    \"b\" // two\n", "\"a\" // one\n"},
		{"one", "", `"x"`, `["x"]`, `[]`},
	} {
		text, err := Read([]byte(list), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		if tt.add != "" {
			got, err = text.Add([]byte(tt.add), tt.path)
		} else {
			got, err = text.Remove(func(v []byte) bool { return string(v) == tt.remove }, tt.path)
		}
		if d := cmp.Diff(strings.Replace(list, tt.old, tt.now, 1), string(got)); d != "" || err != nil {
			t.Errorf("%s: %v %s", tt.path, err, d)
		}
	}
	text, err := Read([]byte(list), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.Remove(func([]byte) bool { return false }, "deny"); !errors.Is(err, ErrNotThere) {
		t.Error(err)
	}
	if got, err := text.Remove(func([]byte) bool { return true }, "deny"); err != nil || strings.Contains(string(got), "one\n") {
		t.Errorf("%s, %v", got, err)
	}
}

func TestFaults(t *testing.T) {
	text, err := Read([]byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := text.Unset("permissions", "none"); !errors.Is(err, ErrNotThere) {
		t.Error(err)
	}
	if _, err := text.Set([]byte("1"), "model", "x"); err == nil || err.Error() != "model is no object" {
		t.Error(err)
	}
	if _, err := text.Set([]byte("{"), "model"); err == nil {
		t.Error("no JSON is set")
	}
	if got, ok := text.Get("permissions", "deny"); string(got) != `["a", "b"]` || !ok {
		t.Errorf("%s", got)
	}
	for _, bad := range []string{"[]", "{", "{} x", "/*"} {
		if _, err := Read([]byte(bad), nil); err == nil {
			t.Errorf("%q can be read", bad)
		}
	}
}

// What is changed has the new value, everything else the old one; and of the comments
// none is lost but those within what is replaced.
func FuzzEdit(f *testing.F) {
	for _, s := range []string{file, "", "{}", `{"a":{"b":1}}`, "{/*x*/}", "{\"a\"://\n1}", "{\"a\":1//x\n,\"b\":2}", "{\r\n}", "\ufeff{\"a\":1}", "{\"a\" /*b*/ : /*c*/ {} /*d*/,}"} {
		f.Add(s, "a", "b", `{"x":[1]}`)
		f.Add(s, "permissions", "deny", `2`)
	}
	f.Fuzz(func(t *testing.T, data, one, two, value string) {
		text, err := Read([]byte(data), nil)
		if err != nil || !json.Valid([]byte(value)) {
			return
		}
		got, err := text.Set([]byte(value), one, two)
		if err != nil {
			return // one is no object, or no text
		}
		want, _ := members(t, []byte(data))
		inner, ok := want[key(one)].(map[string]any)
		if !ok {
			inner = map[string]any{}
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			t.Fatal(err)
		}
		_, stood := text.Get(one, two)
		inner[key(two)] = v
		want[key(one)] = inner
		have, comments := members(t, got)
		if d := cmp.Diff(want, have); d != "" {
			t.Fatalf("%q: %q: %s", data, got, d)
		}
		_, before := members(t, []byte(data))
		if !stood && !slices.Equal(before, comments) {
			t.Fatalf("%q: %q: comments %q, %q", data, got, before, comments)
		}
		changed, err := Read(got, nil)
		if err != nil {
			t.Fatal(err)
		}
		again, err := changed.Set([]byte(value), one, two)
		if err != nil || !bytes.Equal(got, again) && len(value) < 50 && !strings.ContainsAny(value, " \n\r\t") {
			t.Fatalf("%q is set once more: %q, %v", got, again, err)
		}
		gone, err := changed.Unset(one, two)
		if err != nil {
			t.Fatal(err)
		}
		if twice := strings.Count(data, `"`+two+`"`) > 0 || strings.Contains(data, `\`); !twice {
			delete(inner, key(two))
			have, _ = members(t, gone)
			if d := cmp.Diff(want, have); d != "" {
				t.Fatalf("%q without it: %q: %s", got, gone, d)
			}
		}
	})
}

// key is a key as encoding/json reads it.
func key(s string) string {
	var k string
	_ = json.Unmarshal([]byte(quote(s)), &k)
	return k
}

// members returns the object in a text, and its comments.
func members(t *testing.T, data []byte) (map[string]any, []string) {
	t.Helper()
	plain, err := Plain(data)
	if err != nil {
		t.Fatalf("%q: %v", data, err)
	}
	m := map[string]any{}
	if body := trim(bytes.TrimPrefix(plain, []byte("\ufeff"))); len(body) > 0 {
		if err := json.Unmarshal(body, &m); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
	}
	var comments []string
	for i := 0; i < len(data); i++ {
		switch {
		case data[i] == '"':
			i = quoted(data, i) - 1
		case data[i] == '/':
			end, _ := comment(data, i)
			comments = append(comments, strings.TrimRight(string(data[i:end]), "\r"))
			i = end - 1
		}
	}
	return m, comments
}
