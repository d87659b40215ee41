package auth

import "testing"

// Only loopback is listened on.
func TestListen(t *testing.T) {
	for _, addr := range []string{":0", "0.0.0.0:0", "[::]:0", "192.168.0.1:0", "example.org:0", "localhost.example.org:0", "127.0.0.1"} {
		if l, err := Listen(t.Context(), addr); err == nil {
			t.Errorf("%s: it listens at %s", addr, l.Addr())
			_ = l.Close()
		}
	}
}
