package shell

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

// readPowerShell says what a line of PowerShell would do, as far as it is plain:
// names with literal arguments, joined by operators. Variables, expressions, script
// blocks and whatever runs text make it unreadable; the commands in them are listed.
func readPowerShell(command string, o Options) agent.Effects {
	return powerShellIn(command, outermost(o))
}

func powerShellIn(command string, f foreign) agent.Effects {
	p := &powerShell{foreign: f}
	p.text = p.begin(command)
	p.list(0)
	return p.effects()
}

// powerShell reads a text from at on.
type powerShell struct {
	foreign
	text string
	at   int

	// The command that is being read.
	words  []foreignWord
	writes []string
	called bool // behind the call operator
}

func (p *powerShell) peek(n int) byte {
	if p.at+n < len(p.text) {
		return p.text[p.at+n]
	}
	return 0
}

// skip goes n bytes on, or to the end of the text.
func (p *powerShell) skip(n int) { p.at = min(p.at+n, len(p.text)) }

// list reads commands up to the closing bracket, or to the end if there is none.
func (p *powerShell) list(closing byte) {
	outer := powerShell{words: p.words, writes: p.writes, called: p.called}
	p.words, p.writes, p.called = nil, nil, false
	if p.depth++; p.depth > maxForeignDepth {
		p.unparsed("it is nested too deeply")
		p.at = len(p.text)
	}
	closed := closing == 0
	for p.at < len(p.text) {
		c := p.text[p.at]
		if c == ')' || c == '}' {
			p.at++
			if c == closing {
				closed = true
				break
			}
			p.unparsed("it has a bracket too many")
			p.end()
			continue
		}
		p.token(c)
	}
	if !closed {
		p.unparsed("a bracket is not closed")
	}
	p.end()
	p.depth--
	p.words, p.writes, p.called = outer.words, outer.writes, outer.called
}

// token reads a word, an operator or blanks.
func (p *powerShell) token(c byte) {
	switch {
	case c == ' ' || c == '\t':
		p.at++
	case c == '`' && p.peek(1) == '\n':
		p.skip(2)
	case c == '\n' || c == ';' || c == '|':
		p.at++
		p.end()
	case c == '&':
		p.ampersand()
	case c == '#':
		p.skipTo("\n", 0)
	case c == '<' && p.peek(1) == '#':
		p.skipTo("#>", 2)
	case c == '>' || strings.IndexByte("123456*", c) >= 0 && p.peek(1) == '>':
		p.redirect()
	case c == '<':
		p.unreadable("an input redirection")
		p.at++
	case c == ',':
		p.at++ // parts the items of a list
	case c == '{':
		p.unreadable("a script block")
		p.block('}')
	case c == '(':
		p.unreadable("an expression in brackets")
		p.block(')')
	default:
		p.word()
	}
}

// ampersand reads &&, the call operator, or the mark of a job in the background.
func (p *powerShell) ampersand() {
	switch {
	case p.peek(1) == '&':
		p.skip(2)
		p.end()
	case len(p.words) == 0:
		p.at++
		p.called = true
	default:
		p.at++
		p.end()
	}
}

// block reads what stands in brackets; it stands for a word that is not known.
func (p *powerShell) block(closing byte) {
	start := p.at
	p.at++
	p.list(closing)
	p.words = append(p.words, foreignWord{text: p.text[start:p.at]})
}

// skipTo goes behind the next end, or to the end of the text.
func (p *powerShell) skipTo(end string, from int) {
	if i := strings.Index(p.text[min(p.at+from, len(p.text)):], end); i >= 0 {
		p.at += from + i
		if end != "\n" {
			p.at += len(end)
		}
		return
	}
	if end != "\n" {
		p.unparsed("a comment is not closed")
	}
	p.at = len(p.text)
}

func (p *powerShell) redirect() {
	for p.peek(0) != '>' {
		p.at++
	}
	for p.peek(0) == '>' {
		p.at++
	}
	if p.peek(0) == '&' {
		p.skip(2) // 2>&1
		return
	}
	for p.peek(0) == ' ' || p.peek(0) == '\t' {
		p.at++
	}
	before := len(p.words)
	if p.at < len(p.text) && !strings.ContainsRune("\n;|&(){}<>,", rune(p.text[p.at])) {
		p.word()
	}
	if len(p.words) == before {
		p.unreadable("a redirection to what is not known")
		return
	}
	target := p.words[before]
	p.words = p.words[:before]
	switch {
	case strings.EqualFold(target.text, "$null") || strings.EqualFold(target.text, "nul"):
	case !target.known:
		p.unreadable("a redirection to what is not known: " + target.text)
	default:
		if to := p.path(target.text, true); to != "" {
			p.writes = append(p.writes, to)
		}
	}
}

// word reads one word. Quotes and escapes are taken out of it.
func (p *powerShell) word() {
	start := p.at
	var b strings.Builder
	w := foreignWord{known: true}
	unknown := func(why string) {
		w.known = false
		if !strings.EqualFold(p.text[start:min(p.at+5, len(p.text))], "$null") {
			p.unreadable(why)
		}
	}
	for p.at < len(p.text) {
		c := p.text[p.at]
		switch {
		case c == '\'':
			w.quoted = true
			p.single(&b)
			continue
		case c == '"':
			w.quoted = true
			if !p.double(&b) {
				w.known = false
			}
			continue
		case c == '@' && p.at == start && (p.peek(1) == '\'' || p.peek(1) == '"'):
			w.quoted = true
			p.hereString(&b, &w)
			continue
		case c == '`':
			p.escape(&b)
			continue
		case c == '$':
			unknown("a variable or an expression")
			if p.dollar() {
				continue
			}
		case c == '@' && p.at == start && p.peek(1) != 0 && strings.IndexByte(" \t\n", p.peek(1)) < 0:
			unknown("a list, a table or a splatted variable")
		case c == '[' && p.at == start && len(p.words) == 0:
			unknown("an expression")
		case c == '(':
			unknown("an expression in brackets")
			p.at++
			p.list(')')
			continue
		case c == '{':
			unknown("a script block")
			p.at++
			p.list('}')
			continue
		case strings.IndexByte(" \t\n;|&)},<>", c) >= 0:
			p.done(w, start, b.String())
			return
		case c >= 0x80:
			p.wide(unknown)
		}
		b.WriteByte(c)
		p.at++
	}
	p.done(w, start, b.String())
}

func (p *powerShell) done(w foreignWord, start int, text string) {
	if w.text = text; !w.known {
		w.text = p.text[start:p.at]
	}
	p.words = append(p.words, w)
}

// wide looks for characters that PowerShell takes for quotes, dashes and blanks.
func (p *powerShell) wide(unknown func(string)) {
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	if r >= 0x2018 && r <= 0x201f || r >= 0x2010 && r <= 0x2015 || unicode.IsSpace(r) || invisible(r) {
		unknown("a character that stands for a quote, a dash or a blank")
	}
}

// dollar reads $( ) and tells whether it did.
func (p *powerShell) dollar() bool {
	switch p.peek(1) {
	case '(':
		p.skip(2)
		p.list(')')
		return true
	case '{':
		p.skipTo("}", 2)
		return true
	}
	return false
}

// single reads '...'; a doubled quote is one.
func (p *powerShell) single(b *strings.Builder) {
	for p.at++; p.at < len(p.text); p.at++ {
		if p.text[p.at] == '\'' {
			if p.peek(1) != '\'' {
				p.at++
				return
			}
			p.at++
		}
		b.WriteByte(p.text[p.at])
	}
	p.unparsed("a quote is not closed")
}

// double reads "...", and tells whether all of it is known.
func (p *powerShell) double(b *strings.Builder) bool {
	known := true
	p.at++
	for p.at < len(p.text) {
		switch c := p.text[p.at]; {
		case c == '"' && p.peek(1) == '"':
			b.WriteByte('"')
			p.skip(2)
		case c == '"':
			p.at++
			return known
		case c == '`':
			p.escape(b)
		case c == '$' && (p.peek(1) == '(' || p.peek(1) == '{'):
			known = false
			p.unreadable("an expression in a text")
			p.dollar()
		case c == '$' && p.peek(1) != '"' && p.peek(1) != ' ':
			known = false
			p.unreadable("a variable in a text")
			p.at++
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	p.unparsed("a quote is not closed")
	return known
}

// hereString reads @' or @" up to the line that closes it.
func (p *powerShell) hereString(b *strings.Builder, w *foreignWord) {
	quote := p.text[p.at+1]
	end := strings.Index(p.text[p.at:], "\n"+string(quote)+"@")
	if end < 0 {
		p.unparsed("a here-string is not closed")
		p.at = len(p.text)
		return
	}
	body := p.text[p.at+2 : p.at+end]
	p.at += end + 3
	if quote == '"' && strings.ContainsAny(body, "$`") {
		w.known = false
		p.unreadable("an expression in a text")
		if i := strings.Index(body, "$("); i >= 0 {
			for _, c := range p.inside(strings.TrimRight(body[i:], "\n"), powerShellIn) {
				p.add(c)
			}
		}
		return
	}
	b.WriteString(strings.TrimPrefix(body, "\n"))
}

// escape reads a backtick and what it escapes.
func (p *powerShell) escape(b *strings.Builder) {
	const from, to = "0abefnrtv", "\x00\a\b\x1b\f\n\r\t\v"
	c := p.peek(1)
	p.skip(2)
	switch i := strings.IndexByte(from, c); {
	case c == 0 || c == '\n':
	case c == 'u' && p.peek(0) == '{':
		p.unreadable("a character by its number")
	case i >= 0 && to[i] != '\n' && to[i] != '\t':
		p.unreadable("a control character")
	case i >= 0:
		b.WriteByte(to[i])
	default:
		b.WriteByte(c)
	}
}

// end closes the command that was read.
func (p *powerShell) end() {
	words, writes, called := p.words, p.writes, p.called
	p.words, p.writes, p.called = nil, nil, false
	// $x = command: what is assigned is what a command prints.
	for len(words) > 1 && !words[0].known && strings.HasSuffix(words[1].text, "=") {
		words = words[2:]
	}
	if len(words) == 0 {
		p.e.Writes = append(p.e.Writes, writes...)
		if called {
			p.unparsed("nothing to call")
		}
		return
	}
	c := agent.SimpleCommand{Writes: writes}
	for _, w := range words {
		c.Argv = append(c.Argv, w.text)
	}
	first := words[0]
	switch {
	case !first.known:
		p.unreadable("the name of a command is not known: " + first.text)
	case first.quoted && !called:
		p.unreadable("an expression")
	case first.text == ".":
		p.unreadable("a script that is read in place")
	}
	c.Argv[0] = powerShellName(first.text)
	p.known(&c, words)
	p.add(c)
}
