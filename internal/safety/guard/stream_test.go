package guard

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/prooftest"
)

// streamed returns what a stream shows of a text that comes in parts.
func streamed(g *Guard, group string, parts ...string) string {
	s := g.Stream(agent.Spec{Group: group})
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(s.Add(p))
	}
	b.WriteString(s.Flush())
	return b.String()
}

// comesBack reports whether a text has lines that write over themselves.
func comesBack(text string) bool {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.ContainsAny(text, "\r\b") || regexp.MustCompile(`(\x1b\[|\x{9b})[0-?]*[ -/]*[CDGK]`).MatchString(text)
}

// holds reports whether a text has all lines of another one in their order, each as
// the end of a line; of one that a secret leads into, what begins with that.
func holds(text, lines string) bool {
	all := strings.SplitAfter(text, "\n")
	for line := range strings.Lines(lines) {
		for {
			if len(all) == 0 {
				return false
			}
			at := all[0]
			all = all[1:]
			if strings.HasSuffix(at, line) || strings.HasPrefix(at, maskStart) && strings.HasSuffix(line, at) {
				break
			}
		}
	}
	return true
}

// Wherever a text is cut, a stream shows the same as of the whole: no secret of it,
// and everything else. Only a line that is written over, after some of it was shown,
// is shown once more.
func TestStreamCuts(t *testing.T) {
	g := New(Config{})
	for _, name := range []string{"secrets", "lookalikes", "hostile", "delimit"} {
		for n, s := range corpus(t, name, 1) {
			want, _ := Eval(s.Text, s.Group)
			check := func(parts ...string) {
				t.Helper()
				got := streamed(g, s.Group, parts...)
				if got != want && (!comesBack(s.Text) || !holds(got, want)) {
					t.Errorf("%s: %q\ngives %q\nwant  %q", s.ID, parts, got, want)
				}
				if len(s.Leak) >= 6 && !s.Raw && strings.Contains(got, s.Leak) && !strings.Contains(want, s.Leak) {
					t.Errorf("%s: %q\nlets through %q", s.ID, parts, got)
				}
			}
			every := 3 // the texts begin at different cuts
			if prooftest.Long() {
				every = 1
			}
			for cut := n % every; cut <= len(s.Text); cut += every {
				check(s.Text[:cut], s.Text[cut:])
			}
			check(strings.Split(s.Text, "")...)
			for line, parts := 1, []string(nil); line < 3; line++ {
				for rest := s.Text; rest != ""; {
					n := min(len(rest), line*7)
					parts, rest = append(parts, rest[:n]), rest[n:]
				}
				check(parts...)
				parts = nil
			}
		}
	}
}

// The same for pieces of samples next to each other, in random parts.
func TestStreamMixtures(t *testing.T) {
	var texts []string
	for _, name := range []string{"secrets", "lookalikes", "hostile", "delimit"} {
		for _, s := range corpus(t, name, 1) {
			texts = append(texts, s.Text)
		}
	}
	g := New(Config{})
	r := rand.New(rand.NewPCG(3, 4))
	for range mixtures() {
		var text string
		for range 1 + r.IntN(4) {
			one := texts[r.IntN(len(texts))]
			from, to := r.IntN(len(one)+1), r.IntN(len(one)+1)
			text += one[min(from, to):max(from, to)]
		}
		var parts []string
		for rest := text; rest != ""; {
			n := min(1+r.IntN(40), len(rest))
			parts, rest = append(parts, rest[:n]), rest[n:]
		}
		group := []string{"", "code", "files"}[r.IntN(3)]
		want, _ := Eval(text, group)
		if got := streamed(g, group, parts...); got != want && (group == "files" || !comesBack(text) || !holds(got, want)) {
			t.Fatalf("%s: %q\ngives %q\nwant  %q", group, parts, got, want)
		}
	}
}

// The same for secrets of a generator between texts of the fuzzer's.
func FuzzStream(f *testing.F) {
	f.Add(uint64(1), "some text", "more\ntext", uint16(3), uint16(9))
	f.Add(uint64(2), "a\x1b[1m", "\x1b[0mc\n", uint16(0), uint16(1))
	f.Add(uint64(8), "계좌 ", " 입니다", uint16(30), uint16(2))
	f.Fuzz(func(t *testing.T, seed uint64, before, after string, cut, size uint16) {
		if len(before)+len(after) > 1<<10 { // with signs for what is no UTF-8 no line is longer than its limit
			return
		}
		r := rand.New(rand.NewPCG(seed, 1))
		text, _ := makers[r.IntN(len(makers))](r)
		text = before + text + after
		g := New(Config{})
		for _, group := range []string{"", "code", "files"} {
			want, _ := Eval(text, group)
			n := min(int(cut), len(text))
			parts := []string{text[:n]}
			for rest := text[n:]; rest != ""; {
				n := min(1+int(size), len(rest))
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			got := streamed(g, group, parts...)
			if got != want && (group == "files" || !comesBack(text) || !holds(got, want)) {
				t.Fatalf("%s: %q\ngives %q\nwant  %q", group, parts, got, want)
			}
		}
	})
}

// Text is shown as it comes: all of it, unless it ends in what may become a secret
// or a sequence for the terminal. What follows decides.
func TestStreamAtOnce(t *testing.T) {
	type part struct{ in, out string }
	for _, tt := range []struct {
		name  string
		parts []part
	}{
		{"lines", []part{{"one\ntwo\n", "one\ntwo\n"}, {"three\n", "three\n"}}},
		{"words", []part{{"Compiling ", "Compiling "}, {"the program ... ", "the program ... "}, {"done.\n", "done.\n"}}},
		{"a question", []part{{"Go on? [y/N] ", "Go on? [y/N] "}}},
		{"a number", []part{{"12 of 30: ", "12 of 30: "}, {"ok, ", "ok, "}, {"13", ""}, {" of 30: ", "13 of 30: "}}},
		{"the letters of a word", []part{{"wor", "wor"}, {"s", "s"}, {"e", "e"}, {" ", " "}}},
		{"colours", []part{{"\x1b[32mok\x1b[0m: ", "ok: "}, {"\x1b[3", ""}, {"1mfailed\x1b[0m!", "failed!"}}},
		{"a title", []part{{"\x1b]0;the ti", ""}, {"tle\a> ", "> "}}},
		{"letters in parts", []part{{"\xec\x95", ""}, {"\x94호화\n", "암호화\n"}}},
		{"a token", []part{{"with ghp_" + "AAAABBBB", "with "}, {"CCCCDDDDEEEEFFFFGGGGHHHHIIII", ""}, {" and\n", "[redacted:github-token] and\n"}}},
		{"no token", []part{{"with ghp_", "with "}, {"x, ", "ghp_x, "}}},
		{"a password", []part{{"DB_PASSWORD", "DB_PASSWORD"}, {"=hun", ""}, {"ter2-and-more", ""}, {"\n", "=[redacted:password]\n"}}},
		{"no password", []part{{"DB_HOST=", "DB_HOST="}, {"here.example", "here.example"}}},
		{"a card", []part{{"pay 4111 1111", "pay "}, {" 1111 1111", ""}, {".\n", "[redacted:card:1111].\n"}}},
		{"a key", []part{
			{"-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEA\n", ""},
			{"AAAAAAAAAAAAAAAAAAAAAAAAAAAA\n", ""},
			{"-----END RSA " + "PRIVATE KEY-----\nafter\n", "[redacted:private-key]\nafter\n"},
		}},
		{"a key, and its end written over", []part{
			{"a -----BEGIN RSA " + "PRIVATE KEY-----\nMIIEowIBAAKCAQEAMIIEowIBAAKCAQEA\nMIIEowIBAAK-----END RSA " + "PRIVATE KEY-----, ", "a [redacted:private-key], "},
			{"b\b", ""},
			{"c\n", "\n[redacted:private-key], c\n"},
		}},
		{"talk of a key", []part{{"it has -----BEGIN PRIVATE KEY----- in it\n" + strings.Repeat("and goes on with words\n", 15), "it has -----BEGIN PRIVATE KEY----- in it\n" + strings.Repeat("and goes on with words\n", 15)}}},
		{"a rule", []part{{"--------", ""}, {"\nx --all ", "--------\nx --all "}, {"--token", ""}, {" abc", ""}, {"\n", "--token abc\n"}}},
		{"line ends of Windows", []part{{"one\r", "one"}, {"\ntwo\r\n", "\ntwo\n"}}},
		{"a bar", []part{{"10%", "10%"}, {"\r20%", ""}, {"\r30%\nok\n", "\n30%\nok\n"}}},
		{"a bar that begins a line", []part{{"at\n\r10%", "at\n"}, {"\r20%", ""}, {"\r30%\n", "30%\n"}}},
	} {
		s := New(Config{}).Stream(agent.Spec{Group: "system"})
		for i, p := range tt.parts {
			if got := s.Add(p.in); got != p.out {
				t.Errorf("%s, part %d: %q gives %q, want %q", tt.name, i, p.in, got, p.out)
			}
		}
	}
}

// Users' patterns are looked for in whole lines.
func TestStreamPatterns(t *testing.T) {
	p, err := Compile([]Pattern{{Name: "staff", Regexp: `E-\d{5}`}})
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Patterns: p}).Stream(agent.Spec{Group: "system"})
	got := []string{s.Add("first\nof E-12"), s.Add("345, "), s.Add("he\nand E-99"), s.Add("999"), s.Flush()}
	want := []string{"first\n", "", "of [redacted:staff], he\n", "", "and [redacted:staff]"}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q, want %q", got, want)
	}
}

// What is held back is bounded, whatever comes.
func TestStreamBounded(t *testing.T) {
	units := 10 // at once
	if prooftest.Long() {
		units = 1
	}
	for _, unit := range []string{"ghp_", "AAAA", "password=", "\x1b]0;", "-----BEGIN PRIVATE KEY-----\nAAAAAAAAAAAAAAAAAAAAAAAA\n", "4111 ", "a\b", "\r10%", "[redacted:", `"password": "a`, "\u200d", "eyJ"} {
		s := New(Config{}).Stream(agent.Spec{Group: "system"})
		most, held := 0, 0
		part := strings.Repeat(unit, units)
		for range 100 << 10 / len(part) {
			s.Add(part)
			held = len(s.filter.raw) + len(s.filter.view.text) - s.filter.from
			most = max(most, held)
		}
		if most > maxSecret+2*maxLine {
			t.Errorf("%q: %d bytes are held back", unit, most)
		}
		if out := s.Flush(); !utf8.ValidString(out) {
			t.Errorf("%q: ends in %q", unit, out)
		}
	}
}
