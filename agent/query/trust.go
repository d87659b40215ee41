package query

import "time"

// Questions about folders, and what the user has decided on them.
type (
	// ListTrust asks for the [DecidedFolder]s.
	ListTrust struct{}

	// ListLeft asks for what the working folder brings and is not in force, because nobody
	// trusts it: keys of settings, and names of files.
	ListLeft struct{}

	// LookAtFolder asks for a [FolderTrust]. Nothing of the folder is executed.
	LookAtFolder struct {
		Dir string `json:"dir,omitempty"` // "" = the working folder
	}

	// ChangeTrust decides on a folder, and returns whether something was changed.
	ChangeTrust struct {
		Dir string `json:"dir"`
		Do  string `json:"do"` // of those below
		By  string `json:"by,omitempty"`

		// Files are those of the [FolderTrust] that the user has seen. A folder that has other
		// files by now is not trusted.
		Files []FolderFile `json:"files,omitempty"`
	}
)

// What becomes of the trust in a folder.
const (
	TrustFolder  = "trust"
	NeverTrust   = "never" // and the user does not want to be asked
	RevokeFolder = "revoke"
)

// Query returns the name of the query on the wire.
func (ListTrust) Query() string    { return "trust" }
func (ListLeft) Query() string     { return "trust.left" }
func (LookAtFolder) Query() string { return "trust.look" }
func (ChangeTrust) Query() string  { return "trust.change" }

// DecidedFolder is a folder that was decided on.
type DecidedFolder struct {
	Path  string    `json:"path"`
	At    time.Time `json:"at"`
	By    string    `json:"by,omitempty"`
	Never bool      `json:"never,omitempty"`
	Files int       `json:"files,omitempty"`
	Gone  bool      `json:"gone,omitempty"` // it is not there any more, or another folder is
}

// FolderTrust is what a folder brings that changes what runs, and what the user has decided on
// it.
type FolderTrust struct {
	Path   string         `json:"path"` // as it really is
	State  FolderState    `json:"state"`
	Files  []FolderFile   `json:"files"`
	Texts  []string       `json:"texts,omitempty"`  // that a model is told to follow
	Brings map[string]int `json:"brings,omitempty"` // how many files, by what they are for
}

// Stale returns the files that have changed since the folder was trusted, which is why it is
// not any more; nil = that is not why.
func (f FolderTrust) Stale() (files []string) {
	if f.State.Trusted || f.State.Replaced || f.State.Unfit != "" {
		return nil
	}
	for _, c := range f.State.Changed {
		files = append(files, c.Path)
	}
	return files
}

// FolderFile is one piece of a folder's content.
type FolderFile struct {
	Path string `json:"path"`           // below the folder, with slashes; the repository chose it, line ends and all
	Hash string `json:"hash,omitempty"` // SHA-256 of what it holds; "" = a link that leads to a folder, or nowhere
	Size int64  `json:"size,omitempty"`
	Link string `json:"link,omitempty"` // where it points, as it is written; "" = no link
	Exec bool   `json:"exec,omitempty"` // it may be executed
}

// FolderState is what is known of a folder with the content that it has now.
type FolderState struct {
	Trusted bool `json:"trusted"`
	Never   bool `json:"never,omitempty"`   // the user does not want to be asked
	Nothing bool `json:"nothing,omitempty"` // it brings nothing that would need trust

	// Unfit says why it cannot be trusted; "" = it can.
	Unfit string `json:"unfit,omitempty"`

	// Replaced: a folder of the same path was trusted, and this is another one.
	Replaced bool `json:"replaced,omitempty"`

	// Changed is how the content differs from the one that was trusted.
	Changed []FolderChange `json:"changed,omitempty"`

	At time.Time `json:"at,omitzero"` // of the decision; zero = there is none
	By string    `json:"by,omitempty"`
}

// Ask reports whether the user should be asked for trust.
func (s FolderState) Ask() bool { return !s.Trusted && !s.Never && !s.Nothing && s.Unfit == "" }

// FolderChange is a file that differs from the one that was trusted.
type FolderChange struct {
	Path string `json:"path"` // see [FolderFile.Path]
	Kind string `json:"kind"` // added, removed or changed
	What string `json:"what"` // what it is for: settings, hook, skill ...

	// Note says what else changed than text: where a link leads, whether the file
	// can be executed.
	Note string `json:"note,omitempty"`

	// Diff is the difference as a unified diff, for texts of at most 64 KiB; "" =
	// there is none to show. Signs that act on a terminal or hide text are written
	// out.
	Diff string `json:"diff,omitempty"`
}
