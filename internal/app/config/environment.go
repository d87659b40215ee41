package config

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"dure/internal/base/keys/secret"
)

// environment applies the variables that stand for settings. Of two variables
// for one setting, that of dure is stronger; and the process's own is stronger than
// one that the user's settings give.
func (l *loader) environment() error {
	for _, v := range []struct{ name, path string }{
		{"ANTHROPIC_MODEL", "model"},
		{"DURE_MODEL", "model"},
		{"DURE_FALLBACK_MODEL", "fallbackModel"},
		{"ANTHROPIC_SMALL_FAST_MODEL", "smallModel"},
		{"DURE_SMALL_MODEL", "smallModel"},
		{"DURE_EFFORT", "effort"},
		{"ENABLE_TOOL_SEARCH", "toolSearch"},
		{"DURE_PROFILE", "profile"},
		{"DURE_NETWORK", "network.mode"},
		{"NODE_EXTRA_CA_CERTS", "network.ca"},
		{"DURE_CA_FILE", "network.ca"},
		{"ANTHROPIC_BASE_URL", "baseUrl"},
		{"DURE_DURABILITY", "durability"},
		{"DURE_LANG", "language"},
	} {
		value := l.variable(v.name)
		if value == "" {
			continue
		}
		if v.path == "language" {
			value = language(value)
		}
		if err := l.apply(layer{kind: Environment, path: v.name, said: Values{v.path: value}.written()}); err != nil {
			return err
		}
	}
	for _, v := range []struct {
		name string
		to   *secret.Text
		key  string
	}{
		{"ANTHROPIC_API_KEY", &l.cfg.Key, "key"},
		{"ANTHROPIC_AUTH_TOKEN", &l.cfg.AuthToken, "authToken"},
	} {
		if value := l.variable(v.name); value != "" {
			*v.to = secret.Text(value)
			l.cfg.Origins[v.key] = Origin{Environment, v.name}
		}
	}
	return nil
}

// variable returns a variable. Those that are asked for here are among the ones that
// no repository sets, see [programs.Steers].
func (l *loader) variable(name string) string {
	return strings.TrimSpace(cmp.Or(l.src.Getenv(name), string(l.cfg.Env[name])))
}

// language accepts a locale where a language is asked for.
func language(v string) string {
	lang, _, _ := strings.Cut(strings.ToLower(v), "_")
	if lang != "ko" {
		lang = "en"
	}
	return lang
}

// proxyNames are the variables that name a proxy, in the order in which they are
// asked for each kind of request.
var proxyNames = [][]string{
	{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"},
	{"HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"},
}

// proxies refuses a variable that should name a proxy and does not, unless the
// settings name one: requests would leave without it.
func (l *loader) proxies() error {
	if l.cfg.Network.Proxy != "" {
		return nil
	}
	for _, names := range proxyNames {
		for _, name := range names {
			value := strings.TrimSpace(l.src.Getenv(name))
			if value == "" {
				continue
			}
			if !isProxy(value) {
				ly := layer{kind: Environment, path: name}
				return l.invalid(ly, name, shownURL(value), "an address such as http://host:port")
			}
			break
		}
	}
	return nil
}

// isProxy reports whether a variable's value can be used as a proxy: an address,
// or a host alone, which speaks HTTP.
func isProxy(value string) bool {
	if !strings.Contains(value, "://") {
		value = "http://" + value
	}
	u, err := url.Parse(value)
	return err == nil && u.Hostname() != "" && slices.Contains(proxySchemes, u.Scheme)
}

// proxySchemes are the kinds of proxies.
var proxySchemes = []string{"http", "https", "socks5", "socks5h"}
