package calc

import (
	"math"
	"math/big"
)

// add adds two values, or takes the second from the first. A part of a hundred is one of
// the first.
func add(v, w value, op token) (value, error) {
	rounded := v.rounded || w.rounded
	n := w.n
	switch {
	case w.percent && !v.percent:
		n = new(big.Rat).Mul(v.n, w.n)
	case v.unit == nil && w.unit == nil:
	case v.unit == nil || w.unit == nil || v.unit.kind != w.unit.kind:
		return v, &Error{op.column, Units, names(v, w)}
	case v.unit.kind == temperature:
		return v, &Error{op.column, Degrees, ""}
	default:
		to, err := convert(w, v.unit, op.column)
		if err != nil {
			return v, err
		}
		n = to.n
	}
	sum := new(big.Rat)
	if op.text == "-" {
		sum.Sub(v.n, n)
	} else {
		sum.Add(v.n, n)
	}
	return value{n: sum, unit: v.unit, percent: v.percent && w.percent, rounded: rounded}.checked(op.column)
}

// names are the units of two values, for an error.
func names(v, w value) string {
	one := func(v value) string {
		if v.unit == nil {
			return "1"
		}
		return v.unit.name
	}
	return one(v) + ", " + one(w)
}

// multiply multiplies, divides, or takes the rest. One of two units is that of the
// result; a unit divided by one of its kind is a number.
func multiply(v, w value, op string, column int) (value, error) {
	r := value{rounded: v.rounded || w.rounded, unit: v.unit}
	if v.unit != nil && v.unit.kind == temperature || w.unit != nil && w.unit.kind == temperature {
		return v, &Error{column, Degrees, ""}
	}
	n := w.n
	switch {
	case w.unit == nil:
	case v.unit == nil && op == "*":
		r.unit = w.unit
	case v.unit != nil && op != "*" && v.unit.kind == w.unit.kind:
		to, err := convert(w, v.unit, column)
		if err != nil {
			return v, err
		}
		n = to.n
		if op == "/" {
			r.unit = nil
		}
	default:
		return v, &Error{column, Units, names(v, w)}
	}
	switch {
	case op == "*":
		r.n = new(big.Rat).Mul(v.n, n)
		return r.checked(column)
	case n.Sign() == 0:
		return v, &Error{column, Zero, ""}
	}
	r.n = new(big.Rat).Quo(v.n, n)
	if op == "mod" {
		r.n.Sub(v.n, new(big.Rat).Mul(n, floor(r.n)))
	}
	return r.checked(column)
}

func (v value) checked(column int) (value, error) {
	if !fits(v.n) {
		return v, &Error{column, Large, ""}
	}
	return v, nil
}

// raise works out a power. One that is no fraction is rounded.
func raise(v, w value, column int) (value, error) {
	if v.unit != nil || w.unit != nil {
		return v, &Error{column, Units, names(v, w)}
	}
	r := value{rounded: v.rounded || w.rounded}
	if !w.n.IsInt() {
		return power(v, w, column)
	}
	e := w.n.Num()
	if v.n.Sign() == 0 && e.Sign() < 0 {
		return v, &Error{column, Zero, ""}
	}
	bits := max(v.n.Num().BitLen(), v.n.Denom().BitLen())
	one := v.n.IsInt() && v.n.Num().BitLen() <= 1 // 0, 1 and -1 do not grow
	if !e.IsInt64() || !one && e.Int64() != 0 && int64(bits) > maxBits/max(e.Int64(), -e.Int64()) {
		if !one {
			return v, &Error{column, Large, ""}
		}
		e = new(big.Int).And(e, big.NewInt(1)) // even or odd is all that counts
		if w.n.Sign() != 0 && e.Sign() == 0 {
			e = big.NewInt(2)
		}
	}
	abs := new(big.Int).Abs(e)
	num := new(big.Int).Exp(v.n.Num(), abs, nil)
	den := new(big.Int).Exp(v.n.Denom(), abs, nil)
	if e.Sign() < 0 {
		num, den = den, num
	}
	r.n = new(big.Rat).SetFrac(num, den)
	return r.checked(column)
}

// power works out a power whose exponent is no whole number, by way of floating point;
// a half is a root.
func power(v, w value, column int) (value, error) {
	if v.n.Sign() < 0 {
		return v, &Error{column, Root, ""}
	}
	if w.n.Cmp(big.NewRat(1, 2)) == 0 {
		return root(v, column)
	}
	base, _ := v.n.Float64()
	e, _ := w.n.Float64()
	return near(math.Pow(base, e), column)
}

// near is a value that comes from floating point.
func near(f float64, column int) (value, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return value{}, &Error{column, Large, ""}
	}
	return value{n: new(big.Rat).SetFloat64(f), rounded: true}, nil
}

// root is exact where both parts of the fraction are squares.
func root(v value, column int) (value, error) {
	if v.n.Sign() < 0 {
		return v, &Error{column, Root, ""}
	}
	num, den := new(big.Int).Sqrt(v.n.Num()), new(big.Int).Sqrt(v.n.Denom())
	exact := new(big.Rat).SetFrac(num, den)
	if new(big.Rat).Mul(exact, exact).Cmp(v.n) == 0 {
		return value{n: exact, rounded: v.rounded}, nil
	}
	const precision = 200 // bits; 15 digits are shown
	f := new(big.Float).SetPrec(precision).SetRat(v.n)
	n, _ := f.Sqrt(f).Rat(nil)
	return value{n: n, rounded: true}.checked(column)
}

func floor(n *big.Rat) *big.Rat {
	// The denominator is positive, so that this rounds down.
	return new(big.Rat).SetInt(new(big.Int).Div(n.Num(), n.Denom()))
}

func pi() *big.Rat {
	n, _ := new(big.Rat).SetString("3.14159265358979323846264338327950288")
	return n
}

// function is one that has a name.
type function struct {
	least, most int // arguments
	do          func(args []value, column int) (value, error)
}

var functions = map[string]function{
	"sqrt": {1, 1, func(args []value, column int) (value, error) {
		if args[0].unit != nil {
			return args[0], &Error{column, Units, args[0].unit.name}
		}
		return root(args[0], column)
	}},
	"abs":   {1, 1, func(args []value, _ int) (value, error) { return args[0].with(new(big.Rat).Abs(args[0].n)), nil }},
	"floor": {1, 1, func(args []value, _ int) (value, error) { return args[0].with(floor(args[0].n)), nil }},
	"ceil": {1, 1, func(args []value, _ int) (value, error) {
		n := floor(new(big.Rat).Neg(args[0].n))
		return args[0].with(n.Neg(n)), nil
	}},
	"round": {1, 2, rounded},
	"min":   {1, 50, func(args []value, column int) (value, error) { return pick(args, -1, column) }},
	"max":   {1, 50, func(args []value, column int) (value, error) { return pick(args, 1, column) }},
}

func (v value) with(n *big.Rat) value {
	v.n = n
	return v
}

// rounded rounds to a number of decimals, halves away from zero.
func rounded(args []value, column int) (value, error) {
	v, decimals := args[0], 0
	if len(args) == 2 {
		d := args[1]
		if d.unit != nil || !d.n.IsInt() || !d.n.Num().IsInt64() || d.n.Num().Int64() < 0 || d.n.Num().Int64() > 50 {
			return v, &Error{column, Whole, ""}
		}
		decimals = int(d.n.Num().Int64())
	}
	n, _ := new(big.Rat).SetString(v.n.FloatString(decimals))
	return v.with(n), nil
}

// pick returns the smallest or the largest.
func pick(args []value, sign, column int) (value, error) {
	best := args[0]
	for _, v := range args[1:] {
		if (v.unit == nil) != (best.unit == nil) || v.unit != nil && v.unit.kind != best.unit.kind {
			return v, &Error{column, Units, names(best, v)}
		}
		n := v.n
		if v.unit != nil {
			to, err := convert(v, best.unit, column)
			if err != nil {
				return v, err
			}
			n = to.n
		}
		if n.Cmp(best.n) == sign {
			best = v
		}
	}
	return best, nil
}
