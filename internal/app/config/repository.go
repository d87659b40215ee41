package config

import (
	"fmt"

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
