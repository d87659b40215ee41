package policy

import (
	"bytes"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"dure/agent"
)

// table has the rules of one verdict by what they can match, so that a decision
// looks only at those that may.
type table struct {
	count   int
	tools   map[string][]*rule // whole tools
	groups  map[string][]*rule
	globs   []*rule // whole tools by a part of their names
	unknown []*rule // whole tools that nobody knew
	first   map[string][]*rule
	wild    []*rule // commands whose first word is not known
	paths   []*rule
	nots    []*rule
	hosts   []*rule
	names   []*rule
	params  []*rule
}

func (t *table) add(r *rule) {
	t.count++
	if r.param != "" {
		t.params = append(t.params, r)
	}
	switch {
	case r.bare:
		t.addBare(r)
		if r.path != nil {
			t.paths = append(t.paths, r)
		}
	case r.about == aboutCommand && r.command.first != "":
		if t.first == nil {
			t.first = map[string][]*rule{}
		}
		t.first[r.command.first] = append(t.first[r.command.first], r)
	case r.about == aboutCommand:
		t.wild = append(t.wild, r)
	case r.not:
		t.nots = append(t.nots, r)
	case r.path != nil:
		t.paths = append(t.paths, r)
	case r.about == aboutHost:
		t.hosts = append(t.hosts, r)
	case r.about == aboutName:
		t.names = append(t.names, r)
	}
}

func (t *table) addBare(r *rule) {
	if t.tools == nil {
		t.tools, t.groups = map[string][]*rule{}, map[string][]*rule{}
	}
	for _, n := range r.names {
		t.tools[n] = append(t.tools[n], r)
	}
	if r.ofGroup != "" {
		t.groups[r.ofGroup] = append(t.groups[r.ofGroup], r)
	}
	if r.glob != "" || r.owner != "" {
		t.globs = append(t.globs, r)
	}
	if r.unknown != "" {
		t.unknown = append(t.unknown, r)
	}
}

// words has the rule that speaks in each stage.
type words struct {
	best    [len(stageNames)]*rule
	sole    *rule // the first that matched
	several bool  // others have matched too
}

var strictness = map[agent.Verdict]int{agent.Pass: 0, agent.Allow: 1, agent.AskUser: 2, agent.Deny: 3}

func (w *words) add(r *rule) {
	switch w.sole {
	case nil:
		w.sole = r
	case r:
	default:
		w.several = true
	}
	b := w.best[r.stage]
	if b == nil || strictness[r.verdict] > strictness[b.verdict] || r.verdict == b.verdict && r.priority > b.priority {
		w.best[r.stage] = r
	}
}

// strictest returns the rule that decides.
func (w *words) strictest() *rule {
	var best *rule
	for _, r := range w.best {
		if r != nil && (best == nil || strictness[r.verdict] > strictness[best.verdict]) {
			best = r
		}
	}
	return best
}

func (w *words) opinion(stage string) agent.Opinion {
	if r := w.strictest(); r != nil {
		return r.opinion(stage)
	}
	return agent.Opinion{Stage: stage}
}

func (r *rule) opinion(stage string) agent.Opinion {
	return agent.Opinion{Stage: stage, Verdict: r.verdict, Reason: r.reason, Rule: r.text, Source: r.source}
}

// collect finds every rule that denies or asks about anything in a call.
func (t *table) collect(l *look, w *words) {
	if t.count == 0 {
		return
	}
	t.whole(l, w)
	for _, r := range t.params {
		if r.applies(&l.Proposal) && l.meant(r) && hasParam(l.Call.Input, r.param, r.name) {
			w.add(r)
		}
	}
	if len(t.first)+len(t.wild) > 0 {
		for _, list := range [...][]agent.SimpleCommand{l.Effects.Commands, l.started()} {
			for i := range list {
				t.command(l, &list[i], w)
			}
		}
	}
	if len(t.paths) > 0 {
		t.places(l, w)
	}
	if len(t.hosts) > 0 {
		l.eachHost(func(host string) {
			for _, r := range t.hosts {
				if r.applies(&l.Proposal) && hostFits(r.name, host) {
					w.add(r)
				}
			}
		})
	}
	t.named(l, w)
}

// whole adds the rules on the tool as a whole.
func (t *table) whole(l *look, w *words) {
	tool := l.Call.Tool
	for _, r := range t.tools[tool] {
		if r.applies(&l.Proposal) {
			w.add(r)
		}
	}
	if len(l.Effects.Commands) > 0 && tool != shellTool { // it goes to the same shell
		for _, r := range t.tools[shellTool] {
			if r.verdict != agent.Allow && r.applies(&l.Proposal) {
				w.add(r)
			}
		}
	}
	if l.Group != "" {
		for _, r := range t.groups[l.Group] {
			if r.applies(&l.Proposal) {
				w.add(r)
			}
		}
	}
	for _, r := range t.globs {
		if (r.glob != "" && star(r.glob, tool) || r.owner != "" && strings.HasPrefix(tool, r.owner)) && r.applies(&l.Proposal) {
			w.add(r)
		}
	}
	for _, r := range t.unknown {
		if l.meant(r) && r.applies(&l.Proposal) {
			w.add(r)
		}
	}
}

// meant reports whether a rule names the tool of the call, which may have appeared
// since the rule was read.
func (l *look) meant(r *rule) bool {
	tool := l.Call.Tool
	switch {
	case r.unknown != "":
		name, _ := l.s.understand(r.unknown)
		return name == tool || slices.Contains(r.names, tool)
	case r.glob != "":
		return star(r.glob, tool)
	case r.owner != "" && strings.HasPrefix(tool, r.owner):
		return true
	case r.ofGroup != "":
		return r.ofGroup == l.Group
	}
	return slices.Contains(r.names, tool)
}

// command adds the rules against a command and against those that it runs.
func (t *table) command(l *look, c *agent.SimpleCommand, w *words) {
	for i := range c.Runs {
		t.command(l, &c.Runs[i], w)
	}
	if len(c.Argv) == 0 {
		return
	}
	var room, room2 [256]byte
	text := join(room[:0], c.Argv, ' ')
	t.against(l, c, text, w)
	end := bytes.IndexByte(text, ' ')
	if end < 0 {
		end = len(text)
	}
	word := string(text[:end])
	program := programOf(word)
	if l.s.fold || l.s.PowerShell {
		program = strings.ToLower(program)
	}
	if program != word {
		t.against(l, c, append(append(room2[:0], program...), text[end:]...), w)
	}
	if end < len(c.Argv[0]) { // a blank in the name of the program
		base := path.Base(strings.ReplaceAll(c.Argv[0], `\`, "/"))
		t.against(l, c, append(append(room2[:0], base...), text[len(c.Argv[0]):]...), w)
	}
}

// against adds the rules against a command whose words are joined by blanks.
func (t *table) against(l *look, c *agent.SimpleCommand, text []byte, w *words) {
	end := bytes.IndexByte(text, ' ')
	if end < 0 {
		end = len(text)
	}
	key := programOf(string(text[:end]))
	t.fitting(l, c, t.first[key], text, w)
	if small := strings.ToLower(key); small != key {
		t.fitting(l, c, t.first[small], text, w)
	}
	t.fitting(l, c, t.wild, text, w)
}

func (t *table) fitting(l *look, c *agent.SimpleCommand, rules []*rule, text []byte, w *words) {
	for _, r := range rules {
		if !r.applies(&l.Proposal) || r.names[0] == scriptTool && l.Call.Tool != scriptTool {
			continue
		}
		if r.command.matches(text) || r.command.vars && len(c.Vars) > 0 && r.command.matches(append(append(join(nil, c.Vars, ' '), ' '), text...)) {
			w.add(r)
		}
	}
}

func join(dst []byte, words []string, between byte) []byte {
	for i, word := range words {
		if i > 0 {
			dst = append(dst, between)
		}
		dst = append(dst, word...)
	}
	return dst
}

// places adds the rules against paths: one on reading is against changing too.
func (t *table) places(l *look, w *words) {
	l.gather()
	for i := range l.all {
		at := &l.all[i]
		for _, r := range t.paths {
			if r.about == aboutEdit && !at.write || !r.applies(&l.Proposal) {
				continue
			}
			if (r.path.matches(at.given) || at.resolved != at.given && r.path.matches(at.resolved) ||
				at.removed && (r.path.holds(at.given) || r.path.holds(at.resolved))) && !t.excepted(r, at, true) {
				w.add(r)
			}
		}
	}
}

// excepted reports whether a rule with ! takes a path out of another rule. With
// both it has to match the path as given and as resolved.
func (t *table) excepted(r *rule, at *place, both bool) bool {
	for _, n := range t.nots {
		if n.about != r.about || n.from.Layer != r.from.Layer || n.from.File != r.from.File || n.from.Dir != r.from.Dir {
			continue
		}
		given, resolved := n.path.matches(at.given), n.path.matches(at.resolved)
		if given && resolved || !both && (given || resolved) {
			return true
		}
	}
	return false
}

// named adds the rules on agents and skills.
func (t *table) named(l *look, w *words) {
	if len(t.names) == 0 {
		return
	}
	name, whole := subject(l.Call.Input)
	for _, r := range t.names {
		if !r.applies(&l.Proposal) || !l.meant(r) {
			continue
		}
		if nameFits(r.command.glob, whole) || r.verdict != agent.Allow && nameFits(r.command.glob, name) {
			w.add(r)
		}
	}
}

func nameFits(pattern, name string) bool {
	if bare, ok := strings.CutSuffix(pattern, " *"); ok && bare == name {
		return true
	}
	return star(pattern, name)
}

// subject returns the name of the agent or skill that an input is about, and the
// name with its arguments.
func subject(input json.RawMessage) (name, whole string) {
	var in struct {
		SubagentType string `json:"subagent_type"`
		Agent        string `json:"agent"`
		Skill        string `json:"skill"`
		Command      string `json:"command"`
		Name         string `json:"name"`
		Args         string `json:"args"`
		Arguments    string `json:"arguments"`
	}
	if json.Unmarshal(input, &in) != nil {
		return "", ""
	}
	for _, name = range []string{in.SubagentType, in.Agent, in.Skill, in.Command, in.Name} {
		if name != "" {
			break
		}
	}
	whole = strings.TrimPrefix(name, "/")
	name, _, _ = strings.Cut(whole, " ")
	for _, args := range []string{in.Args, in.Arguments} {
		if args != "" {
			return name, whole + " " + args
		}
	}
	return name, whole
}

// hasParam reports whether a top-level scalar of the input fits a pattern.
func hasParam(input json.RawMessage, param, pattern string) bool {
	var in map[string]json.RawMessage
	if json.Unmarshal(input, &in) != nil {
		return false
	}
	for name, raw := range in {
		if !strings.EqualFold(name, param) || len(raw) == 0 || raw[0] == '{' || raw[0] == '[' {
			continue
		}
		text := string(raw)
		if raw[0] == '"' && json.Unmarshal(raw, &text) != nil {
			continue
		}
		if star(pattern, text) {
			return true
		}
	}
	return false
}
