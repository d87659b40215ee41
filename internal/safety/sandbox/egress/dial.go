package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"

	"golang.org/x/net/proxy"
)

// maxAttempts is how many addresses of a host are tried.
const maxAttempts = 4

// errUpstream is the user's proxy not doing its part. It says nothing of its URL,
// which may hold a password.
var errUpstream = errors.New("the proxy of this machine's user cannot be used")

// connect connects to a target that may be reached. With via, the connection
// leads to an HTTP proxy that expects a request for the target: it is asked for
// only where plain is set.
func (s *Server) connect(ctx context.Context, t target, plain bool) (conn net.Conn, via *url.URL, err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	var up *url.URL
	if s.cfg.Upstream != nil {
		up = s.cfg.Upstream(t.host)
	}
	list, err := s.addresses(ctx, t)
	if err != nil && (up == nil || isRefusal(err) || s.now().onlyByStar(t)) {
		return nil, nil, err // a name that cannot be told from an internal one is not passed on
	}
	if up == nil {
		conn, err = s.dial(ctx, t, list)
		return conn, nil, err
	}
	if plain && (up.Scheme == "http" || up.Scheme == "https") {
		conn, err = s.dialUpstream(ctx, up)
		return conn, up, err
	}
	conn, err = s.tunnelUpstream(ctx, up, net.JoinHostPort(t.host, strconv.Itoa(int(t.port))))
	return conn, nil, err
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// addresses returns the addresses of a target, all of which may be reached. One
// that may not spoils the others: an honest name does not lead to both kinds.
func (s *Server) addresses(ctx context.Context, t target) ([]netip.Addr, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	found := []netip.Addr{t.addr}
	if !t.addr.IsValid() {
		var err error
		if found, err = s.cfg.Resolve(ctx, t.host); err != nil || len(found) == 0 {
			return nil, fmt.Errorf("looking up %s: %s", t.host, lookupFault(err))
		}
	}
	now, list := s.now(), make([]netip.Addr, len(found))
	for i, a := range found {
		list[i] = a.Unmap()
		if err := now.checkAddress(t, a, s.cfg.AllowLoopback, s.cfg.AllowPrivate); err != nil {
			return nil, err
		}
	}
	return list[:min(len(list), maxAttempts)], nil
}

// lookupFault leaves out which name server was asked.
func lookupFault(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case err == nil, ok && dns.IsNotFound:
		return "no such host"
	case ok && dns.IsTimeout, errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	}
	return "no answer"
}

// dial connects to one of the addresses, in their order.
func (s *Server) dial(ctx context.Context, t target, list []netip.Addr) (net.Conn, error) {
	var last error
	for _, a := range list {
		try, cancel := context.WithTimeout(ctx, attemptTime)
		conn, err := s.cfg.Dial(try, "tcp", netip.AddrPortFrom(a, t.port).String())
		cancel()
		if err == nil {
			return conn, nil
		}
		last = err
	}
	return nil, &unreachable{t.host, last}
}

// unreachable says that no address of a host takes connections.
type unreachable struct {
	host string
	err  error
}

func (u *unreachable) Unwrap() error { return u.err }

func (u *unreachable) Error() string {
	why := "no connection"
	switch {
	case errors.Is(u.err, syscall.ECONNREFUSED):
		why = "connection refused"
	case errors.Is(u.err, context.DeadlineExceeded):
		why = "no connection in time"
	}
	return "connecting to " + u.host + ": " + why
}

// now returns the rules of this moment.
func (s *Server) now() rules {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current()
}

// dialUpstream connects to an HTTP proxy.
func (s *Server) dialUpstream(ctx context.Context, up *url.URL) (net.Conn, error) {
	port := up.Port()
	switch {
	case port != "":
	case up.Scheme == "https":
		port = "443"
	case up.Scheme == "http":
		port = "80"
	default:
		port = "1080"
	}
	conn, err := s.cfg.Dial(ctx, "tcp", net.JoinHostPort(up.Hostname(), port))
	if err != nil {
		return nil, errUpstream
	}
	if up.Scheme != "https" {
		return conn, nil
	}
	secure := tls.Client(conn, &tls.Config{ServerName: up.Hostname()})
	if secure.HandshakeContext(ctx) != nil {
		conn.Close()
		return nil, errUpstream
	}
	return secure, nil
}

// tunnelUpstream connects to addr through a proxy.
func (s *Server) tunnelUpstream(ctx context.Context, up *url.URL, addr string) (net.Conn, error) {
	switch up.Scheme {
	case "http", "https":
		conn, err := s.dialUpstream(ctx, up)
		if err != nil {
			return nil, err
		}
		tunnel, err := askTunnel(ctx, conn, up, addr)
		if err != nil {
			conn.Close()
			return nil, errUpstream
		}
		return tunnel, nil
	case "socks5", "socks5h":
		var auth *proxy.Auth
		if up.User != nil {
			password, _ := up.User.Password()
			auth = &proxy.Auth{User: up.User.Username(), Password: password}
		}
		first := &upstreamDialer{server: s, url: up}
		d, err := proxy.SOCKS5("tcp", up.Host, auth, first)
		if err != nil {
			return nil, errUpstream
		}
		if _, err := d.(proxy.ContextDialer).DialContext(ctx, "tcp", addr); err != nil {
			return nil, errUpstream
		}
		return first.conn, nil // without what is wrapped around it: it can be closed by half
	}
	return nil, errUpstream
}

// upstreamDialer connects to a SOCKS proxy, once.
type upstreamDialer struct {
	server *Server
	url    *url.URL
	conn   net.Conn
}

func (d *upstreamDialer) Dial(network, addr string) (net.Conn, error) {
	return d.DialContext(d.server.ctx, network, addr)
}

func (d *upstreamDialer) DialContext(ctx context.Context, _, _ string) (conn net.Conn, err error) {
	d.conn, err = d.server.dialUpstream(ctx, d.url)
	return d.conn, err
}

// askTunnel asks an HTTP proxy for a connection to addr.
func askTunnel(ctx context.Context, conn net.Conn, up *url.URL, addr string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	req := &http.Request{Method: http.MethodConnect, URL: &url.URL{Host: addr}, Host: addr, Header: upstreamHeader(up)}
	if err := req.Write(conn); err != nil {
		return nil, err
	}
	head := newHeadReader(conn)
	resp, err := http.ReadResponse(head.buf, req)
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close() // the answer to a CONNECT has none
	if resp.StatusCode != http.StatusOK {
		return nil, errUpstream
	}
	if !stop() {
		return nil, ctx.Err()
	}
	head.open()
	return &bufferedConn{conn, head.buf}, nil
}

// upstreamHeader signs in to a proxy, with what its URL has.
func upstreamHeader(up *url.URL) http.Header {
	h := http.Header{"User-Agent": nil}
	if up.User != nil {
		password, _ := up.User.Password()
		h.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(up.User.Username()+":"+password)))
	}
	return h
}

// bufferedConn is a connection of which some was read ahead.
type bufferedConn struct {
	net.Conn
	buf *bufio.Reader
}

func (c *bufferedConn) Read(p []byte) (int, error) { return c.buf.Read(p) }

// CloseWrite says that nothing more is sent, where the connection can.
func (c *bufferedConn) CloseWrite() error { return closeWrite(c.Conn) }
