package hosts

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
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
