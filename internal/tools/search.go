package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/workspace"
)

// Limits of the search in one file.
const (
	searchFile    = 64 << 20  // larger files are left out when a folder is searched
	searchWhole   = 4 << 20   // larger files are left out of searches over several lines
	searchWindow  = 256 << 10 // bytes in memory at a time; a longer line is taken for several
	searchCarry   = 64 << 10  // of them for the lines before a window's first
	searchExcerpt = 500       // bytes of a line that are shown

	// Steps of a compiled pattern. Each byte of a window can cost as many, and no
	// cancellation gets in between.
	maxProgram      = 4_000
	maxProgramWhole = 2_000 // across lines, where all of a file is one window
)

// matcher finds lines.
type matcher struct {
	re *regexp.Regexp

	// A line can only match when it contains must, in lower case when fold is
	// set. With only, it then matches.
	must []byte
	fold bool
	only bool
}

// newMatcher compiles a pattern of the model's.
func newMatcher(pattern string, fold, multiline bool) (*matcher, error) {
	if pattern == "" || len(pattern) > 10_000 {
		return nil, refuse(agent.ErrInput, "the pattern is empty or longer than 10000 characters", "Give a regular expression.")
	}
	flags := syntax.Perl &^ syntax.OneLine // ^ and $ at lines
	prefix := "(?m)"
	if fold {
		flags |= syntax.FoldCase
		prefix = "(?mi)"
	}
	if multiline {
		flags |= syntax.DotNL
		prefix = prefix[:len(prefix)-1] + "s)"
	}
	tree, err := syntax.Parse(pattern, flags)
	if err != nil {
		return nil, patternError(err)
	}
	most := maxProgram
	if multiline {
		most = maxProgramWhole
	}
	if prog, err := syntax.Compile(tree.Simplify()); err != nil || len(prog.Inst) > most {
		return nil, refuse(agent.ErrInput, "the pattern is too large: what it repeats, and how often, multiplies", "Search for a simpler pattern and pick from its matches.")
	}
	re, err := regexp.Compile(prefix + "(?:" + pattern + ")")
	if err != nil {
		return nil, patternError(err)
	}
	m := &matcher{re: re}
	if lit, folded := required(tree.Simplify()); len(lit) > 0 {
		m.must, m.fold = []byte(lit), folded
	}
	m.only = tree.Op == syntax.OpLiteral && !m.fold && string(m.must) == string(tree.Rune) && !bytes.Contains(m.must, []byte("\r"))
	return m, nil
}

// patternError says what is wrong with a pattern, and what RE2 lacks.
func patternError(err error) error {
	suggestion := "Escape characters that are meant literally, such as ( [ { . with a backslash."
	if se, ok := errors.AsType[*syntax.Error](err); ok {
		lacks := se.Code == syntax.ErrInvalidPerlOp || strings.HasPrefix(se.Expr, "(?<=") || strings.HasPrefix(se.Expr, "(?<!") || se.Code == syntax.ErrMissingRepeatArgument && strings.HasPrefix(se.Expr, "(?") ||
			se.Code == syntax.ErrInvalidEscape && len(se.Expr) > 1 && strings.ContainsAny(se.Expr[1:2], "123456789kgGKRhHZXuN")
		if lacks {
			suggestion = "The syntax is RE2: no lookahead or lookbehind, no backreferences, no possessive or atomic groups. Search for a simpler pattern and pick from its matches."
		}
		return refuse(agent.ErrInput, fmt.Sprintf("the pattern is not valid: %s: %s", se.Code, quote(se.Expr, 80)), suggestion)
	}
	return refuse(agent.ErrInput, "the pattern is not valid: "+err.Error(), suggestion)
}

// required returns the longest literal that every match contains, "" if there
// is none that is worth looking for. A folded one is in lower case, and free of
// letters that characters outside ASCII fold to.
func required(re *syntax.Regexp) (lit string, folded bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			if strings.ContainsRune(string(re.Rune), utf8.RuneError) || strings.Contains(string(re.Rune), "\n") {
				return "", false
			}
			return string(re.Rune), false
		}
		plain := func(r rune) bool { return r < utf8.RuneSelf && r != '\n' && !strings.ContainsRune("kKsS", r) }
		for _, part := range strings.FieldsFunc(string(re.Rune), func(r rune) bool { return !plain(r) }) {
			if len(part) > len(lit) {
				lit, folded = strings.ToLower(part), true
			}
		}
		return lit, folded
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l, f := required(sub); len(l) > len(lit) {
				lit, folded = l, f
			}
		}
	}
	return lit, folded
}

// searcher searches files one after the other, in buffers of its own.
type searcher struct {
	m             *matcher
	before, after int  // lines of context
	parts         bool // only the parts that match
	multiline     bool
	lines         bool // lines are wanted, not only their number
	most          int  // stop after so many lines of output; 0 = at the end
	one           bool // stop at the first match

	text     workspace.TextReader
	buf, low []byte
}

// found is what a search found in one file.
type found struct {
	lines   []outLine
	matches int // lines that match, or parts with parts set
	skipped string
	more    bool // the search stopped before the end
}

// outLine is a line of output.
type outLine struct {
	number int // from 1
	match  bool
	gap    bool // lines were left out before it
	text   string
}

// search searches one file. Any is set when the file was named, and then size is
// no reason to leave it out.
func (s *searcher) search(ctx context.Context, file workspace.File, any bool) (found, error) {
	info, err := file.Stat()
	if err != nil {
		return found{}, err
	}
	if info.Size() > searchFile && !any || info.Size() > searchWhole && s.multiline {
		return found{skipped: skippedLarge}, nil
	}
	err = s.text.Reset(file)
	if errors.Is(err, workspace.ErrBinary) {
		return found{skipped: skippedBinary}, nil
	}
	if err != nil {
		return found{}, err
	}
	if s.multiline {
		return s.whole(&s.text)
	}
	return s.stream(ctx, &s.text)
}

// Why a file was left out.
const (
	skippedLarge  = "large"
	skippedBinary = "binary"
)

// stream searches line by line, window by window. The buffer of a window begins
// with lines of the one before it that may be needed as context.
func (s *searcher) stream(ctx context.Context, r io.Reader) (found, error) {
	if s.buf == nil {
		s.buf = make([]byte, searchWindow)
	}
	out := printer{s: s, number: 1}
	old, filled := 0, 0 // bytes of the buffer: of lines that were searched before, and all
	for {
		if err := ctx.Err(); err != nil {
			return found{}, err
		}
		n, err := io.ReadFull(r, s.buf[filled:])
		filled += n
		eof := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !eof {
			return found{}, err
		}
		end := filled
		if !eof {
			if i := bytes.LastIndexByte(s.buf[old:filled], '\n'); i >= 0 {
				end = old + i + 1
			}
		}
		out.buf = s.buf[:end]
		s.window(&out, old)
		out.owe(end)
		if eof || out.full() {
			out.found.more = out.full()
			return out.found, nil
		}
		out.pass(max(out.cursor, linesBack(out.buf, s.before)))
		filled = copy(s.buf, s.buf[out.cursor:filled])
		old = end - out.cursor
		out.cursor = 0
	}
}

// linesBack returns where the last n lines of buf begin, or fewer when they are
// too long to be kept.
func linesBack(buf []byte, n int) int {
	at := len(buf)
	for range n {
		prev := bytes.LastIndexByte(buf[:max(at-1, 0)], '\n') + 1
		if at == 0 || len(buf)-prev > searchCarry {
			break
		}
		at = prev
	}
	return at
}

// window searches the lines of a window that begin at or behind a place.
func (s *searcher) window(out *printer, at int) {
	hay := out.buf
	if s.m.fold && s.m.must != nil {
		hay = s.lower(out.buf)
	}
	// A CR before the line end must not hide it from "$": then line by line.
	slow := s.m.must == nil && bytes.Contains(out.buf, []byte("\r\n"))
	for at < len(out.buf) && !out.full() {
		if s.m.must != nil {
			i := bytes.Index(hay[at:], s.m.must)
			if i < 0 {
				return
			}
			at += i
		} else if !slow {
			loc := s.m.re.FindIndex(out.buf[at:])
			if loc == nil || behind(out.buf, at+loc[0]) {
				return
			}
			at += loc[0]
		}
		from := bytes.LastIndexByte(out.buf[:at], '\n') + 1
		to := lineFrom(out.buf, at)
		if s.m.only || s.m.re.Match(bytes.TrimSuffix(out.buf[from:to], []byte("\r"))) {
			out.match(from, to)
		}
		at = to + 1
	}
}

// lower returns buf with ASCII letters in lower case.
func (s *searcher) lower(buf []byte) []byte {
	s.low = append(s.low[:0], buf...)
	for i, c := range s.low {
		if c >= 'A' && c <= 'Z' {
			s.low[i] = c | 0x20
		}
	}
	return s.low
}

// whole searches for matches that may span lines.
func (s *searcher) whole(r io.Reader) (found, error) {
	data, err := io.ReadAll(io.LimitReader(r, searchWhole+1))
	if err != nil {
		return found{}, err
	}
	if len(data) > searchWhole {
		return found{skipped: skippedLarge}, nil
	}
	if s.m.must != nil && !s.m.fold && !bytes.Contains(data, s.m.must) {
		return found{}, nil
	}
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	out := printer{s: s, buf: data, number: 1}
	for at := 0; at <= len(data) && !out.full(); {
		loc := s.m.re.FindIndex(data[at:])
		if loc == nil || behind(data, at+loc[0]) {
			break
		}
		from, to := at+loc[0], at+loc[1]
		at = max(to, from+1)
		line := bytes.LastIndexByte(data[:from], '\n') + 1
		if s.parts {
			if from < to {
				out.part(line, data[from:to])
			}
			continue
		}
		// The lines of a match count one by one, as they do without multiline.
		for last := max(from, to-1); line <= last && !out.full(); {
			end := lineFrom(data, line)
			out.match(line, end)
			line = end + 1
		}
		at = max(at, line)
	}
	out.owe(len(data))
	out.found.more = out.full()
	return out.found, nil
}

// behind reports whether a place is behind the last line, where an empty match
// may be that means no line.
func behind(data []byte, at int) bool {
	return at == len(data) && bytes.HasSuffix(data, []byte("\n"))
}

// lineFrom returns where the line that holds a place ends.
func lineFrom(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(data)
}

// excerpt returns the part of a line that is shown: around the match when the
// line is long.
func (s *searcher) excerpt(line []byte, match bool) string {
	if len(line) <= searchExcerpt {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	from := 0
	if match {
		if loc := s.m.re.FindIndex(line); loc != nil {
			from = max(0, min(loc[0]-searchExcerpt/4, len(line)-searchExcerpt))
		}
	}
	to := min(from+searchExcerpt, len(line))
	text := strings.ToValidUTF8(string(line[from:to]), "")
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text + fmt.Sprintf(" [line of %d bytes]", len(line))
}
