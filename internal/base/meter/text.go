package meter

import (
	"bufio"
	"io"
	"math"
	"strconv"
	"strings"
)

// TextType is the content type of what [Registry.WriteText] writes.
const TextType = "text/plain; version=0.0.4; charset=utf-8"

// WriteText writes all figures as Prometheus reads them. Dots of names become lines, units
// and kinds are told by their ends: gen_ai.client.operation.duration in seconds is
// gen_ai_client_operation_duration_seconds.
func (r *Registry) WriteText(w io.Writer) error {
	out := bufio.NewWriter(w)
	for _, m := range r.Read() {
		name := TextName(m)
		out.WriteString("# HELP " + name + " " + helped.Replace(m.Help) + "\n")
		out.WriteString("# TYPE " + name + " " + textKinds[m.Kind] + "\n")
		for _, s := range m.Series {
			if m.Kind == KindHistogram {
				writeHistogram(out, name, m.Bounds, s)
				continue
			}
			writeSample(out, name, s.Labels, "", s.Value)
		}
	}
	return out.Flush()
}

var textKinds = map[Kind]string{KindCounter: "counter", KindGauge: "gauge", KindHistogram: "histogram"}

// unitEnds are the ends of names by units. Units in braces count things, and have none.
var unitEnds = map[string]string{"s": "_seconds", "By": "_bytes", "USD": "_usd", "1": "_ratio"}

// TextName is the name of a metric in the text.
func TextName(m Metric) string {
	name := textWord(m.Name)
	if end := unitEnds[m.Unit]; !strings.HasSuffix(name, end) {
		name += end
	}
	if m.Kind == KindCounter && !strings.HasSuffix(name, "_total") {
		name += "_total"
	}
	return name
}

// textWord makes a name of metrics and labels of a name with dots.
func textWord(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, s)
}

var (
	helped = strings.NewReplacer("\\", `\\`, "\n", `\n`)
	quoted = strings.NewReplacer("\\", `\\`, "\n", `\n`, `"`, `\"`)
)

func writeHistogram(out *bufio.Writer, name string, bounds []float64, s Series) {
	var sum uint64
	for n, count := range s.Buckets {
		sum += count
		end := math.Inf(1)
		if n < len(bounds) {
			end = bounds[n]
		}
		writeSample(out, name+"_bucket", s.Labels, number(end), float64(sum))
	}
	writeSample(out, name+"_sum", s.Labels, "", s.Value)
	writeSample(out, name+"_count", s.Labels, "", float64(s.Count))
}

// writeSample writes a line; end is the upper bound of a bucket, "" = there is none.
func writeSample(out *bufio.Writer, name string, labels []Label, end string, v float64) {
	out.WriteString(name)
	if end != "" {
		labels = append(labels[:len(labels):len(labels)], Label{"le", end})
	}
	for n, l := range labels {
		out.WriteByte("{,"[min(n, 1)])
		out.WriteString(textWord(l.Name) + `="` + quoted.Replace(l.Value) + `"`)
	}
	if len(labels) > 0 {
		out.WriteByte('}')
	}
	out.WriteString(" " + number(v) + "\n")
}

func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}
