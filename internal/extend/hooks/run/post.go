package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"dure/internal/base/hosts"
	"dure/internal/extend/hooks"
)

// maxAnswer is how much of the answer to a hook is read, in bytes.
const maxAnswer = 1 << 20

// reach says which addresses hooks may ask.
type reach struct {
	only  []*regexp.Regexp // nil = any
	named map[string]bool  // host:port of private addresses that the user has named himself
}

// reachOf returns what the settings, and the hooks of the user's own, let hooks ask.
func reachOf(s hooks.Settings, all []hooks.Hook) reach {
	r := reach{named: map[string]bool{}}
	if s.URLs != nil {
		r.only = []*regexp.Regexp{}
	}
	for _, p := range s.URLs {
		parts := strings.Split(p, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		r.only = append(r.only, regexp.MustCompile("^"+strings.Join(parts, ".*")+"$"))
	}
	for _, p := range s.OwnURLs {
		r.name(strings.TrimRight(strings.SplitN(p, "*", 2)[0], "?#"), strings.Contains(p, "*"))
	}
	for _, h := range all {
		switch h.Source.Layer {
		case "managed", "user", "flags", "host":
			r.name(h.URL, false)
		}
	}
	return r
}

// name permits the host of an address. Of a pattern its beginning has to say more than
// the host: http://10.0.0.1* would fit 10.0.0.100 as well.
func (r reach) name(raw string, pattern bool) {
	u, err := url.Parse(raw)
	if err != nil || u.Hostname() == "" || pattern && !strings.HasPrefix(u.Path, "/") {
		return
	}
	r.named[portOf(u)] = true
}

// allows reports whether the settings let hooks ask an address.
func (r reach) allows(raw string) bool {
	return r.only == nil || slices.ContainsFunc(r.only, func(re *regexp.Regexp) bool { return re.MatchString(raw) })
}

// portOf is the host and port that an address leads to.
func portOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[strings.ToLower(u.Scheme)]
	}
	return strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")) + " " + port
}

// allowed reports whether the settings let hooks ask an address.
func (h *Session) allowed(url string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.reach.allows(url)
}

// post puts a body to an address: by the proxy and with the certificates that everything
// else has, and to no address of this machine or of a private network that the user has not
// named himself. It follows no redirect, and keeps no connection.
func (h *Session) post(ctx context.Context, raw string, header map[string]string, body []byte) (int, []byte, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return 0, nil, errors.New("the address has to be http:// or https:// with a host, and no user in it")
	}
	h.mu.Lock()
	named := h.reach.named[portOf(u)]
	h.mu.Unlock()
	if err := h.c.mayLeave(u, named); err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("User-Agent", "dure/"+h.c.Version)
	for name, v := range header {
		req.Header.Set(name, v)
	}
	t := h.c.Transport.Clone()
	t.DisableKeepAlives = true
	via, err := t.Proxy(req)
	switch {
	case err != nil:
		return 0, nil, errors.New("the proxy settings cannot be read")
	case via == nil:
		t.DialContext = hosts.Dialer(named)
	default: // a proxy looks names up itself: what can be known here is checked
		if err := hosts.LookedUp(ctx, u.Hostname(), named); err != nil {
			return 0, nil, err
		}
	}
	client := http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, withoutURL(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err == nil && len(answer) > maxAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return resp.StatusCode, answer, err
}

// withoutURL is an error without the address, which may have secrets in it.
func withoutURL(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

// mayLeave checks what the network mode lets hooks ask.
func (c *Config) mayLeave(u *url.URL, named bool) error {
	a, err := netip.ParseAddr(u.Hostname())
	local := err == nil && a.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
	switch {
	case local && named, c.Network == "external":
		return nil
	case c.Network == "off":
		return errors.New("the network is off")
	}
	name, err := hosts.Name(u.Hostname())
	if err != nil {
		return err
	}
	port := uint16(80)
	if u.Scheme == "https" {
		port = 443
	}
	if p := u.Port(); p != "" {
		if _, err := fmt.Sscan(p, &port); err != nil {
			return errors.New("the address has a port that does not exist")
		}
	}
	if !slices.ContainsFunc(c.Hosts, func(raw string) bool {
		r, err := hosts.ParseRule(raw)
		return err == nil && r.Fits(name, port)
	}) {
		return errors.New(name + " is not among the hosts that may be asked in internal mode")
	}
	return nil
}
