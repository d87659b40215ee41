package hosts

import (
	"net/netip"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		addr string
		kind Kind
	}{
		{"8.8.8.8", ""},
		{"1.1.1.1", ""},
		{"100.63.255.255", ""},
		{"100.128.0.0", ""},
		{"172.15.255.255", ""},
		{"172.32.0.0", ""},
		{"223.255.255.255", ""},
		{"2606:4700:4700::1111", ""},
		{"::ffff:8.8.8.8", ""},
		{"64:ff9b::808:808", ""},
		{"2002:808:808::1", ""},

		{"127.0.0.1", Loopback},
		{"127.255.255.254", Loopback},
		{"0.0.0.0", Reserved},
		{"0.1.2.3", Reserved},
		{"10.1.2.3", Private},
		{"172.16.0.1", Private},
		{"172.31.255.255", Private},
		{"192.168.1.1", Private},
		{"100.64.0.1", Private},
		{"100.127.255.255", Private},
		{"169.254.1.1", LinkLocal},
		{"169.254.169.254", Metadata},
		{"169.254.170.2", Metadata},
		{"100.100.100.200", Metadata},
		{"168.63.129.16", Metadata},
		{"192.0.0.192", Metadata},
		{"192.0.2.1", Reserved},
		{"198.19.0.1", Reserved},
		{"224.0.0.1", Multicast},
		{"239.255.255.250", Multicast},
		{"240.0.0.1", Reserved},
		{"255.255.255.255", Reserved},

		{"::", Reserved},
		{"::1", Loopback},
		{"::127.0.0.1", Reserved}, // the old form
		{"::ffff:127.0.0.1", Loopback},
		{"::ffff:7f00:1", Loopback},
		{"::ffff:10.0.0.1", Private},
		{"::ffff:169.254.169.254", Metadata},
		{"::ffff:0:127.0.0.1", Reserved},
		{"64:ff9b::7f00:1", Loopback},
		{"64:ff9b::a9fe:a9fe", Metadata},
		{"64:ff9b::10.0.0.1", Private},
		{"64:ff9b:1::a00:1", Reserved},
		{"2002:7f00:1::", Loopback},
		{"2002:c0a8:101::1", Private},
		{"2002:a9fe:a9fe::", Metadata},
		{"2001:0:4136:e378:8000:63bf:3fff:fdd2", Reserved}, // Teredo
		{"2606:4700::5efe:10.0.0.1", Private},              // ISATAP
		{"2606:4700::200:5efe:127.0.0.1", Loopback},
		{"2001:db8::1", Reserved},
		{"3fff::1", Reserved},
		{"fc00::1", Private},
		{"fd12:3456::1", Private},
		{"fd00:ec2::254", Metadata},
		{"fd20:ce::254", Metadata},
		{"fe80::1", LinkLocal},
		{"fe80::1%eth0", Reserved},
		{"fec0::1", Private},
		{"ff02::1", Multicast},
		{"4000::1", Reserved},
		{"5f00::1", Reserved},
	} {
		if got := KindOf(netip.MustParseAddr(tt.addr)); got != tt.kind {
			t.Errorf("%s: %q, want %q", tt.addr, got, tt.kind)
		}
	}
	if got := KindOf(netip.Addr{}); got != Reserved {
		t.Errorf("no address: %q", got)
	}
}
