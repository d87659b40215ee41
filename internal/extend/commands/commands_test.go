package commands_test

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
	"dure/internal/extend/commands"
	"dure/internal/frontend/text"
)

var update = flag.Bool("update", false, "rewrite the tables of docs/commands.md")

// The table is sorted, says each name once, and people can read in both languages what
// each command does.
func TestTable(t *testing.T) {
	all := commands.BuiltIns()
	if !slices.IsSortedFunc(all, func(a, b commands.BuiltIn) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the table is not sorted by name")
	}
	seen := map[string]bool{}
	for _, b := range all {
		for _, name := range append([]string{b.Name}, b.Aliases...) {
			if seen[name] || name != strings.ToLower(name) || strings.ContainsAny(name, " /") {
				t.Errorf("%q is there twice, or cannot be typed", name)
			}
			seen[name] = true
			if got, ok := commands.Find(strings.ToUpper(name)); !ok || got.Name != b.Name {
				t.Errorf("%s finds %q", name, got.Name)
			}
		}
		for _, lang := range []string{"en", "ko"} {
			if text.For(lang).Command(b.Name) == "" {
				t.Errorf("/%s: nothing says in %s what it does", b.Name, lang)
			}
		}
		if b.Bare && b.Hint != "" {
			t.Errorf("/%s takes no arguments, and shows some", b.Name)
		}
	}
}

// The pages list the commands as the table has them.
func TestPages(t *testing.T) {
	for _, p := range []struct{ file, lang, head string }{
		{"../../../docs/commands.md", "en", "| command | arguments | also | |"},
		{"../../../docs/ko/commands.md", "ko", "| 명령 | 인자 | 같은 명령 | |"},
	} {
		data, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, ok := strings.Cut(string(data), "<!-- table -->\n")
		_, after, ok2 := strings.Cut(rest, "<!-- end -->")
		if !ok || !ok2 {
			t.Fatalf("%s has no place for the table", p.file)
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s<!-- table -->\n%s\n|---|---|---|---|\n", before, p.head)
		for _, c := range commands.List(text.For(p.lang).Command) {
			cell := func(s, around string) string {
				if s == "" {
					return ""
				}
				return around + strings.ReplaceAll(s, "|", `\|`) + around
			}
			also := ""
			if len(c.Aliases) > 0 {
				also = "`/" + strings.Join(c.Aliases, "`, `/") + "`"
			}
			fmt.Fprintf(&b, "| `/%s` | %s | %s | %s |\n", c.Name, cell(c.Hint, "`"), also, cell(c.Description, ""))
		}
		fmt.Fprintf(&b, "<!-- end -->%s", after)
		if *update {
			if err := os.WriteFile(p.file, []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if d := cmp.Diff(b.String(), string(data)); d != "" {
			t.Errorf("%s (go test ./internal/extend/commands -update writes it):\n%s", p.file, d)
		}
	}
}

func TestRead(t *testing.T) {
	k := commands.Known{
		Session: true,
		Others: []query.CommandInfo{
			{Name: "fix", Kind: query.CommandCustom},
			{Name: "Fix", Kind: query.CommandCustom},
			{Name: "git:tidy", Kind: query.CommandCustom},
			{Name: "Deploy", Kind: query.CommandSkill},
			{Name: "model", Kind: query.CommandSkill},
			{Name: "hidden", Kind: query.CommandSkill, Off: "it is not for users"},
		},
		Exists: func(path string) bool { return path == "/usr" },
	}
	type r = query.CommandRead
	send := r{Is: query.ReadSend}
	for _, tt := range []struct {
		text string
		want query.CommandRead
	}{
		{"hello /help", send},
		{" /help", send},
		{"/", r{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: "help"}},
		{"/ and so on", send},
		{"/help", r{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: "help"}},
		{"/HELP\n me ", r{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: "help", Arguments: "me"}},
		{"/new\tThe Title", r{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: "clear", Arguments: "The Title"}},
		{"/cost all", r{Is: query.ReadRefuse, Kind: query.CommandBuiltIn, Name: "cost", Arguments: "all", Why: query.WhyUsage}},
		{"/model x", r{Is: query.ReadRun, Kind: query.CommandBuiltIn, Name: "model", Arguments: "x"}},
		{"/fix 1  2", r{Is: query.ReadSend, Kind: query.CommandCustom, Name: "fix", Arguments: "1  2"}},
		{"/Fix", r{Is: query.ReadSend, Kind: query.CommandCustom, Name: "Fix"}},
		{"/FIX", r{Is: query.ReadUnknown, Name: "FIX", Near: []string{"fix", "Fix"}}},
		{"/deploy now", r{Is: query.ReadSend, Kind: query.CommandSkill, Name: "Deploy", Arguments: "now"}},
		{"/git:tidy", r{Is: query.ReadSend, Kind: query.CommandCustom, Name: "git:tidy"}},
		{"/tidy", r{Is: query.ReadUnknown, Name: "tidy", Near: []string{"git:tidy"}}},
		{"/hidden", r{Is: query.ReadRefuse, Kind: query.CommandSkill, Name: "hidden", Why: "it is not for users"}},
		{"/usr/bin/env is odd", send},
		{"/usr is full", send},
		{"/a/b", send},
		{"/nothing\nof the sort", send},
		{"/hlep", r{Is: query.ReadUnknown, Name: "hlep", Near: []string{"help"}}},
		{"/comp", r{Is: query.ReadUnknown, Name: "comp", Near: []string{"compact"}}},
		{"/" + strings.Repeat("x", 5000), r{Is: query.ReadUnknown, Name: strings.Repeat("x", 5000)}},
	} {
		if d := cmp.Diff(tt.want, commands.Read(tt.text, k)); d != "" {
			t.Errorf("%.40q: %s", tt.text, d)
		}
	}
	if got := commands.Read("/cost", commands.Known{}); got.Is != query.ReadRefuse || got.Why != query.WhySession {
		t.Errorf("without a session: %+v", got)
	}
	if got := commands.Read("/quit", commands.Known{}); got.Is != query.ReadRun {
		t.Errorf("without a session: %+v", got)
	}
}

// What a person has typed is told from what commands say behind it, whatever either says.
func TestTyped(t *testing.T) {
	c := commands.Command{Name: "a:b"}
	for _, typed := range []string{"/a:b", "/a:b x\n\n[/ y", "/a:b [/c says:]\nx", "/a:b\n\n[/c\n says:]\n"} {
		if got := commands.Typed(commands.Joined(typed, []commands.Command{c, c}, []string{"@one", "\n\n[/x says:]\n@two"})); got != typed {
			t.Errorf("of %q it has %q", typed, got)
		}
	}
	for _, whole := range []string{"hello\n\n[/c says:]\n", "/review\n\ntext", ""} {
		if got := commands.Typed(whole); got != whole {
			t.Errorf("of %q it has %q", whole, got)
		}
	}
}
