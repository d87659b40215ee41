package journal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"dure/agent"
)

// stored puts a session into the store that nobody has open.
func (r *rig) stored(id string, s agent.SettingsChanged) {
	r.Helper()
	l := r.session(id)
	r.add(l, Batch{Events: []agent.Event{{Body: agent.SessionOpened{Session: id, Workdir: "/w", Title: "title of " + id}}, {Body: s}}})
	if err := l.Release(r.Context(), Parked, Meta{}); err != nil {
		r.Fatal(err)
	}
}

// page says what a query yields: the IDs, and how many there are beyond them.
func (r *rig) page(q Query) string {
	r.Helper()
	p, err := r.s.Page(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	var ids strings.Builder
	for _, m := range p.Sessions {
		ids.WriteString(m.ID + " ")
	}
	return fmt.Sprintf("%s+%d", ids.String(), p.More)
}

// What is read of lines selects what is in the logs: the answers are the same from the
// index as without it.
func TestPage(t *testing.T) {
	now := atNoon()
	clock := func() time.Time { return now }
	mem := newMemDisk(clock)
	r := &rig{T: t, mem: mem, s: newLocal(mem, LocalOptions{Now: clock})}
	yes, work, both := true, []string{"work"}, []string{"home", `"work"`}
	for _, s := range []struct {
		id string
		agent.SettingsChanged
	}{
		{"a", agent.SettingsChanged{Pinned: &yes, Tags: &work}},
		{"b", agent.SettingsChanged{Title: `,"pinned":true,"archived":true`}},
		{"c", agent.SettingsChanged{Archived: &yes, Tags: &work}},
		{"d", agent.SettingsChanged{Tags: &both}},
		{"e", agent.SettingsChanged{Pinned: &yes, Archived: &yes}},
		{"f", agent.SettingsChanged{Title: "a"}},
	} {
		r.stored(s.id, s.SettingsChanged)
		now = now.Add(time.Minute)
	}
	open := r.session("g")
	r.add(open, Batch{Events: texts(1, "x")})
	for _, c := range []struct {
		q    Query
		want string
	}{
		{Query{}, "e a g f d c b +0"},
		{Query{Limit: 4}, "e a g f +3"},
		{Query{Limit: 1}, "e +6"},
		{Query{Unarchived: true}, "a g f d b +0"},
		{Query{Unarchived: true, Limit: 2}, "a g +3"},
		{Query{Tag: "work"}, "a c +0"},
		{Query{Tag: "work", Limit: 1}, "a +1"},
		{Query{Tag: "work", Unarchived: true}, "a +0"},
		{Query{Tag: `"work"`}, "d +0"},
		{Query{Tag: "wor"}, "+0"},
		{Query{Workdir: "/w", Limit: 3}, "e a f +3"},
		{Query{Workdir: "/"}, "+0"},
		{Query{Name: "a"}, "a f +0"},
		{Query{Name: "title of d"}, "d +0"},
		{Query{Name: "title"}, "+0"},
		{Query{Prefix: "b"}, "b +0"},
		{Query{Before: atNoon().Add(2 * time.Minute)}, "a b +0"},
	} {
		for _, from := range []string{"the index", "the logs", "the new index"} {
			if from == "the logs" {
				_ = r.mem.remove(indexName)
			}
			if got := r.page(c.q); got != c.want {
				t.Errorf("%+v from %s: %s, want %s", c.q, from, got, c.want)
			}
		}
	}
}

// A line of the index that a dying process left unfinished says nothing, wherever it
// ends: what is listed is in the log, and the index is put right.
func TestATornLineOfTheIndex(t *testing.T) {
	mem := newMemDisk(atNoon)
	r := &rig{T: t, mem: mem, s: newLocal(mem, LocalOptions{Now: atNoon})}
	tags := []string{"x"}
	r.stored("s", agent.SettingsChanged{Tags: &tags})
	list := func() (all []Meta) {
		for m, err := range r.s.List(t.Context(), Query{}) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, m)
		}
		return all
	}
	want := fmt.Sprint(list())
	line, err := readAll(mem, indexName, maxMeta)
	if err != nil {
		t.Fatal(err)
	}
	line = line[strings.LastIndex(strings.TrimSpace(string(line)), "\n")+1:]
	for n := range len(line) {
		_ = replace(mem, indexName, append(line[:n:n], '\n'), false)
		for _, when := range []string{"at once", "from the new index"} {
			if got := fmt.Sprint(list()); got != want {
				t.Fatalf("%s, cut to %s\ngot  %s\nwant %s", when, line[:n], got, want)
			}
		}
		if mended, err := readAll(mem, indexName, maxMeta); err != nil || !strings.HasSuffix(string(mended), string(line)) {
			t.Fatalf("cut to %s it became %s, %v", line[:n], mended, err)
		}
	}
}
