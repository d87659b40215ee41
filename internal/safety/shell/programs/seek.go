package programs

import "strings"

// The limits of a search. A text with more in it is not searched to its end.
const (
	maxSought = 32  // commands that are found by the bare words behind a name
	maxBare   = 500 // bytes of one of them
)

// A Hint is a text in a language that is not read, which may have commands in it.
type Hint struct {
	Text  string
	Line  bool // all of it may be a command line
	Ticks bool // what stands in backquotes is one
}

// Seek finds what a text in another language has a program or a shell run, as far
// as that shows: the strings after names like system, exec or run, in backquotes,
// behind an exclamation mark. It calls line for what a shell would read, argv for
// the words of a program, and says whether the text was searched to its end. What
// a text hides well it does not find: it serves rules that forbid something, and
// nothing is allowed for want of a find.
func (h Hint) Seek(line func(string), argv func([]string)) bool {
	s := seeker{text: h.Text, ticks: h.Ticks, line: line, argv: argv}
	for s.at < len(s.text) && s.found <= maxSought {
		s.step()
	}
	s.flush()
	return s.found <= maxSought
}

// seeker is a search in a text.
type seeker struct {
	text  string
	at    int
	ticks bool
	line  func(string)
	argv  func([]string)
	found int    // bare ones, and what has no end
	open  [3]int // up to where each kind of quote is a character like others

	depth   int
	armed   bool // behind the name of what runs something
	opened  int  // the depth of that name
	strings []string
	last    string // the string that ended just before
}

func (s *seeker) step() {
	c := s.text[s.at]
	last := s.last
	s.last = ""
	switch {
	case c == '"' || c == '\'' || c == '`':
		s.quoted(c)
	case wordByte(c):
		s.name(last)
	case c == '!':
		s.bang()
	case c == '%' && strings.HasPrefix(s.text[s.at:], "%("):
		s.at += 2
		s.bare()
	case c == '(' || c == '[' || c == '{':
		s.depth++
		s.at++
	case c == ')' || c == ']' || c == '}':
		s.depth--
		s.at++
		if s.depth <= s.opened {
			s.flush()
		}
	case c == ';' || c == '\n':
		s.at++
		if s.depth <= s.opened {
			s.flush()
		}
	default:
		s.at++
		if c == '.' {
			s.last = last
		}
	}
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// quoted reads a string to its end. A quote without another one, on the same line
// when it is an apostrophe, is none, and neither are those behind it.
func (s *seeker) quoted(quote byte) {
	open := &s.open[strings.IndexByte("\"'`", quote)]
	if s.at < *open {
		s.at++
		return
	}
	rest := s.text[s.at+1:]
	end := 0
	for end < len(rest) && rest[end] != quote && (quote != '\'' || rest[end] != '\n') {
		if rest[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(rest) || rest[end] != quote {
		*open = s.at + 1 + end
		s.at++
		return
	}
	s.at += end + 2
	s.literal(unescaped(rest[:end]), quote == '`' && s.ticks)
}

var escapes = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\`, "")

func unescaped(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	return escapes.Replace(s)
}

// literal takes a string. A pipe at its start or end makes it a command.
func (s *seeker) literal(text string, runs bool) {
	s.last = text
	switch trimmed := strings.TrimSpace(text); {
	case trimmed == "":
	case runs:
		s.line(text)
	case trimmed[0] == '|' || trimmed[len(trimmed)-1] == '|':
		s.line(strings.Trim(trimmed, "|"))
	case s.armed:
		s.strings = append(s.strings, text)
	}
}

// name reads a name, and arms the search when that is one of what runs something.
func (s *seeker) name(before string) {
	start := s.at
	for s.at < len(s.text) && wordByte(s.text[s.at]) {
		s.at++
	}
	name := s.text[start:s.at]
	percent := start > 0 && s.text[start-1] == '%'
	switch {
	case s.at == len(s.text):
	case percent && len(name) == 1 && strings.Contains("xqwQWI", name), name == "qx", name == "q", name == "qq", name == "qw":
		s.delimited(name)
		return
	}
	if !runner(name) {
		return
	}
	if before != "" { // "…".execute()
		s.line(before)
	}
	s.flush()
	s.armed, s.opened = true, s.depth
	at := s.at
	for at < len(s.text) && strings.IndexByte(" \t({[\\", s.text[at]) >= 0 {
		at++
	}
	if at > s.at && at < len(s.text) && (wordByte(s.text[at]) || strings.IndexByte("/.$-~", s.text[at]) >= 0) {
		kept := s.at
		s.at = at
		s.bare()
		s.at = kept
	}
}

// bare takes what stands here, up to the end of the statement, for a command line.
func (s *seeker) bare() {
	rest := s.text[s.at:min(len(s.text), s.at+maxBare)]
	if end := strings.IndexAny(rest, ";\n)}]"); end >= 0 {
		rest = rest[:end]
	}
	s.found++
	s.line(rest)
}

// bang reads what editors, debuggers and clients of databases take for a command.
func (s *seeker) bang() {
	before := strings.TrimRight(s.text[:s.at], " \t")
	s.at++
	if s.at == len(s.text) || s.text[s.at] == '=' || s.text[s.at] == '(' {
		return
	}
	if before != "" && !wordByte(before[len(before)-1]) && strings.IndexByte("\n;:%=|\\$.,'\"", before[len(before)-1]) < 0 {
		return
	}
	rest := s.text[s.at:min(len(s.text), s.at+maxBare)]
	if end := strings.IndexByte(rest, '\n'); end >= 0 {
		rest = rest[:end]
	}
	s.found++
	s.line(rest)
}

// delimited reads a string of Perl or Ruby: q{…}, %w[…], qx/…/.
func (s *seeker) delimited(name string) {
	open := s.text[s.at]
	shut := open
	if i := strings.IndexByte("([{<", open); i >= 0 {
		shut = ")]}>"[i]
	} else if wordByte(open) || open <= ' ' || strings.IndexByte(",;=.)]}", open) >= 0 {
		return
	}
	rest := s.text[s.at+1:]
	depth := 1
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] == '\\':
			i++
			continue
		case rest[i] == shut:
			depth--
		case rest[i] == open:
			depth++
		}
		if depth > 0 {
			continue
		}
		s.at += i + 2
		switch name {
		case "qw", "w", "W":
			for word := range strings.FieldsSeq(rest[:i]) {
				s.literal(word, false)
			}
		default:
			s.literal(rest[:i], name == "qx" || name == "x")
		}
		return
	}
	s.found++
}

// runner says whether what has such a name may run commands.
func runner(name string) bool {
	switch name {
	case "run", "call", "check_call", "check_output", "sh", "bash", "cmd", "program", "write18", "term", "terminal", "start", "proc",
		"capture2", "capture3", "open2", "open3", "pipeline", "Proc", "Cmd", "process", "Process", "OpenProcess", "Run", "Start", "readpipe":
		return true
	}
	for _, part := range [...]string{"system", "popen", "exec", "spawn", "shell", "getoutput", "getstatusoutput", "passthru", "proc_open", "command", "syscmd"} {
		for i := 0; i+len(part) <= len(name); i++ {
			if strings.EqualFold(name[i:i+len(part)], part) {
				return true
			}
		}
	}
	return false
}

// flush hands over the strings behind a name, as the one command line that they
// may be and as words.
func (s *seeker) flush() {
	list := s.strings
	s.strings, s.armed, s.opened = nil, false, s.depth
	if len(list) == 0 {
		return
	}
	if len(list) == 1 {
		s.line(list[0])
		return
	}
	s.argv(list)
	if baseName(list[0]) == baseName(list[1]) { // the program, and its own name for it
		s.argv(list[1:])
	}
	if strings.ContainsAny(list[0], " \t\n") {
		s.line(strings.Join(list, " "))
	}
}

// hint notes a text that may have commands in it.
func (r *reading) hint(text string, line bool) {
	if text == "" {
		return
	}
	h := Hint{Text: text, Line: line}
	switch strings.TrimRight(r.program, "-.0123456789") {
	case "perl", "ruby", "php", "julia", "jruby", "irb":
		h.Ticks = true
	}
	r.use.Hints = append(r.use.Hints, h)
}

// suspect notes the value of what can make a program run something: KEY=VALUE, a
// setting, a command of its own. One word is taken for a program if it can be one.
func (r *reading) suspect(text string) {
	if key, value, ok := strings.Cut(text, "="); ok && !strings.ContainsAny(key, " \t\n'\"()") {
		text = value
	}
	if text = strings.TrimLeft(text, "!:@ \t"); text == "" {
		return
	}
	one := !strings.ContainsAny(text, " \t\n,;|&$`(!")
	if one && strings.ContainsAny(text, "./") && !strings.Contains(text, "bin/") {
		return
	}
	if !strings.ContainsAny(text, " \t\n") { // gcc -wrapper program,argument
		text = strings.ReplaceAll(text, ",", " ")
	}
	r.hint(text, true)
}

// talk notes a text that is code when something in it runs a command.
func (r *reading) talk(text string) {
	n := len(r.use.Hints)
	r.hint(text, false)
	if n == len(r.use.Hints) {
		return
	}
	found := func() { r.flag("a command in its text") }
	if !r.use.Hints[n].Seek(func(string) { found() }, func([]string) { found() }) {
		found()
	}
}
