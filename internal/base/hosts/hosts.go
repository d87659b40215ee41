// Package hosts tells hosts apart: the one spelling of a name or an address, what
// kind of address one is, and which hosts an entry of a list means. It never
// looks a name up, and starts no goroutines.
package hosts

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// The longest name and label that name servers know, in bytes.
const (
	maxName  = 253
	maxLabel = 63
)

// What is wrong with a host, for a sentence that has it as its subject.
var (
	errName    = errors.New("cannot exist")
	errAddress = errors.New("cannot be read as an address")
	errNumber  = errors.New("is a number but no address of four parts")
)

// Name returns the one spelling of a host, for comparing and for dialling: an
// address as netip writes it, without brackets, or a name in ASCII and lower case
// without its final dot. It refuses what programs read in different ways: zones,
// empty and overlong labels, characters other than letters, digits and hyphens,
// and numbers that only some resolvers take for addresses.
func Name(raw string) (string, error) {
	if strings.ContainsAny(raw, ":%") { // IPv6, perhaps with a zone
		a, err := netip.ParseAddr(raw)
		if err != nil || a.Zone() != "" {
			return "", errAddress
		}
		return a.String(), nil
	}
	if len(raw) > 4*maxName { // of bytes that may become fewer
		return "", errName
	}
	name, err := idna.Lookup.ToASCII(strings.TrimSuffix(raw, "."))
	if err != nil || !whole(name) {
		return "", errName
	}
	if again, err := idna.Lookup.ToASCII(name); err != nil || again != name { // others read it otherwise
		return "", errName
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.String(), nil
	}
	// 127.1, 0x7f.0.0.1 and 2130706433 are addresses to some resolvers.
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") && strings.Trim(last[2:], "0123456789abcdef") == "" {
		return "", errNumber
	}
	return name, nil
}

// whole reports whether the lengths of a name and of its labels can be.
func whole(name string) bool {
	if len(name) > maxName {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel {
			return false
		}
	}
	return true
}

// A Rule is an entry of a list of hosts.
type Rule struct {
	Name    string       // as [Name] spells it
	Sub     bool         // the names below Name, at any depth, and not Name itself
	Port    uint16       // 0 = any
	Network netip.Prefix // if valid: hosts that are written as addresses of it, and no name
}

// ParseRule reads host, host:port, *.domain, *.domain:port, [address]:port or a
// network such as 10.0.0.0/8.
func ParseRule(raw string) (Rule, error) {
	var r Rule
	s := strings.ToLower(strings.TrimSpace(raw))
	if p, err := netip.ParsePrefix(s); err == nil {
		r.Network = p.Masked()
		return r, nil
	}
	if host, port, err := net.SplitHostPort(s); err == nil {
		n, err := strconv.ParseUint(port, 10, 16)
		if err != nil || n == 0 {
			return r, fmt.Errorf("reading the host %q: the port does not exist", raw)
		}
		s, r.Port = host, uint16(n)
	}
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	s, r.Sub = strings.CutPrefix(s, "*.")
	name, err := Name(s)
	if err != nil {
		return r, fmt.Errorf("reading the host %q: it %w", raw, err)
	}
	if _, err := netip.ParseAddr(name); err == nil && r.Sub {
		return r, fmt.Errorf("reading the host %q: no name is below an address", raw)
	}
	r.Name = name
	return r, nil
}

// Fits reports whether the rule means a host that [Name] has spelt, and a port.
// Names are compared label by label.
func (r Rule) Fits(host string, port uint16) bool {
	if r.Network.IsValid() {
		a, err := netip.ParseAddr(host)
		return err == nil && r.Network.Contains(a.Unmap())
	}
	if r.Port != 0 && r.Port != port {
		return false
	}
	if r.Sub {
		return strings.HasSuffix(host, "."+r.Name)
	}
	return host == r.Name
}
