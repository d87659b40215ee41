package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"dure/agent"
	"dure/internal/base/keys/secret"
	"dure/internal/base/meter"
	"dure/internal/frontend/telemetry"
)

const exported = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"

// heard is what a collector was called with.
type heard struct {
	path, proto string
	head        http.Header
	message     []byte
}

// callee is a collector that is called: how says how a call goes, by its number.
type callee struct {
	*httptest.Server
	mu  sync.Mutex
	all []heard
}

func newCallee(t *testing.T, secure bool, how func(n int, w http.ResponseWriter)) *callee {
	t.Helper()
	c := &callee{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		if err != nil || len(data) < 5 || int(binary.BigEndian.Uint32(data[1:])) != len(data)-5 {
			t.Errorf("%v: %d bytes", err, len(data))
			return
		}
		message := data[5:]
		if data[0] == 1 {
			z, err := gzip.NewReader(bytes.NewReader(message))
			if err != nil {
				t.Error(err)
				return
			}
			if message, err = io.ReadAll(z); err != nil {
				t.Error(err)
			}
		}
		c.mu.Lock()
		c.all = append(c.all, heard{r.URL.Path, r.Proto, r.Header.Clone(), message})
		n := len(c.all)
		c.mu.Unlock()
		how(n, w)
	}))
	c.EnableHTTP2 = true
	c.Config.Protocols = new(http.Protocols)
	c.Config.Protocols.SetHTTP1(true)
	c.Config.Protocols.SetHTTP2(true)
	c.Config.Protocols.SetUnencryptedHTTP2(true)
	if secure {
		c.StartTLS()
	} else {
		c.Start()
	}
	t.Cleanup(c.Close)
	return c
}

// answers ends a call with a message and a status.
func answers(w http.ResponseWriter, message []byte, status string) {
	w.Header().Set("Content-Type", "application/grpc+proto")
	w.Header().Set("Trailer", "Grpc-Status")
	frame := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	_, _ = w.Write(frame)
	w.Header().Set("Grpc-Status", status)
}

// Calls go over HTTP/2, encrypted or not, packed or not, and have the same records as
// requests over HTTP.
func TestCalls(t *testing.T) {
	plain := newCollector(t)
	tell(t, config(plain.URL, false), story())
	want := plain.bodies["/v1/traces"]
	for name, tt := range map[string]struct{ secure, packed bool }{
		"plain": {}, "plain, packed": {packed: true}, "encrypted": {secure: true}, "encrypted, packed": {true, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCallee(t, tt.secure, func(_ int, w http.ResponseWriter) { answers(w, nil, "0") })
			cfg := config(c.URL, false)
			cfg.Events, cfg.Metrics = nil, nil
			*cfg.Traces = telemetry.Target{URL: c.URL + exported, GRPC: true, Gzip: tt.packed, Headers: map[string]secret.Text{"Authorization": "Bearer secret-0815"}}
			// The transport of the program, which has spoken to others before.
			usual := c.Client().Transport.(*http.Transport)
			cfg.HTTP = usual
			cfg.Instance = "here"
			tell(t, cfg, story())
			usual.CloseIdleConnections()
			if len(c.all) != 1 {
				t.Fatalf("%d calls", len(c.all))
			}
			got := c.all[0]
			if got.path != exported || got.proto != "HTTP/2.0" {
				t.Errorf("%s over %s", got.path, got.proto)
			}
			for k, v := range map[string]string{
				"Content-Type": "application/grpc", "Te": "trailers", "Grpc-Timeout": "10000m", "User-Agent": "dure/test", "Authorization": "Bearer secret-0815",
			} {
				if got.head.Get(k) != v {
					t.Errorf("%s: %q", k, got.head.Get(k))
				}
			}
			if packed := got.head.Get("Grpc-Encoding") == "gzip"; packed != tt.packed {
				t.Errorf("packed: %v", packed)
			}
			if len(want) != 1 || len(got.message) != len(want[0]) {
				t.Errorf("%d bytes, and %d over HTTP", len(got.message), len(want[0]))
			}
			if n := lost(cfg.Meter); len(n) > 0 {
				t.Errorf("lost %v", n)
			}
		})
	}
}

// A collector that speaks HTTP/1.1 alone gets nothing, in no other way either.
func TestCallsNeedHTTP2(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer srv.Close()
	m := meter.New(time.Now())
	o := telemetry.New(telemetry.Config{
		Meter: m, Sampler: telemetry.Sampler{Ratio: 1}, HTTP: srv.Client().Transport, Traces: &telemetry.Target{URL: srv.URL + exported, GRPC: true},
		Logger: slog.New(slog.DiscardHandler),
	})
	if _, err := o.Watch(turns(1)).Open(t.Context(), agent.Open{Session: "s1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_ = o.Close(ctx) // what was lost is looked at
	o.CloseIdleConnections()
	if n := lost(m); n["failed"] != 1 {
		t.Errorf("lost %v", n)
	}
}

// retryInfo is what a collector says of a call that is to be made again.
func retryInfo(seconds byte) string {
	bytesOf := func(field byte, data []byte) []byte { return append([]byte{field<<3 | 2, byte(len(data))}, data...) }
	info := bytesOf(1, []byte{1 << 3, seconds})
	detail := func(kind string, value []byte) []byte {
		return bytesOf(3, append(bytesOf(1, []byte("type.googleapis.com/google.rpc."+kind)), bytesOf(2, value)...))
	}
	status := slices.Concat([]byte{1 << 3, 8}, bytesOf(2, []byte("no")), detail("Help", []byte{1 << 3, 1}), detail("RetryInfo", info))
	return base64.RawStdEncoding.EncodeToString(status)
}

// Which calls are made again, when, and what is counted as lost.
func TestCallsAgain(t *testing.T) {
	trailed := func(status string, more ...string) *http.Response {
		r := reply(200, "\x00\x00\x00\x00\x00", "Content-Type", "application/grpc")
		r.Trailer = http.Header{"Grpc-Status": {status}}
		for i := 0; i+1 < len(more); i += 2 {
			r.Trailer.Set(more[i], more[i+1])
		}
		return r
	}
	headed := func(status string) *http.Response {
		return reply(200, "", "Content-Type", "application/grpc", "Grpc-Status", status, "Grpc-Message", "secret")
	}
	partial := trailed("0")
	partial.Body = io.NopCloser(strings.NewReader("\x00\x00\x00\x00\x04\x0a\x02\x08\x01"))
	for name, tt := range map[string]struct {
		first func() (*http.Response, error)
		asked int
		lost  string
		least time.Duration // until the second
	}{
		"taken":               {func() (*http.Response, error) { return trailed("0"), nil }, 1, "", 0},
		"some of it":          {func() (*http.Response, error) { return partial, nil }, 1, "rejected", 0},
		"away":                {func() (*http.Response, error) { return trailed("14"), nil }, 2, "", 0},
		"away, says its head": {func() (*http.Response, error) { return headed("14"), nil }, 2, "", 0},
		"away, for a while": {func() (*http.Response, error) {
			return trailed("14", "Grpc-Status-Details-Bin", retryInfo(20)), nil
		}, 2, "", 20 * time.Second},
		"too much": {func() (*http.Response, error) { return trailed("8"), nil }, 1, "refused", 0},
		"too much, for a while": {func() (*http.Response, error) {
			return trailed("8", "Grpc-Status-Details-Bin", retryInfo(5)+"=="), nil
		}, 2, "", 5 * time.Second},
		"details that are none": {func() (*http.Response, error) {
			return trailed("8", "Grpc-Status-Details-Bin", "Gv8B"), nil
		}, 1, "refused", 0},
		"wrong":       {func() (*http.Response, error) { return headed("3"), nil }, 1, "refused", 0},
		"not allowed": {func() (*http.Response, error) { return headed("16"), nil }, 1, "refused", 0},
		"no status":   {func() (*http.Response, error) { return reply(200, "", "Content-Type", "application/grpc"), nil }, 1, "refused", 0},
		"no number":   {func() (*http.Response, error) { return headed("-1"), nil }, 1, "refused", 0},
		"a web page": {func() (*http.Response, error) {
			return reply(200, "<html>", "Content-Type", "text/html", "Grpc-Status", "0"), nil
		}, 1, "refused", 0},
		"a proxy is busy": {func() (*http.Response, error) { return reply(503, "", "Retry-After", "7"), nil }, 2, "", 7 * time.Second},
		"a proxy says no": {func() (*http.Response, error) { return reply(403, ""), nil }, 1, "refused", 0},
		"no connection":   {func() (*http.Response, error) { return nil, errors.New("refused") }, 2, "", 0},
		"no end": {func() (*http.Response, error) {
			r := trailed("0")
			r.Body = io.NopCloser(forever{})
			return r, nil
		}, 1, "refused", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said syncBuffer
				r := &remote{answer: func(n int, _ *http.Request) (*http.Response, error) {
					if n == 1 {
						return tt.first()
					}
					return trailed("0"), nil
				}}
				m := meter.New(time.Now())
				o := telemetry.New(telemetry.Config{
					Meter: m, HTTP: r, Sampler: telemetry.Sampler{Ratio: 1}, Traces: &telemetry.Target{URL: "https://c.example" + exported, GRPC: true},
					Logger: slog.New(slog.NewTextHandler(&said, &slog.HandlerOptions{Level: slog.LevelDebug})),
				})
				open(t, o, turns(1))
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if len(r.at) != tt.asked || tt.asked == 2 && r.at[1] < tt.least {
					t.Errorf("asked at %v", r.at)
				}
				if all := lost(m); tt.lost == "" && len(all) > 0 || tt.lost != "" && all[tt.lost] != 1 {
					t.Errorf("lost %v", all)
				}
				if strings.Contains(said.String(), "secret") {
					t.Error(said.String())
				}
				_ = o.Close(context.Background())
			})
		})
	}
}

// FuzzCalls has no answer of a collector do any harm.
func FuzzCalls(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x04\x0a\x02\x08\x01"), "0", retryInfo(1))
	f.Add([]byte("\x01\xff\xff\xff\xff"), "8", "////")
	f.Fuzz(func(t *testing.T, body []byte, status, details string) {
		synctest.Test(t, func(t *testing.T) {
			r := &remote{answer: func(int, *http.Request) (*http.Response, error) {
				resp := reply(200, string(body), "Content-Type", "application/grpc")
				resp.Trailer = http.Header{"Grpc-Status": {status}, "Grpc-Status-Details-Bin": {details}}
				return resp, nil
			}}
			o := telemetry.New(telemetry.Config{
				Meter: meter.New(time.Now()), HTTP: r, Sampler: telemetry.Sampler{Ratio: 1}, Traces: &telemetry.Target{URL: "https://c.example" + exported, GRPC: true},
			})
			open(t, o, turns(1))
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			for i := 1; i < len(r.at); i++ {
				if d := r.at[i] - r.at[i-1]; d > 31*time.Second {
					t.Errorf("it waited for %v", d)
				}
			}
			_ = o.Close(context.Background())
		})
	})
}
