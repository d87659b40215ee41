package shell

import (
	"path"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// The limits of a reading of PowerShell and cmd, beside those of every reading.
const (
	maxForeignDepth    = 32      // of brackets, and of command lines in command lines
	maxForeignCommands = 1_000   // of one text
	maxForeignInside   = 1 << 17 // bytes of command lines in command lines, all together
)

// foreign is what a reading of PowerShell or cmd has found so far. Neither language
// is followed: what is not plain is unreadable, and listed as far as it can be seen.
type foreign struct {
	o     Options
	e     agent.Effects
	moved bool // the folder has changed: relative paths cannot be told any more
	depth int
	left  *int // bytes of command lines inside this one that may still be read
}

// A foreignReader reads a command line that stands in another one.
type foreignReader func(text string, f foreign) agent.Effects

// outermost is a reading that is inside of no other.
func outermost(o Options) foreign {
	left := maxForeignInside
	return foreign{o: o, left: &left}
}

func (f *foreign) unreadable(why string) {
	if f.e.Unreadable == "" {
		f.e.Unreadable = why
	}
}

func (f *foreign) unparsed(why string) {
	if f.e.Unparsed == "" {
		f.e.Unparsed = why
	}
}

// begin checks what holds of every text, and returns the text that is to be read.
func (f *foreign) begin(command string) string {
	if fault := faultOf(strings.ReplaceAll(command, "\r\n", "\n")); fault != "" {
		f.unparsed(fault)
		command = visible(command)
	}
	if len(command) > maxText {
		f.unparsed("it is longer than 10,000 characters")
	}
	if len(command) > maxParse {
		command = command[:maxParse]
	}
	return strings.ReplaceAll(command, "\r\n", "\n")
}

// add takes a command that was found at the top of a text.
func (f *foreign) add(c agent.SimpleCommand) {
	if len(f.e.Commands) >= maxForeignCommands {
		f.unparsed("it has too many commands")
		return
	}
	f.e.Commands = append(f.e.Commands, c)
	f.count(c)
}

// count takes what a command touches over to the whole.
func (f *foreign) count(c agent.SimpleCommand) {
	f.e.Reads = append(f.e.Reads, c.Reads...)
	f.e.Writes = append(f.e.Writes, c.Writes...)
	f.e.Hosts = append(f.e.Hosts, c.Hosts...)
	for _, r := range c.Runs {
		f.count(r)
	}
}

// effects returns the whole. It is never empty.
func (f *foreign) effects() agent.Effects {
	if len(f.e.Commands) == 0 && f.e.Unreadable == "" {
		f.unparsed("it has no command")
	}
	for _, list := range []*[]string{&f.e.Reads, &f.e.Writes, &f.e.Hosts} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return f.e
}

// inside reads a command line that stands in another one, and returns its commands.
func (f *foreign) inside(text string, read foreignReader) []agent.SimpleCommand {
	if *f.left -= len(text); *f.left < 0 {
		f.unparsed("it has too many command lines inside each other")
		return nil
	}
	inner := foreign{o: f.o, depth: f.depth + 1, left: f.left}
	if f.moved {
		inner.o.Dir = ""
	}
	e := read(text, inner)
	if e.Unreadable != "" {
		f.unreadable(e.Unreadable)
	}
	if e.Unparsed != "" {
		f.unparsed(e.Unparsed)
	}
	if e.Destructive != "" {
		f.e.Destructive = e.Destructive
	}
	f.e.Reads = append(f.e.Reads, e.Reads...)
	f.e.Writes = append(f.e.Writes, e.Writes...)
	return e.Commands
}

// program fills in what is known of a program that is not the shell's own.
func (f *foreign) program(c *agent.SimpleCommand, words []foreignWord) {
	call := programs.Call{}
	for i, w := range words {
		text := w.text
		if i == 0 {
			text = programName(text)
		}
		call.Args = append(call.Args, programs.Word{Text: text, Known: w.known})
	}
	use := programs.Look(call)
	if use.Destructive != "" {
		f.e.Destructive = use.Destructive
	}
	if use.Unreadable != "" {
		f.unreadable(use.Unreadable)
	}
	if len(use.Scripts) > 0 {
		f.unreadable("it has another shell read a command line")
	}
	c.Flagged, c.Critical, c.Hosts = use.Flagged, use.Critical, use.Hosts
	if strings.ContainsAny(c.Argv[0], `/\`) && c.Flagged == "" {
		c.Flagged = "a path in place of a name"
	}
	c.Reads = append(c.Reads, f.paths(use.Reads)...)
	c.Writes = append(c.Writes, f.paths(use.Writes)...)
	c.Removes = append(c.Removes, f.paths(use.Removes)...)
	for _, run := range use.Runs {
		var argv []string
		for _, w := range run {
			argv = append(argv, w.Text)
		}
		if len(argv) > 0 {
			c.Runs = append(c.Runs, agent.SimpleCommand{Argv: argv})
		}
	}
}

// programName is the name of a program as the tables know it: its last element, in
// lower case and without what makes it executable.
func programName(name string) string {
	name = strings.ToLower(name[strings.LastIndexAny(name, `/\`)+1:])
	for _, ext := range []string{".exe", ".com", ".cmd", ".bat"} {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

func (f *foreign) paths(names []string) []string {
	var all []string
	for _, name := range names {
		if p := f.path(name, true); p != "" {
			all = append(all, p)
		}
	}
	return all
}

// path makes a name of a file absolute and clean, or says why that cannot be done
// and returns "". Both slashes part names.
func (f *foreign) path(name string, literal bool) string {
	windows := len(f.o.Dir) > 1 && f.o.Dir[1] == ':'
	p := strings.ReplaceAll(name, `\`, "/")
	colon := strings.IndexByte(p, ':')
	switch {
	case p == "":
		return ""
	case !literal && strings.ContainsAny(p, "*?["):
		f.unreadable("a wildcard: " + name)
		return ""
	case strings.HasPrefix(p, "//"):
		f.unreadable("a path of another machine: " + name)
		return ""
	case colon > 1 || colon == 1 && (len(p) < 3 || p[2] != '/') || strings.Count(p, ":") > 1 || colon == 0:
		f.unreadable("what " + name + " names is not known")
		return ""
	case colon == 1:
	case p == "~" || strings.HasPrefix(p, "~/"):
		if f.o.Home == "" {
			f.unreadable("the home folder is not known")
			return ""
		}
		p = strings.ReplaceAll(f.o.Home, `\`, "/") + p[1:]
	case p[0] == '/' && windows:
		p = f.o.Dir[:2] + p
	case p[0] == '/':
	case f.moved || f.o.Dir == "":
		f.unreadable("the folder that " + name + " is in is not known")
		return ""
	default:
		p = strings.ReplaceAll(f.o.Dir, `\`, "/") + "/" + p
	}
	if p = path.Clean(p); windows {
		if len(p) == 2 {
			p += "/"
		}
		p = strings.ReplaceAll(p, "/", `\`)
	}
	return p
}

// rootOfDrive reports whether a name is the root of a drive, or all that it holds.
func rootOfDrive(name string) bool {
	p := path.Clean("/" + strings.TrimSuffix(strings.ReplaceAll(name, `\`, "/"), "*"))
	return p == "/" || len(p) == 3 && p[2] == ':'
}

// A foreignWord is a word of a command line. The text of an unknown one is what
// stands there.
type foreignWord struct {
	text   string
	known  bool
	quoted bool // some of it: it is no operator and no parameter
}
