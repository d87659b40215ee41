package app

import (
	"bufio"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/models/script"
)

// relay copies between a and b until both directions have ended.
func relay(a, b net.Conn) {
	var wg sync.WaitGroup
	for _, p := range [][2]net.Conn{{a, b}, {b, a}} {
		wg.Go(func() {
			_, _ = io.Copy(p[0], p[1]) // the other end has hung up
			p[0].Close()
		})
	}
	wg.Wait()
}

// server accepts connections until the test ends.
func server(t *testing.T, serve func(net.Conn)) (addr string) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				serve(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

// connectProxy is an HTTP proxy that leads everything to one place.
func connectProxy(t *testing.T, to string, used *atomic.Int32) string {
	return "http://" + server(t, func(c net.Conn) {
		r, err := http.ReadRequest(bufio.NewReader(c))
		if err != nil || r.Method != http.MethodConnect || r.Host != "example.com:443" {
			t.Errorf("the proxy got %v, %v", r, err)
			return
		}
		used.Add(1)
		far, err := net.Dial("tcp4", to)
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(c, "HTTP/1.1 200 Connection established\r\n\r\n")
		relay(c, far)
	})
}

// socksProxy is a SOCKS5 proxy (RFC 1928) that leads everything to one place.
func socksProxy(t *testing.T, to string, used *atomic.Int32) string {
	return "socks5://" + server(t, func(c net.Conn) {
		head := make([]byte, 2)
		if _, err := io.ReadFull(c, head); err != nil || head[0] != 5 {
			t.Errorf("the proxy got %v, %v", head, err)
			return
		}
		if _, err := io.CopyN(io.Discard, c, int64(head[1])); err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte{5, 0}) // nobody has to sign in
		ask := make([]byte, 5)
		if _, err := io.ReadFull(c, ask); err != nil || ask[3] != 3 {
			t.Errorf("the proxy was asked for %v, %v", ask, err)
			return
		}
		name := make([]byte, int(ask[4])+2)
		if _, err := io.ReadFull(c, name); err != nil {
			t.Error(err)
			return
		}
		if host, port := string(name[:ask[4]]), binary.BigEndian.Uint16(name[ask[4]:]); host != "example.com" || port != 443 {
			t.Errorf("the proxy was asked for %s:%d", host, port)
		}
		used.Add(1)
		far, err := net.Dial("tcp4", to)
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		relay(c, far)
	})
}

// Every provider is reached over a certificate that only the user trusts,
// through each kind of proxy, with headers of the user's own.
func TestEveryRouteToEveryProvider(t *testing.T) {
	t.Parallel()
	h := script.NewHandler(script.Script{Replies: []script.Reply{{When: "ok", Text: "ok"}}}, script.Options{Key: "k"})
	far := httptest.NewTLSServer(h)
	defer far.Close()
	far.Config.ErrorLog = nil
	ca := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: far.Certificate().Raw})
	if err := os.WriteFile(ca, block, 0o600); err != nil {
		t.Fatal(err)
	}
	addr := far.Listener.Addr().String()
	var used atomic.Int32
	routes := []struct {
		name, url, proxy string
		used             int32
	}{
		{"directly", far.URL, "", 0},
		{"HTTP proxy", "https://example.com", connectProxy(t, addr, &used), 1},
		{"SOCKS proxy", "https://example.com", socksProxy(t, addr, &used), 1},
	}
	for _, wire := range script.Wires {
		for _, route := range routes {
			t.Run(wire+"/"+route.name, func(t *testing.T) {
				used.Store(0)
				home := t.TempDir()
				settings := fmt.Sprintf(`{"network":{"ca":%q,"proxy":%q},"providers":{"p":{"type":%q,"baseUrl":%q,"keyEnv":"P_KEY","headers":{"X-Team":"a team"}}}}`, ca, route.proxy, wire, route.url)
				a, err := New(Options{
					Environ: []string{"DURE_HOME=" + home, "P_KEY=k"}, UserHome: home, Workdir: home, Version: "test",
					Flags: Flags{Settings: settings},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer a.Close()
				got, err := client.Query[query.ModelCheck](t.Context(), a.Client(), query.CheckModel{Model: "p/script"})
				if err != nil || !got.OK || got.Model != "p/script" || used.Load() != route.used {
					t.Errorf("%+v, %v, through the proxy %d times", got, err, used.Load())
				}
				all := h.Requests()
				if r := all[len(all)-1]; r.Header.Get("X-Team") != "a team" || r.Header.Get("User-Agent") != "dure/test" {
					t.Errorf("headers %v", r.Header)
				}
			})
		}
	}
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	no := filepath.Join(home, "no.pem")
	if err := os.WriteFile(no, []byte("nothing"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, ca := range []string{no, filepath.Join(home, "missing.pem"), home} {
		_, err := New(Options{Environ: []string{"DURE_HOME=" + home, "DURE_CA_FILE=" + ca}, UserHome: home, Workdir: home})
		if p := agent.ProblemOf(err); p == nil || p.Code != agent.ProblemSettings {
			t.Errorf("%s: %v", ca, err)
		}
	}
}
