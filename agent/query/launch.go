package query

// What is launched from the prompt, and belongs to no session.
type (
	// Calculate asks for a [Calculation].
	Calculate struct {
		Text string `json:"text"`
	}

	// FindEmoji asks for []Emoji that all words of Text fit, in English or Korean, the
	// best first.
	FindEmoji struct {
		Text  string `json:"text"`
		Limit int    `json:"limit,omitempty"` // at most 200; 0 = 20
	}

	// ListSnippets asks for []Snippet, by name.
	ListSnippets struct{}

	// FillSnippet asks for a [FilledSnippet].
	FillSnippet struct {
		Name   string            `json:"name"`
		Values map[string]string `json:"values,omitempty"`
	}

	// MakeSnippet makes the file of a new snippet, and asks for its path as a string.
	MakeSnippet struct {
		Name string `json:"name"`
		Text string `json:"text,omitempty"` // "" = an example
	}

	// ListLinks asks for []Link, by name.
	ListLinks struct{}

	// FillLink asks for the address of a link as a string: its parameters are taken
	// from Values in their order; what is over belongs to the last of them.
	FillLink struct {
		Name   string   `json:"name"`
		Values []string `json:"values,omitempty"`
	}

	// SetLink stores a link and returns it as a Link. It replaces a link of the same name.
	SetLink struct{ Link }

	// RemoveLink removes a link and returns it as a Link.
	RemoveLink struct {
		Name string `json:"name"`
	}

	// FindFiles asks for []string: the files of a folder whose path fits Text, the best
	// first. What the folder ignores is not among them.
	FindFiles struct {
		Text    string `json:"text"`
		Workdir string `json:"workdir,omitempty"` // "" = that of the program
		Limit   int    `json:"limit,omitempty"`   // at most 50; 0 = 50
	}

	// DescribeSystem asks for a [System].
	DescribeSystem struct{}

	// ListPalette asks for []PaletteEntry: the skills, agents, snippets and links that
	// can be used in a folder, by kind and name.
	ListPalette struct {
		Workdir string `json:"workdir,omitempty"` // "" = that of the program
	}

	// SearchWeb asks for a [WebAnswer]. The search is a call of the tool for it, by
	// the gate, and the summary a side question, in a session that is made for it.
	SearchWeb struct {
		Text  string `json:"text"`
		Count int    `json:"count,omitempty"` // results, at most 20; 0 = 8
		Plain bool   `json:"plain,omitempty"` // no model is asked
	}
)

// Query returns the name of the query on the wire.
func (Calculate) Query() string      { return "calculate" }
func (FindEmoji) Query() string      { return "emoji" }
func (ListSnippets) Query() string   { return "snippets" }
func (FillSnippet) Query() string    { return "snippets.fill" }
func (MakeSnippet) Query() string    { return "snippets.make" }
func (ListLinks) Query() string      { return "links" }
func (FillLink) Query() string       { return "links.fill" }
func (SetLink) Query() string        { return "links.set" }
func (RemoveLink) Query() string     { return "links.remove" }
func (FindFiles) Query() string      { return "files" }
func (DescribeSystem) Query() string { return "system" }
func (ListPalette) Query() string    { return "palette" }
func (SearchWeb) Query() string      { return "web.search" }

// Calculation is what came out.
type Calculation struct {
	Text     string `json:"text"`   // what was asked
	Result   string `json:"result"` // with its unit
	Exact    bool   `json:"exact"`  // false: it was rounded
	Fraction string `json:"fraction,omitempty"`
}

// Emoji is a sign with its names.
type Emoji struct {
	Sign string `json:"emoji"`
	Name string `json:"name"`
	Word string `json:"ko,omitempty"` // its name in Korean
}

// Snippet is a text with variables that a user has written.
type Snippet struct {
	Name        string     `json:"name"`
	Description string     `json:"description,omitempty"`
	Path        string     `json:"path"`
	Variables   []Variable `json:"variables,omitempty"` // that are not known by themselves, in order
	Text        string     `json:"text"`
	Error       string     `json:"error,omitempty"` // it cannot be used, and why
}

// Variable is a gap in a snippet.
type Variable struct {
	Name    string `json:"name"`
	Default string `json:"default,omitempty"`
	Needed  bool   `json:"needed,omitempty"` // there is no default
}

// FilledSnippet is a snippet with its gaps filled in.
type FilledSnippet struct {
	Name    string   `json:"name"`
	Text    string   `json:"text"`
	Missing []string `json:"missing,omitempty"` // variables that nothing was given for; Text has them as they are
	Unused  []string `json:"unused,omitempty"`  // values for variables that are not there
}

// Link is an address with parameters.
type Link struct {
	Name        string   `json:"name"`
	Description string   `json:"description,omitempty"`
	URL         string   `json:"url"`
	Parameters  []string `json:"parameters,omitempty"` // in order
}

// System says what the program runs on.
type System struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Name       string `json:"name,omitempty"` // as it calls itself
	Version    string `json:"version"`        // of this program
	CPUs       int    `json:"cpus"`
	Memory     int64  `json:"memory,omitempty"`     // bytes
	MemoryFree int64  `json:"memoryFree,omitempty"` // that could be used
	DiskFree   int64  `json:"diskFree,omitempty"`   // bytes, in the working folder
	Workdir    string `json:"workdir"`
	Home       string `json:"home"` // the user's configuration
	Data       string `json:"data"` // where sessions are kept
	Time       string `json:"time"` // with its zone
	Language   string `json:"language"`
}

// PaletteEntry is something that can be launched.
type PaletteEntry struct {
	Kind        string `json:"kind"` // command, skill, agent, snippet or link
	Name        string `json:"name"`
	Description string `json:"description,omitempty"` // in the user's language where there is one
	Use         string `json:"use"`                   // what to type
}

// WebAnswer is what a search has found. All of it was written by others.
type WebAnswer struct {
	Session string   `json:"session"` // the one that was made for it
	Query   string   `json:"query"`
	Results []WebHit `json:"results"`
	Summary string   `json:"summary,omitempty"`
	Failed  string   `json:"failed,omitempty"` // why there is no summary although one was asked for
}

// WebHit is a page.
type WebHit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet,omitempty"`
	Date    string `json:"date,omitempty"`
}
