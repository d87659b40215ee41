package programs

import "strings"

// readSed reads the files, and the script for what it runs, reads and writes.
func readSed(r *reading) {
	files := r.operands
	if width, ok := r.has("-l"); ok && strings.Trim(width.Text, "0123456789") != "" {
		r.flag("a script that cannot be read") // on a Mac it has no argument
	}
	suffix, inPlace := r.has("-i", "-I", "--in-place")
	if inPlace && suffix.Text == "" && len(files) > 0 && files[0].Known && files[0].Text == "" {
		files = files[1:] // as it is written on a Mac: -i ''
	}
	script, known, given := r.sedScript()
	if !given {
		if len(files) == 0 {
			r.odd = true
			return
		}
		script, known = files[0].Text, r.known(files[0])
		files = files[1:]
	}
	if known {
		s := sedScript{reading: r, text: script}
		if !s.commands() {
			r.odd = true
			r.flag("a script that cannot be read")
		}
	}
	for _, w := range files {
		r.reads(w)
		if !inPlace {
			continue
		}
		r.writes(w)
		switch {
		case !r.known(suffix) || suffix.Text == "":
		case strings.ContainsAny(suffix.Text, "*/"):
			r.odd = true
		case w.Known:
			r.writes(Word{Text: w.Text + suffix.Text, Known: true})
		}
	}
}

// sedScript joins the scripts that flags give.
func (r *reading) sedScript() (script string, known, given bool) {
	known = true
	for _, s := range r.seen {
		switch s.name {
		case "-e", "--expression":
			if given {
				script += "\n"
			}
			script += s.value.Text
			known = r.known(s.value) && known
			given = true
		case "-f", "--file":
			given = true
			r.odd = true
			r.flag("a script file")
		}
	}
	return script, known, given
}

// sedScript is a script while it is read. Where the dialects of sed read a
// script in different ways, it counts as one that cannot be read.
type sedScript struct {
	*reading
	text string
	at   int
}

func (s *sedScript) end() bool { return s.at >= len(s.text) }

func (s *sedScript) peek() byte {
	if s.end() {
		return 0
	}
	return s.text[s.at]
}

func (s *sedScript) skip(set string) {
	for !s.end() && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
}

// line takes what is left of the line.
func (s *sedScript) line() string {
	rest := s.text[s.at:]
	if i := strings.IndexByte(rest, '\n'); i >= 0 {
		rest = rest[:i]
	}
	s.at += len(rest)
	return strings.TrimLeft(rest, " \t")
}

// commands reads all of the script; false means that it cannot.
func (s *sedScript) commands() bool {
	for {
		s.skip(" \t\n;}")
		if s.end() {
			return true
		}
		if !s.address() || !s.command() {
			return false
		}
	}
}

// address reads none, one or two addresses, and what negates them.
func (s *sedScript) address() bool {
	for {
		switch c := s.peek(); {
		case c >= '0' && c <= '9' || c == '$' || c == '~' || c == '+' || c == ',' || c == '!' || c == ' ' || c == '\t':
			s.at++
		case c == '/' || c == '\\':
			if c == '\\' {
				s.at++
			}
			if s.end() || !s.delimited(s.peek()) {
				return false
			}
			s.skip("IM")
		default:
			return true
		}
	}
}

// delimited reads from a delimiter to the next one. A bracket expression that is
// open at the delimiter is read in two ways by different seds.
func (s *sedScript) delimited(d byte) bool {
	if d == '\n' || d == '\\' || d >= 128 {
		return false
	}
	s.at++
	return s.until(d, true)
}

func (s *sedScript) until(d byte, brackets bool) bool {
	open := false
	for !s.end() {
		c := s.text[s.at]
		s.at++
		switch {
		case c == '\\':
			s.at++
		case c == d:
			return !open
		case brackets && c == '[' && !open:
			open = true
			s.skip("^")
			if s.peek() == ']' && d != ']' {
				s.at++
			}
		case c == ']':
			open = false
		}
	}
	return false
}

// command reads one command after its addresses.
func (s *sedScript) command() bool {
	c := s.peek()
	s.at++
	switch c {
	case '{':
		return true
	case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		return s.ended()
	case 'q', 'Q', 'l', 'L':
		s.skip(" \t0123456789")
		return s.ended()
	case '#':
		s.line()
		return true
	case ':', 'b', 't', 'T', 'v':
		// Some seds end a label at a blank or a semicolon, others with the line: what
		// follows has to be harmless in both.
		s.skip(" \t")
		for !s.end() && strings.IndexByte(" \t;}\n", s.text[s.at]) < 0 {
			s.at++
		}
		return true
	case 'a', 'i', 'c':
		return s.inserted()
	case 'r', 'R':
		s.reads(Word{Text: s.line(), Known: true})
		s.flag("script: " + string(c))
		return true
	case 'w', 'W':
		s.file("script: " + string(c))
		return true
	case 'e':
		s.flag("script: e")
		if cmd := s.line(); cmd != "" {
			s.use.Scripts = append(s.use.Scripts, Word{Text: cmd, Known: true})
		}
		return true
	case 's':
		return s.substitute()
	case 'y':
		d := s.peek()
		return s.delimited(d) && s.until(d, false) && s.ended()
	}
	return false
}

// ended says that a command without arguments ends here.
func (s *sedScript) ended() bool {
	s.skip(" \t")
	c := s.peek()
	return s.end() || c == ';' || c == '\n' || c == '}' || c == '#'
}

// inserted skips text: to the end of the line, and on while lines end with a
// backslash.
func (s *sedScript) inserted() bool {
	for !s.end() {
		c := s.text[s.at]
		s.at++
		if c == '\\' {
			s.at++
			continue
		}
		if c == '\n' {
			break
		}
	}
	return true
}

// file notes the file that is written, which takes the rest of the line.
func (s *sedScript) file(why string) {
	s.flag(why)
	s.writes(Word{Text: s.line(), Known: true})
}

func (s *sedScript) substitute() bool {
	d := s.peek()
	if s.end() || !s.delimited(d) {
		return false
	}
	start := s.at
	if !s.until(d, false) {
		return false
	}
	replacement := s.text[start : s.at-1]
	for {
		c := s.peek()
		switch {
		case s.end() || c == ';' || c == '\n' || c == '}' || c == '#':
			return true
		case c == ' ' || c == '\t':
		case c == 'w':
			s.at++
			s.file("script: s///w")
			return true
		case c == 'e':
			s.flag("script: s///e")
			s.hint(replacement, true)
		case strings.IndexByte("gpiImM0123456789", c) < 0:
			return false
		}
		s.at++
	}
}
