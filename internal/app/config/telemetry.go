package config

import (
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"
)

// Telemetry says whether collectors of OpenTelemetry are told what sessions do, and how.
type Telemetry struct {
	On                      bool
	Traces, Events, Metrics *Collector // nil = that signal is not sent

	Content  string   // off, spans, events or both
	Parts    []string // of content that are told: prompts, answers, inputs, results; nil = all there is
	Service  string   // name; "" = dure
	Resource map[string]string
	Delta    bool          // figures count since the last report
	Sample   float64       // share of the traces that are told
	Always   bool          // also of those that another program does not tell of
	Exit     time.Duration // that the end of the program may be late for what is not sent yet
	CA       string        // file of certificates that are trusted beside the usual ones; absolute
	Cert     string        // file of the certificate that is shown; absolute
	CertKey  string        // file of its key; absolute
	Parent   string        // as TRACEPARENT has it
	State    string        // as TRACESTATE has it
}

// Collector is where a signal is sent. Zero numbers are built in.
type Collector struct {
	URL          string
	Headers      map[string]Secret
	JSON, Gzip   bool
	GRPC         bool // URL has the name of the call, too
	Timeout      time.Duration
	Delay        time.Duration
	Queue, Batch int
}

// FileTelemetry is [Telemetry] as a file writes it.
type FileTelemetry struct {
	Enabled     *bool             `json:"enabled"`
	Signals     *string           `json:"signals"`
	Endpoint    *string           `json:"endpoint"`
	Protocol    *string           `json:"protocol"`
	Headers     map[string]string `json:"headers"`
	Compression *string           `json:"compression"`
	Timeout     *string           `json:"timeout"`
	Insecure    *bool             `json:"insecure"`
	Content     *string           `json:"content"`
	Service     *string           `json:"service"`
	Resource    map[string]string `json:"resource"`
	Temporality *string           `json:"temporality"`
	Sample      *float64          `json:"sample"`
	Exit        *string           `json:"exit"`
	CA          *string           `json:"ca"`
	Cert        *string           `json:"cert"`
	CertKey     *string           `json:"certKey"`
}

// The values of settings of telemetry.
var (
	telemetrySignals   = []string{"traces", "metrics", "logs"}
	telemetryProtocols = []string{"http/protobuf", "http/json", "grpc"}
	telemetryPacked    = []string{"gzip", "none"}
	telemetryContents  = []string{"off", "spans", "events", "both"}
	telemetryCounts    = []string{"cumulative", "delta"}
)

// Bounds of telemetry.
const (
	maxTelemetryWait  = 5 * time.Minute
	maxTelemetryExit  = 30 * time.Second
	maxTelemetryPairs = 64 // headers, and attributes
	maxTelemetryValue = 4 << 10
	maxTelemetryQueue = 100_000
)

// Where collectors listen, for requests of HTTP and for calls of gRPC.
const (
	usualCollector     = "http://localhost:4318"
	usualCallCollector = "http://localhost:4317"
)

// telemetryCalls are what collectors are called for, by signal.
var telemetryCalls = map[string]string{
	"traces":  "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
	"metrics": "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
	"logs":    "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}

// usualTelemetryExit is how long the end of the program may be late.
const usualTelemetryExit = 2 * time.Second

// telemetrySaid is what the layers have said of telemetry, before all of them have.
type telemetrySaid struct {
	on, insecure      bool
	signals           map[string]bool // nil = nobody has said
	content, service  string
	parts             []string
	resource          map[string]string
	counts            string
	sample            float64
	always            bool
	exit              time.Duration
	ca, cert, certKey string
	general           sending
	own               map[string]*sending // by signal, in the place of the general one
	waiting           map[string]Collector
	broken            bool // a variable says what nobody can follow
}

// sending is how a signal is sent.
type sending struct {
	url, protocol, packed string
	headers               map[string]Secret
	timeout               time.Duration
}

// telemetry applies what a layer says about telemetry.
func (l *loader) telemetry(ly layer, s Settings) error {
	t := s.Telemetry
	if t == nil {
		return nil
	}
	to := &l.watched
	for _, f := range []struct {
		key  string
		from *bool
		to   *bool
	}{{"telemetry.enabled", t.Enabled, &to.on}, {"telemetry.insecure", t.Insecure, &to.insecure}} {
		if f.from != nil {
			l.set(ly, f.key, *f.to != *f.from)
			*f.to = *f.from
		}
	}
	if v := t.Signals; v != nil {
		signals, ok := signalsOf(*v)
		if !ok {
			return l.invalid(ly, "telemetry.signals", *v, []string{"traces, metrics and logs, or some of them, separated by commas"})
		}
		l.set(ly, "telemetry.signals", !maps.Equal(to.signals, signals))
		to.signals = signals
	}
	if v := t.Endpoint; v != nil {
		u, ok := endpoint(*v)
		if !ok {
			return l.invalid(ly, "telemetry.endpoint", shownURL(*v), []string{"an address such as https://host:4318"})
		}
		if to.general.url != u && l.cfg.Origins["telemetry.headers"].Layer != ly.kind {
			to.general.headers = nil // they were meant for another address
		}
		l.set(ly, "telemetry.endpoint", to.general.url != u)
		to.general.url = u
	}
	for _, f := range []struct {
		key   string
		from  *string
		to    *string
		among []string
	}{
		{"telemetry.protocol", t.Protocol, &to.general.protocol, telemetryProtocols},
		{"telemetry.compression", t.Compression, &to.general.packed, telemetryPacked},
		{"telemetry.content", t.Content, &to.content, telemetryContents},
		{"telemetry.temporality", t.Temporality, &to.counts, telemetryCounts},
		{"telemetry.service", t.Service, &to.service, nil},
	} {
		if f.from == nil {
			continue
		}
		if f.among == nil && !isName(*f.from) || f.among != nil && !slices.Contains(f.among, *f.from) {
			return l.invalid(ly, f.key, clip(*f.from, maxText), f.among)
		}
		l.set(ly, f.key, *f.to != *f.from)
		*f.to = *f.from
	}
	if v := t.Sample; v != nil {
		if !(*v >= 0 && *v <= 1) {
			return l.invalid(ly, "telemetry.sample", fmt.Sprint(*v), []string{"a number from 0 to 1"})
		}
		l.set(ly, "telemetry.sample", to.sample != *v)
		to.sample = *v
	}
	return l.telemetryRest(ly, t)
}

func (l *loader) telemetryRest(ly layer, t *FileTelemetry) error {
	to := &l.watched
	for _, f := range []struct {
		key   string
		value *string
		to    *time.Duration
		least time.Duration
		most  time.Duration
	}{
		{"telemetry.timeout", t.Timeout, &to.general.timeout, 100 * time.Millisecond, maxTelemetryWait},
		{"telemetry.exit", t.Exit, &to.exit, 0, maxTelemetryExit},
	} {
		if f.value == nil {
			continue
		}
		d, err := time.ParseDuration(*f.value)
		if err != nil || d < f.least || d > f.most {
			return l.invalid(ly, f.key, clip(*f.value, maxText), []string{fmt.Sprintf("a time from %v to %v", f.least, f.most)})
		}
		l.set(ly, f.key, *f.to != d)
		*f.to = d
	}
	for _, f := range []struct {
		key  string
		from *string
		to   *string
	}{{"telemetry.ca", t.CA, &to.ca}, {"telemetry.cert", t.Cert, &to.cert}, {"telemetry.certKey", t.CertKey, &to.certKey}} {
		if f.from != nil {
			path := ""
			if *f.from != "" {
				path = l.absolute(*f.from)
			}
			l.set(ly, f.key, *f.to != path)
			*f.to = path
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.Headers)) {
		if to.general.headers == nil {
			to.general.headers = map[string]Secret{}
		}
		if !isHeader(name, t.Headers[name]) || len(to.general.headers) >= maxTelemetryPairs {
			return l.invalid(ly, "telemetry.headers", clip(name, maxText), []string{fmt.Sprintf("at most %d headers, whose values are texts of one line, and none that the protocol uses itself", maxTelemetryPairs)})
		}
		l.set(ly, "telemetry.headers", false)
		to.general.headers[name] = Secret(t.Headers[name])
	}
	for _, name := range slices.Sorted(maps.Keys(t.Resource)) {
		if to.resource == nil {
			to.resource = map[string]string{}
		}
		if !isName(name) || len(t.Resource[name]) > maxTelemetryValue || len(to.resource) >= maxTelemetryPairs {
			return l.invalid(ly, "telemetry.resource", clip(name, maxText), []string{fmt.Sprintf("at most %d attributes", maxTelemetryPairs)})
		}
		l.set(ly, "telemetry.resource", false)
		to.resource[name] = t.Resource[name]
	}
	return nil
}

// isHeader reports whether a header may be sent along. Those that say what a request is are
// no user's.
func isHeader(name, value string) bool {
	switch strings.ToLower(name) {
	case "host", "content-type", "content-length", "content-encoding", "transfer-encoding", "connection", "te", "trailer", "upgrade", "user-agent":
		return false
	}
	if strings.HasPrefix(strings.ToLower(name), "grpc-") {
		return false
	}
	return len(name) <= maxText && len(value) <= maxTelemetryValue && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
}

// signalsOf reads a list of signals.
func signalsOf(v string) (map[string]bool, bool) {
	signals := map[string]bool{}
	for name := range strings.SplitSeq(v, ",") {
		name = strings.TrimSpace(name)
		if name == "" {
			continue
		}
		if !slices.Contains(telemetrySignals, name) {
			return nil, false
		}
		signals[name] = true
	}
	return signals, len(signals) > 0
}

// finishTelemetry puts together what all layers have said.
func (l *loader) finishTelemetry() {
	said := &l.watched
	if !said.on || said.broken {
		return
	}
	t := Telemetry{
		Content: said.content, Parts: said.parts, Service: said.service, Resource: said.resource, Delta: said.counts == "delta", Sample: said.sample, Always: said.always,
		Exit: said.exit, CA: said.ca, Cert: said.cert, CertKey: said.certKey,
		Parent: strings.TrimSpace(l.src.Getenv("TRACEPARENT")), State: strings.TrimSpace(l.src.Getenv("TRACESTATE")),
	}
	for _, f := range []struct {
		signal string
		to     **Collector
	}{{"traces", &t.Traces}, {"metrics", &t.Metrics}, {"logs", &t.Events}} {
		if said.signals != nil && !said.signals[f.signal] {
			continue
		}
		c := said.waiting[f.signal]
		how := said.general
		c.URL = below(how.url, "/v1/"+f.signal)
		_, named := l.cfg.Origins["telemetry.endpoint"]
		if own := said.own[f.signal]; own != nil {
			if own.url != "" {
				c.URL, named = own.url, true
			}
			how = how.with(*own)
		}
		if c.GRPC = how.protocol == "grpc"; c.GRPC {
			if !named {
				c.URL = usualCallCollector
			}
			c.URL = callURL(f.signal, c.URL)
		}
		if !said.insecure && !private(c.URL) {
			l.note("warn", fmt.Sprintf("telemetry is not sent to %s, which would not be encrypted: take https, or set telemetry.insecure", shownHost(c.URL)))
			continue
		}
		c.Headers, c.JSON, c.Gzip, c.Timeout = how.headers, how.protocol == "http/json", how.packed == "gzip", how.timeout
		*f.to = &c
	}
	t.On = t.Traces != nil || t.Metrics != nil || t.Events != nil
	l.cfg.Telemetry = t
}

// callURL is the address of a call, of which settings and variables say host and port alone.
func callURL(signal, address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // it was looked at when it was said
	}
	return u.Scheme + "://" + u.Host + telemetryCalls[signal]
}

// below is an address below another one. What is behind a ? stays there.
func below(address, path string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address + path // it was looked at when it was said
	}
	u.Fragment, u.RawFragment = "", ""
	u = u.JoinPath(path)
	return u.String()
}

// with returns s with what o says.
func (s sending) with(o sending) sending {
	if o.url != "" && o.headers == nil {
		s.headers = nil // they were meant for another address
	}
	if o.headers != nil {
		s.headers = o.headers
	}
	if o.protocol != "" {
		s.protocol = o.protocol
	}
	if o.packed != "" {
		s.packed = o.packed
	}
	if o.timeout != 0 {
		s.timeout = o.timeout
	}
	return s
}

// private reports whether nobody on the way reads what is sent to an address: it is
// encrypted, or on this machine.
func private(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	if u.Scheme == "https" || u.Hostname() == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err == nil && ip.Unmap().IsLoopback()
}

// shownHost is what of an address may be shown.
func shownHost(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	return u.Scheme + "://" + u.Host
}
