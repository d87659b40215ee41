package release

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dure/agent/query"
	"dure/internal/base/hosts"
)

func TestCompareVersions(t *testing.T) {
	t.Parallel()
	// Each is older than the next.
	order := []string{"", "0.9.9", "1.0.0-alpha", "1.0.0-alpha.1", "1.0.0-alpha.beta", "1.0.0-beta.2", "1.0.0-beta.11", "1.0.0", "v1.0.1", "1.10.0", "2.0.0"}
	for i, a := range order {
		for j, b := range order {
			got := compareVersions(a, b)
			if want := map[bool]int{true: -1, false: 1}[i < j]; i != j && got != want || i == j && got != 0 {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
	if compareVersions("1.0.0+build", "1.0.0") != 0 {
		t.Error("what stands behind a plus counts")
	}
	for _, s := range []string{"1", "1.2", "1.2.3.4", "1.2.x", "latest", "1.2.3-", "1.2.3-a b", "-1.0.0", strings.Repeat("1", 100)} {
		if _, ok := parseVersion(s); ok {
			t.Errorf("%q is taken for a version", s)
		}
	}
}

func FuzzCompareVersions(f *testing.F) {
	f.Add("1.2.3", "v1.2.4-rc.1+x")
	f.Add("1.0.0-alpha.beta", "")
	f.Fuzz(func(t *testing.T, a, b string) {
		if compareVersions(a, b) != -compareVersions(b, a) || compareVersions(a, a) != 0 {
			t.Errorf("%q and %q have no order", a, b)
		}
	})
}

// updating is a program that looks for updates at a server that answers like this.
func updating(t *testing.T, check bool, answer string, status int) (*Extension, *atomic.Int32) {
	t.Helper()
	var asked atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(srv.Close)
	return New(Config{
		Check: check, URL: srv.URL + "/v", Version: "1.2.3", Path: filepath.Join(t.TempDir(), File),
		Transport: http.DefaultTransport, May: func(*url.URL) bool { return true }, Logger: slog.New(slog.DiscardHandler),
	}), &asked
}

// look asks for a newer version.
func look(ctx context.Context, a *Extension, now bool) (string, error) {
	u, err := a.find(ctx, query.FindUpdate{Now: now})
	if u.Error != "" {
		err = errors.New(u.Error)
	}
	return u.Newer, err
}

func TestLookForUpdate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, answer string
		status       int
		want         string
		bad          bool
	}{
		{"newer", `{"version": "1.3.0"}`, 200, "1.3.0", false},
		{"the same", `{"version": "v1.2.3"}`, 200, "", false},
		{"older", `{"version": "1.2.3-rc.1"}`, 200, "", false},
		{"no version", `{"version": "\u001b[2Jlatest"}`, 200, "", true},
		{"no JSON", `<html>`, 200, "", true},
		{"too long", `{"version": "` + strings.Repeat("1", maxUpdate) + `"}`, 200, "", true},
		{"an error", `{"version": "9.0.0"}`, 500, "", true},
	} {
		a, asked := updating(t, true, tt.answer, tt.status)
		got, err := look(t.Context(), a, false)
		if got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
		if again, _ := look(t.Context(), a, false); again != tt.want || asked.Load() != 1 {
			t.Errorf("%s: on the same day %q, asked %d times", tt.name, again, asked.Load())
		}
		if u, _ := a.find(t.Context(), query.FindUpdate{Known: true}); u.Newer != tt.want || asked.Load() != 1 {
			t.Errorf("%s: remembered %q, asked %d times", tt.name, u.Newer, asked.Load())
		}
		if _, _ = look(t.Context(), a, true); asked.Load() != 2 {
			t.Errorf("%s: asked %d times when somebody wanted to know", tt.name, asked.Load())
		}
	}
}

// Nothing is asked unless somebody has switched it on, and nobody waits for it.
func TestUpdatesAreOff(t *testing.T) {
	t.Parallel()
	a, asked := updating(t, false, `{"version": "9.0.0"}`, 200)
	if u, err := a.find(t.Context(), query.FindUpdate{Now: true}); !u.Off || u.Newer != "" || err != nil || asked.Load() != 0 {
		t.Errorf("%+v, %v, asked %d times", u, err, asked.Load())
	}
	a, asked = updating(t, true, `{"version": "9.0.0"}`, 200)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := look(ctx, a, false); err == nil || asked.Load() != 0 {
		t.Errorf("a program that ends still asks: %v", err)
	}
	if !a.last().Checked.IsZero() {
		t.Error("what was never asked is remembered")
	}
}

// The network mode holds for updates, and for where they lead.
func TestUpdatesKeepToTheNetworkMode(t *testing.T) {
	t.Parallel()
	moved := httptest.NewServer(http.RedirectHandler("https://updates.example.org/v", http.StatusFound))
	defer moved.Close()
	for _, at := range []string{"https://updates.example.org/v", moved.URL} {
		a := New(Config{
			Check: true, URL: at, Transport: http.DefaultTransport, Scratch: true,
			May: func(u *url.URL) bool { return u.Hostname() == "127.0.0.1" },
		})
		if _, err := look(t.Context(), a, true); err == nil || err.Error() != hosts.ErrFar.Error() {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// A look that is older than a day, or from the future, is not believed.
func TestUpdateIsAskedOnceADay(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{25 * time.Hour, -time.Hour} {
		a, asked := updating(t, true, `{"version": "1.3.0"}`, 200)
		kept, err := json.Marshal(found{Checked: time.Now().Add(-age), Version: "1.2.3"})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(a.cfg.Path, kept, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := look(t.Context(), a, false); got != "1.3.0" || err != nil || asked.Load() != 1 {
			t.Errorf("after %v: %q, %v, asked %d times", age, got, err, asked.Load())
		}
	}
}
