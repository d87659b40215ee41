package telemetry

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"dure/internal/base/meter"
)

func TestContexts(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, one := range []struct {
		parent, state string
		ok            bool
		carried       string
	}{
		{good, "", true, ""},
		{" " + good + "\n", "a=1,b@c=x y", true, "a=1,b@c=x y"},
		{good, "A=1", true, ""},
		{good, "a=\x01", true, ""},
		{good, strings.Repeat("a=1,", 40), true, ""},
		{good, strings.Repeat("x", 600), true, ""},
		{"01" + good[2:] + "-more", "", true, ""},
		{"", "", false, ""},
		{"01" + good[2:] + "more", "", false, ""},
		{good + "-more", "", false, ""},
		{"ff" + good[2:], "", false, ""},
		{strings.ToUpper(good), "", false, ""},
		{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "", false, ""},
		{"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", "", false, ""},
		{"00-0af7651916cd43dd8448eb211c8031zz-b7ad6b7169203331-01", "", false, ""},
	} {
		c, ok := ParseContext(one.parent, one.state)
		if ok != one.ok || c.State() != one.carried || ok && c.String() != good {
			t.Errorf("%q, %q: %v, %q, %q", one.parent, one.state, ok, c, c.State())
		}
	}
}

func TestSampler(t *testing.T) {
	yes, _ := ParseContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	no, _ := ParseContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", "")
	taken := 0
	for i := range 10_000 {
		if (Sampler{Ratio: 0.25}).takes(traceOf("s", string(rune(i))), nil) {
			taken++
		}
	}
	if taken < 2300 || taken > 2700 {
		t.Errorf("of 10,000 traces, a quarter is %d", taken)
	}
	for _, one := range []struct {
		s      Sampler
		parent *Context
		want   bool
	}{
		{Sampler{Ratio: 1}, nil, true},
		{Sampler{}, nil, false},
		{Sampler{}, &yes, true},
		{Sampler{Ratio: 1}, &no, false},
		{Sampler{Ratio: 1, Always: true}, &no, true},
		{Sampler{Always: true}, &yes, false},
	} {
		if got := one.s.takes(yes.at.trace, one.parent); got != one.want {
			t.Errorf("%+v, %v: %v", one.s, one.parent, got)
		}
	}
}

// FuzzContext has what is taken over be written as it came, and be fit to be passed on.
func FuzzContext(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "a=1,b=2")
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", "a=1,,")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "=")
	f.Fuzz(func(t *testing.T, parent, state string) {
		c, ok := ParseContext(parent, state)
		if !ok {
			if c.String() != "" || c.State() != "" {
				t.Fatalf("%q, %q", c, c.State())
			}
			return
		}
		if again, ok := ParseContext(c.String(), c.State()); !ok || again != c {
			t.Fatalf("%q became %q", c, again)
		}
		if strings.ContainsFunc(c.State(), func(r rune) bool { return r != '\t' && (r < ' ' || r > '~') }) {
			t.Fatalf("%q", c.State())
		}
	})
}

// FuzzReply has no answer of a collector do harm.
func FuzzReply(f *testing.F) {
	f.Add([]byte("\x0a\x02\x08\x01"), false)
	f.Add([]byte(`{"partialSuccess":{"rejectedSpans":"9223372036854775807"}}`), true)
	f.Add([]byte("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), false)
	f.Fuzz(func(t *testing.T, reply []byte, asJSON bool) {
		if n := rejectedOf(reply, asJSON); n < 0 || n > 1<<31-1 {
			t.Fatal(n)
		}
	})
}

// FuzzText has any text be valid where it is sent.
func FuzzText(f *testing.F) {
	f.Add("\xff\x00\"", 3)
	f.Add("가나다", 4)
	f.Fuzz(func(t *testing.T, s string, most int) {
		if most < 0 {
			return
		}
		if c := clip(s, most); len(c) > most || utf8.ValidString(s) && !utf8.ValidString(c) || !strings.HasPrefix(s, c) {
			t.Fatalf("%q cut to %d is %q", s, most, c)
		}
		o := &object{}
		e := event{name: s, attrs: attrs{{s, fields{{s, []any{s, []string{s}}}}}}}
		o.braces(func(w encoder) {
			origin{}.events(w, []*event{&e})
			origin{}.metrics(w, []meter.Metric{{Name: s, Help: s, Series: []meter.Series{{Labels: []meter.Label{{Name: s, Value: s}}}}}}, e.time, e.time, false)
		})
		if !json.Valid(o.data) || !utf8.Valid(o.data) {
			t.Fatalf("%s", o.data)
		}
	})
}
