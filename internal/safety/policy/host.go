package policy

import (
	"net"
	"strings"

	"golang.org/x/net/idna"
)

// readHost reads the pattern of a host: a name, where a leading *. is any
// subdomain at any depth, another * does not cross a dot, and * alone is every
// host.
func readHost(text string, at int) (string, *fault) {
	host := hostName(text)
	if host == "" || strings.Contains(host, "..") || strings.HasPrefix(host, ".") {
		return "", &fault{at, "it names no host"}
	}
	for i, c := range []byte(host) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', strings.IndexByte("-._*:", c) >= 0:
		default:
			return "", &fault{at + i, "a host has letters, digits, dots and hyphens"}
		}
	}
	return host, nil
}

// hostName returns the name of host or host:port as it is compared.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(strings.TrimSuffix(host, "."), "[]")
	for i := range len(host) {
		if host[i] >= 0x80 {
			if ascii, err := idna.Lookup.ToASCII(host); err == nil {
				host = ascii
			}
			break
		}
	}
	return strings.ToLower(host)
}

// hostFits matches the name of a host with a pattern, label by label.
func hostFits(pattern, host string) bool {
	if pattern == "*" {
		return true
	}
	rest, deep := strings.CutPrefix(pattern, "*.")
	if deep {
		n := strings.Count(host, ".") - strings.Count(rest, ".")
		if n < 1 {
			return false
		}
		for range n {
			_, host, _ = strings.Cut(host, ".")
		}
		pattern = rest
	}
	for {
		want, moreWanted, more1 := strings.Cut(pattern, ".")
		label, moreLabels, more2 := strings.Cut(host, ".")
		if more1 != more2 || !star(want, label) {
			return false
		}
		if !more1 {
			return true
		}
		pattern, host = moreWanted, moreLabels
	}
}
