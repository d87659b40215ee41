package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"

	"dure/internal/frontend/telemetry"
)

// zeros is n bytes of zeros, packed.
func zeros(t *testing.T, n int64) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.Copy(z, io.LimitReader(nothing{}, n)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

type nothing struct{}

func (nothing) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// Of an answer that has no end, or none when it is unpacked, as much is read as is needed and
// no more; the records were taken all the same.
func TestAnswersWithoutEnd(t *testing.T) {
	const much = 16 << 20 // what nobody may keep of one
	packed, message := zeros(t, 2*much), zeros(t, 2*much)
	for name, tt := range map[string]struct {
		call   bool
		answer func(w http.ResponseWriter)
	}{
		"without end": {false, func(w http.ResponseWriter) {
			if n, err := io.CopyN(w, nothing{}, 4*much); err == nil {
				t.Errorf("all of %d bytes were taken", n)
			}
		}},
		"packed": {false, func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(packed)
		}},
		"a packed message": {true, func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Grpc-Encoding", "gzip")
			w.Header().Set("Trailer", "Grpc-Status")
			_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{1}, uint32(len(message))), message...))
			w.Header().Set("Grpc-Status", "0")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				tt.answer(w)
			}))
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetHTTP1(true)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
			defer s.Close()
			cfg := config(s.URL, false)
			cfg.Events, cfg.Metrics = nil, nil
			cfg.Traces = &telemetry.Target{URL: s.URL, GRPC: tt.call}
			usual := &http.Transport{}
			cfg.HTTP = usual
			defer usual.CloseIdleConnections()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			o := tellOf(t, cfg, story())
			runtime.ReadMemStats(&after)
			o.CloseIdleConnections()
			if kept := after.TotalAlloc - before.TotalAlloc; kept > much/2 {
				t.Errorf("%d bytes were kept", kept)
			}
			if n := lost(cfg.Meter); len(n) > 0 {
				t.Errorf("lost %v", n)
			}
		})
	}
	if len(message) > 64<<10 {
		t.Errorf("the message has %d bytes: more than are unpacked", len(message))
	}
}
