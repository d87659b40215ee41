package plugins

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"dure/internal/base/hosts"
)

// fetchTime limits one answer of a host that plugins are fetched from.
const fetchTime = 5 * time.Minute

// ErrReach is a host that does not answer.
var ErrReach = errors.New("it cannot be reached")

// Web fetches files over HTTP.
type Web struct {
	Transport http.RoundTripper
	Version   string               // of the program
	May       func(*url.URL) error // why an address may not be asked; nil = it may
}

// Get writes what is at an address. It follows redirects to encrypted hosts alone, and sends
// nobody to an address of this network unless the first one was there.
func (w Web) Get(ctx context.Context, address string, most int64, to io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return errors.New("it is no address")
	}
	if err := w.May(req.URL); err != nil {
		return err
	}
	req.Header.Set("User-Agent", "dure/"+w.Version)
	client := http.Client{Transport: w.Transport, CheckRedirect: hosts.Redirects(func(u *url.URL) bool {
		return w.May(u) == nil && (u.Host == req.URL.Host || u.Scheme == "https" && !numeric(u))
	})}
	resp, err := client.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("%w: %s", ErrReach, hosts.Cause(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the host answers %s", resp.Status)
	}
	n, err := io.Copy(to, io.LimitReader(resp.Body, most+1))
	if err == nil && n > most {
		err = fmt.Errorf("%w: more than %d MiB", ErrLarge, most>>20)
	}
	return err
}

// numeric reports whether a host is an address or this machine.
func numeric(u *url.URL) bool {
	_, err := netip.ParseAddr(u.Hostname())
	return err == nil || strings.EqualFold(u.Hostname(), "localhost")
}
