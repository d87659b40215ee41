package telemetry

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"dure/internal/base/hosts"
)

// Settings say whether collectors of OpenTelemetry are told what sessions do, and how.
type Settings struct {
	On                      bool
	Traces, Events, Metrics *Target // nil = that signal is not sent

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

// Limit leaves out the collectors that nobody may ask, and says why. It returns how the others
// are reached: as usual, or with certificates of their own.
func (s *Settings) Limit(reach hosts.Reach, usual *http.Transport) (way *http.Transport, left []string) {
	if !s.On {
		return usual, nil
	}
	for _, to := range []**Target{&s.Traces, &s.Metrics, &s.Events} {
		if *to == nil {
			continue
		}
		if u, err := url.Parse((*to).URL); err != nil || !reach.May(u) {
			left = append(left, fmt.Sprintf("telemetry is not sent to %s: the network mode %s does not let it be asked", u.Host, reach.Mode))
			*to = nil
		}
	}
	way, err := s.certified(usual)
	if err != nil {
		left = append(left, "no telemetry is sent: "+err.Error())
		s.Traces, s.Metrics, s.Events = nil, nil, nil
	}
	s.On = s.Traces != nil || s.Metrics != nil || s.Events != nil
	return way, left
}

// certified returns a transport that trusts what the settings trust, and shows their certificate.
func (s *Settings) certified(usual *http.Transport) (*http.Transport, error) {
	if s.CA == "" && s.Cert == "" && s.CertKey == "" {
		return usual, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if usual.TLSClientConfig != nil {
		c = usual.TLSClientConfig.Clone()
	}
	if s.CA != "" {
		pool, err := hosts.Trusted(s.CA)
		if err != nil {
			return usual, fmt.Errorf("%s: %w", s.CA, err)
		}
		c.RootCAs = pool
	}
	if s.Cert != "" || s.CertKey != "" {
		pair, err := tls.LoadX509KeyPair(s.Cert, s.CertKey)
		if err != nil {
			return usual, fmt.Errorf("%s: %w", s.Cert, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	way := usual.Clone()
	way.TLSClientConfig = c
	return way, nil
}

var contents = map[string]Content{"spans": ContentSpans, "events": ContentEvents, "both": ContentBoth}

var parts = map[string]Parts{"prompts": PartPrompts, "answers": PartAnswers, "inputs": PartInputs, "results": PartResults}

// config is what an observer tells, without its meter.
func (p *Program) config() Config {
	s := p.Settings
	c := Config{
		Traces: s.Traces, Events: s.Events, Metrics: s.Metrics,
		Service: s.Service, Version: p.Version, Resource: s.Resource, Content: contents[s.Content], Delta: s.Delta,
		Sampler: Sampler{Ratio: s.Sample, Always: s.Always}, Redact: p.Redact, HTTP: p.HTTP, Logger: p.Logger, Provider: p.Provider,
	}
	for _, name := range s.Parts {
		c.Parts |= parts[name]
	}
	if parent, ok := ParseContext(s.Parent, s.State); ok {
		c.Parent = &parent
	}
	return c
}
