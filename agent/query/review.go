package query

type (
	// Diff asks for a [DiffReport]: what Session and its children changed, against how
	// things were before. What was accepted is not in it, and what others changed is
	// none of it.
	Diff struct {
		Session string `json:"session"`

		// From compares with how files were after this event; 0 = at the beginning. To
		// is up to where; 0 = as they are now.
		From int64 `json:"from,omitempty"`
		To   int64 `json:"to,omitempty"`

		// All shows what was accepted, too.
		All bool `json:"all,omitempty"`

		// Paths selects files, and folders with what is in them, relative to the
		// workspace. None = all.
		Paths []string `json:"paths,omitempty"`
	}

	// PlanRewind asks for a [RewindPlan]: what a Rewind with the same fields would do
	// to files. It changes none.
	PlanRewind struct {
		Session string   `json:"session"`
		To      int64    `json:"to"`
		Only    []string `json:"only,omitempty"`
		Force   []string `json:"force,omitempty"`
	}
)

// Query returns the name of the query on the wire.
func (Diff) Query() string       { return "diff" }
func (PlanRewind) Query() string { return "rewind.plan" }

// DiffReport is what a session changed. It has at most 2,000 files with their
// hunks; the others are listed without.
type DiffReport struct {
	Session string     `json:"session"`
	From    string     `json:"from,omitempty"` // checkpoint; "" = nothing was ever changed
	To      string     `json:"to,omitempty"`
	Files   []FileDiff `json:"files"`
	Added   int        `json:"added"` // lines
	Removed int        `json:"removed"`

	// Gone says that the oldest checkpoints have been dropped: what was changed
	// before From is not in the report.
	Gone bool `json:"gone,omitempty"`
}

// The ways in which a file can differ.
const (
	FileAdded    = "added"
	FileModified = "modified"
	FileDeleted  = "deleted"
	FileRenamed  = "renamed"
	FileMode     = "mode" // its permissions alone
	FileType     = "type" // it became a link, a folder or a file
)

// FileDiff is one changed file.
type FileDiff struct {
	ID      string     `json:"id"`             // of the change: another content has another one
	Path    string     `json:"path"`           // relative to the workspace, with slashes
	From    string     `json:"from,omitempty"` // before it was renamed
	Status  string     `json:"status"`
	Added   int        `json:"added"`
	Removed int        `json:"removed"`
	Hunks   []HunkDiff `json:"hunks,omitempty"`

	Kind    string `json:"kind,omitempty"`     // file, link, folder, "not kept"; "" = it is gone
	KindWas string `json:"kind_was,omitempty"` // "" = there was none
	Mode    uint32 `json:"mode,omitempty"`     // permission bits
	ModeWas uint32 `json:"mode_was,omitempty"`
	Link    string `json:"link,omitempty"` // where it leads
	LinkWas string `json:"link_was,omitempty"`
	Size    int64  `json:"size"`
	SizeWas int64  `json:"size_was"`

	Binary bool `json:"binary,omitempty"` // it is no text
	Long   bool `json:"long,omitempty"`   // too long to be compared line by line
	Unkept bool `json:"unkept,omitempty"` // one side is not kept: it can be neither shown nor put back

	// Tools are those that changed it. Command says that one of them runs commands,
	// which do not say what they write.
	Tools   []string `json:"tools,omitempty"`
	Command bool     `json:"command,omitempty"`
	// Children are the child sessions that changed it.
	Children []string `json:"children,omitempty"`

	// Others says that somebody else has changed it since, too: a Reject leaves it
	// unless it is told what to do. What they did is not in the hunks, unless they did
	// it in the same lines: then Tangled is set.
	Others  bool `json:"others,omitempty"`
	Tangled bool `json:"tangled,omitempty"`
}

// HunkDiff is one place at which a file differs.
type HunkDiff struct {
	ID       string   `json:"id"`
	OldStart int      `json:"old_start"` // lines, from 1
	OldLines int      `json:"old_lines"`
	NewStart int      `json:"new_start"`
	NewLines int      `json:"new_lines"`
	Lines    []string `json:"lines"` // each behind " ", "-", "+" or "\"
}

// RewindPlan is what a rewind would do to files.
type RewindPlan struct {
	Session string       `json:"session"`
	To      string       `json:"to,omitempty"` // checkpoint; "" = nothing was ever changed
	Files   []RewindItem `json:"files"`
	Added   int          `json:"added"` // lines
	Removed int          `json:"removed"`
	Leaves  int          `json:"leaves"` // files that would be left alone
}

// RewindItem is one path of a [RewindPlan].
type RewindItem struct {
	FileDiff        // from now to what the rewind makes
	Action   string `json:"action"`             // create, restore, delete, mode
	Conflict string `json:"conflict,omitempty"` // why it would be left alone, see Left
	Why      string `json:"why,omitempty"`
	Forced   bool   `json:"forced,omitempty"` // it would be done all the same
}
