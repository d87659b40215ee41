package forms_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"dure/internal/base/forms"
)

func formOf(schema string) (*forms.Form, error) {
	s, err := forms.Read([]byte(schema))
	if err != nil {
		return nil, err
	}
	return forms.New(s)
}

func valueOf(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// chain is a schema with n definitions, each of which leads to the next as often as it says.
func chain(n int, each string) string {
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/x0"}},"$defs":{`)
	for i := range n {
		next := fmt.Sprintf(`{"$ref":"#/$defs/x%d"}`, i+1)
		fmt.Fprintf(&b, `"x%d":%s,`, i, strings.ReplaceAll(each, "NEXT", next))
	}
	fmt.Fprintf(&b, `"x%d":{"type":"string"}}}`, n)
	return b.String()
}

// Schemas that cannot be followed, or not to their end, are told, and nothing ends the
// program, takes for ever or is fetched.
func TestSchemasThatAreRefused(t *testing.T) {
	for name, schema := range map[string]string{
		"itself":              `{"type":"object","$ref":"#"}`,
		"itself, by all":      `{"type":"object","allOf":[{"$ref":"#"}]}`,
		"itself, by not":      `{"not":{"$ref":"#"}}`,
		"itself, by if":       `{"if":{"$ref":"#"}}`,
		"itself, by anchor":   `{"$anchor":"a","anyOf":[{"$ref":"#a"}]}`,
		"itself, by id":       `{"$id":"https://c.example/x","oneOf":[{"$ref":"https://c.example/x#"}]}`,
		"each other":          `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`,
		"dynamic":             `{"type":"object","$dynamicAnchor":"m","$dynamicRef":"#m"}`,
		"branches":            `{"$ref":"#/$defs/x0",` + chain(40, `{"anyOf":[NEXT,NEXT]}`)[1:],
		"elsewhere":           `{"$ref":"http://127.0.0.1:1/x"}`,
		"elsewhere, relative": `{"$ref":"x.json"}`,
		"a file":              `{"$ref":"file:///etc/passwd"}`,
		"nowhere":             `{"$ref":"#/$defs/x"}`,
		"no anchor":           `{"$ref":"#x"}`,
		"two anchors":         `{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}},"$ref":"#x"}`,
		"another base":        `{"$defs":{"a":{"$id":"https://c.example/a"}}}`,
		"null":                `{"properties":{"a":null}}`,
		"null in a list":      `{"anyOf":[null]}`,
		"no pattern":          `{"pattern":"("}`,
		"long patterns":       `{"pattern":"` + strings.Repeat("a{1000}", 200) + `"}`,
		"deep":                strings.Repeat(`{"not":`, 200) + "{}" + strings.Repeat("}", 200),
		"long names":          `{"properties":{"` + strings.Repeat("x", 100_000) + `":{"properties":{` + strings.Repeat(`"a":{"not":{}},`, 10) + list(2000) + `}}}}`,
		"long":                `{"title":"` + strings.Repeat("x", forms.MaxText) + `"}`,
		"no schema":           `[]`,
	} {
		if _, err := formOf(schema); err == nil {
			t.Errorf("%s: it was taken", name)
		} else if len(err.Error()) > 1000 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
	}
}

func list(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"p%d":{}`, i))
	}
	return strings.Join(all, ",")
}

// Values that would keep a check busy for ever are not checked.
func TestValuesThatAreRefused(t *testing.T) {
	deep := func(n int) string { return strings.Repeat(`{"c":`, n) + "1" + strings.Repeat("}", n) }
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`{"type":"integer"},`, n), ",") }
	for name, one := range map[string]struct{ schema, value string }{
		"branches":         {chain(40, `{"anyOf":[NEXT,NEXT]}`), `{"a":1}`},
		"branches of all":  {chain(40, `{"allOf":[NEXT,NEXT]}`), `{"a":"x"}`},
		"branches below":   {`{"properties":{"c":{"anyOf":[{"$ref":"#"},{"$ref":"#"}]}}}`, deep(60)},
		"names":            {`{"propertyNames":{"$ref":"#/$defs/x"},"$defs":{"x":{"not":{"$ref":"#/$defs/x"}}}}`, `{"a":1}`},
		"deep":             {`{"additionalProperties":{"$ref":"#"}}`, deep(2000)},
		"itself, below":    {`{"properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":1}`},
		"itself, in lists": {`{"items":{"$ref":"#/items"}}`, `[1]`},
		"itself, if there": {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, `{"a":1}`},
		"said again":       {`{"properties":{"a":{"anyOf":[` + many(3000) + `]}}}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`},
		"patterns":         {`{"properties":{"a":{"pattern":"(x{1,400}){2}y"}}}`, `{"a":"` + strings.Repeat("x", 1<<20) + `"}`},
		"long enum":        {`{"items":{"enum":["` + strings.Repeat("y", 200_000) + `"]}}`, "[" + strings.Repeat("1,", 5000) + "1]"},
	} {
		f, err := formOf(one.schema)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := f.Validate(valueOf(t, one.value)); !errors.Is(err, forms.ErrCost) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
}

// What can be checked is, schemas that refer to themselves below the value, too.
func TestChecks(t *testing.T) {
	tree := `{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"https://c.example/tree","type":"object","required":["v"],
		"properties":{"v":{"$ref":"https://c.example/tree#/$defs/leaf"},"kids":{"type":"array","items":{"$ref":"#"}},"a/b~c":{"type":"null"},"same":{"$ref":"#/properties/a~1b~0c"}},
		"patternProperties":{"^x-":{"$ref":"#short"}},"additionalProperties":false,
		"$defs":{"leaf":{"anyOf":[{"type":"string"},{"type":"integer"}]},"s":{"$anchor":"short","maxLength":3}}}`
	old := `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"n":{"$ref":"#/definitions/n"},"l":{"items":[{"type":"string"}],"additionalItems":{"$ref":"#/definitions/n"}}},
		"definitions":{"n":{"type":"number"}},"dependencies":{"n":["l"]}}`
	big := "[" + strings.Repeat(`{"v":1},`, 20_000) + `{"v":2}]`
	for _, one := range []struct {
		schema, value string
		fits          bool
	}{
		{tree, `{"v":1,"kids":[{"v":"x","kids":[{"v":2}]}],"x-a":"abc","same":null}`, true},
		{tree, `{"v":1,"kids":[{"v":"x","kids":[{"v":2.5}]}]}`, false},
		{tree, `{"v":1,"x-a":"abcd"}`, false},
		{tree, `{"v":1,"y":1}`, false},
		{tree, `{"v":1,"same":1}`, false},
		{tree, `{"v":0,"kids":` + big + `}`, true},
		{tree, `{"v":0,"kids":` + strings.Replace(big, `{"v":2}`, `{}`, 1) + `}`, false},
		{old, `{"n":1,"l":["a",2]}`, true},
		{old, `{"n":1,"l":["a","b"]}`, false},
		{old, `{"n":1}`, false},
		{`{"type":"string"}`, `"` + strings.Repeat("x", 4<<20) + `"`, true},
		{`true`, `1`, true},
		{`false`, `1`, false},
	} {
		f, err := formOf(one.schema)
		if err != nil {
			t.Fatalf("%.60s: %v", one.schema, err)
		}
		if err := f.Validate(valueOf(t, one.value)); (err == nil) != one.fits || errors.Is(err, forms.ErrCost) {
			t.Errorf("%.60s, %.80s: %.200v", one.schema, one.value, err)
		}
	}
}

// FuzzForms has no schema and no value stop the program.
func FuzzForms(f *testing.F) {
	f.Add(`{"$ref":"#/properties/a","properties":{"a":{"items":{"$ref":"#"}}}}`, `{"a":[1]}`)
	f.Add(`{"if":{"const":1},"then":{"enum":[2]},"else":{"multipleOf":0},"uniqueItems":true}`, `[1,1]`)
	f.Add(`{"unevaluatedProperties":{"$ref":"#"},"dependentSchemas":{"a":{"minProperties":1}}}`, `{"a":{"b":{}}}`)
	f.Fuzz(func(_ *testing.T, schema, value string) {
		form, err := formOf(schema)
		var v any
		if err != nil || json.Unmarshal([]byte(value), &v) != nil {
			return
		}
		_ = form.Validate(v)
	})
}
