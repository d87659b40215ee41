// Package presets has the agents that come with the program: roles, each a NAME.md with
// its prompt, its tools, its model and the steps that it may take. It owns their texts
// and nothing else: who reads them treats them like those of a user, and no preset may do
// more than the session that starts it. It starts no goroutines.
package presets

import "embed"

// Files has NAME.md for each preset.
//
//go:embed *.md
var Files embed.FS
