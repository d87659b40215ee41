package web

import (
	"errors"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
)

const wantHits = `Results for "go \"maps\"":
<<
1. [Maps & more (part 1)](https://go.dev/blog/maps) – 2024-05-01T10:00:00
   How maps work, in short.
2. [pkg.go.dev](https://pkg.go.dev/maps)
>>`

// Each engine is asked as it documents, and its answer is read.
func TestEngines(t *testing.T) {
	for _, tt := range []struct {
		name   string
		cfg    SearchConfig // URL is the path
		asked  string
		answer string
	}{
		{
			"brave",
			SearchConfig{Kind: "brave", Key: "secret-key", URL: "/res/v1/web/search"},
			"GET /res/v1/web/search?count=8&q=go+%22maps%22&text_decorations=false X-Subscription-Token=secret-key ",
			`{"type":"search","query":{"original":"x"},"web":{"type":"search","results":[
				{"title":"Maps &amp; more [part 1]","url":"https://go.dev/blog/maps","description":"How <strong>maps</strong>\n work, in short.","page_age":"2024-05-01T10:00:00","age":"May 1, 2024"},
				{"title":"","url":"https://pkg.go.dev/maps"}]}}`,
		},
		{
			"searxng",
			SearchConfig{Kind: "searxng", URL: "/"},
			"GET /search?format=json&q=go+%22maps%22 ",
			`{"query":"x","number_of_results":2,"results":[
				{"title":"Maps & more [part 1]","url":"https://go.dev/blog/maps","content":"How maps work, in short.","publishedDate":"2024-05-01T10:00:00","engine":"x"},
				{"title":null,"url":"https://pkg.go.dev/maps","content":"","publishedDate":null}],"answers":[]}`,
		},
		{
			"tavily",
			SearchConfig{Kind: "tavily", Key: "secret-key", URL: "/search"},
			`POST /search Authorization=Bearer secret-key {"query":"go \"maps\"","max_results":8}`,
			`{"query":"x","response_time":0.5,"results":[
				{"title":"Maps & more [part 1]","url":"https://go.dev/blog/maps","content":"How maps work, in short.","score":0.9,"published_date":"2024-05-01T10:00:00"},
				{"title":"","url":"https://pkg.go.dev/maps","content":"","score":0.1}]}`,
		},
		{
			"json",
			SearchConfig{Kind: "json", Key: "secret-key", KeyHeader: "X-Key", URL: "/find/{query}?n={count}", Results: "data.0.items", Title: "name", Link: "links.self", Snippet: "abstract", Date: "when"},
			"GET /find/go+%22maps%22?n=8 X-Key=secret-key ",
			`{"data":[{"items":[
				{"name":"Maps & more [part 1]","links":{"self":"https://go.dev/blog/maps"},"abstract":"How maps work, in short.","when":"2024-05-01T10:00:00"},
				{"links":{"self":"https://pkg.go.dev/maps"}}]}]}`,
		},
		{
			"json with the key in the URL",
			SearchConfig{Kind: "json", Key: "secret/key", URL: "/?k={key}&q={query}"},
			"GET /?k=secret%2Fkey&q=go+%22maps%22 ",
			`{"results":[
				{"title":"Maps & more [part 1]","url":"https://go.dev/blog/maps","snippet":"How maps work, in short.","date":"2024-05-01T10:00:00"},
				{"url":"https://pkg.go.dev/maps"}]}`,
		},
	} {
		var asked string
		port := serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = r.Method + " " + r.URL.RequestURI() + " "
			for _, k := range []string{"Authorization", "X-Subscription-Token", "X-Key"} {
				if v := r.Header.Get(k); v != "" {
					asked += k + "=" + v + " "
				}
			}
			asked += string(body)
			io.WriteString(w, tt.answer)
		})
		tt.cfg.URL = "http://localhost:" + port + tt.cfg.URL
		// The user's own word is enough to reach an engine on this machine; a page
		// there is out of reach all the same.
		w := New(Config{Search: tt.cfg, Lookup: names, Now: fakeClock()})
		r := run(t, w, "web__search", map[string]any{"query": " go  \"maps\" "})
		if d := cmp.Diff(wantHits, r.Text); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
		if asked != tt.asked {
			t.Errorf("%s was asked %s", tt.name, asked)
		}
		want := `{"query":"go \"maps\"","results":[{"title":"Maps & more (part 1)","url":"https://go.dev/blog/maps","snippet":"How maps work, in short.","date":"2024-05-01T10:00:00"},{"title":"pkg.go.dev","url":"https://pkg.go.dev/maps"}],"durationSeconds":0.001}`
		if d := cmp.Diff(want, string(r.Output)); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
		if r := run(t, w, "web__fetch", map[string]any{"url": "http://localhost:" + port}); code(r) != ErrWebAddress {
			t.Errorf("%s: %+v", tt.name, r)
		}
	}
}

func TestDomains(t *testing.T) {
	var asked string
	port := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.Query().Get("q")
		io.WriteString(w, `{"results":[
			{"url":"https://go.dev/a"},{"url":"https://go.dev/a#again"},{"url":"https://pkg.go.dev/b"},{"url":"https://evilgo.dev/c"},
			{"url":"https://go.dev.evil.example/d"},{"url":"javascript:alert(1)"},{"url":"/e"},{"url":5},{},7,
			{"url":"https://x.example/(f)"},{"url":"https://GO.dev/g"}]}`)
	})
	w := New(Config{Search: SearchConfig{Kind: "searxng", URL: "http://localhost:" + port}, Lookup: names})
	for _, tt := range []struct {
		fields      map[string]any
		asked, urls string
	}{
		{map[string]any{"query": "q"}, "q", "https://go.dev/a https://pkg.go.dev/b https://evilgo.dev/c https://go.dev.evil.example/d https://x.example/%28f%29 https://go.dev/g"},
		{map[string]any{"query": "q", "count": 2}, "q", "https://go.dev/a https://pkg.go.dev/b"},
		{map[string]any{"query": "q", "allowed_domains": []string{"https://Go.dev/x"}}, "q site:go.dev", "https://go.dev/a https://pkg.go.dev/b https://go.dev/g"},
		{map[string]any{"query": "q", "allowed_domains": []string{"*.go.dev", "x.example"}, "blocked_domains": []string{"pkg.go.dev"}}, "q site:go.dev OR site:x.example -site:pkg.go.dev", "https://go.dev/a https://x.example/%28f%29 https://go.dev/g"},
		{map[string]any{"query": strings.Repeat("q", 395), "blocked_domains": []string{"go.dev"}}, strings.Repeat("q", 395), "https://evilgo.dev/c https://go.dev.evil.example/d https://x.example/%28f%29"},
		{map[string]any{"query": "q", "allowed_domains": []string{"nowhere.example"}}, "q site:nowhere.example", ""},
	} {
		r := run(t, w, "web__search", tt.fields)
		var urls []string
		for _, line := range strings.Split(r.Text, "\n") {
			if _, rest, ok := strings.Cut(line, "]("); ok {
				urls = append(urls, strings.TrimSuffix(rest, ")"))
			}
		}
		if got := strings.Join(urls, " "); got != tt.urls || asked != tt.asked {
			t.Errorf("%v: %s\nasked for %q", tt.fields, got, asked)
		}
		if tt.urls == "" && r.Text != `No results for "q". Try other words, or fewer.` {
			t.Error(r.Text)
		}
	}
}

func TestSearchFails(t *testing.T) {
	status, body := 200, ""
	port := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "http://localhost:1/")
		w.WriteHeader(status)
		io.WriteString(w, body)
	})
	cfg := SearchConfig{Kind: "json", Key: "secret-key", URL: "http://localhost:" + port + "/?k={key}&q={query}"}
	w := New(Config{Search: cfg, Lookup: names})
	for _, tt := range []struct {
		status int
		body   string
		want   string
	}{
		{401, "secret-key", "E_WEB_STATUS the search engine answered HTTP 401 Unauthorized"},
		{500, "", "E_WEB_STATUS the search engine answered HTTP 500 Internal Server Error"},
		{302, "", "E_WEB_STATUS the search engine answered HTTP 302 Found"},
		{200, "<html>", "E_WEB_FETCH the search engine did not answer with JSON that can be read"},
		{200, "", "E_WEB_FETCH the search engine did not answer with JSON that can be read"},
		{200, `{"results":{}}`, `E_WEB_FETCH the search engine's answer has no list at "results"`},
		{200, `[]`, `E_WEB_FETCH the search engine's answer has no list at "results"`},
		{200, `{"results":[` + strings.Repeat(" ", searchBody) + `]}`, "E_WEB_FETCH the search engine did not answer with JSON that can be read"},
	} {
		status, body = tt.status, tt.body
		r := run(t, w, "web__search", map[string]any{"query": "q"})
		if got := string(code(r)) + " " + r.Error.Message; got != tt.want || strings.Contains(r.Text, "secret") {
			t.Errorf("%d %.40q: %s", tt.status, tt.body, r.Text)
		}
	}
	cfg.URL = "http://localhost:1/?k={key}&q={query}"
	if r := run(t, New(Config{Search: cfg, Lookup: names}), "web__search", map[string]any{"query": "q"}); code(r) != ErrWebAddress && code(r) != ErrWebFetch || strings.Contains(r.Text, "secret") {
		t.Errorf("%+v", r)
	}
	// A name that turns out to be this machine, or the metadata of a cloud, is not
	// what the user wrote.
	for _, addr := range []string{"127.0.0.1", "169.254.169.254"} {
		e := newEngine(Config{Search: SearchConfig{Kind: "searxng", URL: "https://search.example"}})
		if err := e.client.policy.address("search.example", netip.MustParseAddr(addr)); err == nil {
			t.Errorf("%s was permitted", addr)
		}
	}
}

func TestSearchInput(t *testing.T) {
	w := New(Config{Search: SearchConfig{Kind: "brave", Key: "k"}})
	for _, tt := range []struct {
		fields map[string]any
		want   string
	}{
		{map[string]any{"query": " \n"}, "query is empty"},
		{map[string]any{"query": strings.Repeat("가", maxQuery+1)}, "the query has more than 400 characters"},
		{map[string]any{"query": "q", "allowed_domains": []string{"a b"}}, `the domain "a b" cannot exist`},
		{map[string]any{"query": "q", "blocked_domains": make([]string, maxDomains+1)}, "there are more than 20 domains"},
	} {
		_, err := toolsOf(w)["web__search"].Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: input(tt.fields)})
		if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Message != tt.want {
			t.Errorf("%v, want %s", err, tt.want)
		}
	}
	_, err := toolsOf(New(Config{}))["web__search"].Plan(t.Context(), agent.ToolContext{}, agent.Call{Input: input(map[string]any{"query": "q"})})
	if te, ok := errors.AsType[*agent.ToolError](err); !ok || te.Message != "no search engine is configured" {
		t.Error(err)
	}
}
