package servers

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"dure/internal/tools/kit"
)

// variable is ${NAME} or ${NAME:-what counts where it is not set}.
var variable = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_.]*)(:-([^}]*))?\}`)
})

// short is $NAME, which headers may have.
var short = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$([A-Z_][A-Z0-9_]*)`) })

// variables are those that a definition names.
func variables(s Server) []string {
	seen := map[string]bool{}
	each(&s, func(text string, header bool) string {
		for _, m := range variable().FindAllStringSubmatch(text, -1) {
			seen[m[1]] = true
		}
		if header {
			for _, m := range short().FindAllStringSubmatch(variable().ReplaceAllString(text, ""), -1) {
				seen[m[1]] = true
			}
		}
		return text
	})
	return slices.Sorted(maps.Keys(seen))
}

// each changes all texts of a server in which variables count. Maps and lists are copied.
func each(s *Server, change func(text string, header bool) string) {
	s.Command, s.Dir, s.URL, s.HeadersHelper = change(s.Command, false), change(s.Dir, false), change(s.URL, false), change(s.HeadersHelper, false)
	s.Args = slices.Clone(s.Args)
	for i, a := range s.Args {
		s.Args[i] = change(a, false)
	}
	s.Env, s.Headers = maps.Clone(s.Env), maps.Clone(s.Headers)
	for k, v := range s.Env {
		s.Env[k] = change(v, false)
	}
	for k, v := range s.Headers {
		s.Headers[k] = change(v, true)
	}
	if s.OAuth != nil {
		o := *s.OAuth
		o.ClientID, o.ClientSecret, o.MetadataURL = change(o.ClientID, false), change(o.ClientSecret, false), change(o.MetadataURL, false)
		s.OAuth = &o
	}
}

// Expand puts variables into a definition, in one pass: what a value holds is not looked
// at again. Only variables that the definition names are asked for. The error says which
// one is missing, or what a value makes of it.
func (d Definition) Expand(lookup func(name string) (value string, ok bool)) (Server, error) {
	s := d.Server
	var missing []string
	s.Values = map[string]string{}
	value := func(name, usual string, has bool) (string, bool) {
		if v, ok := lookup(name); ok && v != "" {
			s.Values[name] = v
			return v, true
		}
		if has {
			return usual, true
		}
		if _, ok := lookup(name); ok {
			return "", true
		}
		missing = append(missing, name)
		return "", false
	}
	each(&s, func(text string, header bool) string {
		var b strings.Builder
		at := 0
		for _, m := range variable().FindAllStringSubmatchIndex(text, -1) {
			b.WriteString(shortly(text[at:m[0]], header, value))
			usual := ""
			if m[6] >= 0 {
				usual = text[m[6]:m[7]]
			}
			v, ok := value(text[m[2]:m[3]], usual, m[4] >= 0)
			if !ok {
				v = text[m[0]:m[1]]
			}
			b.WriteString(v)
			at = m[1]
		}
		b.WriteString(shortly(text[at:], header, value))
		return b.String()
	})
	if len(missing) > 0 {
		slices.Sort(missing)
		return s, fmt.Errorf("these variables are not set: %s", strings.Join(slices.Compact(missing), ", "))
	}
	if s.Type == HTTP || s.Type == SSE {
		if why := badURL(s.URL); why != "" || strings.Contains(s.URL, "${") {
			return s, fmt.Errorf("with its variables, %s", why)
		}
	}
	for name, v := range s.Headers {
		if strings.ContainsAny(v, "\r\n\x00") {
			return s, fmt.Errorf("with its variables, the header %s has more than one line", kit.Clip(name))
		}
	}
	return s, nil
}

func shortly(text string, header bool, value func(name, usual string, has bool) (string, bool)) string {
	if !header {
		return text
	}
	return short().ReplaceAllStringFunc(text, func(m string) string {
		if v, ok := value(m[1:], "", false); ok {
			return v
		}
		return m
	})
}
