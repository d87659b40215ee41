// Package web holds the tools that speak HTTP: reading a page, searching, and
// making a request of any kind.
//
// Behind all of them is one client that asks nobody but whom its mode permits:
// it resolves names itself, connects to what it has checked, follows redirects
// by hand and reads no more than its bounds. What servers say reaches the model
// as data between marks, never as instructions. The package keeps no cookies and
// no connections, reads no environment and starts no goroutines of its own.
package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"time"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/tools/kit"
)

// Mode says how much of the network there is.
type Mode string

// The modes.
const (
	// External is the public internet and nothing else.
	External Mode = "external"

	// Internal is the hosts of Config.AllowHosts and no others. They may have
	// private addresses; the names that mean this machine may be loopback.
	Internal Mode = "internal"

	// Off is nothing: the tools are not listed.
	Off Mode = "off"
)

// Config configures a [Web]. Its zero value works: public hosts, no search, no
// digests.
type Config struct {
	// Transport has the proxy and the certificates to use; it is cloned. Its
	// DialContext is used for proxies only. nil = neither.
	Transport *http.Transport

	UserAgent  string   // "" = dure
	Mode       Mode     // "" = External
	AllowHosts []string // of internal mode: host, host:port, *.domain, [address]:port, 10.0.0.0/8

	// Permit, if not nil, admits addresses that the mode would refuse. It is asked
	// about each address that is not public, more than once before a connection.
	Permit func(netip.Addr) bool

	Search SearchConfig

	// Ask, if not nil, answers the prompt of a fetch from the page. Model is the
	// one to ask, a small one; "" = the session's.
	Ask   agent.Ask
	Model string

	// Lookup resolves a name; nil = as the system does.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

	Now    func() time.Time // nil = time.Now
	Limits Limits
}

// Limits are bounds that are not always the same. 0 = the default.
type Limits struct {
	Total     time.Duration // of one fetch or search; 30 s
	FirstByte time.Duration // of a fetch or search, to the end of its header, and to connect; 10 s
}

// Check reports the first mistake of the configuration.
func (c Config) Check() error {
	if _, err := c.rules(); err != nil {
		return err
	}
	return c.Search.Check()
}

func (c Config) rules() ([]hosts.Rule, error) {
	var rules []hosts.Rule
	for _, h := range c.AllowHosts {
		r, err := hosts.ParseRule(h)
		if err != nil {
			return nil, err
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// Web makes the tools. It is safe for concurrent use.
type Web struct {
	cfg    Config
	client *client
	engine *engine // nil = no search
	pages  cache
	turn   turner
}

// New panics on a configuration that Check refuses.
func New(c Config) *Web {
	if err := c.Check(); err != nil {
		panic("web: " + err.Error())
	}
	rules, _ := c.rules()
	if c.UserAgent == "" {
		c.UserAgent = "dure"
	}
	if c.Mode == "" {
		c.Mode = External
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Lookup == nil {
		c.Lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	or := func(d *time.Duration, standard time.Duration) {
		if *d == 0 {
			*d = standard
		}
	}
	or(&c.Limits.Total, 30*time.Second)
	or(&c.Limits.FirstByte, 10*time.Second)
	return &Web{
		cfg:    c,
		client: newClient(c, policy{mode: c.Mode, allow: rules, permit: c.Permit}),
		engine: newEngine(c),
		pages:  cache{age: cacheAge, room: cacheBytes},
		turn:   newTurner(),
	}
}

// Tools returns web__fetch, web__search and http__request.
func (w *Web) Tools() []agent.Tool {
	on := w.cfg.Mode != Off
	return []agent.Tool{
		conditional{w.fetch(), on},
		conditional{w.search(), on && w.engine != nil},
		conditional{w.request(), on},
	}
}

// conditional is a tool that is listed only when there is a use for it.
type conditional struct {
	kit.Tool
	on bool
}

// Enabled reports whether the tool is listed.
func (c conditional) Enabled() bool { return c.on }
