package agent

import "encoding/json"

// ExtensionKept records what an extension of a bundle has kept, for when the session is
// opened again: the newest of each counts.
type ExtensionKept struct {
	Extension string          `json:"extension"`
	State     json.RawMessage `json:"state"`
}

// Kind returns the name of the kind on the wire.
func (ExtensionKept) Kind() string { return "extension.kept" }
