package sandbox

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/internal/safety/sandbox/egress"
)

// Programs find the proxy by their environment, reach what is allowed and nothing
// else, and the command's end says what it was refused.
func TestProgramsUseTheProxy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ program, script string }{
		{"curl", "curl -s http://HOST/"},
		{"git", "git ls-remote http://HOST/x.git"},
		{"python3", `python3 -c 'import urllib.request as u; u.urlopen("http://HOST/")'`},
		{"npm", "npm view thing --registry=http://HOST/ --fetch-retries=0"},
		{"go", "GOPROXY=http://HOST/ GOSUMDB=off GOFLAGS=-mod=mod go list -m golang.org/x/no@v1.0.0"},
		{"cargo", "mkdir -p src .c && echo >src/lib.rs && printf '[package]\\nname=\"x\"\\nversion=\"0.1.0\"\\n[dependencies]\\ny={version=\"1\",registry=\"r\"}\\n' >Cargo.toml && CARGO_NET_OFFLINE=false CARGO_NET_RETRY=0 CARGO_REGISTRIES_R_INDEX=sparse+http://HOST/ cargo fetch"},
	} {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			needs(t, tt.program)
			var mu sync.Mutex
			var asked []string
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				asked = append(asked, r.Host)
				w.WriteHeader(http.StatusNotFound)
			}))
			defer web.Close()
			env := egress.Config{
				Allow: []string{"*.allowed.example"},
				Resolve: func(context.Context, string) ([]netip.Addr, error) {
					return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
				},
				Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, network, web.Listener.Addr().String())
				},
			}
			b, root, vars := toolBox(t, func(c *Confinement) { c.Net, c.Egress = NetProxy, env })
			if b.cell.find(b.watcher.ready).mechanism == byLandlock {
				t.Skip("there is no way to a proxy on this machine")
			}
			var out strings.Builder
			script := strings.ReplaceAll(tt.script, "HOST", "yes.allowed.example") + "\n" + strings.ReplaceAll(tt.script, "HOST", "not.example")
			exit, err := b.Run(t.Context(), Cmd{Argv: []string{"/bin/sh", "-c", script}, Dir: root, Env: vars, Out: &out, Timeout: time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if got := slices.Compact(asked); !slices.Equal(got, []string{"yes.allowed.example"}) {
				t.Errorf("asked was %v: %s", got, out.String())
			}
			if diff := cmp.Diff([]Denial{{DeniedHost, "not.example:80", egress.WhyHost}}, exit.Denied); diff != "" {
				t.Errorf("denied (-want +got):\n%s\n%s", diff, out.String())
			}
		})
	}
}
