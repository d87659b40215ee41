// Package meter owns the figures that the program keeps of itself: counters, gauges and
// histograms with labels, in memory, and the text in which Prometheus reads them.
//
// How many series an instrument has is bounded, and how long a label is: what a model, a
// repository or a server names cannot make it grow. It starts no goroutines, reads no
// clock but the one it is given, and sends nothing anywhere.
package meter

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

// Bounds of an instrument.
const (
	maxSeries = 1000 // what comes beyond shares one series, labelled [Overflow]
	maxLabel  = 200  // bytes of the value of a label
)

// Overflow is the label of the series that has everything beyond the bound.
const Overflow = "otel.metric.overflow"

// Kind is what an instrument is.
type Kind int

// The kinds.
const (
	KindCounter Kind = iota
	KindGauge
	KindHistogram
)

// Registry holds instruments. It is safe for concurrent use.
type Registry struct {
	began time.Time

	mu     sync.Mutex
	byName map[string]*instrument
	order  []*instrument
}

// New returns a registry without instruments, whose figures count from now on.
func New(now time.Time) *Registry {
	return &Registry{began: now, byName: map[string]*instrument{}}
}

// Began is when counting began.
func (r *Registry) Began() time.Time { return r.began }

type (
	// Counter only grows.
	Counter struct{ i *instrument }

	// Gauge goes up and down.
	Gauge struct{ i *instrument }

	// Histogram counts values by their size.
	Histogram struct{ i *instrument }
)

type instrument struct {
	name, unit, help string
	kind             Kind
	labels           []string
	bounds           []float64
	read             func() float64 // of a gauge that is asked; nil = one that is told

	mu     sync.Mutex
	series map[string]*Series
}

// Series are the figures under one set of labels.
type Series struct {
	Labels []Label // those with a value, in the order of the instrument

	Value float64 // of counters and gauges; the sum of histograms
	Count uint64  // of histograms
	// Buckets are the values up to each bound and above the one before, and as the last
	// those above all.
	Buckets  []uint64
	Min, Max float64
}

// Label is a label with its value.
type Label struct{ Name, Value string }

// Metric is what an instrument shows.
type Metric struct {
	Name, Unit, Help string
	Kind             Kind
	Bounds           []float64 // of histograms
	Series           []Series  // sorted by their labels
}

// Counter returns the counter of a name, which it makes when there is none. Names are
// written with dots, units as UCUM has them: s, By, {token}.
func (r *Registry) Counter(name, unit, help string, labels ...string) Counter {
	return Counter{r.instrument(&instrument{name: name, unit: unit, help: help, kind: KindCounter, labels: labels})}
}

// Gauge is as [Registry.Counter], for a gauge.
func (r *Registry) Gauge(name, unit, help string, labels ...string) Gauge {
	return Gauge{r.instrument(&instrument{name: name, unit: unit, help: help, kind: KindGauge, labels: labels})}
}

// Ask makes a gauge without labels whose value is asked for when somebody looks. read is
// called from any goroutine, and returns at once.
func (r *Registry) Ask(name, unit, help string, read func() float64) {
	r.instrument(&instrument{name: name, unit: unit, help: help, kind: KindGauge, read: read})
}

// Histogram is as [Registry.Counter], for a histogram with the given upper bounds, which
// rise.
func (r *Registry) Histogram(name, unit, help string, bounds []float64, labels ...string) Histogram {
	return Histogram{r.instrument(&instrument{name: name, unit: unit, help: help, kind: KindHistogram, labels: labels, bounds: bounds})}
}

// instrument returns the one of a name. Two that share a name and are not the same are a
// mistake of whoever wrote them.
func (r *Registry) instrument(want *instrument) *instrument {
	r.mu.Lock()
	defer r.mu.Unlock()
	if have := r.byName[want.name]; have != nil {
		if have.kind != want.kind || have.unit != want.unit || !slices.Equal(have.labels, want.labels) || !slices.Equal(have.bounds, want.bounds) {
			panic(fmt.Sprintf("meter: there are two instruments %s that differ", want.name))
		}
		return have
	}
	want.labels, want.bounds, want.series = slices.Clone(want.labels), slices.Clone(want.bounds), map[string]*Series{}
	r.byName[want.name] = want
	r.order = append(r.order, want)
	return want
}

// Add counts v more under the values of the labels, in their order; an empty one is none.
// What is no number, or negative, is not counted.
func (c Counter) Add(v float64, values ...string) {
	if c.i == nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	c.i.with(values, func(s *Series) { s.Value += v })
}

// Set makes v the value.
func (g Gauge) Set(v float64, values ...string) {
	if g.i != nil && !math.IsNaN(v) {
		g.i.with(values, func(s *Series) { s.Value = v })
	}
}

// Add adds v, which may be negative.
func (g Gauge) Add(v float64, values ...string) {
	if g.i != nil && !math.IsNaN(v) {
		g.i.with(values, func(s *Series) { s.Value += v })
	}
}

// Record counts a value. What is no number is not counted.
func (h Histogram) Record(v float64, values ...string) {
	if h.i == nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	h.i.with(values, func(s *Series) {
		if s.Buckets == nil {
			s.Buckets = make([]uint64, len(h.i.bounds)+1)
			s.Min, s.Max = v, v
		}
		s.Buckets[sort.SearchFloat64s(h.i.bounds, v)]++
		s.Count++
		s.Value += v
		s.Min, s.Max = min(s.Min, v), max(s.Max, v)
	})
}

// with runs f on the series of some values.
func (i *instrument) with(values []string, f func(*Series)) {
	labels := make([]Label, 0, len(i.labels))
	var key strings.Builder
	for n, name := range i.labels {
		value := ""
		if n < len(values) {
			value = clip(values[n])
		}
		if value != "" {
			labels = append(labels, Label{name, value})
		}
		key.WriteString(value)
		key.WriteByte(0)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	s := i.series[key.String()]
	if s == nil && len(i.series) >= maxSeries {
		if s = i.series[Overflow]; s == nil {
			s = &Series{Labels: []Label{{Overflow, "true"}}}
			i.series[Overflow] = s
		}
	} else if s == nil {
		s = &Series{Labels: labels}
		i.series[key.String()] = s
	}
	f(s)
}

// clip makes a value of a label of what may be any text.
func clip(s string) string {
	if len(s) > maxLabel {
		s = s[:maxLabel]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, ""), "\x00", "")
}

// Read returns what all instruments show, in the order in which they were made. Those that
// have nothing to show are left out.
func (r *Registry) Read() []Metric {
	r.mu.Lock()
	all := slices.Clone(r.order)
	r.mu.Unlock()
	var list []Metric
	for _, i := range all {
		m := Metric{Name: i.name, Unit: i.unit, Help: i.help, Kind: i.kind, Bounds: i.bounds}
		if i.read != nil {
			m.Series = []Series{{Value: i.read()}}
		} else {
			m.Series = i.shown()
		}
		if len(m.Series) > 0 {
			list = append(list, m)
		}
	}
	return list
}

func (i *instrument) shown() []Series {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys := make([]string, 0, len(i.series))
	for k := range i.series {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	list := make([]Series, len(keys))
	for n, k := range keys {
		list[n] = *i.series[k]
		list[n].Buckets = slices.Clone(list[n].Buckets)
	}
	return list
}
