package index

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"dure/agent/query"
	"dure/internal/prooftest"
)

// TestLarge measures the index of a large amount of text: 1 GB with DURE_LONG=1, or as
// many MB as DURE_INDEX_MB says; docs/benchmarks.md has what came of it.
func TestLarge(t *testing.T) {
	mb, runs := 1, 3
	if prooftest.Long() {
		mb, runs = 1000, 100
	}
	if n, err := strconv.Atoi(os.Getenv("DURE_INDEX_MB")); err == nil {
		mb, runs = n, 100
	}
	ctx := context.Background()
	src := written{sessions: max(1, mb*1_000_000/(40*(20_000+1300))), turns: 40, bytes: 20_000}
	x := open(t, Options{Dir: t.TempDir(), Now: func() time.Time { return begin.AddDate(0, 6, 0) }})
	began := time.Now()
	making := time.Duration(0)
	total := 0
	for n := range src.sessions {
		for e := range src.Read(ctx, src.id(n), 0) {
			for _, d := range (reader{}).documents(ctx, e) {
				total += len(d.text)
			}
		}
	}
	making = time.Since(began)
	began = time.Now()
	rep, err := x.Update(ctx, src, 0)
	if err != nil || !rep.Done {
		t.Fatal(rep, err)
	}
	took := time.Since(began) - making
	size := int64(0)
	for _, f := range []string{fileName, fileName + "-wal"} {
		if info, err := os.Stat(filepath.Join(x.o.Dir, f)); err == nil {
			size += info.Size()
		}
	}
	t.Logf("%.0f MB of text, %d documents, in %s: %.1f MB/s; index %.0f MB, %.2f of the text", float64(total)/1e6, rep.Documents,
		took.Round(time.Millisecond), float64(total)/1e6/took.Seconds(), float64(size)/1e6, float64(size)/float64(total))
	w := newWriterOf(0)
	for _, q := range []struct {
		name string
		text func() string
	}{
		{"a word", w.word},
		{"the commonest word", func() string { return w.latin[0] }},
		{"two words", func() string { return w.word() + " " + w.word() }},
		{"three words", func() string { return w.word() + " " + w.word() + " " + w.word() }},
		{"two rare words", func() string { return w.latin[5000+w.r.IntN(20000)] + " " + w.latin[5000+w.r.IntN(20000)] }},
		{"common and rare", func() string { return "err " + w.latin[5000+w.r.IntN(20000)] }},
		{"phrase", func() string { return `"return fmt Errorf"` }},
		{"phrase of two", func() string { return `"` + w.word() + " " + w.word() + `"` }},
		{"prefix of three", func() string { return w.word()[:2] + "a*" }},
		{"prefix of two", func() string { return w.word()[:2] + "*" }},
		{"one syllable", func() string { return string([]rune(w.korean[w.oftenKo.Uint64()])[:1]) }},
		{"two syllables", func() string { return string([]rune(w.korean[w.oftenKo.Uint64()])[:2]) }},
		{"four syllables", func() string { return w.korean[w.oftenKo.Uint64()] + w.korean[3][:3] }},
		{"two Korean words", func() string { return w.korean[w.oftenKo.Uint64()] + " " + w.korean[w.oftenKo.Uint64()] }},
		{"Korean and not", func() string { return w.word() + " " + w.korean[w.oftenKo.Uint64()] }},
		{"a session", func() string { return w.word() + " session:" + src.id(src.sessions/2) }},
		{"a folder", func() string { return w.word() + " workdir:/home/user/p7" }},
		{"a kind", func() string { return w.word() + " kind:call" }},
		{"since", func() string { return w.word() + " since:2026-01-20" }},
	} {
		var took []time.Duration
		hits := 0
		for range runs {
			began := time.Now()
			r, err := x.Search(ctx, query.Search{Text: q.text()})
			took = append(took, time.Since(began))
			if err != nil {
				t.Fatal(q.name, err)
			}
			hits += len(r.Hits)
		}
		slices.Sort(took)
		t.Logf("%-20s p50 %6.1f ms  p99 %6.1f ms  most %6.1f ms  %5.1f hits", q.name, ms(took[runs/2]), ms(took[runs*99/100]), ms(took[runs-1]), float64(hits)/float64(runs))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func open(t testing.TB, o Options) *Index {
	t.Helper()
	x, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}
