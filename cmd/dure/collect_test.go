package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

// The first collection waits for twice the heap, and none behind it does.
func TestCollectLater(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	read := func() (percent, collected uint64) {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}, {Name: "/gc/cycles/total:gc-cycles"}}
		metrics.Read(s)
		return s[0].Value.Uint64(), s[1].Value.Uint64()
	}

	t.Setenv("GOGC", "100")
	collectLater()
	if got, _ := read(); got != 100 {
		t.Errorf("%d percent although GOGC is set", got)
	}

	t.Setenv("GOGC", "")
	limit := time.Now().Add(time.Minute)
	for {
		_, before := read()
		collectLater()
		got, after := read()
		if before != after && time.Now().Before(limit) {
			continue // what is asked for here was over at once
		}
		if got != 200 {
			t.Fatalf("%d percent before the first collection", got)
		}
		break
	}
	for {
		runtime.GC()
		if got, _ := read(); got == 100 {
			return
		} else if time.Now().After(limit) {
			t.Fatalf("%d percent behind the first collection", got)
		}
	}
}

// A server collects sooner, whether the first collection comes before it serves or after.
func TestCollectSooner(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	defer func() {
		collects.mu.Lock()
		defer collects.mu.Unlock()
		collects.percent = growsUsual
	}()
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	t.Setenv("GOGC", "100")
	collectSooner()
	if got := percent(); got != 100 {
		t.Errorf("%d percent although GOGC is set", got)
	}
	t.Setenv("GOGC", "")
	collectLater()
	collectSooner()
	for range 3 {
		if got := percent(); got != growsServer {
			t.Errorf("%d percent", got)
		}
		runtime.GC()
	}
}
