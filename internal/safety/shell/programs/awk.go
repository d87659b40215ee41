package programs

import "strings"

// readAwk reads the program text for what it runs, reads and writes. Nothing is
// taken for harmless here: awk has no Kind.
func readAwk(r *reading) {
	files := r.operands
	if _, ok := r.has("-f", "--file", "-E", "--exec"); ok {
		r.flag("a program file")
	} else {
		text, given := r.has("-e", "--source")
		if !given {
			if len(files) == 0 {
				return
			}
			text, files = files[0], files[1:]
		}
		for _, s := range r.seen {
			if (s.name == "-e" || s.name == "--source") && r.known(s.value) {
				r.awkProgram(s.value.Text)
			}
		}
		if r.known(text) && !given {
			r.awkProgram(text.Text)
		}
	}
	for _, w := range files {
		if name, _, ok := strings.Cut(w.Text, "="); ok && isName(name) {
			r.harmless(w)
			continue
		}
		r.reads(w)
	}
}

func isName(s string) bool {
	for i, c := range s {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

func (r *reading) awkProgram(text string) {
	text = strings.ReplaceAll(text, "\\\r\n", " ")
	text = strings.ReplaceAll(text, "\\\n", " ")
	if !strings.ContainsAny(text, "|>@<") && !strings.Contains(text, "system") && !strings.Contains(text, "ARG") {
		return
	}
	a := awkProgram{reading: r, text: text}
	a.read()
}

// awkToken is a name, a number, a string, a regular expression or a sign.
type awkToken struct {
	kind byte // 'n' name, '0' number, '"' string, '/' regexp, 's' sign, ';' end of a statement, 0 end
	text string
}

// awkProgram is a program while its tokens are read.
type awkProgram struct {
	*reading
	text  string
	at    int
	last  awkToken
	prior awkToken
}

// read looks at every token. Of statements it knows only that print and printf
// reach to their end, since in them > is a redirection outside of parentheses.
func (a *awkProgram) read() {
	printing, reading, depth := false, false, 0
	for {
		t := a.next()
		switch {
		case t.text == "getline":
			reading = true
		case t.kind == ';' || t.text == ")" || t.text == "|":
			reading = false
		}
		switch {
		case t.kind == 0:
			return
		case t.kind == '?':
			a.odd = true
			a.flag("a program that cannot be read")
			return
		case t.kind == ';':
			printing, depth = false, 0
		case t.text == "(":
			depth++
		case t.text == ")":
			depth = max(0, depth-1)
		case t.kind == 'n' && (t.text == "print" || t.text == "printf"):
			printing, depth = true, 0
		case t.kind == 'n' && (t.text == "ARGV" || t.text == "ARGC"):
			a.flag(t.text)
		case t.kind == 'n' && t.text == "system":
			a.flag("system")
			a.run(true)
		case t.text == "@":
			a.flag("@")
		case t.text == "|" || t.text == "|&":
			a.pipe(t.text, printing)
			printing = false
		case (t.text == ">" || t.text == ">>") && (printing && depth == 0 || t.text == ">>"):
			a.redirect()
			printing = false
		case t.text == "<" && reading:
			reading = false
			a.input()
		}
	}
}

// run notes a command: what stands in a string that nothing is added to.
func (a *awkProgram) run(call bool) {
	at, last := a.at, a.last
	t := a.next()
	if call && t.text == "(" {
		t = a.next()
	}
	if s, ok := a.only(t, ")"); ok {
		a.use.Scripts = append(a.use.Scripts, Word{Text: s, Known: true})
	} else {
		a.unreadable(Word{Text: strings.TrimSpace(a.text)})
	}
	a.at, a.last = at, last
}

// only returns the string that a token is, when no more belongs to it.
func (a *awkProgram) only(t awkToken, ends string) (string, bool) {
	if t.kind != '"' {
		return "", false
	}
	at, last := a.at, a.last
	n := a.next()
	a.at, a.last = at, last
	if n.kind == 0 || n.kind == ';' || n.text == ends || n.text == "}" {
		return t.text, true
	}
	return "", false
}

// pipe notes what a pipe runs: the string before it for getline, else the one
// that follows.
func (a *awkProgram) pipe(sign string, printing bool) {
	a.flag(sign)
	before := a.prior
	at, last := a.at, a.last
	next := a.next()
	a.at, a.last = at, last
	if next.text == "getline" && !printing {
		if before.kind == '"' {
			a.use.Scripts = append(a.use.Scripts, Word{Text: before.text, Known: true})
			return
		}
		a.unreadable(Word{Text: strings.TrimSpace(a.text)})
		return
	}
	a.run(false)
}

func (a *awkProgram) redirect() {
	a.flag(">")
	s, ok := a.only(a.next(), "")
	if !ok {
		a.unreadable(Word{Text: strings.TrimSpace(a.text)})
		return
	}
	if !a.inet(s) {
		a.writes(Word{Text: s, Known: true})
	}
}

func (a *awkProgram) input() {
	a.flag("getline")
	s, ok := a.only(a.next(), ")")
	if !ok {
		a.unreadable(Word{Text: strings.TrimSpace(a.text)})
		return
	}
	if !a.inet(s) {
		a.reads(Word{Text: s, Known: true})
	}
}

// inet notes the host of /inet/tcp/0/host/port, which gawk connects to.
func (a *awkProgram) inet(name string) bool {
	parts := strings.Split(name, "/")
	if len(parts) < 6 || !strings.HasPrefix(parts[1], "inet") {
		return false
	}
	a.host(Word{Text: parts[4] + ":" + parts[5], Known: true})
	return true
}

// next reads a token. A slash begins a regular expression where no value stands
// before it that it could divide.
func (a *awkProgram) next() awkToken {
	a.prior = a.last
	for a.at < len(a.text) && (a.text[a.at] == ' ' || a.text[a.at] == '\t' || a.text[a.at] == '\r') {
		a.at++
	}
	if a.at >= len(a.text) {
		a.last = awkToken{}
		return a.last
	}
	start := a.at
	c := a.text[a.at]
	a.at++
	t := awkToken{kind: 's'}
	switch {
	case c == '#':
		for a.at < len(a.text) && a.text[a.at] != '\n' {
			a.at++
		}
		return a.next()
	case c == '\n' && (a.last.text == "," || a.last.text == "&&" || a.last.text == "||"):
		return a.next()
	case c == ';' || c == '\n' || c == '}' || c == '{':
		t.kind = ';'
	case c == '"':
		t = a.quoted('"')
	case c == '/' && !a.value():
		t = a.quoted('/')
	case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
		for a.at < len(a.text) && isName("_"+a.text[a.at:a.at+1]) {
			a.at++
		}
		t.kind = 'n'
	case c >= '0' && c <= '9' || c == '.':
		for a.at < len(a.text) && (isName("_"+a.text[a.at:a.at+1]) || a.text[a.at] == '.') {
			a.at++
		}
		t.kind = '0'
	case a.at < len(a.text) && pairs[a.text[start:a.at+1]]:
		a.at++
	}
	if t.text == "" && t.kind != '"' && t.kind != '/' {
		t.text = a.text[start:a.at]
	}
	a.last = t
	return t
}

// pairs are the signs of two characters.
var pairs = map[string]bool{
	"||": true, "|&": true, "&&": true, ">>": true, ">=": true, "<=": true, "==": true, "!=": true, "++": true, "--": true,
}

// value says that the last token ended one.
func (a *awkProgram) value() bool {
	switch a.last.kind {
	case '0', '"':
		return true
	case 'n':
		switch a.last.text {
		case "print", "printf", "return", "in", "case", "do", "else", "exit", "getline", "delete":
			return false
		}
		return true
	case 's':
		return a.last.text == ")" || a.last.text == "]" || a.last.text == "++" || a.last.text == "--" || a.last.text == "$"
	}
	return false
}

// quoted reads a string or a regular expression to its end. Kind '?' means that
// there is none.
func (a *awkProgram) quoted(end byte) awkToken {
	var b strings.Builder
	bracket := false
	for a.at < len(a.text) {
		c := a.text[a.at]
		a.at++
		switch {
		case c == '\\' && a.at < len(a.text):
			if end == '"' && strings.IndexByte(`"/\`, a.text[a.at]) < 0 {
				// An escape that makes another character: the text is not known.
				b.WriteByte('\\')
			}
			b.WriteByte(a.text[a.at])
			a.at++
		case c == '\n':
			return awkToken{kind: '?'}
		case end == '/' && c == '[':
			bracket = true
		case end == '/' && c == ']':
			bracket = false
		case c == end:
			if bracket { // read in two ways by different awks
				return awkToken{kind: '?'}
			}
			return awkToken{kind: end, text: b.String()}
		default:
			b.WriteByte(c)
		}
	}
	return awkToken{kind: '?'}
}
