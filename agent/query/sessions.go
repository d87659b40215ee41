package query

import "dure/agent"

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

	// OldSessions looks for sessions that the settings consider old, and returns an
	// OldReport. With Daily it does so once a day at most, and where the settings say so it
	// deletes them.
	OldSessions struct {
		Daily bool `json:"daily,omitempty"`
	}

	// RepairSession looks for damage in the log of a session, and returns a LogReport.
	// Unless Dry is set, the log becomes one that can be written on; the damaged one is kept
	// beside it.
	RepairSession struct {
		Session string `json:"session"` // ID
		Dry     bool   `json:"dry_run,omitempty"`
	}

	// ExportSession returns a session as a Document, with its secrets masked.
	ExportSession struct {
		Session   string `json:"session"` // ID
		Format    string `json:"format"`  // md, html or jsonl
		NoResults bool   `json:"no_results,omitempty"`
		Thinking  bool   `json:"thinking,omitempty"`
		Children  bool   `json:"children,omitempty"`
		System    bool   `json:"system,omitempty"` // the prompt of the system
		Print     bool   `json:"print,omitempty"`  // the page says how it is printed
	}

	// SweepSessions finishes what a crash left of deletions and returns how many
	// there were.
	SweepSessions struct{}
)

// Query returns the name of the query on the wire.
func (RemoveSession) Query() string  { return "sessions.remove" }
func (OldSessions) Query() string    { return "sessions.old" }
func (RepairSession) Query() string  { return "sessions.repair" }
func (ExportSession) Query() string  { return "session.export" }
func (SweepSessions) Query() string  { return "sessions.sweep" }
func (ImportSessions) Query() string { return "sessions.import" }

// RemovedSession is what went with a session.
type RemovedSession struct {
	Session  string   `json:"session"`
	Title    string   `json:"title,omitempty"`
	Children []string `json:"children,omitempty"` // IDs
	Bytes    int64    `json:"bytes"`              // of their folders and checkpoints
}

// OldReport has the sessions that are old and were not deleted.
type OldReport struct {
	Days     int                 `json:"days"` // after which a session is old; 0 = none ever is
	Sessions []agent.SessionInfo `json:"sessions"`
	Deleted  int                 `json:"deleted,omitempty"`
}

// LogReport is what was wrong with a log, and what was made of it. All numbers are of
// lines.
type LogReport struct {
	Session  string   `json:"session"`
	OK       bool     `json:"ok"`             // nothing was wrong
	Events   int64    `json:"events"`         // that were kept
	Lost     int64    `json:"lost"`           // for which a note stands now, or would
	Twice    int      `json:"twice"`          // that stood there more than once
	Broken   int      `json:"broken"`         // that are no events, or were altered
	Seals    int      `json:"seals"`          // that had to be made anew
	Kept     string   `json:"kept,omitempty"` // folder with the log as it was
	Problems []string `json:"problems"`       // the first of them, in English
	Hidden   int      `json:"hidden,omitempty"`
}

// Document is a session as people read it.
type Document struct {
	Text string `json:"text"`
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
