package agent

// What a session changed is taken for good or put back, as a [dure/agent/query.Diff] shows it.
type (
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

	// Pick is a file of a [dure/agent/query.DiffReport], or hunks of it.
	Pick struct {
		Path  string   `json:"path"`
		From  string   `json:"from,omitempty"`  // its path before, when it was renamed
		ID    string   `json:"id,omitempty"`    // of the FileDiff; "" = whatever it is now
		Hunks []string `json:"hunks,omitempty"` // their IDs; none = the whole file
	}
)

// MaxPicks bounds the files of an [Accept] or a [Reject], and the hunks of each.
const MaxPicks = 2_000

// Command returns the name of the command on the wire.
func (Accept) Command() string { return "accept" }
func (Reject) Command() string { return "reject" }

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
