package builtin_test

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills/builtin"
)

// atLeast is how many skills the program comes with at least.
const atLeast = 29

// fields are those that a skill of ours may have.
var fields = []string{"name", "description", "argument-hint", "arguments", "allowed-tools", "context", "metadata"}

// inlines are all the commands that run when a skill is invoked.
var inlines = map[string][]string{
	"commit":            {"git status --short --branch"},
	"pull-request":      {"git status --short --branch"},
	"resolve-conflicts": {"git status --short --branch"},
}

// reading are the tools that a skill may allow; of commands, those that [reads] fits.
var reading = []string{
	"Read", "MultiRead", "Grep", "Glob", "LS", "Outline", "Diagnostics", "GitRead", "Environment", "TodoWrite", "WebSearch", "WebFetch",
}

var reads = regexp.MustCompile(`^Bash\((git (status|diff|log|show|merge-base|describe|tag|remote|blame|grep)|gh (pr (diff|view|list)|run (view|list))|go list|npm (outdated|ls)) \*\)$`)

func TestSkills(t *testing.T) {
	names, err := fs.Glob(builtin.Files, "*/SKILL.md")
	if err != nil || len(names) < atLeast {
		t.Fatalf("%d skills, %v; want %d", len(names), err, atLeast)
	}
	found := map[string][]string{}
	seen := map[string]string{} // by description
	for _, file := range names {
		name := strings.TrimSuffix(file, "/SKILL.md")
		t.Run(name, func(t *testing.T) {
			data, err := builtin.Files.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			d, err := frontmatter.Parse(data)
			if err != nil || len(d.Warnings) > 0 {
				t.Fatalf("%v, %v", err, d.Warnings)
			}
			checkFields(t, name, d)
			if other := seen[text(t, d, "description")]; other != "" {
				t.Errorf("described as %s is", other)
			}
			seen[text(t, d, "description")] = name
			checkTools(t, d)
			checkBody(t, d)
			for _, in := range frontmatter.Inlines(d.Body) {
				found[name] = append(found[name], in.Command)
			}
		})
	}
	if !maps.EqualFunc(found, inlines, slices.Equal) {
		t.Errorf("commands that run at once: %q", found)
	}
}

func text(t *testing.T, d frontmatter.Doc, key string) string {
	t.Helper()
	f, ok := d.Get(key)
	if !ok {
		return ""
	}
	s, err := f.Text()
	if err != nil {
		t.Error(err)
	}
	return s
}

func checkFields(t *testing.T, name string, d frontmatter.Doc) {
	t.Helper()
	for _, f := range d.Fields {
		if !slices.Contains(fields, f.Key) {
			t.Errorf("line %d: the field %s", f.Value.Line, f.Key)
		}
	}
	if got := text(t, d, "name"); got != name || !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(name) || len(name) > 64 {
		t.Errorf("its name is %q", got)
	}
	// Together they are listed to the model: they have to be short.
	if s := text(t, d, "description"); len(s) < 40 || len(s) > 150 {
		t.Errorf("the description has %d bytes", len(s))
	}
	if c := text(t, d, "context"); c != "" && c != "fork" {
		t.Errorf("context is %q", c)
	}
	f, _ := d.Get("metadata")
	meta, err := f.Map()
	if err != nil || !slices.Contains([]string{"code", "git", "data", "documents", "thinking", "finance"}, meta["area"]) {
		t.Errorf("area %q, %v", meta["area"], err)
	}
	if ko := meta["ko"]; !regexp.MustCompile(`\p{Hangul}`).MatchString(ko) || utf8.RuneCountInString(ko) > 60 {
		t.Errorf("its description in Korean is %q", ko)
	}
}

// checkTools sees to it that nothing is allowed but reading.
func checkTools(t *testing.T, d frontmatter.Doc) {
	t.Helper()
	f, ok := d.Get("allowed-tools")
	if !ok {
		t.Fatal("no allowed-tools")
	}
	list, err := f.List(frontmatter.Words)
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range list {
		if !slices.Contains(reading, rule) && !reads.MatchString(rule) {
			t.Errorf("it allows %s", rule)
		}
	}
	for _, in := range frontmatter.Inlines(d.Body) {
		first := strings.Join(strings.Fields(in.Command)[:2], " ")
		if !slices.Contains(list, "Bash("+first+" *)") {
			t.Errorf("%s runs at once and is not allowed", in.Command)
		}
	}
}

// checkBody sees to it that arguments and body are about each other.
func checkBody(t *testing.T, d frontmatter.Doc) {
	t.Helper()
	if !strings.HasPrefix(d.Body, "# ") || len(d.Body) > 6_000 {
		t.Errorf("the body has %d bytes and begins %.20q", len(d.Body), d.Body)
	}
	var args []string
	if f, ok := d.Get("arguments"); ok {
		var err error
		if args, err = f.List(frontmatter.Words); err != nil {
			t.Error(err)
		}
	}
	line, wants := text(t, d, "argument-hint") != "", false
	var words []string
	for i := range args {
		words = append(words, "VALUE"+strings.Repeat("X", i))
	}
	got, used := frontmatter.Values{Line: strings.Join(words, " "), Names: args}.Expand(d.Body)
	for i, a := range args {
		if !strings.Contains(got, "VALUE"+strings.Repeat("X", i)) {
			t.Errorf("the argument %s is not used", a)
		}
	}
	if wants = len(args) > 0 || used; wants != line {
		t.Errorf("arguments %v, used %v, hint %v", args, used, line)
	}
	if empty, _ := (frontmatter.Values{Names: args}).Expand(d.Body); strings.Contains(strings.ReplaceAll(empty, "$ARGUMENTS", ""), "$") {
		t.Error("a variable is left over")
	}
}
