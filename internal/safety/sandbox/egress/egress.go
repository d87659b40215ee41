// Package egress is the way of confined commands to the network: a proxy for
// HTTP and SOCKS5 on one listener, which reaches the hosts of its list and no
// others. It looks names up itself, checks every address that it finds, and
// connects to what it has checked. It never adds to what a client says of
// itself, and looks into nothing that is encrypted: who is allowed a host of a
// shared front can ask that front for its neighbours.
//
// A [Server] has a goroutine for each connection and up to two more while bytes
// are passed on, all of which [Server.Close] waits for.
package egress

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Defaults of a [Config].
const (
	DefaultConns = 256
	DefaultBytes = 4 << 30
)

// The times that each phase of a connection may take.
const (
	headTime    = 10 * time.Second // from the first byte of a client to the end of what it asks for
	lookupTime  = 5 * time.Second
	connectTime = 20 * time.Second // to all addresses of a host, and through another proxy
	attemptTime = 8 * time.Second  // to one address
	idleTime    = 5 * time.Minute  // without a byte in either direction
	refuseTime  = 5 * time.Second  // to take in that it was refused
)

// Config configures a [Server]. Its zero value reaches nothing.
type Config struct {
	// Allow and Deny list hosts: a name, *.example.com for the names below it, an
	// address, a network such as 10.0.0.0/8, each but the last also with :port; and
	// * for every public host. Deny counts more than Allow. Addresses that are not
	// public are reached only where Allow lists them as addresses or networks, and
	// those at which a cloud keeps its secrets only where it lists them singly.
	Allow, Deny []string

	// Ports are those of entries that name none; nil = 80 and 443.
	Ports []uint16

	// AllowLoopback and AllowPrivate let listed names lead to this machine and to
	// private networks.
	AllowLoopback, AllowPrivate bool

	// Token is the password that clients have to give, in Basic authentication or
	// in that of SOCKS; "" = none is asked for. Who can open the listener but not
	// read the token reaches nothing.
	Token string

	MaxConns int   // at a time; more wait. 0 = DefaultConns
	MaxBytes int64 // in both directions, in the life of the server. 0 = DefaultBytes

	// Upstream is the proxy by which the user himself reaches a host: a URL of
	// http, https, socks5 or socks5h; nil = none. It looks names up then; they are
	// looked up here as well, as far as that works, to see where they lead.
	Upstream func(host string) *url.URL

	// Denied is told of each host that was refused, and why: one of the Why
	// constants. A host that cannot be read is in quotes, and cut. Connections call
	// it at the same time.
	Denied func(host string, port int, why string)

	// Resolve looks a name up, and Dial connects to an address that was checked, or
	// to the upstream proxy. nil = as the system does.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, addr string) (net.Conn, error)
}

// Why a host was refused.
const (
	WhyHost    = "host"    // the list does not have it
	WhyDenied  = "denied"  // the list of denied hosts has it
	WhyPort    = "port"    // the port is not among those that are open
	WhyName    = "name"    // it cannot be read, or is written in a way that others read differently
	WhyAddress = "address" // it leads where it may not: this machine, a private network, a cloud's metadata
	WhyBytes   = "bytes"   // the budget is used up
)

// A Server is a proxy. It is safe for concurrent use.
type Server struct {
	cfg   Config
	slots chan struct{} // one for each connection
	spent atomic.Int64  // bytes

	ctx  context.Context // over when the server is closed
	stop context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	listeners map[net.Listener]bool
	links     map[*link]bool
	rules     rules
	grants    map[*grant]bool
}

// New returns a server. The error is about the lists of the Config.
func New(c Config) (*Server, error) {
	if c.Ports == nil {
		c.Ports = []uint16{80, 443}
	}
	if c.MaxConns == 0 {
		c.MaxConns = DefaultConns
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultBytes
	}
	if c.Resolve == nil {
		c.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	allow, err := parseList(c.Allow)
	if err != nil {
		return nil, err
	}
	deny, err := parseList(c.Deny)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg: c, slots: make(chan struct{}, c.MaxConns),
		listeners: map[net.Listener]bool{}, links: map[*link]bool{}, grants: map[*grant]bool{},
		rules: rules{allow: allow, deny: deny, ports: slices.Clone(c.Ports)},
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s, nil
}

// A grant is what is allowed for a while.
type grant struct{ allow list }

// Allow allows more hosts, written as in [Config], until release is called; what
// is connected to them and has no other grant is cut then. They hold for all
// clients of the server. With an error nothing is allowed.
func (s *Server) Allow(hosts ...string) (release func(), err error) {
	l, err := parseList(hosts)
	if err != nil {
		return nil, err
	}
	g := &grant{l}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants[g] = true
	return sync.OnceFunc(func() { s.revoke(g) }), nil
}

func (s *Server) revoke(g *grant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.grants, g)
	now := s.current()
	for l := range s.links {
		if l.to.host != "" && now.check(l.to) != nil {
			l.cut()
		}
	}
}

// current returns the rules with what is granted now. The caller has the lock.
func (s *Server) current() rules {
	r := s.rules
	r.allow.rules = slices.Clone(r.allow.rules)
	for g := range s.grants {
		r.allow.rules = append(r.allow.rules, g.allow.rules...)
		r.allow.any = r.allow.any || g.allow.any
	}
	return r
}

// Serve takes connections until the server is closed, which is no error, or the
// listener is. It closes the listener.
func (s *Server) Serve(ln net.Listener) error {
	defer ln.Close()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.listeners[ln] = true
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.listeners, ln)
	}()
	for failed := 0; ; {
		conn, err := ln.Accept()
		if err == nil {
			failed = 0
			s.take(conn)
			continue
		}
		if s.ctx.Err() != nil {
			return nil
		}
		if failed++; errors.Is(err, net.ErrClosed) || failed > maxFailures {
			return fmt.Errorf("taking connections: %w", err)
		}
		select { // out of descriptors, or the client has gone already
		case <-time.After(acceptPause):
		case <-s.ctx.Done():
		}
	}
}

// What a listener may fail in a row, and how long to wait then.
const (
	maxFailures = 100
	acceptPause = 50 * time.Millisecond
)

// take serves a connection in a goroutine of its own, once there is room for it.
func (s *Server) take(conn net.Conn) {
	select {
	case s.slots <- struct{}{}:
	case <-s.ctx.Done():
		conn.Close()
		return
	}
	l := &link{server: s, client: conn}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		conn.Close()
		return
	}
	s.links[l] = true
	s.work.Go(func() {
		l.serve()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.links, l)
		<-s.slots
	})
}

// Close ends all connections and waits until nothing of the server runs.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	s.stop()
	for ln := range s.listeners {
		ln.Close()
	}
	for l := range s.links {
		l.cut()
	}
	s.mu.Unlock()
	s.work.Wait()
	return nil
}

// Spent is how many bytes have passed in both directions.
func (s *Server) Spent() int64 { return s.spent.Load() }
