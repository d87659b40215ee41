package repair

import "bytes"

// maxParts is how many lines are put together to one record.
const maxParts = 10_000

// A part is a broken line that may be the beginning, or the middle, of a record
// that was split.
type part struct {
	text []byte
	line int
}

// hold keeps a line back that begins a record and does not end it, and those that
// may go on with it, until the record is whole: an editor has wrapped its line, or
// laid it out over many. It reports false for a line that is nothing of the kind.
//
// Only lines that are broken by themselves are put together, so a record that was
// cut never takes the next one with it.
func (c *checker) hold(line []byte) bool {
	if len(c.held) == 0 {
		line = bytes.TrimLeft(line, " \t")
		if line[0] != '{' {
			return false
		}
		c.open = brackets{}
	}
	c.open.feed(line)
	c.heldBytes += len(line)
	c.held = append(c.held, part{bytes.Clone(line), c.line})
	switch {
	case c.open.depth > 0 && len(c.held) < maxParts && c.heldBytes <= maxLine:
		return true
	case c.open.depth == 0 && len(c.held) > 1 && c.join():
		return true
	}
	c.letGo()
	return true
}

// join takes in the record that the held lines are together.
func (c *checker) join() bool {
	all := make([]byte, 0, c.heldBytes)
	for _, p := range c.held {
		all = append(all, p.text...)
	}
	all = bytes.TrimRight(all, " \t\r")
	if _, _, ok := survey(all); !ok || !isRecord(all) {
		return false
	}
	first, last := c.held[0].line, c.line
	n := len(c.held)
	c.held, c.heldBytes = nil, 0
	c.line = first
	c.damage(TruncatedJSON, "", "a record was split over %d lines; it was put together", n)
	c.object(all)
	c.line = last
	return true
}

// letGo takes in the lines that were held back, each for itself.
func (c *checker) letGo() {
	held, last := c.held, c.line
	c.held, c.heldBytes = nil, 0
	for _, p := range held {
		c.line = p.line
		c.mendLine(bytes.Trim(p.text, " \t\r"))
	}
	c.line = last
}

// brackets follow how deep a text is in JSON.
type brackets struct {
	depth           int
	quoted, escaped bool
}

func (b *brackets) feed(text []byte) {
	for _, ch := range text {
		switch {
		case b.escaped:
			b.escaped = false
		case b.quoted && ch == '\\':
			b.escaped = true
		case ch == '"':
			b.quoted = !b.quoted
		case b.quoted:
		case ch == '{' || ch == '[':
			b.depth++
		case ch == '}' || ch == ']':
			b.depth--
		}
	}
}
