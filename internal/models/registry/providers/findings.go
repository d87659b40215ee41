package providers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
)

// What a diagnosis waits for, and from where on it warns.
const (
	endpointPatience = 5 * time.Second
	proxyPatience    = 3 * time.Second
	keychainPatience = 2 * time.Second
	maxSkew          = 5 * time.Minute // of clocks: signatures are refused from there on
)

// Findings says which model is asked, where, with which key, and whether it can be reached.
func (x *Extension) Findings(ctx context.Context) []query.Finding {
	l := query.Findings{Group: query.Configured}
	name, err := x.Usual(x.Profile)
	var p Provider
	if err == nil {
		p, err = x.usual(&l, name)
	}
	if err != nil {
		l.Fault("model", err)
	} else {
		x.proxyFor(&l, p)
	}
	x.fallback(&l)
	l.Group = query.Reachable
	switch {
	case err != nil:
		l.Add("endpoint", query.Warn, "endpoint.none")
	case x.reachable(p) != nil:
		l.Add("endpoint", query.Warn, "endpoint.closed", "why", x.reachable(p).Error())
	default:
		x.endpoint(ctx, &l, p)
	}
	var local []string
	for _, s := range x.local(ctx, patience) {
		local = append(local, fmt.Sprintf("%s (%d)", s.base, len(s.models)))
	}
	if len(local) == 0 {
		l.Add("local", query.Good, "local.none")
	} else {
		l.Add("local", query.Good, "local.found", "list", strings.Join(local, ", "))
	}
	x.keychain(&l)
	return l.List
}

// usual says which model is asked when none is named. An error is a model that has no
// provider.
func (x *Extension) usual(l *query.Findings, name string) (p Provider, err error) {
	info, err := x.Info(name)
	if err == nil {
		p, err = x.of(info)
	}
	if err != nil {
		return p, err
	}
	if err := x.reachable(p); err != nil {
		l.Fault("model", err)
	} else {
		state, code := query.Good, "model.ok"
		if info.Price == nil && !p.Local {
			state, code = query.Warn, "model.price"
		}
		l.Add("model", state, code, "model", info.ID, "provider", p.Title, "where", x.Origin("model").Where)
	}
	l.Add("provider", query.Good, "provider", "provider", p.Title, "url", hosts.Shown(p.URL), "type", p.Type)
	if _, err := x.Key(p); err != nil {
		l.Fault("key", err)
		return p, nil
	}
	_, from, _ := x.key(p) // Key has reported it
	if from == "" && x.bearer(p) != "" {
		from = x.Origin("authToken").Where
	}
	if from != "" {
		l.Add("key", query.Good, "key.ok", "provider", p.Title, "where", from)
	} else {
		l.Add("key", query.Good, "key.needless")
	}
	return p, nil
}

func (x *Extension) fallback(l *query.Findings) {
	if len(x.Fallback) == 0 {
		l.Add("fallback", query.Good, "fallback.none")
	}
	for _, name := range x.Fallback {
		if _, err := x.Model(name); err != nil {
			l.Add("fallback", query.Warn, "fallback.bad", "model", name, "error", err.Error())
		} else {
			l.Add("fallback", query.Good, "fallback.ok", "models", name)
		}
	}
}

// proxyOf is the proxy that a request leaves through; nil = none.
func (x *Extension) proxyOf(raw string) (*url.URL, error) {
	req, err := http.NewRequest(http.MethodHead, raw, nil)
	if err != nil {
		return nil, err
	}
	return x.Transport.Proxy(req)
}

func (x *Extension) proxyFor(l *query.Findings, p Provider) {
	u, err := url.Parse(p.URL)
	if err != nil || u.Host == "" {
		return
	}
	via, err := x.proxyOf(p.URL)
	switch {
	case err != nil:
		l.Add("proxy", query.Bad, "proxy.bad", "error", hosts.Cause(err))
	case via == nil:
		l.Add("proxy", query.Good, "proxy.none", "host", u.Hostname())
	default:
		where := "environment"
		if x.OwnProxy {
			where = x.Origin("network.proxy").Where
		}
		l.Add("proxy", query.Good, "proxy.set", "host", u.Hostname(), "proxy", hosts.Shown(via.String()), "where", where)
	}
}

// endpoint opens a connection and sends nothing that costs.
func (x *Extension) endpoint(ctx context.Context, l *query.Findings, p Provider) {
	shown := hosts.Shown(p.URL)
	u, err := url.Parse(p.URL)
	if err == nil && u.Host == "" {
		err = errors.New("it has no host")
	}
	if err != nil {
		l.Add("endpoint", query.Bad, "endpoint.bad", "url", shown, "error", err.Error(), "provider", p.Name)
		return
	}
	if via, err := x.proxyOf(p.URL); err == nil && via != nil {
		x.proxy(ctx, l, via)
	}
	ctx, cancel := context.WithTimeout(ctx, endpointPatience)
	defer cancel()
	begun := time.Now()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, p.URL, nil)
	var resp *http.Response
	if err == nil {
		resp, err = x.Transport.RoundTrip(req)
	}
	if err != nil {
		if oe, ok := errors.AsType[*net.OpError](err); ok {
			err = oe
		}
		code := "endpoint.fail"
		if s := err.Error(); strings.Contains(s, "tls: ") || strings.Contains(s, "x509: ") {
			code = "endpoint.tls"
		}
		l.Add("endpoint", query.Bad, code, "url", shown, "error", err.Error(), "provider", p.Name)
		return
	}
	resp.Body.Close()
	l.Add("endpoint", query.Good, "endpoint.ok", "url", shown, "ms", strconv.FormatInt(time.Since(begun).Milliseconds(), 10))
	clock(l, resp.Header.Get("Date"), time.Now())
}

// clock compares this machine's clock with a Date header.
func clock(l *query.Findings, date string, now time.Time) {
	theirs, err := http.ParseTime(date)
	if err != nil {
		l.Add("clock", query.Good, "clock.unknown")
		return
	}
	state, code, skew := query.Good, "clock.ok", now.Sub(theirs).Abs()
	if skew > maxSkew {
		state, code = query.Bad, "clock.fail"
	}
	l.Add("clock", state, code, "seconds", strconv.Itoa(int(skew.Seconds())))
}

// proxy looks whether a proxy takes connections.
func (x *Extension) proxy(ctx context.Context, l *query.Findings, via *url.URL) {
	host, shown := via.Host, hosts.Shown(via.String())
	if via.Port() == "" {
		port := map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[via.Scheme]
		host = net.JoinHostPort(via.Hostname(), cmp.Or(port, "80"))
	}
	conn, err := (&net.Dialer{Timeout: proxyPatience}).DialContext(ctx, "tcp", host)
	if err != nil {
		where := "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"
		if x.OwnProxy {
			where = "network.proxy"
		}
		l.Add("proxy", query.Bad, "proxy.fail", "proxy", shown, "error", err.Error(), "where", where)
		return
	}
	conn.Close()
	l.Add("proxy", query.Good, "proxy.ok", "proxy", shown)
}

// keychain asks the keychain for a key that nobody has stored.
func (x *Extension) keychain(l *query.Findings) {
	if x.Keys.Ring == nil {
		l.Add("keychain", query.Good, "keychain.off", "path", x.Keys.Path)
		return
	}
	answer := make(chan error, 1)
	go func() { // ends with the question; one that is not answered is left behind
		_, err := x.Keys.Ring.Get("no such provider")
		answer <- err
	}()
	var err error
	select {
	case err = <-answer:
	case <-time.After(keychainPatience):
		err = errors.New("it does not answer")
	}
	if err == nil || errors.Is(err, keys.ErrNone) {
		l.Add("keychain", query.Good, "keychain.ok")
		return
	}
	l.Add("keychain", query.Good, "keychain.none", "path", x.Keys.Path, "error", err.Error())
}
