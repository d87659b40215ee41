package web

import (
	"net/netip"
	"testing"

	"dure/internal/base/hosts"
)

func TestModes(t *testing.T) {
	allow := func(list ...string) []hosts.Rule {
		rules, err := Config{AllowHosts: list}.rules()
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	inner := policy{mode: Internal, allow: allow("wiki.corp", "*.lab.corp", "db.corp:5432", "10.0.0.5", "localhost:3000", "169.254.169.254", "127.0.0.1", "172.16.0.0/16")}
	outer := policy{mode: External}
	for _, tt := range []struct {
		name      string
		p         policy
		url, addr string // addr = where the host leads
		ok        bool
	}{
		{"public host", outer, "https://go.dev", "8.8.8.8", true},
		{"private address", outer, "https://go.dev", "10.0.0.1", false},
		{"loopback address", outer, "https://go.dev", "127.0.0.1", false},
		{"private literal", outer, "http://192.168.0.1/", "", false},
		{"mapped literal", outer, "http://[::ffff:127.0.0.1]/", "", false},
		{"another port", outer, "http://go.dev:8080/", "8.8.8.8", true},
		{"mail", outer, "http://go.dev:25/", "8.8.8.8", false},
		{"ssh", outer, "http://go.dev:22/", "8.8.8.8", false},
		{"redis", outer, "http://go.dev:6379/", "8.8.8.8", false},
		{"other low port", outer, "http://go.dev:81/", "8.8.8.8", false},
		{"off", policy{mode: Off}, "https://go.dev", "8.8.8.8", false},

		{"listed, private", inner, "https://wiki.corp", "10.0.0.1", true},
		{"listed, carrier", inner, "https://wiki.corp", "100.64.0.1", true},
		{"listed, public", inner, "https://wiki.corp", "8.8.8.8", true},
		{"listed, loopback", inner, "https://wiki.corp", "127.0.0.1", false},
		{"listed, metadata", inner, "https://wiki.corp", "169.254.169.254", false},
		{"listed, link-local", inner, "https://wiki.corp", "fe80::1", false},
		{"listed, carried", inner, "https://wiki.corp", "64:ff9b::a9fe:a9fe", false},
		{"subdomain", inner, "https://a.b.lab.corp", "10.0.0.1", true},
		{"not the domain itself", inner, "https://lab.corp", "10.0.0.1", false},
		{"not listed", inner, "https://go.dev", "8.8.8.8", false},
		{"suffix only", inner, "https://evilwiki.corp", "10.0.0.1", false},
		{"closed port, listed", inner, "http://db.corp:5432", "10.0.0.1", true},
		{"another port than listed", inner, "http://db.corp:80", "10.0.0.1", false},
		{"closed port of a listed host", inner, "http://wiki.corp:22", "10.0.0.1", false},
		{"listed literal", inner, "http://10.0.0.5/", "", true},
		{"other literal", inner, "http://10.0.0.6/", "", false},
		{"address of a listed network", inner, "http://172.16.9.9/", "", true},
		{"such an address in IPv6", inner, "http://[::ffff:172.16.9.9]/", "", true},
		{"address beside it", inner, "http://172.17.0.1/", "", false},
		{"name that leads into a listed network", inner, "http://go.dev/", "172.16.9.9", false},
		{"this machine by name", inner, "http://localhost:3000", "127.0.0.1", true},
		{"this machine by number", inner, "http://127.0.0.1:8080", "", true},
		{"metadata, though listed", inner, "http://169.254.169.254/", "", false},
	} {
		to, err := parseTarget(tt.url)
		if err != nil {
			t.Fatal(err)
		}
		err = tt.p.host(to)
		if err == nil && tt.addr != "" {
			err = tt.p.address(to.host, netip.MustParseAddr(tt.addr))
		}
		if (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
