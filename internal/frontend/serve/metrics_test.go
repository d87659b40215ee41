package serve

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"dure/client"
	"dure/internal/base/meter"
)

// The figures are counted by route and status, have nothing of what was asked, and stay
// within bounds whatever comes.
func TestMetrics(t *testing.T) {
	t.Parallel()
	reg := meter.New(time.Unix(0, 0))
	l := newLogs()
	s, err := New(Config{Client: client.New(l), Token: secret, Version: "1", Meter: reg, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	do := func(method, path, bearer string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://127.0.0.1"+path, nil)
		r.Header.Set("Authorization", "Bearer "+bearer)
		w := &deadlines{httptest.NewRecorder()}
		s.Handler().ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	do(http.MethodGet, "/healthz", "")
	for i := range 2000 {
		do(http.MethodGet, fmt.Sprintf("/v1/sessions/hidden-%d", i), secret)
		do(fmt.Sprintf("M%d", i), fmt.Sprintf("/hidden-%d", i), secret)
	}
	do(http.MethodGet, "/v1/about", "wrong-hidden-token")
	status, text := do(http.MethodGet, "/metrics", secret)
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	for _, want := range []string{
		`http_server_request_duration_seconds_count{http_request_method="GET",http_route="/healthz",http_response_status_code="200"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_route="/v1/sessions/{id}",http_response_status_code="404"} 2000`,
		`http_server_request_duration_seconds_count{http_request_method="GET",http_route="/v1/about",http_response_status_code="401"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404"} 2000`,
		`http_server_active_requests 1`,
		`dure_serve_refused_total{dure_reason="unauthorized"} 1`,
		`dure_serve_readers 0`,
		`dure_serve_working 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("missing: %s", want)
		}
	}
	if strings.Contains(text, "hidden") || strings.Count(text, "\n") > 300 {
		t.Errorf("the figures have what was asked: %d lines\n%.2000s", strings.Count(text, "\n"), text)
	}
	line := regexp.MustCompile(`^(# (HELP|TYPE) [a-z_]+ .*|[a-z_]+(\{[a-z_]+="[^"]*"(,[a-z_]+="[^"]*")*\})? [-+0-9.eInf]+)$`)
	for l := range strings.Lines(text) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("no line of Prometheus: %q", l)
		}
	}
	if status, _ := do(http.MethodGet, "/metrics", ""); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
}

// deadlines is a recorder that has them.
type deadlines struct{ *httptest.ResponseRecorder }

func (*deadlines) SetReadDeadline(time.Time) error  { return nil }
func (*deadlines) SetWriteDeadline(time.Time) error { return nil }

// Without a registry nothing is counted, and there is no such route.
func TestNoMetrics(t *testing.T) {
	s, err := New(Config{Client: client.New(newLogs()), Token: secret, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.end()
	r := httptest.NewRequestWithContext(context.Background(), http.MethodGet, "http://127.0.0.1/metrics", nil)
	r.Header.Set("Authorization", "Bearer "+secret)
	w := &deadlines{httptest.NewRecorder()}
	if s.Handler().ServeHTTP(w, r); w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}
