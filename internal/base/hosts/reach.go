package hosts

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"

	"dure/agent"
)

// Reach says whom a program may ask.
type Reach struct {
	Mode string   // external: anybody; internal: this machine and Also; off: this machine
	Also []string // hosts, *.domains, addresses and networks
}

// May reports whether an address may be asked.
func (r Reach) May(u *url.URL) bool {
	return r.Mode == "external" || Here(u.String()) || r.Mode == "internal" && r.lists(u.Hostname())
}

// Check is May, with the error for a person.
func (r Reach) Check(u *url.URL) error {
	if r.May(u) {
		return nil
	}
	return &agent.Problem{
		Code: agent.ProblemNetwork, Message: fmt.Sprintf("%s cannot be asked in network mode %s", u.Hostname(), r.Mode),
		Fix: "change network.mode, or name the host in network.allowHosts", Args: map[string]string{"host": u.Hostname(), "mode": r.Mode},
	}
}

func (r Reach) lists(host string) bool {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	addr, err := netip.ParseAddr(host)
	for _, entry := range r.Also {
		if p, perr := netip.ParsePrefix(entry); perr == nil {
			if err == nil && p.Contains(addr.Unmap()) {
				return true
			}
			continue
		}
		if domain, ok := strings.CutPrefix(entry, "*"); ok && strings.HasSuffix(host, domain) && host != domain[1:] || entry == host {
			return true
		}
	}
	return false
}

// Here reports whether a URL leads to this machine.
func Here(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
