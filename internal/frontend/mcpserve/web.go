package mcpserve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/internal/frontend/auth"
)

// Path is where a server is on its port.
const Path = "/mcp"

// The bounds of requests.
const (
	maxRequests = 64               // at once
	maxClients  = 64               // sessions of the protocol
	clientTime  = 30 * time.Minute // from which on a client that says nothing is gone
)

// Serve serves clients over HTTP until ctx is done. They need the token.
func (s *Server) Serve(ctx context.Context, l net.Listener, token string) error {
	if token == "" {
		return errors.New("a server needs a token")
	}
	d := &auth.Door{Token: token}
	srv := auth.Server(s.life, guarded(d, d.Bearer(d.Body(maxLine, mount(s.mcp)))))
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

// guarded lets requests for the server through a door, so many at once.
func guarded(d *auth.Door, next http.Handler) http.Handler {
	return d.Names(alone(d.Slots(maxRequests, next)))
}

// alone has nothing be found on the port but the server.
func alone(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != Path {
			http.NotFound(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}
