package sandbox

import (
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"

	"dure/internal/safety/sandbox/egress"
)

// A gate is the proxy of one command where there is no loopback of its own: it
// listens on the machine's, and wants a token that only the command is told. Its
// goroutine, and those of the proxy, are waited for by close. A nil gate leads
// nowhere.
type gate struct {
	token  string
	listen net.Listener
	server *egress.Server
	done   chan struct{}

	mu      sync.Mutex
	refused []Denial
}

// openGate lets a command reach what the Config lists, and these hosts.
func openGate(c egress.Config, hosts []string) (*gate, error) {
	g := &gate{token: rand.Text(), done: make(chan struct{})}
	told := c.Denied
	c.Token, c.Allow = g.token, slices.Concat(c.Allow, hosts)
	c.Denied = func(host string, port int, why string) {
		g.note(Denial{DeniedHost, net.JoinHostPort(host, strconv.Itoa(port)), why})
		if told != nil {
			told(host, port, why)
		}
	}
	var err error
	if g.server, err = egress.New(c); err != nil {
		return nil, fmt.Errorf("opening the way to the network: %w", err)
	}
	if g.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, fmt.Errorf("opening the way to the network: %w", err)
	}
	go func() {
		defer close(g.done)
		_ = g.server.Serve(g.listen) // a command that cannot connect says so
	}()
	return g, nil
}

func (g *gate) note(d Denial) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.refused) < maxDenials && !slices.Contains(g.refused, d) {
		g.refused = append(g.refused, d)
	}
}

// env is what leads a command to the gate.
func (g *gate) env() []string { return proxyEnv(g.listen.Addr().String(), g.token) }

func (g *gate) port() int {
	if g == nil {
		return 0
	}
	return g.listen.Addr().(*net.TCPAddr).Port
}

// denied returns the hosts that were refused.
func (g *gate) denied() []Denial {
	if g == nil {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.refused)
}

func (g *gate) close() {
	if g == nil {
		return
	}
	_ = g.server.Close()
	<-g.done
}
