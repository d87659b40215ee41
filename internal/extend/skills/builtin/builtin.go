// Package builtin has the skills that come with the program: a folder for each, with a
// SKILL.md in it. It owns their texts and nothing else: who reads them treats them like
// those of a user. They allow for a turn what only reads; whatever changes something is
// put to the user as ever. It starts no goroutines.
package builtin

import "embed"

// Files has NAME/SKILL.md for each skill.
//
//go:embed */SKILL.md
var Files embed.FS
