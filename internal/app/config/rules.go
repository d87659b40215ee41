package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"dure/agent"
	"dure/internal/safety/policy"
)

// Bounds of rules. A file is bounded as a whole; these keep one entry readable.
const (
	maxRule   = 4096 // bytes of a rule, as the policy reads it
	maxReason = 500  // bytes of a reason
)

// Rule is a permission rule with its source. Whether it means something is for
// the policy to say: here only its form is known.
type Rule struct {
	// Text is the rule as it is shown: Tool or Tool(pattern). Of one that is written
	// as an object, Tool and Pattern are what it says; either may be empty.
	Text    string
	Tool    string `json:",omitempty"`
	Pattern string `json:",omitempty"`

	Verdict  agent.Verdict // allow, ask or deny
	Reason   string        `json:",omitempty"` // for the user
	Priority int           `json:",omitempty"`
	Scope    Scope         `json:",omitzero"`

	// Malformed is a rule of a repository that denies or asks, and cannot be read:
	// Text is what stands there. It may not be dropped.
	Malformed bool `json:",omitempty"`

	Origin Origin // where it stands: file:line:column, or a flag

	// File, Line and Column say the same in parts, from 1; "" and 0 = it is in no
	// file. Dir is the folder that a path of the form /x is relative to.
	File   string `json:",omitempty"`
	Line   int    `json:",omitempty"`
	Column int    `json:",omitempty"`
	Dir    string `json:",omitempty"`
}

// Scope ties a rule to a stage of the policy, and to one user, channel, group or
// tool there.
type Scope struct {
	Stage   string `json:"stage,omitempty"`
	Subject string `json:"subject,omitempty"`
}

// Rules returns all rules.
func (c Config) Rules() []Rule {
	all := make([]Rule, 0, len(c.Deny)+len(c.Ask)+len(c.Allow))
	return append(append(append(all, c.Deny...), c.Ask...), c.Allow...)
}

// ruleList takes a list of rules; Pass = each says itself what it does.
func (l *loader) ruleList(verdict agent.Verdict) func(entry) error {
	return func(e entry) error {
		var entries []json.RawMessage
		if err := e.decode(&entries); err != nil {
			return err
		}
		for i, raw := range entries {
			if e.ly.kind != Flags {
				if err := l.rule(e, verdict, e.ly.item(e.path, i), raw); err != nil {
					return err
				}
				continue
			}
			var text string
			_ = json.Unmarshal(raw, &text) // those of the command line are texts
			r := Rule{Text: strings.TrimSpace(text), Verdict: verdict, Origin: l.origin(e.ly, e.path), Dir: l.src.Workdir}
			if err := checkText(r.Text); err != nil {
				return e.invalid(text, "a rule such as Bash")
			}
			l.add(r)
		}
		return nil
	}
}

// tools denies tools as wholes, which takes them from the model.
func (l *loader) tools(e entry) error {
	var names []string
	if err := e.decode(&names); err != nil {
		return err
	}
	for i, name := range names {
		if name == "" || len(name) > maxText || strings.ContainsAny(name, "()*") || strings.ContainsFunc(name, unicode.IsControl) {
			return e.invalidItem(i, name, "the name of a tool")
		}
		at := e.ly.item(e.path, i)
		r := Rule{Text: name, Verdict: agent.Deny, Reason: "the settings switch it off", Origin: Origin{e.ly.kind, e.ly.place(at)}, File: e.ly.path, Dir: l.base(e.ly)}
		r.Line, r.Column = e.ly.position(at)
		l.add(r)
		e.set(false)
	}
	return nil
}

// mode applies permissions.defaultMode. One that asks less is left to repositories that are
// trusted, and the one that asks nothing to none.
func (l *loader) mode(e entry) error {
	var mode string
	if err := e.decode(&mode); err != nil {
		return err
	}
	if mode == "manual" {
		mode = string(agent.ModeDefault)
	}
	if !e.ly.own() && loosens(mode, l.cfg.Mode) {
		if agent.Mode(mode) == agent.ModeBypass {
			e.drop()
			return nil
		}
		if !l.permits(e.ly) {
			l.inert(e.ly, e.path, e.ly.where(e.path), Untrusted, "")
			return nil
		}
	}
	if !slices.Contains(modes, mode) {
		return e.invalid(mode, strings.Join(modes, ", "))
	}
	e.set(string(l.cfg.Mode) != mode)
	l.cfg.Mode = agent.Mode(mode)
	return nil
}

// noBypass applies permissions.disableBypassPermissionsMode.
func (l *loader) noBypass(e entry) error {
	var v string
	if err := e.decode(&v); err != nil {
		return err
	}
	if v != "disable" {
		return e.invalid(v, "disable")
	}
	e.set(false)
	l.cfg.NoBypass = true
	return nil
}

// administrators takes a switch that counts in the administrator's settings, where it is
// looked for before anything is applied.
func administrators(e entry) error {
	var v bool
	if err := e.decode(&v); err != nil {
		return err
	}
	if v && e.ly.kind != Managed {
		e.l.note("warn", fmt.Sprintf("%s: %s is for administrators", e.ly.place(e.ly.where(e.path)), e.path))
	}
	return nil
}

// rule adds one entry of a file. One that cannot be read is left out where it
// would allow; where it would deny or ask, the user's own file has to be mended,
// and what a repository says is handed on as it is.
func (l *loader) rule(e entry, verdict agent.Verdict, at int64, raw json.RawMessage) error {
	ly := e.ly
	r, err := readRule(raw, verdict)
	if err != nil {
		text := fmt.Sprintf("the rule %s cannot be read: %s", clip(string(raw), maxText), err)
		r.Malformed, r.Text = true, clip(string(raw), maxRule)
		if r.Verdict != agent.Allow && ly.own() {
			return ly.problem(at, text, "")
		}
		if l.odd++; l.odd <= maxUnknown {
			l.note("warn", ly.place(at)+": "+text)
		}
		if r.Verdict == agent.Allow {
			return nil
		}
	}
	r.Origin = Origin{ly.kind, ly.place(at)}
	r.File = ly.path
	r.Line, r.Column = ly.position(at)
	r.Dir = l.base(ly)
	if r.Verdict == agent.Allow && !l.permits(ly) {
		l.inert(ly, e.path, at, Untrusted, r.Text)
		return nil
	}
	l.add(r)
	return nil
}

func (l *loader) add(r Rule) {
	to := map[agent.Verdict]*[]Rule{agent.Allow: &l.cfg.Allow, agent.AskUser: &l.cfg.Ask, agent.Deny: &l.cfg.Deny}[r.Verdict]
	*to = append(*to, r)
}

// base is the folder that /x in a rule is relative to.
func (l *loader) base(ly layer) string {
	if ly.path == "" || ly.path == driverName || ly.kind == Project || ly.kind == Local {
		return l.src.Workdir
	}
	return filepath.Dir(ly.path)
}

// readRule reads an entry. With an error, the verdict is that of the rule as far
// as it can be told, and deny where it cannot.
func readRule(raw json.RawMessage, verdict agent.Verdict) (Rule, error) {
	r := Rule{Verdict: verdict}
	switch raw = bytes.TrimSpace(raw); {
	case bytes.HasPrefix(raw, []byte(`"`)):
		if err := json.Unmarshal(raw, &r.Text); err != nil {
			return r, err
		}
		r.Text = strings.TrimSpace(r.Text)
		if verdict == agent.Pass {
			r.Verdict = agent.Deny
			return r, errors.New("here each rule has to be an object with a behavior: allow, ask or deny")
		}
		return r, checkText(r.Text)
	case bytes.HasPrefix(raw, []byte("{")):
		return readObject(raw, verdict)
	}
	r.Verdict = cmp.Or(verdict, agent.Deny)
	return r, errors.New("it has to be a text such as Bash(npm test), or an object")
}

// object is a rule in its long form. Behavior, decision and verdict are three
// words for one thing.
type object struct {
	Rule     string `json:"rule"`
	Tool     string `json:"tool"`
	Pattern  string `json:"pattern"`
	Behavior string `json:"behavior"`
	Decision string `json:"decision"`
	Verdict  string `json:"verdict"`
	Reason   string `json:"reason"`
	Priority int    `json:"priority"`
	Scope    Scope  `json:"scope"`
}

func readObject(raw json.RawMessage, verdict agent.Verdict) (Rule, error) {
	var o object
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&o); err != nil {
		var loose object
		_ = json.Unmarshal(raw, &loose) // for its verdict, as far as it can be told
		r := Rule{Verdict: cmp.Or(verdict, agent.Deny)}
		if v, verr := loose.verdict(); verr == nil {
			r.Verdict = cmp.Or(verdict, v, agent.Deny)
		}
		return r, err
	}
	r := Rule{
		Text: o.text(), Tool: o.Tool, Pattern: o.Pattern, Verdict: cmp.Or(verdict, agent.Deny),
		Reason: o.Reason, Priority: o.Priority, Scope: o.Scope,
	}
	own, err := o.verdict()
	switch {
	case err != nil:
		return r, err
	case own == agent.Pass && verdict == agent.Pass:
		return r, errors.New("it needs a behavior: allow, ask or deny")
	case own != agent.Pass && verdict != agent.Pass && own != verdict:
		return r, fmt.Errorf("it says %s in the list of rules that %s", own, verdict)
	case o.Rule != "" && o.Tool+o.Pattern != "":
		return r, errors.New("it has a rule, and a tool or pattern beside it")
	case len(o.Reason) > maxReason || strings.ContainsFunc(o.Reason, unicode.IsControl):
		return r, fmt.Errorf("its reason has to be one line of at most %d bytes", maxReason)
	}
	r.Verdict = cmp.Or(own, verdict)
	return r, checkText(r.Text)
}

// text is the rule in its short form.
func (o object) text() string {
	return policy.Rule{Text: o.Rule, Tool: o.Tool, Pattern: o.Pattern}.Written()
}

func (o object) verdict() (agent.Verdict, error) {
	v := agent.Pass
	for _, word := range []string{o.Behavior, o.Decision, o.Verdict} {
		this, err := policy.VerdictOf(word)
		if err != nil {
			return agent.Pass, fmt.Errorf("%q is none of: allow, ask, deny", clip(word, maxText))
		}
		if this == agent.Pass {
			continue
		}
		if v != agent.Pass && v != this {
			return agent.Pass, fmt.Errorf("it says both %s and %s", v, this)
		}
		v = this
	}
	return v, nil
}

func checkText(s string) error {
	if s == "" {
		return errors.New("it is empty")
	}
	if len(s) > maxRule || strings.ContainsRune(s, 0) {
		return fmt.Errorf("it has to be a text of at most %d bytes", maxRule)
	}
	return nil
}

// clip returns at most n bytes of s, and no half of a sign.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
