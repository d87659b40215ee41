package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/extend/mcp/servers"
)

// Bounds of what comes over the network.
const (
	maxRedirects = 3
	streamStart  = 32 << 20  // bytes of a stream at once
	streamRate   = 256 << 10 // bytes a second after that
)

// web reaches one server. It adds headers, follows no redirect to another origin,
// bounds what is read, and notes how the server has answered.
type web struct {
	base    http.RoundTripper
	origin  *url.URL
	headers map[string]string
	life    context.Context // ends all requests

	mu     sync.Mutex
	last   int   // status of the last answer
	astray error // another place that it named
}

// overWeb makes the transport of a server that is reached over the network.
func (l *live) overWeb(ctx context.Context, kind string) (sdk.Transport, error) {
	c, def := l.v.set.c, l.v.def
	origin, err := url.Parse(def.URL)
	if err != nil || origin.Host == "" || origin.Scheme != "http" && origin.Scheme != "https" {
		return nil, mistake("its address is no http or https address")
	}
	if c.HTTP == nil {
		return nil, mistake("nothing is reached over the network here")
	}
	client, err := c.HTTP(def)
	if err != nil {
		return nil, err
	}
	l.web = &web{base: client.Transport, origin: origin, headers: map[string]string{}, life: l.life}
	if l.web.base == nil {
		l.web.base = http.DefaultTransport
	}
	for k, v := range def.Headers {
		l.web.headers[k] = v
	}
	if def.HeadersHelper != "" {
		if c.Headers == nil {
			return nil, mistake("what prints its headers cannot be run here")
		}
		more, err := c.Headers(ctx, def)
		if err != nil {
			return nil, fmt.Errorf("what prints its headers: %w", err)
		}
		for k, v := range more {
			l.web.headers[k] = v
		}
	}
	own := &http.Client{Transport: l.web, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects || !sameOrigin(r.URL, origin) {
			return fmt.Errorf("it redirects to %s, which is another place", r.URL.Host)
		}
		return nil
	}}
	var by auth.OAuthHandler
	if c.Auth != nil {
		by = c.Auth(def)
	}
	if kind == servers.SSE {
		if by != nil {
			own.Transport = signing{l.web, by}
		}
		return old{&sdk.SSEClientTransport{Endpoint: def.URL, HTTPClient: own, MaxEventSize: maxMessage}, l.life}, nil
	}
	t := &sdk.StreamableClientTransport{Endpoint: def.URL, HTTPClient: own, MaxEventSize: maxMessage}
	if by != nil {
		t.OAuthHandler = by
	}
	return t, nil
}

// old is the older transport, whose stream lives as long as the context in which it is
// opened: that of the connection, not of connecting.
type old struct {
	t    *sdk.SSEClientTransport
	life context.Context
}

// Connect implements [sdk.Transport]. It is given up when the connection is.
func (o old) Connect(context.Context) (sdk.Connection, error) { return o.t.Connect(o.life) }

// sameOrigin reports whether two addresses are in one place.
func sameOrigin(a, b *url.URL) bool {
	return a.Scheme == b.Scheme && a.Hostname() == b.Hostname() && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// RoundTrip implements [http.RoundTripper].
func (w *web) RoundTrip(r *http.Request) (*http.Response, error) {
	if !sameOrigin(r.URL, w.origin) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.astray = fmt.Errorf("it names %s, which is another place", r.URL.Host)
		return nil, w.astray
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	stop := context.AfterFunc(w.life, func() { cancel(errEnded) })
	done := func() { stop(); cancel(nil) }
	var slow *time.Timer
	if r.Header.Get("Mcp-Method") == "server/discover" { // old servers may never answer what they do not know
		slow = time.AfterFunc(probeLimit, func() { cancel(errors.New("no answer")) })
	}
	r = r.Clone(ctx)
	for k, v := range w.headers {
		if strings.EqualFold(k, "Authorization") && r.Header.Get("Authorization") != "" {
			continue // somebody has signed in
		}
		r.Header.Set(k, v)
	}
	deliveryOf(ctx).sent.Store(true)
	res, err := w.base.RoundTrip(r)
	if slow != nil {
		slow.Stop()
	}
	if err != nil {
		done()
		return nil, err
	}
	w.note(r.Method, res.StatusCode)
	if res.StatusCode == http.StatusNotFound && r.Header.Get("Mcp-Session-Id") != "" {
		deliveryOf(ctx).refused.Store(true)
	}
	if strings.HasPrefix(strings.ToLower(res.Header.Get("Content-Type")), "text/event-stream") {
		res.Body = &body{r: res.Body, done: done, left: streamStart, rate: streamRate, since: time.Now()}
		return res, nil
	}
	// An answer that is not whole must not end the connection for others.
	defer done()
	data, err := io.ReadAll(&body{r: res.Body, left: maxMessage})
	_ = res.Body.Close()
	if err != nil {
		return nil, err
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
	return res, nil
}

// note keeps how the server has answered what was sent to it. Streams that it need not
// have do not count, but for the first request of the older transport.
func (w *web) note(method string, status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if method == http.MethodPost || w.last == 0 || w.last == http.StatusUnauthorized {
		w.last = status
	}
}

// strays returns why a request was not sent that would have gone to another place.
func (w *web) strays() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.astray
}

// refused reports whether the server wants somebody to sign in.
func (w *web) refused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last == http.StatusUnauthorized
}

// older reports whether the server has answered as those do that know only the older
// transport.
func (w *web) older() bool {
	if w == nil {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch w.last {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// body is what is read of an answer, within bounds.
type body struct {
	r     io.ReadCloser
	done  func()
	left  float64 // bytes
	rate  float64 // that are added each second
	since time.Time
}

// Read implements [io.Reader].
func (b *body) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.rate > 0 {
		now := time.Now()
		b.left = min(streamStart, b.left+now.Sub(b.since).Seconds()*b.rate)
		b.since = now
	}
	if b.left -= float64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// Close implements [io.Closer].
func (b *body) Close() error {
	defer b.done()
	return b.r.Close()
}

// delivery is how far one exchange came.
type delivery struct {
	sent    atomic.Bool // something of it has gone out
	refused atomic.Bool // the server has forgotten the session, and did not look at it
}

type deliveryKey struct{}

// deliveryOf returns the delivery that a context carries, or one that nobody looks at.
func deliveryOf(ctx context.Context) *delivery {
	if d, ok := ctx.Value(deliveryKey{}).(*delivery); ok {
		return d
	}
	return new(delivery)
}
