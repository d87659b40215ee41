package frontmatter

import (
	"slices"
	"strings"
	"testing"
)

func TestExpand(t *testing.T) {
	names := []string{"dir", "directory", "branch-name"}
	vars := map[string]string{"SKILL_DIR": "/s"}
	for _, tt := range []struct{ body, line, want string }{
		{"all: $ARGUMENTS", `a "b c"`, `all: a "b c"`},
		{"$ARGUMENTS[1] $0 {0} $5 {5}", `a "b c"`, "b c a a $5 {5}"},
		{"$directory $dir $dirs $dir2", "x y", "y x $dirs $dir2"},
		{"$branch-name-x $branch-name $dir-x", "x y z", "z-x z x-x"},
		{"$ARGUMENTSX $ARGUMENT", "x", "$ARGUMENTSX $ARGUMENT"},
		{`\$0 \\$0 \\\$0 \n \$ \$other`, "x", `$0 \\x \\$0 \n \$ \$other`},
		{"{{0}} {{1} {0", "x", "{0} {{1} {0"},
		{`{"a": {0}, "b": {}}`, "x", `{"a": x, "b": {}}`},
		{"${SKILL_DIR}/a ${OTHER} ${SKILL_DIR", "", "/s/a ${OTHER} ${SKILL_DIR"},
		{"$0 and $1", "$1 $0", "$1 and $0"}, // values are not read again
		{"[$dir] [$directory]", "", "[] []"},
		{"$0 $1", `"" ''`, " "},
		{"costs $ 5, $x, 100$", "a", "costs $ 5, $x, 100$"},
		{"$99999 {99999}", "a", "$99999 {99999}"},
	} {
		v := Values{Line: tt.line, Names: names, Vars: vars}
		if got, _ := v.Expand(tt.body); got != tt.want {
			t.Errorf("%q with %q is %q, want %q", tt.body, tt.line, got, tt.want)
		}
	}
	quote := func(s string) string { return "'" + s + "'" }
	got, used := Values{Line: "a; b", Names: names, Vars: vars, Quote: quote}.Expand("ls $0 $ARGUMENTS ${SKILL_DIR} $directory")
	if want := "ls 'a;' 'a; b' '/s' 'b'"; got != want || !used {
		t.Errorf("%q, %v, want %q", got, used, want)
	}
	if _, used := (Values{Line: "a"}).Expand("nothing ${X}"); used {
		t.Error("no argument was asked for")
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct {
		line string
		want []string
	}{
		{"", nil},
		{"  a\tb\n c ", []string{"a", "b", "c"}},
		{`"hello world" 'it is' x"y z"`, []string{"hello world", "it is", "xy z"}},
		{`"" '' a`, []string{"", "", "a"}},
		{`a\ b \"q\" 'a\b' "a\"b"`, []string{"a b", `"q"`, `a\b`, `a"b`}},
		{`C:\dir\file`, []string{`C:\dir\file`}},
		{`"not ended`, []string{"not ended"}},
		{`end\`, []string{`end\`}},
		{"바보 \"한 글\"", []string{"바보", "한 글"}},
	} {
		if got := Arguments(tt.line); !slices.Equal(got, tt.want) {
			t.Errorf("%q is %q, want %q", tt.line, got, tt.want)
		}
	}
	if got := len(Arguments(strings.Repeat("a ", 3*MaxArguments))); got != MaxArguments {
		t.Errorf("%d words", got)
	}
}

func TestInlines(t *testing.T) {
	for _, tt := range []struct {
		body string
		want []string
	}{
		{"!`git status`\nand !`ls -a` there", []string{"!`git status`=git status", "!`ls -a`=ls -a"}},
		{"x!`no` !` ` `!`no` !`open", nil},
		{"a\n```!\ngit log\ngit diff\n```\nb", []string{"```!\ngit log\ngit diff\n```=git log\ngit diff"}},
		{"```!\nnever closed !`echo`", []string{"!`echo`=echo"}},
		{"```\n!`in a block` counts\n```", []string{"!`in a block`=in a block"}},
	} {
		var got []string
		for _, in := range Inlines(tt.body) {
			got = append(got, tt.body[in.From:in.To]+"="+in.Command)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q has %q, want %q", tt.body, got, tt.want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	f.Add("$ARGUMENTS $0 {0} {{0}} ${X} $name \\$0 !`a $0`\n```!\nx\n```\n", `a "b c" 'd' \`)
	f.Fuzz(func(t *testing.T, body, line string) {
		const mark = "\x01"
		v := Values{Line: line, Names: []string{"name", "name-x"}, Vars: map[string]string{"X": "$0 !`x`"}}
		text, used := v.Expand(body)
		if !strings.ContainsAny(body, `\${`) && (text != body || used) {
			t.Fatalf("%q became %q", body, text)
		}
		if !strings.Contains(body, mark) {
			v.Quote = func(string) string { return mark }
			marked, _ := v.Expand(body)
			v.Quote = func(string) string { return "" }
			if bare, _ := v.Expand(body); strings.ReplaceAll(marked, mark, "") != bare {
				t.Fatalf("what a value says has changed the rest of %q", body)
			}
		}
		last := 0
		for _, in := range Inlines(body) {
			if in.From < last || in.To > len(body) || in.From >= in.To || in.Command == "" && !strings.HasPrefix(body[in.From:], "```!") {
				t.Fatalf("%+v in %q", in, body)
			}
			last = in.To
		}
	})
}
