package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/internal/frontend/text"
)

// maxInput bounds what one input may hold, in bytes.
const maxInput = 1 << 20

// editor is the text being typed. It moves and deletes by characters as a
// person sees them, so that a Hangul syllable or a flag is one.
type editor struct {
	buf  string
	pos  int // byte of the cursor
	kill string

	history *history
	at      int    // entry on show, counted from the newest; 0 = none
	draft   string // what was typed before
}

func (e *editor) set(s string) { e.buf, e.pos = s, len(s) }

func (e *editor) empty() bool { return e.buf == "" }

// take returns the text and clears the editor.
func (e *editor) take() string {
	s := e.buf
	e.set("")
	e.at = 0
	return s
}

func (e *editor) insert(s string) {
	s = text.Clean(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
	if len(e.buf)+len(s) > maxInput {
		return
	}
	e.buf = e.buf[:e.pos] + s + e.buf[e.pos:]
	e.pos += len(s)
}

// apply does what a key asks for. done means that the text is complete.
func (e *editor) apply(k key) (done bool) {
	switch k.code {
	case keyText, keyPaste:
		e.insert(k.text)
	case keyNewline:
		e.insert("\n")
	case keyEnter:
		next, more := unfinished(e.buf)
		if more {
			e.set(next)
		}
		return !more
	case keyBackspace:
		e.cut(e.pos-text.Last(e.buf[:e.pos]), e.pos)
	case keyDelete:
		n, _ := text.Cluster(e.buf[e.pos:])
		e.cut(e.pos, e.pos+n)
	case keyKillEnd:
		e.kill = e.cut(e.pos, e.lineEnd())
	case keyKillStart:
		e.kill = e.cut(e.lineStart(), e.pos)
	case keyKillWord:
		e.kill = e.cut(e.wordLeft(), e.pos)
	case keyYank:
		e.insert(e.kill)
	default:
		e.move(k.code)
	}
	return false
}

// cut removes a piece, puts the cursor there, and returns it.
func (e *editor) cut(from, to int) string {
	gone := e.buf[from:to]
	e.buf = e.buf[:from] + e.buf[to:]
	e.pos = from
	return gone
}

func (e *editor) move(code keyCode) {
	switch code {
	case keyLeft:
		e.pos -= text.Last(e.buf[:e.pos])
	case keyRight:
		n, _ := text.Cluster(e.buf[e.pos:])
		e.pos += n
	case keyHome:
		e.pos = e.lineStart()
	case keyEnd:
		e.pos = e.lineEnd()
	case keyWordLeft:
		e.pos = e.wordLeft()
	case keyWordRight:
		e.pos = e.wordRight()
	case keyUp:
		if start := e.lineStart(); start > 0 {
			e.vertical(start-1, start)
		} else {
			e.recall(1)
		}
	case keyDown:
		if end := e.lineEnd(); end < len(e.buf) {
			e.vertical(end+1, e.lineStart())
		} else {
			e.recall(-1)
		}
	}
}

func (e *editor) lineStart() int { return strings.LastIndexByte(e.buf[:e.pos], '\n') + 1 }

func (e *editor) lineEnd() int {
	if n := strings.IndexByte(e.buf[e.pos:], '\n'); n >= 0 {
		return e.pos + n
	}
	return len(e.buf)
}

// vertical moves to the line that holds byte target, to the column that the
// cursor has in the line that begins at start.
func (e *editor) vertical(target, start int) {
	want := text.Width(e.buf[start:e.pos])
	e.pos = target
	e.pos = e.lineStart()
	end := e.lineEnd()
	for used := 0; e.pos < end; {
		n, w := text.Cluster(e.buf[e.pos:])
		if used += w; used > want {
			return
		}
		e.pos += n
	}
}

func (e *editor) wordLeft() int {
	head := strings.TrimRightFunc(e.buf[:e.pos], unicode.IsSpace)
	i := strings.LastIndexFunc(head, unicode.IsSpace)
	if i < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(head[i:])
	return i + size
}

func (e *editor) wordRight() int {
	rest := e.buf[e.pos:]
	trimmed := strings.TrimLeftFunc(rest, unicode.IsSpace)
	if i := strings.IndexFunc(trimmed, unicode.IsSpace); i >= 0 {
		return len(e.buf) - len(trimmed) + i
	}
	return len(e.buf)
}

// recall shows an older (1) or newer (-1) entry of the history.
func (e *editor) recall(step int) {
	if e.history == nil {
		return
	}
	at := e.at + step
	if at < 0 || at > len(e.history.entries) {
		return
	}
	if e.at == 0 {
		e.draft = e.buf
	}
	e.at = at
	if at == 0 {
		e.set(e.draft)
		return
	}
	e.set(e.history.entries[len(e.history.entries)-at])
}

// render returns the lines of the editor behind a prompt, none wider than cols
// and at most rows of them, and where the cursor stands.
func (e *editor) render(prompt string, cols, rows int) (lines []string, row, col int) {
	if cols <= 0 {
		cols = 1 << 30
	}
	indent := min(text.Width(prompt), cols/2)
	line, width := prompt, text.Width(prompt)
	next := func() {
		lines = append(lines, line)
		line, width = strings.Repeat(" ", indent), indent
	}
	if width > cols {
		line, width = text.Cut(prompt, cols), cols
	}
	for i := 0; ; {
		n, w := text.Cluster(e.buf[i:])
		if i < len(e.buf) && e.buf[i] != '\n' && width+w > cols {
			next()
		}
		if i == e.pos {
			row, col = len(lines), width
		}
		if i == len(e.buf) {
			break
		}
		if e.buf[i] == '\n' {
			next()
		} else {
			line += e.buf[i : i+n]
			width += w
		}
		i += n
	}
	lines = append(lines, line)
	rows = max(rows, 1)
	if over := len(lines) - rows; over > 0 {
		from := min(max(row-rows/2, 0), over)
		lines, row = lines[from:from+rows], row-from
	}
	return lines, row, col
}

// block opens and closes an input of several lines.
const block = `"""`

// unfinished reports whether more lines belong to s, and what s is up to there:
// a line that ends in a backslash goes on, and so does a block.
func unfinished(s string) (next string, more bool) {
	if body, ok := strings.CutPrefix(strings.TrimLeft(s, " \n"), block); ok {
		return s + "\n", !strings.HasSuffix(strings.TrimRight(body, " \n"), block)
	}
	slashes := len(s) - len(strings.TrimRight(s, `\`))
	if slashes%2 == 1 {
		return s[:len(s)-1] + "\n", true
	}
	return s, false
}

// finished returns what a complete input says.
func finished(s string) string {
	if body, ok := strings.CutPrefix(strings.TrimSpace(s), block); ok {
		return strings.Trim(strings.TrimSuffix(body, block), "\n")
	}
	return strings.TrimSpace(s)
}
