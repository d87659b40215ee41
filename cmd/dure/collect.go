package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// The percentages by which the heap grows between garbage collections.
const (
	growsFirst  = 200 // before the first collection
	growsUsual  = 100
	growsServer = 50
)

// collects says how much the heap grows from the first collection on.
var collects = struct {
	mu      sync.Mutex
	percent int // guarded by mu
}{percent: growsUsual}

// collectLater has the first garbage collection wait for 8 MB instead of 4, which a short
// run never comes to: the collection would be a tenth of what it costs. From the first one
// on the heap grows as ever, so that a long run takes no more memory. GOGC counts instead
// where it is set.
func collectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(growsFirst)
	runtime.AddCleanup(new(program), func(struct{}) {
		collects.mu.Lock()
		defer collects.mu.Unlock()
		debug.SetGCPercent(collects.percent)
	}, struct{}{})
}

// collectSooner is for servers, which live long and hold what many clients need: what is
// garbage is half of that at most, for twice the collections. GOGC counts instead where it
// is set.
func collectSooner() {
	if os.Getenv("GOGC") != "" {
		return
	}
	collects.mu.Lock()
	defer collects.mu.Unlock()
	collects.percent = growsServer
	debug.SetGCPercent(growsServer)
}
