package telemetry

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"dure/internal/base/meter"
)

// An encoder writes the fields of a message, each with its number and its name: as protobuf
// by the one, as JSON by the other. What is called writes; fields that have their zero value
// are left out by whoever calls.
type encoder interface {
	text(n int, name, v string)
	id(n int, name string, v []byte)       // of a trace or a span
	fixed32(n int, name string, v uint32)  // flags
	fixed64(n int, name string, v uint64)  // times and counts
	varint(n int, name string, v uint64)   // what the protocol enumerates
	integer(n int, name string, v int64)   // of 64 bits
	double(n int, name string, v float64)  // finite
	boolean(n int, name string, v bool)    //
	counts(n int, name string, v []uint64) // packed
	doubles(n int, name string, v []float64)
	message(n int, name string, f func(encoder))
	each(n int, name string, count int, f func(i int, e encoder))
}

// The origin of all records.
type origin struct {
	resource attrs
	version  string
}

const (
	scopeName = "dure"
	schemaURL = "https://opentelemetry.io/schemas/1.41.0"
)

// wrap writes what is around all records: the outer list with one resource and one scope.
func (o origin) wrap(e encoder, outer, scopes string, inner func(encoder)) {
	e.each(1, outer, 1, func(_ int, e encoder) {
		e.message(1, "resource", func(e encoder) { writeAttrs(e, 1, o.resource) })
		e.each(2, scopes, 1, func(_ int, e encoder) {
			e.message(1, "scope", func(e encoder) {
				e.text(1, "name", scopeName)
				if o.version != "" {
					e.text(2, "version", o.version)
				}
			})
			inner(e)
			e.text(3, "schemaUrl", schemaURL)
		})
	})
}

func (o origin) spans(e encoder, all []*span) {
	o.wrap(e, "resourceSpans", "scopeSpans", func(e encoder) {
		e.each(2, "spans", len(all), func(i int, e encoder) { writeSpan(e, all[i]) })
	})
}

func (o origin) events(e encoder, all []*event) {
	o.wrap(e, "resourceLogs", "scopeLogs", func(e encoder) {
		e.each(2, "logRecords", len(all), func(i int, e encoder) { writeEvent(e, all[i]) })
	})
}

// metrics writes figures that count from since until now.
func (o origin) metrics(e encoder, all []meter.Metric, since, now time.Time, delta bool) {
	o.wrap(e, "resourceMetrics", "scopeMetrics", func(e encoder) {
		e.each(2, "metrics", len(all), func(i int, e encoder) { writeMetric(e, all[i], nanos(since), nanos(now), delta) })
	})
}

func nanos(t time.Time) uint64 {
	if n := t.UnixNano(); !t.IsZero() && n > 0 {
		return uint64(n)
	}
	return 0
}

// Flags of spans: that they are told of, that what follows is known, and that the parent is
// another program's.
const (
	flagSampled   = 0x01
	flagKnown     = 0x100
	flagIsRemote  = 0x200
	flagLinkKnown = flagSampled | flagKnown
)

func writeSpan(e encoder, s *span) {
	e.id(1, "traceId", s.at.trace[:])
	e.id(2, "spanId", s.at.span[:])
	if s.state != "" {
		e.text(3, "traceState", s.state)
	}
	if s.parent != (spanID{}) {
		e.id(4, "parentSpanId", s.parent[:])
	}
	e.text(5, "name", s.name)
	e.varint(6, "kind", s.kind)
	e.fixed64(7, "startTimeUnixNano", nanos(s.start))
	e.fixed64(8, "endTimeUnixNano", nanos(s.end))
	writeAttrs(e, 9, s.attrs)
	if len(s.links) > 0 {
		e.each(13, "links", len(s.links), func(i int, e encoder) {
			e.id(1, "traceId", s.links[i].trace[:])
			e.id(2, "spanId", s.links[i].span[:])
			e.fixed32(6, "flags", flagLinkKnown)
		})
	}
	if s.failed {
		e.message(15, "status", func(e encoder) {
			if s.why != "" {
				e.text(2, "message", s.why)
			}
			e.varint(3, "code", statusError)
		})
	}
	flags := uint32(flagSampled | flagKnown)
	if s.remote {
		flags |= flagIsRemote
	}
	e.fixed32(16, "flags", flags)
}

var severities = map[uint64]string{severityInfo: "INFO", severityWarn: "WARN", severityError: "ERROR"}

func writeEvent(e encoder, r *event) {
	e.fixed64(1, "timeUnixNano", nanos(r.time))
	e.varint(2, "severityNumber", r.severity)
	e.text(3, "severityText", severities[r.severity])
	writeAttrs(e, 6, r.attrs)
	if r.at != (place{}) {
		e.fixed32(8, "flags", flagSampled)
		e.id(9, "traceId", r.at.trace[:])
		e.id(10, "spanId", r.at.span[:])
	}
	e.fixed64(11, "observedTimeUnixNano", nanos(r.time))
	e.text(12, "eventName", r.name)
}

// How the figures of two reports stand to each other.
const (
	temporalityDelta      = 1
	temporalityCumulative = 2
)

func writeMetric(e encoder, m meter.Metric, since, now uint64, delta bool) {
	e.text(1, "name", m.Name)
	if m.Help != "" {
		e.text(2, "description", m.Help)
	}
	if m.Unit != "" {
		e.text(3, "unit", m.Unit)
	}
	temporality := uint64(temporalityCumulative)
	if delta {
		temporality = temporalityDelta
	}
	points := func(e encoder) {
		e.each(1, "dataPoints", len(m.Series), func(i int, e encoder) { writePoint(e, m, m.Series[i], since, now) })
	}
	switch m.Kind {
	case meter.KindGauge:
		e.message(5, "gauge", points)
	case meter.KindCounter:
		e.message(7, "sum", func(e encoder) {
			points(e)
			e.varint(2, "aggregationTemporality", temporality)
			e.boolean(3, "isMonotonic", true)
		})
	case meter.KindHistogram:
		e.message(9, "histogram", func(e encoder) {
			points(e)
			e.varint(2, "aggregationTemporality", temporality)
		})
	}
}

func writePoint(e encoder, m meter.Metric, s meter.Series, since, now uint64) {
	labels := make(attrs, len(s.Labels))
	for i, l := range s.Labels {
		labels[i] = attr{l.Name, l.Value}
	}
	if m.Kind != meter.KindGauge {
		e.fixed64(2, "startTimeUnixNano", since)
	}
	e.fixed64(3, "timeUnixNano", now)
	if m.Kind != meter.KindHistogram {
		e.double(4, "asDouble", s.Value)
		writeAttrs(e, 7, labels)
		return
	}
	e.fixed64(4, "count", s.Count)
	e.double(5, "sum", s.Value)
	e.counts(6, "bucketCounts", s.Buckets)
	e.doubles(7, "explicitBounds", m.Bounds)
	writeAttrs(e, 9, labels)
	if s.Count > 0 && s.Min <= s.Max {
		e.double(11, "min", s.Min)
		e.double(12, "max", s.Max)
	}
}

func writeAttrs(e encoder, n int, all []attr) {
	if len(all) == 0 {
		return
	}
	e.each(n, "attributes", len(all), func(i int, e encoder) { writeAttr(e, all[i]) })
}

func writeAttr(e encoder, a attr) {
	e.text(1, "key", a.key)
	e.message(2, "value", func(e encoder) { writeValue(e, a.value) })
}

func writeValue(e encoder, v any) {
	switch v := v.(type) {
	case string:
		e.text(1, "stringValue", v)
	case bool:
		e.boolean(2, "boolValue", v)
	case int64:
		e.integer(3, "intValue", v)
	case float64:
		e.double(4, "doubleValue", v)
	case []string:
		list := make([]any, len(v))
		for i, s := range v {
			list[i] = s
		}
		writeValue(e, list)
	case []any:
		e.message(5, "arrayValue", func(e encoder) {
			e.each(1, "values", len(v), func(i int, e encoder) { writeValue(e, v[i]) })
		})
	case fields:
		e.message(6, "kvlistValue", func(e encoder) {
			e.each(1, "values", len(v), func(i int, e encoder) { writeAttr(e, v[i]) })
		})
	}
}

// The types of fields in protobuf.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

// protobuf writes messages as protobuf.
type protobuf struct{ data []byte }

func (p *protobuf) tag(n, wire int) { p.data = binary.AppendUvarint(p.data, uint64(n)<<3|uint64(wire)) }

func (p *protobuf) field(n int, v []byte) {
	p.tag(n, wireBytes)
	p.data = binary.AppendUvarint(p.data, uint64(len(v)))
	p.data = append(p.data, v...)
}

func (p *protobuf) text(n int, _, v string)          { p.field(n, []byte(valid(v))) }
func (p *protobuf) id(n int, _ string, v []byte)     { p.field(n, v) }
func (p *protobuf) integer(n int, _ string, v int64) { p.varint(n, "", uint64(v)) }

func (p *protobuf) fixed32(n int, _ string, v uint32) {
	p.tag(n, wire32)
	p.data = binary.LittleEndian.AppendUint32(p.data, v)
}

func (p *protobuf) fixed64(n int, _ string, v uint64) {
	p.tag(n, wire64)
	p.data = binary.LittleEndian.AppendUint64(p.data, v)
}

func (p *protobuf) varint(n int, _ string, v uint64) {
	p.tag(n, wireVarint)
	p.data = binary.AppendUvarint(p.data, v)
}

func (p *protobuf) double(n int, _ string, v float64) { p.fixed64(n, "", math.Float64bits(v)) }

func (p *protobuf) boolean(n int, _ string, v bool) {
	one := uint64(0)
	if v {
		one = 1
	}
	p.varint(n, "", one)
}

func (p *protobuf) counts(n int, _ string, v []uint64) {
	p.tag(n, wireBytes)
	p.data = binary.AppendUvarint(p.data, uint64(8*len(v)))
	for _, one := range v {
		p.data = binary.LittleEndian.AppendUint64(p.data, one)
	}
}

func (p *protobuf) doubles(n int, name string, v []float64) {
	bits := make([]uint64, len(v))
	for i, one := range v {
		bits[i] = math.Float64bits(one)
	}
	p.counts(n, name, bits)
}

func (p *protobuf) message(n int, _ string, f func(encoder)) {
	var inner protobuf
	f(&inner)
	p.field(n, inner.data)
}

func (p *protobuf) each(n int, name string, count int, f func(int, encoder)) {
	for i := range count {
		p.message(n, name, func(e encoder) { f(i, e) })
	}
}

// object writes messages as JSON, the way that the protocol maps them: IDs in hexadecimal
// digits, numbers of 64 bits as texts, and what is enumerated as numbers.
type object struct{ data []byte }

func (o *object) name(name string) {
	if n := len(o.data); n > 0 && o.data[n-1] != '{' {
		o.data = append(o.data, ',')
	}
	o.data = strconv.AppendQuote(o.data, name)
	o.data = append(o.data, ':')
}

func (o *object) text(_ int, name, v string) {
	o.name(name)
	quoted, _ := json.Marshal(valid(v)) // a text always encodes
	o.data = append(o.data, quoted...)
}

func (o *object) id(_ int, name string, v []byte) { o.text(0, name, hex.EncodeToString(v)) }

func (o *object) fixed32(_ int, name string, v uint32) { o.varint(0, name, uint64(v)) }

func (o *object) fixed64(_ int, name string, v uint64) { o.text(0, name, strconv.FormatUint(v, 10)) }

func (o *object) varint(_ int, name string, v uint64) {
	o.name(name)
	o.data = strconv.AppendUint(o.data, v, 10)
}

func (o *object) integer(_ int, name string, v int64) { o.text(0, name, strconv.FormatInt(v, 10)) }

func (o *object) double(_ int, name string, v float64) {
	o.name(name)
	o.data = strconv.AppendFloat(o.data, v, 'g', -1, 64)
}

func (o *object) boolean(_ int, name string, v bool) {
	o.name(name)
	o.data = strconv.AppendBool(o.data, v)
}

func (o *object) counts(_ int, name string, v []uint64) {
	o.list(name, len(v), func(i int) {
		o.data = strconv.AppendQuote(o.data, strconv.FormatUint(v[i], 10))
	})
}

func (o *object) doubles(_ int, name string, v []float64) {
	o.list(name, len(v), func(i int) { o.data = strconv.AppendFloat(o.data, v[i], 'g', -1, 64) })
}

func (o *object) list(name string, count int, f func(int)) {
	o.name(name)
	o.data = append(o.data, '[')
	for i := range count {
		if i > 0 {
			o.data = append(o.data, ',')
		}
		f(i)
	}
	o.data = append(o.data, ']')
}

func (o *object) message(_ int, name string, f func(encoder)) {
	o.name(name)
	o.braces(f)
}

func (o *object) braces(f func(encoder)) {
	o.data = append(o.data, '{')
	f(o)
	o.data = append(o.data, '}')
}

func (o *object) each(_ int, name string, count int, f func(int, encoder)) {
	o.list(name, count, func(i int) { o.braces(func(e encoder) { f(i, e) }) })
}
