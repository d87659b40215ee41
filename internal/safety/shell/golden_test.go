package shell

import (
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
)

var update = flag.Bool("update", false, "rewrite what the files of testdata expect")

// files are those that patterns of the tests find.
var files = []string{"/w/a.txt", "/w/b.txt", "/w/main.go", "/w/src/x.go", "/w/src/y.go", "/h/notes.md"}

func findFiles(pattern string) (found []string, ok bool) {
	for _, f := range files {
		if m, err := path.Match(pattern, f); err != nil {
			return nil, false
		} else if m {
			found = append(found, f)
		}
	}
	return found, true
}

func testOptions(sh string) Options {
	return Options{Shell: sh, Dir: "/w", Home: "/h", Vars: map[string]string{"TMPDIR": "/tmp"}, Glob: findFiles}
}

// TestRead holds what command lines come to against the files of testdata. A case
// is a command, whose lines begin with "$ " and "> ", and below it what is read;
// a blank line ends it. "#shell NAME" sets the shell of what follows.
func TestRead(t *testing.T) {
	names, err := filepath.Glob("testdata/read/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no cases", err)
	}
	total := 0
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, n := answer(t, string(data))
			total += n
			if *update {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if total < 300 {
		t.Errorf("%d cases, want 300 at least", total)
	}
}

// answer returns a file of cases with what each comes to now, and reports those
// that have changed.
func answer(t *testing.T, data string) (text string, cases int) {
	var b strings.Builder
	sh := ""
	for block := range strings.SplitSeq(strings.TrimSpace(data), "\n\n") {
		var command, want, head []string
		for line := range strings.SplitSeq(block, "\n") {
			switch {
			case strings.HasPrefix(line, "$ "), strings.HasPrefix(line, "> "):
				command = append(command, line[2:])
			case line == ">":
				command = append(command, "")
			case strings.HasPrefix(line, "#"):
				if s, ok := strings.CutPrefix(line, "#shell "); ok {
					sh = s
				}
				head = append(head, line)
			default:
				want = append(want, line)
			}
		}
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		for _, l := range head {
			b.WriteString(l + "\n")
		}
		if len(command) == 0 {
			continue
		}
		cases++
		line := unhex.Replace(strings.Join(command, "\n"))
		got := render(Read(line, testOptions(sh)))
		if !*update && got != strings.Join(want, "\n")+"\n" {
			t.Errorf("%s\ngot:\n%swant:\n%s", strings.Join(command, "\n"), got, strings.Join(want, "\n"))
		}
		for i, c := range command {
			b.WriteString([]string{"$ ", "> "}[min(i, 1)] + c + "\n")
		}
		b.WriteString(got)
	}
	return b.String(), cases
}

// unhex lets the files have characters that cannot be seen.
var unhex = strings.NewReplacer("<NUL>", "\x00", "<CR>", "\r", "<ESC>", "\x1b", "<ZWSP>", "\u200b", "<NBSP>", "\u00a0", "<RLO>", "\u202e", "<BAD>", "\xff", "<DEL>", "\x7f")

// render writes effects in few lines.
func render(e agent.Effects) string {
	var b strings.Builder
	for _, x := range []struct{ name, text string }{
		{"unparsed", e.Unparsed},
		{"unreadable", e.Unreadable},
		{"destructive", e.Destructive},
		{"reads", strings.Join(e.Reads, " ")},
		{"writes", strings.Join(e.Writes, " ")},
		{"hosts", strings.Join(e.Hosts, " ")},
	} {
		if x.text != "" {
			fmt.Fprintf(&b, "  %s: %s\n", x.name, x.text)
		}
	}
	for _, c := range e.Commands {
		renderCommand(&b, c, "  ")
	}
	if b.Len() == 0 {
		return "  nothing\n"
	}
	return b.String()
}

func renderCommand(b *strings.Builder, c agent.SimpleCommand, indent string) {
	b.WriteString(indent)
	for _, v := range c.Vars {
		b.WriteString(word(v) + " ")
	}
	for i, a := range c.Argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(word(a))
	}
	if c.Kind != "" {
		fmt.Fprintf(b, " (%s)", c.Kind)
	}
	if c.Transparent {
		b.WriteString(" (transparent)")
	}
	for _, x := range []struct{ mark, text string }{
		{"in ", c.Dir},
		{"flagged: ", c.Flagged},
		{"critical: ", c.Critical},
		{"< ", strings.Join(c.Reads, " ")},
		{"> ", strings.Join(c.Writes, " ")},
		{"rm ", strings.Join(c.Removes, " ")},
		{"@ ", strings.Join(c.Hosts, " ")},
	} {
		if x.text != "" {
			fmt.Fprintf(b, " [%s%s]", x.mark, x.text)
		}
	}
	b.WriteByte('\n')
	for _, r := range c.Runs {
		renderCommand(b, r, indent+"  ")
	}
}

// word quotes a word of a listing when it has to be.
func word(s string) string {
	if s == "" || strings.ContainsAny(s, " \n\t'\"\\[]()") || fmt.Sprintf("%q", s) != `"`+s+`"` {
		return fmt.Sprintf("%q", s)
	}
	return s
}
