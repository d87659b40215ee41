package hosts

import (
	"net/url"
	"testing"
)

func TestReach(t *testing.T) {
	t.Parallel()
	also := []string{"models.corp", "*.lab.corp", "10.1.0.0/16", "192.168.7.7", "fd00::/8"}
	for host, want := range map[string]bool{
		"models.corp": true, "MODELS.corp.": true, "x.models.corp": false, "a.lab.corp": true, "a.b.lab.corp": true, "lab.corp": false,
		"evil-lab.corp": false, "10.1.2.3": true, "10.2.2.3": false, "[::ffff:10.1.2.3]": true, "192.168.7.7": true, "192.168.7.8": false,
		"[fd00::1]": true, "[fe80::1]": false, "": false, "127.0.0.1:80": true, "localhost": true,
	} {
		if got := (Reach{Mode: "internal", Also: also}).May(&url.URL{Scheme: "https", Host: host}); got != want {
			t.Errorf("%s: %t", host, got)
		}
	}
	far, here := &url.URL{Scheme: "https", Host: "models.corp"}, &url.URL{Scheme: "http", Host: "[::1]:1"}
	for mode, want := range map[string]bool{"external": true, "internal": false, "off": false, "": false} {
		if r := (Reach{Mode: mode}); r.May(far) != want || !r.May(here) {
			t.Errorf("%q: %t", mode, !want)
		}
	}
}
