package programs

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the command lines of testdata come to now")

// Each line of testdata is a command line, and what it comes to. There is a file
// for each family of programs.
func TestLook(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			for _, line := range strings.SplitAfter(string(data), "\n") {
				if line == "" || line == "\n" || strings.HasPrefix(line, "#") {
					out.WriteString(line)
					continue
				}
				command, want, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " => ")
				use := Look(Call{words(command)})
				check(t, use)
				got := notation(use)
				out.WriteString(command + " => " + got + "\n")
				if got != want && !*update {
					t.Errorf("%s\n got %s\nwant %s", command, got, want)
				}
			}
			if *update {
				if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// words splits a command line at blanks, with quotes and backslashes. A word that
// has a dollar sign, or a glob or a tilde outside of quotes, is not known.
func words(line string) []Word {
	line = strings.ReplaceAll(line, `\n`, "\n")
	var all []Word
	for {
		line = strings.TrimLeft(line, " ")
		if line == "" {
			return all
		}
		var text strings.Builder
		var quote byte
		w := Word{Known: true}
		split := false
		i := 0
		for ; i < len(line) && (quote != 0 || line[i] != ' '); i++ {
			c := line[i]
			switch {
			case quote == 0 && (c == '\'' || c == '"'):
				quote = c
			case quote == c:
				quote = 0
			case c == '\\' && quote != '\'' && i+1 < len(line):
				i++
				text.WriteByte(line[i])
			case quote != '\'' && (c == '$' || c == '`') || quote == 0 && (c == '*' || c == '?' || c == '~' && i == 0):
				split = split || quote == 0 || strings.HasPrefix(line[i:], "$@")
				w.Known = false
				text.WriteByte(c)
			default:
				text.WriteByte(c)
			}
		}
		w.Text = text.String()
		if !w.Known {
			w.Text = line[:i]
			w.One = !split
		}
		all = append(all, w)
		line = line[i:]
	}
}

// notation is a Use in one line: r: reads, w: writes, rm: removes, h: hosts,
// run: commands, sh: command lines.
func notation(u Use) string {
	var parts []string
	add := func(label string, texts []string) {
		for _, s := range texts {
			parts = append(parts, label+strings.ReplaceAll(s, "\n", `\n`))
		}
	}
	if u.Kind != "" {
		parts = append(parts, string(u.Kind))
	}
	add("r:", u.Reads)
	add("w:", u.Writes)
	add("rm:", u.Removes)
	add("h:", u.Hosts)
	for _, argv := range u.Runs {
		add("run:", []string{"[" + text(argv) + "]"})
	}
	for _, s := range u.Scripts {
		add("sh:", []string{"[" + text([]Word{s}) + "]"})
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"more", u.More}, {"transparent", u.Transparent}, {"elsewhere", u.Elsewhere}} {
		if f.set {
			parts = append(parts, f.name)
		}
	}
	for _, f := range []struct{ name, text string }{
		{"flagged", u.Flagged},
		{"critical", u.Critical},
		{"destructive", u.Destructive},
		{"unreadable", u.Unreadable},
	} {
		if f.text != "" {
			parts = append(parts, f.name+"("+strings.ReplaceAll(f.text, "\n", `\n`)+")")
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, " ")
}

func text(argv []Word) string {
	var texts []string
	for _, w := range argv {
		if !w.Known {
			w.Text = "?" + w.Text
		}
		texts = append(texts, w.Text)
	}
	return strings.Join(texts, " ")
}
