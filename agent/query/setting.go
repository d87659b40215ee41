package query

import "encoding/json"

// SettingChange is what a change of a setting has done.
type SettingChange struct {
	Key    string          `json:"key"`
	Scope  string          `json:"scope"`
	Path   string          `json:"path"`
	Value  json.RawMessage `json:"value"`            // in the file now; null = none
	Live   bool            `json:"live"`             // it holds from the next call on, and not only from the next start
	Counts bool            `json:"counts"`           // what the file says now is in force
	Why    string          `json:"why,omitempty"`    // it is not
	By     string          `json:"by,omitempty"`     // who is stronger
	Same   bool            `json:"same,omitempty"`   // the file is as it was
	Secret bool            `json:"secret,omitempty"` // the value is not shown
}
