package compact_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"dure/internal/knowledge/compact"
)

func TestEval(t *testing.T) {
	long := strings.Repeat("word ", 2000)
	cases := strings.Join([]string{
		`{"id":"short","messages":[{"id":"a","role":"user","content":"hi"}],"window":10000}`,
		`{"id":"tools","window":5000,"strategy":"truncate-tools","preserve_recent":1,"messages":[{"id":"a","role":"user","content":"hi"},{"id":"b","role":"assistant","content":[{"type":"tool_use","id":"1","name":"x","input":{}}]},{"id":"c","role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"` + long + long + `"}]},{"id":"d","role":"user","content":"on"}]}`,
		`{"id":"summary","window":2600,"reserve":100,"strategy":"summarize","preserve_recent":1,"pinned":[{"kind":"rule","text":"be good"}],"summary":"It was long.","messages":[{"id":"a","role":"user","content":"` + long + `"},{"id":"b","role":"assistant","content":"yes"},{"id":"c","role":"user","content":"on"}]}`,
		`{"id":"bad","strategy":"magic"}`,
		`nonsense`,
	}, "\n")
	var got []compact.Verdict
	for line := range strings.Lines(cases) {
		got = append(got, compact.Evaluate(t.Context(), []byte(line)))
	}
	if len(got) != 5 {
		t.Fatalf("%d verdicts", len(got))
	}
	if v := got[0]; v.Status != "unchanged" || len(v.Kept) != 1 {
		t.Errorf("%+v", v)
	}
	if v := got[1]; v.Status != "compacted" || strings.Join(v.Trimmed, "") != "c" || v.Removed != 0 || v.After >= v.Before {
		t.Errorf("%+v", v)
	}
	if v := got[2]; strings.Join(v.Dropped, "") != "a" || !strings.Contains(v.Summary, "It was long.") || !strings.Contains(v.Summary, "- rule: be good") {
		t.Errorf("%+v", v)
	}
	if v := got[3]; v.Status != "error" || !strings.Contains(v.Error, "magic") {
		t.Errorf("%+v", v)
	}
	if v := got[4]; v.Status != "error" {
		t.Errorf("%+v", v)
	}
}

// What the cases name is what the verdicts name, in their order: the system's messages
// stay, results are cut before anything else is, and the conversation that comes of it is
// told as a whole.
func TestEvalSays(t *testing.T) {
	words := strings.Repeat("word ", 400)
	entry := func(id, role, content string) string {
		return fmt.Sprintf(`{"id":%s,"role":%q,"content":%s}`, id, role, content)
	}
	text := func(s string) string { return fmt.Sprintf("%q", s) }
	call := `[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"1","name":"x","input":{"a":1}}]`
	result := `[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":` + text(words) + `}]}]`
	messages := strings.Join([]string{
		entry(`"s"`, "system", text("be good "+words)), entry(`1`, "user", text("go "+words)), entry(`"b"`, "assistant", call), entry(`"c"`, "user", result),
		entry(`"d"`, "assistant", text("so "+words)), entry(`null`, "system", text("and brief")), entry(`"e"`, "developer", text("on")),
	}, ",")
	for name, tt := range map[string]struct {
		options, status, strategy, kept, dropped, trimmed, entries, err string
	}{
		"it fits":             {`"window":100000`, "unchanged", "", "s 1 b c d 6 e", "", "", "", ""},
		"a little too much":   {`"window":100000,"target":1700,"preserve_recent":1`, "compacted", "truncate-tools", "s 1 b c d 6 e", "", "c", "s 1 b c d 6 e", ""},
		"results, not enough": {`"window":100000,"target":1300,"strategy":"truncate-tools","preserve_recent":1`, "compacted", "truncate-tools", "s b c d 6 e", "1", "c", "s summary b c d 6 e", ""},
		"much too much":       {`"window":100000,"target":900,"preserve_recent":1`, "compacted", "hybrid", "s 6 e", "1 b c d", "", "s summary 6 e", ""},
		"the oldest":          {`"window":100000,"target":1300,"strategy":"truncate-oldest","preserve_recent":1`, "compacted", "truncate-oldest", "s d 6 e", "1 b c", "", "s summary d 6 e", ""},
		"all are new":         {`"window":100000,"target":900,"strategy":"summarize","preserve_recent":99`, "unchanged", "", "s 1 b c d 6 e", "", "", "", ""},
		"none are":            {`"window":100000,"target":700,"strategy":"summarize","preserve_recent":0`, "compacted", "summarize", "s 6", "1 b c d e", "", "s summary 6", ""},
		"no such strategy":    {`"strategy":"magic"`, "error", "", "", "", "", "", `there is no strategy "magic", but truncate-tools, truncate-oldest, summarize, hybrid`},
		"no such kind":        {`"pinned":[{"kind":"x","text":"y"}]`, "error", "", "", "", "", "", `there is no kind "x" of what is pinned, but goal, call, rule, plan, todo, decision, fact, file`},
		"less than nothing":   {`"window":-1`, "error", "", "", "", "", "", "window, target and reserve are no less than 0"},
	} {
		t.Run(name, func(t *testing.T) {
			v := compact.Evaluate(t.Context(), []byte(`{"id":7,`+tt.options+`,"messages":[`+messages+`]}`))
			var entries []string
			for _, e := range v.Entries {
				entries = append(entries, e.ID)
			}
			got := []string{v.Status, v.Strategy, strings.Join(v.Kept, " "), strings.Join(v.Dropped, " "), strings.Join(v.Trimmed, " "), strings.Join(entries, " "), v.Error}
			if want := []string{tt.status, tt.strategy, tt.kept, tt.dropped, tt.trimmed, tt.entries, tt.err}; !slices.Equal(got, want) || string(v.ID) != "7" {
				t.Errorf("%s: got\n%q, want\n%q; %+v", v.ID, got, want, v)
			}
		})
	}
}

func FuzzEval(f *testing.F) {
	f.Add([]byte(`{"id":"x","window":100,"always":true,"messages":[{"id":"a","role":"user","content":"hi"}]}`))
	f.Add([]byte(`{"id":"x","window":2000,"preserve_recent":0,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"1"}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[]}]}]}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		v := compact.Evaluate(t.Context(), line)
		if v.After > v.Before && v.Status == "compacted" || v.Status == "error" && v.Error == "" {
			t.Errorf("%q: %+v", line, v)
		}
		data, err := json.Marshal(v)
		if err != nil || !json.Valid(data) {
			t.Errorf("%q: %v", line, err)
		}
	})
}
