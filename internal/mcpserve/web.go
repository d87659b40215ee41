package mcpserve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Path is where a server is on its port.
const Path = "/mcp"

// The bounds of requests.
const (
	maxRequests = 64               // at once
	maxClients  = 64               // sessions of the protocol
	maxHeader   = 64 << 10         // bytes
	headTime    = 10 * time.Second // for a request to say what it wants
	bodyTime    = 30 * time.Second // ... and to come
	idleTime    = 2 * time.Minute
	clientTime  = 30 * time.Minute // from which on a client that says nothing is gone
)

// Loopback listens on an address of this machine; one that others reach is refused.
func Loopback(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if !isLoopback(host) {
		return nil, errors.New("others could reach " + addr)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", addr)
}

// isLoopback reports whether a host is this machine under a name that nobody else gives.
func isLoopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// Serve serves clients over HTTP until ctx is done. They need the token.
func (s *Server) Serve(ctx context.Context, l net.Listener, token string) error {
	if token == "" {
		return errors.New("a server needs a token")
	}
	srv := &http.Server{
		Handler: shield(bearer(token, mount(s.mcp))), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return s.life },
	}
	ended := make(chan error, 1)
	s.wg.Go(func() { ended <- srv.Serve(l) })
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.end() // what is open would be waited for
	closing, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	if srv.Shutdown(closing) != nil {
		_ = srv.Close() // they have had their time
	}
	for ss := range s.mcp.Sessions() {
		_ = ss.Close() // its client is told by the end of its connection
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// mount has a server speak both forms of the protocol: the one with sessions, in which it
// can ask on its own account, and the newer one without.
func mount(server *mcp.Server) http.Handler {
	of := func(*http.Request) *mcp.Server { return server }
	held := mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{SessionTimeout: clientTime, MaxRequestBodyBytes: maxLine})
	free := mcp.NewStreamableHTTPHandler(of, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, MaxRequestBodyBytes: maxLine})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Protocol-Version") >= newestForm {
			free.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && many(server) {
			http.Error(w, "too many clients", http.StatusServiceUnavailable)
			return
		}
		held.ServeHTTP(w, r)
	})
}

func many(server *mcp.Server) bool {
	n := 0
	for range server.Sessions() {
		n++
	}
	return n >= maxClients
}

// shield lets nothing through that a page in a browser could have sent, under whatever name
// it has reached this machine, and nothing that is too large or comes too slowly.
func shield(next http.Handler) http.Handler {
	slots := make(chan struct{}, maxRequests)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host := r.Host
		if h, _, err := net.SplitHostPort(host); err == nil {
			host = h
		}
		origin, from := r.Header.Get("Origin"), len(r.Header.Values("Origin"))
		switch {
		case !isLoopback(host):
			http.Error(w, "this server has no such name", http.StatusForbidden)
			return
		case from > 1 || from == 1 && origin != "http://"+r.Host:
			http.Error(w, "pages of other origins have no access", http.StatusForbidden)
			return
		case r.URL.Path != Path:
			http.NotFound(w, r)
			return
		}
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		default:
			http.Error(w, "too many requests at once", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bearer lets those through who know the token, and reads what they send.
func bearer(token string, next http.Handler) http.Handler {
	want := sha256.Sum256([]byte(token))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		got := sha256.Sum256([]byte(strings.TrimSpace(given)))
		if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(got[:], want[:]) != 1 {
			w.Header().Set("WWW-Authenticate", `Bearer realm="dure"`)
			http.Error(w, "the token is missing, or another one", http.StatusUnauthorized)
			return
		}
		body(next).ServeHTTP(w, r)
	})
}

// body reads a request to its end before anything is done with it, within a time that is
// not that of the answer.
func body(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		if err := control.SetReadDeadline(time.Now().Add(bodyTime)); err != nil {
			http.Error(w, "the request cannot be bounded", http.StatusInternalServerError)
			return
		}
		data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLine))
		if _, large := errors.AsType[*http.MaxBytesError](err); large {
			http.Error(w, "the request is too large", http.StatusRequestEntityTooLarge)
			return
		}
		if err != nil {
			http.Error(w, "the request did not come to its end", http.StatusBadRequest)
			return
		}
		if err := control.SetReadDeadline(time.Time{}); err != nil {
			http.Error(w, "the request cannot be answered", http.StatusInternalServerError)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(data))
		next.ServeHTTP(w, r)
	})
}
