package serve

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"dure/internal/frontend/auth"
)

// Of many connections no more are taken than there may be; the others are, when those have gone.
func TestBoundedConnections(t *testing.T) {
	const all, room = 20, 3
	l, err := auth.Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = bounded(l, room)
	var active, most, served atomic.Int64
	goOn := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n := active.Add(1); n > most.Load() {
				most.Store(n) // by this goroutine alone
			}
			wg.Go(func() {
				<-goOn
				served.Add(1)
				active.Add(-1)
				_ = c.Close() // the test has failed if it is not
			})
		}
	})
	var conns []net.Conn
	for range all {
		c, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	until(t, "there is no room any more", func() bool { return active.Load() == room })
	close(goOn)
	for _, c := range conns {
		if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Errorf("a connection was not taken: %v", err)
		}
		_ = c.Close() // it has ended
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if served.Load() != all || most.Load() != room {
		t.Errorf("%d connections were taken, %d at once", served.Load(), most.Load())
	}
}
