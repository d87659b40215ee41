package policy

import (
	"runtime"
	"strings"
	"sync"

	"dure/agent"
)

// Fits returns what tells whether a rule fits a call in a folder. Of a call whose effects cannot
// be told, the name of its tool decides. A rule that cannot be read fits nothing.
func Fits(dir, home string, canonical func(name string) (string, bool)) func(rule string, p agent.Proposal) bool {
	var mu sync.Mutex
	known := map[string]*Policy{}
	return func(rule string, p agent.Proposal) bool {
		if p.Effects.Unparsed != "" || p.Effects.Unreadable != "" {
			rule, _, _ = strings.Cut(rule, "(")
			p.Effects = agent.Effects{}
		}
		mu.Lock()
		defer mu.Unlock()
		pol, ok := known[rule]
		if !ok {
			pol, _ = New(Config{
				Mode: agent.ModeDefault, Rules: []Rule{{Text: rule, Verdict: agent.Deny}}, Dir: dir, Home: home, Canonical: canonical,
				Resolve: func(p string) (string, string, error) { return p, p, nil }, Inside: func(string) bool { return true },
				PowerShell: runtime.GOOS == "windows",
			})
			known[rule] = pol
		}
		return pol != nil && pol.Before(p).By == "rule"
	}
}
