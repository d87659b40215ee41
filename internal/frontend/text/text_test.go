package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/agent"
)

// The name of a placeholder, whatever forms follow it.
var hole = regexp.MustCompile(`\{([a-z]+)[^}]*\}`)

func holes(s string) []string {
	var names []string
	for _, m := range hole.FindAllStringSubmatch(s, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	slices.Sort(names)
	return names
}

var update = flag.Bool("update", false, "write locales as they have to be, and keys.go")

// Both languages have the same messages with the same placeholders, one on each line, sorted
// by name, and keys.go has a constant for each that the program names.
func TestKeys(t *testing.T) {
	var names []string
	all := map[string][]string{} // the placeholders of a message in English
	for _, lang := range []string{"en", "ko"} {
		file := "locales/" + lang + ".json"
		data, err := os.ReadFile(file)
		messages := map[string]string{}
		if err := errors.Join(err, json.Unmarshal(data, &messages)); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		sorted := slices.Sorted(maps.Keys(messages))
		if lang == "en" {
			names = sorted
		} else if !slices.Equal(sorted, names) {
			t.Errorf("%s has other messages than English: %q", file, slices.DeleteFunc(slices.Concat(sorted, names), func(n string) bool {
				return slices.Contains(sorted, n) && slices.Contains(names, n)
			}))
		}
		var lines []string
		for _, name := range sorted {
			var line bytes.Buffer
			e := json.NewEncoder(&line)
			e.SetEscapeHTML(false)
			if err := e.Encode(messages[name]); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("  %q: %s", name, bytes.TrimSpace(line.Bytes())))
			if messages[name] == "" {
				t.Errorf("%s: %s is empty", file, name)
			}
			if lang == "en" {
				all[name] = holes(messages[name])
			} else if !slices.Equal(holes(messages[name]), all[name]) {
				t.Errorf("%s: the placeholders of %s are not those of English", file, name)
			}
		}
		written(t, file, "{\n"+strings.Join(lines, ",\n")+"\n}\n")
	}
	var keys strings.Builder
	for _, name := range names {
		if c := name[0]; c >= 'A' && c <= 'Z' {
			keys.WriteString("\t" + name + "\n")
		}
	}
	written(t, "keys.go", "// Code generated from locales/en.json by \"go test -run TestKeys -update\"; DO NOT EDIT.\n\npackage text\n\nconst (\n"+strings.Replace(keys.String(), "\n", " Key = iota\n", 1)+")\n")
}

// written compares a file with what it has to be, or makes it that.
func written(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != want {
		t.Errorf("%s is not in order: go test -run TestKeys -update ./internal/frontend/text puts it in order (%v)", file, err)
	}
}

func TestSay(t *testing.T) {
	en, ko := For("en_US.UTF-8"), For("ko_KR.UTF-8")
	tests := []struct{ got, want string }{
		{en.Say(Lines, "n", 1), "1 line"},
		{en.Say(Lines, "n", 2), "2 lines"},
		{ko.Say(Lines, "n", 2), "2줄"},
		{en.Say(DidYouMean), "Did you mean {name}?"}, // what is missing shows
		{ko.Say(DidYouMean, "name", "두레"), "두레를 뜻했나요?"},
		{ko.Say(DidYouMean, "name", "모델"), "모델을 뜻했나요?"},
		{ko.Say(DidYouMean, "name", "sessions"), "sessions을(를) 뜻했나요?"},
		{ko.Say(RetryModel, "model", "서울"), "서울로 계속합니다"},
		{ko.Say(RetryModel, "model", "부산"), "부산으로 계속합니다"},
		{ko.Say(RetryModel, "model", "opus"), "opus(으)로 계속합니다"},
		{ko.Say(ReplayBad, "session", "s", "at", 7, "problem", "p"), "s: 이벤트 7이 앞의 기록에서 나오는 것과 다릅니다: p"},
		{en.Say(Error, "message", "{n}"), "error: {n}"}, // values are no messages
		{Catalog{}.Say(Denied), "denied"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}

func TestLanguage(t *testing.T) {
	tests := []struct {
		env  map[string]string
		want string
	}{
		{nil, "en"},
		{map[string]string{"LANG": "ko_KR.UTF-8"}, "ko"},
		{map[string]string{"LANG": "ko_KR.UTF-8", "LC_ALL": "C"}, "en"},
		{map[string]string{"LANG": "en_US", "DURE_LANG": "ko"}, "ko"},
		{map[string]string{"LANG": "en_US", "LC_MESSAGES": "ko_KR"}, "ko"},
	}
	for _, tt := range tests {
		if got := Language(func(k string) string { return tt.env[k] }); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.env, got, tt.want)
		}
	}
}

func TestProblem(t *testing.T) {
	owned := &agent.Problem{
		Code: agent.ProblemOwned, Message: "session s1 is open in process 7", Fix: "close it",
		Args: map[string]string{"session": "s1", "pid": "7", "host": "here", "since": "noon"},
	}
	bare := &agent.Problem{Code: agent.ProblemOwned, Message: "session s1 is open in process 7"}
	odd := &agent.Problem{Code: "from-the-future", Message: "m", Fix: "f"}
	tests := []struct {
		lang         string
		p            *agent.Problem
		message, fix string
	}{
		{"en", owned, "session s1 is open elsewhere (process 7 on here, since noon)", "Close it"},
		{"ko", owned, "세션 s1은 다른 곳에서 열려 있습니다(here의 프로세스 7, noon부터)", "그쪽에서 닫거나 끝나기를 기다리세요. 읽기만 하려면 dure show s1, 복사본에서 이어 가려면 dure fork s1, 멈춰 있으면 dure -r s1 --takeover"},
		{"ko", bare, "session s1 is open in process 7", ""},
		{"ko", odd, "m", "f"},
	}
	for _, tt := range tests {
		m, f := For(tt.lang).Problem(tt.p)
		if m != tt.message || f != tt.fix {
			t.Errorf("%s %s: %q, %q\nwant %q, %q", tt.lang, tt.p.Code, m, f, tt.message, tt.fix)
		}
	}
}

func TestWidth(t *testing.T) {
	tests := []struct {
		s     string
		width int
		parts int // characters as a person counts
	}{
		{"", 0, 0},
		{"abc", 3, 3},
		{"한글", 4, 2},
		{"한글", 4, 2}, // the same, decomposed
		{"é", 1, 1},
		{"日本", 4, 2},
		{"ｱ", 1, 1},
		{"Ａ", 2, 1},
		{"👍🏽", 2, 1},
		{"👨‍👩‍👧", 2, 1},
		{"🇰🇷🇯🇵", 4, 2},
		{"a\x00b", 2, 3},
		{"…", 1, 1},
	}
	for _, tt := range tests {
		if got := Width(tt.s); got != tt.width {
			t.Errorf("Width(%q) = %d, want %d", tt.s, got, tt.width)
		}
		n, back := 0, tt.s
		for rest := tt.s; rest != ""; n++ {
			size, _ := Cluster(rest)
			rest = rest[size:]
		}
		if n != tt.parts {
			t.Errorf("%q has %d characters, want %d", tt.s, n, tt.parts)
		}
		for back != "" {
			back = back[:len(back)-Last(back)]
			n--
		}
		if n != 0 {
			t.Errorf("%q: from the end %d characters are left over", tt.s, n)
		}
	}
}

func TestCut(t *testing.T) {
	tests := []struct {
		s     string
		cells int
		want  string
	}{
		{"abcdef", 6, "abcdef"},
		{"abcdef", 5, "abcd…"},
		{"한글날", 6, "한글날"},
		{"한글날", 5, "한글…"},
		{"한글날", 4, "한…"}, // a wide character is never halved
		{"abc", 0, ""},
	}
	for _, tt := range tests {
		if got := Cut(tt.s, tt.cells); got != tt.want {
			t.Errorf("Cut(%q, %d) = %q, want %q", tt.s, tt.cells, got, tt.want)
		}
	}
}

func TestClean(t *testing.T) {
	tests := []struct{ s, want string }{
		{"plain\ntext", "plain\ntext"},
		{"한글", "한글"},
		{"\x1b[2J\x1b]0;title\a", "␛[2J␛]0;title␇"},
		{"a\tb\r\nc", "a    b\nc"},
		{"\u009b31m", "�31m"},
		{"\xff\xfe", "��"},
		{"a\u202eb", "a�b"},
		{"del\x7f", "del␡"},
	}
	for _, tt := range tests {
		if got := Clean(tt.s); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.s, got, tt.want)
		}
	}
	if got := OneLine(" a\n b\x1b "); got != "a b␛" {
		t.Errorf("OneLine: %q", got)
	}
}

// What comes out of Clean can neither move a cursor nor change a mode, and
// clusters cover the text whatever it holds.
func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "a\x1b[0m", "한\u1161", "\xff", "👨‍👩‍👧", "\u202e\r\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c := Clean(s)
		if !utf8.ValidString(c) || strings.ContainsFunc(c, func(r rune) bool {
			return r != '\n' && (r < ' ' || (r >= 0x7f && r < 0xa0))
		}) {
			t.Fatalf("Clean(%q) = %q", s, c)
		}
		if Clean(c) != c {
			t.Fatalf("cleaning %q twice differs", s)
		}
		for rest := c; rest != ""; {
			n, w := Cluster(rest)
			if n <= 0 || n > len(rest) || w < 0 || w > 2 {
				t.Fatalf("Cluster(%q) = %d, %d", rest, n, w)
			}
			rest = rest[n:]
		}
		if cut := Cut(OneLine(s), 10); Width(cut) > 10 {
			t.Fatalf("Cut(%q) is %d wide", cut, Width(cut))
		}
	})
}
