package agent

// Seeing what a session changed, and taking parts of it back.
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

	// Accept takes changes for good: they are not shown any more, and what is rejected
	// later leaves them. A rewind still takes them back.
	Accept struct {
		// At is the To of the report that shows the changes.
		At    string `json:"at"`
		All   bool   `json:"all,omitempty"`
		Files []Pick `json:"files,omitempty"` // at most MaxPicks
	}

	// Reject puts files, or hunks of them, back to how they were before. It needs an
	// idle session. A file that is not any more as the report has shown it is left as
	// it is, and so is one that others have changed, too, unless Merge or Force say
	// what to do about it.
	Reject struct {
		At    string `json:"at"` // as in Accept
		All   bool   `json:"all,omitempty"`
		Files []Pick `json:"files,omitempty"` // at most MaxPicks

		// Merge takes out what the session did, and keeps what others did. Marks lets
		// it write both between conflict marks where they did it in the same lines.
		Merge bool `json:"merge,omitempty"`
		Marks bool `json:"marks,omitempty"`

		// Force puts these back whatever others did in them.
		Force bool `json:"force,omitempty"`
	}

	// Pick is a file of a [DiffReport], or hunks of it.
	Pick struct {
		Path  string   `json:"path"`
		From  string   `json:"from,omitempty"`  // its path before, when it was renamed
		ID    string   `json:"id,omitempty"`    // of the FileDiff; "" = whatever it is now
		Hunks []string `json:"hunks,omitempty"` // their IDs; none = the whole file
	}
)

// MaxPicks bounds the files of an [Accept] or a [Reject], and the hunks of each.
const MaxPicks = 2_000

// Query and Command return the names on the wire.
func (Diff) Query() string       { return "diff" }
func (PlanRewind) Query() string { return "rewind.plan" }
func (Accept) Command() string   { return "accept" }
func (Reject) Command() string   { return "reject" }

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

// What people said about changes, as the log has it.
type (
	// ChangesAccepted records that changes count as how things were before.
	ChangesAccepted struct {
		At    string `json:"at"` // checkpoint that shows them
		All   bool   `json:"all,omitempty"`
		Files []Pick `json:"files,omitempty"`
		By    string `json:"by,omitempty"`
	}

	// Rejected is a file of which a [FilesRewound] took changes back.
	Rejected struct {
		Path  string   `json:"path"`
		From  string   `json:"from,omitempty"`
		Hunks []string `json:"hunks,omitempty"` // none = all of it
		Of    int      `json:"of,omitempty"`    // hunks that it had, where some were rejected
	}

	// Left is a path that was left as it is.
	Left struct {
		Path string `json:"path"`

		// Code is outside, overlap, not-kept, lost, hunk, changed, in-way, refused,
		// damaged or elsewhere; Why says it in English.
		Code string `json:"code"`
		Why  string `json:"why,omitempty"`
	}
)

// Kind returns the kind's name on disk and on the wire.
func (ChangesAccepted) Kind() string { return "changes.accepted" }
