package cli

import (
	"bufio"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/internal/frontend/text"
)

// style is how a piece of text looks where there is colour.
type style string

// The styles, as the parameters of SGR.
const (
	plain  style = ""
	dim    style = "2"
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// part is a piece of a line.
type part struct {
	style style
	text  string
}

// screen writes text that flows down the terminal, wrapped at words, and below
// it a live area that is drawn anew whenever it changes: what goes on, and what
// is being typed. It is used by one goroutine.
type screen struct {
	w    *bufio.Writer
	term Terminal
	cols int // 0 = do not wrap
	rows int

	// The flow.
	col     int    // column of the cursor
	word    []byte // not written yet: it may have to go to the next line
	cells   int    // width of word
	spaces  int    // before word
	indent  int    // of lines that a wrap begins
	wrapped bool   // the line began with a wrap
	lines   int    // finished by the flow so far

	// The live area.
	live      []string
	drawn     bool //
	below     bool // it stands below an unfinished line of the flow
	cursorRow int
	cursorCol int
}

func newScreen(t Terminal) *screen {
	s := &screen{w: bufio.NewWriterSize(t.Out, 16<<10), term: t}
	s.measure()
	return s
}

// measure asks the terminal for its size.
func (s *screen) measure() { s.cols, s.rows = s.term.Size() }

// usable is the number of columns that text may take: one is left free, because
// terminals differ in what they do behind the last one.
func (s *screen) usable() int {
	const least = 8
	if s.cols == 0 {
		return 1 << 30
	}
	return max(s.cols-1, least)
}

func (s *screen) eol() {
	if s.term.Escapes {
		s.w.WriteByte('\r')
	}
	s.w.WriteByte('\n')
}

func (s *screen) csi(n int, final byte) {
	if n > 0 {
		fmt.Fprintf(s.w, "\x1b[%d%c", n, final)
	}
}

// flow adds text, which has to be clean. The word at its end is held back until
// it is known to be complete.
func (s *screen) flow(str string) {
	s.hide()
	for str != "" {
		switch c := str[0]; {
		case c == '\n':
			s.flush()
			s.newline(false)
			str = str[1:]
			continue
		case c == ' ':
			s.flush()
			s.spaces++
			str = str[1:]
			continue
		}
		n, w := text.Cluster(str)
		r, _ := utf8.DecodeRuneInString(str)
		alone := w == 2 && !unicode.Is(unicode.Hangul, r) // may be broken on either side
		if alone {
			s.flush()
		}
		s.word = append(s.word, str[:n]...)
		s.cells += w
		if alone || s.cells+s.indent >= s.usable() {
			s.flush()
		}
		str = str[n:]
	}
}

// flush writes the word that was held back.
func (s *screen) flush() {
	if len(s.word) == 0 {
		return
	}
	if s.col+s.spaces+s.cells > s.usable() {
		if s.col > s.indent || (s.col > 0 && !s.wrapped) {
			s.newline(true)
		} else {
			s.spaces = max(0, s.usable()-s.cells-s.col)
		}
	}
	if s.wrapped && s.col <= s.indent {
		s.spaces = 0
	}
	for range s.spaces {
		s.w.WriteByte(' ')
	}
	s.w.Write(s.word)
	s.col += s.spaces + s.cells
	s.word, s.cells, s.spaces = s.word[:0], 0, 0
}

func (s *screen) newline(wrap bool) {
	s.eol()
	s.lines++
	s.col, s.spaces, s.wrapped = 0, 0, wrap
	if wrap {
		s.w.WriteString(strings.Repeat(" ", s.indent))
		s.col = s.indent
	}
}

// startLine ends the line that the flow is in, if it is in one.
func (s *screen) startLine() {
	s.hide()
	s.flush()
	if s.col > 0 || s.wrapped {
		s.newline(false)
	}
	s.spaces = 0
}

// line writes one line. What does not fit goes on below it, indented.
func (s *screen) line(indent int, parts ...part) {
	s.startLine()
	s.indent = min(indent, s.usable()/2)
	for _, p := range parts {
		s.span(p)
	}
	s.indent = 0
	s.newline(false)
}

// span writes a piece of a line.
func (s *screen) span(p part) {
	s.hide()
	colour := s.term.Color && p.style != plain
	if colour {
		s.w.WriteString("\x1b[" + string(p.style) + "m")
	}
	s.flow(p.text)
	s.flush()
	if colour {
		s.w.WriteString("\x1b[0m")
	}
}

// mark is a place in the flow, at the start of a line.
type mark struct{ lines, cols int }

func (s *screen) mark() mark { return mark{s.lines, s.cols} }

// takeBack erases the flow down from m. It cannot on a terminal without escape
// sequences, nor when m has left the screen or the width has changed since.
func (s *screen) takeBack(m mark) bool {
	up := s.lines - m.lines
	s.measure()
	if !s.term.Escapes || s.cols != m.cols || up >= s.rows-1 {
		return false
	}
	s.hide()
	s.csi(up, 'A')
	s.w.WriteString("\r\x1b[J")
	s.lines, s.col, s.spaces, s.wrapped = m.lines, 0, 0, false
	s.word, s.cells = s.word[:0], 0
	return true
}

// show draws the live area: lines that are no wider than the screen, with the
// cursor in one of them. No lines = none.
func (s *screen) show(lines []string, row, col int) {
	if s.drawn && slices.Equal(lines, s.live) && row == s.cursorRow && col == s.cursorCol {
		return
	}
	s.hide()
	if len(lines) == 0 || !s.term.Escapes {
		return
	}
	s.below = s.col > 0
	if s.below {
		s.eol()
	}
	for i, l := range lines {
		if i > 0 {
			s.eol()
		}
		s.w.WriteString(l)
	}
	s.csi(len(lines)-1-row, 'A')
	s.w.WriteByte('\r')
	s.csi(col, 'C')
	s.live, s.cursorRow, s.cursorCol, s.drawn = lines, row, col, true
}

// hide erases the live area and puts the cursor back where the flow is.
func (s *screen) hide() {
	if !s.drawn {
		return
	}
	s.drawn = false
	s.csi(s.cursorRow, 'A')
	s.w.WriteString("\r\x1b[J")
	if s.below {
		s.csi(1, 'A')
		s.csi(s.col, 'C')
	}
}

// clear empties the screen.
func (s *screen) clear() {
	s.hide()
	s.startLine()
	s.w.WriteString("\x1b[H\x1b[2J")
}
