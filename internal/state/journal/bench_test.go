package journal

import (
	"context"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

func echo(_ context.Context, b []byte) ([]byte, error) { return append(b, '!'), nil }

// kilobyte is an event whose line has about 1 KB.
var kilobyte = agent.Event{Body: agent.Note{Text: strings.Repeat("words and ", 90)}}

func benchLease(b *testing.B, durability string) *lease {
	s, err := NewLocal(LocalOptions{Dir: b.TempDir(), Durability: durability})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	var m Meta
	m.ID = "s"
	if err := s.Create(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	l, err := s.acquire(b.Context(), "s")
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func benchAppend(b *testing.B, n int, d Durability) {
	l := benchLease(b, "")
	events := make([]agent.Event, n)
	for i := range events {
		events[i] = kilobyte
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := l.Append(b.Context(), Batch{Events: events, Sync: d}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAppendLazy(b *testing.B)     { benchAppend(b, 1, Lazy) }
func BenchmarkAppendBarrier(b *testing.B)  { benchAppend(b, 1, Barrier) }
func BenchmarkAppend3Barrier(b *testing.B) { benchAppend(b, 3, Barrier) }

func BenchmarkAppendParallelBarrier(b *testing.B) {
	l := benchLease(b, "")
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := l.Append(context.Background(), Batch{Events: []agent.Event{kilobyte}, Sync: Barrier}); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkEncodeLine(b *testing.B) {
	var buf []byte
	e := kilobyte
	e.Seq, e.Epoch, e.Time, e.ID = 1, 1, time.Now(), NewID(time.Now())
	b.ReportAllocs()
	for b.Loop() {
		data, err := encodeBody(e.Body)
		if err != nil {
			b.Fatal(err)
		}
		buf, _ = appendLine(buf[:0], e, payload{data: data}, 1)
	}
}

func BenchmarkDecodeLine(b *testing.B) {
	e := kilobyte
	e.Seq, e.Epoch, e.Time, e.ID = 1, 1, time.Now(), NewID(time.Now())
	data, err := encodeBody(e.Body)
	if err != nil {
		b.Fatal(err)
	}
	raw, _ := appendLine(nil, e, payload{data: data}, 1)
	b.ReportAllocs()
	for b.Loop() {
		l, err := readLine(raw[:len(raw)-1], 1)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := l.event(noBlob); err != nil {
			b.Fatal(err)
		}
	}
}

// Opening a store and making a session, as a short run of the program does.
func BenchmarkNewSession(b *testing.B) {
	dir := b.TempDir()
	for b.Loop() {
		s, err := NewLocal(LocalOptions{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		var m Meta
		m.ID = NewID(time.Now())
		if err := s.Create(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		l, err := s.Acquire(b.Context(), m.ID, Owner{})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Release(b.Context(), Parked, Meta{}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func benchOpen(b *testing.B, size int64, segment int64) {
	l := benchLease(b, DurabilityOS)
	l.s.segment = segment
	batch := make([]agent.Event, 100)
	for i := range batch {
		batch[i] = kilobyte
	}
	for l.total < size {
		if _, err := l.Append(b.Context(), Batch{Events: batch, Seal: true}); err != nil {
			b.Fatal(err)
		}
	}
	if err := l.Release(b.Context(), Parked, Meta{}); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size)
	for b.Loop() {
		l, err := l.s.acquire(b.Context(), "s")
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := l.Release(b.Context(), Parked, Meta{}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

func BenchmarkOpen10MB(b *testing.B) { benchOpen(b, 10<<20, 64<<20) }

func BenchmarkRecover1GB(b *testing.B) {
	if !prooftest.Long() {
		b.Skip("set DURE_LONG=1 to write 1 GB")
	}
	benchOpen(b, 1<<30, 2<<30)
}

func BenchmarkList1000(b *testing.B) {
	s, err := NewLocal(LocalOptions{Dir: b.TempDir(), Durability: DurabilityOS})
	if err != nil {
		b.Fatal(err)
	}
	for range 1000 {
		var m Meta
		m.ID = NewID(time.Now())
		if err := s.Create(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		for _, err := range s.List(b.Context(), Query{}) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
