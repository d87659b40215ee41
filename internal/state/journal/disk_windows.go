package journal

import "os"

// lockedBytes is how much of a lock file others cannot read while it is locked.
const lockedBytes = 1

// noFollow is nothing here: links are looked for before.
const noFollow = 0

func dataSync(f *os.File) error { return f.Sync() }

// syncDir does nothing: the file system journals names by itself, and a folder
// cannot be synced.
func syncDir(string) error { return nil }

// networkFS names the network file system that holds a folder, or is "".
func networkFS(string) (string, error) { return "", nil }
