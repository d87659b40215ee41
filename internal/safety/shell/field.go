package shell

import (
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// field is a word that is being put together.
type field struct {
	w    *walker
	st   *state
	from *syntax.Word
	into *argv

	text    strings.Builder
	unknown bool
	several bool // it may become any number of words, or none
	some    bool // it is a word even when it is empty
	glob    bool
	literal bool // it has quoted characters that a pattern would take differently
	marks   wordMark
	other   bool // it has unknown parts that no mark tells
}

// fragment adds what the parts of a word become, after its braces.
func (w *walker) fragment(st *state, parts []syntax.WordPart, from *syntax.Word, a *argv) {
	f := field{w: w, st: st, from: from, into: a}
	for i, p := range parts {
		f.part(p, i, len(parts))
	}
	f.end()
}

func (f *field) lose(m wordMark, several bool) {
	f.unknown = true
	f.several = f.several || several
	if m == 0 {
		f.other = true
	}
	f.marks |= m
}

// part adds one part of an unquoted word.
func (f *field) part(p syntax.WordPart, i, n int) {
	w := f.w
	switch p := p.(type) {
	case *syntax.Lit:
		text := p.Value
		if i == 0 && strings.HasPrefix(text, "~") {
			text = f.tilde(text, n == 1)
		}
		f.bare(text)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		f.some = true
		f.quoted(p)
	case *syntax.ParamExp:
		f.param(p, false)
	case *syntax.CmdSubst:
		text, ok := w.substitute(f.st, p)
		switch {
		case ok:
			f.split(text)
		case w.printsNumber(f.st, p):
			f.lose(numeric, true)
		default:
			f.lose(0, true)
		}
	case *syntax.ArithmExp:
		w.arithExp(f.st, p)
		f.lose(numeric, f.st.noSplit)
	case *syntax.ProcSubst:
		f.process(p)
	case *syntax.ExtGlob:
		w.unreadable("what the pattern " + w.written(p) + " stands for")
		f.lose(0, true)
	default:
		w.unreadable("a word that is not known")
		f.lose(0, true)
	}
}

func (f *field) process(p *syntax.ProcSubst) {
	w := f.w
	w.differs("<( )")
	w.apart(func() {
		w.forks++
		if p.Op == syntax.CmdIn {
			listed := len(*w.out)
			w.list(f.st, p.Stmts)
			w.streamed = (*w.out)[listed:]
		} else {
			w.fed(func() { w.list(f.st, p.Stmts) })
		}
		w.forks--
	})
	switch p.Op {
	case syntax.CmdIn:
		f.marks |= pipeIn
	case syntax.CmdOut:
		f.marks |= pipeOut
	default:
		f.lose(0, false)
	}
	f.text.WriteString("/dev/fd/" + strconv.Itoa(63-f.into.streams))
	f.into.streams++
}

// tilde expands the start of a word, and returns the rest of its text.
func (f *field) tilde(text string, alone bool) string {
	user, rest := text[1:], ""
	if i := strings.IndexByte(user, '/'); i >= 0 {
		user, rest = user[:i], user[i:]
	} else if !alone {
		f.lose(0, false) // ~"x": not a tilde, or one that other parts belong to
		return text
	}
	switch v := f.w.valueOf(f.st, "HOME"); {
	case user == "" && v.kind == literal && v.text != "":
		f.text.WriteString(v.text)
		f.some = true
		return rest
	case user == "+" && len(f.st.dirs) == 1 && f.w.dialect != dialectPOSIX:
		f.text.WriteString(f.st.dirs[0])
		return rest
	}
	f.lose(0, false)
	return rest
}

// bare adds unquoted text.
func (f *field) bare(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '\\':
			if i++; i < len(s) {
				f.some = true
				f.quote(s[i : i+1])
			}
			continue
		case '*', '?', '[':
			f.glob = true
		case '(', ')', '^', '#':
			if f.w.dialect == dialectZsh && (c == '(' || c == ')') {
				f.w.unreadable("what the pattern " + s + " stands for")
				f.lose(0, true)
			}
		case '=':
			if f.w.dialect == dialectZsh && i == 0 && f.text.Len() == 0 {
				f.lose(0, false)
			}
		default:
			if c >= utf8.RuneSelf {
				if r, _ := utf8.DecodeRuneInString(s[i:]); invisible(r) {
					f.w.unreadable("a word with characters that cannot be seen")
				}
			}
		}
		f.text.WriteByte(s[i])
	}
}

// quote adds text that stands for itself.
func (f *field) quote(s string) {
	if strings.ContainsAny(s, `*?[]\`) {
		f.literal = true
	}
	f.text.WriteString(s)
}

// quoted adds a part that is in quotes, or stands in them.
func (f *field) quoted(p syntax.WordPart) {
	w := f.w
	switch p := p.(type) {
	case *syntax.Lit:
		f.quote(unescape(p.Value))
	case *syntax.SglQuoted:
		if !p.Dollar {
			f.quote(p.Value)
			return
		}
		w.differs("$'")
		text, ok := ansi(p.Value)
		if !ok {
			f.lose(0, false)
		}
		f.quote(text)
	case *syntax.DblQuoted:
		if p.Dollar {
			w.differs(`$"`)
		}
		for _, q := range p.Parts {
			f.quoted(q)
		}
	case *syntax.ParamExp:
		f.param(p, true)
	case *syntax.CmdSubst:
		text, ok := w.substitute(f.st, p)
		switch {
		case ok:
			f.quote(text)
		case w.printsNumber(f.st, p):
			f.lose(numeric, false)
		default:
			f.lose(0, false)
		}
	case *syntax.ArithmExp:
		w.arithExp(f.st, p)
		f.lose(numeric, false)
	default:
		w.unreadable("a quoted word that is not known")
		f.lose(0, true)
	}
}

// unescape takes the backslashes out that double quotes leave to the shell.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			switch s[i+1] {
			case '$', '`', '"', '\\':
				i++
			case '\n':
				i++
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// split adds a value that is not in quotes.
func (f *field) split(s string) {
	if f.w.dialect == dialectZsh && !f.st.noSplit {
		f.quote(s)
		return
	}
	if f.st.noSplit || strings.ContainsAny(s, `*?[\`) {
		f.lose(0, true)
		return
	}
	for i, word := range strings.FieldsFunc(s, blank) {
		if i > 0 || s[0] <= ' ' && f.text.Len() > 0 {
			f.end()
			*f = field{w: f.w, st: f.st, from: f.from, into: f.into, unknown: f.unknown, several: f.several}
		}
		f.text.WriteString(word)
	}
	if s != "" && blank(rune(s[len(s)-1])) {
		f.end()
		*f = field{w: f.w, st: f.st, from: f.from, into: f.into, unknown: f.unknown, several: f.several}
	}
}

func blank(r rune) bool { return r == ' ' || r == '\t' || r == '\n' }

// end adds the word to the others.
func (f *field) end() {
	w := f.w
	switch {
	case f.unknown:
		m := f.marks
		if f.other {
			m &^= numeric | inherits
		} else if m&numeric != 0 && m&inherits != 0 {
			m &^= numeric
		}
		f.into.add(w.written(f.from), false, !f.several && !f.glob, m)
	case f.text.Len() == 0 && !f.some:
	case f.glob:
		f.match()
	default:
		f.into.add(f.text.String(), true, true, f.marks)
	}
}

// match adds what a pattern stands for.
func (f *field) match() {
	w, text := f.w, f.text.String()
	if !strings.ContainsAny(text, "*?") && !strings.Contains(text, "]") {
		f.into.add(text, true, true, f.marks) // [ alone is no pattern
		return
	}
	abs := f.st.under(text)
	if open := strings.IndexByte(text, '['); open >= 0 && strings.Contains(text[open:], "-") {
		abs = nil // what is in a range depends on the locale
	}
	if strings.Contains("/"+strings.TrimPrefix(text, "./")+"/", "/./") {
		abs = nil // only folders fit, and are written with it
	}
	if w.globs++; w.globs > maxGlobs {
		abs = nil
	}
	if f.literal || f.st.noGlob || w.Glob == nil || len(abs) != 1 ||
		strings.Contains(strings.TrimLeft(text, "./"), "..") || strings.ContainsAny(w.home, `*?[\`) || strings.ContainsAny(path.Join(f.st.dirs...), `*?[\`) {
		f.into.add(w.written(f.from), false, false, pattern)
		return
	}
	w.globbed = true
	if strings.HasSuffix(text, "/") {
		abs[0] += "/"
	}
	found, ok := w.Glob(abs[0])
	changed := w.changes(abs[0])
	if !ok || len(found) > maxFields || changed && strings.IndexByte("*?[-", text[0]) >= 0 {
		f.into.add(w.written(f.from), false, false, pattern)
		return
	}
	if len(found) == 0 || changed {
		// A shell leaves it as it is, or refuses. What files there will be by then
		// is not known, but they are below the same folder, and none is a flag.
		f.into.add(text, true, true, pattern)
	}
	lead := ""
	if !rooted(text) {
		lead = strings.TrimSuffix(f.st.dirs[0], "/") + "/"
	}
	dot := ""
	if strings.HasPrefix(text, "./") {
		dot = "./"
	}
	for _, p := range found {
		f.into.add(dot+strings.TrimPrefix(p, lead), true, true, pattern)
	}
}

// changes says whether what stands before may have made files that a pattern finds.
func (w *walker) changes(abs string) bool {
	if w.dirty {
		return true
	}
	parts := strings.Split(abs, "/")
next:
	for _, c := range w.changed {
		i := 0
		for part := range strings.SplitSeq(filepath.ToSlash(c), "/") {
			if i == len(parts) {
				break
			}
			if ok, err := path.Match(parts[i], part); !ok && err == nil {
				continue next
			}
			i++
		}
		return true
	}
	return false
}

// ansi reads the escapes of $'…'. It is not sure of what holds a NUL, depends on
// the locale, or is no escape.
func ansi(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if k := strings.IndexByte(`abeEfnrtv\'"?`, s[i]); k >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v\\'\"?"[k])
			continue
		}
		var digitsMax, base int
		switch c := s[i]; {
		case c >= '0' && c <= '7':
			i, digitsMax, base = i-1, 3, 8
		case c == 'x':
			digitsMax, base = 2, 16
		case c == 'u':
			digitsMax, base = 4, 16
		case c == 'U':
			digitsMax, base = 8, 16
		default:
			return b.String(), false // \cX, and what shells differ over
		}
		n := 0
		for n < digitsMax && i+1+n < len(s) && isDigit(s[i+1+n], base) {
			n++
		}
		code, err := strconv.ParseUint(s[i+1:i+1+n], base, 32)
		if err != nil || code == 0 || code > utf8.MaxRune || base == 8 && code > 255 || digitsMax > 3 && code > 127 {
			return b.String(), false
		}
		if s[i] == 'u' || s[i] == 'U' {
			b.WriteRune(rune(code))
		} else {
			b.WriteByte(byte(code))
		}
		i += n
	}
	return b.String(), true
}

func isDigit(c byte, base int) bool {
	if base == 8 {
		return c >= '0' && c <= '7'
	}
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
