package launch

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/kernel/plug"
)

// What is launched is asked for without a session, and mistakes say what to do.
func TestAnswers(t *testing.T) {
	home := t.TempDir()
	answers := map[string]plug.Answer{}
	for _, a := range New(Config{
		Home: home, Workdir: "/work", User: "ann",
		Typed: func(context.Context, query.ListCommands) ([]query.CommandInfo, error) {
			return []query.CommandInfo{{Name: "review", Hint: "[FILE]", Kind: query.CommandSkill}, {Name: "gone", Off: "off"}}, nil
		},
		Skills: func() []frontmatter.Embedded {
			return []frontmatter.Embedded{{Name: "review"}, {Name: "debug", Fields: map[string]string{"description": "Find it."}}}
		},
		Agents: func() []frontmatter.Embedded { return []frontmatter.Embedded{{Name: "tutor"}} },
		About:  func(_, about string) string { return strings.ToUpper(about) },
	}).Answers() {
		if a.NoStore != (a.Query.Query() != "web.search") {
			t.Errorf("%s: without the store is %v", a.Query.Query(), a.NoStore)
		}
		answers[a.Query.Query()] = a
	}
	for _, tt := range []struct {
		query agent.Query
		want  string
	}{
		{query.Calculate{Text: "6 * 7"}, `{"text":"6 * 7","result":"42","exact":true}`},
		{query.Calculate{Text: "6 *"}, "column 4: a number is missing"},
		{query.MakeSnippet{Name: "hello", Text: "Hello {{who}}, from {{user}}"}, `"` + filepath.ToSlash(filepath.Join(home, "snippets", "hello.md")) + `"`},
		{query.MakeSnippet{Name: "hello"}, `there is a snippet "hello" already`},
		{query.MakeSnippet{Name: "../x"}, `"../x" is no name: a name has 1 to 64 letters, digits, - and _`},
		{query.FillSnippet{Name: "hello", Values: map[string]string{"who": "Bo"}}, `{"name":"hello","text":"Hello Bo, from ann"}`},
		{query.FillSnippet{Name: "bye"}, `there is no snippet "bye"`},
		{query.SetLink{Link: query.Link{Name: "docs", URL: "https://example.com/?q={word}"}}, `{"name":"docs","url":"https://example.com/?q={word}","parameters":["word"]}`},
		{query.SetLink{Link: query.Link{Name: "bad", URL: "file:///x"}}, `the link "bad": only addresses of http, https and mailto are opened`},
		{query.FillLink{Name: "docs", Values: []string{"a b"}}, `"https://example.com/?q=a%20b"`},
		{query.FillLink{Name: "docs"}, "filling in the link docs: nothing is given for word"},
		{
			query.ListPalette{}, `[{"kind":"skill","name":"review","use":"/review [FILE]"},{"kind":"skill","name":"debug","description":"FIND IT.","use":"/debug"},` +
				`{"kind":"agent","name":"tutor","use":"dure --agent tutor"},{"kind":"snippet","name":"hello","description":"Hello {{who}}, from {{user}}","use":"dure snippet use hello"},` +
				`{"kind":"link","name":"docs","description":"https://example.com/?q={word}","use":"dure link open docs WORD"}]`,
		},
		{query.RemoveLink{Name: "docs"}, `{"name":"docs","url":"https://example.com/?q={word}","parameters":["word"]}`},
		{query.RemoveLink{Name: "docs"}, `there is no link "docs"`},
		{query.SearchWeb{Text: "x"}, "no search engine is configured"},
	} {
		v, err := answers[tt.query.Query()].Do(t.Context(), tt.query)
		data, _ := json.Marshal(v)
		got := string(data)
		if err != nil {
			got = err.Error()
		}
		if got = strings.ReplaceAll(got, `\\`, "/"); got != tt.want {
			t.Errorf("%+v\n got %s\nwant %s", tt.query, got, tt.want)
		}
	}
	if err := os.WriteFile(filepath.Join(home, "links.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := answers["links.set"].Do(t.Context(), query.SetLink{Link: query.Link{Name: "docs", URL: "https://example.com"}}); agent.ProblemOf(err) == nil || agent.ProblemOf(err).Code != agent.ProblemSettings {
		t.Errorf("a file that is broken: %v", err)
	}
}
