package web

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/base/hosts"
	"dure/internal/tools/kit"
)

// maxURL is the longest URL, in bytes. A URL carries data out as well as in.
const maxURL = 4096

// target is a URL that may be asked for, as far as the URL itself tells.
type target struct {
	url  *url.URL // absolute; host in ASCII; no user, no fragment, no default port
	host string   // lower case, without brackets and final dot
	port uint16
}

// parseTarget reads a URL of a model or of a server.
func parseTarget(raw string) (target, error) {
	refuse := func(why string) (target, error) {
		return target{}, kit.Refuse(agent.ErrInput, "the URL "+kit.Quote(raw, 200)+" "+why, "Give a full URL that begins with https:// or http://.")
	}
	raw = strings.TrimSpace(raw)
	if len(raw) > maxURL {
		return refuse(fmt.Sprintf("has more than %d bytes", maxURL))
	}
	u, err := url.Parse(raw)
	if err != nil || strings.ContainsAny(raw, "\\\x00") {
		return refuse("cannot be read")
	}
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("is neither http nor https")
	case u.User != nil:
		return target{}, kit.Refuse(agent.ErrInput, "the URL has a user name or a password in front of its host", "Leave them out.")
	case u.Opaque != "" || u.Hostname() == "":
		return refuse("names no host")
	}
	host, err := hosts.Name(u.Hostname())
	if err != nil {
		return refuse("has a host that " + err.Error())
	}
	t := target{url: u, host: host, port: 80}
	if u.Scheme == "https" {
		t.port = 443
	}
	if p := u.Port(); p != "" {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil || n == 0 {
			return refuse("has a port that does not exist")
		}
		t.port = uint16(n)
	}
	u.Host = t.authority()
	u.Fragment, u.RawFragment = "", ""
	u.RawQuery = escapeQuery(u.RawQuery)
	if u.Path == "" {
		u.Path = "/"
	}
	return t, nil
}

// escapeQuery escapes what may not stand in the first line of a request, and
// leaves the rest as it was written.
func escapeQuery(q string) string {
	var b strings.Builder
	for i := range len(q) {
		if c := q[i]; c > ' ' && c < 0x7f {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// authority is the host as it stands in a URL.
func (t target) authority() string {
	host := t.host
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if t.url.Scheme == "http" && t.port == 80 || t.url.Scheme == "https" && t.port == 443 {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// dial is the host and port to connect to.
func (t target) dial() string { return net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) }

func (t target) String() string { return t.url.String() }

// hosts is what an effect lists for a fetch of t: all that [target.sameSite] may
// lead to.
func (t target) hosts() []string {
	var list []string
	for _, host := range []string{t.host, t.twin()} {
		if host == "" {
			continue
		}
		list = append(list, net.JoinHostPort(host, strconv.Itoa(int(t.port))))
		if t.url.Scheme == "http" && t.port == 80 {
			list = append(list, net.JoinHostPort(host, "443"))
		}
	}
	return list
}

// twin is the same name with or without www; "" = an address, or a name of one
// part, has none.
func (t target) twin() string {
	if _, err := netip.ParseAddr(t.host); err == nil || !strings.Contains(t.host, ".") {
		return ""
	}
	if rest, ok := strings.CutPrefix(t.host, "www."); ok {
		return rest
	}
	return "www." + t.host
}

// sameSite reports whether a redirect from t to next stays where the call was
// approved for: the same host, or its twin with or without www, on the same
// port, never from https back to http.
func (t target) sameSite(next target) bool {
	if next.host != t.host && next.host != t.twin() {
		return false
	}
	if t.url.Scheme == next.url.Scheme {
		return t.port == next.port
	}
	return t.port == 80 && next.url.Scheme == "https" && next.port == 443
}

// closedPorts are those above 1023 behind which something else than the web
// usually listens, and obeys lines of text or has no password. Below 1024 only
// 80 and 443 are open.
var closedPorts = []uint16{
	1433, 1521, 1719, 1720, 1723, // databases, telephony, tunnels
	2049, 2181, 2375, 2376, 2379, 2380, // NFS, ZooKeeper, Docker, etcd
	3306, 3389, 3659, 4045, 4190, 4369, // MySQL, RDP, Sieve, Erlang
	5060, 5061, 5432, 5672, 5900, 5984, 5985, 5986, // SIP, PostgreSQL, AMQP, VNC, CouchDB, WinRM
	6000, 6379, 6443, 6566, 6665, 6666, 6667, 6668, 6669, 6697, // X11, Redis, Kubernetes, IRC
	8086, 8500, 9042, 9092, 9200, 9300, // InfluxDB, Consul, Cassandra, Kafka, Elasticsearch
	10080, 10250, 10255, 11211, 27017, 27018, 27019, // kubelet, memcached, MongoDB
}

func openPort(p uint16) bool {
	if p < 1024 {
		return p == 80 || p == 443
	}
	return !slices.Contains(closedPorts, p)
}
