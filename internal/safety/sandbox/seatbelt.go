package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The bounds of a profile. One that is larger is not used, and nothing starts.
const (
	maxProfile = 64 << 10 // bytes of its text
	maxParams  = 1024
)

// seatbelt is what a profile for the sandbox of macOS is made of. Paths reach the
// profile as parameters only. All are real: the kernel compares what a path leads
// to.
type seatbelt struct {
	writes  []string  // folders, or files
	fixed   []string  // may not be moved or removed: what the other paths rest on
	protect []guarded // may not be written
	links   []string  // lead to what is in protect
	hide    []string
	reads   []string // of what is hidden
	grants  []string // may be written, whatever else is said
	tty     string   // of the command; "" = none
	net     Net
	port    int               // of the proxy
	spelt   map[string]string // what trueCase has found
}

// A guarded is a path that is there, and a path below it that may not be. Below,
// upper and lower case are one.
type guarded struct{ base, below string }

// newSeatbelt reads a confinement. Temp is a folder for commands to write to.
func newSeatbelt(c Confinement, g Grant, temp string, port int) (*seatbelt, error) {
	s := &seatbelt{net: c.Net, port: port, spelt: map[string]string{}}
	for i, root := range slices.Concat(c.Roots, c.Extra) {
		real, below := s.settle(root)
		if below != "" || real == "/" {
			if i >= len(c.Roots) {
				continue
			}
			return nil, fmt.Errorf("confining a command: %s cannot be its workspace", root)
		}
		if !g.ReadOnly {
			s.writes = append(s.writes, real)
		}
		for _, name := range c.ProtectNames {
			s.guard(filepath.Join(real, name))
		}
		for _, name := range c.PresentNames {
			if path := filepath.Join(real, name); foundAt(path) {
				s.guard(path)
			}
		}
	}
	for _, path := range append(slices.Clone(c.Writable), temp) {
		if real, below := s.settle(path); below == "" {
			s.writes = append(s.writes, real)
		}
	}
	for _, path := range c.Protect {
		s.guard(path)
	}
	s.hide, s.reads = s.settled(c.Hide), s.settled(append(slices.Clone(c.Read), g.Reads...))
	for _, path := range g.Writes {
		s.grant(s.whole(path))
	}
	s.fix()
	return s, nil
}

// grant opens a path, and what is protected and hidden in it if it opens that too.
func (s *seatbelt) grant(path string) {
	kept := func(other string) bool { return below(path, other) && !opens(path, other) }
	if slices.ContainsFunc(s.protect, func(g guarded) bool { return kept(filepath.Join(g.base, g.below)) }) || slices.ContainsFunc(s.hide, kept) {
		s.writes = append(s.writes, path)
		return
	}
	s.grants = append(s.grants, path)
}

// settle returns the deepest part of an absolute path that is there, resolved, and
// the rest of it.
func (s *seatbelt) settle(path string) (real, below string) {
	path = filepath.Clean(path)
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			below, _ = filepath.Rel(at, path)
			if below == "." {
				below = ""
			}
			return s.trueCase(real), below
		}
		if at == filepath.Dir(at) {
			return at, ""
		}
	}
}

// whole is a path, resolved as far as it is there.
func (s *seatbelt) whole(path string) string {
	real, below := s.settle(path)
	return filepath.Join(real, below)
}

// settled resolves paths and leaves out those that are not there.
func (s *seatbelt) settled(paths []string) []string {
	var all []string
	for _, path := range paths {
		if real, below := s.settle(path); below == "" && real != "/" {
			all = append(all, real)
		}
	}
	return all
}

// trueCase returns a path as the file system itself spells it: many do not tell
// upper and lower case apart, but the kernel compares byte by byte.
func (s *seatbelt) trueCase(path string) string {
	if known, ok := s.spelt[path]; ok {
		return known
	}
	found := path
	if dir, name := filepath.Dir(path), filepath.Base(path); dir != path {
		found = ownName(s.trueCase(dir), name)
	}
	s.spelt[path] = found
	return found
}

// ownName is the path of a file whose name in dir may be spelt otherwise.
func ownName(dir, name string) string {
	path := filepath.Join(dir, name)
	entries, err := os.ReadDir(dir)
	if err != nil || slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.Name() == name }) {
		return path
	}
	own, err := os.Lstat(path)
	if err != nil {
		return path
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && os.SameFile(info, own) {
			return filepath.Join(dir, e.Name())
		}
	}
	return path
}

func (s *seatbelt) guard(path string) {
	real, below := s.settle(path)
	s.protect = append(s.protect, guarded{real, below})
	// A link on the way could be made to lead elsewhere.
	at := strings.TrimSuffix(strings.TrimSuffix(filepath.Clean(path), below), "/")
	for ; at != "" && at != filepath.Dir(at); at = filepath.Dir(at) {
		link := filepath.Join(s.whole(filepath.Dir(at)), filepath.Base(at))
		if info, err := os.Lstat(link); err == nil && info.Mode().Type() == os.ModeSymlink {
			s.links = append(s.links, link)
		}
	}
}

// fix keeps in place what lies in a folder that may be written and has more to it
// than that: moved away, it could be replaced.
func (s *seatbelt) fix() {
	keep := func(path string) {
		for s.writable(path) && !slices.Contains(s.fixed, path) {
			s.fixed = append(s.fixed, path)
			path = filepath.Dir(path)
		}
	}
	for _, path := range slices.Concat(s.writes, s.hide, s.links) {
		keep(path)
	}
	for _, g := range s.protect {
		keep(g.base)
	}
}

func (s *seatbelt) writable(path string) bool {
	return slices.ContainsFunc(s.writes, func(w string) bool { return below(w, path) })
}

// below reports whether path is dir, or below it.
func below(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// seatbeltBase is what every program needs that does nothing. Reading is allowed;
// Apple events, the keychain and the rest of the system's own programs are not,
// nor are hard links, which would be a second name for what is protected.
// Terminals are those that a program makes itself: the user's is not among them.
const seatbeltBase = `(version 1)
(deny default)
(allow process-exec* process-fork)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow user-preference-read)
(allow file-read* file-map-executable)
(allow file-write* (regex #"^/dev/(null|zero|dtracehelper|fd/[0-9]+)$"))
(deny file-read* (regex #"^/dev/(tty|ttys[0-9]+)$"))
(allow pseudo-tty)
(allow file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write* file-ioctl
  (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))
(allow ipc-posix-sem ipc-posix-shm*)
(allow mach-lookup
  (global-name "com.apple.system.logger")
  (global-name "com.apple.logd")
  (global-name "com.apple.system.notification_center")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership")
  (global-name "com.apple.bsd.dirhelper"))
`

// seatbeltTerminal is for a command that was given a terminal.
const seatbeltTerminal = `(allow file-read* file-write* file-ioctl (literal "/dev/tty") (literal (param "TERMINAL")))
`

// seatbeltOpen is what names and routes are looked up with.
const seatbeltOpen = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.networkd"))
`

// profile returns the text of the profile, and its parameters as NAME=path. Of
// rules for one thing that is done with a file the last that fits decides.
func (s *seatbelt) profile() (text string, params []string, err error) {
	w := &profileWriter{}
	w.text.WriteString(seatbeltBase)
	if s.tty != "" {
		w.text.WriteString(seatbeltTerminal)
		w.param("TERMINAL", s.tty)
	}
	w.rule("allow file-write*", "W", s.writes)
	for _, g := range s.protect {
		w.guard(g)
	}
	w.literals("deny file-write-create file-write-unlink", "F", s.fixed)
	w.rule("deny file-read* file-map-executable file-write*", "H", s.hide)
	w.rule("allow file-read* file-map-executable", "R", s.reads)
	w.rule("allow file-read* file-write*", "G", s.grants)
	s.network(w)
	if w.err == nil && (w.text.Len() > maxProfile || len(w.params) > maxParams) {
		w.err = errors.New("confining a command: its confinement has too many paths")
	}
	return w.text.String(), w.params, w.err
}

func (s *seatbelt) network(w *profileWriter) {
	if s.net == NetOpen {
		w.text.WriteString(seatbeltOpen)
		return
	}
	// Sockets in the file system serve the processes of a build.
	w.text.WriteString("(allow system-socket (socket-domain AF_UNIX))\n")
	for i := range s.writes {
		at := `(subpath (param "W` + strconv.Itoa(i) + `"))`
		w.text.WriteString("(allow network-bind (local unix-socket " + at + "))\n(allow network-outbound (remote unix-socket " + at + "))\n")
	}
	if s.net == NetProxy {
		w.text.WriteString(`(allow network-outbound (remote ip "localhost:` + strconv.Itoa(s.port) + "\"))\n")
	}
}

// A profileWriter writes rules, and gives each path a parameter.
type profileWriter struct {
	text   strings.Builder
	params []string
	count  int // of guarded paths
	err    error
}

func (w *profileWriter) param(name, path string) string {
	if strings.ContainsRune(path, 0) || !filepath.IsAbs(path) {
		w.err = fmt.Errorf("confining a command: %q is no path", path)
	}
	w.params = append(w.params, name+"="+path)
	return `(param "` + name + `")`
}

// rule writes a rule about folders, or nothing when there are none.
func (w *profileWriter) rule(what, name string, paths []string) {
	w.filters(what, "subpath", name, paths)
}

func (w *profileWriter) literals(what, name string, paths []string) {
	w.filters(what, "literal", name, paths)
}

func (w *profileWriter) filters(what, filter, name string, paths []string) {
	if len(paths) == 0 {
		return
	}
	w.text.WriteString("(" + what)
	for i, path := range paths {
		w.text.WriteString("\n  (" + filter + " " + w.param(name+strconv.Itoa(i), path) + ")")
	}
	w.text.WriteString(")\n")
}

// guard writes what keeps a path from being written, and what is above it, as far
// as it may be missing, from being made or moved.
func (w *profileWriter) guard(g guarded) {
	base := w.param("P"+strconv.Itoa(w.count), g.base)
	w.count++
	if g.below == "" {
		w.text.WriteString("(deny file-write* (subpath " + base + "))\n")
		return
	}
	at := `(regex (string-append "^" (regex-quote ` + base + `) "`
	if g.base == "/" {
		at = `(regex (string-append "^" "`
	}
	pattern := ""
	parts := strings.Split(g.below, "/")
	for i, part := range parts {
		pattern += "/" + caseless(part)
		if i < len(parts)-1 {
			w.text.WriteString("(deny file-write-create file-write-unlink " + at + pattern + `$")))` + "\n")
		}
	}
	w.text.WriteString("(deny file-write* " + at + pattern + `(/.*)?$")))` + "\n")
}

// caseless returns a pattern for a name in upper and lower case. What is not
// ASCII can be spelt in more ways than one and stands for anything, as does what
// could end the pattern.
func caseless(name string) string {
	var b strings.Builder
	wild := false
	for _, r := range name {
		lower, upper := strings.ToLower(string(r)), strings.ToUpper(string(r))
		safe := r < 0x7f && r >= ' ' && !strings.ContainsRune(`"\^]`, r)
		switch {
		case !safe && !wild:
			b.WriteString("[^/]+")
		case safe && lower != upper:
			b.WriteString("[" + lower + upper + "]")
		case safe:
			b.WriteString("[" + string(r) + "]")
		}
		wild = !safe
	}
	return b.String()
}

// view lists what can be done with which paths, the longest of which counts.
func (s *seatbelt) view(temp string) []Mount {
	found := map[string]Access{"/": ReadOnly}
	set := func(access Access, paths ...string) {
		for _, path := range paths {
			found[path] = access
		}
	}
	set(Write, s.writes...)
	set(Private, s.whole(temp))
	for _, g := range s.protect {
		set(ReadOnly, filepath.Join(g.base, g.below))
	}
	set(Masked, s.hide...)
	set(ReadOnly, slices.DeleteFunc(slices.Clone(s.reads), s.writable)...)
	set(Write, s.grants...)
	var mounts []Mount
	for _, path := range slices.Sorted(maps.Keys(found)) {
		mounts = append(mounts, Mount{Path: path, Access: found[path]})
	}
	return mounts
}

// judge says whether the profile was what kept a command from a path. What its
// owner has closed to the user is not told apart from what lies outside.
func (s *seatbelt) judge(path string) (Denial, bool) {
	real := s.whole(path)
	in := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return below(p, real) })
	}
	switch {
	case in(s.grants):
		return Denial{}, false
	case in(s.hide) && !in(s.reads):
		return Denial{DeniedRead, path, "hidden"}, true
	case slices.ContainsFunc(s.protect, func(g guarded) bool { return belowFold(filepath.Join(g.base, g.below), real) }):
		return Denial{DeniedWrite, path, "protected"}, true
	case in(s.writes):
		return Denial{}, false
	}
	return Denial{DeniedWrite, path, "outside"}, true
}

// belowFold is below without regard to case.
func belowFold(dir, path string) bool { return below(strings.ToLower(dir), strings.ToLower(path)) }
