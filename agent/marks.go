package agent

import "encoding/json"

// Marks are facts of a session that its log keeps for its capabilities.
type Marks struct {
	Files    map[string]FileState       `json:"files,omitempty"`    // what the session has seen of files
	Kept     map[string]json.RawMessage `json:"kept,omitempty"`     // by extensions, see [ExtensionKept]
	Spent    []string                   `json:"spent,omitempty"`    // hooks that run once and have done so, the newest last
	Selected []string                   `json:"selected,omitempty"` // tools that the model has looked for, the oldest first, each once
	Off      []string                   `json:"off,omitempty"`      // tools, and groups, that a person has switched off, each once
}
