package hosts

import "net/netip"

// Kind says what kind of address one is; "" = public.
type Kind string

// The kinds of addresses that are not the public internet.
const (
	Metadata  Kind = "cloud metadata"
	Loopback  Kind = "loopback"
	Private   Kind = "private"
	LinkLocal Kind = "link-local"
	Multicast Kind = "multicast"
	Reserved  Kind = "reserved"
)

// notPublic has the ranges that the registries of special-purpose addresses of
// IANA do not call globally reachable, and the addresses at which clouds tell a
// machine its secrets. The first that fits counts.
var notPublic = []struct {
	prefix netip.Prefix
	kind   Kind
}{
	{netip.MustParsePrefix("169.254.169.254/32"), Metadata}, // most clouds
	{netip.MustParsePrefix("169.254.170.0/24"), Metadata},   // credentials of containers
	{netip.MustParsePrefix("168.63.129.16/32"), Metadata},   // looks public, is the host of the machine
	{netip.MustParsePrefix("100.100.100.200/32"), Metadata},
	{netip.MustParsePrefix("192.0.0.192/32"), Metadata},
	{netip.MustParsePrefix("fd00:ec2::/32"), Metadata},
	{netip.MustParsePrefix("fd20:ce::/32"), Metadata},

	{netip.MustParsePrefix("127.0.0.0/8"), Loopback},
	{netip.MustParsePrefix("10.0.0.0/8"), Private},
	{netip.MustParsePrefix("172.16.0.0/12"), Private},
	{netip.MustParsePrefix("192.168.0.0/16"), Private},
	{netip.MustParsePrefix("100.64.0.0/10"), Private}, // carriers, and overlay networks
	{netip.MustParsePrefix("169.254.0.0/16"), LinkLocal},
	{netip.MustParsePrefix("224.0.0.0/4"), Multicast},
	{netip.MustParsePrefix("0.0.0.0/8"), Reserved}, // this machine, on most systems
	{netip.MustParsePrefix("192.0.0.0/24"), Reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), Reserved},
	{netip.MustParsePrefix("192.88.99.0/24"), Reserved},
	{netip.MustParsePrefix("198.18.0.0/15"), Reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), Reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), Reserved},
	{netip.MustParsePrefix("240.0.0.0/4"), Reserved},

	{netip.MustParsePrefix("::1/128"), Loopback},
	{netip.MustParsePrefix("fc00::/7"), Private},
	{netip.MustParsePrefix("fe80::/10"), LinkLocal},
	{netip.MustParsePrefix("fec0::/10"), Private},
	{netip.MustParsePrefix("ff00::/8"), Multicast},
	{netip.MustParsePrefix("2001::/23"), Reserved}, // Teredo and other protocols
	{netip.MustParsePrefix("2001:db8::/32"), Reserved},
	{netip.MustParsePrefix("3fff::/20"), Reserved},
}

var (
	global6   = netip.MustParsePrefix("2000::/3") // all that is handed out of IPv6
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
)

// KindOf says what kind of address a is. An IPv6 address that carries an IPv4
// address is what that is; one with a zone is reserved.
func KindOf(a netip.Addr) Kind {
	if !a.IsValid() || a.Zone() != "" {
		return Reserved
	}
	a = a.Unmap()
	for _, r := range notPublic {
		if r.prefix.Contains(a) {
			return r.kind
		}
	}
	if a.Is4() {
		return ""
	}
	if v4, ok := carried(a); ok {
		return KindOf(v4)
	}
	if !global6.Contains(a) {
		return Reserved // also ::, and IPv4 in the old form ::a.b.c.d
	}
	return ""
}

// carried returns the IPv4 address to which a tunnel or a translator takes a.
func carried(a netip.Addr) (netip.Addr, bool) {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16])), true
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6])), true
	case (b[8] == 0 || b[8] == 2) && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe: // ISATAP
		return netip.AddrFrom4([4]byte(b[12:16])), true
	}
	return netip.Addr{}, false
}
