package shell

import (
	"path"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"dure/internal/safety/shell/programs"
)

// state is what is known of a shell at one place of a text. States are never
// changed: what changes one returns a new one. A nil state is a place that is
// not reached.
type state struct {
	dirs  []string   // where it can be, the likeliest first; nil = unknown
	old   []string   // where cd - leads
	stack [][]string // what popd returns to, the nearest last
	lost  bool       // the stack is not known

	vars  *binding
	taint []string // assignments that programs started later may see, NAME=value

	defs *definition // functions that are surely defined

	args      []programs.Word // the positional parameters
	argsKnown bool

	noSplit   bool // IFS was changed: what an unquoted value becomes is unknown
	noGlob    bool // what a pattern becomes is unknown
	exporting bool // set -a
	voided    bool // any name may stand for something else
}

// value is what is known of a variable.
type value struct {
	kind valueKind
	text string // of a literal
}

type valueKind uint8

const (
	outside valueKind = iota // never set by the text: whatever the environment has
	literal
	digits  // a number, nobody knows which
	anybody // nobody knows
)

// A binding is a value that a variable was given, and those given before.
type binding struct {
	name  string // "" stands for every variable
	value value
	fixed bool // no assignment makes it known again
	next  *binding
}

// A definition is a function that is surely defined, and those before it.
type definition struct {
	name   string
	next   *definition
	length int // of the list from here on
}

func (d *definition) count() int {
	if d == nil {
		return 0
	}
	return d.length
}

func (st *state) with(change func(*state)) *state {
	c := *st
	change(&c)
	return &c
}

func (st *state) lookup(name string) *binding {
	for b := st.vars; b != nil; b = b.next {
		if b.name == name || b.name == "" {
			return b
		}
	}
	return nil
}

// dynamic are variables that the shell itself sets and reads.
func dynamic(name string) bool {
	switch name {
	case "RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "EPOCHREALTIME", "PPID", "UID", "EUID",
		"FUNCNAME", "PIPESTATUS", "DIRSTACK", "GROUPS", "SHELLOPTS", "OPTARG", "OPTIND", "REPLY", "IFS", "PWD", "OLDPWD",
		"HISTCMD", "_", "SHLVL", "HOSTNAME", "MAPFILE", "COPROC", "status", "pipestatus", "path", "argv":
		return true
	}
	return strings.HasPrefix(name, "BASH") || strings.HasPrefix(name, "COMP_")
}

func (w *walker) valueOf(st *state, name string) value {
	if b := st.lookup(name); b != nil {
		return b.value
	}
	switch name {
	case "RANDOM", "SRANDOM", "SECONDS", "LINENO", "EPOCHSECONDS", "PPID", "UID", "EUID", "BASHPID":
		return value{kind: digits}
	case "PWD":
		return oneOf(st.dirs)
	case "OLDPWD":
		return oneOf(st.old)
	case "HOME":
		if w.Home != "" {
			return value{kind: literal, text: w.Home}
		}
	}
	if text, ok := w.Vars[name]; ok {
		return value{kind: literal, text: text}
	}
	return value{}
}

func oneOf(dirs []string) value {
	if len(dirs) == 1 {
		return value{kind: literal, text: dirs[0]}
	}
	return value{kind: anybody}
}

// bind gives a variable a value.
func (w *walker) bind(st *state, name string, v value) *state {
	fixed := false
	if b := st.lookup(name); b != nil && b.fixed {
		v, fixed = value{kind: anybody}, true
	} else if dynamic(name) {
		v = value{kind: anybody}
	}
	if w.frame != nil {
		w.frame.sets = append(w.frame.sets, set{name, v.number()})
	}
	return st.with(func(c *state) {
		c.vars = &binding{name: name, value: v, fixed: fixed, next: st.vars}
		c.noSplit = c.noSplit || name == "IFS"
		c.noGlob = c.noGlob || name == "GLOBIGNORE"
	})
}

// evaluates notes a variable that a shell takes for commands.
func (w *walker) evaluates(name, text string) {
	if namesProgram(name) {
		w.primed = append(w.primed, text)
	}
	switch name {
	case "PS0", "PS1", "PS2", "PS4":
		if !strings.ContainsAny(text, "$`…\\") {
			return
		}
	case "BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "BASH_XTRACEFD", "EXECIGNORE":
	default:
		if !strings.HasPrefix(name, "BASH_FUNC_") && !strings.HasPrefix(text, "() {") {
			return
		}
	}
	w.unreadable("what a shell does with " + name)
}

// fix makes a variable unknown for good: what is assigned to it is not what it has.
func (w *walker) fix(st *state, name string) *state {
	if w.frame != nil {
		w.frame.sets = append(w.frame.sets, set{name, false})
	}
	return st.with(func(c *state) {
		c.vars = &binding{name: name, value: value{kind: anybody}, fixed: true, next: st.vars}
	})
}

// assign gives a variable a value that programs started later may see.
func (w *walker) assign(st *state, name, text string, v value, exported bool) *state {
	w.evaluates(name, text)
	if w.integers[name] && !v.number() {
		w.unreadable("what " + name + " is given: it is taken for an expression")
	}
	st = w.bind(st, name, v)
	if exported || st.exporting || exportable(name) {
		st = w.tainted(st, name+"="+text)
	}
	return st
}

func (w *walker) tainted(st *state, assignment string) *state {
	if slices.Contains(st.taint, assignment) {
		return st
	}
	if w.frame != nil {
		w.frame.taint = append(w.frame.taint, assignment)
	}
	return st.with(func(c *state) { c.taint = append(slices.Clip(st.taint), assignment) })
}

// exportable says whether programs may know a variable by this name: it is in
// capitals, or one of the few others that change what programs do.
func exportable(name string) bool {
	if name == "" {
		return true
	}
	capitals := true
	for i := 0; i < len(name); i++ {
		if c := name[i]; c >= 'a' && c <= 'z' {
			capitals = false
			break
		}
	}
	if capitals || strings.HasSuffix(name, "_proxy") || strings.HasPrefix(name, "npm_config_") || strings.HasPrefix(name, "pnpm_config_") {
		return true
	}
	switch name {
	case "path", "fpath", "cdpath", "manpath", "module_path", "prompt", "histchars", "command_not_found_handle":
		return true // zsh ties some of them to variables in capitals
	}
	return false
}

// steering says whether a variable changes which program a name stands for, what
// any program loads, or where relative and home paths lead.
func steering(assignment string) bool {
	name, _, _ := strings.Cut(assignment, "=")
	name = strings.TrimSuffix(name, "+")
	switch name {
	case "NODE_ENV", "NO_COLOR", "LANG", "LC_ALL", "TZ", "CI", "TERM", "FORCE_COLOR", "CLICOLOR", "COLUMNS":
		return false
	}
	return true
}

// enter puts the shell into one of dirs; nil = nobody knows where.
func (w *walker) enter(st *state, dirs []string) *state {
	if w.frame != nil {
		w.frame.dirs = true
	}
	return st.with(func(c *state) { c.dirs, c.old = dirs, st.dirs })
}

// under returns the folders that a relative or absolute path means; nil when that is
// not known.
func (st *state) under(p string) []string {
	p, ok := ownFolders(p)
	if !ok {
		return nil
	}
	if rooted(p) {
		return []string{path.Clean(p)}
	}
	if st.dirs == nil {
		return nil
	}
	to := make([]string, len(st.dirs))
	for i, d := range st.dirs {
		to[i] = path.Join(d, p)
		if _, plain := ownFolders(to[i]); !plain || ofProcess(to[i]) != "" {
			return nil
		}
	}
	return to
}

// ownFolders returns a path without the names that /proc has for the folder and the
// root of the process that asks. Those of other processes are not known.
func ownFolders(p string) (string, bool) {
	for range 8 {
		name := ofProcess(p)
		if name == "" {
			return p, true
		}
		rest := p[len(name):]
		switch {
		case strings.Contains(rest, ".."):
			return "", false
		case name == "/proc/self/cwd", name == "/proc/thread-self/cwd":
			return "./" + rest, true
		case name == "/proc/self/root", name == "/proc/thread-self/root":
			p = "/" + strings.TrimLeft(rest, "/")
		default:
			return "", false
		}
	}
	return "", false
}

// ofProcess returns the beginning of a path that is a link of /proc to a folder of a
// process, or "".
func ofProcess(p string) string {
	if !strings.Contains(p, "proc/") || !strings.HasPrefix(path.Clean(p), "/proc/") {
		return ""
	}
	parts := strings.Split(p, "/") // the first is empty
	for i, part := range parts {
		if i > 2 && (part == "cwd" || part == "root" || i+1 < len(parts) && (part == "fd" || part == "map_files")) {
			if name := path.Clean(strings.Join(parts[:i+1], "/")); strings.HasPrefix(name, "/proc/") {
				return strings.Join(parts[:i+1], "/")
			}
		}
	}
	return ""
}

func rooted(p string) bool {
	return strings.HasPrefix(p, "/") || runtime.GOOS == "windows" && len(p) > 2 && p[1] == ':' && p[2] == '/' && unicode.IsLetter(rune(p[0]))
}

func (v value) number() bool { return v.kind == digits || v.kind == literal && isNumber(v.text) }

func isNumber(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// nowhere forgets everything that can change while a shell runs.
func (st *state) nowhere() *state {
	return st.with(func(c *state) {
		c.dirs, c.old, c.stack, c.lost = nil, nil, nil, true
		c.vars = &binding{value: value{kind: anybody}, fixed: true}
		c.args, c.argsKnown = nil, false
	})
}
