package checkpoint

import (
	"crypto/sha256"
	"io/fs"
	"strings"
)

// Kind says what stands at a path.
type Kind uint8

// The kinds. A path without an entry has nothing, as far as the walk looks.
const (
	None    Kind = iota // nothing, and that is known: the path was named while it lay in an ignored folder
	File                // a regular file, kept
	Link                // a symbolic link, kept
	Dir                 // a folder, kept with its mode
	Skipped             // something that is not kept, for a Reason
)

var kindNames = [...]string{"none", "file", "link", "folder", "not kept"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Reason says why something is not kept. What is not kept is never overwritten
// or deleted by a rewind, unless that is forced.
type Reason uint8

// The reasons.
const (
	Kept       Reason = iota
	Ignored           // by the rules of git, or by Config.Ignored
	Large             // larger than Config.MaxFile
	Special           // a socket, a device, a named pipe
	Unreadable        // no permission
	Full              // the store has Config.MaxBytes
	Deep              // more than maxDepth folders below its root
)

var reasonNames = [...]string{"", "ignored", "large", "special", "unreadable", "full", "deep"}

func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "unknown"
}

// modeBits are the bits of a mode that are kept. The setuid bits are not: they
// were given to a content by somebody who may do so.
const modeBits = fs.ModePerm

// hash is a SHA-256 of a file's bytes. For a file that is too large to be kept
// it is one of its size and time, so that a change shows.
type hash [sha256.Size]byte

// entry is what a snapshot knows of one path. Two entries are equal when the
// snapshot cannot tell them apart.
type entry struct {
	kind   Kind
	reason Reason
	mode   fs.FileMode // modeBits of files and folders
	size   int64       // of files, kept or not
	hash   hash        // of files; zero for others
	target string      // of links
}

// tree is the entries of one snapshot by path: absolute, with slashes.
type tree map[string]entry

// parent returns the folder of a path of a tree.
func parent(path string) string {
	if i := strings.LastIndexByte(path, '/'); i > 0 {
		return path[:i]
	}
	return "/"
}

// base returns the last name of a path of a tree.
func base(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// below reports whether path is dir or in it.
func below(path, dir string) bool {
	return strings.HasPrefix(path, dir) && (len(path) == len(dir) || path[len(dir)] == '/' || strings.HasSuffix(dir, "/"))
}

// unkept reports whether t knows something at path, or a folder above it, that
// it does not keep: then nothing can be said of what was there.
func (t tree) unkept(path, root string) (Reason, bool) {
	for at := path; below(at, root); at = parent(at) {
		e, ok := t[at]
		if ok && e.kind == Skipped {
			return e.reason, true
		}
		if ok && at == path {
			return Kept, false // it was named, wherever it lies
		}
		if at == root {
			break
		}
	}
	return Kept, false
}
