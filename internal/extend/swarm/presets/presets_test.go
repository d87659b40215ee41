package presets_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/swarm/presets"
)

// many is how many presets there are.
const many = 21

// keys are the fields of a preset, all of which it has but for effort.
var keys = []string{"name", "description", "tools", "model", "effort", "maxTurns", "color", "metadata"}

// changing are tools that change something. Who says of itself that it reads only has
// none of them.
var changing = []string{"Edit", "MultiEdit", "Write", "Delete", "Move", "Bash", "Script", "GitCommit", "ApplyPatch"}

func TestPresets(t *testing.T) {
	names, err := fs.Glob(presets.Files, "*.md")
	if err != nil || len(names) != many {
		t.Fatalf("%d presets, %v", len(names), err)
	}
	bodies := map[string]bool{}
	for _, file := range names {
		name := strings.TrimSuffix(file, ".md")
		t.Run(name, func(t *testing.T) {
			data, err := presets.Files.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := frontmatter.Parse(data)
			if err != nil || len(d.Warnings) > 0 {
				t.Fatalf("%v, %v", err, d.Warnings)
			}
			checkFields(t, name, d)
			tools(t, d)
			if len(d.Body) < 400 || len(d.Body) > 3_000 || bodies[d.Body] {
				t.Errorf("the prompt has %d bytes", len(d.Body))
			}
			bodies[d.Body] = true
		})
	}
}

func checkFields(t *testing.T, name string, d frontmatter.Doc) {
	t.Helper()
	got := map[string]string{}
	for _, f := range d.Fields {
		if !slices.Contains(keys, f.Key) {
			t.Errorf("line %d: the field %s", f.Value.Line, f.Key)
		}
		if f.Key == "metadata" { // what people read in Korean
			m, err := f.Map()
			if err != nil || len(m) != 1 || !strings.ContainsFunc(m["ko"], func(r rune) bool { return unicode.Is(unicode.Hangul, r) }) {
				t.Errorf("metadata %v, %v", m, err)
			}
			got[f.Key] = m["ko"]
			continue
		}
		s, err := f.Text()
		if err != nil {
			t.Error(err)
		}
		got[f.Key] = s
	}
	for _, key := range keys {
		if got[key] == "" && key != "effort" {
			t.Errorf("%s says nothing", key)
		}
	}
	if got["name"] != name || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(name) {
		t.Errorf("its name is %q", got["name"])
	}
	if n := len(got["description"]); n < 40 || n > 150 {
		t.Errorf("the description has %d bytes", n)
	}
	if got["model"] != "inherit" { // others may not be there
		t.Errorf("model %s", got["model"])
	}
	if e := got["effort"]; e != "" && !slices.Contains([]string{"low", "medium", "high"}, e) {
		t.Errorf("effort %s", e)
	}
	if !slices.Contains([]string{"red", "blue", "green", "yellow", "purple", "orange", "pink", "cyan"}, got["color"]) {
		t.Errorf("color %s", got["color"])
	}
	f, _ := d.Get("maxTurns")
	if n, err := f.Int(); err != nil || n < 10 || n > 100 {
		t.Errorf("maxTurns %d, %v", n, err)
	}
}

func tools(t *testing.T, d frontmatter.Doc) {
	t.Helper()
	f, _ := d.Get("tools")
	list, err := f.List(frontmatter.Words)
	if err != nil || len(list) == 0 {
		t.Fatalf("tools %q, %v", list, err)
	}
	f, _ = d.Get("description")
	about, _ := f.Text() // checked above
	only := strings.Contains(about, "Reads only") || strings.Contains(d.Body, "change nothing") || strings.Contains(d.Body, "change no file")
	for i, tool := range list {
		if slices.Contains(list[:i], tool) {
			t.Errorf("%s twice", tool)
		}
		if only && slices.Contains(changing, tool) {
			t.Errorf("it reads only, and has %s", tool)
		}
	}
	if only == slices.ContainsFunc(list, func(tool string) bool { return slices.Contains(changing, tool) }) {
		t.Errorf("reads only is %v, tools are %v", only, list)
	}
}
