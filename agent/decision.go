package agent

import (
	"encoding/json"
	"slices"
)

// Verdict is the outcome of looking at one proposed call. The zero value has
// no opinion, and a call on which nobody has an opinion is put to the user.
type Verdict string

// The verdicts.
const (
	Pass    Verdict = ""
	Allow   Verdict = "allow"
	AskUser Verdict = "ask"
	Deny    Verdict = "deny"
)

// A Decision is a verdict with the reason for it.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	By      string  `json:"by,omitempty"` // who decided: mode, rule, hook, user, ...

	// Input, when not empty, replaces the call's input. The gate then starts
	// again with the new input.
	Input json.RawMessage `json:"input,omitempty"`

	// Stop ends the turn after a denial.
	Stop bool `json:"stop,omitempty"`

	// Code says to the model what a denial is, where it is no [ErrDenied]:
	// [ErrBlockedByHook] or [ErrApprovalTimeout].
	Code ErrorCode `json:"code,omitempty"`

	// Defer asks to put the call aside until somebody goes on with the session. Where
	// that cannot be, a person is asked.
	Defer bool `json:"-"`

	// Trace has each stage's word, in order.
	Trace []Opinion `json:"trace,omitempty"`

	// Rule is the rule that decided, as it is written, if one did.
	Rule string `json:"rule,omitempty"`

	// Flip is the nearest change that would have led to another verdict.
	Flip string `json:"flip,omitempty"`

	// Basis is what the policy knew beside the proposal.
	Basis *Basis `json:"basis,omitempty"`
}

// Basis is what a policy knows beside a proposal: with it and the same rules, the
// proposal is decided the same way again.
type Basis struct {
	Mode  Mode     `json:"mode"`
	Roots []string `json:"roots,omitempty"` // of the workspace, as given and resolved
	Home  string   `json:"home,omitempty"`

	// Confined is how far running commands are confined: full, reduced or none.
	Confined string `json:"confined,omitempty"`

	// Links are the paths of the proposal that lead elsewhere, and where; "" = it
	// could not be told.
	Links map[string]string `json:"links,omitempty"`

	Policy string `json:"policy,omitempty"` // hash of the rules
}

// An Opinion is what one stage said.
type Opinion struct {
	Stage   string  `json:"stage"`
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason,omitempty"`
	Rule    string  `json:"rule,omitempty"`   // as it is written
	Source  string  `json:"source,omitempty"` // where the rule stands: file:line, flag, ...
}

// A Proposal is a call that has not run yet, with everything a decision needs.
type Proposal struct {
	Call    Call    `json:"call"`
	Effects Effects `json:"effects"`
	Class   Class   `json:"class"`
	Group   string  `json:"group,omitempty"`
	Risk    Risk    `json:"risk,omitempty"`
	Agent   string  `json:"agent,omitempty"`

	// Origin says on whose behalf the call is made: empty for the model, else
	// the capability that used [Invoke].
	Origin string `json:"origin,omitempty"`
}

// Mode is a permission mode.
type Mode string

// The permission modes.
const (
	ModeDefault     Mode = "default"
	ModeAcceptEdits Mode = "acceptEdits"
	ModePlan        Mode = "plan"
	ModeDontAsk     Mode = "dontAsk"
	ModeBypass      Mode = "bypassPermissions"
)

// Wider reports whether a mode lets more happen unasked than another one. A mode that nobody
// knows lets nothing happen.
func (m Mode) Wider(than Mode) bool {
	order := []Mode{ModePlan, ModeDontAsk, ModeDefault, ModeAcceptEdits, ModeBypass}
	return slices.Index(order, m) > slices.Index(order, than)
}
