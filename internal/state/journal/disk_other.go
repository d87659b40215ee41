//go:build unix && !linux

package journal

import "os"

// lockedBytes is how much of a lock file others cannot read while it is locked.
const lockedBytes = 0

// dataSync also empties the cache of the drive on macOS, which is what
// [os.File.Sync] asks for there.
func dataSync(f *os.File) error { return f.Sync() }

// networkFS names the network file system that holds a folder, or is "".
func networkFS(string) (string, error) { return "", nil }
