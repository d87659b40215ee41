package hosts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"time"
)

// Dialer connects to what is public, and with named to private addresses too: each is
// checked right before the connection is made, so that no second answer of a name
// server comes between.
func Dialer(named bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
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
	kind := KindOf(a)
	if kind == "" || named && kind != Metadata {
		return nil
	}
	return fmt.Errorf("%s is a %s address: hooks ask it only if the user's own settings name it", a, kind)
}

// LookedUp checks the addresses of a host that a proxy is to ask. A name that is not
// known here may be public.
func LookedUp(ctx context.Context, host string, named bool) error {
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
