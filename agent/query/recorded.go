package query

import "dure/agent"

// Questions about what a log has recorded.
type (
	// ExplainDecision takes the decision on a call of a session apart, and returns an
	// ExplainedDecision. Call is the number of the decision in the log, or the ID of the call.
	ExplainDecision struct {
		Session string `json:"session"` // ID
		Call    string `json:"call"`
	}

	// ExportFiles writes the files of a session as they were after an event into a folder
	// that does not exist yet, and returns ExportedFiles.
	ExportFiles struct {
		Session string `json:"session"` // ID
		Seq     int64  `json:"seq"`
		Dir     string `json:"dir"`
	}
)

// Query returns the name of the query on the wire.
func (ExplainDecision) Query() string { return "decisions.explain" }
func (ExportFiles) Query() string     { return "files.export" }

// ExplainedDecision is a decision of a log taken apart, and what would be decided now.
type ExplainedDecision struct {
	agent.DecisionRecord
	Pieces []DecisionPiece `json:"pieces,omitempty"` // by the rules of now
	Again  *DecidedAgain   `json:"again,omitempty"`
	Lost   string          `json:"lost,omitempty"` // why it cannot be decided again
}

// DecisionPiece is a part of a call that is allowed or not on its own.
type DecisionPiece struct {
	What    string        `json:"what"`
	Verdict agent.Verdict `json:"verdict"`
	By      string        `json:"by"` // rule, read-only or mode
	Rule    string        `json:"rule,omitempty"`
	Source  string        `json:"source,omitempty"`
}

// DecidedAgain is the decision of today's policy on a recorded call. It uses what was known
// then: mode, folders, links, confinement, and the rules granted for the session.
type DecidedAgain struct {
	Was  agent.Verdict  `json:"was"` // what the policy said then, before a person did
	Now  agent.Decision `json:"now"`
	Same bool           `json:"same"` // the verdict is

	// Gone is a rule that decided then and is not in force any more, and Come one
	// that decides now and was not in force then.
	Gone string `json:"gone,omitempty"`
	Come string `json:"come,omitempty"`
}

// ExportedFiles is where the files of a session were written.
type ExportedFiles struct {
	Workdir string `json:"workdir"` // the workspace in the folder
}
