package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
	"sync"

	"dure/agent"
)

// state is a policy as it is at one moment. It never changes.
type state struct {
	Config
	deny, ask, allow table
	granted          []Rule
	warnings         []Warning
	hash             string
	bare             func() (*state, error) // it without what is lent and allows
	safe             map[string]bool
	fold             bool // names that differ in case are the same

	links map[string]string // folders of rules that lead elsewhere, and where

	roots []string // the workspace and further folders, each as given and resolved
	kept  []string // what must not go: the workspace and the home folder
	whole []string // what must not be emptied: those and further folders

	settings []string // protected paths beside those that are known by their names
}

// rule is a rule made ready to match.
type rule struct {
	text     string // as it is written back
	verdict  agent.Verdict
	reason   string // what a decision by it says
	source   string
	priority int
	stage    int // index in stageNames

	group, tool string // which calls its scope is about; "" = any

	names   []string // canonical names of tools
	glob    string   // of canonical names
	owner   string   // beginning of canonical names
	ofGroup string
	unknown string // a name that nobody knew

	about specifier
	not   bool // what its path matches is taken out of the other rules of its kind and source
	from  Source

	command *commandPattern
	path    *pathPattern
	name    string // pattern, or that of a host
	param   string
	bare    bool // it covers its tools as a whole
	broken  bool // what it says could not be read
}

// compile reads all rules. Those of the lists have no source.
func compile(c Config, granted []Rule) (*state, error) {
	if c.Mode == "" {
		c.Mode = agent.ModeDefault
	}
	if err := checkMode(c.Mode); err != nil {
		return nil, err
	}
	s := &state{Config: c, granted: granted, links: map[string]string{}, safe: map[string]bool{"NODE_ENV": true, "NO_COLOR": true, "LANG": true}}
	for _, name := range c.SafeVars {
		s.safe[name] = true
	}
	s.fold = c.Key != nil && c.Key("/A") == c.Key("/a")
	if s.Mode == agent.ModeBypass && s.DisableBypass {
		s.Mode = agent.ModeDefault
		s.warnings = append(s.warnings, Warning{Rule: string(agent.ModeBypass), Column: 1, Text: errBypass.Error() + ": the mode is default"})
	}
	s.places()
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %v %v %v\n", slices.Sorted(slices.Values(c.SafeVars)), c.Groups, c.ManagedOnly, c.DisableBypass, c.PowerShell)
	if len(c.Settings) > 0 {
		fmt.Fprintf(h, "%q\n", slices.Sorted(slices.Values(c.Settings)))
	}
	for _, r := range c.all(granted) {
		if err := s.take(r, h); err != nil {
			return nil, err
		}
	}
	s.hash = hex.EncodeToString(h.Sum(nil))[:16]
	s.bare = sync.OnceValues(func() (*state, error) {
		return compile(c, slices.DeleteFunc(slices.Clone(granted), lentAllow))
	})
	return s, nil
}

// places finds the folders that floors are about.
func (s *state) places() {
	for i, dir := range append([]string{s.Dir}, s.Extra...) {
		if dir == "" {
			continue
		}
		resolved := dir
		if s.Resolve != nil {
			if _, r, err := s.Resolve(dir); err == nil {
				resolved = r
			}
		}
		s.roots = append(s.roots, dir, resolved)
		s.whole = append(s.whole, s.basesOf(dir)...)
		if i == 0 {
			s.kept = append(s.kept, s.basesOf(dir)...)
		}
	}
	for _, p := range s.Settings {
		s.settings = append(s.settings, s.basesOf(p)...)
	}
	if s.Home != "" {
		s.kept = append(s.kept, s.basesOf(s.Home)...)
		s.whole = append(s.whole, s.basesOf(s.Home)...)
	}
}

// all returns the rules of the configuration and the granted ones.
func (c Config) all(granted []Rule) []Rule {
	all := make([]Rule, 0, len(c.Deny)+len(c.Ask)+len(c.Allow)+len(c.Rules)+len(granted))
	for _, list := range []struct {
		verdict agent.Verdict
		texts   []string
	}{{agent.Deny, c.Deny}, {agent.AskUser, c.Ask}, {agent.Allow, c.Allow}} {
		for _, text := range list.texts {
			all = append(all, Rule{Text: text, Verdict: list.verdict})
		}
	}
	return append(append(all, c.Rules...), granted...)
}

// take adds a rule, or says in a warning why it does not.
func (s *state) take(r Rule, h hash.Hash) error {
	if r.Verdict == agent.Allow && s.ManagedOnly && r.Source.Layer != Managed {
		return nil
	}
	fmt.Fprintf(h, "%q %q %d %q %q %q\n", r.Written(), r.Verdict, r.Priority, r.Scope, r.Source.Dir, r.Reason)
	ready, w, err := s.compile(r)
	if err != nil {
		return err
	}
	if w != nil {
		s.warnings = append(s.warnings, *w)
	}
	if ready == nil {
		return nil
	}
	switch ready.verdict {
	case agent.Deny:
		s.deny.add(ready)
	case agent.AskUser:
		s.ask.add(ready)
	default:
		s.allow.add(ready)
	}
	return nil
}

// try makes a rule ready without leaving anything of it.
func (s *state) try(r Rule) (*rule, *Warning, error) {
	with := *s
	with.links = map[string]string{}
	return with.compile(r)
}

// compile makes a rule ready. An allow rule with a fault is none: nil. Of one that
// denies or asks with a fault in its specifier, the tool as a whole is left; when
// not even that can be told, it is an error.
func (s *state) compile(r Rule) (*rule, *Warning, error) {
	text := r.Written()
	stage, err := r.stage()
	if err != nil {
		return nil, nil, fmt.Errorf("reading rule %q: %w", text, err)
	}
	warn := func(f *fault) *Warning {
		return &Warning{Rule: text, Source: r.Source, Column: f.column, Text: f.text}
	}
	out := &rule{broken: r.Broken, verdict: r.Verdict, priority: r.Priority, stage: stage, source: r.Source.String(), from: r.Source, text: text}
	if !out.scope(r.Scope, s) {
		return nil, nil, nil
	}
	name, spec, has, at, f := split(text)
	if f == nil || name != "" {
		if g := s.target(out, name); g != nil {
			f, name = g, ""
		}
	}
	var w *Warning
	switch {
	case f != nil && r.Verdict == agent.Allow:
		f.text = "skipped: " + f.text
		return nil, warn(f), nil
	case f != nil && name == "":
		return nil, nil, fmt.Errorf("reading %s rule: %w", r.Verdict, fmt.Errorf("%s", warn(f)))
	case f == nil && has:
		f = s.specify(out, name, spec, at, r.Source)
		if f != nil && r.Verdict == agent.Allow {
			f.text = "skipped: " + f.text
			return nil, warn(f), nil
		}
	}
	if f != nil {
		f.text += fmt.Sprintf(": taken for every call of %s", name)
		w = warn(f)
		out.about, out.text, out.broken = noSpecifier, name, true
	}
	if out.about == noSpecifier {
		out.bare = true
		s.widen(out)
	}
	if out.unknown != "" && w == nil {
		w = &Warning{Rule: text, Source: r.Source, Column: 1, Text: errNoTool, Unknown: true}
	}
	s.write(out, has && f == nil, spec)
	out.reason = fmt.Sprintf("%s rule %s", r.Verdict, text)
	if r.Reason != "" {
		out.reason += ": " + r.Reason
	}
	return out, w, nil
}

// stage returns where a rule belongs among [stageNames].
func (r Rule) stage() (int, error) {
	if _, ok := map[agent.Verdict]bool{agent.Allow: true, agent.AskUser: true, agent.Deny: true}[r.Verdict]; !ok {
		return 0, fmt.Errorf("%q is none of allow, ask, deny", r.Verdict)
	}
	denies := 1
	if r.Verdict == agent.Deny {
		denies = 0
	}
	switch r.Scope.Stage {
	case "", "global":
		return globalDeny + denies, nil
	case "user":
		return userDeny + denies, nil
	case "channel":
		return channelPolicy, nil
	case "group":
		return groupPolicy, nil
	case "tool":
		return toolPolicy, nil
	}
	return 0, fmt.Errorf("scope %q is none of global, user, channel, group, tool", r.Scope.Stage)
}

// scope reports whether the rule can ever apply to whom the policy is for.
func (r *rule) scope(sc Scope, s *state) bool {
	switch sc.Stage {
	case "user":
		return sc.Subject == "" || sc.Subject == s.User
	case "channel":
		return sc.Subject == "" || sc.Subject == s.Channel
	case "group":
		r.group = sc.Subject
	case "tool":
		r.tool, _ = s.understand(sc.Subject)
	}
	return true
}

// applies reports whether a call is in the scope of the rule.
func (r *rule) applies(p *agent.Proposal) bool {
	return (r.group == "" || r.group == p.Group) && (r.tool == "" || r.tool == p.Call.Tool)
}

// target reads the name of the tool.
func (s *state) target(r *rule, name string) *fault {
	if group, ok := strings.CutPrefix(name, "group:"); ok {
		if group == "" || strings.ContainsAny(group, "*:") {
			return &fault{1, errNotARule}
		}
		r.ofGroup = group
		return nil
	}
	if owner, ok := strings.CutSuffix(name, ":*"); ok {
		if owner == "" || strings.ContainsAny(owner, "*:") {
			return &fault{1, errNotARule}
		}
		r.ofGroup, r.owner = owner, owner+"__"
		return nil
	}
	switch {
	case strings.Contains(name, ":"):
		return &fault{strings.IndexByte(name, ':') + 1, errNotARule}
	case strings.Contains(name, "*"):
		if r.verdict == agent.Allow && !wholeServer(name) {
			return &fault{strings.IndexByte(name, '*') + 1, errWideAllow}
		}
		r.glob = name
		return nil
	case name == "mcp__":
		return &fault{1, errNotARule}
	case strings.HasPrefix(name, "mcp__") && !strings.Contains(name[len("mcp__"):], "__"):
		r.owner = name + "__"
		return nil
	}
	if strings.EqualFold(name, "PowerShell") {
		if r.names = []string{shellTool}; r.verdict == agent.Allow && !s.PowerShell {
			r.names, r.unknown = nil, name // another shell reads the lines here
		}
		return nil
	}
	canonical, ok := s.understand(name)
	if !ok && !strings.HasPrefix(name, "mcp__") {
		r.unknown = name
	}
	r.names = []string{canonical}
	return nil
}

// wholeServer reports whether a pattern names one server before its first *.
func wholeServer(name string) bool {
	server, ok := strings.CutPrefix(name, "mcp__")
	if !ok {
		return false
	}
	server, _, _ = strings.Cut(server, "*")
	at := strings.Index(server, "__")
	return at > 0
}

// understand returns the canonical name, or the name itself and that it is not
// known.
func (s *state) understand(name string) (string, bool) {
	if s.Canonical != nil {
		if c, ok := s.Canonical(name); ok {
			return c, true
		}
		return name, false
	}
	if c, ok := known[name]; ok {
		return c, true
	}
	return name, true
}

// widen adds the tools that a rule on a tool as a whole is about as well.
func (s *state) widen(r *rule) {
	if len(r.names) == 0 {
		return
	}
	// Reading as a whole, and changing as a whole, is about every path, whatever
	// tool or command touches it.
	switch r.names[0] {
	case readTool:
		r.about, r.path = aboutRead, &pathPattern{bases: []string{""}, below: true}
	case editTool:
		r.about, r.path = aboutEdit, &pathPattern{bases: []string{""}, below: true}
	}
	more := against
	if r.verdict == agent.Allow {
		more = along
	}
	r.names = append(r.names, more[r.names[0]]...)
}

// write sets the text under which the rule is known.
func (s *state) write(r *rule, has bool, spec string) {
	name, _, _ := strings.Cut(r.text, "(")
	if len(r.names) > 0 && r.unknown == "" && !strings.EqualFold(name, "PowerShell") {
		canonical := r.names[0]
		switch {
		case has && r.about == aboutRead:
			canonical = readTool
		case has && r.about == aboutEdit:
			canonical = editTool
		}
		name = s.show(canonical)
	}
	r.text = name
	if has {
		r.text += "(" + spec + ")"
	}
}

func (s *state) show(canonical string) string {
	if s.Shown != nil {
		return s.Shown(canonical)
	}
	return shown(canonical)
}

// specify reads what stands between the parentheses.
func (s *state) specify(r *rule, name, spec string, at int, from Source) *fault {
	canonical := name
	if len(r.names) > 0 {
		canonical = r.names[0]
	}
	allows := r.verdict == agent.Allow
	r.about = specifierOf(canonical, name)
	if param, value, ok := paramOf(spec); ok && !(r.about == aboutHost && param == "domain") && !primary[param] {
		if !allows {
			// A command or an agent may be meant just as well: see table.add.
			r.param, r.name = param, value
			if r.about != aboutCommand && r.about != aboutName {
				r.about = aboutParam
				return nil
			}
		} else if r.about == noSpecifier {
			return &fault{at, errDenyOnly}
		}
	}
	switch r.about {
	case aboutCommand:
		var f *fault
		r.command, f = readCommand(spec, at, allows, strings.EqualFold(name, "PowerShell"))
		if f == nil && s.fold && !allows {
			r.command.foldProgram()
		}
		return f
	case aboutRead, aboutEdit:
		var f *fault
		r.path, f = s.readPath(spec, at, allows, from)
		if f == nil {
			r.not = r.path.not
			r.path.self = !allows || r.about == aboutRead
		}
		return f
	case aboutHost:
		host, ok := strings.CutPrefix(spec, "domain:")
		if !ok {
			return &fault{at, "write domain:HOST"}
		}
		var f *fault
		r.name, f = readHost(host, at+len("domain:"))
		return f
	case aboutName:
		r.command = &commandPattern{glob: trailing(spec)}
		return nil
	}
	if r.unknown != "" {
		return &fault{1, errNoTool}
	}
	return &fault{at, errNoPart}
}

// paramOf reads param:value. A value of * alone is the end of a command's pattern.
func paramOf(spec string) (param, value string, ok bool) {
	param, value, ok = strings.Cut(spec, ":")
	if !ok || param == "" || value == "" || value == "*" {
		return "", "", false
	}
	for i, c := range []byte(param) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return "", "", false
		}
	}
	return param, value, true
}
