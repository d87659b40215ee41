package query

import "dure/agent"

// ListAgents asks for []AgentInfo: the types of agents of a folder, those that count
// first.
type ListAgents struct {
	Workdir string `json:"workdir,omitempty"` // "" = the program's
	Name    string `json:"name,omitempty"`    // only those of this name, with their prompts
}

// Query returns the name of the query on the wire.
func (ListAgents) Query() string { return "agents" }

// CheckAgent asks for the AgentInfo of a file: whether it is that of a type of agents.
type CheckAgent struct {
	Path string `json:"path"`
}

// Query returns the name of the query on the wire.
func (CheckAgent) Query() string { return "agents.check" }

// AddAgent asks for an AgentFile: a new one for a type of agents, of the user or of the
// project. No file is overwritten.
type AddAgent struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Project     bool   `json:"project,omitempty"`
}

// Query returns the name of the query on the wire.
func (AddAgent) Query() string { return "agents.add" }

// AgentFile is the file of a type of agents.
type AgentFile struct {
	Path string `json:"path"`
}

// AgentInfo is a type of agents that work can be handed to.
type AgentInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Path        string `json:"path,omitempty"` // its file
	Source      string `json:"source"`         // managed, flag, project, user, plugin or builtin
	Valid       bool   `json:"valid"`
	State       string `json:"state"`            // active, invalid, hidden or untrusted
	Hidden      string `json:"hidden,omitempty"` // what of the same name counts instead

	Tools      []string    `json:"tools"` // null = all
	Without    []string    `json:"disallowedTools,omitempty"`
	Model      string      `json:"model,omitempty"`
	Mode       agent.Mode  `json:"permissionMode,omitempty"`
	Effort     string      `json:"effort,omitempty"`
	Steps      int         `json:"maxTurns,omitempty"`
	Memory     string      `json:"memory,omitempty"`
	Background bool        `json:"background,omitempty"`
	Prompt     string      `json:"prompt,omitempty"`
	Faults     []FileFault `json:"faults"` // why it cannot be used
	Warnings   []FileFault `json:"warnings"`
}

// FileFault is something wrong in a file that extends the program.
type FileFault struct {
	Line    int    `json:"line,omitempty"`   // from 1; 0 = it is about the file
	Column  int    `json:"column,omitempty"` // from 1; 0 = not known
	Key     string `json:"key,omitempty"`
	Message string `json:"message"` // English
	Fix     string `json:"fix,omitempty"`
}
