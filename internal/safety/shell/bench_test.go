package shell

import (
	"strings"
	"testing"
)

var typical = []string{
	`git status`,
	`cd src && go test ./... 2>&1 | tail -n 20`,
	`grep -rn "TODO" --include='*.go' . | head -50`,
	`for f in a.txt b.txt; do wc -l "$f"; done`,
	`npm run build && npm test -- --watch=false > out.log`,
	`git add -A && git commit -m "Say what it does" && git push origin main`,
}

func BenchmarkReadTypical(b *testing.B) {
	o := testOptions("")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		Read(typical[i%len(typical)], o)
	}
}

// long is a text of 10,000 characters of ordinary work.
func long() string {
	line := "if [ -f \"$dir/a.txt\" ]; then echo 'one more' | sed -n 's/a/b/p' >> out.txt; fi\n"
	doc := "cat > notes.md <<'END'\n" + strings.Repeat("Some text of a note that is written, line by line, by a here-document.\n", 60) + "END\n"
	return doc + strings.Repeat(line, (10_000-len(doc))/len(line))
}

func BenchmarkRead10k(b *testing.B) {
	text, o := long(), testOptions("")
	b.ReportAllocs()
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Read(text, o)
	}
}

func BenchmarkReadHostile(b *testing.B) {
	o := testOptions("")
	for _, c := range hostile() {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				Read(c.text, o)
			}
		})
	}
}

type hostileText struct{ name, text string }

// hostile are texts that are meant to take long.
func hostile() []hostileText {
	fill := func(s string, n int) string { return strings.Repeat(s, n/len(s)) }
	loops := strings.Repeat("while a; do x=$((x+1)); cd ..; ", 40) + strings.Repeat("done;", 40)
	calls := "f0() { :; };"
	for i := range 30 {
		c := string(rune('a' + i%26))
		calls += c + "x() { " + c + "y; " + c + "y; }; " + c + "y() { " + c + "x; " + c + "x; };"
	}
	return []hostileText{
		{"commands", fill("a;", 10_000)},
		{"words", fill("a ", 10_000)},
		{"brackets", fill("(", 10_000)},
		{"ifs", fill("if ", 10_000)},
		{"bangs", fill("! ", 10_000)},
		{"backquotes", fill("`", 10_000)},
		{"dollars", fill("$(", 10_000)},
		{"pipes", fill("a|", 9_998) + "a"},
		{"braces", fill("{a,b}", 10_000)},
		{"sequence", "echo {1..999999999}{1..999999999}"},
		{"loops", loops},
		{"calls", calls},
		{"env", fill("env ", 10_000)},
		{"eval", fill("eval ", 10_000)},
		{"assignments", fill("a=b;c=$a;", 10_000)},
		{"branches", fill("if a;then x=1;b=2;fi;", 10_000)},
		{"documents", fill("a <<X\n", 10_000)},
		{"megabyte", fill("rm -rf x; ", 1<<20)},
		{"megabytes", fill("$(echo ", 8<<20)},
	}
}
