package query

// Questions about sessions that come and go.
type (
	// RemoveSession deletes a session with its children, its blobs and its
	// checkpoints, and returns a RemovedSession. One that is pinned, and one that a
	// turn runs in or waits in, is a [agent.Problem] unless Force is set; one that has an
	// owner is in any case.
	RemoveSession struct {
		Session string `json:"session"` // ID
		Force   bool   `json:"force,omitempty"`
	}

	// ImportSessions looks for sessions of other products and returns an
	// ImportReport. Path is a file or a folder; "" = where the products keep theirs.
	// A file is imported; what is found elsewhere if Only names it, or with All.
	ImportSessions struct {
		Path string `json:"path,omitempty"`
		From string `json:"from,omitempty"` // claude, codex, opencode or jsonl; "" = by what is found
		Only string `json:"only,omitempty"` // ID, or the beginning of one
		All  bool   `json:"all,omitempty"`
		Dry  bool   `json:"dry_run,omitempty"` // read them, and change nothing
	}

	// SweepSessions finishes what a crash left of deletions and returns how many
	// there were.
	SweepSessions struct{}
)

// Query returns the name of the query on the wire.
func (RemoveSession) Query() string  { return "sessions.remove" }
func (SweepSessions) Query() string  { return "sessions.sweep" }
func (ImportSessions) Query() string { return "sessions.import" }

// RemovedSession is what went with a session.
type RemovedSession struct {
	Session  string   `json:"session"`
	Title    string   `json:"title,omitempty"`
	Children []string `json:"children,omitempty"` // IDs
	Bytes    int64    `json:"bytes"`              // of their folders and checkpoints
}

// ImportReport is what was found of sessions of other products, and what was done.
type ImportReport struct {
	Found []ImportedSession `json:"found"`
	Left  int               `json:"left,omitempty"` // beyond those that are listed
}

// ImportedSession is a session of another product.
type ImportedSession struct {
	Source  string `json:"source"` // claude-code, codex, opencode or jsonl
	ID      string `json:"id"`     // there
	Path    string `json:"path"`
	Title   string `json:"title,omitempty"`
	Workdir string `json:"workdir,omitempty"`
	Updated string `json:"updated,omitempty"` // RFC 3339
	Bytes   int64  `json:"bytes,omitempty"`

	State    string   `json:"state"`             // new, imported, exists, readable (with Dry) or failed
	Session  string   `json:"session,omitempty"` // ID here
	Messages int      `json:"messages,omitempty"`
	Warnings []string `json:"warnings,omitempty"` // what was left out or mended, in English; at most 20
	Hidden   int      `json:"hidden,omitempty"`   // more of them
	Error    string   `json:"error,omitempty"`
}
