package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"dure/internal/base/keys/secret"
)

// fallback applies fallbackModel: names, separated by commas.
func (l *loader) fallback(e entry) error {
	var v string
	if err := e.decode(&v); err != nil {
		return err
	}
	list := names(v)
	if slices.ContainsFunc(list, func(name string) bool { return !isName(name) }) {
		return e.invalid(v, "names of models, separated by commas")
	}
	e.set(!slices.Equal(l.cfg.Fallback, list))
	l.cfg.Fallback = list
	return nil
}

// usualToolShare is the percentage of the window that listed tools of others may take up.
const usualToolShare = 10

// toolShare reads when tools are only named: the percentage of the window that all others
// have to stay under, or -1.
func toolShare(_ entry, text string) (share int, want string) {
	v := strings.ToLower(strings.TrimSpace(text))
	switch v {
	case "auto":
		return usualToolShare, ""
	case "true":
		return 0, ""
	case "false":
		return -1, ""
	}
	rest, ok := strings.CutPrefix(v, "auto:")
	share, err := strconv.Atoi(strings.TrimSuffix(rest, "%"))
	if !ok || err != nil || share < 0 || share > 100 {
		return share, "auto, true, false, auto:N with N from 0 to 100"
	}
	return share, ""
}

// isName reports whether a text can be the name of a model.
func isName(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, unicode.IsControl)
}

// networkModes are the values of network.mode, the widest first.
var networkModes = []string{string(External), string(Internal), string(Offline)}

// proxyAddress is that of a proxy; "" = that of the environment.
func proxyAddress(_ entry, text string) (v secret.Text, want string) {
	u, err := url.Parse(text)
	if text != "" && (err != nil || u.Host == "" || !slices.Contains(proxySchemes, u.Scheme)) {
		return "", "http://host:port, https://host:port, socks5://host:port, socks5h://host:port"
	}
	return secret.Text(text), ""
}

// searchKinds are the values of search.kind.
var searchKinds = []string{"brave", "searxng", "tavily", "json"}

// search applies the endpoint of web searches.
func (l *loader) search(e entry) error {
	var v Search
	if err := e.decode(&v); err != nil {
		return err
	}
	if !slices.Contains(searchKinds, v.Kind) {
		return l.invalid(e.ly, "search.kind", v.Kind, strings.Join(searchKinds, ", "))
	}
	if _, ok := endpoint(v.URL); v.URL != "" && !ok {
		return l.invalid(e.ly, "search.url", shownURL(v.URL), "an address such as https://host/path")
	}
	e.set(l.cfg.Search != v)
	l.cfg.Search = v
	if v.KeyEnv != "" {
		l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, []string{v.KeyEnv})
	}
	return nil
}

func (l *loader) updates(e entry) error {
	var v Updates
	if err := e.decode(&v); err != nil {
		return err
	}
	if _, ok := endpoint(v.URL); v.Check && !ok {
		return l.invalid(e.ly, "updates.url", shownURL(v.URL), "an address such as https://host/path")
	}
	e.set(l.cfg.Updates != v)
	l.cfg.Updates = v
	return nil
}

// isHost reports whether a text names a host, all hosts of a domain, an address
// or a network.
func isHost(s string) bool {
	if _, err := netip.ParsePrefix(s); err == nil {
		return true
	}
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	s = strings.TrimPrefix(s, "*.")
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("/:*@?#", r)
	})
}
