//go:build unix

package plugins

import "io/fs"

// runnable reports whether a file can be run.
func runnable(info fs.FileInfo) bool { return info.Mode().Perm()&0o100 != 0 }
