package app_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/state/journal"
)

// Screens read a session as people see it, page by page, and without secrets.
func TestViewQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script.Script{}, script.Options{})
	store, err := journal.NewLocal(journal.LocalOptions{Dir: filepath.Join(w.home, "dure"), Durability: journal.DurabilityOS})
	if err != nil {
		t.Fatal(err)
	}
	kept(
		t, store, agent.SessionInfo{ID: "s", Workdir: w.work},
		agent.InputAdded{Input: "i1", Text: "one"},
		agent.Note{Text: "ghp_abcdefghijklmnopqrstuvwxyz0123456789"},
		agent.SettingsChanged{Title: "T", By: "user"},
		agent.InputAdded{Input: "i2", Text: "two"},
	)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	c := w.program(options(w.work, w.home, w.model.URL(), app.Flags{})).Client()
	ask := func(q agent.Query) string {
		raw, err := client.Query[json.RawMessage](t.Context(), c, q)
		if err != nil {
			t.Fatal(err)
		}
		var got struct {
			Seq   int64
			Title string
			More  bool
			Rows  []struct{ ID, Kind, Text string }
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprint(got.Seq, " ", got.Title, " ", got.More)
		for _, r := range got.Rows {
			line += fmt.Sprintf(" %s:%s:%s", r.ID, r.Kind, r.Text)
		}
		if strings.Contains(string(raw), "ghp_") {
			t.Errorf("a secret is shown: %s", raw)
		}
		return line
	}
	for _, tt := range []struct {
		query agent.Query
		want  string
	}{
		{query.View{Session: "s", At: 3}, "3  false 2:input:one 3:note:"},
		{query.View{Session: "s", At: 5}, "5 T false 2:input:one 3:note: 4:note: 5:input:two"},
		{query.Rows{Session: "s", Limit: 2}, "0  true 4:note: 5:input:two"},
		{query.Rows{Session: "s", Before: 4, Limit: 2}, "0  false 2:input:one 3:note:"},
	} {
		if got := ask(tt.query); got != tt.want {
			t.Errorf("%+v\n got %q\nwant %q", tt.query, got, tt.want)
		}
	}
	if _, err := client.Query[json.RawMessage](t.Context(), c, query.View{Session: "nobody"}); err == nil {
		t.Error("a session that is not there has a view")
	}
}

// kept makes a session with events.
func kept(t *testing.T, store *journal.Local, m agent.SessionInfo, events ...agent.Body) {
	t.Helper()
	ctx := t.Context()
	if err := store.Create(ctx, journal.Meta{SessionInfo: m}); err != nil {
		t.Fatal(err)
	}
	lease, err := store.Acquire(ctx, m.ID, journal.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	list := []agent.Event{{Body: agent.SessionOpened{Session: m.ID, Parent: m.Parent, Workdir: m.Workdir}}}
	for _, b := range events {
		list = append(list, agent.Event{Body: b})
	}
	if _, err := lease.Append(ctx, journal.Batch{Events: list, Seal: true}); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx, journal.Done, journal.Meta{}); err != nil {
		t.Fatal(err)
	}
}
