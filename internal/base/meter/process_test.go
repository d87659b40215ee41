package meter_test

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"dure/internal/base/meter"
)

// The process tells of itself, with figures that can be.
func TestProcess(t *testing.T) {
	r := meter.New(time.Unix(1_700_000_000, 0))
	r.Process()
	got := map[string]float64{}
	for _, m := range r.Read() {
		got[m.Name] = m.Series[0].Value
	}
	if got["process.start.time"] != 1_700_000_000 || got["go.goroutine.count"] < 1 || got["go.memory.used"] < 1<<20 || got["go.memory.heap"] < 1<<10 {
		t.Errorf("%v", got)
	}
	if runtime.GOOS == "linux" && (got["process.memory.resident"] < 1<<20 || got["process.open.files"] < 3) {
		t.Errorf("%v", got)
	}
	if text := textOf(t, r); !strings.Contains(text, "# TYPE go_goroutine_count gauge\n") {
		t.Error(text)
	}
}
