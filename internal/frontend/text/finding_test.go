package text

import (
	"slices"
	"strings"
	"testing"

	"dure/agent/query"
)

func TestPhrasesSayTheSame(t *testing.T) {
	names := func(s string) []string {
		var list []string
		for rest := s; ; {
			_, after, found := strings.Cut(rest, "{")
			if !found {
				slices.Sort(list)
				return list
			}
			name, next, _ := strings.Cut(after, "}")
			name, _, _ = strings.Cut(name, "|")
			list, rest = append(list, name), next
		}
	}
	for _, p := range phrases() {
		if p[0] == "" || p[1] == "" || !slices.Equal(names(p[0]), names(p[1])) {
			t.Errorf("the placeholders differ:\n  %s\n  %s", p[0], p[1])
		}
	}
}

func TestPhrase(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"mode default: it runs a command", "default 모드: 명령을 실행합니다"},
		{"mode plan: it changes /w/a, and nothing is changed before the plan is approved", "plan 모드: /w/a을(를) 바꿉니다. 계획을 승인받기 전에는 아무것도 바꾸지 않습니다"},
		{"mode dontAsk: it runs a command (mode dontAsk: nobody is asked)", "dontAsk 모드: 명령을 실행합니다(dontAsk 모드: 묻지 않음)"},
		{"/s.json:1:2: the key x means nothing here; did you mean model?", "/s.json:1:2: x(이)라는 키는 없습니다. model을(를) 뜻했나요?"},
		{"open /x: permission denied", "open /x: 권한 없음"},
		{"mode default: what it would do cannot be told: what sh runs: it is piped", "default 모드: 무엇을 할지 알 수 없습니다: sh이(가) 파이프로 받아 실행하는 것"},
		{"it cannot be reviewed: it has a fault: line 2: reached EOF without closing quote `'`", "검토할 수 없습니다: 문법에 맞지 않습니다: 2번째 줄: 따옴표 `'`이(가) 닫히지 않음"},
		{"mode default: the rule Bash(go test *) does not cover this: A is set", "default 모드: Bash(go test *) 규칙이 이것까지 허용하지는 않습니다: A 변수 설정"},
		{`flags:5: rule "Bash(x": it has no closing parenthesis: taken for every call of Bash`, `flags:5: 규칙 "Bash(x": 닫는 괄호가 없습니다. Bash을(를) 모두 금지하거나 묻는 것으로 봅니다`},
		{`flags:5: rule "Foo(": skipped: it has no closing parenthesis`, `flags:5: 규칙 "Foo("을(를) 쓰지 않습니다: 닫는 괄호가 없습니다`},
		{`call "c1" had no result; a failure stands in its place`, `호출 "c1"에 결과가 없어 실패로 채움`},
		{"something that nobody knows", "something that nobody knows"},
		{"", ""},
	} {
		if got := For("ko").Phrase(tt.in); got != tt.want {
			t.Errorf("%q\n  is %q\nwant %q", tt.in, got, tt.want)
		}
		if got := For("en").Phrase(tt.in); got != tt.in {
			t.Errorf("%q is %q in English", tt.in, got)
		}
	}
}

func TestFinding(t *testing.T) {
	for _, tt := range []struct {
		lang, name, detail, fix string
		f                       query.Finding
	}{
		{"en", "git", "/bin/git", "", query.Finding{Name: "git", Code: "program.ok", Args: map[string]string{"path": "/bin/git"}}},
		{
			"ko", "모드", "plan, 출처 환경 변수 (DURE_MODE): 아무것도 바꾸지 않음", "",
			query.Finding{Name: "mode", Code: "mode.plan", Args: map[string]string{"where": "environment (DURE_MODE)"}},
		},
		{
			"ko", "모델", "opsu(이)라는 모델이 없습니다", "opus을(를) 뜻했나요? 전체 목록: dure models",
			query.Finding{Name: "model", Code: "problem.unknown-model", Detail: "there is no model", Fix: "f", Args: map[string]string{"model": "opsu", "nearest": "opus"}},
		},
		{"ko", "novel", "d", "f", query.Finding{Name: "novel", Code: "from.the.future", Detail: "d", Fix: "f"}},
	} {
		name, detail, fix := For(tt.lang).Finding(tt.f)
		if name != tt.name || detail != tt.detail || fix != tt.fix {
			t.Errorf("%s: %q, %q, %q\nwant %q, %q, %q", tt.f.Code, name, detail, fix, tt.name, tt.detail, tt.fix)
		}
	}
}

func TestWrap(t *testing.T) {
	for _, tt := range []struct {
		s     string
		cells int
		want  []string
	}{
		{"", 10, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"abcdefgh ij", 4, []string{"abcd", "efgh", "ij"}},
		{"한글과 漢字", 4, []string{"한글", "과", "漢字"}},
		{"👨‍👩‍👧👍🏽x", 2, []string{"👨‍👩‍👧", "👍🏽", "x"}},
	} {
		got := Wrap(tt.s, tt.cells)
		if !slices.Equal(got, tt.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", tt.s, tt.cells, got, tt.want)
		}
		for _, l := range got {
			if Width(l) > tt.cells {
				t.Errorf("%q is wider than %d", l, tt.cells)
			}
		}
	}
}
