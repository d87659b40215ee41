package programs

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"dure/agent"
)

// The tables: one file for each family of programs, in the format that
// tables/README.md describes.
//
//go:embed tables/*.txt
var files embed.FS

// A grammar is what a table says of one program, or of one of its sub-commands.
type grammar struct {
	name  string // as the table has it; of a sub-command with those above it
	names []string
	kind  agent.CommandKind

	abbreviates bool // long options may be cut short
	single      bool // long options with one dash
	joined      bool // what follows such an option may be joined to it
	loose       bool // long options may have one dash
	channel     bool // the first operand may be +NAME
	windows     bool // options begin with a slash, and case does not matter
	digits      bool // -5 is an option
	apart       bool // what follows a short option in its word is its argument for some, and options for others
	stops       bool // options end at the first operand
	raw         bool // it has no options at all
	dash        bool // "-" is a file like any other
	everywhere  bool // its options are also those of its sub-commands
	transparent bool
	elsewhere   bool
	response    bool // @FILE is replaced by the arguments in it
	talks       bool // its input is a program in a language that is not read
	bundle      bool // the first operand is short flags, their arguments follow it

	options map[string]option
	longs   []string // names that begin with two dashes

	operands []role // in order; rest stands at star
	star     int    // which of them repeats; -1 = none
	dashes   role   // what follows "--", when that is not an operand
	empty    string // what is read when there is no operand

	hosts, writes []string
	flagged       string // always
	bare          string // without any operand
	destroys      string // always
	read          func(*reading)

	subs   map[string]*grammar
	parent *grammar
}

// An option is what a flag means: the role of its argument, or of its presence.
type option struct {
	name    string // as it is reported
	role    role
	arg     argument
	flagged bool
}

// An argument says whether a flag has one.
type argument uint8

const (
	argNone argument = iota
	argMust          // attached, or the next word
	argMay           // attached only
	argTwo           // the next two words, and the second has the role
)

// entry is a program whose table is read when it is first asked for.
type entry struct {
	names []string
	file  string
	line  int
	body  []string
	get   func() *grammar
}

// index is all tables by the names of programs.
type index struct {
	exact    map[string]*entry
	prefixes []prefix // of names that end with a star
	entries  []*entry
	sets     map[string][]string // of lines that several programs share
}

type prefix struct {
	text string
	*entry
}

// tables finds where each program stands. Reading its lines is left to the first
// call that needs them.
var tables = sync.OnceValue(readTables)

func readTables() *index {
	x := &index{exact: map[string]*entry{}, sets: map[string][]string{}}
	names, err := fs.Glob(files, "tables/*.txt")
	if err != nil {
		panic(err) // the pattern is a constant
	}
	for _, name := range names {
		data, err := files.ReadFile(name)
		if err != nil {
			panic(err) // it is part of the program
		}
		x.add(name, string(data))
	}
	return x
}

// add takes the blocks of a file: a line at the margin, and those indented below.
func (x *index) add(file, text string) {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); {
		head := lines[i]
		at := i + 1
		i++
		if !strings.HasPrefix(head, "\t") && strings.TrimSpace(uncomment(head)) == "" {
			continue
		}
		start := i
		for i < len(lines) && (strings.HasPrefix(lines[i], "\t") || strings.TrimSpace(uncomment(lines[i])) == "") {
			i++
		}
		x.block(file, at, strings.Fields(uncomment(head)), lines[start:i])
	}
}

func (x *index) block(file string, line int, names, body []string) {
	if names[0] == "set" {
		x.sets[names[1]] = body
		return
	}
	e := &entry{names: names, file: file, line: line, body: body}
	e.get = sync.OnceValue(func() *grammar {
		p := tableReader{sets: x.sets, file: e.file, line: e.line}
		g := newGrammar(e.names, nil)
		g.options = make(map[string]option, 6*len(e.body))
		p.lines(g, e.body)
		return g
	})
	x.entries = append(x.entries, e)
	for _, n := range names {
		if stem, ok := strings.CutSuffix(n, "*"); ok {
			x.prefixes = append(x.prefixes, prefix{stem, e})
			continue
		}
		if x.exact[n] != nil {
			panic(fmt.Sprintf("%s:%d: %s stands in two tables", file, line, n))
		}
		x.exact[n] = e
	}
}

// uncomment cuts a comment off: a # at the start of a line or after a blank.
func uncomment(line string) string {
	for i := range len(line) {
		if line[i] == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') {
			return line[:i]
		}
	}
	return line
}

func newGrammar(names []string, parent *grammar) *grammar {
	g := &grammar{name: names[0], names: names, parent: parent, options: map[string]option{}, star: -1}
	if parent != nil {
		g.name = parent.name + " " + names[0]
		g.abbreviates, g.single, g.windows, g.loose = parent.abbreviates, parent.single, parent.windows, parent.loose
	}
	return g
}

// tableReader reads the lines of one program. What is wrong in a table is a
// mistake of ours, so it panics.
type tableReader struct {
	sets map[string][]string
	file string
	line int
}

// lines reads what stands below a program, and hands what is indented further to
// the sub-command that it stands below.
func (p *tableReader) lines(g *grammar, lines []string) {
	for i := 0; i < len(lines); i++ {
		text := strings.TrimRight(uncomment(lines[i]), " \t")
		if text == "" {
			continue
		}
		words := strings.Fields(text)
		if words[0] != "sub" {
			p.word(g, words, i)
			continue
		}
		end := i + 1
		for end < len(lines) && (indent(lines[end]) > indent(lines[i]) || strings.TrimSpace(uncomment(lines[end])) == "") {
			end++
		}
		s := newGrammar(words[1:], g)
		below := tableReader{sets: p.sets, file: p.file, line: p.line + i + 1}
		below.lines(s, lines[i+1:end])
		if g.subs == nil {
			g.subs = map[string]*grammar{}
		}
		for _, n := range s.names {
			g.subs[n] = s
		}
		i = end - 1
	}
}

func indent(line string) int { return len(line) - len(strings.TrimLeft(line, "\t")) }

// word reads one line: a property of the program, or a role with its flags.
func (p *tableReader) word(g *grammar, words []string, at int) {
	args := words[1:]
	text := ""
	switch words[0] {
	case "flagged", "bare", "destroys":
		text = strings.Join(args, " ")
	case "kind", "empty", "by":
		text = args[0]
	}
	switch words[0] {
	case "kind":
		g.kind = agent.CommandKind(text)
	case "style":
		p.style(g, args, at)
	case "args":
		p.operands(g, args, at)
	case "dashes":
		g.dashes = p.role(args[0], at)
	case "empty":
		g.empty = text
	case "contacts":
		g.hosts = append(g.hosts, args...)
	case "writes":
		g.writes = append(g.writes, args...)
	case "flagged":
		g.flagged = text
	case "bare":
		g.bare = text
	case "destroys":
		g.destroys = text
	case "by":
		if g.read = readerOf(text); g.read == nil {
			p.fault(at, "no reader "+text)
		}
	case "use":
		for _, name := range args {
			body, ok := p.sets[name]
			if !ok {
				p.fault(at, "no set "+name)
			}
			p.lines(g, body)
		}
	default:
		p.flags(g, words, at)
	}
}

func (p *tableReader) style(g *grammar, words []string, at int) {
	for _, w := range words {
		switch w {
		case "gnu":
			g.abbreviates = true
		case "single":
			g.single = true
		case "joined":
			g.joined = true
		case "loose":
			g.loose = true
		case "channel":
			g.channel = true
		case "windows":
			g.windows = true
		case "digits":
			g.digits = true
		case "apart":
			g.apart = true
		case "stops":
			g.stops = true
		case "raw":
			g.raw = true
		case "dash":
			g.dash = true
		case "everywhere":
			g.everywhere = true
		case "transparent":
			g.transparent = true
		case "elsewhere":
			g.elsewhere = true
		case "response":
			g.response = true
		case "talks":
			g.talks = true
		case "bundle":
			g.bundle = true
		default:
			p.fault(at, "no style "+w)
		}
	}
}

// operands reads roles by position. One with a star takes what the others leave.
func (p *tableReader) operands(g *grammar, words []string, at int) {
	g.operands = g.operands[:0]
	for i, w := range words {
		if stem, ok := strings.CutSuffix(w, "*"); ok {
			w, g.star = stem, i
		}
		r := p.role(w, at)
		if r == roleArgv {
			g.stops = true
		}
		g.operands = append(g.operands, r)
	}
}

// flags reads a role and the flags that have it: -x, -x= with an argument, -x==
// with two, -x? with one that has to be attached.
func (p *tableReader) flags(g *grammar, words []string, at int) {
	stem, flagged := strings.CutSuffix(words[0], "!")
	r := p.role(stem, at)
	flagged = flagged || r == roleDanger || r == roleRun || r == roleCode || r == roleList
	for _, w := range words[1:] {
		o := option{role: r, flagged: flagged}
		name := strings.TrimRight(w, "=?")
		switch w[len(name):] {
		case "=":
			o.arg = argMust
		case "==":
			o.arg = argTwo
		case "?":
			o.arg = argMay
		}
		if name == "-" { // the flag -?
			o.arg, name = argNone, w
		}
		o.name = name
		if old, ok := g.options[name]; ok && old != o {
			p.fault(at, name+" is described twice")
		}
		g.options[name] = o
		if strings.HasPrefix(name, "--") {
			g.longs = append(g.longs, name)
		}
	}
}

func (p *tableReader) role(word string, at int) role {
	i := slices.Index(roleNames[:], word)
	if i < 0 {
		p.fault(at, "no role "+word)
	}
	return role(i)
}

func (p *tableReader) fault(at int, text string) {
	panic(fmt.Sprintf("%s:%d: %s", p.file, p.line+at+1, text))
}

// option finds a flag of a program, or of those above it.
func (g *grammar) option(name string) (option, bool) {
	if o, ok := g.options[name]; ok {
		return o, true
	}
	for p := g.parent; p != nil; p = p.parent {
		if !p.everywhere {
			continue
		}
		if o, ok := p.options[name]; ok {
			return o, true
		}
	}
	return option{}, false
}

// abbreviation finds the long option that a name is the beginning of. Where that
// is more than one, it counts as the most dangerous.
func (g *grammar) abbreviation(name string) (option, bool) {
	var best option
	found, same := false, true
	for p := g; p != nil; p = p.parent {
		if p != g && !p.everywhere {
			continue
		}
		for _, long := range p.longs {
			if !strings.HasPrefix(long, name) {
				continue
			}
			o := p.options[long]
			switch {
			case !found:
				best, found = o, true
			case o.flagged != best.flagged:
				if o.flagged {
					best = o
				}
			case o.role != best.role || o.arg != best.arg:
				same = same && o.role == best.role
			}
		}
	}
	if found && !best.flagged && !same {
		return option{}, false
	}
	return best, found
}
