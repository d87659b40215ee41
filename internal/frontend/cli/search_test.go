package cli

import (
	"bufio"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent/query"
	"dure/internal/frontend/text"
)

// What was looked for stands out, whatever width there is; what a stranger has written
// does nothing to the terminal.
func TestSearchHits(t *testing.T) {
	res := query.SearchResult{More: true, Hits: []query.SearchHit{
		{
			Session: "one", Title: "Mend it", Workdir: "/home/me/work", Seq: 12, Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.Local), Kind: "call",
			Tool: "bash__exec", Snippet: "grep -rn needle ./haystack and more needles", Marks: []query.Mark{{From: 9, To: 15}, {From: 36, To: 42}},
		},
		{Session: "two", Seq: 7, Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.Local), Kind: "result", Snippet: "\x1b[2Jneedle\x07", Marks: []query.Mark{{From: 4, To: 10}, {From: 90, To: 80}}},
		{Session: "one", Seq: 3, Time: time.Date(2026, 1, 2, 3, 0, 0, 0, time.Local), Kind: "input", Snippet: "바늘을 찾아 줘", Marks: []query.Mark{{From: 0, To: 6}}, Dead: true},
	}}
	for _, tt := range []struct {
		columns int
		color   bool
		want    string
	}{
		{0, false, `one · ~/work · Mend it
    12  2026-01-02 03:04  call    Bash: grep -rn needle ./haystack and more needles
     3  2026-01-02 03:00  input   taken back · 바늘을 찾아 줘

two
     7  2026-01-01 00:00  result  ␛[2Jneedle␇

Open one: dure show one · go on from there: dure fork one --at 12
There is more: --limit shows it, another word narrows it down.
`},
		{60, true, `one · ~/work · Mend it
    12  2026-01-02 03:04  call    Bash: grep -rn <needle>
                                  ./haystack and more
                                  <needle>s
     3  2026-01-02 03:00  input   taken back · <바늘>을 찾아
                                  줘

two
     7  2026-01-01 00:00  result  ␛[2J<needle>␇

Open one: dure show one · go on from there: dure fork one
--at 12
There is more: --limit shows it, another word narrows it
down.
`},
	} {
		var b strings.Builder
		w := bufio.NewWriter(&b)
		c := New(Config{Text: text.For("en"), Columns: func() int { return tt.columns }})
		c.searchHits(w, res, SearchOptions{Color: tt.color, Home: "/home/me"})
		w.Flush()
		got := strings.NewReplacer("\x1b[1m", "<", "\x1b[0m", ">").Replace(b.String())
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%d columns:\n%s", tt.columns, d)
		}
	}
}
