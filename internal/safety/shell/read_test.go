package shell

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// names are the programs that effects have, those run by others included.
func names(list []agent.SimpleCommand) []string {
	var all []string
	for _, c := range list {
		all = append(all, c.Argv[0])
		all = append(all, names(c.Runs)...)
	}
	return all
}

func TestFolder(t *testing.T) {
	o := testOptions("")
	o.Folder = func(p string) bool { return p == "/w/src" }
	for _, tt := range []struct{ command, reads string }{
		{"cd src; cat x", "/w/src /w/src/x"},
		{"cd src; cd ..; cat x", "/w/src /w /w/x /w/src/x"},
		{"cd nope; cat x", "/w/nope /w/nope/x /w/x"},
		{"make; cd src; cat x", "/w/src /w/src/x /w/x"}, // it may be gone by then
	} {
		if got := strings.Join(Read(tt.command, o).Reads, " "); got != tt.reads {
			t.Errorf("%s reads %s, want %s", tt.command, got, tt.reads)
		}
	}
}

// Without options nothing relative can be told, and nothing else is lost.
func TestNothingKnown(t *testing.T) {
	e := Read("cat x /y", Options{})
	want := agent.Effects{
		Unreadable: "in which folder x is",
		Reads:      []string{"/y"},
		Commands:   []agent.SimpleCommand{{Argv: []string{"cat", "x", "/y"}, Reads: []string{"/y"}}},
	}
	if !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v, want %+v", e, want)
	}
}

func TestLimits(t *testing.T) {
	fill := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	for _, tt := range []struct{ name, command, unparsed string }{
		{"as long as may be", "rm x; echo " + fill("a", 9_989), ""},
		{"one character more", "rm x; echo " + fill("a", 9_990), "it is longer than 10,000 characters"},
		{"characters are not bytes", "rm x; echo " + strings.Repeat("가", 9_000), ""},
		{"more than is parsed", "rm x; echo " + fill("a", 70_000), "it is longer than 10,000 characters"},
		{"more than is looked at", "rm x; echo " + fill("a", 2<<20), "it is longer than 10,000 characters"},
		{"brackets", "rm x; " + fill("(", 101), "it is nested too deeply"},
		{"commands in commands", "rm x; " + fill("! ", 1000) + "ls", "it has a fault: line 1: cannot negate a command multiple times"},
		{"conditions", "rm x; " + fill("if ", 999), "it is nested too deeply"},
		{"commands", "rm x;" + fill("a;", 3_400), "it is too much to follow"},
		{"wrappers", "rm x; " + fill("env ", 100) + "ls", "too many commands in it run each other"},
		{"command lines", "rm x; " + fill("eval ", 60) + "ls", "it has too many command lines inside each other"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := Read(tt.command, testOptions(""))
			if e.Unparsed != tt.unparsed {
				t.Errorf("unparsed %q, want %q", e.Unparsed, tt.unparsed)
			}
			if len(e.Commands) == 0 || strings.Join(e.Commands[0].Argv, " ") != "rm x" {
				t.Error("does not list rm x")
			}
		})
	}
}

// What stands at the end of a text that is too long is seen all the same.
func TestSeenAtTheEnd(t *testing.T) {
	for _, middle := range []string{"true; ", "echo a\n", "((", "$(", "`", "'", "if a; then "} {
		text := strings.Repeat(middle, 20_000/len(middle)) + "; rm -rf /etc"
		e := Read(text, testOptions(""))
		found := false
		for _, c := range e.Commands {
			found = found || strings.Join(c.Argv, " ") == "rm -rf /etc"
		}
		if e.Unparsed == "" || !found {
			t.Errorf("after many %q: unparsed %q, rm listed: %v", middle, e.Unparsed, found)
		}
	}
}

// No text takes long, whatever it is made of.
func TestTime(t *testing.T) {
	const limit = time.Second // tens of milliseconds on a machine that does nothing else
	for _, c := range hostile() {
		best := time.Hour
		for range 3 {
			start := time.Now()
			Read(c.text, testOptions(""))
			best = min(best, time.Since(start))
		}
		if best > limit {
			t.Errorf("%s takes %v, want %v at most", c.name, best, limit)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, c := range typical {
		f.Add(c, "bash")
	}
	for _, c := range []string{
		"f() { f | f & }; f", "x=1; while a; do cd $x; x=$((x+1)); done", "cat <<A <(b) >c 2>&1\n$(d)\nA\n", "${x:-`y`} [[ -v a[$(z)] ]]",
		"for ((;;)) { :; }", "case a in (b|c) d;& *) e;; esac", "sh -c 'eval \"a\"' | xargs -I{} b {} > $'\\x63'", "{a,b{1..3}}* ~/x ~+",
		"coproc a { b; }", "::/ x; cat c:/y", "a=(1 [2]=3); a[$(b)]+=c; declare -n d=e", "trap 'a' 0; . b; exec < <(c)", "set -- a b; shift; echo \"$@\" ${1@P}",
	} {
		f.Add(c, "bash")
		f.Add(c, "sh")
		f.Add(c, "zsh")
	}
	f.Add("a\xf6b", "no shell")
	f.Fuzz(func(t *testing.T, command, sh string) {
		o := testOptions(sh)
		start := time.Now()
		e := Read(command, o)
		if d := time.Since(start); d > 30*time.Second {
			t.Errorf("took %v", d)
		}
		if again := Read(command, o); !reflect.DeepEqual(e, again) {
			t.Errorf("%q is read in two ways:\n%s%s", command, render(e), render(again))
		}
		if strings.Contains(command, "\x00") && e.Unparsed == "" && dialectOf(sh) != dialectOther {
			t.Errorf("%q has a NUL and is parsed", command)
		}
		if strings.TrimSpace(command) == "" && e.Unparsed == "" {
			t.Errorf("%q is empty and parsed", command)
		}
		for _, p := range append(append([]string{}, e.Reads...), e.Writes...) {
			if !rooted(p) && dialectOf(sh) != dialectOther {
				t.Errorf("%q has the relative path %q", command, p)
			}
		}
		if dialectOf(sh) != dialectBash || e.Unparsed != "" || strings.ContainsAny(command, "\\#\n<") {
			return
		}
		for _, wrap := range []string{"( %s )", "{ %s\n}", "true && { %s\n}", "%s\ntrue", "if true; then %s\nfi"} {
			inside := Read(strings.Replace(wrap, "%s", command, 1), o)
			if inside.Unparsed == "" {
				contains(t, command, wrap, e.Commands, inside.Commands)
			}
		}
	})
}

// contains checks that what a text runs is listed too when it stands in another.
func contains(t *testing.T, command, wrap string, want, got []agent.SimpleCommand) {
	t.Helper()
	count := map[string]int{}
	for _, n := range names(got) {
		count[n]++
	}
	for _, n := range names(want) {
		if count[n] == 0 {
			t.Errorf("%q in %q does not list %q", command, wrap, n)
		}
	}
}

// Every name of a plain list of commands is listed, whatever joins them.
func FuzzList(f *testing.F) {
	f.Add("ls", "cat", "rm", uint8(0))
	f.Add("a", "echo", "sh", uint8(7))
	ops := []string{"; ", " && ", " || ", " | ", " & ", "\n", " |& ", ";\n\n"}
	f.Fuzz(func(t *testing.T, a, b, c string, op uint8) {
		for _, n := range []string{a, b, c} {
			if !plainName(n) {
				t.Skip()
			}
		}
		text := a + " x" + ops[op%8] + b + " y" + ops[op/8%8] + c + " z"
		e := Read(text, testOptions(""))
		if e.Unparsed != "" {
			t.Skip()
		}
		got := names(e.Commands)
		for _, n := range []string{a, b, c} {
			if !strings.Contains(" "+strings.Join(got, " ")+" ", " "+n+" ") {
				t.Errorf("%q does not list %q: %v", text, n, got)
			}
		}
	})
}

// plainName says whether a word is only letters, and no word of the language.
func plainName(s string) bool {
	for _, r := range s {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	switch s {
	case "let", "declare", "export", "local", "readonly", "typeset", "nameref", "time", "coproc", "function":
		return false
	}
	return s != "" && !keyword(s)
}

// What a repository names for git to run makes of git status more than a look.
func TestRepository(t *testing.T) {
	for folder, want := range map[string]agent.CommandKind{"/w": agent.CommandReads, "/w/hostile": agent.CommandOther} {
		e := Read("git status", Options{Dir: folder, Repository: func(folder string) bool { return folder == filepath.FromSlash("/w/hostile") }})
		if got := e.Commands[0].Kind; got != want {
			t.Errorf("in %s: %q, want %q", folder, got, want)
		}
	}
}
