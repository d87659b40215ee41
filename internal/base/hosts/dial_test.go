package hosts

import (
	"net/netip"
	"testing"
)

// Where clouds tell a machine its secrets nobody asks, and at private addresses only what was
// named.
func TestMayAsk(t *testing.T) {
	t.Parallel()
	for addr, want := range map[string]string{"93.184.216.34": "", "127.0.0.1": "loopback", "192.168.1.1": "private", "169.254.169.254": "metadata", "::1": "loopback", "::ffff:10.0.0.1": "private"} {
		a := netip.MustParseAddr(addr)
		if err := mayAsk(a, false); (err == nil) != (want == "") {
			t.Errorf("%s: %v", addr, err)
		}
		if err := mayAsk(a, true); (err == nil) != (want != "metadata") {
			t.Errorf("%s, named: %v", addr, err)
		}
		if err := LookedUp(t.Context(), addr, true); (err == nil) != (want != "metadata") {
			t.Errorf("%s, named, by a proxy: %v", addr, err)
		}
	}
}
