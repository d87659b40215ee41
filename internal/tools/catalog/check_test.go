package catalog

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"dure/agent"
)

const editSchema = `{"type":"object","properties":{
	"file_path":{"type":"string","minLength":1,"description":"the file"},
	"count":{"type":"integer","minimum":1,"maximum":9},
	"ratio":{"type":"number"},
	"all":{"type":"boolean","default":false},
	"mode":{"type":"string","enum":["a","b"]},
	"note":{"type":["string","null"]},
	"edits":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"object","properties":{
		"old":{"type":"string"},"n":{"type":"integer"}},"required":["old"],"additionalProperties":false}}},
	"required":["file_path"],"additionalProperties":false}`

func spec(schema string) agent.Spec {
	return agent.Spec{Name: "a__b", Input: json.RawMessage(schema), Aliases: map[string]string{"path": "file_path", "file": "file_path", "mode": "file_path"}}
}

func TestCheck(t *testing.T) {
	c := New(Config{})
	for _, tt := range []struct{ name, input, want, wrong string }{
		{name: "nothing to mend", input: `{ "file_path":"a", "all":true }`, want: `{ "file_path":"a", "all":true }`},
		{name: "default", input: `{"file_path":"a"}`, want: `{"all":false,"file_path":"a"}`},
		{name: "alias", input: `{"path":"<a>","all":true}`, want: `{"all":true,"file_path":"<a>"}`},
		{name: "alias that says the same", input: `{"path":"a","file_path":"a","all":true}`, want: `{"all":true,"file_path":"a"}`},
		{name: "alias that is a parameter", input: `{"file_path":"a","mode":"b","all":true}`, want: `{"file_path":"a","mode":"b","all":true}`},
		{name: "null for what may be left out", input: `{"file_path":"a","count":null,"all":null}`, want: `{"all":false,"file_path":"a"}`},
		{name: "null that is allowed", input: `{"file_path":"a","note":null,"all":true}`, want: `{"file_path":"a","note":null,"all":true}`},
		{name: "numbers in strings", input: `{"file_path":"5","count":" 5 ","ratio":"-1.5e1","all":"True"}`, want: `{"all":true,"count":5,"file_path":"5","ratio":-1.5e1}`},
		{name: "whole number", input: `{"file_path":"a","count":5.0,"all":true}`, want: `{"all":true,"count":5,"file_path":"a"}`},
		{name: "array in a string", input: `{"file_path":"a","all":true,"edits":"[{\"old\":\"x\",\"n\":\"3\"}]"}`, want: `{"all":true,"edits":[{"n":3,"old":"x"}],"file_path":"a"}`},
		{name: "large numbers stay", input: `{"path":"a","all":true,"ratio":12345678901234567890.5}`, want: `{"all":true,"file_path":"a","ratio":12345678901234567890.5}`},

		{name: "missing and unknown at once", input: `{"filepath":"a","cuont":1,"zzzzz":1}`, wrong: "the input does not fit the tool:\n" +
			"- file_path is missing (string): the file\n- cuont is not known; did you mean count?\n- filepath is not known; did you mean file_path?\n- zzzzz is not known"},
		{name: "types", input: `{"file_path":1,"count":"five","all":"yes","ratio":true,"edits":{}}`, wrong: "the input does not fit the tool:\n" +
			"- all has to be a boolean, not \"yes\"\n- count has to be an integer, not \"five\"\n- edits has to be an array, not an object\n- file_path has to be a string, not 1\n- ratio has to be a number, not true"},
		{name: "values", input: `{"file_path":"","count":10,"mode":"c","edits":[]}`, wrong: "the input does not fit the tool:\n" +
			"- count is 10, more than 9\n- edits has 0 items, fewer than 1\n- file_path is empty\n- mode has to be one of \"a\", \"b\", not \"c\""},
		{name: "inside", input: `{"file_path":"a","edits":[{"old":"x"},{"n":1.5,"new":1}]}`, wrong: "the input does not fit the tool:\n" +
			"- edits[1].old is missing (string)\n- edits[1].n has to be an integer, not 1.5\n- edits[1].new is not known"},
		{name: "null for what is required", input: `{"file_path":null}`, wrong: "the input does not fit the tool:\n- file_path is missing (string): the file"},
		{name: "two names, two values", input: `{"path":"a","file_path":"b"}`, wrong: "the input does not fit the tool:\n- path is another name of \"file_path\", and both are given"},
		{name: "more than one wants to read", input: `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, wrong: "the input does not fit the tool:\n" +
			"- file_path is missing (string): the file\n- a is not known\n- b is not known\n- c is not known\n- d is not known\n- e is not known\n- f is not known\n- g is not known\n- and 2 more"},
		{name: "twice", input: `{"file_path":"a","file\u005fpath":"b"}`, wrong: `the parameter "file_path" is given twice`},
		{name: "a fraction in a string", input: `{"file_path":"a","count":"1.5"}`, wrong: "the input does not fit the tool:\n- count has to be an integer, not \"1.5\""},
		{name: "an absurd number", input: `{"file_path":"a","count":1e999999999}`, wrong: "the input does not fit the tool:\n- count has to be an integer, not 1e999999999"},
		{name: "an endless number", input: `{"file_path":"a","ratio":` + strings.Repeat("9", 65) + `}`, wrong: "the input does not fit the tool:\n- ratio has to be a number, not " + strings.Repeat("9", 40) + "..."},
		{name: "no object", input: `[1]`, wrong: "the input is no JSON object"},
		{name: "null", input: `null`, wrong: "the input is no JSON object"},
		{name: "cut", input: `{"file_path":"a`, wrong: "the input is no valid JSON: unexpected EOF"},
		{name: "empty", input: ``, wrong: "the input is no valid JSON: EOF"},
		{name: "two", input: `{"file_path":"a"} {}`, wrong: "there is something behind the input's JSON object"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, bad := c.Check(spec(editSchema), json.RawMessage(tt.input))
			if bad == nil {
				bad = &agent.ToolError{}
			}
			if string(got) != tt.want || bad.Message != tt.wrong {
				t.Errorf("got  %s\nwant %s\nwrong %s\nwant  %s", got, tt.want, bad.Message, tt.wrong)
			}
			if tt.wrong == "" {
				return
			}
			const help = `Parameters: file_path (string, required), all (boolean), count (integer), edits (array), mode (string), note (string or null), ratio (number). Example: {"file_path":"..."}`
			if bad.Code != agent.ErrInput || bad.Suggestion != help {
				t.Errorf("code %s, suggestion %s", bad.Code, bad.Suggestion)
			}
		})
	}
}

// Schemas with keywords beyond the usual ones are checked in full too.
func TestCheckFullSchema(t *testing.T) {
	c := New(Config{})
	const schema = `{"type":"object","properties":{"id":{"type":"string","pattern":"^[a-z]+$"},"n":{"$ref":"#/$defs/n"}},"$defs":{"n":{"type":"integer","multipleOf":2}}}`
	for input, want := range map[string]string{
		`{"id":"abc","n":4}`: "",
		`{"id":"ABC"}`:       "the input does not fit the tool:\n- the input does not fit: /properties/id: pattern: \"ABC\" does not match regular expression \"^[a-z]+$\"",
		`{"n":3}`:            "the input does not fit the tool:\n- the input does not fit: /$defs/n: multipleOf: 3/1 is not a multiple of 2.000000",
		`{"x":[` + strings.Repeat("9", 65) + `]}`: "the input does not fit the tool:\n- the input has a number that is out of range, or of more than 64 characters",
	} {
		got, bad := c.Check(agent.Spec{Name: "a__b", Input: json.RawMessage(schema)}, json.RawMessage(input))
		if bad == nil {
			bad = &agent.ToolError{}
		}
		if bad.Message != want || want == "" && string(got) != input {
			t.Errorf("%s: %s, want %s", input, bad.Message, want)
		}
	}
}

func TestCheckBrokenSchema(t *testing.T) {
	c := New(Config{})
	for _, schema := range []string{`{"type":1}`, `{"properties":{"a":{"$ref":"http://localhost/x"}}}`, `{`, `{"type":"object","$ref":"#"}`, `{"type":"object","$dynamicAnchor":"a","$dynamicRef":"#a"}`} {
		s := agent.Spec{Name: "a__b", Input: json.RawMessage(schema)}
		if _, bad := c.Check(s, json.RawMessage(`{}`)); bad == nil || bad.Code != agent.ErrTool {
			t.Errorf("%s: %v", schema, bad)
		}
		s.Name = "mcp__a__b"
		if got, bad := c.Check(s, json.RawMessage(`{"a":1}`)); bad != nil || string(got) != `{"a":1}` {
			t.Errorf("%s of a server: %s, %v", schema, got, bad)
		}
		if _, bad := c.Check(s, json.RawMessage(`[]`)); bad == nil {
			t.Errorf("%s of a server takes an array", schema)
		}
	}
}

// What a server has an input checked for ever by is left to the server.
func TestCheckWithoutEnd(t *testing.T) {
	c := New(Config{})
	s := agent.Spec{Name: "mcp__a__b", Input: json.RawMessage(`{"type":"object","properties":{"c":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`)}
	input := strings.Repeat(`{"c":`, 60) + "{}" + strings.Repeat("}", 60)
	if got, bad := c.Check(s, json.RawMessage(input)); bad != nil || string(got) != input {
		t.Errorf("%.100s, %v", got, bad)
	}
	s.Name = "a__b"
	if _, bad := c.Check(s, json.RawMessage(input)); bad == nil || !strings.Contains(bad.Message, "too long to check") {
		t.Errorf("%v", bad)
	}
}

// beyond is why an input is refused that fits the schema by its letter.
var beyond = regexp.MustCompile(`given twice|count has to be an integer, not .*[eE]|has to be .*, not -?[0-9.eE]{40}|both are given`)

// What is accepted fits the schema by the word of a full implementation; what
// fits as it is, is accepted; and checking again changes nothing.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		`{"file_path":"a"}`, `{"file_path":"a","count":"5","edits":[{"old":"x","n":1e0}],"note":null}`, `{"path":"a","all":"true"}`,
		`{"edits":"[{}]","mode":"a"}`, `{"a":1,"a":2}`, `[]`, `{"file_path":"\ud800"}`, `{"file_path":"a","count":1E400}`, `{"file_path":"a","count":1e-999999}`, `{"file_path":"a","ratio":-0}`,
		`{"file_path":"a","ratio":"NaN"}`, `{"file_path":"a","count":"0x5"}`, `{"file_path":"a","edits":"[1"}`,
	} {
		f.Add(seed)
	}
	c := New(Config{})
	s := spec(editSchema)
	var tree jsonschema.Schema
	if err := json.Unmarshal([]byte(editSchema), &tree); err != nil {
		f.Fatal(err)
	}
	full, err := tree.Resolve(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input string) {
		got, bad := c.Check(s, json.RawMessage(input))
		if bad != nil {
			var v map[string]any
			if json.Unmarshal([]byte(input), &v) == nil && v != nil && full.Validate(v) == nil && !beyond.MatchString(bad.Message) {
				t.Fatalf("%s fits, and was refused: %s", input, bad.Message)
			}
			return
		}
		var v any
		if err := json.Unmarshal(got, &v); err != nil {
			t.Fatalf("%s became %s: %v", input, got, err)
		}
		if err := full.Validate(v); err != nil {
			t.Fatalf("%s became %s, which does not fit: %v", input, got, err)
		}
		again, bad := c.Check(s, got)
		if bad != nil || string(again) != string(got) {
			t.Fatalf("%s became %s and then %s, %v", input, got, again, bad)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	c := New(Config{})
	s := spec(editSchema)
	input := json.RawMessage(`{"file_path":"internal/catalog/check.go","count":3,"all":true,"edits":[{"old":"one"},{"old":"two","n":2}]}`)
	b.Run("as it is", func(b *testing.B) {
		for b.Loop() {
			if _, bad := c.Check(s, input); bad != nil {
				b.Fatal(bad)
			}
		}
	})
	b.Run("mended", func(b *testing.B) {
		mend := json.RawMessage(`{"path":"internal/catalog/check.go","count":"3"}`)
		for b.Loop() {
			if _, bad := c.Check(s, mend); bad != nil {
				b.Fatal(bad)
			}
		}
	})
	b.Run("full", func(b *testing.B) {
		full := s
		full.Input = json.RawMessage(strings.Replace(editSchema, `"minLength":1`, `"pattern":"."`, 1))
		for b.Loop() {
			if _, bad := c.Check(full, input); bad != nil {
				b.Fatal(bad)
			}
		}
	})
	b.Run("100 KB", func(b *testing.B) {
		large := json.RawMessage(`{"all":true,"file_path":"` + strings.Repeat(`some text\n`, 10000) + `"}`)
		b.SetBytes(int64(len(large)))
		for b.Loop() {
			if _, bad := c.Check(s, large); bad != nil {
				b.Fatal(bad)
			}
		}
	})
}
