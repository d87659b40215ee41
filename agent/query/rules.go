package query

import "dure/agent"

// ListRules asks for a [RuleReport]: of a session that is open, or with "" what one in the
// working folder would have.
type ListRules struct {
	Session string `json:"session,omitempty"`
}

// Query returns the name of the query on the wire.
func (ListRules) Query() string { return "rules" }

// RuleReport is the answer to [ListRules].
type RuleReport struct {
	Mode  agent.Mode `json:"mode"`
	Rules []RuleInfo `json:"rules"` // those that deny, those that ask, those that allow
}

// RuleInfo is a permission rule with where it stands.
type RuleInfo struct {
	Rule    string        `json:"rule"` // as it is written: Tool or Tool(pattern)
	Verdict agent.Verdict `json:"verdict"`

	// Layer is managed, flags, user, project, local, granted (a person has answered that
	// it is always allowed in this folder) or session (the same, of this session).
	Layer  string `json:"layer"`
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"` // from 1; 0 = not known
	Column int    `json:"column,omitempty"`

	Reason   string `json:"reason,omitempty"`
	Priority int    `json:"priority,omitempty"`
	Scope    string `json:"scope,omitempty"` // whom it is for, as in user:NAME; "" = everybody

	Off  bool   `json:"off,omitempty"`  // it does not count
	Note string `json:"note,omitempty"` // why, or what is odd about it, in English
}

// RuleChange is a change of the rules of an open session that the host asks for. The answer
// is a [RuleEdited].
type RuleChange struct {
	Session string        `json:"session"` // ID
	Verdict agent.Verdict `json:"verdict"`
	Change  string        `json:"change"` // of these below
	Rules   []string      `json:"rules"`
	Scope   string        `json:"scope,omitempty"` // session, user, project or local; "" = session
}

// What becomes of rules.
const (
	RulesAdded    = "add"
	RulesRemoved  = "remove"
	RulesReplaced = "replace" // they take the place of all others of their verdict
)

// RuleEdit is a change of a rule that a person asks for. The answer is a [RuleEdited].
type RuleEdit struct {
	Session string        `json:"session,omitempty"` // that it is to hold in at once, beside others
	Rule    string        `json:"rule"`
	Verdict agent.Verdict `json:"verdict,omitempty"` // of a rule to add; "" = it is taken away
	Scope   string        `json:"scope,omitempty"`   // user, project or local; "" = local, or wherever it stands
}

// FolderRule asks for the rule by which an open session may read what is below a folder.
type FolderRule struct {
	Session string `json:"session"` // ID
	Dir     string `json:"dir"`
}

// Query returns the name of the query on the wire.
func (RuleChange) Query() string { return "rules.restrict" }
func (RuleEdit) Query() string   { return "rules.change" }
func (FolderRule) Query() string { return "rules.folder" }

// RuleEdited is what became of a [RuleEdit].
type RuleEdited struct {
	Paths []string `json:"paths"` // of the files that were changed; none = it is as it was

	// Left are places where the rule still stands, which are not for this to change.
	Left []string `json:"left,omitempty"`

	Off  bool   `json:"off,omitempty"`  // the rule that was added does not count
	Note string `json:"note,omitempty"` // why, or what is odd about it, in English
}
