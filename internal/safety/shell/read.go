// Package shell reads command lines: which programs one would run, with which
// arguments, and which files and hosts those would touch.
//
// It parses the whole text with the grammar of the shell that will run it, and
// follows it as that shell would: words, folders, variables, functions, redirections.
// Where what runs, or a target, is known only when it runs, it says so; it never
// guesses, never touches the disk, runs nothing and starts no goroutines.
package shell

import (
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

// The limits of a reading. What is beyond them is never taken for harmless.
const (
	maxText        = 10_000  // characters; a longer text is not reviewed, only looked through
	maxParse       = 1 << 16 // bytes; what a text has beyond that is looked through without parsing it
	maxLook        = 1 << 20 // bytes; what a text has beyond that is not looked at
	maxNesting     = 100     // of brackets in the text, and of commands in commands
	maxScripts     = 8       // command lines inside command lines (sh -c in sh -c)
	maxClauses     = 300     // if, while and the like in each other
	maxSigns       = 2_000   // semicolons, bars, ampersands, backquotes and brackets
	maxSteps       = 1_500   // commands followed, counting each time that one is
	maxWraps       = 16      // commands that run each other
	maxFields      = 256     // words that one word can become
	maxGlobs       = 32      // patterns that are looked up
	maxDefinitions = 8       // of one function that are followed at each call
	maxUnroll      = 16      // items of a loop that is followed item by item
	maxDirs        = 4       // folders that a command may be in
)

// Options are what a reading depends on beside the text. Its zero value reads for
// bash and knows nothing: relative paths cannot be told then.
type Options struct {
	Shell string // path or name of the shell that will run the text; "" = bash
	Dir   string // the folder that it runs in; absolute
	Home  string // what ~ stands for; "" = not known

	// Vars are variables of its environment. Others may be set, to what is not known.
	Vars map[string]string

	// Glob returns the existing paths that match an absolute pattern, absolute and
	// in the order of the shell. A pattern that ends with a slash matches folders,
	// and so do their paths. ok = false, and nil: that cannot be known.
	Glob func(pattern string) (matches []string, ok bool)

	// Folder says whether an absolute path is a folder that can be entered. false,
	// and nil: that is not known, and what follows a cd may run where it came from.
	Folder func(path string) bool

	// Repository says whether git, when it only shows something, may run what the
	// repository names that an absolute folder is in. nil = it does not.
	Repository func(folder string) bool
}

// Read says what a command line would do. It is safe for concurrent use if the
// functions of the options are, and takes time in proportion to the length of the text.
//
// A text of more than 10,000 characters, with control characters or with a fault
// is Unparsed; what can be seen in it is listed nevertheless, so that rules which
// forbid something find it.
func Read(command string, o Options) agent.Effects {
	if len(command) > maxLook {
		command = command[:maxLook]
	}
	switch name := shellName(o.Shell); {
	case name == "powershell" || name == "pwsh":
		return readPowerShell(command, o)
	case name == "cmd":
		return readCmd(command, o)
	case dialectOf(o.Shell) == dialectOther:
		w := newWalker(o)
		w.unparsed("the language of " + o.Shell + " cannot be read")
		w.glimpse(command)
		return w.effects()
	default:
		return readPOSIX(command, o)
	}
}

func readPOSIX(command string, o Options) (e agent.Effects) {
	w := newWalker(o)
	defer func() {
		if r := recover(); r != nil { // and what it was about to use again is lost
			w.unparsed("reading it went wrong")
			e = w.effects()
		}
	}()
	if fault := faultOf(command); fault != "" {
		w.unparsed(fault)
		command = visible(command)
	}
	if len(command) > maxText && utf8.RuneCountInString(command) > maxText {
		w.unparsed("it is longer than 10,000 characters")
	}
	w.whole(command)
	e = w.effects()
	w.free()
	return e
}

// faultOf says which character makes a text unfit for review.
func faultOf(s string) string {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == 0:
			return "it has a NUL"
		case c == '\r':
			return "it has a carriage return"
		case c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return "it has a control character"
		case c >= utf8.RuneSelf:
			return wideFault(s[i:])
		}
	}
	return ""
}

func wideFault(s string) string {
	for i, r := range s {
		switch {
		case r == utf8.RuneError:
			if _, n := utf8.DecodeRuneInString(s[i:]); n < 2 {
				return "it is not text"
			}
		case r >= 0x80 && r < 0xa0, r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			return "it has a control character"
		case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
			return "it has characters that turn the direction of text"
		}
	}
	return ""
}

// visible is s with what faultOf finds made into spaces, so that the rest can be
// looked through.
func visible(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, s)
}

// invisible says whether a character takes no room, or is a blank that the shell
// does not take for one.
func invisible(r rune) bool {
	switch {
	case r == 0xa0, r == 0xad, r == 0x61c, r == 0x180e, r == 0x3000, r == 0xfeff:
		return true
	case r >= 0x2000 && r <= 0x200f, r >= 0x2028 && r <= 0x202f, r >= 0x205f && r <= 0x206f, r >= 0xe0000 && r <= 0xe007f:
		return true
	}
	return false
}

// A dialect is a language of command lines.
type dialect uint8

const (
	dialectBash  dialect = iota
	dialectPOSIX         // one of several shells: what they differ over cannot be known
	dialectZsh
	dialectOther // one that cannot be read
)

// shellName is the name of a shell without its folder and what systems add to it.
func shellName(shell string) string {
	base := shell[strings.LastIndexAny(shell, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(strings.TrimLeft(base, "-")), ".exe")
}

// dialectOf returns the language of a shell by its path or name.
func dialectOf(shell string) dialect {
	switch shellName(shell) {
	case "", "bash":
		return dialectBash
	case "sh", "dash", "ash", "ksh", "mksh", "busybox":
		return dialectPOSIX
	case "zsh":
		return dialectZsh
	}
	return dialectOther
}

func slashed(p string) string { return strings.TrimSuffix(filepath.ToSlash(p), "/") }
