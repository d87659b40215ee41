// Package calc works out what people type into a calculator: decimals, fractions,
// percentages, hexadecimal and binary numbers, and lengths, masses, temperatures,
// amounts of data and times in their units. It owns the language, its units and what is
// said about a mistake: the column and why. It counts in fractions, so that 0.1 + 0.2 is
// 0.3; only a root or a power that is no fraction is rounded, and marked as that. It
// knows no currencies, reads nothing but the text and starts no goroutines.
package calc

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
)

// The limits of one calculation.
const (
	maxText   = 1_000  // bytes
	maxDepth  = 64     // of parentheses, signs and powers in each other
	maxBits   = 20_000 // of a numerator or a denominator
	maxTokens = 400
)

// Why says what is wrong with a calculation.
type Why string

// The reasons. %s stands for [Error.What].
const (
	Empty      Why = "there is nothing to calculate"
	Long       Why = "the calculation is too long, or too deep"
	Character  Why = "%s means nothing here"
	Number     Why = "%s is no number"
	Expected   Why = "a number is missing"
	Unexpected Why = "%s should not stand here"
	Unclosed   Why = "a parenthesis is not closed"
	Unknown    Why = "%s is neither a unit nor a function"
	Zero       Why = "nothing is divided by zero"
	Units      Why = "these units do not go together: %s"
	Degrees    Why = "temperatures can only be converted"
	Large      Why = "the number gets too large"
	Root       Why = "a negative number has no root"
	Whole      Why = "a whole number is needed"
	Arguments  Why = "%s takes another number of arguments"
)

// An Error is a mistake in a calculation.
type Error struct {
	Column int // from 1, in characters
	Why    Why
	What   string // the part that it is about; "" = none
}

func (e *Error) Error() string {
	why := string(e.Why)
	if strings.Contains(why, "%s") {
		why = fmt.Sprintf(why, cmp.Or(e.What, "this"))
	}
	return fmt.Sprintf("column %d: %s", e.Column, why)
}

// A Result is what comes out.
type Result struct {
	Text     string // the value as it is shown, with its unit
	Exact    bool   // false: Text was rounded
	Fraction string // of an exact value that has no finite decimals
}

// Eval works a text out. The error is an [*Error].
func Eval(s string) (Result, error) {
	if len(s) > maxText {
		return Result{}, &Error{1, Long, ""}
	}
	tokens, err := lex(s)
	if err != nil {
		return Result{}, err
	}
	if len(tokens) == 1 { // its end
		return Result{}, &Error{1, Empty, ""}
	}
	p := &parser{tokens: tokens}
	v, form, err := p.line()
	if err != nil {
		return Result{}, err
	}
	return show(v, form)
}

// value is a number with its unit.
type value struct {
	n       *big.Rat
	unit    *unit // nil = none
	percent bool  // n is a part of 1, and stands for one of what it is added to
	rounded bool  // n comes close
}

// fits reports whether a number is small enough to go on with.
func fits(n *big.Rat) bool {
	return n.Num().BitLen() <= maxBits && n.Denom().BitLen() <= maxBits
}

// The most digits that are shown: those of an exact number, and of one that is rounded.
const (
	maxDigits  = 60
	lessDigits = 15
)

// show writes a value in a form: "", hex, bin, oct or fraction.
func show(v value, form token) (Result, error) {
	unit := ""
	if v.unit != nil {
		unit = " " + v.unit.name
		if v.unit.tight {
			unit = v.unit.name
		}
	}
	switch form.text {
	case "hex", "bin", "oct":
		if !v.n.IsInt() {
			return Result{}, &Error{form.column, Whole, ""}
		}
		base, prefix := 16, "0x"
		if form.text == "bin" {
			base, prefix = 2, "0b"
		} else if form.text == "oct" {
			base, prefix = 8, "0o"
		}
		digits := new(big.Int).Abs(v.n.Num()).Text(base)
		if v.n.Sign() < 0 {
			prefix = "-" + prefix
		}
		return Result{Text: prefix + digits + unit, Exact: !v.rounded}, nil
	case "fraction":
		return Result{Text: v.n.RatString() + unit, Exact: !v.rounded}, nil
	}
	digits, exact := v.n.FloatPrec()
	text := v.n.FloatString(digits)
	if exact && !v.rounded && len(text) <= maxDigits {
		return Result{Text: text + unit, Exact: true}, nil
	}
	r := Result{Text: round(v.n) + unit}
	if f := v.n.RatString(); !v.rounded && !exact && len(f) <= maxDigits {
		r.Fraction = f
	}
	return r, nil
}

// round writes the digits of a number that matter.
func round(n *big.Rat) string {
	f := new(big.Float).SetPrec(256).SetRat(n)
	text := f.Text('g', lessDigits)
	if !strings.Contains(text, "e") {
		return text
	}
	// As people write it, unless that is full of zeros.
	if plain := f.Text('f', 0); len(plain) <= 21 && n.Cmp(big.NewRat(1, 1)) >= 0 {
		return plain
	}
	return text
}
