package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"dure/agent"
)

// A Rule allows, asks about or denies what it matches:
//
//	Bash, bash__exec, file_read      a tool, in any spelling
//	group:files, files:*             all tools of a group (the second form: or of a resource)
//	mcp__github, mcp__github__get_*  tools of a server
//	mcp__*__get_*, *                 the canonical names that fit; not to allow
//	Bash(npm run *)                  one simple command, by its words
//	Read(~/.ssh/**), Edit(/src/**)   paths that are read or changed, by any tool
//	WebFetch(domain:*.example.com)   hosts
//	Agent(reviewer), Skill(pdf *)    agents and skills by name
//	Agent(model:opus)                a parameter of the input; not to allow
//
// A rule on a path names it by the globs of gitignore, from the root (//etc), the
// home folder (~/x), the folder of the rule's source (/x) or the current one (x).
// Write(x) and its like mean Edit(x); Grep(x) and its like mean Read(x).
type Rule struct {
	Text    string // "" = Tool and Pattern
	Tool    string
	Pattern string // "" and "*" = every call of the tool

	Verdict  agent.Verdict // allow, ask or deny
	Reason   string        // shown to the user
	Priority int           // which rule of a stage is named when several match: the highest
	Scope    Scope
	Source   Source

	// Broken: it stands in for something that cannot be read, see [Policy.Withholds].
	Broken bool
}

// Layer is where rules come from.
type Layer string

// The layers.
const (
	Managed Layer = "managed"
	Flags   Layer = "flags"
	Local   Layer = "local"
	Project Layer = "project"
	User    Layer = "user"
	Session Layer = "session"
)

// Source is where a rule stands.
type Source struct {
	Layer Layer
	File  string // "" = no file
	Line  int    // from 1; 0 = not known

	Column int // of where the rule begins on its line, in bytes from 1; 0 = not known

	Dir string // what /x is relative to; "" = the workspace
}

func (s Source) String() string {
	switch {
	case s.File != "" && s.Line > 0:
		return s.File + ":" + strconv.Itoa(s.Line)
	case s.File != "":
		return s.File
	}
	return string(s.Layer)
}

// Scope ties a rule to one of the stages. Its zero value is global.
type Scope struct {
	Stage   string // global, user, channel, group, tool
	Subject string // the user's, channel's, group's or tool's name; "" = any
}

// A Warning is about a rule that was not taken as it stands.
type Warning struct {
	Rule    string // as it was written
	Source  Source
	Column  int // in the text of the rule, from 1
	Text    string
	Unknown bool // the rule is kept: only its tool is not known now
}

func (w Warning) String() string {
	at, column := w.Source.String(), w.Column
	if at != "" {
		at += ":"
	}
	if w.Source.Line > 0 && w.Source.Column > 0 {
		column += w.Source.Column // behind the quotation mark
	}
	return fmt.Sprintf("%s%d: rule %q: %s", at, column, w.Rule, w.Text)
}

// UnmarshalJSON reads every spelling of a rule: its text; or an object with rule,
// or tool and pattern, or the pattern of a tool's name alone; with behavior,
// decision or verdict; and reason, priority and scope.
func (r *Rule) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte(`"`)) {
		return json.Unmarshal(data, &r.Text)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return errors.New("reading a rule: it is neither a text nor an object")
	}
	var in struct {
		Rule, Tool, Pattern         string
		Behavior, Decision, Verdict string
		Reason                      string
		Priority                    int
		Scope                       struct{ Stage, Subject string }
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&in); err != nil {
		return fmt.Errorf("reading a rule: %w", err)
	}
	word := ""
	for _, w := range []string{in.Behavior, in.Decision, in.Verdict} {
		if w != "" && word != "" && w != word {
			return fmt.Errorf("reading a rule: it says both %q and %q", word, w)
		}
		if w != "" {
			word = w
		}
	}
	v, err := VerdictOf(word)
	if err != nil {
		return fmt.Errorf("reading a rule: %w", err)
	}
	*r = Rule{
		Text: in.Rule, Tool: in.Tool, Pattern: in.Pattern, Verdict: v, Reason: in.Reason, Priority: in.Priority, Scope: Scope(in.Scope),
	}
	return nil
}

// VerdictOf reads the word for what a rule does, in every spelling; "" says nothing.
func VerdictOf(word string) (agent.Verdict, error) {
	switch word {
	case "":
		return agent.Pass, nil
	case "allow", "deny", "ask":
		return agent.Verdict(word), nil
	case "require-approval", "require_approval":
		return agent.AskUser, nil
	}
	return agent.Pass, fmt.Errorf("%q is none of allow, ask, deny", word)
}

// Written returns the rule as one text: Tool or Tool(pattern).
func (r Rule) Written() string {
	switch {
	case r.Text != "":
		return strings.TrimSpace(r.Text)
	case r.Tool == "":
		return strings.TrimSpace(r.Pattern)
	case r.Pattern == "" || r.Pattern == "*":
		return strings.TrimSpace(r.Tool)
	}
	return strings.TrimSuffix(strings.TrimSpace(r.Tool), ":*") + "(" + r.Pattern + ")"
}

// maxRule is how long a rule may be, in bytes. The longest patterns decide over
// how long a decision takes.
const maxRule = 4096

// fault is what is wrong with the text of a rule, and where.
type fault struct {
	column int
	text   string
}

// split takes a rule apart. The name is returned also with a fault, if one can
// be read; at is where the specifier begins.
func split(text string) (name, spec string, has bool, at int, f *fault) {
	if len(text) > maxRule {
		return "", "", false, 0, &fault{maxRule, fmt.Sprintf("it is longer than %d bytes", maxRule)}
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' }); i >= 0 {
		return "", "", false, 0, &fault{i + 1, "it has a control character"}
	}
	name, spec, has = strings.Cut(text, "(")
	if i := strings.IndexFunc(name, strange); name == "" || i >= 0 {
		return "", "", false, 0, &fault{max(i, 0) + 1, errNotARule}
	}
	if !has {
		return name, "", false, 0, nil
	}
	at = len(name) + 2
	spec, closed := strings.CutSuffix(spec, ")")
	switch {
	case !closed:
		f = &fault{len(text), "it has no closing parenthesis"}
	case spec == "":
		f = &fault{at, "nothing stands between its parentheses"}
	}
	return name, spec, spec != "*", at, f
}

const (
	errNotARule  = "it names no tool: write a name, group:NAME, mcp__SERVER, or a name with *"
	errWideAllow = "an allow rule with * in the name of a tool has to begin with a whole server, as in mcp__SERVER__*"
	errNoTool    = "it matches no tool that is known"
	errNoPart    = "this tool has no parts that a rule could name"
	errDenyOnly  = "a rule on a parameter can only deny or ask"
)

// strange reports whether a character cannot stand in the name of a tool.
func strange(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("_.:*-", r):
		return false
	}
	return true
}
