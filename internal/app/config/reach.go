package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// choices applies which models are for what.
func (l *loader) choices(ly layer, s Settings) error {
	if v := s.FallbackModel; v != nil {
		var names []string
		for name := range strings.SplitSeq(*v, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if !isName(name) {
				return l.invalid(ly, "fallbackModel", *v, []string{"names of models, separated by commas"})
			}
			names = append(names, name)
		}
		l.set(ly, "fallbackModel", !slices.Equal(l.cfg.Fallback, names))
		l.cfg.Fallback = names
	}
	if v := s.SmallModel; v != nil {
		if !isName(strings.TrimSpace(*v)) {
			return l.invalid(ly, "smallModel", *v, []string{"the name of a model"})
		}
		l.set(ly, "smallModel", l.cfg.SmallModel != strings.TrimSpace(*v))
		l.cfg.SmallModel = strings.TrimSpace(*v)
	}
	if v := s.ToolSearch; v != nil {
		share, ok := toolShare(*v)
		if !ok {
			return l.invalid(ly, "toolSearch", *v, []string{"auto", "true", "false", "auto:N with N from 0 to 100"})
		}
		l.set(ly, "toolSearch", l.cfg.ToolSearch != share)
		l.cfg.ToolSearch = share
	}
	if s.AI != nil {
		l.set(ly, "ai", l.cfg.NoAI == *s.AI)
		l.cfg.NoAI = !*s.AI
	}
	return nil
}

// usualToolShare is the percentage of the window that listed tools of others may take up.
const usualToolShare = 10

// toolShare reads when tools are only named: the percentage of the window that all others
// have to stay under, or -1.
func toolShare(v string) (share int, ok bool) {
	switch v = strings.ToLower(strings.TrimSpace(v)); v {
	case "auto":
		return usualToolShare, true
	case "true":
		return 0, true
	case "false":
		return -1, true
	}
	rest, ok := strings.CutPrefix(v, "auto:")
	share, err := strconv.Atoi(strings.TrimSuffix(rest, "%"))
	return share, ok && err == nil && share >= 0 && share <= 100
}

// isName reports whether a text can be the name of a model.
func isName(s string) bool {
	return s != "" && len(s) <= maxText && !strings.ContainsFunc(s, unicode.IsControl)
}

// networkModes are the values of network.mode, the widest first.
var networkModes = []string{string(External), string(Internal), string(Offline)}

// network applies how far the program reaches out.
func (l *loader) network(ly layer, s Settings) error {
	if n := s.Network; n != nil {
		if n.Mode != nil {
			if !slices.Contains(networkModes, *n.Mode) {
				return l.invalid(ly, "network.mode", *n.Mode, networkModes)
			}
			l.set(ly, "network.mode", string(l.cfg.Network.Mode) != *n.Mode)
			l.cfg.Network.Mode = NetworkMode(*n.Mode)
		}
		if n.Proxy != nil {
			u, err := url.Parse(*n.Proxy)
			if *n.Proxy != "" && (err != nil || u.Host == "" || !slices.Contains(proxySchemes, u.Scheme)) {
				return l.invalid(ly, "network.proxy", shownURL(*n.Proxy), []string{"http://host:port", "https://host:port", "socks5://host:port", "socks5h://host:port"})
			}
			l.set(ly, "network.proxy", string(l.cfg.Network.Proxy) != *n.Proxy)
			l.cfg.Network.Proxy = Secret(*n.Proxy)
		}
		if n.NoProxy != nil {
			l.set(ly, "network.noProxy", l.cfg.Network.NoProxy != *n.NoProxy)
			l.cfg.Network.NoProxy = *n.NoProxy
		}
		if n.CA != nil && *n.CA != "" {
			path := l.absolute(*n.CA)
			l.set(ly, "network.ca", l.cfg.Network.CA != path)
			l.cfg.Network.CA = path
		}
		var hosts []string
		for _, h := range n.AllowHosts {
			if !isHost(h) {
				return l.invalid(ly, "network.allowHosts", h, []string{"a host", "*.a.domain", "an address", "a network such as 10.0.0.0/8"})
			}
			l.set(ly, "network.allowHosts", false)
			hosts = append(hosts, strings.ToLower(h))
		}
		l.cfg.Network.AllowHosts = union(l.cfg.Network.AllowHosts, hosts)
	}
	return l.services(ly, s)
}

// searchKinds are the values of search.kind.
var searchKinds = []string{"brave", "searxng", "tavily", "json"}

// services applies the endpoints that are no models.
func (l *loader) services(ly layer, s Settings) error {
	if v := s.Search; v != nil {
		if !slices.Contains(searchKinds, v.Kind) {
			return l.invalid(ly, "search.kind", v.Kind, searchKinds)
		}
		if _, ok := endpoint(v.URL); v.URL != "" && !ok {
			return l.invalid(ly, "search.url", shownURL(v.URL), []string{"an address such as https://host/path"})
		}
		l.set(ly, "search", l.cfg.Search != *v)
		l.cfg.Search = *v
		if v.KeyEnv != "" {
			l.cfg.ScrubEnv = union(l.cfg.ScrubEnv, []string{v.KeyEnv})
		}
	}
	if v := s.Updates; v != nil {
		if _, ok := endpoint(v.URL); v.Check && !ok {
			return l.invalid(ly, "updates.url", shownURL(v.URL), []string{"an address such as https://host/path"})
		}
		l.set(ly, "updates", l.cfg.Updates != *v)
		l.cfg.Updates = *v
	}
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

// restrictNetwork takes out of s what a repository may not decide: it may close
// what is open, and open nothing.
func (l *loader) restrictNetwork(s *Settings, drop func(key string)) {
	if n := s.Network; n != nil {
		tight := FileNetwork{Mode: n.Mode}
		if n.Mode != nil && slices.Index(networkModes, *n.Mode) >= 0 && slices.Index(networkModes, *n.Mode) < slices.Index(networkModes, string(l.cfg.Network.Mode)) {
			drop("network.mode")
			tight.Mode = nil
		}
		for _, f := range []struct {
			key   string
			given bool
		}{{"network.proxy", n.Proxy != nil}, {"network.noProxy", n.NoProxy != nil}, {"network.ca", n.CA != nil}, {"network.allowHosts", n.AllowHosts != nil}} {
			if f.given {
				drop(f.key)
			}
		}
		s.Network = &tight
	}
	if s.AI != nil && *s.AI && l.cfg.NoAI {
		drop("ai")
		s.AI = nil
	}
	if s.Search != nil {
		drop("search")
		s.Search = nil
	}
	if s.Updates != nil {
		drop("updates")
		s.Updates = nil
	}
}
