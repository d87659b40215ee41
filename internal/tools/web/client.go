package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/tools/kit"
)

// The codes of the web tools.
const (
	ErrWebAddress agent.ErrorCode = "E_WEB_ADDRESS" // the host, its address or its port is not to be asked
	ErrWebFetch   agent.ErrorCode = "E_WEB_FETCH"   // no connection, no answer, or a broken one
	ErrWebStatus  agent.ErrorCode = "E_WEB_STATUS"  // an answer other than 2xx
	ErrWebType    agent.ErrorCode = "E_WEB_TYPE"    // content that cannot be shown
)

const (
	maxBody     = 10 << 20 // bytes of a body, unpacked; also bytes on the wire
	maxHeader   = 256 << 10
	maxHops     = 10 // redirects
	maxAttempts = 4  // addresses of one host
	lookupLimit = 3 * time.Second
)

// policy says which hosts and addresses may be asked.
type policy struct {
	mode   Mode
	allow  []hosts.Rule
	permit func(netip.Addr) bool
}

// host checks what can be told from the URL alone.
func (p policy) host(t target) error {
	named := slices.IndexFunc(p.allow, func(r hosts.Rule) bool { return r.Fits(t.host, t.port) })
	switch {
	case p.mode == Off:
		return kit.Refuse(ErrWebAddress, "the network is off", "Go on without it.")
	case p.mode == Internal && named < 0:
		return kit.Refuse(ErrWebAddress, t.host+" is not among the hosts that may be asked in internal mode", "Go on without it, or tell the user which host is needed.")
	case !openPort(t.port) && (named < 0 || p.allow[named].Port == 0):
		return kit.Refuse(ErrWebAddress, fmt.Sprintf("port %d is closed to web tools", t.port), "Use 80, 443 or another port of a web server.")
	}
	if a, err := netip.ParseAddr(t.host); err == nil {
		return p.address(t.host, a)
	}
	return nil
}

// address checks one address to which a host leads.
func (p policy) address(host string, a netip.Addr) error {
	kind := hosts.KindOf(a)
	switch {
	case kind == "":
		return nil
	case p.permit != nil && p.permit(a.Unmap()):
		return nil
	case p.mode == Internal && kind == hosts.Private:
		return nil
	case p.mode == Internal && kind == hosts.Loopback && isLocal(host):
		return nil
	}
	what := host
	if a.String() != host {
		what += " leads to " + a.String() + ", which"
	}
	return kit.Refuse(ErrWebAddress, what+" is a "+string(kind)+" address, and not to be asked", "Use a public host. The user can permit hosts of the own network in the settings.")
}

// isLocal reports whether a host means this machine, whatever a resolver says.
func isLocal(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// client is the one way to the network. Each request has a connection of its
// own: nothing stays open, and nothing is sent twice behind our back.
type client struct {
	policy  policy
	agent   string
	limits  Limits
	lookup  func(context.Context, string) ([]netip.Addr, error)
	proxy   func(*http.Request) (*url.URL, error)
	direct  *http.Transport
	proxied *http.Transport
}

func newClient(c Config, p policy) *client {
	base := c.Transport
	if base == nil {
		base = &http.Transport{}
	}
	proxied := base.Clone() // which fills base in, once: nothing of it may be read before that
	cl := &client{
		policy: p, agent: c.UserAgent, limits: c.Limits, lookup: c.Lookup, proxy: proxied.Proxy,
		direct: &http.Transport{TLSClientConfig: proxied.TLSClientConfig.Clone()}, proxied: proxied,
	}
	for _, t := range []*http.Transport{cl.direct, cl.proxied} {
		t.DisableCompression = true // what is unpacked unseen has no bound
		t.DisableKeepAlives = true
		t.ForceAttemptHTTP2 = true
		t.TLSHandshakeTimeout = c.Limits.FirstByte
		t.MaxResponseHeaderBytes = maxHeader
	}
	cl.direct.DialContext = cl.dial
	cl.proxied.Proxy = func(r *http.Request) (*url.URL, error) {
		if u, ok := r.Context().Value(proxyKey{}).(*url.URL); ok {
			return u, nil
		}
		return nil, errors.New("no proxy was chosen")
	}
	return cl
}

type proxyKey struct{}

// resolve returns the addresses of a host, all of which may be asked.
func (c *client) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, c.policy.address(host, a)
	}
	list, err := c.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("looking up %s: %w", host, err)
	}
	for _, a := range list {
		if err := c.policy.address(host, a); err != nil {
			return nil, err
		}
	}
	return list[:min(len(list), maxAttempts)], nil
}

// dial connects to a host. It looks the name up itself and connects to what it
// has checked, so that no second answer of a name server comes between; right
// before the connection is made, the address is checked once more.
func (c *client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.FirstByte)
	defer cancel()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	list, err := c.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	d := net.Dialer{
		KeepAlive: -1,
		ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
			a, err := netip.ParseAddrPort(to)
			if err != nil {
				return fmt.Errorf("checking the address %s: %w", to, err)
			}
			return c.policy.address(host, a.Addr())
		},
	}
	err = fmt.Errorf("looking up %s: it has no address", host)
	for i, a := range list {
		try, done := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok && i < len(list)-1 { // leave time for the others
			try, done = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(list)-i))
		}
		conn, derr := d.DialContext(try, network, net.JoinHostPort(a.Unmap().String(), port))
		done()
		if derr == nil {
			return conn, nil
		}
		err = derr
	}
	return nil, err
}

// behindProxy checks what can be checked when a proxy looks names up: the name
// that cannot be resolved here may be one of the network behind the proxy.
func (c *client) behindProxy(ctx context.Context, t target) error {
	if c.policy.mode == Internal { // the host was named by the user
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupLimit)
	defer cancel()
	_, err := c.resolve(ctx, t.host)
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return te
	}
	if err == nil || publicName(t.host) {
		return nil
	}
	return kit.Refuse(ErrWebAddress, t.host+" is a name of an internal network", "Use a public host.")
}

// publicName reports whether a name may be one of the public internet.
func publicName(host string) bool {
	i := strings.LastIndexByte(host, '.')
	inner := []string{"localhost", "local", "internal", "intranet", "lan", "home", "corp", "private", "arpa", "localdomain", "test", "invalid", "onion"}
	return i > 0 && !slices.Contains(inner, host[i+1:])
}

// An exchange is one request to make.
type exchange struct {
	method string
	to     target
	header http.Header // may be nil
	body   string
	limit  int64 // bytes of the answer's body, unpacked

	// patient leaves the time to the first byte to the context.
	patient bool
}

// A reply is one answer, whatever its status.
type reply struct {
	from   target
	status int
	header http.Header
	body   []byte
	cut    bool // there was more than the limit
}

// do makes one request and reads the answer. It follows no redirect. Its errors
// name neither headers nor bodies.
func (c *client) do(ctx context.Context, e exchange) (*reply, error) {
	if err := c.policy.host(e.to); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	req, err := http.NewRequestWithContext(ctx, e.method, e.to.String(), nil)
	if err != nil {
		return nil, kit.Refuse(agent.ErrInput, "the request cannot be made", "Mend its method and its URL.")
	}
	if e.body != "" {
		req.Body = io.NopCloser(strings.NewReader(e.body))
		req.ContentLength = int64(len(e.body))
	}
	if e.header != nil {
		req.Header = e.header.Clone()
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", c.agent)
	}
	req.Header.Set("Accept-Encoding", "gzip")
	rt := c.direct
	if c.proxy != nil {
		via, err := c.proxy(req)
		if err != nil {
			return nil, kit.Refuse(ErrWebFetch, "the proxy settings cannot be read", "Tell the user.")
		}
		if via != nil {
			if err := c.behindProxy(ctx, e.to); err != nil {
				return nil, err
			}
			rt, req = c.proxied, req.WithContext(context.WithValue(ctx, proxyKey{}, via))
		}
	}
	wait := maxRequestTimeout
	if !e.patient {
		wait = c.limits.FirstByte
	}
	slow := time.AfterFunc(wait, func() { stop(errSlow) })
	resp, err := rt.RoundTrip(req)
	slow.Stop()
	if err != nil {
		return nil, explain(ctx, e.to, err)
	}
	defer resp.Body.Close()
	r := &reply{from: e.to, status: resp.StatusCode, header: resp.Header}
	if r.body, r.cut, err = readBody(resp, e.limit); err != nil {
		return nil, explain(ctx, e.to, err)
	}
	return r, nil
}

// errSlow is an answer whose first byte did not come in time.
var errSlow = errors.New("no answer in time")

// errEncoding is a body that is packed in a way that was not asked for.
var errEncoding = errors.New("the answer is packed in a way that is not understood")

// readBody reads and unpacks at most limit bytes.
func readBody(resp *http.Response, limit int64) (body []byte, cut bool, err error) {
	if resp.Body == nil || resp.Request.Method == http.MethodHead {
		return nil, false, nil
	}
	var src io.Reader = resp.Body
	switch strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding"))) {
	case "", "identity":
	case "gzip", "x-gzip":
		wire := &io.LimitedReader{R: resp.Body, N: maxBody}
		z, err := gzip.NewReader(wire)
		if errors.Is(err, io.EOF) { // nothing at all, as after 204 or 304
			return nil, false, nil
		}
		if err != nil {
			return nil, false, fmt.Errorf("unpacking: %w", err)
		}
		src = z
	default:
		return nil, false, errEncoding
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(src, limit+1))
	if n > limit {
		return b.Bytes()[:limit], true, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading the answer: %w", err)
	}
	return b.Bytes(), false, nil
}

// A move is a redirect that was not followed.
type move struct {
	status int
	from   target
	to     target
}

// get asks for a page and follows redirects on the same site. Where one leads
// elsewhere, it returns the move and no reply.
func (c *client) get(ctx context.Context, t target, header http.Header) (*reply, *move, error) {
	for range maxHops + 1 {
		r, err := c.do(ctx, exchange{method: http.MethodGet, to: t, header: header, limit: maxBody})
		if err != nil {
			return nil, nil, err
		}
		next, ok, err := r.leads()
		if err != nil || !ok {
			return r, nil, err
		}
		if !t.sameSite(next) {
			return nil, &move{r.status, t, next}, c.policy.host(next)
		}
		t = next
	}
	return nil, nil, kit.Refuse(ErrWebFetch, fmt.Sprintf("%s redirects more than %d times", t.host, maxHops), "Fetch another page.")
}

// leads returns where a redirect leads.
func (r *reply) leads() (target, bool, error) {
	switch r.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return target{}, false, nil
	}
	location := r.header.Get("Location")
	if location == "" {
		return target{}, false, nil
	}
	bad := func() error {
		return kit.Refuse(ErrWebFetch, r.from.host+" redirects to "+kit.Quote(location, 200)+", which cannot be fetched", "Fetch another page.")
	}
	u, err := r.from.url.Parse(location)
	if err != nil {
		return target{}, false, bad()
	}
	next, err := parseTarget(u.String())
	if err != nil {
		return target{}, false, bad()
	}
	return next, true, nil
}

// explain turns what a request came to into what the model reads. The URL is not
// in it: it may hold what is secret.
func explain(ctx context.Context, t target, err error) error {
	if te, ok := errors.AsType[*agent.ToolError](err); ok {
		return te
	}
	if ue, ok := errors.AsType[*url.Error](err); ok {
		err = ue.Err
	}
	refuse := func(code agent.ErrorCode, what, next string) error { return kit.Refuse(code, t.host+what, next) }
	var timeout net.Error
	switch {
	case errors.Is(context.Cause(ctx), context.Canceled):
		return refuse(agent.ErrAborted, ": the request was cancelled", "")
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return refuse(agent.ErrTimeout, " took too long to answer", "Try again later, or ask for less.")
	case errors.Is(err, errEncoding):
		return refuse(ErrWebFetch, ": "+errEncoding.Error(), "Fetch another page.")
	}
	if de, ok := errors.AsType[*net.DNSError](err); ok && de.IsNotFound {
		return refuse(ErrWebFetch, " does not exist", "Check the spelling of the host.")
	}
	if ce, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return refuse(ErrWebFetch, " has a certificate that is not valid: "+kit.Line(ce.Err.Error(), 200), "Do not go around it; tell the user.")
	}
	return refuse(ErrWebFetch, ": "+kit.Line(err.Error(), 300), "Check the URL, or try again later.")
}
