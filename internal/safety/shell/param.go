package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param adds the value of a parameter to a word.
func (f *field) param(p *syntax.ParamExp, quoted bool) {
	w, st := f.w, f.st
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	if name == "@" && simple(p) && f.positional(quoted) {
		return
	}
	v := w.parameter(st, p)
	many := name == "@" || p.Names == syntax.NamesPrefixWords || isAll(p.Index)
	switch v.kind {
	case literal:
		if quoted {
			f.quote(v.text)
			return
		}
		f.split(v.text)
	case digits:
		f.lose(numeric, !quoted && st.noSplit)
	case outside:
		f.lose(inherits, !quoted || many)
	default:
		f.lose(0, !quoted || many)
	}
}

// positional adds "$@" when it is known.
func (f *field) positional(quoted bool) bool {
	if !f.st.argsKnown || !quoted {
		return false
	}
	for i, a := range f.st.args {
		if i > 0 {
			f.end()
			*f = field{w: f.w, st: f.st, from: f.from, into: f.into, some: true}
		}
		f.quote(a.Text)
		if !a.Known {
			f.lose(0, !a.One)
		}
	}
	if len(f.st.args) == 0 && f.text.Len() == 0 {
		f.some = false
	}
	return true
}

// simple says whether an expansion is $name or ${name}.
func simple(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet &&
		p.Split == syntax.OptUnset && p.GlobSubst == syntax.OptUnset && p.RcExpand == syntax.OptUnset &&
		p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 && p.Slice == nil &&
		p.Repl == nil && p.Names == 0 && p.Exp == nil
}

func isAll(x syntax.ArithmExpr) bool {
	wd, ok := x.(*syntax.Word)
	return ok && (wd.Lit() == "@" || wd.Lit() == "*")
}

// parameter follows an expansion, and says what its value is.
func (w *walker) parameter(st *state, p *syntax.ParamExp) value {
	if simple(p) {
		return w.named(st, p.Param.Value)
	}
	if p.Flags != nil || p.NestedParam != nil || len(p.Modifiers) > 0 || p.Width ||
		p.Split != syntax.OptUnset || p.GlobSubst != syntax.OptUnset || p.RcExpand != syntax.OptUnset {
		w.unreadable("what " + w.written(p) + " stands for")
	}
	unknown := value{kind: anybody}
	if p.Param == nil {
		return unknown
	}
	name := p.Param.Value
	v := w.named(st, name)
	if p.Index != nil && !isAll(p.Index) {
		w.differs("an array")
		w.arith(st, p.Index)
	}
	if p.Excl && p.Names == 0 && !isAll(p.Index) {
		w.differs("${!")
		if v.kind == anybody || v.kind == literal && strings.ContainsAny(v.text, "[$`") {
			w.unreadable("what " + w.written(p) + " evaluates")
		}
	}
	if p.Slice != nil {
		w.differs("${x:1}")
		w.arith(st, p.Slice.Offset)
		w.arith(st, p.Slice.Length)
	}
	if p.Repl != nil {
		w.differs("${x/y}")
		w.visit(st, p.Repl.Orig)
		w.visit(st, p.Repl.With)
	}
	if p.Exp != nil {
		return w.expansion(st, p, v)
	}
	if p.Length {
		return value{kind: digits}
	}
	return unknown
}

// expansion is ${x:-word} and the like.
func (w *walker) expansion(st *state, p *syntax.ParamExp, v value) value {
	if p.Exp.Op == syntax.OtherParamOps {
		w.differs("${x@}")
		if p.Exp.Word == nil || !strings.Contains("QUuLEKk", p.Exp.Word.Lit()) {
			w.unreadable("what " + w.written(p) + " evaluates")
		}
		return value{kind: anybody}
	}
	text, m, known := w.value(st, p.Exp.Word)
	other := value{kind: anybody}
	switch {
	case known && m == 0:
		other = value{kind: literal, text: text}
	case m&numeric != 0:
		other = value{kind: digits}
	}
	plain := p.Index == nil && !p.Excl && !p.Length
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		w.side = append(w.side, p.Param.Value)
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull:
		switch {
		case plain && v.kind == literal && v.text != "":
			return v
		case plain && v.kind == literal && p.Exp.Op == syntax.DefaultUnsetOrNull:
			return other
		} // what is empty may be unset
	case syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
		w.differs("${x^}")
	}
	if (v.kind == digits || v.kind == literal && isNumber(v.text)) && other.kind != anybody && plain {
		if other.kind == digits || isNumber(other.text) {
			return value{kind: digits}
		}
	}
	return value{kind: anybody}
}

// named is the value of a parameter by its name.
func (w *walker) named(st *state, name string) value {
	for _, s := range w.side {
		if s == name {
			return value{kind: anybody}
		}
	}
	switch name {
	case "?", "$", "!", "#":
		return value{kind: digits}
	case "@", "*", "-", "0", "_":
		return value{kind: anybody}
	}
	if name != "" && name[0] >= '1' && name[0] <= '9' {
		if !st.argsKnown {
			return value{kind: anybody}
		}
		i := 0
		for _, c := range name {
			if i = i*10 + int(c-'0'); i > maxFields {
				return value{kind: anybody}
			}
		}
		if i > len(st.args) {
			return value{kind: literal}
		}
		if a := st.args[i-1]; a.Known {
			return value{kind: literal, text: a.Text}
		}
		return value{kind: anybody}
	}
	return w.valueOf(st, name)
}

// settled is a state after the assignments that expansions have made.
func (w *walker) settled(st *state, names []string) *state {
	if st == nil {
		return nil
	}
	for _, n := range names {
		st = w.assign(st, n, "$"+n, value{kind: anybody}, false)
	}
	return st
}

// substitute follows $(…), and returns what it prints if that stands in the text.
func (w *walker) substitute(st *state, c *syntax.CmdSubst) (string, bool) {
	if c.TempFile || c.ReplyVar {
		w.unreadable("what " + w.written(c) + " does to the shell")
	}
	w.apart(func() {
		w.forks++
		w.list(st, c.Stmts)
		w.forks--
	})
	if len(c.Stmts) == 0 {
		return "", true
	}
	call := plainCall(c.Stmts)
	if call == nil || w.funcs != nil || st.voided {
		return "", false
	}
	s := c.Stmts[0]
	switch name := call.Args[0].Lit(); {
	case name == "pwd" && len(call.Args) == 1 && len(s.Redirs) == 0 && len(st.dirs) == 1:
		return st.dirs[0], true
	case name == "cat" && len(call.Args) == 1 && len(s.Redirs) == 1 && !tainted(st):
		text, ok := w.document(st, s.Redirs[0])
		return strings.TrimRight(text, "\n"), ok
	}
	return "", false
}

// tainted says whether a variable was set that makes names doubtful.
func tainted(st *state) bool {
	for _, t := range st.taint {
		if steering(t) {
			return true
		}
	}
	return false
}

// plainCall is the only command of a list, without assignments.
func plainCall(stmts []*syntax.Stmt) *syntax.CallExpr {
	if len(stmts) != 1 || stmts[0].Negated || stmts[0].Background {
		return nil
	}
	call, ok := stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Assigns) > 0 || len(call.Args) == 0 {
		return nil
	}
	return call
}

// document is the text of a here-document, if it is known.
func (w *walker) document(st *state, r *syntax.Redirect) (string, bool) {
	if r.Op != syntax.Hdoc && r.Op != syntax.DashHdoc || r.N != nil {
		return "", false
	}
	if r.Hdoc == nil {
		return "", true
	}
	f := field{w: w, st: st, from: r.Hdoc, into: &argv{}}
	quoted := quotedWord(r.Word)
	for _, p := range r.Hdoc.Parts {
		if l, ok := p.(*syntax.Lit); ok {
			if quoted {
				f.text.WriteString(l.Value)
			} else {
				f.text.WriteString(unescapeDocument(l.Value))
			}
			continue
		}
		return "", false
	}
	return f.text.String(), !f.unknown
}

// unescapeDocument is unescape where quotes are not special.
func unescapeDocument(s string) string {
	return unescape(strings.ReplaceAll(s, `\"`, `\\"`))
}

// quotedWord says whether any part of a word is quoted.
func quotedWord(wd *syntax.Word) bool {
	for _, p := range wd.Parts {
		l, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(l.Value, `\`) {
			return true
		}
	}
	return false
}
