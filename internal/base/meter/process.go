package meter

import (
	"os"
	"runtime/metrics"
	"strconv"
	"strings"
)

// Process has the registry tell of the process itself: memory, goroutines, collections, and
// where the system says so, what is resident and how many files are open.
func (r *Registry) Process() {
	r.Ask("process.start.time", "s", "When the process began to count, in seconds since 1970.", func() float64 { return float64(r.began.UnixMilli()) / 1e3 })
	for _, m := range []struct{ name, unit, help, source string }{
		{"go.goroutine.count", "{goroutine}", "Goroutines that live.", "/sched/goroutines:goroutines"},
		{"go.memory.used", "By", "Memory that the runtime has from the system.", "/memory/classes/total:bytes"},
		{"go.memory.heap", "By", "Memory of objects on the heap.", "/memory/classes/heap/objects:bytes"},
		{"go.gc.cycles", "{cycle}", "Collections of garbage that are over.", "/gc/cycles/total:gc-cycles"},
		{"process.cpu.time", "s", "Time of processors that Go code and the runtime have used, an estimate.", "/cpu/classes/user:cpu-seconds"},
	} {
		r.Ask(m.name, m.unit, m.help, func() float64 { return sample(m.source) })
	}
	if _, ok := resident(); !ok {
		return // the system does not say
	}
	r.Ask("process.memory.resident", "By", "Memory that is resident.", func() float64 {
		n, _ := resident() // 0 where it has stopped saying so
		return n
	})
	r.Ask("process.open.files", "{file}", "Files and connections that are open.", func() float64 {
		n, _ := files() // likewise
		return n
	})
}

// sample is a figure of the runtime.
func sample(name string) float64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	switch s[0].Value.Kind() {
	case metrics.KindUint64:
		return float64(s[0].Value.Uint64())
	case metrics.KindFloat64:
		return s[0].Value.Float64()
	}
	return 0
}

func resident() (float64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseFloat(fields[1], 64)
	return pages * float64(os.Getpagesize()), err == nil
}

func files() (float64, bool) {
	list, err := os.ReadDir("/proc/self/fd")
	return float64(len(list)), err == nil
}
