package agent

// What happens to the conversation and to the workspace as a whole. The log
// keeps everything; these events say what of it counts from now on.
type (
	// ContextCompacted puts Head in the place of the beginning of the
	// conversation, and shortens results in what stays of it.
	ContextCompacted struct {
		Turn     string   `json:"turn,omitempty"`
		Trigger  string   `json:"trigger"` // auto, manual or overflow
		Strategy string   `json:"strategy"`
		Stages   []string `json:"stages,omitempty"`
		Focus    string   `json:"focus,omitempty"` // what the user wanted kept

		Messages int       `json:"messages"` // how many messages Head stands for
		Through  int64     `json:"through"`  // number of the last event behind those
		Head     []Message `json:"head,omitempty"`
		Pinned   []Pinned  `json:"pinned,omitempty"` // what Head has word for word
		Trimmed  []Trimmed `json:"trimmed,omitempty"`

		Before int `json:"before"` // tokens of the conversation, estimated
		After  int `json:"after"`
	}

	// Pinned is a fact that every compaction carries on as it is.
	Pinned struct {
		Kind   string `json:"kind"` // goal, rule, plan, decision, fact, todo, file, call
		Text   string `json:"text"`
		SHA256 string `json:"sha256"`        // of Text, in hexadecimal
		Seq    int64  `json:"seq,omitempty"` // of the event that it comes from
	}

	// Trimmed is a message in which results are shortened.
	Trimmed struct {
		Message int               `json:"message"` // counted in what stays, from 0
		Texts   map[string]string `json:"texts"`   // what stands for the result of a call, by its ID
		Hash    []byte            `json:"hash"`    // of the message that comes of it
	}

	// ContextAdded puts a text before the model that nobody has said: instruction
	// files, what the input has named, lessons of past tasks, the words of hooks. The
	// model reads it as a message of the user, and knows where it comes from by what
	// the text says itself.
	ContextAdded struct {
		Source string `json:"source"`        // memory, rules, mention, lessons, checklist, hook:NAME, ...
		Key    string `json:"key,omitempty"` // what of the source it is; the newest with a key counts

		// For people: what it is, and the files or addresses that it comes from.
		Title string   `json:"title,omitempty"`
		From  []string `json:"from,omitempty"`

		Text string `json:"text"`

		Blocks []Block `json:"blocks,omitempty"` // images and documents, behind Text
	}

	// ContextRestored takes the newest compaction back.
	ContextRestored struct {
		Of int64 `json:"of"` // number of the compaction's event
	}

	// ConversationRewound takes everything out of the conversation that was said
	// after event To.
	ConversationRewound struct {
		To int64  `json:"to"`
		By string `json:"by,omitempty"` // who wanted it
	}

	// CheckpointTaken records how the workspace was found or left.
	CheckpointTaken struct {
		ID      string `json:"id"`             // of the snapshot
		Call    string `json:"call,omitempty"` // the call that it was taken around
		When    string `json:"when"`           // before or after that call, or input
		Changed int    `json:"changed,omitempty"`
		Files   int    `json:"files"`
		Bytes   int64  `json:"bytes"`             // added to the store
		Skipped int    `json:"skipped,omitempty"` // files that are too large
		Millis  int64  `json:"ms,omitempty"`
		Child   string `json:"child,omitempty"` // the child session whose call it is; "" = the session itself
	}

	// FilesRewound records that files were put back to how a checkpoint has them.
	FilesRewound struct {
		To     string `json:"to"`              // checkpoint
		From   string `json:"from,omitempty"`  // checkpoint of how they were before, to undo this
		After  string `json:"after,omitempty"` // checkpoint of how they are now
		Seq    int64  `json:"seq,omitempty"`   // the event to which the user went back
		By     string `json:"by,omitempty"`
		Files  int    `json:"files"`            // that were changed
		Leaves int    `json:"leaves,omitempty"` // that were left alone, because others have changed them

		// Rejected says that it was no going back: changes of these files were
		// rejected. Left names the first of those that were left alone.
		Rejected []Rejected `json:"rejected,omitempty"`
		Left     []Left     `json:"left,omitempty"`
	}
)

// Kind returns the kind's name on disk and on the wire.
func (ContextCompacted) Kind() string    { return "context.compacted" }
func (ContextAdded) Kind() string        { return "context.added" }
func (ContextRestored) Kind() string     { return "context.restored" }
func (ConversationRewound) Kind() string { return "conversation.rewound" }
func (CheckpointTaken) Kind() string     { return "checkpoint.taken" }
func (FilesRewound) Kind() string        { return "files.rewound" }

// A Timed is a message and the event that completed it.
type Timed struct {
	Seq int64 `json:"seq"`
	Message
}
