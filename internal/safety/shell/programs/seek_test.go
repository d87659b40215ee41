package programs

import (
	"slices"
	"strings"
	"testing"
)

// What a text in another language runs is found where it shows.
func TestSeek(t *testing.T) {
	for _, c := range []struct {
		text string
		want string // lines, and words in brackets
	}{
		{`print("rm x")`, ""},
		{`import os; os.system("rm x")`, "rm x"},
		{`os.system('''rm x''')`, "rm x"},
		{`subprocess.run(["rm", "-rf", "x"], check=True)`, "[rm -rf x]"},
		{`os.execvp("rm", ["rm", "x"])`, "[rm rm x] [rm x]"},
		{`run("rm " + "x")`, "[rm  x] rm  x"},
		{`system "rm", "x"`, "[rm x]"},
		{`system("it's"); print("don't")`, "it's"},
		{`# don't
os.system("rm x")`, "rm x"},
		{"`rm x`", "rm x"},
		{`system(q{rm x}); exec qw(rm x)`, "q{rm x rm x qw(rm x [rm x]"},
		{`%x(rm x)`, "rm x"},
		{`open(F, "rm x|")`, "rm x"},
		{`"rm x".execute()`, "rm x"},
		{`exec rm x`, "rm x"},
		{`%!rm x`, "rm x"},
		{`silent !rm x`, "rm x"},
		{`\! rm x`, " rm x"},
		{`if (!rm && a != b) {}`, ""},
		{`$(shell rm x)`, "rm x"},
		{`\write18{rm x}`, "rm x"},
		{`system`, ""},
		{`system(`, ""},
		{`system("`, ""},
		{`q`, ""},
		{`%q`, ""},
		{`%(`, ""},
		{`!`, ""},
		{`"\`, ""},
		{`run(]"x"`, ""},
	} {
		var got []string
		done := Hint{Text: c.text, Ticks: true}.Seek(
			func(s string) { got = append(got, s) },
			func(list []string) { got = append(got, "["+strings.Join(list, " ")+"]") },
		)
		if have := strings.Join(got, " "); have != c.want || !done {
			t.Errorf("%s\n got %q, %v\nwant %q", c.text, have, done, c.want)
		}
	}
}

// A text that has too much in it says so.
func TestSeekBounds(t *testing.T) {
	found := 0
	done := Hint{Text: strings.Repeat("run a ", 10_000)}.Seek(func(s string) { found += len(s) }, func([]string) {})
	if done || found > (maxSought+1)*maxBare {
		t.Errorf("done %v, found %d bytes", done, found)
	}
}

func FuzzSeek(f *testing.F) {
	for _, s := range []string{`os.system("rm x")`, `%w[a b] qx{a{b}} q(`, `!a "b\`, `run(["a", 'b'])`, "`a`", `"a".run(`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var all []string
		Hint{Text: text, Ticks: true}.Seek(func(s string) { all = append(all, s) }, func(list []string) { all = slices.Concat(all, list) })
		size := 0
		for _, s := range all {
			size += len(s)
		}
		if size > 4*len(text)+(maxSought+1)*maxBare {
			t.Errorf("%d bytes of %d", size, len(text))
		}
	})
}
