package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
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

	// A line can only match when it contains one of must. With only, it then
	// matches.
	must []literal
	only bool

	prog *syntax.Prog // for what else can search
}

// newMatcher compiles a pattern of the model's.
func newMatcher(pattern string, fold, multiline bool) (*matcher, error) {
	if pattern == "" || len(pattern) > 10_000 {
		return nil, kit.Refuse(agent.ErrInput, "the pattern is empty or longer than 10000 characters", "Give a regular expression.")
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
	prog, err := syntax.Compile(tree.Simplify())
	if err != nil || len(prog.Inst) > most {
		return nil, kit.Refuse(agent.ErrInput, "the pattern is too large: what it repeats, and how often, multiplies", "Search for a simpler pattern and pick from its matches.")
	}
	re, err := regexp.Compile(prefix + "(?:" + pattern + ")")
	if err != nil {
		return nil, patternError(err)
	}
	m := &matcher{re: re, prog: prog}
	lits, folded := required(tree.Simplify())
	if slices.ContainsFunc(lits, everywhere) {
		return m, nil
	}
	for _, l := range lits {
		m.must = append(m.must, newLiteral(l, folded))
	}
	m.only = tree.Op == syntax.OpLiteral && !folded && len(lits) == 1 && lits[0] == string(tree.Rune) && !strings.Contains(lits[0], "\r")
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
		return kit.Refuse(agent.ErrInput, fmt.Sprintf("the pattern is not valid: %s: %s", se.Code, kit.Quote(se.Expr, 80)), suggestion)
	}
	return kit.Refuse(agent.ErrInput, "the pattern is not valid: "+err.Error(), suggestion)
}

// maxLiterals is how many literals are looked for at a time.
const maxLiterals = 8

// required returns literals of which every match contains at least one, the
// longest that there are; none if there are none that are worth looking for.
// Folded ones are in lower case, and free of letters that characters outside
// ASCII fold to.
func required(re *syntax.Regexp) (lits []string, folded bool) {
	switch re.Op {
	case syntax.OpLiteral:
		return literals(re)
	case syntax.OpCapture, syntax.OpPlus:
		return required(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return required(re.Sub[0])
		}
	case syntax.OpConcat:
		for _, sub := range re.Sub {
			if l, f := required(sub); shortest(l) > shortest(lits) {
				lits, folded = l, f
			}
		}
	case syntax.OpAlternate:
		for i, sub := range re.Sub {
			l, f := required(sub)
			if len(l) == 0 || len(lits)+len(l) > maxLiterals || i > 0 && f != folded {
				return nil, false
			}
			lits, folded = append(lits, l...), f
		}
	}
	return lits, folded
}

func shortest(lits []string) int {
	n := 0
	for i, l := range lits {
		if i == 0 || len(l) < n {
			n = len(l)
		}
	}
	return n
}

// literals returns the part of a literal that can be looked for.
func literals(re *syntax.Regexp) (lits []string, folded bool) {
	s := string(re.Rune)
	if re.Flags&syntax.FoldCase == 0 {
		if strings.ContainsRune(s, utf8.RuneError) || strings.Contains(s, "\n") {
			return nil, false
		}
		return []string{s}, false
	}
	plain := func(r rune) bool { return r < utf8.RuneSelf && r != '\n' && !strings.ContainsRune("kKsS", r) }
	longest := ""
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return !plain(r) }) {
		if len(part) > len(longest) {
			longest = strings.ToLower(part)
		}
	}
	if longest == "" {
		return nil, false
	}
	return []string{longest}, true
}

// finder finds the next of several literals.
type finder struct {
	hay  []byte
	must []literal
	next [maxLiterals]int // where each occurs next; -1 = nowhere
}

func newFinder(hay []byte, m *matcher) *finder {
	f := &finder{hay: hay, must: m.must}
	for i := range m.must {
		f.next[i] = m.must[i].index(hay)
	}
	return f
}

// everywhere reports whether a literal stands in so many lines that it is little
// help: it is short, and of frequent characters.
func everywhere(lit string) bool {
	const long, often = 3, 20
	for i := range len(lit) {
		if r := strings.IndexByte(frequent, lit[i]); r < 0 || r >= often {
			return false
		}
	}
	return len(lit) < long
}

// frequent are the bytes of text and code, the most frequent first.
const frequent = " etaoinsrlcdupmfhg.,()_\t\n"

// literal is a text to look for by the byte of it that is the least frequent in
// text: the search stops less often.
type literal struct {
	text string // in lower case when fold is set
	fold bool   // ASCII letters of either case
	rare int    // which byte of the text is the least frequent
}

func newLiteral(text string, fold bool) literal {
	l := literal{text: text, fold: fold}
	best := -1
	for i := range len(text) {
		r := strings.IndexByte(frequent, text[i])
		if r < 0 {
			r = len(frequent)
		}
		if r > best {
			l.rare, best = i, r
		}
	}
	return l
}

// index returns where the literal occurs first, -1 if it does not.
func (l literal) index(hay []byte) int {
	a := l.text[l.rare]
	i := nextByte(hay, a, l.rare)
	if b := a - 'a' + 'A'; l.fold && a >= 'a' && a <= 'z' {
		return l.either(hay, i, a, nextByte(hay, b, l.rare), b)
	}
	for stops := 0; i >= 0; stops++ {
		at := i - l.rare
		if at+len(l.text) <= len(hay) && hay[at] == l.text[0] && l.at(hay, at) || l.fold && l.at(hay, at) {
			return at
		}
		if !l.fold && stops > 16+at/8 { // it is not rare here
			if i = bytes.Index(hay[at:], []byte(l.text)); i >= 0 {
				i += at
			}
			return i
		}
		next := bytes.IndexByte(hay[i+1:], a)
		if next < 0 {
			return -1
		}
		i += 1 + next
	}
	return -1
}

// either goes through the places of a letter in both cases.
func (l literal) either(hay []byte, i int, a byte, j int, b byte) int {
	for i >= 0 || j >= 0 {
		at := &i
		if i < 0 || j >= 0 && j < i {
			at = &j
		}
		if l.at(hay, *at-l.rare) {
			return *at - l.rare
		}
		if at == &i {
			i = nextByte(hay, a, i+1)
		} else {
			j = nextByte(hay, b, j+1)
		}
	}
	return -1
}

// nextByte returns where a byte occurs at or behind a place.
func nextByte(hay []byte, c byte, at int) int {
	if at >= len(hay) {
		return -1
	}
	i := bytes.IndexByte(hay[at:], c)
	if i < 0 {
		return -1
	}
	return at + i
}

// at reports whether the literal is at a place.
func (l literal) at(hay []byte, at int) bool {
	if len(hay)-at < len(l.text) {
		return false
	}
	hay = hay[at : at+len(l.text)]
	if !l.fold {
		return string(hay) == l.text
	}
	for i, c := range hay {
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != l.text[i] {
			return false
		}
	}
	return true
}

// from returns the first occurrence at or behind a place, -1 if there is none.
// Places only grow from call to call.
func (f *finder) from(at int) int {
	first := -1
	for i := range f.must {
		if f.next[i] >= 0 && f.next[i] < at {
			if f.next[i] = f.must[i].index(f.hay[at:]); f.next[i] >= 0 {
				f.next[i] += at
			}
		}
		if n := f.next[i]; n >= 0 && (first < 0 || n < first) {
			first = n
		}
	}
	return first
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
	buf, raw []byte
	sieve    *sieve
	sifted   bool // the sieve has been made if there is one
	trail    *workspace.Trail
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
	return s.decoded(ctx, file)
}

// small searches a file that is in memory, as most are.
func (s *searcher) small(ctx context.Context, data []byte) (found, error) {
	enc, err := workspace.DetectStart(data)
	switch {
	case errors.Is(err, workspace.ErrBinary):
		return found{skipped: skippedBinary}, nil
	case err != nil:
		return found{}, err
	case enc == workspace.UTF8Mark:
		data = data[3:]
	case enc != workspace.UTF8:
		return s.decoded(ctx, bytes.NewReader(data))
	}
	if s.multiline {
		return s.across(data), ctx.Err()
	}
	return s.once(data), ctx.Err()
}

// decoded searches a file of any encoding.
func (s *searcher) decoded(ctx context.Context, in io.Reader) (found, error) {
	err := s.text.Reset(in)
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

// once searches a text that is in memory.
func (s *searcher) once(text []byte) found {
	out := printer{s: s, number: 1, buf: text}
	s.window(&out, 0)
	out.owe(len(text))
	out.found.more = out.full()
	return out.found
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
	buf := out.buf
	find := newFinder(buf[at:], s.m)
	// A CR before the line end must not hide it from "$": then line by line.
	slow := s.m.must == nil && (bytes.Contains(buf, []byte("\r\n")) || bytes.HasSuffix(buf, []byte("\r")))
	base := at
	for at < len(buf) && !out.full() {
		certain := s.m.only
		switch sieve := s.sift(); {
		case s.m.must != nil:
			i := find.from(at - base)
			if i < 0 {
				return
			}
			at = base + i
		case sieve != nil:
			i := sieve.find(buf, at)
			if i < 0 {
				return
			}
			at = i
			certain = sieve.exact && !sieve.off
		case !slow:
			loc := s.m.re.FindIndex(buf[at:])
			if loc == nil || behind(buf, at+loc[0]) {
				return
			}
			at += loc[0]
		}
		from := bytes.LastIndexByte(buf[:at], '\n') + 1
		to := lineFrom(buf, at)
		line := bytes.TrimSuffix(buf[from:to], []byte("\r"))
		if certain && len(line) == to-from || s.matches(line) {
			out.match(from, to)
		}
		at = to + 1
	}
}

// sift returns the sieve of the pattern, nil when there is none or it is no help.
func (s *searcher) sift() *sieve {
	if !s.sifted {
		s.sieve, s.sifted = newSieve(s.m.prog, s.multiline), true
	}
	if s.sieve != nil && s.sieve.off {
		return nil
	}
	return s.sieve
}

// matches reports whether a line without its end matches.
func (s *searcher) matches(line []byte) bool {
	if sieve := s.sift(); sieve != nil {
		if sieve.find(line, 0) < 0 {
			return false
		}
		if sieve.exact && !sieve.off {
			return true
		}
	}
	return s.m.re.Match(line)
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
	return s.across(data), nil
}

// across is whole for a text in memory.
func (s *searcher) across(data []byte) found {
	if s.m.must != nil && newFinder(data, s.m).from(0) < 0 {
		return found{}
	}
	if bytes.Contains(data, []byte("\r\n")) {
		data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	}
	if sieve := s.sift(); sieve != nil && sieve.find(data, 0) < 0 {
		return found{}
	}
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
	return out.found
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
