package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// declClause follows declare and the like, which the parser tells from commands.
func (w *walker) declClause(st *state, d *syntax.DeclClause) outcome {
	var a argv
	a.add(d.Variant.Value, true, true, 0)
	for _, as := range d.Args {
		switch {
		case as.Name == nil:
			w.word(st, as.Value, &a)
		case as.Naked:
			a.add(as.Name.Value, as.Index == nil, true, 0)
			if as.Index != nil {
				w.arith(st, as.Index)
			}
		default:
			v := w.assignment(st, as)
			m := wordMark(0)
			switch v.value.kind {
			case digits:
				m = numeric
			case outside:
				m = inherits
			}
			eq := "="
			if as.Append {
				eq = "+="
			}
			if as.Array != nil {
				m = written
			}
			a.add(as.Name.Value+eq+v.text, v.value.kind == literal, true, m)
		}
	}
	return w.run(st, job{argv: a, shell: true})
}

// declareVars follows the arguments of export and the like.
func (w *walker) declareVars(st *state, name string, args argv) *state {
	exported, odd := name == "export", name == "readonly" || name == "integer" || name == "float" || name == "nameref"
	array := false
	integer := name == "integer" || name == "float"
	for i, a := range args.list {
		if a.Known && len(a.Text) > 1 && (a.Text[0] == '-' || a.Text[0] == '+') {
			exported = exported || strings.Contains(a.Text, "x")
			odd = odd || strings.Trim(a.Text[1:], "xgpf") != ""
			integer = integer || strings.ContainsAny(a.Text, "iEF")
			array = array || strings.ContainsAny(a.Text, "aA")
			if strings.Contains(a.Text, "n") && name != "export" {
				st = st.with(func(c *state) { c.vars = &binding{value: value{kind: anybody}, fixed: true} })
				w.notes(func(f *frame) { f.modes = true })
				w.unreadable("which variable a reference means")
			}
			continue
		}
		key, text, set := strings.Cut(a.Text, "=")
		plus := strings.HasSuffix(key, "+")
		key = strings.TrimSuffix(key, "+")
		if !identifier(key) {
			if !a.Known || strings.ContainsAny(key, "[$`(") {
				w.unreadable("which variable " + a.Text + " is")
			}
			continue
		}
		if array := array || w.arrays[key]; set && (a.Known && strings.HasPrefix(text, "(") || !a.Known && array && args.mark(i)&written == 0) {
			w.unreadable("what " + key + " is given: it is taken for an array")
		}
		st = w.declared(st, name, key)
		v := value{kind: anybody}
		switch {
		case !set:
			v = w.named(st, key)
			if v.kind != outside && odd || name == "local" {
				v = value{kind: anybody}
			}
			text = "…"
		case name == "local" && w.bodies == 0: // it fails
		case plus || odd:
			if a.Known && isNumber(text) {
				v = value{kind: digits}
			}
		case a.Known:
			v = value{kind: literal, text: text}
		case args.mark(i)&numeric != 0:
			v = value{kind: digits}
		case args.mark(i)&inherits != 0:
			v = value{}
		}
		if odd {
			st = w.fix(st, key)
		}
		if integer {
			if w.integers == nil {
				w.integers = map[string]bool{}
			}
			w.integers[key] = true
		}
		if set || exported {
			st = w.assign(st, key, text, v, exported)
		} else {
			st = w.bind(st, key, v)
		}
	}
	return st
}

// declared notes a variable that ends with the function it is declared in.
func (w *walker) declared(st *state, how, name string) *state {
	if n := len(w.calls); n > 0 && how != "export" && how != "readonly" {
		w.calls[n-1].locals = append(w.calls[n-1].locals, name)
	}
	return st
}

func identifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// namesVars follows builtins that set or look at variables by their names.
func (w *walker) namesVars(st *state, name string, args argv) *state {
	functions := false
	arrays := name == "mapfile" || name == "readarray"
	for i := 0; i < len(args.list); i++ {
		a := args.list[i]
		if a.Known && strings.HasPrefix(a.Text, "-") && len(a.Text) > 1 {
			arrays = arrays || name == "read" && strings.Contains(a.Text, "a")
			functions = functions || name == "unset" && strings.Contains(a.Text, "f")
			if strings.ContainsAny(a.Text[1:], "C") && name != "read" {
				w.unreadable("what " + name + " -C runs")
			}
			if takesValue(name, a.Text) {
				i++
			}
			if _, set, ok := strings.Cut(a.Text, "p"); ok && name == "wait" { // what it waited for is put there
				known := true
				if set == "" {
					if i++; i == len(args.list) {
						break
					}
					set, known = args.list[i].Text, args.list[i].Known
				}
				if w.variable(set, known) {
					st = w.assign(st, set, "…", value{kind: anybody}, false)
				}
			}
			continue
		}
		if name == "wait" {
			if !a.Known && args.mark(i)&numeric == 0 {
				w.unreadable("what wait waits for")
			}
			continue
		}
		if name == "getopts" && i == 0 {
			continue
		}
		if !w.variable(a.Text, a.Known) {
			continue
		}
		if functions {
			st = st.with(func(c *state) { c.defs = nil })
			continue
		}
		if name == "unset" && len(w.funcs[a.Text]) > 0 {
			st = st.with(func(c *state) { c.defs = nil })
		}
		if name == "unset" && !steers(a.Text) {
			st = w.bind(st, a.Text, value{kind: anybody})
			continue
		}
		if arrays {
			w.isArray(a.Text)
		}
		st = w.assign(st, a.Text, "…", value{kind: anybody}, false)
	}
	switch name {
	case "read":
		st = w.bind(st, "REPLY", value{kind: anybody})
	case "mapfile", "readarray":
		st = w.bind(st, "MAPFILE", value{kind: anybody})
	case "getopts":
		st = w.bind(w.bind(st, "OPTARG", value{kind: anybody}), "OPTIND", value{kind: digits})
	}
	return st
}

// isArray notes that a variable is one.
func (w *walker) isArray(name string) {
	if w.arrays == nil {
		w.arrays = map[string]bool{}
	}
	w.arrays[name] = true
}

// steers says whether the lack of a variable changes what names and paths mean.
func steers(name string) bool {
	switch name {
	case "PATH", "IFS", "HOME", "CDPATH", "PWD":
		return true
	}
	return false
}

// takesValue says whether the flags in a word have the next one for their value.
// What follows a flag in its own word is the value.
func takesValue(name, flags string) bool {
	letters := ""
	switch name {
	case "read":
		letters = "dinNptu"
	case "mapfile", "readarray":
		letters = "dnOsuCc"
	}
	at := strings.IndexAny(flags, letters)
	return at >= 0 && at == len(flags)-1
}

// printfVar follows printf -v, which may be given more than once.
func (w *walker) printfVar(st *state, args argv) *state {
	list := args.list
	for len(list) > 0 && strings.HasPrefix(list[0].Text, "-v") {
		name := list[0]
		name.Text, list = name.Text[2:], list[1:]
		if name.Text == "" {
			if len(list) == 0 {
				return st
			}
			name, list = list[0], list[1:]
		}
		if !w.variable(name.Text, name.Known) {
			return st
		}
		st = w.assign(st, name.Text, "…", value{kind: anybody}, false)
	}
	return st
}

// let follows expressions that are given as words.
func (w *walker) let(st *state, args argv) *state {
	for _, a := range args.list {
		if !a.Known || strings.ContainsAny(a.Text, "[$`") {
			w.unreadable("what let evaluates")
			continue
		}
		for _, name := range strings.FieldsFunc(a.Text, func(r rune) bool {
			return r != '_' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z')
		}) {
			if name[0] > '9' {
				st = w.assign(st, name, "…", value{kind: anybody}, false)
			}
		}
	}
	return st
}
