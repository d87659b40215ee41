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

	"dure/internal/base/keys/secret"
	"dure/internal/frontend/telemetry"
)

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
	headersBy         map[string]Layer    // who has named the general headers
	own               map[string]*sending // by signal, in the place of the general one
	waiting           map[string]telemetry.Target
	broken            bool // a variable says what nobody can follow
}

// sending is how a signal is sent.
type sending struct {
	url, protocol, packed string
	headers               map[string]secret.Text
	timeout               time.Duration
}

// signals applies which signals are sent.
func (l *loader) signals(e entry) error {
	var v string
	if err := e.decode(&v); err != nil {
		return err
	}
	signals, ok := signalsOf(v)
	if !ok {
		return e.invalid(v, "traces, metrics and logs, or some of them, separated by commas")
	}
	e.set(!maps.Equal(l.watched.signals, signals))
	l.watched.signals = signals
	return nil
}

// movedCollector drops the headers of other layers when the address changes: they were meant
// for the old one. A layer may name its own headers before the address or after it.
func (l *loader) movedCollector(e entry, differs bool) {
	if !differs {
		return
	}
	to := &l.watched
	maps.DeleteFunc(to.general.headers, func(name string, _ secret.Text) bool { return to.headersBy[name] != e.ly.kind })
}

func (l *loader) telemetryHeaders(e entry) error {
	var all map[string]string
	if err := e.decode(&all); err != nil {
		return err
	}
	to := &l.watched.general
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if to.headers == nil {
			to.headers, l.watched.headersBy = map[string]secret.Text{}, map[string]Layer{}
		}
		if !isHeader(name, all[name]) || len(to.headers) >= maxTelemetryPairs {
			return e.invalid(clip(name, maxText), fmt.Sprintf("at most %d headers, whose values are texts of one line, and none that the protocol uses itself", maxTelemetryPairs))
		}
		e.set(false)
		to.headers[name], l.watched.headersBy[name] = secret.Text(all[name]), e.ly.kind
	}
	return nil
}

func (l *loader) telemetryResource(e entry) error {
	var all map[string]string
	if err := e.decode(&all); err != nil {
		return err
	}
	to := &l.watched
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if to.resource == nil {
			to.resource = map[string]string{}
		}
		if !isName(name) || len(all[name]) > maxTelemetryValue || len(to.resource) >= maxTelemetryPairs {
			return e.invalid(clip(name, maxText), fmt.Sprintf("at most %d attributes", maxTelemetryPairs))
		}
		e.set(false)
		to.resource[name] = all[name]
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
	t := telemetry.Settings{
		Content: said.content, Parts: said.parts, Service: said.service, Resource: said.resource, Delta: said.counts == "delta", Sample: said.sample, Always: said.always,
		Exit: said.exit, CA: said.ca, Cert: said.cert, CertKey: said.certKey,
		Parent: strings.TrimSpace(l.src.Getenv("TRACEPARENT")), State: strings.TrimSpace(l.src.Getenv("TRACESTATE")),
	}
	for _, f := range []struct {
		signal string
		to     **telemetry.Target
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
		return secret.Hidden
	}
	return u.Scheme + "://" + u.Host
}
