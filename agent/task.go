package agent

// A TaskNote is what an agent notes about its work, for itself: it travels in the
// Meta of a result, under [MetaTask], and the fold of the log keeps what it says.
// Zero fields leave what was there.
type TaskNote struct {
	Task      string     `json:"task,omitempty"` // what is being done now
	Decisions []Choosing `json:"decisions,omitempty"`

	// Facts are kept by name; an empty one is forgotten.
	Facts map[string]string `json:"facts,omitempty"`
}

// Choosing is a decision of the agent's: what, why, and instead of what.
type Choosing struct {
	Decision     string   `json:"decision"`
	Reason       string   `json:"reason,omitempty"`
	Alternatives []string `json:"alternatives,omitempty"`
}

// MetaTask is the name under which a result carries a [TaskNote].
const MetaTask = "dure/task"
