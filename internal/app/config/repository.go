package config

import (
	"fmt"
	"slices"
	"strings"

	"dure/agent"
)

// own reports whether a layer speaks for the user. The files of a project come
// with the repository, whoever wrote it: they may forbid and choose.
func (ly layer) own() bool { return ly.kind != Project && ly.kind != Local }

// permits reports whether a layer may allow what is asked about otherwise: the
// user's own, and those of a repository that he trusts. Where a key is sent, how
// commands are confined and that nothing is asked at all, no repository decides.
func (l *loader) permits(ly layer) bool { return ly.own() || l.src.Trusted && !ly.outside }

// An Inert is a setting that says something, and is not in force.
type Inert struct {
	Key    string `json:"key"`
	Origin Origin `json:"origin"` // file:line:column
	Why    Reason `json:"why"`
	What   string `json:"what,omitempty"` // a rule, a folder, ... as the file has it, and cut; "" = all of it
}

// Reason is why a setting is not in force.
type Reason string

// The reasons.
const (
	Untrusted Reason = "untrusted"  // it would be, if the folder were trusted
	Foreign   Reason = "repository" // no repository may decide it
	Locked    Reason = "managed"    // the administrator leaves it to nobody else
)

// maxInert bounds the list: one more says how many are left out.
const maxInert = 1000

// inert records what is not in force. The user is told once for each key that no
// repository may set; what trust would put in force is told where it is asked about.
func (l *loader) inert(ly layer, key string, at int64, why Reason, what string) {
	if why == Foreign && !l.told[ly.path+" "+key] {
		l.told[ly.path+" "+key] = true
		l.note("warn", fmt.Sprintf("%s: %s is not taken from a repository; set it in your own settings", ly.place(ly.where(key)), key))
	}
	l.leave(Inert{key, Origin{ly.kind, ly.place(at)}, why, clip(what, maxText)})
}

func (l *loader) leave(i Inert) {
	if l.left++; l.left <= maxInert {
		l.cfg.Inert = append(l.cfg.Inert, i)
	}
}

// restrict takes out of s what a repository may not decide, and says so. Rules
// are looked at one by one, see [loader.rule].
func (l *loader) restrict(ly layer, s *Settings) {
	drop := func(key string) { l.inert(ly, key, ly.where(key), Foreign, "") }
	p := *s.Permissions
	s.Permissions = &p
	l.untrusted(ly, "permissions.additionalDirectories", &p.AddDirs)
	l.untrusted(ly, "permissions.safeVars", &p.SafeVars)
	l.restrictMode(ly, &p)
	if n := s.MaxSteps; n != nil && l.cfg.MaxSteps > 0 && (*n == 0 || *n > l.cfg.MaxSteps) {
		drop("maxSteps")
		s.MaxSteps = nil
	}
	if r := s.Retention; r != nil { // what is deleted is the user's
		for _, key := range []string{"retention.days", "retention.auto"} {
			if ly.where(key) != 0 {
				drop(key)
			}
		}
		s.Retention = nil
	}
	if c := s.Checkpoints; c != nil && !*c {
		drop("checkpoints")
		s.Checkpoints = nil
	}
	if b := s.Budget; b != nil {
		own := *b
		if have := l.cfg.Budget.Dollars; own.Dollars != nil && have > 0 && (*own.Dollars == 0 || *own.Dollars > have) {
			drop("budget.usd")
			own.Dollars = nil
		}
		if have := l.cfg.Budget.Tokens; own.Tokens != nil && have > 0 && (*own.Tokens == 0 || *own.Tokens > have) {
			drop("budget.tokens")
			own.Tokens = nil
		}
		s.Budget = &own
	}
	if s.BaseURL != nil {
		drop("baseUrl")
		s.BaseURL = nil
	}
	if len(s.Providers) > 0 {
		drop("providers")
		s.Providers = nil
	}
	if len(s.Models) > 0 {
		drop("models")
		s.Models = nil
	}
	if s.Notify != nil { // programs are started for it
		drop("notify")
		s.Notify = nil
	}
	if s.Durability != nil {
		drop("durability")
		s.Durability = nil
	}
	if len(s.Lanes) > 0 {
		drop("lanes")
		s.Lanes = nil
	}
	if s.Telemetry != nil { // it says where things are sent
		drop("telemetry")
		s.Telemetry = nil
	}
	if s.Trust != nil && s.Trust.Mode != nil && *s.Trust.Mode == TrustAsk && l.cfg.Trust == TrustNever {
		drop("trust.mode")
		s.Trust = nil
	}
	l.restrictMemory(ly, s, drop)
	l.restrictProfiles(ly, s, drop)
	l.restrictEnv(ly, s)
	l.restrictCare(s, drop)
	l.restrictPlan(s, drop)
	l.restrictExtend(ly, s, drop)
	l.restrictWorktree(ly, s)
	l.restrictHooks(ly, s)
	l.restrictServers(ly, s)
	l.restrictSandbox(s, drop)
	l.restrictNetwork(s, drop)
}

// restrictMode leaves a mode that asks less to repositories that are trusted, and the one
// that asks nothing to none.
func (l *loader) restrictMode(ly layer, p *Permissions) {
	if p.DefaultMode == nil || !loosens(*p.DefaultMode, l.cfg.Mode) {
		return
	}
	why := Untrusted
	switch {
	case agent.Mode(*p.DefaultMode) == agent.ModeBypass:
		why = Foreign
	case l.permits(ly):
		return
	}
	key := "permissions.defaultMode"
	if ly.where(key) == 0 {
		key = "permissionMode"
	}
	l.inert(ly, key, ly.where(key), why, "")
	p.DefaultMode = nil
}

// untrusted empties a list that only a trusted folder may set.
func (l *loader) untrusted(ly layer, key string, list *[]string) {
	if l.permits(ly) {
		return
	}
	for i, what := range *list {
		l.inert(ly, key, ly.item(key, i), Untrusted, what)
	}
	*list = nil
}

// loosens reports whether a mode runs more than the default one does, or asks
// about more than the mode that was chosen before: plan and dontAsk deny what others
// ask about. What is no mode at all is reported as such later.
func loosens(mode string, before agent.Mode) bool {
	switch agent.Mode(mode) {
	case agent.ModeAcceptEdits, agent.ModeBypass:
		return true
	case agent.ModePlan:
		return before == agent.ModeDontAsk
	case agent.ModeDontAsk:
		return false
	}
	return before == agent.ModePlan || before == agent.ModeDontAsk
}

// secretWords mark the name of a variable as that of a secret.
var secretWords = []string{"KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"}

// restrictEnv takes only names of secrets from a repository's scrubEnv. To take a
// variable away can loosen as well: those that name a proxy, switch scripts of
// packages off or pin a toolchain protect the user.
func (l *loader) restrictEnv(ly layer, s *Settings) {
	var kept []string
	for i, name := range s.ScrubEnv {
		named := func(word string) bool { return strings.Contains(strings.ToUpper(name), word) }
		if slices.ContainsFunc(secretWords, named) {
			kept = append(kept, name)
			continue
		}
		l.inert(ly, "scrubEnv", ly.item("scrubEnv", i), Foreign, name)
	}
	s.ScrubEnv = kept
}
