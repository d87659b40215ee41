package config

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/internal/frontend/telemetry"
)

// telemetryOf loads settings and shows what they say of telemetry.
func telemetryOf(t *testing.T, m machine) (telemetry.Settings, string) {
	t.Helper()
	c, err := Load(m.sources())
	if err != nil {
		t.Fatal(err)
	}
	var notes []string
	for _, n := range c.Notes {
		notes = append(notes, n.Text)
	}
	return c.Telemetry, strings.Join(notes, "\n")
}

func headersOf(c *telemetry.Target) map[string]string {
	all := map[string]string{}
	for k, v := range c.Headers {
		all[k] = string(v)
	}
	return all
}

// Nothing is sent unless the user, or the administrator, says so.
func TestTelemetryIsOff(t *testing.T) {
	skipWindows(t)
	for name, m := range map[string]machine{
		"nothing said":        {},
		"for others":          {env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}},
		"no exporter":         {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1"}},
		"switched off":        {files: map[string]string{userFile: `{"telemetry":{"enabled":true}}`}, env: map[string]string{"OTEL_SDK_DISABLED": "true"}},
		"switched off, too":   {files: map[string]string{userFile: `{"telemetry":{"enabled":true}}`}, env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "0"}},
		"none":                {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_TRACES_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "console"}},
		"a repository":        {files: map[string]string{projectFile: `{"telemetry":{"enabled":true,"endpoint":"https://evil.example"}}`}},
		"a repository's env":  {files: map[string]string{projectFile: `{"env":{"CLAUDE_CODE_ENABLE_TELEMETRY":"1","OTEL_TRACES_EXPORTER":"otlp","OTEL_EXPORTER_OTLP_ENDPOINT":"https://evil.example"}}`}},
		"not encrypted":       {files: map[string]string{userFile: `{"telemetry":{"enabled":true,"endpoint":"http://c.example:4318"}}`}},
		"a protocol we lack":  {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift"}},
		"a wrong address":     {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": "c.example:4318"}},
		"a header that is no": {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_HEADERS": "a=secret%0d%0aHost:x"}},
		"a wrong number":      {env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}},
	} {
		for _, trusted := range []bool{false, true} {
			src := m.sources()
			src.Trusted = trusted
			c, err := Load(src)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got := c.Telemetry; got.On || got.Traces != nil || got.Metrics != nil || got.Events != nil {
				t.Errorf("%s: %+v", name, got)
			}
			if all := fmt.Sprint(c.Notes, c.Inert); strings.Contains(all, "secret") {
				t.Errorf("%s: %s", name, all)
			}
		}
	}
}

// What is said by whom, and what counts.
func TestTelemetryIsOn(t *testing.T) {
	skipWindows(t)
	on := `{"telemetry":{"enabled":true,"endpoint":"https://c.example:4318/otlp/","headers":{"Authorization":"Bearer a"},"protocol":"http/json","compression":"gzip","timeout":"3s"}}`
	got, notes := telemetryOf(t, machine{files: map[string]string{userFile: on}})
	for signal, c := range map[string]*telemetry.Target{"traces": got.Traces, "metrics": got.Metrics, "logs": got.Events} {
		if c == nil || c.URL != "https://c.example:4318/otlp/v1/"+signal || !c.JSON || !c.Gzip || c.Timeout != 3*time.Second || !maps.Equal(headersOf(c), map[string]string{"Authorization": "Bearer a"}) {
			t.Errorf("%s: %+v", signal, c)
		}
	}
	if !got.On || got.Content != "off" || got.Sample != 1 || got.Exit != 2*time.Second || notes != "" {
		t.Errorf("%+v, %s", got, notes)
	}

	// By variables alone, as other agents are told.
	got, notes = telemetryOf(t, machine{env: map[string]string{
		"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_METRICS_EXPORTER": "prometheus, otlp", "OTEL_TRACES_EXPORTER": "otlp",
		"OTEL_EXPORTER_OTLP_HEADERS": "a=1, b=x%20y", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t.example/in", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "t=2",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "1500", "OTEL_METRIC_EXPORT_INTERVAL": "1000",
		"OTEL_BSP_MAX_QUEUE_SIZE": "7", "OTEL_SERVICE_NAME": "me", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=a%2Cb",
		"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25", "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE": "delta",
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY", "TRACEPARENT": " x ", "TRACESTATE": "y", "CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS": "500",
	}})
	if got.Events != nil || got.Traces == nil || got.Metrics == nil || notes != "" {
		t.Fatalf("%+v, %s", got, notes)
	}
	if c := got.Traces; c.URL != "https://t.example/in" || !maps.Equal(headersOf(c), map[string]string{"t": "2"}) || c.JSON || c.Queue != 7 {
		t.Errorf("%+v", c)
	}
	if c := got.Metrics; c.URL != "http://localhost:4318/v1/metrics" || !maps.Equal(headersOf(c), map[string]string{"a": "1", "b": "x y"}) || !c.JSON || c.Timeout != 1500*time.Millisecond || c.Delay != time.Second {
		t.Errorf("%+v", c)
	}
	if got.Service != "me" || got.Resource["team"] != "a,b" || got.Sample != 0.25 || got.Always || !got.Delta || got.Content != "events" || got.Parent != "x" || got.State != "y" || got.Exit != 500*time.Millisecond {
		t.Errorf("%+v", got)
	}

	// An address of the environment does not get the headers of the settings.
	got, _ = telemetryOf(t, machine{files: map[string]string{userFile: on}, env: map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://other.example"}})
	if c := got.Traces; c.URL != "https://other.example/v1/traces" || len(c.Headers) != 0 {
		t.Errorf("%+v", c)
	}
	// Nor does one that a stronger layer names beside headers of its own, in whatever order.
	for _, said := range []string{
		`{"telemetry":{"endpoint":"https://other.example","headers":{"b":"2"}}}`,
		`{"telemetry":{"headers":{"b":"2"},"endpoint":"https://other.example"}}`,
	} {
		got, _ = telemetryOf(t, machine{files: map[string]string{userFile: on, adminFile: said}})
		if c := got.Traces; c.URL != "https://other.example/v1/traces" || !maps.Equal(headersOf(c), map[string]string{"b": "2"}) {
			t.Errorf("%s: %+v has %v", said, c, headersOf(c))
		}
	}
	got, _ = telemetryOf(t, machine{files: map[string]string{userFile: on}, env: map[string]string{"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://other.example"}})
	if len(got.Traces.Headers) != 1 || len(got.Events.Headers) != 0 {
		t.Errorf("%+v, %+v", got.Traces, got.Events)
	}

	// What an address has behind its path stays behind it.
	got, _ = telemetryOf(t, machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true,"endpoint":"https://c.example/in%2Fx?key=a/b#c"}}`}})
	if c := got.Traces; c.URL != "https://c.example/in%2Fx/v1/traces?key=a/b" {
		t.Errorf("%+v", c)
	}

	// What the administrator says, nobody else does; also not for one signal.
	got, _ = telemetryOf(t, machine{
		files: map[string]string{adminFile: `{"telemetry":{"enabled":true,"endpoint":"https://admin.example","signals":"logs","content":"off"}}`},
		env: map[string]string{
			"OTEL_SDK_DISABLED": "true", "OTEL_EXPORTER_OTLP_ENDPOINT": "https://other.example", "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "https://other.example",
			"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true", "OTEL_TRACES_EXPORTER": "otlp",
		},
	})
	if !got.On || got.Traces != nil || got.Events == nil || got.Events.URL != "https://admin.example/v1/logs" || got.Content != "off" {
		t.Errorf("%+v", got)
	}

	// Variables that the user's own settings give count, too.
	got, _ = telemetryOf(t, machine{files: map[string]string{userFile: `{"env":{"CLAUDE_CODE_ENABLE_TELEMETRY":"1","OTEL_LOGS_EXPORTER":"otlp"}}`}})
	if got.Events == nil || got.Traces != nil {
		t.Errorf("%+v", got)
	}

	// On another machine without encryption only when that is said.
	got, _ = telemetryOf(t, machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true,"endpoint":"http://c.example:4318","insecure":true}}`}})
	if !got.On {
		t.Errorf("%+v", got)
	}
}

// Every variable that the page about telemetry names does what it says there, and there is
// none that it does not name.
func TestTelemetryVariables(t *testing.T) {
	skipWindows(t)
	each := func(of func(c *telemetry.Target) bool) func(telemetry.Settings) bool {
		return func(got telemetry.Settings) bool { return of(got.Traces) && of(got.Metrics) && of(got.Events) }
	}
	url := func(c *telemetry.Target, end string) bool { return c.URL == "https://c.example"+end }
	delay := func(c *telemetry.Target) bool { return c.Delay == 700*time.Millisecond }
	type row struct {
		name, value string
		does        func(telemetry.Settings) bool
	}
	rows := []row{
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "https://c.example", func(got telemetry.Settings) bool {
			return url(got.Traces, "/v1/traces") && url(got.Metrics, "/v1/metrics") && url(got.Events, "/v1/logs")
		}},
		{"OTEL_EXPORTER_OTLP_HEADERS", "a=b", each(func(c *telemetry.Target) bool { return string(c.Headers["a"]) == "b" })},
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", each(func(c *telemetry.Target) bool { return c.GRPC })},
		{"OTEL_EXPORTER_OTLP_COMPRESSION", "gzip", each(func(c *telemetry.Target) bool { return c.Gzip })},
		{"OTEL_EXPORTER_OTLP_TIMEOUT", "700", each(func(c *telemetry.Target) bool { return c.Timeout == 700*time.Millisecond })},
		{"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem", func(got telemetry.Settings) bool { return strings.HasSuffix(got.CA, "ca.pem") }},
		{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/c.pem", func(got telemetry.Settings) bool { return strings.HasSuffix(got.Cert, "c.pem") }},
		{"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/k.pem", func(got telemetry.Settings) bool { return strings.HasSuffix(got.CertKey, "k.pem") }},
		{"OTEL_SERVICE_NAME", "me", func(got telemetry.Settings) bool { return got.Service == "me" }},
		{"OTEL_RESOURCE_ATTRIBUTES", "team=a%2Cb,service.name=me", func(got telemetry.Settings) bool { return got.Resource["team"] == "a,b" && got.Service == "me" }},
		{"OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "lowmemory", func(got telemetry.Settings) bool { return got.Delta }},
		{"OTEL_TRACES_SAMPLER", "always_off", func(got telemetry.Settings) bool { return got.Sample == 0 && got.Always }},
		{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_AND_EVENT", func(got telemetry.Settings) bool { return got.Content == "both" && got.Parts == nil }},
		{"OTEL_METRIC_EXPORT_INTERVAL", "700", func(got telemetry.Settings) bool {
			return delay(got.Metrics) && !delay(got.Traces) && !delay(got.Events)
		}},
		{"OTEL_TRACES_EXPORT_INTERVAL", "700", func(got telemetry.Settings) bool { return delay(got.Traces) && !delay(got.Events) }},
		{"OTEL_LOGS_EXPORT_INTERVAL", "700", func(got telemetry.Settings) bool { return delay(got.Events) && !delay(got.Traces) }},
		{"OTEL_BSP_SCHEDULE_DELAY", "700", func(got telemetry.Settings) bool { return delay(got.Traces) }},
		{"OTEL_BLRP_SCHEDULE_DELAY", "700", func(got telemetry.Settings) bool { return delay(got.Events) }},
		{"OTEL_BSP_MAX_QUEUE_SIZE", "7", func(got telemetry.Settings) bool { return got.Traces.Queue == 7 }},
		{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "7", func(got telemetry.Settings) bool { return got.Traces.Batch == 7 }},
		{"OTEL_BLRP_MAX_QUEUE_SIZE", "7", func(got telemetry.Settings) bool { return got.Events.Queue == 7 }},
		{"OTEL_BLRP_MAX_EXPORT_BATCH_SIZE", "7", func(got telemetry.Settings) bool { return got.Events.Batch == 7 }},
		{"CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS", "700", func(got telemetry.Settings) bool { return got.Exit == 700*time.Millisecond }},
		{"OTEL_LOG_USER_PROMPTS", "1", func(got telemetry.Settings) bool { return slices.Equal(got.Parts, []string{"prompts"}) }},
		{"OTEL_LOG_ASSISTANT_RESPONSES", "1", func(got telemetry.Settings) bool { return slices.Equal(got.Parts, []string{"answers"}) }},
		{"OTEL_LOG_TOOL_DETAILS", "1", func(got telemetry.Settings) bool { return slices.Equal(got.Parts, []string{"inputs"}) }},
		{"OTEL_LOG_TOOL_CONTENT", "1", func(got telemetry.Settings) bool { return slices.Equal(got.Parts, []string{"inputs", "results"}) }},
		{"OTEL_SDK_DISABLED", "true", func(got telemetry.Settings) bool { return !got.On }},
		{"CLAUDE_CODE_ENABLE_TELEMETRY", "0", func(got telemetry.Settings) bool { return !got.On }},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://c.example/x", func(got telemetry.Settings) bool { return url(got.Traces, "/x") && !url(got.Events, "/x") }},
	}
	for _, signal := range []struct {
		name string
		of   func(telemetry.Settings) *telemetry.Target
	}{
		{"TRACES", func(got telemetry.Settings) *telemetry.Target { return got.Traces }},
		{"METRICS", func(got telemetry.Settings) *telemetry.Target { return got.Metrics }},
		{"LOGS", func(got telemetry.Settings) *telemetry.Target { return got.Events }},
	} {
		prefix := "OTEL_EXPORTER_OTLP_" + signal.name + "_"
		rows = append(rows, []row{
			{"OTEL_" + signal.name + "_EXPORTER", "none", func(got telemetry.Settings) bool { return got.On && signal.of(got) == nil }},
			{prefix + "HEADERS", "a=b", func(got telemetry.Settings) bool { return string(signal.of(got).Headers["a"]) == "b" }},
			{prefix + "PROTOCOL", "http/json", func(got telemetry.Settings) bool { return signal.of(got).JSON }},
			{prefix + "COMPRESSION", "gzip", func(got telemetry.Settings) bool { return signal.of(got).Gzip }},
			{prefix + "TIMEOUT", "700", func(got telemetry.Settings) bool { return signal.of(got).Timeout == 700*time.Millisecond }},
		}...)
	}
	named := map[string]bool{}
	for _, r := range rows {
		named[r.name] = true
		m := machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true}}`}}
		if got, _ := telemetryOf(t, m); r.does(got) {
			t.Errorf("%s: that is so without it, too", r.name)
		}
		m.env = map[string]string{r.name: r.value}
		if got, notes := telemetryOf(t, m); !r.does(got) || notes != "" {
			t.Errorf("%s=%s: %+v, %s", r.name, r.value, got, notes)
		}
	}
	page, err := os.ReadFile("../../../docs/telemetry.md")
	if err != nil {
		t.Fatal(err)
	}
	// These need another beside them, and are tried in other tests, or are none of ours.
	for _, name := range []string{"OTEL_EXPORTER_OTLP_INSECURE", "OTEL_TRACES_SAMPLER_ARG", "OTEL_LOG_RAW_API_BODIES", "OTEL_"} {
		named[name] = true
	}
	said := string(page)
	for _, name := range regexp.MustCompile(`\b(OTEL|CLAUDE_CODE)_[A-Z_]*`).FindAllString(said, -1) {
		if !named[name] {
			t.Errorf("the page names %s, which no row tries", name)
		}
	}
	for name := range named {
		general := regexp.MustCompile("_(METRICS|LOGS)_").ReplaceAllString(name, "_TRACES_")
		_, end, _ := strings.Cut(general, "OTLP_TRACES")
		if !strings.Contains(said, name) && !(end != "" && strings.Contains(said, "…"+end)) && !strings.HasPrefix(general, "OTEL_EXPORTER_OTLP_CLIENT") && !strings.HasPrefix(general, "OTEL_BLRP_MAX") && !strings.HasSuffix(general, "_MAX_EXPORT_BATCH_SIZE") {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// One signal has no certificates of its own. Whoever asks for some is told, and nothing is
// sent to anybody whom they would have kept out.
func TestTelemetryOwnCertificates(t *testing.T) {
	skipWindows(t)
	const user = `{"telemetry":{"enabled":true,"signals":"metrics","endpoint":"https://c.example"}}`
	for _, tt := range []struct {
		env map[string]string
		bad string
	}{
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE": "/a"}, "OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE"},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY": "/a", "OTEL_EXPORTER_OTLP_CLIENT_KEY": "/b"}, "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY"},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE": "/a", "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": "/a"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_INSECURE": "false", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, "OTEL_EXPORTER_OTLP_METRICS_INSECURE"},
		{map[string]string{"OTEL_EXPORTER_OTLP_METRICS_INSECURE": "false"}, ""},
		{map[string]string{"OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE": "/a"}, ""}, // which is not sent
	} {
		got, notes := telemetryOf(t, machine{files: map[string]string{userFile: user}, env: tt.env})
		if got.On == (tt.bad != "") || !strings.Contains(notes, tt.bad) || (tt.bad == "") != (notes == "") {
			t.Errorf("%v: %v, %s", tt.env, got.On, notes)
		}
	}
}

// Each variable opens its own kinds of content, and closes them where all is told. The
// administrator's settings are stronger than all of them.
func TestTelemetryContentSwitches(t *testing.T) {
	skipWindows(t)
	const prompts, answers, details, contents = "OTEL_LOG_USER_PROMPTS", "OTEL_LOG_ASSISTANT_RESPONSES", "OTEL_LOG_TOOL_DETAILS", "OTEL_LOG_TOOL_CONTENT"
	const whole = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
	on := `{"telemetry":{"enabled":true}}`
	for _, tt := range []struct {
		file, said string
		env        map[string]string
		where      string
		parts      string
	}{
		{userFile, on, nil, "off", ""},
		{userFile, on, map[string]string{prompts: "1"}, "both", "prompts"},
		{userFile, on, map[string]string{answers: "true"}, "both", "answers"},
		{userFile, on, map[string]string{details: "yes"}, "both", "inputs"},
		{userFile, on, map[string]string{contents: "on"}, "both", "inputs,results"},
		{userFile, on, map[string]string{prompts: "1", contents: "1", details: "0"}, "both", "prompts,inputs,results"},
		{userFile, on, map[string]string{prompts: "0", answers: "false", details: "no", contents: "off"}, "off", ""},
		{userFile, on, map[string]string{"OTEL_LOG_RAW_API_BODIES": "1"}, "off", ""},
		{userFile, on, map[string]string{whole: "SPAN_ONLY"}, "spans", ""},
		{userFile, on, map[string]string{whole: "SPAN_ONLY", prompts: "1"}, "spans", ""},
		{userFile, on, map[string]string{whole: "EVENT_ONLY", contents: "0"}, "events", "prompts,answers"},
		{userFile, on, map[string]string{whole: "true", contents: "0", prompts: "0", answers: "0"}, "off", ""},
		{userFile, on, map[string]string{whole: "NO_CONTENT", answers: "1"}, "both", "answers"},
		{userFile, `{"telemetry":{"enabled":true,"content":"events"}}`, map[string]string{prompts: "0"}, "events", "answers,inputs,results"},
		{userFile, `{"telemetry":{"enabled":true},"env":{"OTEL_LOG_USER_PROMPTS":"1"}}`, nil, "both", "prompts"},
		{adminFile, `{"telemetry":{"enabled":true,"content":"off"}}`, map[string]string{prompts: "1", contents: "1"}, "off", ""},
		{adminFile, `{"telemetry":{"enabled":true,"content":"both"}}`, map[string]string{prompts: "0"}, "both", ""},
		{adminFile, `{"telemetry":{"enabled":true,"content":"off"},"env":{"OTEL_LOG_USER_PROMPTS":"1"}}`, nil, "both", "prompts"},
	} {
		got, notes := telemetryOf(t, machine{files: map[string]string{tt.file: tt.said}, env: tt.env})
		if !got.On || got.Content != tt.where || strings.Join(got.Parts, ",") != tt.parts || notes != "" {
			t.Errorf("%s %v: %s %v, %s", tt.said, tt.env, got.Content, got.Parts, notes)
		}
	}
	got, notes := telemetryOf(t, machine{files: map[string]string{userFile: on}, env: map[string]string{prompts: "some"}})
	if got.On || !strings.Contains(notes, prompts) {
		t.Errorf("%+v, %s", got, notes)
	}
}

// What cannot be followed is told with its place, and without what is secret.
func TestTelemetryMistakes(t *testing.T) {
	skipWindows(t)
	for _, bad := range []string{
		`"endpoint":"c.example"`, `"endpoint":"https://u:secret@c.example"`, `"protocol":"thrift"`, `"compression":"zip"`, `"timeout":"1h"`, `"timeout":"x"`,
		`"signals":"traces,profiles"`, `"signals":""`, `"content":"all"`, `"temporality":"x"`, `"sample":1.5`, `"exit":"1m"`, `"service":""`,
		`"headers":{"Host":"secret"}`, `"headers":{"a b":"secret"}`, `"headers":{"Grpc-Timeout":"secret"}`, `"headers":{"a":"secret\n"}`, `"resource":{"":"x"}`,
	} {
		_, err := Load(machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true,` + bad + `}}`}}.sources())
		if err == nil || !strings.Contains(err.Error(), "telemetry.") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	_, notes := telemetryOf(t, machine{env: map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift"}})
	if want := `no telemetry is sent: OTEL_EXPORTER_OTLP_PROTOCOL: "thrift" is none of: http/protobuf, http/json, grpc`; notes != want {
		t.Errorf("%s", notes)
	}
	_, notes = telemetryOf(t, machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true,"signals":"logs","endpoint":"http://c.example:4318/x"}}`}})
	if want := "telemetry is not sent to http://c.example:4318, which would not be encrypted: take https, or set telemetry.insecure"; notes != want {
		t.Errorf("%s", notes)
	}
}

// Calls of gRPC go to another port, and to a host alone, whatever path an address has.
func TestTelemetryByCalls(t *testing.T) {
	skipWindows(t)
	const traces, logs = "/opentelemetry.proto.collector.trace.v1.TraceService/Export", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	on := map[string]string{"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_LOGS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}
	for _, tt := range []struct {
		more         map[string]string
		traces, logs string
	}{
		{nil, "http://localhost:4317" + traces, "http://localhost:4317" + logs},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, "http://localhost:4318" + traces, "http://localhost:4318" + logs},
		{map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c.example:4317/"}, "https://c.example:4317" + traces, "https://c.example:4317" + logs},
		{
			map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://t.example/x/y", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "http/protobuf"},
			"https://t.example" + traces, "http://localhost:4318/v1/logs",
		},
	} {
		env := maps.Clone(on)
		maps.Copy(env, tt.more)
		got, notes := telemetryOf(t, machine{env: env})
		if notes != "" || got.Traces == nil || got.Events == nil {
			t.Fatalf("%v: %s", tt.more, notes)
		}
		if c := got.Traces; c.URL != tt.traces || !c.GRPC || c.JSON {
			t.Errorf("%v: %+v", tt.more, c)
		}
		if c := got.Events; c.URL != tt.logs || c.GRPC == strings.HasSuffix(tt.logs, "/v1/logs") {
			t.Errorf("%v: %+v", tt.more, c)
		}
	}
	// What is not encrypted stays on this machine here, too.
	if got, _ := telemetryOf(t, machine{files: map[string]string{userFile: `{"telemetry":{"enabled":true,"protocol":"grpc","endpoint":"http://c.example:4317"}}`}}); got.On {
		t.Errorf("%+v", got)
	}
}

// FuzzTelemetryVariables has no variable stop the program, be shown when it is secret, or
// send anything where it would not be encrypted.
func FuzzTelemetryVariables(f *testing.F) {
	f.Add("https://c.example", "a=1,b=%20", "http/json", "0.5", "1000")
	f.Add("http://c.example", "a", "grpc", "x", "-1")
	f.Add("http://localhost:4318", "Host=x", "", "", "")
	f.Add("https://\x00", "a=%zz,,=", "gzip", "NaN", "9999999999999999999")
	f.Fuzz(func(t *testing.T, address, headers, protocol, share, n string) {
		env := map[string]string{
			"CLAUDE_CODE_ENABLE_TELEMETRY": "1", "OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_EXPORTER_OTLP_HEADERS": headers,
			"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": share, "OTEL_BSP_MAX_QUEUE_SIZE": n,
			"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": n, "OTEL_RESOURCE_ATTRIBUTES": headers,
		}
		c, err := Load(machine{env: env}.sources())
		if err != nil {
			t.Fatal(err)
		}
		got := c.Telemetry
		if got.Traces == nil {
			return
		}
		if !private(got.Traces.URL) || !(got.Sample >= 0 && got.Sample <= 1) || got.Traces.Timeout < 0 || got.Traces.Queue < 0 {
			t.Fatalf("%+v", got)
		}
		for name, value := range got.Traces.Headers {
			if !isHeader(name, string(value)) {
				t.Fatalf("%q: %q", name, string(value))
			}
		}
	})
}

// Whatever steers telemetry, no repository sets.
func TestTelemetrySteers(t *testing.T) {
	skipWindows(t)
	var env []string
	for _, name := range []string{"OTEL_EXPORTER_OTLP_HEADERS", "otel_service_name", "OTEL_LOG_USER_PROMPTS", "OTEL_LOG_TOOL_CONTENT", "TRACEPARENT", "TRACESTATE", "CLAUDE_CODE_ENABLE_TELEMETRY"} {
		env = append(env, fmt.Sprintf("%q:%q", name, "x"))
	}
	src := machine{files: map[string]string{projectFile: `{"env":{` + strings.Join(env, ",") + `}}`}}.sources()
	src.Trusted = true
	c, err := Load(src)
	if err != nil || len(c.Env) != 0 || len(slices.DeleteFunc(c.Inert, func(i Inert) bool { return i.Why != Foreign })) != len(env) {
		t.Errorf("%v, %v, %v", c.Env, c.Inert, err)
	}
}
