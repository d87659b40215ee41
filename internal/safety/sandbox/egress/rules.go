package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"dure/internal/base/hosts"
)

// A target is what a client asks to be connected to.
type target struct {
	host string     // as hosts.Name spells it
	addr netip.Addr // valid if host is an address
	port uint16
}

// newTarget reads a host as a client wrote it.
func newTarget(host string, port uint16) (target, error) {
	name, err := hosts.Name(host)
	if err != nil {
		return target{}, &refusal{host: quoted(host), why: WhyName, port: port, text: "the host " + err.Error()}
	}
	if port == 0 {
		return target{}, &refusal{host: name, why: WhyPort, text: "port 0 does not exist"}
	}
	t := target{host: name, port: port}
	t.addr, _ = netip.ParseAddr(name)
	if t.addr.Is4In6() {
		return target{}, &refusal{host: quoted(host), why: WhyName, port: port, text: "the host is an address of version 4 that is written as one of version 6"}
	}
	return t, nil
}

// maxQuoted is how much is shown of a host that cannot be read, in bytes.
const maxQuoted = 100

// quoted is a host as a client wrote it, fit to be shown.
func quoted(host string) string { return strconv.QuoteToASCII(host[:min(len(host), maxQuoted)]) }

// A refusal is why a host is not reached, for whoever asked for it.
type refusal struct {
	host string // in quotes if it cannot be read
	port uint16
	why  string
	text string // of printable ASCII, in one line
}

func (r *refusal) Error() string { return r.text }

func (t target) refuse(why, text string) *refusal {
	return &refusal{host: t.host, port: t.port, why: why, text: text}
}

// A list is what [Config.Allow] or [Config.Deny] says.
type list struct {
	rules []hosts.Rule
	any   bool // it has *
}

func parseList(entries []string) (list, error) {
	var l list
	for _, e := range entries {
		if strings.TrimSpace(e) == "*" {
			l.any = true
			continue
		}
		r, err := hosts.ParseRule(e)
		if err != nil {
			return list{}, err
		}
		if r.Network.IsValid() && r.Network.Addr().Is4In6() {
			return list{}, fmt.Errorf("reading the host %q: write the network as one of version 4", e)
		}
		if a, err := netip.ParseAddr(r.Name); err == nil {
			r.Name = a.Unmap().String() // which is how targets are spelt
		}
		l.rules = append(l.rules, r)
	}
	return l, nil
}

// rules say what may be reached.
type rules struct {
	allow, deny list
	ports       []uint16 // of entries without one
}

// metadataNames lead to the secrets of a machine in some cloud, whatever the
// resolver of another network says.
var metadataNames = []string{
	"metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal",
	"metadata.tencentyun.com", "metadata.platformequinix.com", "metadata.azure.internal",
}

// check checks what can be told before names are looked up. It returns nil or a
// *refusal.
func (r rules) check(t target) error {
	if r.deny.any || slices.ContainsFunc(r.deny.rules, func(e hosts.Rule) bool { return e.Fits(t.host, t.port) }) {
		return t.refuse(WhyDenied, "host "+t.host+" is denied")
	}
	if slices.Contains(metadataNames, t.host) {
		return t.refuse(WhyAddress, "host "+t.host+" is a cloud metadata host")
	}
	named, open := r.allow.any, r.allow.any && slices.Contains(r.ports, t.port)
	for _, e := range r.allow.rules {
		if (hosts.Rule{Name: e.Name, Sub: e.Sub, Network: e.Network}).Fits(t.host, 0) {
			named = true
			open = open || e.Port == t.port || e.Port == 0 && slices.Contains(r.ports, t.port)
		}
	}
	switch {
	case !named:
		return t.refuse(WhyHost, "host "+t.host+" is not allowed")
	case !open:
		return t.refuse(WhyPort, fmt.Sprintf("port %d of host %s is not allowed", t.port, t.host))
	}
	return nil
}

// onlyByStar reports whether no entry but * means the host.
func (r rules) onlyByStar(t target) bool {
	return !slices.ContainsFunc(r.allow.rules, func(e hosts.Rule) bool { return e.Fits(t.host, t.port) })
}

// checkAddress checks an address to which an allowed target leads. It returns nil
// or a *refusal.
func (r rules) checkAddress(t target, a netip.Addr, loopback, private bool) error {
	a = a.Unmap()
	at := func(e hosts.Rule) bool { return e.Fits(a.String(), t.port) }
	if slices.ContainsFunc(r.deny.rules, at) {
		return t.refuse(WhyDenied, "host "+t.host+" leads to "+a.String()+", which is denied")
	}
	kind := hosts.KindOf(a)
	switch {
	case kind == "":
		return nil
	case kind == hosts.Loopback && loopback, kind == hosts.Private && private:
		return nil
	case slices.ContainsFunc(r.allow.rules, func(e hosts.Rule) bool {
		return at(e) && (kind != hosts.Metadata || !e.Network.IsValid() || e.Network.IsSingleIP())
	}):
		return nil
	}
	what := "host " + t.host
	if t.host != a.String() {
		what += " leads to " + a.WithZone("").String() + ", which"
	}
	return t.refuse(WhyAddress, what+" is a "+string(kind)+" address")
}
