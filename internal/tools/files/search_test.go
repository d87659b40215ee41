package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestList(t *testing.T) {
	d := newDesk(t)
	for _, f := range []string{"go.mod", "cmd/app/main.go", "internal/a/a.go", "internal/a/b.go", "internal/c.go", "node_modules/x/y.js", "debug.log"} {
		d.put(f, "x")
	}
	d.check(os.Mkdir(filepath.Join(d.ws, "void"), 0o755))
	d.want("list", in{}, "./\ncmd/\n  app/\n    main.go\ndebug.log\ngo.mod\ninternal/\n  a/\n    a.go\n    b.go\n  c.go\nnode_modules/ (ignored)\nvoid/ (empty)")
	d.want("list", in{"path": "internal"}, "internal/\na/\n  a.go\n  b.go\nc.go")
	d.want("list", in{"depth": 1, "ignore": []string{"*.log", "void"}}, "./\ncmd/ (1 file)\ngo.mod\ninternal/ (3 files)\nnode_modules/ (ignored)")
	d.want("list", in{"ignore": []string{"internal/a/**", "cmd/", "node_modules", "*.log", "void"}}, "./\ngo.mod\ninternal/\n  c.go")
	d.want("list", in{"path": "void"}, "void/\n[the folder is empty]")
	d.want("list", in{"path": "go.mod"}, "E_FILE_TYPE: WS/go.mod is not a folder\nName a folder; the read tool shows files.")
	d.want("list", in{"path": "gone"}, "E_FILE_NOT_FOUND: WS/gone does not exist\nLook for it with the glob or list tool.")
}

func TestListFitsItsBudget(t *testing.T) {
	d := newDesk(t)
	for i := range 30 {
		for j := range 30 {
			d.put(fmt.Sprintf("folder-%02d/file-with-a-long-name-%02d.txt", i, j), "")
		}
	}
	got := d.text("list", in{})
	if len(got) > listBudget || !strings.Contains(got, "folder-29/ (30 files)") {
		t.Errorf("%d: %s", len(got), got)
	}
	got = d.text("list", in{"path": "folder-00"})
	if strings.Count(got, "\n") != 30 {
		t.Error(got)
	}
	for i := range 200 {
		d.put(fmt.Sprintf("folder-00/another-file-with-a-long-name-%03d.txt", i), "")
	}
	got = d.text("list", in{"path": "folder-00"})
	if len(got) > listBudget || !strings.HasSuffix(got, " more; list a folder below, or use ignore]") {
		t.Errorf("%d: %s", len(got), got)
	}
}

func TestGlob(t *testing.T) {
	d := newDesk(t)
	for i, f := range []string{"b.go", "sub/a.go", "sub/deep/c.ts", "sub/deep/d.tsx", "node_modules/m/m.go", ".hidden/h.go"} {
		d.put(f, "x")
		at := time.Unix(1_000_000+int64(i), 0)
		d.check(os.Chtimes(filepath.Join(d.ws, f), at, at))
	}
	d.check(os.Symlink("b.go", filepath.Join(d.ws, "link.rs")))
	d.want("glob", in{"pattern": "**/*.go"}, ".hidden/h.go\nsub/a.go\nb.go")
	d.want("glob", in{"pattern": "*.go"}, ".hidden/h.go\nsub/a.go\nb.go")
	d.want("glob", in{"pattern": "./*.go"}, "b.go")
	d.want("glob", in{"pattern": "sub/**/*.{ts,tsx}"}, "sub/deep/d.tsx\nsub/deep/c.ts")
	d.want("glob", in{"pattern": "*.go", "path": "sub"}, "sub/a.go")
	d.want("glob", in{"pattern": d.ws + "/sub/deep/*"}, "sub/deep/d.tsx\nsub/deep/c.ts")
	d.want("glob", in{"pattern": "node_modules/**"}, "node_modules/m/m.go")
	d.want("glob", in{"pattern": "*.rs"}, "link.rs")
	d.want("glob", in{"pattern": "*.py"}, "[no files match]")
	d.want("glob", in{"pattern": "*.py", "path": "b.go"}, "E_FILE_TYPE: WS/b.go is not a folder\nName a folder; the read tool shows files.")
	d.want("glob", in{"pattern": "none/*.py"}, "E_FILE_NOT_FOUND: WS/none does not exist\nLook for it with the glob or list tool.")

	for i := range 120 {
		d.put(fmt.Sprintf("many/%03d.txt", i), "")
	}
	r := d.do("glob", in{"pattern": "*.txt"})
	if !strings.HasSuffix(r.Text, "\n[the newest 100 of 120; use a narrower pattern for others]") || strings.Count(r.Text, "\n") != 100 ||
		!strings.Contains(string(r.Output), `"numFiles":100,`) || !strings.Contains(string(r.Output), `"truncated":true`) {
		t.Error(r.Text, string(r.Output))
	}
}

func TestGrep(t *testing.T) {
	d := newDesk(t)
	d.put("a.go", "package a\n\nfunc Area() {}\n\n// area of b\nfunc b() {}\n")
	d.put("sub/b.ts", "const area = 1;\nlet x = 2;\r\nlet y = area;\r\n")
	d.put("sub/c.txt", "nothing\n")
	d.put("bin", "area\x00")
	d.put("latin.txt", "caf\xe9\n")
	d.put("utf16.txt", "\xff\xfea\x00r\x00e\x00a\x00\n\x00")
	d.put("node_modules/x.js", "area\n")
	d.put(filepath.Join(d.out, "blob"), "one\ntwo\nthree\n")
	d.put(filepath.Join(d.out, "secret"), "area\n")
	d.check(os.Symlink(d.out, filepath.Join(d.ws, "away")))
	d.check(os.Symlink(filepath.Join(d.out, "secret"), filepath.Join(d.ws, "away.txt")))

	const bin = "\n[binary and not searched: 1 file]"
	content := func(more in) in {
		m := in{"output_mode": "content", "glob": "!bin"}
		for k, v := range more {
			m[k] = v
		}
		return m
	}
	for _, c := range []struct {
		input in
		want  string
	}{
		{in{"pattern": "area"}, "a.go\nsub/b.ts\nutf16.txt" + bin},
		{in{"pattern": "Area|let"}, "a.go\nsub/b.ts" + bin},
		{in{"pattern": "area", "output_mode": "count", "-i": true, "glob": "!bin"}, "a.go:2\nsub/b.ts:2\nutf16.txt:1"},
		{in{"pattern": "area", "type": "ts"}, "sub/b.ts"},
		{in{"pattern": "area", "glob": "*.{go,ts}"}, "a.go\nsub/b.ts"},
		{in{"pattern": "area", "glob": "*.go,*.ts !a.*"}, "sub/b.ts"},
		{in{"pattern": "area", "glob": "sub/**"}, "sub/b.ts"},
		{in{"pattern": "area", "path": "sub"}, "sub/b.ts"},
		{in{"pattern": "café"}, "latin.txt" + bin},
		{in{"pattern": "area", "path": "bin"}, "[no matches]\n[the file is binary and was not searched]"},
		{in{"pattern": "zzz", "glob": "!bin"}, "[no matches]"},
		{content(in{"pattern": "area"}), "a.go:5:// area of b\nsub/b.ts:1:const area = 1;\nsub/b.ts:3:let y = area;\nutf16.txt:1:area"},
		{content(in{"pattern": "area", "-n": false, "path": "sub/b.ts"}), "const area = 1;\nlet y = area;"},
		{content(in{"pattern": `= \d;$`, "path": "sub/b.ts"}), "1:const area = 1;\n2:let x = 2;"},
		{content(in{"pattern": `[0-9].$`, "path": "sub/b.ts"}), "1:const area = 1;\n2:let x = 2;"},
		{content(in{"pattern": "^func", "path": "a.go"}), "3:func Area() {}\n6:func b() {}"},
		{content(in{"pattern": "^func", "path": "a.go", "-C": 1}), "2-\n3:func Area() {}\n4-\n5-// area of b\n6:func b() {}"},
		{content(in{"pattern": "^(package|func b)", "path": "a.go", "-A": 1, "-B": 1}), "1:package a\n2-\n--\n5-// area of b\n6:func b() {}"},
		{content(in{"pattern": "[a-z]+;", "path": "sub/b.ts", "-o": true}), "3:area;"},
		{content(in{"pattern": "e", "path": "output:abc123", "head_limit": 1}), "1:one\n[there is more; continue with offset 1, or narrow the search]"},
		{content(in{"pattern": "e", "path": "output:abc123", "offset": 1}), "3:three"},
		{content(in{"pattern": "e", "path": "output:abc123", "offset": 7}), "[no more results: there are 2]"},
		{in{"pattern": "area", "head_limit": 1}, "a.go\n[there is more; continue with offset 1, or narrow the search]" + bin},
		{in{"pattern": "area", "offset": 2}, "utf16.txt" + bin},
		{content(in{"pattern": `\{\}.*area`, "multiline": true}), "a.go:3:func Area() {}\na.go:4:\na.go:5:// area of b"},
		{content(in{"pattern": `\n\n`, "multiline": true, "path": "a.go"}), "1:package a\n2:\n3:func Area() {}\n4:"},
	} {
		d.want("grep", c.input, c.want)
	}
	for pattern, want := range map[string]string{
		"(?=x)":       "no lookahead",
		"(?<!x)y":     "no lookahead",
		`(a)\1`:       "no backreferences",
		"func(":       "Escape characters",
		"a{1,":        "",
		"interface{}": "",
	} {
		r := d.do("grep", in{"pattern": pattern})
		if (want == "") == r.Failed() || r.Failed() && !strings.Contains(r.Error.Suggestion, want) {
			t.Errorf("%s: %+v", pattern, r.Error)
		}
	}
}

func TestGrepOutput(t *testing.T) {
	d := newDesk(t)
	d.put("a", "x\ny\nx\n")
	for mode, want := range map[string]string{
		"files_with_matches": `{"mode":"files_with_matches","numFiles":1,"filenames":["a"]}`,
		"count":              `{"mode":"count","numFiles":1,"filenames":["a"],"content":"a:2","numMatches":2}`,
		"content":            `{"mode":"content","numFiles":1,"filenames":["a"],"content":"a:1:x\na:3:x","numLines":2,"numMatches":2}`,
	} {
		if got := string(d.do("grep", in{"pattern": "x", "output_mode": mode}).Output); got != want {
			t.Errorf("%s: %s", mode, got)
		}
	}
}

func TestHeadLimit(t *testing.T) {
	d := newDesk(t)
	d.put("f", strings.Repeat("x\n", 1000))
	for limit, want := range map[any]int{nil: 250, 0: 950, 10: 10} {
		input := in{"pattern": "x", "output_mode": "content", "-n": false, "path": "f"}
		if limit != nil {
			input["head_limit"] = limit
		}
		if got := strings.Count(d.text("grep", input), "x\n"); got < want {
			t.Errorf("head_limit %v: %d lines", limit, got)
		}
	}
}

// Output stays within the budget, goes on where it stopped, and long lines are cut.
func TestGrepPages(t *testing.T) {
	d := newDesk(t)
	for i := range 200 {
		d.put(fmt.Sprintf("f%03d", i), strings.Repeat("한", 30)+" match\n"+strings.Repeat("match ", 1000)+"\n")
	}
	lines := 0
	for offset, pages := 0, 0; ; pages++ {
		r := d.do("grep", in{"pattern": "match", "output_mode": "content", "offset": offset})
		if n := utf8.RuneCountInString(r.Text); n > grepBudget || pages > 100 {
			t.Fatalf("page %d has %d characters", pages, n)
		}
		body, note, more := strings.Cut(r.Text, "\n[there is more")
		got := strings.Count(body, "\n") + 1
		lines += got
		if !more {
			break
		}
		if want := fmt.Sprintf("continue with offset %d,", offset+got); !strings.Contains(note, want) {
			t.Fatal(note)
		}
		offset += got
	}
	if lines != 400 {
		t.Errorf("%d lines", lines)
	}
}

func TestGrepSkipsLargeFiles(t *testing.T) {
	d := newDesk(t)
	d.put("large", "needle\n")
	d.check(os.Truncate(filepath.Join(d.ws, "large"), searchFile+1))
	d.put("small", "needle\n")
	d.want("grep", in{"pattern": "needle"}, "small\n[larger than 64 MiB and not searched: 1 file; name a file in path to search it, without multiline]")
}

// A search through many windows finds what a search line by line finds, with
// the same context.
func TestSearchEqualsReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for range 1_500 {
		text.WriteString([]string{"alpha beta", "", "Gamma k delta", "x" + strings.Repeat("y", rng.IntN(120)), "12.5 end", "naïve K"}[rng.IntN(6)])
		text.WriteString([]string{"\n", "\n", "\n", "\r\n"}[rng.IntN(4)])
	}
	data := text.String()
	d := newDesk(t)
	d.put("f", data)
	for _, pattern := range []string{"beta", "(?i)GAMMA", "k", `^x.{100,}$`, `\d+\.\d`, "^$", `end$`, "a[^q]*k", "yyy|12", `\bdelta`, "(?i)kelvin|K"} {
		for _, fold := range []bool{false, true} {
			for _, around := range []int{0, 2} {
				m, err := newMatcher(pattern, fold, false)
				d.check(err)
				file, err := d.files.Workspace.Open(filepath.Join(d.ws, "f"))
				d.check(err)
				s := &searcher{m: m, before: around, after: around, lines: true, buf: make([]byte, 1000)}
				got, err := s.search(t.Context(), file, true)
				file.Close()
				d.check(err)
				want := reference(data, pattern, fold, around)
				if fmt.Sprint(got.lines) != fmt.Sprint(want) {
					t.Errorf("%s, fold %v, around %d: %d lines, want %d", pattern, fold, around, len(got.lines), len(want))
				}
			}
		}
	}
}

// reference is the search in its simplest form.
func reference(data, pattern string, fold bool, around int) (out []outLine) {
	if fold {
		pattern = "(?i)" + pattern
	}
	re := regexp.MustCompile(pattern)
	lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
	show := make([]int, len(lines)+1)
	for i := range lines {
		lines[i] = strings.TrimSuffix(lines[i], "\r")
		if !re.MatchString(lines[i]) {
			continue
		}
		for j := max(0, i-around); j <= min(len(lines)-1, i+around); j++ {
			show[j] = max(show[j], 1)
		}
		show[i] = 2
	}
	for i, l := range lines {
		if show[i] > 0 {
			gap := around > 0 && len(out) > 0 && show[i-1] == 0
			out = append(out, outLine{i + 1, show[i] == 2, gap, l})
		}
	}
	return out
}

func FuzzSearch(f *testing.F) {
	for _, p := range []string{"a", "(?i)k", "^x$", `\s`, "a|b", "(ab)+c", `\bfoo\b`, "[^a]", "a\nb", "^", "$", "é", "(?-i)A"} {
		f.Add(p, "a\nb", false, uint8(0))
		f.Add("\r", "\r\n", false, uint8(0))
		f.Add(p, "alpha\nbeta k\n\r\nfoo bar é\nab\nabc", true, uint8(1))
	}
	f.Fuzz(func(t *testing.T, pattern, data string, fold bool, around uint8) {
		m, err := newMatcher(pattern, fold, false)
		if err != nil || strings.Contains(pattern, `\A`) || strings.Contains(pattern, `\z`) || strings.Contains(pattern, "(?") || len(data) > 10_000 || !utf8.ValidString(data) {
			return
		}
		d := strings.NewReader(data)
		s := &searcher{m: m, before: int(around % 4), after: int(around % 4), lines: true}
		got, err := s.stream(t.Context(), d)
		if err != nil {
			t.Fatal(err)
		}
		for i := range got.lines {
			if len(got.lines[i].text) > searchExcerpt {
				return
			}
		}
		if want := reference(data, pattern, fold, int(around%4)); data != "" && fmt.Sprint(got.lines) != fmt.Sprint(want) {
			t.Fatalf("%q in %q: %v, want %v", pattern, data, got.lines, want)
		}
	})
}

// Literals are found where they are, by whichever of their bytes.
func TestIndex(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	letters := "aeQqzZ_ \xff"
	some := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = letters[rng.IntN(len(letters))]
		}
		return string(b)
	}
	lower := func(s string) string {
		return strings.Map(func(r rune) rune {
			if r >= 'A' && r <= 'Z' {
				r |= 0x20
			}
			return r
		}, strings.ReplaceAll(s, "\xff", "?"))
	}
	for range 20_000 {
		hay, lit := some(rng.IntN(100)), some(1+rng.IntN(4))
		if got, want := newLiteral(lit, false).index([]byte(hay)), strings.Index(hay, lit); got != want {
			t.Fatalf("%q in %q: %d, want %d", lit, hay, got, want)
		}
		hay, lit = strings.ReplaceAll(hay, "\xff", "?"), lower(lit)
		if got, want := newLiteral(lit, true).index([]byte(hay)), strings.Index(lower(hay), lit); got != want {
			t.Fatalf("%q in %q in either case: %d, want %d", lit, hay, got, want)
		}
	}
}

func BenchmarkGrep(b *testing.B) {
	dir := b.TempDir()
	var text strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&text, "line %d of a file with some text in it, of an ordinary length\n", i)
	}
	path := filepath.Join(dir, "f")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, pattern := range []string{"19999", "(?i)LINE 19999", `\d{5} of`, `[a-f]+\d+z`} {
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			m, err := newMatcher(pattern, false, false)
			if err != nil {
				b.Fatal(err)
			}
			s := &searcher{m: m}
			for b.Loop() {
				file, err := os.Open(path)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := s.search(b.Context(), file, true); err != nil {
					b.Fatal(err)
				}
				file.Close()
			}
		})
	}
}
