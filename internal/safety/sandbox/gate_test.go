package sandbox

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dure/internal/safety/sandbox/egress"
)

// Who has the environment of the command gets through, to what it was granted.
func TestGate(t *testing.T) {
	told := 0
	g, err := openGate(egress.Config{Denied: func(string, int, string) { told++ }}, []string{"granted.invalid"})
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	ask := func(proxy, at string) string {
		u, err := url.Parse(proxy)
		if err != nil {
			t.Fatal(err)
		}
		tr := &http.Transport{Proxy: http.ProxyURL(u)}
		defer tr.CloseIdleConnections()
		resp, err := (&http.Client{Transport: tr}).Get(at)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		first, _, _ := strings.Cut(string(body), "\n")
		return first
	}
	_, proxy, _ := strings.Cut(g.env()[0], "=")
	for range 2 {
		if got := ask(proxy, "http://other.invalid/"); got != "host other.invalid is not allowed." {
			t.Error(got)
		}
	}
	if got := ask("http://"+g.listen.Addr().String(), "http://granted.invalid/"); got != "the proxy wants its token." {
		t.Error(got)
	}
	if diff := cmp.Diff([]Denial{{DeniedHost, "other.invalid:80", egress.WhyHost}}, g.denied()); diff != "" || told != 2 {
		t.Errorf("told %d times (-want +got):\n%s", told, diff)
	}
	if _, err := openGate(egress.Config{}, []string{"no host"}); err == nil {
		t.Error("a host that cannot exist was granted")
	}
	var none *gate
	none.close()
	if none.port() != 0 || none.denied() != nil {
		t.Error("no gate leads somewhere")
	}
}
