package files

import (
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a sieve.
const (
	sieveCells   = 256 << 10 // of its table, four bytes each
	sieveClasses = 250       // of characters that the pattern does not tell apart
	sieveWork    = 64 << 10  // comparisons to find the classes
	sieveServe   = 64        // bytes of text that a state serves, or the table is not worth it
)

// sieve finds where a pattern may match: a deterministic automaton, which is
// built as far as the text leads, and takes one step for each character where
// [regexp] follows every way that a match could go. It passes over assertions
// other than the beginning and the end of a line, so what it finds has to be
// looked at unless it is exact; what it leaves out does not match.
//
// A sieve serves one goroutine.
type sieve struct {
	prog   *syntax.Prog
	across bool // matches may span lines
	exact  bool // the pattern has no assertions
	off    bool // the text needs too many states: it finds everything

	bounds []rune     // where the ranges of characters begin, ascending
	class  []uint8    // of each range
	bytes  [256]uint8 // classes; of those that are no ASCII, a column without cells
	reps   []rune     // a character of each class
	lf, cr uint8      // their classes

	// The table has a row of cells for each state, one for each class: where
	// the row of the next state begins. Row 0 is none.
	cells []int32
	sets  [][]uint32 // instructions of each row
	rows  map[string]int32
	line  int32     // the row where a line begins
	home  int32     // the row within a line before anything has matched
	rest  int32     // home when most of text stays there, else none
	idle  [256]bool // bytes that lead from home to home
	size  int       // instructions of all sets
	seen  int       // bytes since the table was empty

	set   []uint32 // in the making
	mark  []uint32 // by instruction: the set that it was put into last
	round uint32
	found bool // the set has a match
}

// What a cell holds other than a row.
const (
	unknown = 0
	match   = -1
)

// newSieve returns nil when there is none for the program: the empty text
// matches, or there are too many classes.
func newSieve(prog *syntax.Prog, across bool) *sieve {
	s := &sieve{prog: prog, across: across, mark: make([]uint32, len(prog.Inst)), exact: !across}
	if !s.classify() {
		return nil
	}
	s.begin()
	if s.follow(uint32(prog.Start), true, false); s.found {
		return nil
	}
	s.clear()
	return s
}

// classify divides the characters into classes that the program tells apart.
func (s *sieve) classify() bool {
	s.bounds = []rune{0, '\n', '\n' + 1, '\r', '\r' + 1}
	type id struct {
		list *rune
		n    int
		a, b rune
		arg  uint32
	}
	known := map[id]bool{}
	var insts []*syntax.Inst
	for i := range s.prog.Inst {
		in := &s.prog.Inst[i]
		if in.Op == syntax.InstEmptyWidth {
			s.exact = false
		}
		if in.Op != syntax.InstRune && in.Op != syntax.InstRune1 {
			continue
		}
		k := id{n: len(in.Rune), arg: in.Arg}
		switch k.n {
		case 0:
		case 1:
			k.a = in.Rune[0]
		case 2:
			k.a, k.b = in.Rune[0], in.Rune[1]
		default:
			k.list = &in.Rune[0]
		}
		if known[k] {
			continue
		}
		known[k] = true
		insts = append(insts, in)
		s.bounds = appendBounds(s.bounds, in)
		if slices.Contains(in.Rune, utf8.RuneError) {
			s.exact = false // regexp does not always take invalid bytes for it
		}
	}
	slices.Sort(s.bounds)
	s.bounds = slices.Compact(s.bounds)
	if len(s.bounds)*len(insts) > sieveWork {
		return false
	}
	classes := map[string]uint8{}
	for _, b := range s.bounds {
		tells := []byte{0}
		switch b {
		case '\n':
			tells[0] = 1
		case '\r':
			tells[0] = 2
		}
		for _, in := range insts {
			if in.MatchRune(b) {
				tells = append(tells, 1)
			} else {
				tells = append(tells, 0)
			}
		}
		c, ok := classes[string(tells)]
		if !ok {
			if len(classes) == sieveClasses {
				return false
			}
			c = uint8(len(classes))
			classes[string(tells)] = c
			s.reps = append(s.reps, b)
		}
		s.class = append(s.class, c)
	}
	for c := range s.bytes {
		s.bytes[c] = uint8(len(s.reps))
		if c < utf8.RuneSelf {
			s.bytes[c] = s.classOf(rune(c))
		}
	}
	s.lf, s.cr = s.bytes['\n'], s.bytes['\r']
	return true
}

// appendBounds adds where the characters of an instruction begin, and those
// behind them.
func appendBounds(bounds []rune, in *syntax.Inst) []rune {
	if len(in.Rune) == 1 {
		r := in.Rune[0]
		bounds = append(bounds, r, r+1)
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				bounds = append(bounds, f, f+1)
			}
		}
		return bounds
	}
	for i := 0; i+1 < len(in.Rune); i += 2 {
		bounds = append(bounds, in.Rune[i], in.Rune[i+1]+1)
	}
	return bounds
}

func (s *sieve) classOf(r rune) uint8 {
	return s.class[sort.Search(len(s.bounds), func(i int) bool { return s.bounds[i] > r })-1]
}

// find returns a place in the first line of buf, from a place where a line
// begins, that may match; -1 if there is none.
func (s *sieve) find(buf []byte, at int) int {
	cells, rest, row, from := s.cells, s.rest, s.line, at
	for i := at; i < len(buf); {
		next := cells[int(row)+int(s.bytes[buf[i]])]
		size := 1
		if next <= 0 {
			s.seen += i - from
			from = i
			if next, size = s.slow(row, buf[i:]); next == match {
				return i
			}
			cells, rest = s.cells, s.rest
		}
		row = next
		i += size
		if row == rest {
			for i < len(buf) && s.idle[buf[i]] {
				i++
			}
		}
	}
	s.seen += len(buf) - from
	if !s.across && (len(buf) == 0 || buf[len(buf)-1] != '\n') && s.step(row, s.lf) == match {
		return max(0, len(buf)-1)
	}
	return -1
}

// slow returns where the first character of buf leads, and how long it is.
func (s *sieve) slow(row int32, buf []byte) (next int32, size int) {
	r, size := rune(buf[0]), 1
	if r >= utf8.RuneSelf {
		r, size = utf8.DecodeRune(buf)
	}
	return s.step(row, s.classOf(r)), size
}

// step returns where a class of characters leads.
func (s *sieve) step(row int32, class uint8) int32 {
	cell := &s.cells[int(row)+int(class)]
	if *cell != unknown {
		return *cell
	}
	next := s.lead(s.sets[int(row)/s.stride()], class)
	if next == unknown { // the table is full
		if s.seen < sieveServe*len(s.sets) {
			s.off = true
			return match
		}
		set := slices.Clone(s.set)
		s.clear()
		s.set = set
		return s.row()
	}
	s.cells[int(row)+int(class)] = next
	return next
}

// stride is the length of a row: a cell for each class, and one that stays
// empty.
func (s *sieve) stride() int { return len(s.reps) + 1 }

// lead returns where a class of characters leads from a set.
func (s *sieve) lead(set []uint32, class uint8) int32 {
	s.begin()
	if !s.across && (class == s.lf || class == s.cr) { // the line may end here
		for _, pc := range set {
			if in := &s.prog.Inst[pc]; in.Op == syntax.InstEmptyWidth {
				s.follow(in.Out, true, true) // it may be empty
			}
		}
		if s.found {
			return match
		}
		if class == s.lf {
			return s.line
		}
		s.begin()
	}
	for _, pc := range set {
		if in := &s.prog.Inst[pc]; in.Op != syntax.InstEmptyWidth && in.MatchRune(s.reps[class]) {
			s.follow(in.Out, false, false)
		}
	}
	if s.found {
		return match
	}
	s.follow(uint32(s.prog.Start), false, false)
	return s.row()
}

// begin begins a set.
func (s *sieve) begin() {
	s.set, s.found = s.set[:0], false
	if s.round++; s.round == 0 {
		clear(s.mark)
		s.round = 1
	}
}

// follow adds what an instruction leads to without a character, at the beginning
// or the end of a line.
func (s *sieve) follow(pc uint32, begins, ends bool) {
	for s.mark[pc] != s.round {
		s.mark[pc] = s.round
		in := &s.prog.Inst[pc]
		switch in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			s.follow(in.Arg, begins, ends)
		case syntax.InstCapture, syntax.InstNop:
		case syntax.InstEmptyWidth:
			switch op := syntax.EmptyOp(in.Arg); {
			case s.across:
			case op&(syntax.EmptyBeginLine|syntax.EmptyBeginText) != 0 && !begins:
				return
			case op&(syntax.EmptyEndLine|syntax.EmptyEndText) != 0 && !ends:
				s.set = append(s.set, pc)
				return
			}
		case syntax.InstMatch:
			s.found = true
			return
		case syntax.InstFail:
			return
		default:
			s.set = append(s.set, pc)
			return
		}
		pc = in.Out
	}
}

// row returns the row of the set, unknown when there is no room for it.
func (s *sieve) row() int32 {
	slices.Sort(s.set)
	key := make([]byte, 0, 4*len(s.set))
	for _, pc := range s.set {
		key = binary.LittleEndian.AppendUint32(key, pc)
	}
	if row, ok := s.rows[string(key)]; ok {
		return row
	}
	if len(s.cells)+s.stride() > sieveCells || s.size+len(s.set) > sieveCells {
		return unknown
	}
	row := int32(len(s.cells))
	s.cells = append(s.cells, make([]int32, s.stride())...)
	s.sets = append(s.sets, slices.Clone(s.set))
	s.size += len(s.set)
	s.rows[string(key)] = row
	return row
}

// clear empties the table but for the rows that every search begins with.
func (s *sieve) clear() {
	s.cells = append(s.cells[:0], make([]int32, s.stride())...)
	s.sets = append(s.sets[:0], nil)
	s.rows = map[string]int32{}
	s.size, s.seen = 0, 0
	s.begin()
	s.follow(uint32(s.prog.Start), s.across, false)
	s.home = s.row()
	s.begin()
	s.follow(uint32(s.prog.Start), true, false)
	s.line = s.row()
	s.rest = s.home
	for c := range s.idle {
		s.idle[c] = c < utf8.RuneSelf && s.stays(s.bytes[c])
		if !s.idle[c] && strings.IndexByte(frequent[:10], byte(c)) >= 0 {
			s.rest = 0
		}
	}
}

// stays reports whether a class leads from home to home, as nothing matches.
func (s *sieve) stays(class uint8) bool {
	ends := !s.across && (class == s.lf || class == s.cr)
	for _, pc := range s.sets[int(s.home)/s.stride()] {
		in := &s.prog.Inst[pc]
		if in.Op == syntax.InstEmptyWidth && ends || in.Op != syntax.InstEmptyWidth && in.MatchRune(s.reps[class]) {
			return false
		}
	}
	return s.across || class != s.lf || s.line == s.home
}
