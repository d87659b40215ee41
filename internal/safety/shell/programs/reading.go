package programs

import (
	"path"
	"strings"

	"dure/agent"
)

// reading is one command line while it is read by a grammar.
type reading struct {
	program string
	g       *grammar
	use     Use

	odd      bool   // something is not known to be harmless
	module   bool   // a flag named what runs, and the rest is for that
	alone    bool   // a flag says that it prints about itself and ends, or the like
	dir      string // that it works in, if not the one it runs in
	operands []Word
	from     []Word // the arguments that operands are of
	ends     int    // where those do; -1 = they are a copy
	seen     []seen // flags, when a reader wants them
	ended    int    // how many operands stand before "--"; -1 = there was none
	after    []Word // what follows "--", when that is no operand
}

// seen is a flag with its argument.
type seen struct {
	option
	value Word
}

// whole reads all arguments and decides what is known of them.
func (r *reading) whole(g *grammar, args []Word) {
	r.run(g, args)
	u := &r.use
	if r.odd || u.Flagged != "" || u.Unreadable != "" || u.Destructive != "" ||
		len(u.Runs) > 0 || len(u.Scripts) > 0 || len(u.Hosts) > 0 {
		u.Kind = agent.CommandOther
	}
	if u.Kind == agent.CommandReads && len(u.Writes) > 0 {
		u.Kind = agent.CommandOther
	}
	if r.odd || u.Flagged != "" || u.Unreadable != "" || len(u.Runs) == 0 {
		u.Transparent = false
	}
}

// run reads arguments by the grammar of a program or of a sub-command.
func (r *reading) run(g *grammar, args []Word) {
	r.g = g
	r.use.Kind = g.kind
	r.use.Transparent = g.transparent
	r.use.Elsewhere = r.use.Elsewhere || g.elsewhere
	r.use.Talks = r.use.Talks || g.talks
	r.use.Hosts = append(r.use.Hosts, g.hosts...)
	for _, p := range g.writes {
		r.use.Writes = append(r.use.Writes, r.at(p))
	}
	r.flag(g.flagged)
	if g.destroys != "" && r.use.Destructive == "" {
		r.use.Destructive = r.program + " " + g.destroys
	}
	if sub, rest := r.arguments(args); sub != nil {
		r.operands = nil
		r.run(sub, rest)
		return
	}
	switch {
	case g.read != nil:
		g.read(r)
	default:
		r.assign(r.operands)
	}
	switch {
	case g.dashes == roleArgv:
		r.runs(r.after)
	case g.dashes == roleInner:
		for _, w := range r.after {
			r.role(roleInner, "--", w)
		}
	}
	if r.g.bare != "" && !r.alone && (len(r.operands) == 0 || isStdin(r.operands[0])) {
		r.flag(r.g.bare)
	}
}

func isStdin(w Word) bool {
	return w.Text == "-" || w.Text == "/dev/stdin" || strings.HasPrefix(w.Text, "/dev/fd/") || w.Text == "/proc/self/fd/0"
}

// arguments tells flags from operands. When the first operand names a
// sub-command, it returns that with what follows it.
func (r *reading) arguments(args []Word) (sub *grammar, rest []Word) {
	g := r.g
	r.ended = -1
	if g.raw {
		r.operands = args
		return nil, nil
	}
	r.operands = nil
	if g.bundle && len(args) > 0 && !strings.HasPrefix(args[0].Text, "-") {
		args = args[1+r.bundle(args[0], args[1:]):]
	}
	r.from = args
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case w.Known && w.Text == "--":
			if g.dashes != roleNone {
				r.after = args[i+1:]
				return nil, nil
			}
			r.ended = len(r.operands)
			if g.subs != nil && i+1 < len(args) {
				return r.subcommand(args[i+1]), args[i+2:]
			}
			r.operate(i+1, len(args))
			r.unknownOperands(args[i+1:])
			return nil, nil
		case g.channel && i == 0 && strings.HasPrefix(w.Text, "+"):
			if strings.ContainsAny(w.Text, `/\`) || !r.known(w) {
				r.flag("a path of programs")
			}
		case g.isFlag(w):
			i += r.option(w, args[i+1:])
			if r.module {
				r.operate(min(i+1, len(args)), len(args))
				return nil, nil
			}
		case !w.Known && r.maybeFlag(w):
			r.unreadable(w)
			r.operate(i, i+1)
		case g.subs != nil:
			return r.subcommand(w), args[i+1:]
		case g.stops:
			r.operate(i, len(args))
			if len(g.operands) == 0 || g.operands[len(g.operands)-1] != roleArgv {
				r.unknownOperands(args[i:])
			}
			return nil, nil
		case g.response && strings.HasPrefix(w.Text, "@"):
			r.reads(Word{Text: w.Text[1:], Known: w.Known})
			r.flag("arguments from a file")
		default:
			r.operate(i, i+1)
			r.unknownOperands(args[i : i+1])
		}
	}
	return nil, nil
}

// operate takes some of the arguments for operands. As long as they stand beside
// each other they are not copied.
func (r *reading) operate(start, end int) {
	n := len(r.operands)
	switch {
	case start == end:
	case n == 0:
		r.operands, r.ends = r.from[start:end:end], end
	case r.ends == start:
		r.operands, r.ends = r.from[start-n:end:end], end
	default:
		r.operands, r.ends = append(r.operands, r.from[start:end]...), -1
	}
}

// unknownOperands notes words that may become more than one.
func (r *reading) unknownOperands(words []Word) {
	for _, w := range words {
		if !w.Known && !w.One {
			r.unreadable(w)
		}
	}
}

// isFlag says that a word is surely a flag.
func (g *grammar) isFlag(w Word) bool {
	t := w.Text
	if len(t) < 2 {
		return false
	}
	switch t[0] {
	case '-':
		return true
	case '+':
		_, ok := g.options["+"]
		return ok
	case '/':
		return g.windows
	}
	return false
}

// maybeFlag says that a word which is not known may turn out to be a flag that
// matters. Programs none of whose flags do are few, and print only.
func (r *reading) maybeFlag(w Word) bool {
	t := strings.TrimPrefix(w.Text, `"`)
	if t == "" {
		return false
	}
	plain := t[0] >= 'a' && t[0] <= 'z' || t[0] >= 'A' && t[0] <= 'Z' || t[0] >= '0' && t[0] <= '9' ||
		strings.IndexByte("./_%:,=@", t[0]) >= 0
	return !plain || !w.One
}

// subcommand finds the grammar of a sub-command. One that the table lacks has
// what stands there as *, or is not known.
func (r *reading) subcommand(w Word) *grammar {
	name := w.Text
	if r.g.windows {
		name = strings.ToLower(name)
	}
	s := r.g.subs[name]
	if !w.Known {
		r.unreadable(w)
		s = nil
	}
	if s == nil {
		s = r.g.subs["*"]
	}
	if s == nil {
		r.odd = true
		return &grammar{name: r.g.name, names: r.g.names, parent: r.g, star: -1, abbreviates: r.g.abbreviates, single: r.g.single}
	}
	return s
}

// option reads a word that is a flag, or several in one. It returns how many of
// the following words are its arguments.
func (r *reading) option(w Word, rest []Word) int {
	g := r.g
	t := w.Text
	if o, ok := g.option(t); ok && w.Known {
		return r.take(o, rest)
	}
	if g.windows && t[0] == '/' {
		return r.slash(w)
	}
	sign := "="
	if g.single && strings.IndexByte(t, ':') > 0 && !strings.Contains(t, "=") {
		sign = ":" // as java has it
	}
	if name, value, ok := strings.Cut(t, sign); ok && (len(name) > 2 || g.single) {
		if o, ok := r.long(name); ok {
			if o.arg == argNone {
				r.odd = true
			}
			r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
			return 0
		}
	}
	if g.loose && len(t) > 2 && t[1] != '-' {
		name, value, ok := strings.Cut("-"+t, "=")
		if o, found := r.long(name); found {
			if ok || !w.Known {
				r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
				return 0
			}
			return r.take(o, rest)
		}
	}
	if strings.HasPrefix(t, "--") || g.single {
		o, ok := r.long(t)
		if !ok && g.joined {
			if o, value, ok := g.joint(t); ok {
				r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
				return 0
			}
		}
		if !ok || !w.Known {
			r.unknown(w)
			return 0
		}
		return r.take(o, rest)
	}
	if g.joined {
		if o, value, ok := g.joint(t); ok && len(o.name) > len("-x") {
			r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
			return 0
		}
	}
	return r.cluster(w, rest)
}

// joint finds the longest option that a word begins with, and what is joined to it.
func (g *grammar) joint(word string) (option, string, bool) {
	for n := len(word) - 1; n > 1; n-- {
		if o, ok := g.option(word[:n]); ok && o.arg != argNone {
			return o, word[n:], true
		}
	}
	return option{}, "", false
}

// long finds a long option by its name or, where they can be cut short, by its
// beginning. Options with one dash may be written with two.
func (r *reading) long(name string) (option, bool) {
	if o, ok := r.g.option(name); ok {
		return o, true
	}
	if r.g.single && strings.HasPrefix(name, "--") {
		if o, ok := r.g.option(name[1:]); ok {
			return o, true
		}
	}
	if r.g.abbreviates && len(name) > 2 && strings.HasPrefix(name, "--") {
		return r.g.abbreviation(name)
	}
	return option{}, false
}

// cluster reads short flags in one word, the last of which may have its argument
// attached.
func (r *reading) cluster(w Word, rest []Word) int {
	t := w.Text
	for i := 1; i < len(t); i++ {
		o, ok := r.g.option(shortName(t[0], t[i]))
		switch {
		case !ok && r.g.digits && t[i] >= '0' && t[i] <= '9':
		case !ok && !w.Known && strings.IndexByte("$\"'`*?[\\{~", t[i]) >= 0:
			r.unreadable(w)
			return 0
		case !ok:
			r.odd = true
		case o.arg == argNone:
			r.apply(o, Word{Known: true})
		case i+1 < len(t) && r.g.apart:
			r.unreadable(w)
			return 0
		case i+1 < len(t):
			value := t[i+1:]
			if !r.g.abbreviates { // getopt has the sign as part of the argument, others do not
				value = strings.TrimPrefix(value, "=")
			}
			r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
			return 0
		default:
			return r.take(o, rest)
		}
	}
	return 0
}

// bundle reads short flags that stand in one word without a dash. It returns how
// many of the following words are their arguments.
func (r *reading) bundle(w Word, rest []Word) int {
	n := 0
	for i := range len(w.Text) {
		o, ok := r.g.option(shortName('-', w.Text[i]))
		if !ok || !r.known(w) {
			r.odd = true
			continue
		}
		if o.arg == argMust {
			n += r.take(o, rest[min(n, len(rest)):])
			continue
		}
		r.apply(o, Word{Known: true})
	}
	return n
}

// shorts has the names of all short flags, so that none is made while reading.
var shorts = func() (names [2][128]string) {
	for c := range 128 {
		names[0][c], names[1][c] = "-"+string(rune(c)), "+"+string(rune(c))
	}
	return names
}()

func shortName(sign, c byte) string {
	switch {
	case c >= 128:
		return ""
	case sign == '+':
		return shorts[1][c]
	}
	return shorts[0][c]
}

// slash reads a flag of Windows: /s, /S:value.
func (r *reading) slash(w Word) int {
	name, value, _ := strings.Cut(strings.ToLower(w.Text), ":")
	o, ok := r.g.option(name)
	if !ok {
		r.unknown(w)
		return 0
	}
	r.apply(o, Word{Text: value, Known: w.Known, One: w.One})
	return 0
}

// programWords are what names of flags have in them that take something to run.
var programWords = []string{
	"exec", "plugin", "preload", "wrapper", "launcher", "linker", "pager", "editor", "bootstrap", "addon", "loader",
	"eval", "shell", "command", "cmd", "callback",
}

// unknown notes a flag that the table lacks. One whose name says that it takes
// something to run is taken at its word.
func (r *reading) unknown(w Word) {
	r.odd = true
	name, _, _ := strings.Cut(strings.ToLower(w.Text), "=")
	if name = strings.TrimLeft(name, "-"); !strings.HasPrefix(name, "no-") && !strings.HasPrefix(w.Text, "-D") {
		for _, word := range programWords {
			if strings.Contains(name, word) {
				r.flag("--" + name)
			}
		}
	}
	if !w.Known {
		r.unreadable(w)
	}
}

// take applies a flag whose argument, if it has one, is the next word.
func (r *reading) take(o option, rest []Word) int {
	if o.role == roleArgv {
		if o.flagged {
			r.flag(o.name)
		}
		r.runs(rest)
		return len(rest)
	}
	if o.arg == argTwo && len(rest) > 1 {
		r.harmless(rest[0])
		r.apply(o, rest[1])
		return 2
	}
	if o.arg != argMust {
		r.apply(o, Word{Known: true})
		return 0
	}
	if len(rest) == 0 {
		r.odd = true // the program will complain
		return 0
	}
	r.apply(o, rest[0])
	return 1
}

// apply notes what a flag does.
func (r *reading) apply(o option, value Word) {
	if o.flagged {
		r.flag(o.name)
	}
	if r.g.read != nil {
		r.seen = append(r.seen, seen{o, value})
	}
	r.role(o.role, o.name, value)
}

// has returns the argument of the last flag with one of the names.
func (r *reading) has(names ...string) (Word, bool) {
	for i := len(r.seen) - 1; i >= 0; i-- {
		for _, n := range names {
			if r.seen[i].name == n {
				return r.seen[i].value, true
			}
		}
	}
	return Word{}, false
}

// assign gives the operands their roles by position.
func (r *reading) assign(operands []Word) {
	g := r.g
	n := len(operands)
	if n == 0 && g.empty != "" && !r.alone {
		r.use.Reads = append(r.use.Reads, r.at(g.empty))
	}
	if len(g.operands) == 0 {
		if n > 0 {
			r.odd = true
			r.unknownOperands(operands)
		}
		return
	}
	last := len(g.operands) - 1
	for i, w := range operands {
		at := i
		if g.star >= 0 && i >= g.star {
			at = max(g.star, last-(n-1-i))
		}
		if at > last {
			r.odd = true
			r.unknownOperands(operands[i:])
			return
		}
		if g.operands[at] == roleArgv {
			r.runs(operands[i:])
			return
		}
		r.role(g.operands[at], "", w)
	}
}

// runs notes a command that the program starts.
func (r *reading) runs(argv []Word) {
	if len(argv) > 0 {
		r.use.Runs = append(r.use.Runs, argv)
	}
}

// flag notes what makes the program do more than its name tells.
func (r *reading) flag(what string) {
	if r.use.Flagged == "" {
		r.use.Flagged = what
	}
}

// unreadable notes an argument that decides, and cannot be known.
func (r *reading) unreadable(w Word) {
	if r.use.Unreadable == "" {
		r.use.Unreadable = "the argument " + w.Text + " of " + r.program
	}
}

// known says whether a word is, and notes it when it is not.
func (r *reading) known(w Word) bool {
	if !w.Known {
		r.unreadable(w)
	}
	return w.Known
}

func (r *reading) reads(w Word) {
	if !r.known(w) || w.Text == "" || isStream(w.Text) || w.Text == "-" && !r.g.dash {
		return
	}
	r.use.Reads = append(r.use.Reads, r.at(w.Text))
}

// at is a path from the folder that the program works in.
func (r *reading) at(p string) string {
	if r.dir == "" || path.IsAbs(p) {
		return p
	}
	return inside(r.dir, p)
}

func (r *reading) writes(w Word) {
	if !r.known(w) || w.Text == "" || isStream(w.Text) || w.Text == "-" && !r.g.dash {
		return
	}
	r.use.Writes = append(r.use.Writes, r.at(w.Text))
}

func (r *reading) removes(w Word) {
	r.critical(w)
	if !r.known(w) || w.Text == "" {
		return
	}
	r.use.Writes = append(r.use.Writes, r.at(w.Text))
	r.use.Removes = append(r.use.Removes, r.at(w.Text))
}

// isStream says that a path is a stream of the process, or holds nothing.
func isStream(p string) bool {
	if !strings.HasPrefix(p, "/dev/") {
		return false
	}
	switch path.Clean(p) {
	case "/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/zero":
		return true
	}
	fd, ok := strings.CutPrefix(path.Clean(p), "/dev/fd/")
	return ok && fd != "" && strings.Trim(fd, "0123456789") == ""
}
