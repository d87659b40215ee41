package usage_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/prooftest"
	"dure/internal/state/archive"
	"dure/internal/state/archive/usage"
	"dure/internal/state/journal"
)

// filled makes a store of sessions, each with some answers: the first in one
// project, the others in turn in two.
func filled(t *testing.T, dir string, sessions, answers int) {
	t.Helper()
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store, err := journal.NewLocal(journal.LocalOptions{Dir: dir, Durability: journal.DurabilityOS, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for i := range sessions {
		fill(t, store, fmt.Sprintf("s%04d", i), "", fmt.Sprintf("/p%d", i%2), answers)
		at = at.Add(time.Hour)
	}
}

// fill makes one session.
func fill(t *testing.T, store *journal.Local, id, parent, workdir string, answers int) {
	t.Helper()
	ctx := t.Context()
	m := journal.Meta{SessionInfo: agent.SessionInfo{ID: id, Parent: parent, Workdir: workdir}}
	if err := store.Create(ctx, m); err != nil {
		t.Fatal(err)
	}
	lease, err := store.Acquire(ctx, id, journal.Owner{})
	if err != nil {
		t.Fatal(err)
	}
	events := []agent.Event{{Body: agent.SessionOpened{Session: id, Parent: parent, Workdir: workdir, Model: "m"}}}
	cents := agent.Money(10_000_000)
	for n := range answers {
		model, cost := "m", &cents
		if n%4 == 3 {
			model, cost = "unpriced", nil
		}
		events = append(
			events,
			agent.Event{Body: agent.ModelRequested{Turn: "t", Step: n, Attempt: 1, Model: model}},
			agent.Event{Body: agent.ModelAnswered{Turn: "t", Step: n, Cost: cost, Answer: agent.Answer{
				Model: "reported", Message: agent.Message{Role: agent.Assistant, Blocks: []agent.Block{{Type: agent.TextBlock, Text: "Some words of an answer."}}},
				Usage: agent.Usage{Input: 100, Output: 10, CacheRead: 1000},
			}}},
			agent.Event{Body: agent.CallFinished{Tool: "bash__exec", Result: agent.Result{ID: fmt.Sprint(n), Status: agent.StatusOK, Text: "done"}}},
		)
	}
	if _, err := lease.Append(ctx, journal.Batch{Events: events, Seal: true}); err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(ctx, journal.Done, journal.Meta{}); err != nil {
		t.Fatal(err)
	}
}

// report asks an extension of its own.
func report(t *testing.T, dir string, q query.UsageReport) query.UsageSummary {
	t.Helper()
	store, err := journal.NewLocal(journal.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	x := usage.New(usage.Config{
		Logs: func() archive.Logs { return store }, Path: filepath.Join(dir, usage.File), Logger: slog.New(slog.DiscardHandler),
	})
	sum, err := x.Answers()[0].Do(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return sum.(query.UsageSummary)
}

func row(name string, requests, unpriced int) query.UsageRow {
	return query.UsageRow{
		Name: name, Requests: requests, Unpriced: unpriced, Cost: agent.Money(10_000_000 * (requests - unpriced)),
		Usage: agent.Usage{Input: 100 * requests, Output: 10 * requests, CacheRead: 1000 * requests},
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filled(t, dir, 4, 4)
	for _, tt := range []struct {
		q        query.UsageReport
		rows     []query.UsageRow
		sessions int
	}{
		{query.UsageReport{By: "model"}, []query.UsageRow{row("m", 12, 0), row("unpriced", 4, 4)}, 4},
		{query.UsageReport{By: "project"}, []query.UsageRow{row("/p0", 8, 2), row("/p1", 8, 2)}, 4},
		{query.UsageReport{By: "session", Since: "2026-01-01T14:00:00Z"}, []query.UsageRow{row("s0002", 4, 1), row("s0003", 4, 1)}, 2},
		{query.UsageReport{}, []query.UsageRow{row(time.Date(2026, 1, 1, 13, 0, 0, 0, time.UTC).Local().Format(time.DateOnly), 16, 4)}, 4},
	} {
		for _, how := range []string{"from the logs", "from the cache"} {
			got := report(t, dir, tt.q)
			if d := cmp.Diff(tt.rows, got.Rows); d != "" || got.Sessions != tt.sessions || len(got.Skipped) > 0 {
				t.Errorf("%+v, %s: %d sessions, skipped %v, %s", tt.q, how, got.Sessions, got.Skipped, d)
			}
		}
	}
}

// Children count with who has them, and forks only what they added.
func TestUsageCountsOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filled(t, dir, 1, 4)
	store, err := journal.NewLocal(journal.LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	fill(t, store, "child", "s0000", "/elsewhere", 1)
	if err := store.Fork(t.Context(), "s0000", 7, "fork"); err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	got := report(t, dir, query.UsageReport{By: "session"})
	if d := cmp.Diff([]query.UsageRow{row("s0000", 5, 1)}, got.Rows); d != "" {
		t.Error(d)
	}
	got = report(t, dir, query.UsageReport{By: "project"})
	if d := cmp.Diff([]query.UsageRow{row("/p0", 5, 1)}, got.Rows); d != "" {
		t.Error(d)
	}
}

// A log that is damaged counts up to there, and is named. The cache is never
// believed against a log, and one that means nothing is made again.
func TestUsageOfDamagedLogs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	filled(t, dir, 2, 4)
	before := report(t, dir, query.UsageReport{By: "session"})
	for _, junk := range []string{"", "{", `{"v":1,"sessions":{"s0000":null}}`, `{"v":99,"sessions":{}}`} {
		if err := os.WriteFile(filepath.Join(dir, "usage.json"), []byte(junk), 0o600); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(before, report(t, dir, query.UsageReport{By: "session"})); d != "" {
			t.Errorf("with the cache %q: %s", junk, d)
		}
	}
	logs, err := filepath.Glob(filepath.Join(dir, "sessions/*/s0001/log.000001.jsonl"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs %v: %v", logs, err)
	}
	data, err := os.ReadFile(logs[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(func(yield func(int) bool) { // where each line begins
		for i, b := range data {
			if b == '\n' && !yield(i+1) {
				return
			}
		}
	})
	data[lines[4]+20] ^= 1 // within the sixth line: two answers stand before it
	if err := os.WriteFile(logs[0], data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "usage.json")); err != nil {
		t.Fatal(err)
	}
	got := report(t, dir, query.UsageReport{By: "session"})
	if !slices.Equal(got.Skipped, []string{"s0001"}) || got.Total.Requests >= 8 || got.Total.Requests < 4 {
		t.Errorf("skipped %v, %d requests", got.Skipped, got.Total.Requests)
	}
}

// A thousand sessions are added up while somebody waits; in the short form, a quarter
// of them. No other test runs beside it: it looks at the time.
func TestUsageOfManySessions(t *testing.T) {
	sessions := 1000
	if !prooftest.Long() {
		sessions /= 4
	}
	dir := t.TempDir()
	filled(t, dir, sessions, 20)
	for _, how := range []string{"from the logs", "from the cache"} {
		begun := time.Now()
		got := report(t, dir, query.UsageReport{By: "model"})
		took := time.Since(begun)
		t.Logf("%s: %v", how, took)
		if got.Total.Requests != sessions*20 {
			t.Errorf("%d requests", got.Total.Requests)
		}
		const limit = 20 * time.Second // a hundred times what it should be
		if took > limit {
			t.Errorf("%s it took %v", how, took)
		}
	}
}
