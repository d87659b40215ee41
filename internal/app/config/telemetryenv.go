package config

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/base/keys/secret"
	"dure/internal/frontend/telemetry"
)

// telemetryVariables applies the variables of OpenTelemetry, and those by which other agents
// are told to use them. They count when telemetry is on, or one of them switches it on: they
// may well stand there for other programs. What one of them says that cannot be followed
// switches telemetry off, and is told: nothing goes where nobody has sent it. What the
// administrator's settings say is stronger, and so are variables that they give.
func (l *loader) telemetryVariables() {
	switch v := strings.ToLower(l.telemetryVariable("telemetry.enabled", "CLAUDE_CODE_ENABLE_TELEMETRY")); v {
	case "":
	case "1", "true", "yes", "on":
		if !l.watched.on && l.watched.signals == nil { // each signal is asked for by its exporter
			l.watched.signals = map[string]bool{}
		}
		l.saidByVariable("CLAUDE_CODE_ENABLE_TELEMETRY", Values{"telemetry.enabled": true})
	default:
		l.saidByVariable("CLAUDE_CODE_ENABLE_TELEMETRY", Values{"telemetry.enabled": false})
	}
	if strings.EqualFold(l.telemetryVariable("telemetry.enabled", "OTEL_SDK_DISABLED"), "true") {
		l.saidByVariable("OTEL_SDK_DISABLED", Values{"telemetry.enabled": false})
	}
	if !l.watched.on {
		return
	}
	l.exporters()
	l.generalVariables()
	l.waitingVariables()
	for _, signal := range telemetrySignals {
		l.signalVariables(signal)
	}
}

// telemetryVariable returns a variable that stands for a setting, unless the administrator
// has made that one.
func (l *loader) telemetryVariable(key, name string) string {
	managed := l.cfg.Origins["env."+name].Layer == Managed
	if l.cfg.Origins[key].Layer == Managed && !managed {
		return ""
	}
	if managed {
		return strings.TrimSpace(string(l.cfg.Env[name]))
	}
	return l.variable(name)
}

// saidByVariable applies what a variable says.
func (l *loader) saidByVariable(name string, v Values) {
	if err := l.apply(layer{kind: Environment, path: name, said: v.written()}); err != nil {
		l.brokenBy(err)
	}
}

// brokenBy switches telemetry off because of a variable.
func (l *loader) brokenBy(err error) {
	text := err.Error()
	if p := agent.ProblemOf(err); p != nil {
		text = p.Args["path"] + ": " + p.Args["error"]
	}
	l.note("warn", "no telemetry is sent: "+text)
	l.watched.broken = true
}

func (l *loader) brokenVariable(name, value string, among ...string) {
	l.brokenBy(l.invalid(layer{kind: Environment, path: name}, "", value, strings.Join(among, ", ")))
}

// exporters reads which signals are sent. Of several exporters that a variable names the
// one counts that there is here.
func (l *loader) exporters() {
	for _, signal := range telemetrySignals {
		name := "OTEL_" + strings.ToUpper(signal) + "_EXPORTER"
		v := l.telemetryVariable("telemetry.signals", name)
		if v == "" {
			continue
		}
		if l.watched.signals == nil {
			l.watched.signals = map[string]bool{"traces": true, "metrics": true, "logs": true}
		}
		var all []string
		for one := range strings.SplitSeq(v, ",") {
			all = append(all, strings.TrimSpace(one))
		}
		l.watched.signals[signal] = slices.Contains(all, "otlp")
		if !l.watched.signals[signal] && !slices.Contains(all, "none") {
			l.note("warn", fmt.Sprintf("%s is %q: dure knows otlp and none", name, clip(v, maxText)))
		}
	}
}

// generalVariables reads what holds for all signals.
func (l *loader) generalVariables() {
	same := func(v string) (any, bool) { return v, true }
	inMillis := func(v string) (any, bool) { return millis(v), true }
	pairs := func(v string) (any, bool) { all, ok := pairsOf(v); return all, ok }
	for _, v := range []struct {
		key, name string
		read      func(v string) (any, bool)
	}{
		{"telemetry.endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT", same},
		{"telemetry.headers", "OTEL_EXPORTER_OTLP_HEADERS", pairs},
		{"telemetry.protocol", "OTEL_EXPORTER_OTLP_PROTOCOL", same},
		{"telemetry.compression", "OTEL_EXPORTER_OTLP_COMPRESSION", same},
		{"telemetry.timeout", "OTEL_EXPORTER_OTLP_TIMEOUT", inMillis},
		{"telemetry.exit", "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS", inMillis},
		{"telemetry.ca", "OTEL_EXPORTER_OTLP_CERTIFICATE", same},
		{"telemetry.cert", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", same},
		{"telemetry.certKey", "OTEL_EXPORTER_OTLP_CLIENT_KEY", same},
		{"telemetry.insecure", "OTEL_EXPORTER_OTLP_INSECURE", func(v string) (any, bool) { b, err := strconv.ParseBool(v); return b, err == nil }},
		{"telemetry.service", "OTEL_SERVICE_NAME", same},
		{"telemetry.resource", "OTEL_RESOURCE_ATTRIBUTES", pairs},
		{"telemetry.temporality", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", func(v string) (any, bool) {
			if v = strings.ToLower(v); v == "lowmemory" {
				v = "delta"
			}
			return v, true
		}},
		{"telemetry.content", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", func(v string) (any, bool) {
			v, ok := captures[strings.ToLower(v)]
			return v, ok
		}},
	} {
		value := l.telemetryVariable(v.key, v.name)
		if value == "" {
			continue
		}
		said, ok := v.read(value)
		if !ok {
			l.brokenVariable(v.name, secret.Hidden, "what the page about telemetry says")
			continue
		}
		all := Values{v.key: said}
		if of, ok := said.(map[string]string); ok && v.key == "telemetry.resource" && of["service.name"] != "" && l.watched.service == "" {
			all["telemetry.service"] = of["service.name"]
		}
		l.saidByVariable(v.name, all)
	}
	l.samplers()
	l.contentSwitches()
}

// captures are the words for where content is told.
var captures = map[string]string{
	"true": "both", "1": "both", "span_and_event": "both", "span_only": "spans", "event_only": "events",
	"false": "off", "0": "off", "no_content": "off", "none": "off",
}

// contentParts are the kinds of content that can be told without the others.
var contentParts = []string{"prompts", "answers", "inputs", "results"}

// contentSwitches reads the variables each of which opens its own kinds of content, or closes
// them where all content is told. What is closed takes along what none of them names, such as
// what other sessions say to a model: that may repeat it.
func (l *loader) contentSwitches() {
	said := &l.watched
	opened, closed := map[string]bool{}, map[string]bool{}
	for _, v := range []struct {
		name  string
		parts []string
	}{
		{"OTEL_LOG_USER_PROMPTS", []string{"prompts"}},
		{"OTEL_LOG_ASSISTANT_RESPONSES", []string{"answers"}},
		{"OTEL_LOG_TOOL_DETAILS", []string{"inputs"}},
		{"OTEL_LOG_TOOL_CONTENT", []string{"inputs", "results"}},
	} {
		value := l.telemetryVariable("telemetry.content", v.name)
		to := closed
		switch strings.ToLower(value) {
		case "":
			continue
		case "1", "true", "yes", "on":
			to = opened
		case "0", "false", "no", "off":
		default:
			l.brokenVariable(v.name, clip(value, maxText), "1", "0")
		}
		for _, part := range v.parts {
			to[part] = true
		}
	}
	whole := said.content != "off"
	parts := slices.DeleteFunc(slices.Clone(contentParts), func(p string) bool { return !opened[p] && (!whole || closed[p]) })
	switch {
	case len(parts) == 0:
		said.content = "off"
	case !whole:
		said.content, said.parts = "both", parts
	case len(parts) < len(contentParts):
		said.parts = parts
	}
}

// samplers reads of which traces spans are sent.
func (l *loader) samplers() {
	const name, arg = "OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG"
	v := strings.ToLower(l.telemetryVariable("telemetry.sample", name))
	if v == "" {
		return
	}
	rest, based := strings.CutPrefix(v, "parentbased_")
	ratio := 1.0
	switch rest {
	case "always_on":
	case "always_off":
		ratio = 0
	case "traceidratio":
		if said := l.telemetryVariable("telemetry.sample", arg); said != "" {
			var err error
			if ratio, err = strconv.ParseFloat(said, 64); err != nil {
				ratio = -1
			}
		}
	default:
		ratio = -1
	}
	if !(ratio >= 0 && ratio <= 1) {
		l.brokenVariable(name, clip(v, maxText), "always_on, always_off, traceidratio, each also behind parentbased_; in "+arg+" a number from 0 to 1")
		return
	}
	l.watched.always = !based
	l.saidByVariable(name, Values{"telemetry.sample": ratio})
}

// waitingVariables reads how long records wait, and how many.
func (l *loader) waitingVariables() {
	l.watched.waiting = map[string]telemetry.Target{}
	for _, v := range []struct {
		signal, name string
		most         int
		to           func(c *telemetry.Target, n int)
	}{
		{"traces", "OTEL_BSP_SCHEDULE_DELAY", int(maxTelemetryWait.Milliseconds()), waits},
		{"traces", "OTEL_TRACES_EXPORT_INTERVAL", int(maxTelemetryWait.Milliseconds()), waits},
		{"traces", "OTEL_BSP_MAX_QUEUE_SIZE", maxTelemetryQueue, func(c *telemetry.Target, n int) { c.Queue = n }},
		{"traces", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", maxTelemetryQueue, func(c *telemetry.Target, n int) { c.Batch = n }},
		{"logs", "OTEL_BLRP_SCHEDULE_DELAY", int(maxTelemetryWait.Milliseconds()), waits},
		{"logs", "OTEL_LOGS_EXPORT_INTERVAL", int(maxTelemetryWait.Milliseconds()), waits},
		{"logs", "OTEL_BLRP_MAX_QUEUE_SIZE", maxTelemetryQueue, func(c *telemetry.Target, n int) { c.Queue = n }},
		{"logs", "OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", maxTelemetryQueue, func(c *telemetry.Target, n int) { c.Batch = n }},
		{"metrics", "OTEL_METRIC_EXPORT_INTERVAL", int(maxTelemetryWait.Milliseconds()), waits},
	} {
		value := l.telemetryVariable("", v.name)
		if value == "" {
			continue
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > v.most {
			l.brokenVariable(v.name, clip(value, maxText), fmt.Sprintf("a number from 1 to %d", v.most))
			continue
		}
		c := l.watched.waiting[v.signal]
		v.to(&c, n)
		l.watched.waiting[v.signal] = c
	}
}

func waits(c *telemetry.Target, n int) { c.Delay = time.Duration(n) * time.Millisecond }

// signalVariables reads what holds for one signal.
func (l *loader) signalVariables(signal string) {
	prefix := "OTEL_EXPORTER_OTLP_" + strings.ToUpper(signal) + "_"
	var own sending
	if v := l.telemetryVariable("telemetry.endpoint", prefix+"ENDPOINT"); v != "" {
		u, ok := endpoint(v)
		if !ok {
			l.brokenVariable(prefix+"ENDPOINT", shownURL(v), "an address such as https://host:4318/v1/"+signal)
		}
		own.url = u
	}
	if v := l.telemetryVariable("telemetry.headers", prefix+"HEADERS"); v != "" {
		pairs, ok := pairsOf(v)
		own.headers = map[string]secret.Text{}
		for name, value := range pairs {
			ok = ok && isHeader(name, value)
			own.headers[name] = secret.Text(value)
		}
		if !ok {
			l.brokenVariable(prefix+"HEADERS", secret.Hidden, "NAME=VALUE, separated by commas")
		}
	}
	for _, f := range []struct {
		key, end string
		among    []string
		to       *string
	}{{"telemetry.protocol", "PROTOCOL", telemetryProtocols, &own.protocol}, {"telemetry.compression", "COMPRESSION", telemetryPacked, &own.packed}} {
		if v := l.telemetryVariable(f.key, prefix+f.end); v != "" {
			if !slices.Contains(f.among, v) {
				l.brokenVariable(prefix+f.end, clip(v, maxText), f.among...)
			}
			*f.to = v
		}
	}
	if v := l.telemetryVariable("telemetry.timeout", prefix+"TIMEOUT"); v != "" {
		d, err := time.ParseDuration(millis(v))
		if err != nil || d <= 0 || d > maxTelemetryWait {
			l.brokenVariable(prefix+"TIMEOUT", clip(v, maxText), fmt.Sprintf("a number from 1 to %d", maxTelemetryWait.Milliseconds()))
		}
		own.timeout = d
	}
	if l.watched.signals == nil || l.watched.signals[signal] {
		l.ownCertificates(prefix)
	}
	if l.watched.own == nil {
		l.watched.own = map[string]*sending{}
	}
	l.watched.own[signal] = &own
}

// ownCertificates refuses certificates of one signal, of which there are none here: to go on
// without them would be to trust whom nobody has named.
func (l *loader) ownCertificates(prefix string) {
	const general = "OTEL_EXPORTER_OTLP_"
	for _, f := range []struct{ key, end string }{{"telemetry.ca", "CERTIFICATE"}, {"telemetry.cert", "CLIENT_CERTIFICATE"}, {"telemetry.certKey", "CLIENT_KEY"}} {
		if v := l.telemetryVariable(f.key, prefix+f.end); v != "" && v != l.telemetryVariable(f.key, general+f.end) {
			l.brokenVariable(prefix+f.end, clip(v, maxText), "nothing else than "+general+f.end+", which holds for all signals")
		}
	}
	if v := l.telemetryVariable("telemetry.insecure", prefix+"INSECURE"); v != "" && l.watched.insecure {
		if b, err := strconv.ParseBool(v); err != nil || !b {
			l.brokenVariable(prefix+"INSECURE", clip(v, maxText), "nothing else than "+general+"INSECURE, which holds for all signals")
		}
	}
}

// millis reads a number of milliseconds as a time.
func millis(v string) string { return cmp.Or(v, "0") + "ms" }

// pairsOf reads NAME=VALUE, separated by commas, with values escaped as in addresses: how
// headers and attributes stand in variables.
func pairsOf(v string) (map[string]string, bool) {
	pairs := map[string]string{}
	for one := range strings.SplitSeq(v, ",") {
		if one = strings.TrimSpace(one); one == "" {
			continue
		}
		name, value, ok := strings.Cut(one, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if !ok || name == "" || err != nil || len(pairs) >= maxTelemetryPairs {
			return nil, false
		}
		pairs[name] = value
	}
	return pairs, true
}
