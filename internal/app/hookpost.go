package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"dure/internal/app/config"
	"dure/internal/base/hosts"
)

// maxHookAnswer is how much of the answer to a hook is read, in bytes.
const maxHookAnswer = 1 << 20

// poster asks servers on behalf of hooks: by the proxy and with the certificates that
// everything else has, and no address of this machine or of a private network that the
// user has not named himself. It follows no redirect, and keeps no connection.
type poster struct {
	app   *App
	reach func() hookReach
}

// post puts a body to an address.
func (p poster) post(ctx context.Context, raw string, header map[string]string, body []byte) (int, []byte, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return 0, nil, errors.New("the address has to be http:// or https:// with a host, and no user in it")
	}
	named := p.reach().named[portOf(u)]
	if err := p.mode(u, named); err != nil {
		return 0, nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("User-Agent", "dure/"+p.app.opts.Version)
	for name, v := range header {
		req.Header.Set(name, v)
	}
	t := p.app.transport.Clone()
	t.DisableKeepAlives = true
	via, err := t.Proxy(req)
	switch {
	case err != nil:
		return 0, nil, errors.New("the proxy settings cannot be read")
	case via == nil:
		t.DialContext = dialer(named)
	default: // a proxy looks names up itself: what can be known here is checked
		if err := lookedUp(ctx, u.Hostname(), named); err != nil {
			return 0, nil, err
		}
	}
	client := http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, withoutURL(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxHookAnswer+1))
	if err == nil && len(answer) > maxHookAnswer {
		err = fmt.Errorf("the answer has more than %d bytes", maxHookAnswer)
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

// mode checks what the network mode lets hooks ask.
func (p poster) mode(u *url.URL, named bool) error {
	n := p.app.cfg.Network
	a, err := netip.ParseAddr(u.Hostname())
	local := err == nil && a.IsLoopback() || strings.EqualFold(u.Hostname(), "localhost")
	switch {
	case local && named, n.Mode == config.External:
		return nil
	case n.Mode == config.Offline:
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
	if !slices.ContainsFunc(n.AllowHosts, func(raw string) bool {
		r, err := hosts.ParseRule(raw)
		return err == nil && r.Fits(name, port)
	}) {
		return errors.New(name + " is not among the hosts that may be asked in internal mode")
	}
	return nil
}

// dialer connects to what is public, and with named to private addresses too: each is
// checked right before the connection is made, so that no second answer of a name
// server comes between.
func dialer(named bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	d := net.Dialer{Timeout: 15 * time.Second, KeepAlive: -1, ControlContext: func(_ context.Context, _, to string, _ syscall.RawConn) error {
		a, err := netip.ParseAddrPort(to)
		if err != nil {
			return fmt.Errorf("checking the address %s: %w", to, err)
		}
		return mayAsk(a.Addr(), named)
	}}
	return d.DialContext
}

// mayAsk checks an address that a host leads to. Where clouds tell a machine its secrets
// is asked by nobody.
func mayAsk(a netip.Addr, named bool) error {
	kind := hosts.KindOf(a)
	if kind == "" || named && kind != hosts.Metadata {
		return nil
	}
	return fmt.Errorf("%s is a %s address: hooks ask it only if the user's own settings name it", a, kind)
}

// lookedUp checks the addresses of a host that a proxy is to ask. A name that is not
// known here may be public.
func lookedUp(ctx context.Context, host string, named bool) error {
	if a, err := netip.ParseAddr(host); err == nil {
		return mayAsk(a, named)
	}
	if !named && (!strings.Contains(host, ".") || strings.HasSuffix(strings.ToLower(host), ".localhost")) {
		return errors.New(host + " is a name of an internal network: hooks ask it only if the user's own settings name it")
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	list, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil
	}
	for _, a := range list {
		if err := mayAsk(a, named); err != nil {
			return err
		}
	}
	return nil
}
