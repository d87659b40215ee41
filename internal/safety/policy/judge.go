package policy

import (
	"slices"
	"strconv"
	"strings"

	"dure/agent"
)

// piece is a part of a call that needs an allowance of its own: a command, a path
// or a host that belongs to no command, or the call as such.
type piece struct {
	command *agent.SimpleCommand
	path    string
	write   bool
	host    string
	call    bool

	verdict agent.Verdict
	by      string // rule, read-only or mode
	rule    *rule
	why     string // what the mode says it is about
}

// what says in words what the piece is.
func (p *piece) what() string {
	switch {
	case p.command != nil:
		return "runs " + quoted(p.command.Argv)
	case p.write:
		return "changes " + printable(p.path)
	case p.path != "":
		return "reads " + printable(p.path)
	case p.host != "":
		return "contacts " + printable(p.host)
	}
	return "is called"
}

// summary is what became of the pieces of a call. The strictest verdict counts.
type summary struct {
	worst                 piece
	open                  []piece // what is not allowed
	rule                  *rule   // the first that allows a piece
	ruled, harmless, left int
	unreadable            string
	keep                  bool // every piece
	pieces                []piece
}

func (s *summary) add(p piece, w *words) {
	switch p.by {
	case "rule":
		s.ruled++
		if s.rule == nil {
			s.rule = p.rule
		}
		w.add(p.rule)
	case "read-only":
		s.harmless++
	default:
		s.left++
	}
	if strictness[p.verdict] > strictness[s.worst.verdict] || p.by == "mode" && s.worst.by != "mode" && p.verdict == s.worst.verdict {
		s.worst = p
	}
	if p.verdict != agent.Allow {
		s.open = append(s.open, p)
	}
	if s.keep {
		s.pieces = append(s.pieces, p)
	}
}

// allow is the word of the allow rules.
func (s *summary) allow() agent.Opinion {
	switch {
	case s.unreadable != "":
		return agent.Opinion{Stage: "allow", Reason: "no rule allows what cannot be read: " + s.unreadable}
	case s.ruled == 0:
		return agent.Opinion{Stage: "allow"}
	case s.worst.verdict == agent.Allow:
		return s.rule.opinion("allow")
	}
	return agent.Opinion{Stage: "allow", Reason: s.rule.reason + ", but no rule for what " + s.worst.what(), Rule: s.rule.text, Source: s.rule.source}
}

// readOnly is the word of the set of what is harmless.
func (s *summary) readOnly() agent.Opinion {
	if s.harmless == 0 || s.left > 0 || s.ruled > 0 {
		return agent.Opinion{Stage: "read-only"}
	}
	return agent.Opinion{Stage: "read-only", Verdict: agent.Allow, Reason: s.worst.why}
}

// mode is the word of the mode on what is left.
func (s *summary) mode(m agent.Mode) agent.Opinion {
	if s.left == 0 {
		return agent.Opinion{Stage: "mode", Source: string(m)}
	}
	reason := "mode " + string(m) + ": " + s.worst.why
	if m == agent.ModePlan && s.worst.verdict == agent.Deny {
		reason += ", and nothing is changed before the plan is approved"
	}
	return agent.Opinion{Stage: "mode", Verdict: s.worst.verdict, Reason: reason, Source: string(m)}
}

// weigh decides on each piece of the call by allow rules, the set of what is
// harmless, and the mode. With keep the summary has every piece. The rules that allow
// go to the words of the look.
func (l *look) weigh(keep bool) *summary {
	l.gather()
	l.sum = summary{keep: keep, unreadable: l.Effects.Unreadable}
	if l.sum.unreadable == "" {
		l.bare = l.allowance()
	}
	l.run()
	return &l.sum
}

// allowance returns the rule that allows the tool as a whole.
func (l *look) allowance() *rule {
	var w words
	l.s.allow.whole(l, &w)
	if len(l.s.allow.names) > 0 {
		l.s.allow.named(l, &w)
	}
	return w.strictest()
}

func (l *look) run() {
	if l.bare != nil && !l.lines() {
		l.add(piece{call: true, rule: l.bare})
		return
	}
	if why := l.sum.unreadable; why != "" {
		l.add(piece{call: true, verdict: l.mode(rowUnreadable), why: "what it would do cannot be told: " + why})
	}
	commands := l.Effects.Commands
	if l.lines() && len(commands) == 0 {
		commands = l.started()
	}
	for i := range commands {
		l.command(&commands[i])
	}
	outside := false
	for i := range l.all {
		l.place(&l.all[i])
		outside = outside || !l.all[i].inside
	}
	l.hosts()
	l.rest(len(commands), outside)
}

// add takes a piece. One with a rule is allowed by it; one without a verdict is
// harmless.
func (l *look) add(p piece) {
	switch {
	case p.rule != nil:
		p.verdict, p.by = agent.Allow, "rule"
	case p.verdict == agent.Pass:
		p.verdict, p.by = agent.Allow, "read-only"
	default:
		p.by = "mode"
	}
	l.sum.add(p, &l.words)
}

func (l *look) mode(r row) agent.Verdict {
	v, ok := modeRow(r, l.s.Mode)
	if !ok {
		return agent.Deny // a mode that nobody knows
	}
	return v
}

// command judges one command. What a transparent one runs is judged in its place.
func (l *look) command(c *agent.SimpleCommand) {
	if l.sum.unreadable == "" {
		if r := l.allowing(c); r != nil {
			l.add(piece{command: c, rule: r})
			return
		}
		if l.reads(c) {
			l.add(piece{command: c, why: "it reads inside the workspace"})
			return
		}
	}
	if c.Transparent && c.Flagged == "" && len(c.Runs) > 0 && l.harmlessVars(c) {
		for i := range c.Runs {
			l.command(&c.Runs[i])
		}
		return
	}
	l.left(c)
}

// left is the word of the mode on a command that no rule allows.
func (l *look) left(c *agent.SimpleCommand) {
	p := piece{command: c}
	edits := c.Kind == agent.CommandEdits && c.Flagged == "" && len(c.Runs) == 0 && l.harmlessVars(c)
	switch outside := l.outsideOf(c); {
	case edits && outside == "":
		p.verdict, p.why = l.mode(rowEdit), "it "+p.what()
	case edits:
		p.verdict, p.why = l.mode(rowOutside), printable(outside)+" is outside of the workspace"
		if l.s.Mode == agent.ModePlan && l.changesInside(c) {
			p.verdict = l.mode(rowEdit)
		}
	default:
		p.verdict, p.why = l.mode(rowCommand), l.whyCommand(&p, outside)
		if l.s.Mode == agent.ModePlan && changes(c) {
			p.verdict = agent.Deny
		}
	}
	l.add(p)
}

// whyCommand says what is the matter with a command: the rule that nearly allows it,
// what a command that only prints would read elsewhere, or that it is one.
func (l *look) whyCommand(p *piece, outside string) string {
	c := p.command
	if r, but := l.nearly(c); r != nil {
		return "the rule " + r.text + " does not cover this: " + but
	}
	switch {
	case c.Kind == agent.CommandReads && c.Flagged == "" && outside != "" && len(c.Writes)+len(c.Hosts)+len(c.Runs) == 0 && l.harmlessVars(c):
		return printable(outside) + " is outside of the workspace"
	case len(l.Effects.Commands) > 1: // say which
		return "it " + p.what()
	}
	return "it runs a command"
}

// nearly returns the rule that would allow a command but for one of its flags or for
// a variable before it, and what that is.
func (l *look) nearly(c *agent.SimpleCommand) (r *rule, but string) {
	but = c.Flagged
	for _, v := range c.Vars {
		if name, _, _ := strings.Cut(v, "="); but == "" && !l.s.safe[strings.TrimSuffix(name, "+")] {
			but = printable(name) + " is set"
		}
	}
	if but == "" || l.sum.unreadable != "" {
		return nil, ""
	}
	plain := *c
	plain.Flagged, plain.Vars = "", nil
	return l.allowing(&plain), printable(but)
}

func changes(c *agent.SimpleCommand) bool {
	return len(c.Writes)+len(c.Removes) > 0 || slices.ContainsFunc(c.Runs, func(r agent.SimpleCommand) bool { return changes(&r) })
}

func (l *look) changesInside(c *agent.SimpleCommand) bool {
	return slices.ContainsFunc(c.Writes, func(p string) bool { return l.at(p).inside })
}

// outsideOf returns a path of a command that is outside of the workspace.
func (l *look) outsideOf(c *agent.SimpleCommand) string {
	for _, list := range [...][]string{c.Reads, c.Writes, c.Removes} {
		for _, p := range list {
			if !l.at(p).inside {
				return p
			}
		}
	}
	return ""
}

// reads reports whether a command only prints what it reads inside, or where a
// rule allows reading.
func (l *look) reads(c *agent.SimpleCommand) bool {
	if c.Kind != agent.CommandReads || c.Flagged != "" || len(c.Writes)+len(c.Hosts) > 0 || len(c.Argv) > 0 && !l.harmlessVars(c) {
		return false
	}
	if c.Dir != "" && len(c.Argv) > 0 && programOf(c.Argv[0]) == "git" {
		return false // another folder can be a repository whose settings name programs
	}
	for _, p := range c.Reads {
		at := l.at(p)
		if !at.inside && l.pathRule(at, aboutRead) == nil {
			return false
		}
	}
	for i := range c.Runs {
		if !l.reads(&c.Runs[i]) {
			return false
		}
	}
	return true
}

func (l *look) harmlessVars(c *agent.SimpleCommand) bool {
	for _, v := range c.Vars {
		name, _, _ := strings.Cut(v, "=")
		if !l.s.safe[strings.TrimSuffix(name, "+")] {
			return false
		}
	}
	return true
}

// allowing returns a rule that allows a command. Rules for the shell hold for the
// command lines of other tools too, which go to the same shell.
func (l *look) allowing(c *agent.SimpleCommand) *rule {
	if l.bare != nil {
		return l.bare
	}
	t := &l.s.allow
	if len(c.Argv) == 0 {
		return nil
	}
	if !l.lines() { // another tool that takes a command line
		for _, r := range t.tools[shellTool] {
			if r.applies(&l.Proposal) {
				return r
			}
		}
	}
	var room [256]byte
	text := join(room[:0], c.Argv, markWord)
	harmless := l.harmlessVars(c)
	if away := l.away(c); away {
		elsewhere := *c
		elsewhere.Flagged = "another folder"
		c = &elsewhere
	}
	if r := l.allowingOf(t.first[c.Argv[0]], c, text, harmless); r != nil {
		return r
	}
	if l.s.PowerShell {
		if r := l.allowingOf(t.first[strings.ToLower(c.Argv[0])], c, text, harmless); r != nil {
			return r
		}
	}
	return l.allowingOf(t.wild, c, text, harmless)
}

// away reports whether a command works in a folder outside of the workspace, which
// no rule allows reading, or has a container change one. What it finds there is not what a rule for it means.
func (l *look) away(c *agent.SimpleCommand) bool {
	if c.Dir != "" {
		if at := l.at(c.Dir); !at.inside && l.pathRule(at, aboutRead) == nil {
			return true
		}
	}
	switch programOf(c.Argv[0]) {
	case "docker", "podman", "nerdctl": // what these change, a process that nothing confines changes for them
		return slices.ContainsFunc(c.Writes, func(p string) bool {
			at := l.at(p)
			return !at.inside && l.pathRule(at, aboutEdit) == nil
		})
	}
	return false
}

// placed is what a command is flagged with that has a path in place of a name. A
// rule that begins with the same path means it.
const placed = "a path in place of a name"

func (l *look) allowingOf(rules []*rule, c *agent.SimpleCommand, text []byte, harmless bool) *rule {
	for _, r := range rules {
		p := r.command
		switch {
		case !slices.Contains(r.names, l.Call.Tool) && (l.lines() || !slices.Contains(r.names, shellTool)), !r.applies(&l.Proposal):
		case p.fold && !l.s.PowerShell:
		case c.Flagged != "" && !p.exact && (c.Flagged != placed || p.first != c.Argv[0]):
		case p.vars:
			if len(c.Vars) > 0 && p.matches(append(append(join(nil, c.Vars, markWord), markWord), text...)) {
				return r
			}
		case harmless && p.matches(text):
			return r
		}
	}
	return nil
}

// pathRule returns a rule that allows reading or changing a path. What it resolves
// to needs a rule too, the same or another one.
func (l *look) pathRule(at *place, about specifier) *rule {
	t := &l.s.allow
	var given, resolved *rule
	for _, r := range t.paths {
		if r.about != about || !r.applies(&l.Proposal) || t.excepted(r, at, false) {
			continue
		}
		if given == nil && r.path.matches(at.given) {
			given = r
		}
		if resolved == nil && r.path.matches(at.resolved) {
			resolved = r
		}
		if given != nil && resolved != nil {
			return given
		}
	}
	return nil
}

// place judges a path that belongs to no command.
func (l *look) place(at *place) {
	writes, reads := at.write && !at.ofWrite, at.read && !at.ofRead
	readable := l.sum.unreadable == ""
	var edit *rule
	if at.write && readable {
		edit = l.pathRule(at, aboutEdit)
		if edit == nil && at.inside {
			edit = l.bare
		}
	}
	p := piece{path: at.path, write: true, rule: edit}
	if writes {
		switch {
		case edit != nil:
		case at.inside:
			p.verdict, p.why = l.mode(rowEdit), "it "+p.what()
		default:
			p.verdict, p.why = l.mode(rowOutside), printable(at.path)+" is outside of the workspace"
		}
		l.add(p)
	}
	if !reads || writes && (edit != nil || !at.inside) {
		return // who may change it may read it, and who may not is told so once
	}
	p = piece{path: at.path, why: "it reads inside the workspace"}
	switch {
	case at.inside:
	default:
		if readable {
			p.rule = l.pathRule(at, aboutRead)
		}
		p.verdict, p.why = l.mode(rowOutside), printable(at.path)+" is outside of the workspace"
	}
	if readable || p.verdict != agent.Pass {
		l.add(p)
	}
}

// hosts judges the hosts that belong to no command.
func (l *look) hosts() {
	for _, h := range l.Effects.Hosts {
		owned := false
		for i := range l.Effects.Commands {
			hostsOf(&l.Effects.Commands[i], func(of string) { owned = owned || of == h })
		}
		if owned {
			continue
		}
		p := piece{host: h}
		if l.sum.unreadable == "" && !l.lines() {
			name := hostName(h)
			if first := hostName(l.Effects.Hosts[0]); l.Call.Tool == fetchTool && twins(first, name) {
				name = first
			}
			p.rule = l.hostRule(name)
		}
		p.verdict, p.why = l.mode(rowCommand), "it "+p.what()
		l.add(p)
	}
}

// twins reports whether two hosts differ in a leading www. only. A fetch is led
// from one to the other, and names the one of its address first.
func twins(a, b string) bool { return a == "www."+b || b == "www."+a }

func (l *look) hostRule(host string) *rule {
	for _, r := range l.s.allow.hosts {
		if slices.Contains(r.names, l.Call.Tool) && r.applies(&l.Proposal) && hostFits(r.name, host) {
			return r
		}
	}
	return nil
}

// rest judges the call as such, where its paths, hosts and commands do not say it
// all.
func (l *look) rest(commands int, outside bool) {
	e := &l.Effects
	writes := slices.ContainsFunc(l.all, func(at place) bool { return at.write })
	p := piece{call: true, verdict: l.mode(rowCommand)}
	switch {
	case len(e.Runs) > 0 && (commands == 0 || !l.lines()):
		p.why = "it runs a command"
	case e.Powers != "":
		p.why = "it changes what runs later: " + printable(e.Powers)
	case e.Sensitive:
		p.why = "it reads what is private"
	case strings.HasPrefix(l.Call.Tool, "mcp__"): // what it says of itself is the word of its server
		p.why = "it is a tool of a server"
	case l.sum.unreadable != "", commands > 0, writes, len(e.Hosts) > 0:
		return
	case l.lines() && len(l.all) == 0:
		p.rule, p.why = l.bare, "nothing in it can be judged"
	case l.lines():
		return
	case l.Class != agent.Read && l.Class != agent.Idempotent:
		if outside {
			return
		}
		p.why = "it is not known to be harmless"
	case len(l.all) > 0:
		return
	default:
		p.verdict, p.why = agent.Pass, "it touches nothing"
	}
	l.add(p)
}

// maxShown is how much of a command or a path a reason shows, in bytes.
const maxShown = 160

// quoted writes words so that each can be told from the next.
func quoted(argv []string) string {
	var b strings.Builder
	for i, word := range argv {
		if i > 0 {
			b.WriteByte(' ')
		}
		if b.Len() > maxShown {
			b.WriteString("...")
			break
		}
		if plainWord(word) {
			b.WriteString(word)
		} else {
			b.WriteString(strconv.Quote(word))
		}
	}
	return cut(b.String())
}

func cut(s string) string {
	if len(s) <= maxShown {
		return s
	}
	return strings.ToValidUTF8(s[:maxShown], "") + "..."
}

func plainWord(word string) bool {
	for i := range len(word) {
		if c := word[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("\"'`$&|;<>()*?[]{}#~!\\", c) >= 0 {
			return false
		}
	}
	return word != ""
}

// printable writes a path so that it stays on its line.
func printable(path string) string {
	for _, r := range path {
		if !strconv.IsPrint(r) {
			return cut(strconv.Quote(path))
		}
	}
	return cut(path)
}
