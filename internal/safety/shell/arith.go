package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// arithExp follows $((…)) and $[…].
func (w *walker) arithExp(st *state, x *syntax.ArithmExp) {
	if x.Bracket {
		w.differs("$[")
	}
	if x.X != nil {
		w.arithIn(st, x.X)
	}
}

// arith follows an arithmetic expression, and returns the state after the
// assignments in it. A variable's value is an expression too: one that nobody
// knows can run anything, by a substitution in a subscript.
func (w *walker) arith(st *state, x syntax.ArithmExpr) *state {
	if x == nil {
		return st
	}
	if wd, ok := x.(*syntax.Word); ok && wd == nil {
		return st
	}
	side := w.side
	w.side = nil
	w.arithIn(st, x)
	st = w.settleNumbers(st, w.side)
	w.side = side
	return st
}

func (w *walker) settleNumbers(st *state, names []string) *state {
	for _, n := range names {
		st = w.assign(st, n, "0", value{kind: digits}, false)
	}
	return st
}

func (w *walker) arithIn(st *state, x syntax.ArithmExpr) {
	switch x := x.(type) {
	case *syntax.BinaryArithm:
		if assigns(x.Op) {
			w.assigned(st, x.X)
		} else {
			w.arithIn(st, x.X)
		}
		w.arithIn(st, x.Y)
	case *syntax.UnaryArithm:
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			w.arithIn(st, x.X)
			w.assigned(st, x.X)
			return
		}
		w.arithIn(st, x.X)
	case *syntax.ParenArithm:
		w.arithIn(st, x.X)
	case *syntax.FlagsArithm:
		w.unreadable("a subscript with flags")
		if x.X != nil {
			w.arithIn(st, x.X)
		}
	case *syntax.Word:
		if x != nil {
			w.operand(st, x.Parts)
		}
	}
}

func assigns(op syntax.BinAritOperator) bool {
	switch op {
	case syntax.Assgn, syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn,
		syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn,
		syntax.AndBoolAssgn, syntax.OrBoolAssgn, syntax.XorBoolAssgn, syntax.PowAssgn:
		return true
	}
	return false
}

// assigned notes the variable that an expression gives a value.
func (w *walker) assigned(st *state, x syntax.ArithmExpr) {
	wd, ok := x.(*syntax.Word)
	if !ok || len(wd.Parts) != 1 {
		w.unreadable("what an expression assigns to")
		return
	}
	switch p := wd.Parts[0].(type) {
	case *syntax.Lit:
		w.side = append(w.side, p.Value)
	case *syntax.ParamExp:
		if p.Param == nil || p.Dollar.IsValid() {
			w.unreadable("what an expression assigns to")
			return
		}
		w.parameter(st, p)
		w.side = append(w.side, p.Param.Value)
	default:
		w.unreadable("what an expression assigns to")
	}
}

// operand follows a word of an expression.
func (w *walker) operand(st *state, parts []syntax.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit:
			if len(parts) > 1 && !isNumber(p.Value) {
				w.unreadable("which variable " + p.Value + "… is")
			}
			w.number(st, p.Value, p)
		case *syntax.SglQuoted:
			w.number(st, p.Value, p)
		case *syntax.DblQuoted:
			w.operand(st, p.Parts)
		case *syntax.ParamExp:
			v := w.parameter(st, p)
			if v.kind == anybody && !inherited(st, p) || v.kind == literal && !harmlessNumber(v.text) {
				w.unreadable("what " + w.written(p) + " is in an expression")
			}
		case *syntax.ArithmExp:
			w.arithExp(st, p)
		case *syntax.CmdSubst:
			w.substitute(st, p)
			if !w.printsNumber(st, p) {
				w.unreadable("what " + w.written(p) + " is in an expression")
			}
		default:
			w.unreadable("what an expression evaluates")
		}
	}
}

// inherited says whether an expansion is of a variable that the text never sets.
func inherited(st *state, p *syntax.ParamExp) bool {
	return p.Param != nil && st.lookup(p.Param.Value) == nil && p.Exp == nil && !p.Excl && len(p.Param.Value) > 0 &&
		(p.Param.Value[0] == '_' || p.Param.Value[0] >= 'A')
}

// number follows the text of an operand: a number, or a name whose value is an
// expression in turn.
func (w *walker) number(st *state, text string, at syntax.Node) {
	if !harmlessNumber(text) {
		w.unreadable("what " + w.written(at) + " evaluates")
		return
	}
	for _, name := range strings.FieldsFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
	}) {
		if name[0] <= '9' {
			continue
		}
		if v := w.named(st, name); v.kind == anybody || v.kind == literal && v.text != "" && !isNumber(v.text) {
			w.unreadable("what " + name + " is in an expression")
		}
	}
}

// harmlessNumber says whether a text holds no subscript, substitution or assignment.
func harmlessNumber(s string) bool {
	return !strings.ContainsAny(s, "[]$`=\\\"'+-&|<>()?:,;") || isNumber(s)
}

// printsNumber says whether a substitution prints nothing but a number.
func (w *walker) printsNumber(st *state, c *syntax.CmdSubst) bool {
	if w.funcs != nil || st.voided || tainted(st) || len(c.Stmts) != 1 {
		return false
	}
	s := c.Stmts[0]
	for {
		b, ok := s.Cmd.(*syntax.BinaryCmd)
		if !ok || b.Op != syntax.Pipe {
			break
		}
		s = b.Y
	}
	call := plainCall([]*syntax.Stmt{s})
	if call == nil {
		return false
	}
	for _, r := range s.Redirs {
		if r.Op != syntax.RdrIn {
			return false
		}
	}
	name := call.Args[0].Lit()
	for _, a := range call.Args[1:] {
		if lit := a.Lit(); !strings.HasPrefix(lit, "-") && !(name == "date" && strings.HasPrefix(lit, "+")) {
			return false
		}
	}
	switch name {
	case "wc", "nproc":
		return true
	case "date":
		return len(call.Args) == 2 && len(call.Args[1].Lit()) == 3 && strings.Contains("sNYmdHMSj", call.Args[1].Lit()[2:])
	}
	return false
}

// test follows [[ … ]].
func (w *walker) test(st *state, x syntax.TestExpr) *state {
	switch x := x.(type) {
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			w.comparison(st, x.X)
			w.comparison(st, x.Y)
			return st
		}
		return w.test(w.test(st, x.X), x.Y)
	case *syntax.UnaryTest:
		if x.Op == syntax.TsVarSet || x.Op == syntax.TsRefVar {
			if wd, ok := x.X.(*syntax.Word); ok {
				text, _, known := w.value(st, wd)
				w.variable(text, known)
			}
			return st
		}
		return w.test(st, x.X)
	case *syntax.ParenTest:
		return w.test(st, x.X)
	case *syntax.Word:
		w.visit(st, x)
	}
	return st
}

// comparison follows an operand of -eq and the like, which is an expression.
func (w *walker) comparison(st *state, x syntax.TestExpr) {
	wd, ok := x.(*syntax.Word)
	if !ok {
		w.test(st, x)
		return
	}
	w.operand(st, wd.Parts)
}

// variable notes the name of a variable that a builtin looks at or sets.
func (w *walker) variable(name string, known bool) bool {
	if !known || strings.ContainsAny(name, "[$`(") {
		w.unreadable("which variable " + name + " is")
		return false
	}
	return true
}
