package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/frontend/text"
)

// Tab completes what stands behind an @, as far as it is certain; /context off has only
// that read.
func TestMentionsWhileTyping(t *testing.T) {
	for _, tt := range []struct {
		found []string
		keys  string
		sent  string
		see   string
	}{
		{[]string{"src/main.go"}, "see @ma\tnow\r", `prompt {"text":"see @src/main.go now"}`, ""},
		{[]string{"src/"}, "see @sr\tx\r", `prompt {"text":"see @src/x"}`, ""},
		{[]string{"src/a.go", "src/b.go"}, "see @s\ta.go\r", `prompt {"text":"see @src/a.go"}`, "src/a.go  src/b.go"},
		{[]string{"a b.md"}, "see @a\tnow\r", `prompt {"text":"see @\"a b.md\" now"}`, ""},
		{[]string{"x.go"}, "a@b.c\t no\tn\r", `prompt {"text":"a@b.c non"}`, ""},
		{nil, "see @no\tne\r", `prompt {"text":"see @none"}`, ""},
		{[]string{"evil\x1b[2J.go"}, "@e\t\r", `prompt {"text":"@evil␛[2J.go"}`, ""},
		{nil, "/context off\rhi\r", `prompt {"text":"hi","without":["?"]}`, "only files with an @"},
		{nil, "/context off\r/context on\rhi\r", `prompt {"text":"hi"}`, "files that you name are read"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.answers = map[string]any{"mentions.complete": tt.found}
			g := startRig(t, f, rigOptions{cols: 80, rows: 24, lang: "en"})
			g.typing(tt.keys)
			g.started()
			g.emit(ended(agent.EndDone))
			g.shot("typed")
			if err := g.end(); err != nil {
				t.Error(err)
			}
			if got := strings.Join(f.commands(), "\n"); got != tt.sent {
				t.Errorf("%q sent\n%s\nwant\n%s", tt.keys, got, tt.sent)
			}
			if !strings.Contains(g.shots.String(), tt.see) {
				t.Errorf("%q: %q is not on the screen\n%s", tt.keys, tt.see, g.shots.String())
			}
		})
	}
}

// Tab completes the argument of a prompt of a server as far as the server is certain, in
// quotes where there are blanks in it.
func TestPromptArgumentsWhileTyping(t *testing.T) {
	values := func(typed, value string, list ...string) query.PromptValues {
		return query.PromptValues{Argument: "who", Typed: typed, Value: value, Values: list}
	}
	for _, tt := range []struct {
		found query.PromptValues
		keys  string
		sent  string
		see   string
	}{
		{values("Bo", "Bo", "Bob"), "Bo\tnow", "Bob now", ""},
		{values(`Bo`, "Bo", "Bob Smith"), "Bo\tnow", `"Bob Smith" now`, ""},
		{values(`"Bob S`, "Bob S", `Bob "S" C:\`), "\"Bob S\tnow", `"Bob \"S\" C:\\" now`, ""},
		{values("", "", "Bob A", "Bob B"), "\tA\"", `"Bob A"`, "Bob A  Bob B"},
		{values("Bo", "Bo", "Al", "Ed"), "Bo\tx", "Box", "Al  Ed"},
		{values("Bo", "Bo"), "Bo\tx", "Box", ""},
		{values("Bo", "Bo", "Bo\x1b[2J"), "Bo\tx", "Box", ""},
		{values("else", "else", "Bob"), "Bo\tx", "Box", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.answers = map[string]any{"prompts.complete": tt.found}
			g := startRig(t, f, rigOptions{cols: 80, rows: 24, lang: "en"})
			g.typing("/mcp__sh__greet " + tt.keys + "\x01say \r") // in front of it, so that it is sent as it is
			g.started()
			g.emit(ended(agent.EndDone))
			g.shot("typed")
			if err := g.end(); err != nil {
				t.Error(err)
			}
			want, _ := json.Marshal("say /mcp__sh__greet " + tt.sent)
			if got := strings.Join(f.commands(), "\n"); got != `prompt {"text":`+string(want)+`}` {
				t.Errorf("%q sent\n%s\nwant\n%s", tt.keys, got, want)
			}
			if !strings.Contains(g.shots.String(), tt.see) {
				t.Errorf("%q: %q is not on the screen\n%s", tt.keys, tt.see, g.shots.String())
			}
		})
	}
}

func TestContextLine(t *testing.T) {
	for _, tt := range []struct {
		c      agent.ContextAdded
		en, ko string
	}{
		{agent.ContextAdded{Source: "mention", From: []string{"main.go (1.2 KB)", "a.go:1-2 (3 B)"}}, "read with it: main.go (1.2 KB), a.go:1-2 (3 B)", "함께 읽음: main.go (1.2 KB), a.go:1-2 (3 B)"},
		{agent.ContextAdded{Source: "mention", Title: "left", From: []string{".env (secret)", "x (new word)"}}, "not read: .env (may hold secrets), x (left.new word)", "읽지 않음: .env (비밀이 있을 수 있음), x (left.new word)"},
		{agent.ContextAdded{Source: "lessons", From: []string{"debug"}}, "read with it: lessons debug", "함께 읽음: 배운 점 debug"},
		{agent.ContextAdded{Source: "memory", Title: "AGENTS.md", From: []string{"/r/AGENTS.md"}}, "read with it: AGENTS.md /r/AGENTS.md", "함께 읽음: AGENTS.md /r/AGENTS.md"},
	} {
		if en, ko := contextLine(text.For("en"), tt.c), contextLine(text.For("ko"), tt.c); en != tt.en || ko != tt.ko {
			t.Errorf("%+v\n%s\n%s\nwant\n%s\n%s", tt.c, en, ko, tt.en, tt.ko)
		}
	}
}
