package app

import (
	"crypto/tls"
	"fmt"
	"net/url"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/frontend/telemetry"
)

// newTelemetry makes what tells of the sessions, where the network mode lets collectors be
// asked.
func (a *App) newTelemetry() *telemetry.Program {
	t := &a.cfg.Telemetry
	var trust *tls.Config // to speak to collectors; nil = as to anybody
	if t.On {
		trust = a.boundTelemetry(t)
	}
	return telemetry.NewProgram(telemetry.ProgramConfig{
		On: t.On, Traces: t.Traces != nil, Exit: t.Exit, Transport: wire{a},
		Apart: func() bool { return a.parent != nil },
		Loads: func() (running, waiting int) {
			a.mu.Lock()
			queues := a.queues
			a.mu.Unlock()
			if queues == nil {
				return 0, 0 // none has been opened
			}
			return queues.Loads()
		},
		Config: func() telemetry.Config {
			c := telemetry.Config{
				Traces: target(t.Traces), Events: target(t.Events), Metrics: target(t.Metrics),
				Service: t.Service, Version: a.opts.Version, Resource: t.Resource, Content: contents[t.Content], Parts: partsOf(t.Parts), Delta: t.Delta,
				Sampler: telemetry.Sampler{Ratio: t.Sample, Always: t.Always}, Redact: a.patterns.Redact, HTTP: a.transport, Logger: a.opts.Logger,
				Provider: func(model string) string {
					info, _ := a.models.Info(model)
					return info.Provider
				},
			}
			if trust != nil {
				own := a.transport.Clone()
				own.TLSClientConfig = trust
				c.HTTP = own
			}
			if parent, ok := telemetry.ParseContext(t.Parent, t.State); ok {
				c.Parent = &parent
			}
			return c
		},
	})
}

// boundTelemetry keeps telemetry to where the network mode lets the program reach, and
// returns what the settings trust for it.
func (a *App) boundTelemetry(t *config.Telemetry) *tls.Config {
	for _, to := range []**config.Collector{&t.Traces, &t.Metrics, &t.Events} {
		if *to == nil {
			continue
		}
		if u, err := url.Parse((*to).URL); err != nil || !a.near(u) {
			a.noteTelemetry(fmt.Sprintf("telemetry is not sent to %s: the network mode %s does not let it be asked", u.Host, a.cfg.Network.Mode))
			*to = nil
		}
	}
	trust, err := certificates(*t, a.transport.TLSClientConfig)
	if err != nil {
		a.noteTelemetry("no telemetry is sent: " + err.Error())
		t.Traces, t.Metrics, t.Events = nil, nil, nil
	}
	t.On = t.Traces != nil || t.Metrics != nil || t.Events != nil
	return trust
}

func (a *App) noteTelemetry(text string) {
	a.cfg.Notes = append(a.cfg.Notes, agent.Note{Level: "warn", Code: "settings", Text: text})
}

// certificates reads what collectors are known by, and what they are shown.
func certificates(t config.Telemetry, usual *tls.Config) (*tls.Config, error) {
	if t.CA == "" && t.Cert == "" && t.CertKey == "" {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if usual != nil {
		c = usual.Clone()
	}
	if t.CA != "" {
		pool, err := trusted(t.CA)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.CA, err)
		}
		c.RootCAs = pool
	}
	if t.Cert != "" || t.CertKey != "" {
		pair, err := tls.LoadX509KeyPair(t.Cert, t.CertKey)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.Cert, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

var contents = map[string]telemetry.Content{
	"spans": telemetry.ContentSpans, "events": telemetry.ContentEvents, "both": telemetry.ContentBoth,
}

var contentParts = map[string]telemetry.Parts{
	"prompts": telemetry.PartPrompts, "answers": telemetry.PartAnswers, "inputs": telemetry.PartInputs, "results": telemetry.PartResults,
}

func partsOf(names []string) (p telemetry.Parts) {
	for _, name := range names {
		p |= contentParts[name]
	}
	return p
}

func target(c *config.Collector) *telemetry.Target {
	if c == nil {
		return nil
	}
	t := &telemetry.Target{
		URL: c.URL, Headers: map[string]string{}, JSON: c.JSON, GRPC: c.GRPC, Gzip: c.Gzip,
		Timeout: c.Timeout, Queue: c.Queue, Batch: c.Batch, Delay: c.Delay,
	}
	for name, value := range c.Headers {
		t.Headers[name] = string(value)
	}
	return t
}
