package query

// ListSkills asks for []SkillInfo: those of a folder that can be used first.
type ListSkills struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
}

// Query returns the name of the query on the wire.
func (ListSkills) Query() string { return "skills" }

// SkillInfo is a skill as it was found.
type SkillInfo struct {
	Name        string   `json:"name"` // what it is called by
	Description string   `json:"description"`
	Path        string   `json:"path"`     // of its SKILL.md; builtin:NAME comes with the program
	Source      string   `json:"source"`   // managed, user, project, plugin or builtin
	Valid       bool     `json:"valid"`    // it is as the open standard for skills wants it
	Warnings    []string `json:"warnings"` // English

	Usable bool     `json:"usable"`
	Off    string   `json:"off,omitempty"` // why it is not, in English
	Hint   string   `json:"argumentHint,omitempty"`
	Paths  []string `json:"paths,omitempty"`        // of the files that it is for
	Fork   bool     `json:"fork,omitempty"`         // it runs in a session of its own
	Tools  []string `json:"allowedTools,omitempty"` // rules that it allows for the turn
	Typed  bool     `json:"userInvocable"`          // a person may call it
	Called bool     `json:"modelInvocable"`         // a model may
	Text   string   `json:"text,omitempty"`         // where one was asked for
}
