package policy

import (
	"bytes"
	"maps"
	"strings"

	"dure/agent"
)

// look is a proposal and what can be told of it.
type look struct {
	s *state
	agent.Proposal

	gathered bool
	all      []place
	index    map[string]int // of all, when they are many
	links    map[string]string
	runs     []agent.SimpleCommand // what started made of Runs

	words words // the rules that speak
	sum   summary
	bare  *rule // allows the tool as a whole
}

// place is a path of a proposal.
type place struct {
	path            string // as the proposal has it
	given, resolved string // as patterns see it
	inside          bool   // both are
	own             bool   // ... and the tool's own, see [Config]

	read, write, removed bool
	ofRead, ofWrite      bool // a command reads, or writes it
}

// many is from how many paths on they are looked up by a map.
const many = 16

// started returns the programs that a tool itself starts, as commands. The shell of
// a command line is not one of them.
func (l *look) started() []agent.SimpleCommand {
	if l.lines() && len(l.Effects.Commands) > 0 {
		return nil
	}
	if l.runs == nil && len(l.Effects.Runs) > 0 {
		l.runs = make([]agent.SimpleCommand, len(l.Effects.Runs))
		for i, argv := range l.Effects.Runs {
			l.runs[i].Argv = argv
		}
	}
	return l.runs
}

// lines reports whether the call is a command line, or a script with arguments.
func (l *look) lines() bool { return l.Call.Tool == shellTool || l.Call.Tool == scriptTool }

// gather finds the paths of the call, each once, and where they lead.
func (l *look) gather() {
	if l.gathered {
		return
	}
	l.gathered = true
	e := &l.Effects
	if n := len(e.Reads) + len(e.Writes); n > 0 {
		l.all = make([]place, 0, n)
	}
	for _, p := range e.Reads {
		l.at(p).read = true
	}
	for _, p := range e.Writes {
		at := l.at(p)
		at.write, at.removed = true, removers[l.Call.Tool]
	}
	for i := range e.Commands {
		l.gatherOf(&e.Commands[i])
	}
}

func (l *look) gatherOf(c *agent.SimpleCommand) {
	for _, p := range c.Reads {
		at := l.at(p)
		at.read, at.ofRead = true, true
	}
	for _, p := range c.Writes {
		at := l.at(p)
		at.write, at.ofWrite = true, true
	}
	for _, p := range c.Removes {
		at := l.at(p)
		at.write, at.ofWrite, at.removed = true, true, true
	}
	for i := range c.Runs {
		l.gatherOf(&c.Runs[i])
	}
}

// at returns the place of a path. It is valid until the next call.
func (l *look) at(p string) *place {
	if l.index != nil {
		if i, ok := l.index[p]; ok {
			return &l.all[i]
		}
	} else {
		for i := range l.all {
			if l.all[i].path == p {
				return &l.all[i]
			}
		}
	}
	l.all = append(l.all, l.find(p))
	switch {
	case l.index != nil:
		l.index[p] = len(l.all) - 1
	case len(l.all) > many:
		l.index = make(map[string]int, 2*many)
		for i := range l.all {
			l.index[l.all[i].path] = i
		}
	}
	return &l.all[len(l.all)-1]
}

// find follows a path. What cannot be followed is outside.
func (l *look) find(p string) place {
	s := l.s
	at := place{path: p, given: s.keyed(slashed(p))}
	if s.Resolve == nil || p == "" {
		at.resolved = at.given
		return at
	}
	given, resolved, err := s.Resolve(p)
	if err != nil {
		at.resolved = at.given
		l.link(p, "")
		return at
	}
	at.given, at.resolved = s.keyed(slashed(given)), s.keyed(slashed(resolved))
	at.own = s.Own != nil && s.Own(l.Call.Tool, given) && s.Own(l.Call.Tool, resolved)
	at.inside = at.own || s.Inside != nil && s.Inside(given) && s.Inside(resolved)
	if resolved != p {
		l.link(p, resolved)
	}
	return at
}

func (l *look) link(from, to string) {
	if l.links == nil {
		l.links = map[string]string{}
	}
	l.links[from] = to
}

// basis is what the policy knew beside the proposal.
func (l *look) basis() *agent.Basis {
	l.gather()
	s := l.s
	links := l.links
	if len(s.links) > 0 { // never written to once the rules are read
		if links == nil {
			links = s.links
		} else {
			links = maps.Clone(links)
			maps.Copy(links, s.links)
		}
	}
	return &agent.Basis{Mode: s.Mode, Roots: s.roots, Home: s.Home, Confined: s.confined(), Links: links, Policy: s.hash}
}

func (s *state) confined() string {
	if s.Confined == nil {
		return "full"
	}
	return s.Confined()
}

// eachHost calls f with every host as it is compared.
func (l *look) eachHost(f func(string)) {
	for _, h := range l.Effects.Hosts {
		f(hostName(h))
	}
	for i := range l.Effects.Commands {
		hostsOf(&l.Effects.Commands[i], func(h string) { f(hostName(h)) })
	}
}

func hostsOf(c *agent.SimpleCommand, f func(string)) {
	for _, h := range c.Hosts {
		f(h)
	}
	for i := range c.Runs {
		hostsOf(&c.Runs[i], f)
	}
}

// forbidden is what nobody may do: what it says holds in every mode.
func forbidden(p agent.Proposal) string {
	e := &p.Effects
	if e.Destructive != "" {
		return e.Destructive
	}
	nul := hasNUL(e.Reads) || hasNUL(e.Writes) || hasNUL(e.Hosts)
	for _, argv := range e.Runs {
		nul = nul || hasNUL(argv)
	}
	for i := range e.Commands {
		nul = nul || commandNUL(&e.Commands[i])
	}
	if !nul && (p.Call.Tool == shellTool || p.Call.Tool == scriptTool) {
		nul = escapedNUL(p.Call.Input)
	}
	if nul {
		return "what the call would touch contains a NUL character"
	}
	return ""
}

func commandNUL(c *agent.SimpleCommand) bool {
	if hasNUL(c.Argv) || hasNUL(c.Vars) || hasNUL(c.Reads) || hasNUL(c.Writes) || hasNUL(c.Removes) || hasNUL(c.Hosts) {
		return true
	}
	for i := range c.Runs {
		if commandNUL(&c.Runs[i]) {
			return true
		}
	}
	return false
}

func hasNUL(list []string) bool {
	for _, s := range list {
		if strings.IndexByte(s, 0) >= 0 {
			return true
		}
	}
	return false
}

// escapedNUL reports whether a text in JSON has the character.
func escapedNUL(data []byte) bool {
	for {
		i := bytes.Index(data, []byte(`\u0000`))
		if i < 0 {
			return false
		}
		before := 0
		for i-before > 0 && data[i-before-1] == '\\' {
			before++
		}
		if before%2 == 0 {
			return true
		}
		data = data[i+1:]
	}
}
