package agent

// What starts a skill.
const (
	SkillByUser  = "user"  // typed as a command
	SkillByModel = "model" // called as a tool
	SkillByPath  = "path"  // a file that it is for was touched

	// SkillByCommand is a command of a file, which was typed and holds for the turn
	// like a skill.
	SkillByCommand = "command"
)

// Skills, from when they are in force to when they are done.
type (
	// SkillActivated is written before anything of a skill takes effect.
	SkillActivated struct {
		Run       string   `json:"run"`                 // ID of this activation
		Skill     string   `json:"skill"`               // its name
		Source    string   `json:"source,omitempty"`    // its file; "" = built in
		By        string   `json:"by"`                  // user, model, path or command
		Call      string   `json:"call,omitempty"`      // the call, or the input, that asked for it
		Arguments string   `json:"arguments,omitempty"` // as they were written
		Model     string   `json:"model,omitempty"`     // that it asks for
		Effort    string   `json:"effort,omitempty"`    // that it asks for, for the turn
		Tools     []string `json:"tools,omitempty"`     // rules that it allows for the turn
		Without   []string `json:"without,omitempty"`   // tools that it takes away for the turn
		Fork      bool     `json:"fork,omitempty"`      // it runs in a session of its own
	}

	// SkillCompleted records how it came out: of one that runs in the conversation,
	// that its text has entered it.
	SkillCompleted struct {
		Run     string `json:"run"`
		Skill   string `json:"skill"`
		OK      bool   `json:"ok"`
		Session string `json:"session,omitempty"` // that it ran in
		Steps   int    `json:"steps,omitempty"`   // requests in that session
		Error   string `json:"error,omitempty"`
		Millis  int64  `json:"ms,omitempty"`

		// Text is what the model is to read of it at its next request. Same is an
		// earlier activation whose text is before the model already.
		Text string `json:"text,omitempty"`
		Same string `json:"same,omitempty"`

		// Background: it goes on in a session of its own, and another one of the same run
		// says how it came out.
		Background bool `json:"background,omitempty"`
	}
)

// Kind returns the kind's name on disk and on the wire.
func (SkillActivated) Kind() string { return "skill.activated" }
func (SkillCompleted) Kind() string { return "skill.completed" }
