package frontmatter

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Each case is a file, and what is told of it: fields, body with its line, warnings and
// the fault.
func TestParse(t *testing.T) {
	for _, tt := range []struct{ name, file, want string }{
		{"no fields", "# Title\ntext\n", "body 1: \"# Title\\ntext\\n\""},
		{"empty", "", "body 1: \"\""},
		{"fields", "---\nname: a\nlist:\n  - x\n  - y\n---\nbody\n", "name = \"a\"\nlist = [\"x\",\"y\"]\nbody 7: \"body\\n\""},
		{"nothing filled in", "---\n---\nbody", "body 3: \"body\""},
		{"only a comment", "---\n# later\n---\nbody", "body 4: \"body\""},
		{"byte order mark and CRLF", "\ufeff---\r\nname: a\r\n---\r\nbody\r\n", "name = \"a\"\nbody 4: \"body\\n\""},
		{"rule in the body", "---\nname: a\n---\n\n---\nmore", "name = \"a\"\nbody 4: \"\\n---\\nmore\""},
		{"colon in a value", "---\ndescription: Use when: always\nname: a\n---\n", "description = \"Use when: always\"\nname = \"a\"\nbody 5: \"\"\nwarning: line 2: the value needs quotes; it was read as text"},
		{"twice", "---\nname: a\nname: b\n---\n", "name = \"b\"\nbody 5: \"\"\nwarning: line 3, column 1: name stands here a second time; this one counts"},
		{"no end", "---\nname: a\n", "body 0: \"\"\nfault: line 1, column 1: the fields that begin with \"---\" do not end"},
		{"a tab", "---\nhooks:\n\tname: a\n---\nbody", "body 5: \"body\"\nfault: line 3, column 1: a tab cannot indent fields"},
		{"a field behind a hidden end of a line", "---\nname: a\rallowed-tools: Bash\n---\nbody", "body 4: \"body\"\nfault: line 2, column 8: a line ends here in a way that many editors do not show"},
		{"a list at the top", "---\n- a\n- b\n---\nbody", "body 5: \"body\"\nfault: line 2, column 1: the fields are no list of names with values"},
		{"no UTF-8", "---\nname: \xff\n---\n", "body 1: \"\"\nfault: line 2: the file is not UTF-8"},
		{"a reference", "---\na: &x [1]\nb: *x\n---\n", "body 5: \"\"\nfault: line 2, column 4: references (& and *) are not read here"},
		{"open quotes", "---\nname: \"a\n---\nbody", "body 4: \"body\"\nfault: line 3, column 1: found unexpected end of stream"},
		{"bad indentation", "---\nname: a\n  other: b\n---\nbody", "body 5: \"body\"\nfault: line 3, column 3: mapping values are not allowed in this context"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := Parse([]byte(tt.file))
			var b strings.Builder
			for _, f := range d.Fields {
				v, err := f.JSON()
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(&b, "%s = %s\n", f.Key, v)
			}
			fmt.Fprintf(&b, "body %d: %q\n", d.BodyLine, d.Body)
			for _, w := range d.Warnings {
				fmt.Fprintf(&b, "warning: %s\n", w.Error())
			}
			if err != nil {
				if FaultOf(err) == nil || FaultOf(err).Fix == "" {
					t.Errorf("%v does not say what to do", err)
				}
				fmt.Fprintf(&b, "fault: %s\n", err)
			}
			if got := strings.TrimSpace(b.String()); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
		})
	}
}

// A million values of a few bytes are refused before they are made.
func TestBounds(t *testing.T) {
	for name, head := range map[string]string{
		"large": "a: " + strings.Repeat("x", maxFields) + "\n",
		"many":  "a: [" + strings.Repeat("1,", maxNodes) + "1]\n",
		"deep":  "a: " + strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1) + "\n",
	} {
		if _, err := Parse([]byte("---\n" + head + "---\n")); err == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

func TestValues(t *testing.T) {
	d, err := Parse([]byte("---\nallowed-tools: Read, Bash(git add *), Grep\nuser_invocable: no\nsteps: 10\nwrong: [a, {b: c}]\nmeta:\n  a: 1\nempty:\n---\n"))
	if err != nil {
		t.Fatal(err)
	}
	get := func(name string) Field {
		f, ok := d.Get(name)
		if !ok {
			t.Fatalf("no %s", name)
		}
		return f
	}
	tools, err := get("allowedTools").List(Words)
	if want := []string{"Read", "Bash(git add *)", "Grep"}; err != nil || !reflect.DeepEqual(tools, want) {
		t.Errorf("%q, %v", tools, err)
	}
	if v, err := get("user-invocable").Bool(); v || err != nil {
		t.Error(v, err)
	}
	if n, err := get("Steps").Int(); n != 10 || err != nil {
		t.Error(n, err)
	}
	if m, err := get("meta").Map(); err != nil || !reflect.DeepEqual(m, map[string]string{"a": "1"}) {
		t.Error(m, err)
	}
	if s, err := get("empty").Text(); s != "" || err != nil || !get("empty").Empty() {
		t.Error(s, err)
	}
	for want, err := range map[string]error{
		"line 5, column 12: wrong has to be a list of texts, and has a group of fields in it": errorOf(get("wrong").List(nil)),
		"line 5, column 8: wrong has to be a text, and is a list":                             errorOf(get("wrong").Text()),
		"line 2, column 16: allowed-tools has to be true or false":                            errorOf(get("allowed_tools").Bool()),
		"line 4, column 8: steps has to have fields, and is a text":                           errorOf(get("steps").Map()),
		"line 3, column 17: user_invocable has to be a whole number":                          errorOf(get("user_invocable").Int()),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func errorOf[T any](_ T, err error) error { return err }

func FuzzParse(f *testing.F) {
	for _, s := range []string{"---\na: b\n---\nc", "---\n", "---\na: b: c\n---\n", "---\na: &x [*x]\n---\n", "---\r\na: |\r\n  b\r\n...\r\nc", "\ufeff---\n\t\n---", "---\na\r\rb: c\n\r\rd\n---"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := Parse(data)
		if err != nil && FaultOf(err) == nil {
			t.Fatalf("%v is no fault", err)
		}
		if fault := FaultOf(err); fault != nil && fault.Line > 2+strings.Count(string(data), "\n") {
			t.Errorf("line %d is behind the end", fault.Line)
		}
		for _, field := range d.Fields {
			_, terr := field.Text()
			_, lerr := field.List(Words)
			_, _ = field.JSON()
			_, _ = field.Map()
			for _, err := range []error{terr, lerr} {
				if err != nil && !errors.As(err, new(*Fault)) {
					t.Errorf("%v is no fault", err)
				}
			}
		}
	})
}

// Keys are one in all their spellings, whether or not they are compared letter by letter.
func TestSameKey(t *testing.T) {
	keys := []string{"", "-", "allowed-tools", "allowedTools", "Allowed_ tools", "allowed-tool", "allowed-tools-", "\u212aey", "key", "Key\u00e9", "key\u00c9", "\xff", "\ufffd"}
	for _, a := range keys {
		for _, b := range keys {
			if got, want := same(a, b), Plain(a) == Plain(b); got != want {
				t.Errorf("%q and %q: %v", a, b, got)
			}
		}
	}
}
