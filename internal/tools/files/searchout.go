package files

import "bytes"

// printer collects the output of the search in one file. It moves through the
// buffer once: what is before the cursor has been shown or passed over.
type printer struct {
	s     *searcher
	found found

	buf    []byte
	cursor int  // where the next line begins that can be shown
	number int  // of that line
	owed   int  // lines of context behind the last match that are still to come
	passed bool // lines were passed over since the last one that was shown
}

// full reports whether nothing more is wanted.
func (p *printer) full() bool {
	return p.s.one && p.found.matches > 0 || p.s.lines && p.s.most > 0 && len(p.found.lines) > p.s.most
}

// match takes a line that matches and has not been passed.
func (p *printer) match(from, to int) {
	content := bytes.TrimSuffix(p.buf[from:to], []byte("\r"))
	if p.s.parts {
		for _, loc := range p.s.m.re.FindAllIndex(content, -1) {
			if loc[0] < loc[1] && !p.full() {
				p.part(from, content[loc[0]:loc[1]])
			}
		}
		return
	}
	p.found.matches++
	if !p.s.lines {
		return
	}
	p.owe(from)
	if p.cursor < from {
		p.pass(max(p.cursor, linesBack(p.buf[:from], p.s.before)))
	}
	for p.cursor < from {
		p.show(false)
	}
	p.show(true)
	p.owed = p.s.after
}

// part takes a part that matches, of the line that begins at a place.
func (p *printer) part(line int, text []byte) {
	p.found.matches++
	if p.s.lines {
		p.pass(line)
		p.found.lines = append(p.found.lines, outLine{p.number, true, false, p.s.excerpt(text, false)})
	}
}

// owe shows the context behind the last match, up to a place.
func (p *printer) owe(until int) {
	for ; p.owed > 0 && p.cursor < until && !p.full(); p.owed-- {
		p.show(false)
	}
}

// pass moves the cursor to the beginning of a line without showing anything.
func (p *printer) pass(to int) {
	if to > p.cursor {
		p.number += bytes.Count(p.buf[p.cursor:to], []byte("\n"))
		p.cursor, p.passed = to, true
	}
}

// show adds the line at the cursor to the output.
func (p *printer) show(match bool) {
	end := lineFrom(p.buf, p.cursor)
	gap := p.passed && len(p.found.lines) > 0 && p.s.before+p.s.after > 0
	text := p.s.excerpt(bytes.TrimSuffix(p.buf[p.cursor:end], []byte("\r")), match)
	p.found.lines = append(p.found.lines, outLine{p.number, match, gap, text})
	if end < len(p.buf) { // else the line goes on in the next window
		p.number++
	}
	p.cursor, p.passed = min(end+1, len(p.buf)), false
}
