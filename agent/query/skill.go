package query

// ListSkills asks for []SkillInfo: those of a folder that can be used first.
type ListSkills struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
}

// Query returns the name of the query on the wire.
func (ListSkills) Query() string { return "skills" }

// ShowSkill asks for the SkillInfo of a skill of a folder with its text, by its name or the
// folder that it lies in, or with Path of one that only lies there, without its text.
type ShowSkill struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Name    string `json:"name,omitempty"`
	Path    string `json:"path,omitempty"`
}

// Query returns the name of the query on the wire.
func (ShowSkill) Query() string { return "skills.show" }

// AddSkill asks for SkillAdded: a new skill from a template, or with From a copy of the one
// in that folder.
type AddSkill struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Name    string `json:"name,omitempty"`
	From    string `json:"from,omitempty"`
	Scope   string `json:"scope"` // user or project
}

// Query returns the name of the query on the wire.
func (AddSkill) Query() string { return "skills.add" }

// SkillAdded is a skill that was added, with the names of tools in it that nobody knows.
type SkillAdded struct {
	SkillInfo
	Unknown []string `json:"unknown,omitempty"`
}

// ExportSkill asks for the SkillInfo of a copy of a skill, in the folder Into.
type ExportSkill struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Name    string `json:"name"`
	Into    string `json:"into"`
}

// Query returns the name of the query on the wire.
func (ExportSkill) Query() string { return "skills.export" }

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
