package egress

import (
	"io"
	"testing"
)

// What a connection through the proxy costs, from dialling it to the first byte
// back from the target.
func BenchmarkConnect(b *testing.B) {
	addr := benchWorld(b)
	for b.Loop() {
		c := connect(b, addr, "go.dev:443")
		if _, err := io.WriteString(c, "x"); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		c.Close()
	}
}

// How fast bytes pass, there and back.
func BenchmarkTunnel(b *testing.B) {
	addr := benchWorld(b)
	c := connect(b, addr, "go.dev:443")
	defer c.Close()
	out, in := make([]byte, 64<<10), make([]byte, 64<<10)
	b.SetBytes(int64(len(out)))
	for b.Loop() {
		if _, err := c.Write(out); err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(c, in); err != nil {
			b.Fatal(err)
		}
	}
}

func benchWorld(b *testing.B) string {
	w := &world{names: map[string]string{"go.dev": "8.8.8.8"}, servers: map[string]string{"*": answering(b, echo)}}
	_, addr := w.start(b, Config{Allow: []string{"go.dev", "*.go.dev", "10.0.0.0/8"}, MaxBytes: 1 << 50})
	return addr
}
