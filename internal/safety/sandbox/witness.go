package sandbox

import (
	"bytes"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// The bounds of what is read from the output of a command.
const (
	maxLine    = 4 << 10 // of a line that complains; what is longer is not looked at
	maxDenials = 16
	maxWords   = 64 // of a line, that may be paths
)

// A complaint is what a program says when the system refuses it something.
type complaint int

const (
	readOnly complaint = iota + 1 // EROFS
	refused                       // EACCES, EPERM
	missing                       // ENOENT, and what is said of sockets
	blocked                       // what a hold makes of an attempt to make something else
)

// complaints are texts of the C library and of what words the same otherwise, in
// lower case.
var complaints = []struct {
	text string
	is   complaint
}{
	{"read-only file system", readOnly},
	{"erofs", readOnly},
	{"permission denied", refused},
	{"operation not permitted", refused},
	{"eacces", refused},
	{"eperm", refused},
	{"resource busy", blocked},
	{"is a directory", blocked},
	{"file exists", blocked},
	{"no such file", missing},
	{"enoent", missing},
	{"cannot connect", missing},
	{"connection refused", missing},
}

// A witness reads along what a command writes, and keeps what it says it was
// refused, where that was the confinement. It is safe for concurrent use.
type witness struct {
	dir   string
	judge func(path string, c complaint) (Denial, bool)

	mu     sync.Mutex
	denied []Denial
}

// over returns a writer that reads along and passes on; to may be nil.
func (w *witness) over(to io.Writer) io.Writer { return &along{w: w, to: to} }

// list returns what was found.
func (w *witness) list() []Denial {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.denied)
}

// along is one stream that a witness reads.
type along struct {
	w    *witness
	to   io.Writer
	rest []byte // the start of a line
	long bool   // of a line that is too long
}

func (a *along) Write(p []byte) (int, error) {
	a.read(p)
	if a.to == nil {
		return len(p), nil
	}
	return a.to.Write(p)
}

func (a *along) read(p []byte) {
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		line := p
		if i >= 0 {
			line = p[:i]
		}
		if len(a.rest)+len(line) > maxLine {
			a.long, a.rest = true, a.rest[:0]
		}
		switch {
		case i < 0:
			if !a.long {
				a.rest = append(a.rest, line...)
			}
			return
		case len(a.rest) > 0:
			a.w.line(append(a.rest, line...))
		case !a.long:
			a.w.line(line)
		}
		a.rest, a.long, p = a.rest[:0], false, p[i+1:]
	}
}

// line looks at a whole line.
func (w *witness) line(line []byte) {
	lower := bytes.ToLower(line)
	for _, c := range complaints {
		if i := bytes.Index(lower, []byte(c.text)); i >= 0 && i <= len(line) {
			if !w.paths(string(line[:i]), c.is) {
				w.paths(string(line[i:]), c.is)
			}
			return
		}
	}
}

// paths judges what may be a path in a part of a line: what stands between
// quotes, and each word, from the last on, as programs name themselves first. It
// stops at the first that the confinement refused.
func (w *witness) paths(part string, c complaint) bool {
	words := strings.FieldsFunc(part, func(r rune) bool { return strings.ContainsRune(" \t\r'\"`‘’“”()[]<>,;=", r) })
	for _, quote := range []string{"'", `"`, "`"} {
		if parts := strings.Split(part, quote); len(parts) > 2 {
			for i := 1; i < len(parts); i += 2 {
				words = append(words, parts[i])
			}
		}
	}
	slices.Reverse(words)
	for _, word := range words[:min(len(words), maxWords)] {
		word = strings.TrimPrefix(strings.TrimRight(word, ":."), "unix://")
		if i := strings.LastIndexByte(word, ':'); i > 0 { // file:line: and the like
			word = word[i+1:]
		}
		if word == "" {
			continue
		}
		if !filepath.IsAbs(word) {
			word = filepath.Join(w.dir, word)
		}
		if d, ok := w.judge(filepath.Clean(word), c); ok {
			w.add(d)
			return true
		}
	}
	return false
}

func (w *witness) add(d Denial) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.denied) < maxDenials && !slices.Contains(w.denied, d) {
		w.denied = append(w.denied, d)
	}
}
