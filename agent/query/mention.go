package query

// What a person writes may name files, folders, lines, symbols, addresses and sessions.
// Those are read when the input enters the conversation, see [agent.ContextAdded]; a
// front-end can ask before what they will be.
type (
	// Mentions asks for []Mentioned: what an input of Session, which has to be open,
	// would have read with it.
	Mentions struct {
		Session string   `json:"session"`
		Text    string   `json:"text"`
		Without []string `json:"without,omitempty"` // as in [agent.Prompt]
	}

	// CompleteMention asks for []string: what may stand behind an @ in an input of
	// Session, which has to be open, the likeliest first.
	CompleteMention struct {
		Session string `json:"session"`
		Typed   string `json:"typed"`           // what stands behind the @ so far
		Limit   int    `json:"limit,omitempty"` // at most, and by default, 50
	}

	// CompletePrompt asks for [PromptValues]: how the last argument of a prompt of a server
	// may go on that is being typed in Session, which has to be open.
	CompletePrompt struct {
		Session string `json:"session"`
		Text    string `json:"text"` // from the slash to the cursor
	}
)

// Query returns the name of the query on the wire.
func (Mentions) Query() string        { return "mentions" }
func (CompleteMention) Query() string { return "mentions.complete" }
func (CompletePrompt) Query() string  { return "prompts.complete" }

// PromptValues is how an argument may go on, as its server says.
type PromptValues struct {
	Argument string   `json:"argument,omitempty"` // its name; "" = none is being typed
	Typed    string   `json:"typed,omitempty"`    // the end of the text that it stands in, quotes and all
	Value    string   `json:"value,omitempty"`    // what that means
	Values   []string `json:"values"`             // what the whole may be, without quotes
}

// Mentioned is something that an input names, without its content.
type Mentioned struct {
	ID    string `json:"id"`   // its place in the text
	Kind  string `json:"kind"` // path, folder, symbol, url, session
	Text  string `json:"text"` // as it is written
	Name  string `json:"name"`
	Path  string `json:"path,omitempty"` // below the workspace, with slashes
	First int    `json:"first,omitempty"`
	Last  int    `json:"last,omitempty"`
	Lines int    `json:"lines,omitempty"` // that are read
	Bytes int    `json:"bytes,omitempty"` // that are read
	Media string `json:"media,omitempty"` // type of a picture or document

	// State is attached, cut (attached, but for its end), named (the model is told of
	// it, and reads nothing) or left. Reason says why it is left: missing, outside,
	// secret, denied, binary, no-lines, full, unreadable, too-large, no-media, ...
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// The states of a [Mentioned].
const (
	MentionAttached = "attached"
	MentionCut      = "cut"
	MentionNamed    = "named"
	MentionLeft     = "left"
)
