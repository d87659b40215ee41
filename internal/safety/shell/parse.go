package shell

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// text follows the statements of a text in a state.
func (w *walker) text(st *state, text string) (out outcome) {
	saved, savedDialect, out0 := w.src, w.dialect, w.out
	w.src = text
	defer func() {
		if r := recover(); r != nil {
			w.unparsed("reading it went wrong")
			w.out = out0
			w.glimpse(text)
			out = both(st)
		}
		w.src, w.dialect = saved, savedDialect
	}()
	parsed := text
	if len(parsed) > maxParse {
		w.unparsed("it is too long to be read")
		parsed = parsed[:maxParse]
	}
	if why := tooMuch(parsed); why != "" {
		w.unparsed(why)
		w.glimpse(text)
		return both(st)
	}
	stmts, end, err := parse(parsed, w.dialect)
	if err != nil {
		w.unparsed("it has a fault: " + fault(err))
	}
	if err == nil && continued(parsed, w.dialect) {
		w.unparsed("what a backslash at the end of a line joins is doubtful")
		w.glimpse(text)
	}
	if misread(parsed, stmts) {
		w.unparsed("where a comment in it begins is doubtful")
		w.glimpse(text)
	}
	if swallows(parsed, stmts) {
		w.unparsed("what follows a here-document in a substitution is doubtful")
	}
	w.declare(stmts)
	out = w.list(st, stmts)
	if w.spent {
		end = min(end, w.stopped)
	}
	if err != nil || w.spent || len(text) > len(parsed) {
		w.glimpse(text[end:])
	}
	return out
}

// parsers are used again: one takes as much memory as most readings.
var parsers = sync.Pool{New: func() any { return syntax.NewParser() }}

// parse returns the statements before the first fault, and where they end.
func parse(text string, d dialect) (stmts []*syntax.Stmt, end int, err error) {
	done := false
	lang := syntax.LangBash
	if d == dialectZsh {
		lang = syntax.LangZsh
	}
	p := parsers.Get().(*syntax.Parser)
	syntax.Variant(lang)(p)
	syntax.KeepComments(strings.Contains(text, "#"))(p)
	defer func() { // not when it panics
		if done {
			parsers.Put(p)
		}
	}()
	for s, fault := range p.StmtsSeq(strings.NewReader(text)) {
		if fault != nil {
			done = true
			return stmts, end, fault
		}
		stmts = append(stmts, s)
		end = min(int(s.End().Offset()), len(text))
	}
	done = true
	return stmts, len(text), nil
}

// misread says whether the parser took something for a comment that shells do not:
// # begins one only where a word could.
func misread(text string, stmts []*syntax.Stmt) (found bool) {
	if !strings.Contains(text, "#") {
		return false
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if c, ok := n.(*syntax.Comment); ok {
				at := int(c.Hash.Offset())
				found = found || at > 0 && at <= len(text) &&
					(!strings.ContainsRune(" \t\n;&|(<>", rune(text[at-1])) || strings.HasSuffix(text[:at], "\\\n"))
			}
			return !found
		})
	}
	return found
}

// continued says whether a backslash at the end of a line joins what the parser takes
// apart, or the other way round: it does not end a comment there, nor see a keyword or
// all substitutions across the line.
func continued(text string, d dialect) (found bool) {
	if bare := strings.TrimRight(text, "\\"); (len(text)-len(bare))%2 == 1 {
		return true // what the last one stands for differs
	}
	joint := strings.Index(text, "\\\n")
	if joint < 0 {
		return false
	}
	if strings.Contains(text, "$\\\n") {
		return true
	}
	for at := joint; at < len(text); {
		before, after := text[:at], text[at+2:]
		for strings.HasPrefix(after, "\\\n") {
			after = after[2:]
		}
		if joinsReserved(before, after) {
			return true
		}
		next := strings.Index(after, "\\\n")
		if next < 0 {
			break
		}
		at = len(text) - len(after) + next
	}
	if !strings.Contains(text, "#") {
		return false
	}
	lang := syntax.LangBash
	if d == dialectZsh {
		lang = syntax.LangZsh
	}
	file, err := syntax.NewParser(syntax.KeepComments(true), syntax.Variant(lang)).Parse(strings.NewReader(text), "")
	if err != nil {
		return false // that is told anyway
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		c, ok := n.(*syntax.Comment)
		found = found || ok && strings.Contains(c.Text, "\\\n")
		return !found
	})
	return found
}

// joinsReserved says whether what ends a text makes a reserved word with what begins
// the one after it.
func joinsReserved(before, after string) bool {
	const longest = len("function")
	var word [longest]byte
	from := len(before)
	for from > 0 && letter(before[from-1]) && len(before)-from < longest {
		from--
	}
	n := copy(word[:], before[from:])
	if n == 0 || from > 0 && letter(before[from-1]) {
		return false
	}
	began := n
	for len(after) > 0 {
		switch {
		case strings.HasPrefix(after, "\\\n"):
			after = after[2:]
			continue
		case !letter(after[0]):
			return n > began && reserved(string(word[:n]))
		case n == longest:
			return false
		}
		word[n], n, after = after[0], n+1, after[1:]
	}
	return n > began && reserved(string(word[:n]))
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' }

// reserved says whether a word begins or parts statements, with what may follow.
func reserved(word string) bool {
	switch word {
	case "if", "then", "else", "elif", "fi", "for", "in", "while", "until", "do", "done", "case", "esac", "select", "function", "time", "coproc":
		return true
	}
	return false
}

// fault is what a parser says of a text, without the text itself.
func fault(err error) string {
	if parse, ok := errors.AsType[syntax.ParseError](err); ok {
		return fmt.Sprintf("line %d: %s", parse.Pos.Line(), parse.Text)
	}
	if lang, ok := errors.AsType[syntax.LangError](err); ok {
		return fmt.Sprintf("line %d: %s", lang.Pos.Line(), lang.Feature)
	}
	return err.Error()
}

// tooMuch says why a text would take long to parse.
func tooMuch(text string) string {
	if nesting(text) > maxNesting || clauses(text) > maxClauses {
		return "it is nested too deeply"
	}
	signs := 0
	for i := range len(text) {
		switch text[i] {
		case ';', '|', '&', '`', '(':
			signs++
		}
	}
	if signs > maxSigns {
		return "it has too many commands"
	}
	return ""
}

// clauses is how deeply if, while and the like are in each other at most, if they
// are what they look like wherever a command can begin.
func clauses(s string) int {
	depth, most := 0, 0
	opens := true // a command can begin here
	for i := 0; i < len(s); {
		c := s[i]
		if !letter(c) {
			if c != ' ' && c != '\t' {
				opens = strings.IndexByte(";&|(\n{!`", c) >= 0
			}
			i++
			continue
		}
		start := i
		for i < len(s) && letter(s[i]) {
			i++
		}
		if !opens {
			continue
		}
		switch s[start:i] {
		case "if", "while", "until":
			depth++
			most = max(most, depth)
		case "for", "case", "select":
			depth++
			most = max(most, depth)
			opens = false
		case "fi", "done", "esac":
			depth = max(depth-1, 0)
			opens = false
		case "then", "else", "elif", "do", "time":
		default:
			opens = false
		}
	}
	return most
}

// nesting is how deeply the brackets of a text are nested at most, if all of them
// are brackets.
func nesting(s string) int {
	depth, most := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '{', '[':
			depth++
			most = max(most, depth)
		case ')', '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return most
}

// declare notes the functions that statements define anywhere in them.
func (w *walker) declare(stmts []*syntax.Stmt) {
	if !strings.Contains(w.src, "(") && !strings.Contains(w.src, "function") {
		return
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			if d, ok := n.(*syntax.FuncDecl); ok {
				for _, name := range funcNames(d) {
					if w.funcs == nil {
						w.funcs = map[string][]function{}
					}
					w.funcs[name] = append(w.funcs[name], function{d, w.src, w.dialect, new(bool)})
					if w.frame != nil && len(w.funcs[name]) > 1 {
						w.unreadable("which function " + name + " is")
					}
				}
			}
			return true
		})
	}
}

func funcNames(d *syntax.FuncDecl) []string {
	if d.Name != nil {
		return []string{d.Name.Value}
	}
	var names []string
	for _, n := range d.Names {
		names = append(names, n.Value)
	}
	return names
}
