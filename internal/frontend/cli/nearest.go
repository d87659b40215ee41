package cli

import "dure/internal/base/near"

// Nearest returns the name of a command or flag that a mistyped word most likely means, or
// "": commands know this package, and not what is beneath it.
func Nearest(word string, candidates []string) string { return near.Nearest(word, candidates) }
