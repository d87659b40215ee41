package hosts

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"dure/agent"
)

// maxCA is the largest file of certificates that is read, in bytes.
const maxCA = 4 << 20

// Route is how requests leave this machine.
type Route struct {
	Proxy   string // http, https, socks5 or socks5h; "" = that of the environment
	NoProxy string // hosts that are reached without it, as in NO_PROXY
	CA      string // file of certificates that are trusted beside the system's; absolute
	Getenv  func(string) string
}

// Transport returns the HTTP transport of the route. It dials nothing before the first request.
func (n Route) Transport() (*http.Transport, error) {
	t := &http.Transport{
		Proxy:                 n.proxy(),
		DialContext:           (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		DisableCompression:    true, // what is unpacked unseen has no bound
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   15 * time.Second,
		ExpectContinueTimeout: time.Second,
	}
	if n.CA == "" {
		return t, nil
	}
	pool, err := Trusted(n.CA)
	if err != nil {
		return nil, &agent.Problem{
			Code: agent.ProblemSettings, Message: fmt.Sprintf("the certificates in %s cannot be used: %v", n.CA, err), Err: err,
			Fix: "name a file of PEM certificates in network.ca, or leave it out", Args: map[string]string{"path": n.CA, "error": err.Error()},
		}
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return t, nil
}

// Trusted returns the certificates of the system and those of a file.
func Trusted(path string) (*x509.CertPool, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxCA {
		return nil, errors.New("it is no file of at most 4 MiB")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a system without any
	}
	if !pool.AppendCertsFromPEM(data) {
		return nil, errors.New("there is no PEM certificate in it")
	}
	return pool, nil
}

// proxy returns how each request leaves: through the proxy of the settings, else
// that of the environment. This machine is always reached directly.
func (n Route) proxy() func(*http.Request) (*url.URL, error) {
	either := func(names ...string) string {
		for _, name := range names {
			for _, spelled := range []string{name, strings.ToLower(name)} {
				if v := strings.TrimSpace(n.Getenv(spelled)); v != "" {
					return v
				}
			}
		}
		return ""
	}
	cfg := httpproxy.Config{
		HTTPProxy: either("HTTP_PROXY", "ALL_PROXY"), HTTPSProxy: either("HTTPS_PROXY", "ALL_PROXY"), NoProxy: either("NO_PROXY"),
		CGI: n.Getenv("REQUEST_METHOD") != "",
	}
	if p := n.Proxy; p != "" {
		cfg.HTTPProxy, cfg.HTTPSProxy = p, p
	}
	if n.NoProxy != "" {
		cfg.NoProxy = n.NoProxy
	}
	choose := cfg.ProxyFunc()
	return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }
}
