package policy

import (
	"errors"
	"regexp"
	"strings"

	"dure/agent"
)

// rule is a rule on whole tools. A tool matches one of its fields.
type rule struct {
	text    string
	name    string // a canonical name, or a spelling that nobody knew yet
	unknown bool   // name is such a spelling
	globs   []string
	group   string
	also    []string // tools that a rule against name is against as well
}

// covers has the tools through which the same could be done as through another.
// Rules against a tool are against these too; rules for it are not for them.
var covers = map[string][]string{
	"bash__exec":        {"bash__script"},
	"file-system__edit": {"file-system__write", "file-system__multi-edit"},
	"file-system__read": {"file-system__grep", "file-system__edit", "file-system__multi-edit"}, // all show what a file holds
}

var (
	rulePattern  = regexp.MustCompile(`^[A-Za-z0-9_.:*-]+$`)
	literalOwner = regexp.MustCompile(`^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__`)
	errSpecifier = errors.New("a rule on part of a tool, Tool(...), cannot be checked: name the tool alone")
	errNotARule  = errors.New("it names no tool: write a name, group:NAME, mcp__SERVER, or a name with *")
	errWideAllow = errors.New("an allow rule with * has to begin with a whole resource or server, as in bash__* or mcp__SERVER__*")
)

// parseRule reads a rule of [Config]. Rules are:
//
//	Bash, bash__exec, file_read    a tool, in any spelling
//	group:files, files:*           all tools of a group (the second form: or of a resource)
//	mcp__github                    all tools of a server
//	mcp__github__get_*, bash__*    the canonical names that fit
//	*                              everything; not to allow
//
// A rule against bash__exec is against bash__script too, and one against
// file-system__edit against the other tools that change files; one against
// file-system__read is against the tools that show a part of a file.
func parseRule(text string, allow bool, canonical func(string) (string, bool)) (rule, error) {
	r := rule{text: text}
	name := strings.TrimSuffix(strings.TrimSpace(text), "(*)")
	if strings.ContainsAny(name, "()") {
		return r, errSpecifier
	}
	if !rulePattern.MatchString(name) {
		return r, errNotARule
	}
	if group, ok := strings.CutPrefix(name, "group:"); ok {
		if group == "" || strings.ContainsAny(group, "*:") {
			return r, errNotARule
		}
		r.group = group
		return r, nil
	}
	if owner, ok := strings.CutSuffix(name, ":*"); ok {
		if owner == "" || strings.ContainsAny(owner, "*:") {
			return r, errNotARule
		}
		r.group, r.globs = owner, []string{owner + "__*"}
		return r, nil
	}
	switch {
	case strings.Contains(name, ":"):
		return r, errNotARule
	case strings.Contains(name, "*"):
		if allow && !literalOwner.MatchString(strings.TrimPrefix(name, "mcp__")) {
			return r, errWideAllow
		}
		r.globs = []string{name}
		return r, nil
	case strings.HasPrefix(name, "mcp__") && !strings.Contains(name[len("mcp__"):], "__"):
		if name == "mcp__" {
			return r, errNotARule
		}
		r.globs = []string{name + "__*"}
		return r, nil
	}
	r.name, r.unknown = understand(name, canonical)
	if !allow {
		r.also = covers[r.name]
	}
	return r, nil
}

// understand returns the canonical name, or the name itself and that it is not
// known. Tools of servers that are not connected yet are known by their form.
func understand(name string, canonical func(string) (string, bool)) (string, bool) {
	if canonical != nil {
		if c, ok := canonical(name); ok {
			return c, false
		}
	}
	return name, canonical != nil && !strings.HasPrefix(name, "mcp__")
}

func (r rule) matches(p agent.Proposal, canonical func(string) (string, bool)) bool {
	tool := p.Call.Tool
	if r.group != "" && r.group == p.Group {
		return true
	}
	for _, g := range r.globs {
		if fits(g, tool) {
			return true
		}
	}
	for _, other := range r.also {
		if other == tool {
			return true
		}
	}
	if r.unknown { // a tool may have appeared that it means
		name, _ := understand(r.name, canonical)
		return name == tool
	}
	return r.name != "" && r.name == tool
}

// fits matches a name with a pattern in which * stands for any text.
func fits(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}
