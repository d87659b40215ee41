package servers

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// A Policy is which servers there may be.
type Policy struct {
	Allowed *[]json.RawMessage // nil = all
	Denied  []json.RawMessage
}

// entry is one rule of a policy: it says one of three things.
type entry struct {
	Name    string   `json:"serverName"`
	Command []string `json:"serverCommand"`
	URL     string   `json:"serverUrl"`
}

// Forbids says why a server may not be used; "" = it may. Entries that cannot be read
// forbid: nobody can tell what they were meant for.
func (p Policy) Forbids(s Server) string {
	for _, raw := range p.Denied {
		e, ok := readEntry(raw)
		switch {
		case !ok:
			return "deniedMcpServers has an entry that cannot be read"
		case e.fits(s), e.Name != "" && called(s.Name, e.Name):
			return "deniedMcpServers names it"
		}
	}
	if p.Allowed == nil {
		return ""
	}
	byCommand, byURL, named := false, false, false
	for _, raw := range *p.Allowed {
		e, ok := readEntry(raw)
		if !ok {
			continue // it allows nothing
		}
		byCommand, byURL = byCommand || e.Command != nil, byURL || e.URL != ""
		if e.fits(s) {
			if e.Name == "" {
				return ""
			}
			named = true
		}
	}
	// a name is what anybody may choose: where commands or addresses are allowed, it does
	// not count for servers that have one
	if named && (s.Type == Stdio && !byCommand || s.Type != Stdio && !byURL) {
		return ""
	}
	return "allowedMcpServers does not name it"
}

// called reports whether a list that takes servers away means this one: by its name, or by
// the one that a plugin or a type of agents gives it, and under which its tools are known.
// What allows servers wants the whole name: the short one is what any of them may choose.
func called(server, name string) bool {
	if server == name {
		return true
	}
	of, rest, ok := strings.Cut(server, ":")
	if !ok || of != "plugin" && of != "agent" {
		return false
	}
	for ok { // the name of a plugin or a type may have colons too
		if _, rest, ok = strings.Cut(rest, ":"); ok && rest == name {
			return true
		}
	}
	return false
}

func readEntry(raw json.RawMessage) (e entry, ok bool) {
	if json.Unmarshal(raw, &e) != nil {
		return e, false
	}
	said := 0
	for _, is := range []bool{e.Name != "", len(e.Command) > 0, e.URL != ""} {
		if is {
			said++
		}
	}
	return e, said == 1
}

func (e entry) fits(s Server) bool {
	switch {
	case e.Name != "":
		return e.Name == s.Name
	case e.Command != nil:
		return s.Type == Stdio && slices.Equal(e.Command, append([]string{s.Command}, s.Args...))
	}
	return s.Type != Stdio && fitsURL(e.URL, s.URL)
}

// fitsURL compares an address with a pattern, part by part: a * for a host is no path.
func fitsURL(pattern, address string) bool {
	scheme, rest, ok := strings.Cut(pattern, "://")
	u, err := url.Parse(address)
	if !ok || err != nil {
		return glob(pattern, address)
	}
	host, path, deep := strings.Cut(rest, "/")
	if !deep && !strings.HasSuffix(host, "*") {
		return glob(scheme, u.Scheme) && glob(strings.ToLower(host), strings.ToLower(u.Host)) && strings.Trim(u.EscapedPath(), "/") == ""
	}
	there := u.EscapedPath()
	if u.RawQuery != "" {
		there += "?" + u.RawQuery
	}
	if !deep {
		path = "*"
	}
	return glob(scheme, u.Scheme) && glob(strings.ToLower(host), strings.ToLower(u.Host)) && glob(path, strings.TrimPrefix(there, "/"))
}

// glob compares a text with a pattern in which * is anything.
func glob(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}
