package calc

import (
	"math/big"
	"slices"
	"strings"
)

// parser reads tokens from left to right and works out what they say on the way.
type parser struct {
	tokens []token
	at     int
	depth  int
}

func (p *parser) next() token { return p.tokens[p.at] }

func (p *parser) take() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// is reports whether the next token is a sign, and takes it then.
func (p *parser) is(text string) bool {
	if t := p.next(); t.kind == sign && t.text == text {
		p.take()
		return true
	}
	return false
}

// deeper counts how deep things stand in each other.
func (p *parser) deeper(column int) error {
	if p.depth++; p.depth > maxDepth {
		return &Error{column, Long, ""}
	}
	return nil
}

// forms are the words for how a number is to be written.
var forms = map[string]string{
	"hex": "hex", "hexadecimal": "hex", "bin": "bin", "binary": "bin", "oct": "oct", "octal": "oct",
	"dec": "dec", "decimal": "dec", "fraction": "fraction",
}

// conversions are the words before what something is converted to.
var conversions = []string{"in", "to", "as", "into"}

// line reads a calculation, and what its result is converted to.
func (p *parser) line() (v value, form token, err error) {
	if v, err = p.sum(); err != nil {
		return v, form, err
	}
	if p.is("=") && p.next().kind != end {
		return v, form, unexpected(p.next())
	}
	for p.next().kind == name && slices.Contains(conversions, strings.ToLower(p.next().text)) {
		p.take()
		to := p.take()
		if to.kind != name {
			return v, form, p.missing(to)
		}
		if f := forms[strings.ToLower(to.text)]; f != "" {
			form = token{text: f, column: to.column}
			continue
		}
		u, err := p.unit(to)
		if err != nil {
			return v, form, err
		}
		if v, err = convert(v, u, to.column); err != nil {
			return v, form, err
		}
	}
	if t := p.next(); t.kind != end {
		return v, form, unexpected(t)
	}
	return v, form, nil
}

func unexpected(t token) error {
	text := t.text
	if t.kind == number {
		text = t.n.RatString()
		if len(text) > 20 {
			text = ""
		}
	}
	return &Error{t.column, Unexpected, text}
}

// missing is what is wrong where a number or a unit should stand.
func (p *parser) missing(t token) error {
	if t.kind == end {
		return &Error{t.column, Expected, ""}
	}
	return unexpected(t)
}

func (p *parser) sum() (value, error) {
	if err := p.deeper(p.next().column); err != nil {
		return value{}, err
	}
	defer func() { p.depth-- }()
	v, err := p.product()
	for err == nil {
		t := p.next()
		if t.kind != sign || t.text != "+" && t.text != "-" {
			return v, nil
		}
		p.take()
		var w value
		if w, err = p.product(); err == nil {
			v, err = add(v, w, t)
		}
	}
	return v, err
}

func (p *parser) product() (value, error) {
	v, err := p.signed()
	for err == nil {
		t := p.next()
		op := t.text
		switch {
		case t.kind == sign && (op == "*" || op == "/"):
		case t.kind == name && strings.EqualFold(op, "of"):
			op = "*"
		case t.kind == name && strings.EqualFold(op, "mod"):
			op = "mod"
		default:
			return v, nil
		}
		p.take()
		var w value
		if w, err = p.signed(); err == nil {
			v, err = multiply(v, w, op, t.column)
		}
	}
	return v, err
}

// signed reads a number with its sign; a power binds closer than that: -2^2 is -4.
func (p *parser) signed() (value, error) {
	minus, column := false, p.next().column
	for {
		if p.is("-") {
			minus = !minus
		} else if !p.is("+") {
			break
		}
	}
	v, err := p.power()
	if err != nil || !minus {
		return v, err
	}
	if v.n = new(big.Rat).Neg(v.n); !fits(v.n) {
		return v, &Error{column, Large, ""}
	}
	return v, nil
}

func (p *parser) power() (value, error) {
	v, err := p.quantity()
	if err != nil {
		return v, err
	}
	t := p.next()
	if !p.is("^") {
		return v, nil
	}
	if err := p.deeper(t.column); err != nil {
		return v, err
	}
	defer func() { p.depth-- }()
	minus := false
	for p.is("-") {
		minus = !minus
	}
	w, err := p.power()
	if err != nil {
		return v, err
	}
	if minus {
		w.n = new(big.Rat).Neg(w.n)
	}
	return raise(v, w, t.column)
}

// quantity reads a number with its unit, or several that belong together: 5 ft 3 in.
func (p *parser) quantity() (value, error) {
	column := p.next().column
	v, err := p.measured()
	if err != nil {
		return v, err
	}
	for v.unit != nil && v.unit.kind != temperature && p.next().kind == number {
		t := p.next()
		w, err := p.measured()
		if err != nil {
			return v, err
		}
		if w.unit == nil || w.unit.kind != v.unit.kind {
			return v, unexpected(t)
		}
		if v, err = add(v, w, token{text: "+", column: column}); err != nil {
			return v, err
		}
	}
	return v, nil
}

// measured reads a number with percent signs and a unit behind it.
func (p *parser) measured() (value, error) {
	v, err := p.primary()
	if err != nil {
		return v, err
	}
	for v.unit == nil && p.percents() {
		v.n, v.percent = new(big.Rat).Quo(v.n, big.NewRat(100, 1)), true
	}
	t := p.next()
	if v.unit != nil || v.percent || t.kind != name || !p.unitHere(t) {
		return v, nil
	}
	p.take()
	v.unit, err = p.unit(t)
	return v, err
}

// percents takes a percent sign that does not stand between two numbers: then it is what
// is left of a division.
func (p *parser) percents() bool {
	if t := p.next(); t.kind != sign || t.text != "%" {
		return false
	}
	p.take()
	return true
}

// unitHere reports whether a name behind a number is its unit. Words between numbers are
// not, and in is an inch unless a form or a unit stands behind it.
func (p *parser) unitHere(t token) bool {
	switch strings.ToLower(t.text) {
	case "of", "mod", "to", "as", "into":
		return false
	case "in":
		after := p.tokens[p.at+1] // the end at least
		return after.kind != name || slices.Contains(conversions, strings.ToLower(after.text))
	}
	return true
}

// unit finds a unit by its name. A degree sign goes with the letter behind it.
func (p *parser) unit(t token) (*unit, error) {
	text := t.text
	if text == "°" {
		if after := p.next(); after.kind == name && !after.spaced {
			text += p.take().text
		}
	}
	if u := find(text); u != nil {
		return u, nil
	}
	return nil, &Error{t.column, Unknown, text}
}

func (p *parser) primary() (value, error) {
	t := p.take()
	switch {
	case t.kind == number:
		if !fits(t.n) {
			return value{}, &Error{t.column, Large, ""}
		}
		return value{n: t.n}, nil
	case t.kind == sign && t.text == "(":
		v, err := p.sum()
		if err == nil && !p.is(")") {
			err = &Error{t.column, Unclosed, ""}
			if after := p.next(); after.kind != end {
				err = unexpected(after)
			}
		}
		return v, err
	case t.kind == name && p.is("("):
		return p.function(t)
	case t.kind == name && (strings.EqualFold(t.text, "pi") || t.text == "π"):
		return value{n: pi(), rounded: true}, nil
	case t.kind == name:
		return value{}, &Error{t.column, Unknown, t.text}
	}
	return value{}, p.missing(t)
}

// function reads the arguments of a function, and works it out.
func (p *parser) function(t token) (value, error) {
	f, ok := functions[strings.ToLower(t.text)]
	if !ok {
		return value{}, &Error{t.column, Unknown, t.text}
	}
	var args []value
	for {
		v, err := p.sum()
		if err != nil {
			return v, err
		}
		args = append(args, v)
		if p.is(",") {
			continue
		}
		if p.is(")") {
			break
		}
		if after := p.next(); after.kind != end {
			return v, unexpected(after)
		}
		return v, &Error{t.column, Unclosed, ""}
	}
	if len(args) < f.least || len(args) > f.most {
		return value{}, &Error{t.column, Arguments, t.text}
	}
	return f.do(args, t.column)
}
