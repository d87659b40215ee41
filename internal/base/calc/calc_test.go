package calc

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEval(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		// Numbers and their order.
		{"0.1 + 0.2", "0.3"},
		{"1 + 2 * 3", "7"},
		{"(1 + 2) * 3", "9"},
		{"-2^2", "-4"},
		{"(-2)^2", "4"},
		{"2^3^2", "512"},
		{"2**10", "1024"},
		{"2^-3", "0.125"},
		{"--5 - -3", "8"},
		{"10 mod 3", "1"},
		{"-10 mod 3", "2"},
		{"1,234,567.5 × 2", "2469135"},
		{"1_000_000 / 4", "250000"},
		{".5 + 5.", "5.5"},
		{"1.5e3 - 5e-1", "1499.5"},
		{"2 + 3 =", "5"},
		{"8 ÷ 2 − 1", "3"},
		{"1/3", "≈ 0.333333333333333 (1/3)"},
		{"1/3 * 3", "1"},
		{"2/3 as fraction", "2/3"},
		{"12345678901234567890 * 98765432109876543210", "1219326311370217952237463801111263526900"},
		{"(-1)^999999999999", "-1"},
		{"1^-999999999999", "1"},
		{"0^0", "1"},

		// Per cent.
		{"200 + 10%", "220"},
		{"200 - 10%", "180"},
		{"15% of 80", "12"},
		{"15%", "0.15"},
		{"10% + 5%", "0.15"},
		{"50 kg + 10%", "55 kg"},
		{"30% * 200", "60"},

		// Other bases.
		{"0xff + 0b1010 + 0o17", "280"},
		{"255 in hex", "0xff"},
		{"-255 to hex", "-0xff"},
		{"10 as bin", "0b1010"},
		{"64 in oct", "0o100"},
		{"0x1F to decimal", "31"},
		{"0xdead_beef", "3735928559"},

		// Functions.
		{"sqrt(16/9)", "≈ 1.33333333333333 (4/3)"},
		{"sqrt(2)", "≈ 1.4142135623731"},
		{"9^0.5", "3"},
		{"8^(1/3)", "≈ 2"},
		{"round(2.345, 2)", "2.35"},
		{"round(-2.5)", "-3"},
		{"floor(-1.5) + ceil(-1.5)", "-3"},
		{"max(1, 2 km, 3)", "column 1: these units do not go together: 1, km"},
		{"max(1 km, 1 mi) in m", "1609.344 m"},
		{"min(3, 1, 2) + abs(-4)", "5"},
		{"2 * pi", "≈ 6.28318530717959"},

		// Units.
		{"5 ft 3 in to cm", "160.02 cm"},
		{"72 in in cm", "182.88 cm"},
		{"1 mi to km", "1.609344 km"},
		{`6' 2" to m`, "1.8796 m"},
		{"10 km / 2 km", "5"},
		{"10 km / 4", "2.5 km"},
		{"1 km + 500 m", "1.5 km"},
		{"3 kg to lb", "≈ 6.61386786554633 lb (300000000/45359237 lb)"},
		{"20 °C to °F", "68°F"},
		{"-40 C to F", "-40°F"},
		{"98.6 fahrenheit in celsius", "37°C"},
		{"0 K to C", "-273.15°C"},
		{"1 GiB to MB", "1073.741824 MB"},
		{"100 Mbit to MB", "12.5 MB"},
		{"8 gb in gib", "7.450580596923828125 GiB"},
		{"100 GB / 8 Mb", "100000"},
		{"90 min to h", "1.5 h"},
		{"1 h 30 min in s", "5400 s"},
		{"2 weeks -> days", "14 d"},
		{"3시간 → 분", "180 min"},
		{"7 km mod 2 km", "1 km"},
		{"3 근 to kg", "1.8 kg"},

		// Mistakes.
		{"", "column 1: there is nothing to calculate"},
		{"   ", "column 1: there is nothing to calculate"},
		{"1 +", "column 4: a number is missing"},
		{"1 + + * 2", "column 7: * should not stand here"},
		{"(1 + 2", "column 1: a parenthesis is not closed"},
		{"1 2", "column 3: 2 should not stand here"},
		{"1)", "column 2: ) should not stand here"},
		{"3 / 0", "column 3: nothing is divided by zero"},
		{"0^-1", "column 2: nothing is divided by zero"},
		{"5 mod (1 - 1)", "column 3: nothing is divided by zero"},
		{"1.2.3", "column 1: 1.2. is no number"},
		{"0b12", "column 1: 0b12 is no number"},
		{"3 parsec", "column 3: parsec is neither a unit nor a function"},
		{"foo(1)", "column 1: foo is neither a unit nor a function"},
		{"5 kg + 3 m", "column 6: these units do not go together: kg, m"},
		{"5 + 3 m", "column 3: these units do not go together: 1, m"},
		{"5 to m", "column 6: these units do not go together: 1, m"},
		{"5 kg to m", "column 9: these units do not go together: kg, m"},
		{"2 m * 3 m", "column 5: these units do not go together: m, m"},
		{"20 C + 5 C", "column 6: temperatures can only be converted"},
		{"2 * 20 C", "column 3: temperatures can only be converted"},
		{"9^9^9", "column 2: the number gets too large"},
		{"1e9999", "column 1: the number gets too large"},
		{"sqrt(-1)", "column 1: a negative number has no root"},
		{"1.5 in hex", "column 8: a whole number is needed"},
		{"round(1, 2, 3)", "column 1: round takes another number of arguments"},
		{"1 € in $", "column 3: € means nothing here"},
		{"가나다", "column 1: 가나다 is neither a unit nor a function"},
		{strings.Repeat("(", 100) + "1", "column 65: the calculation is too long, or too deep"},
		{strings.Repeat("1+", 600) + "1", "column 1: the calculation is too long, or too deep"},
		{"2^" + strings.Repeat("-", 90) + "1", "2"},
	} {
		r, err := Eval(tt.in)
		got := r.Text
		switch {
		case err != nil:
			got = err.Error()
		case !r.Exact:
			got = "≈ " + r.Text
			if r.Fraction != "" {
				unit := strings.TrimLeft(r.Text, "-0123456789.e+")
				got += " (" + r.Fraction + unit + ")"
			}
		}
		if got != tt.want {
			t.Errorf("%.40q is %s, want %s", tt.in, got, tt.want)
		}
	}
}

// TestUnits converts one of each unit there and back.
func TestUnits(t *testing.T) {
	for line := range strings.Lines(table) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		for _, name := range words[2:] {
			u := find(name)
			if u == nil || u.name != words[2] {
				t.Fatalf("%s is %v, want %s", name, u, words[2])
			}
			base := map[dimension]string{length: "m", mass: "kg", temperature: "K", data: "bit", time: "s"}[u.kind]
			v := value{n: big.NewRat(7, 3), unit: u}
			there, err := convert(v, find(base), 1)
			if err != nil {
				t.Fatal(err)
			}
			if back, err := convert(there, u, 1); err != nil || back.n.Cmp(v.n) != 0 {
				t.Errorf("7/3 %s is %s %s, and that %s, %v", name, there.n, base, back.n, err)
			}
		}
	}
}

func FuzzEval(f *testing.F) {
	for _, s := range []string{"1 + 2 * 3", "5 ft 3 in to cm", "0xff in bin", "200 + 10%", "sqrt(2)^-3 mod pi", "20 °C to °F", "max(1, 2)/(3-3)", "9^9^9", "1e999*1e999", "1,234.5e-3", "가", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := Eval(s)
		if err == nil {
			if r.Text == "" || !utf8.ValidString(r.Text) {
				t.Fatalf("%q is %+v", s, r)
			}
			// A plain exact number means itself.
			if n, ok := new(big.Rat).SetString(r.Text); ok && r.Exact {
				again, err := Eval(r.Text)
				if err != nil || !same(again, n) {
					t.Fatalf("%q is %s, and that %+v, %v", s, r.Text, again, err)
				}
			}
			return
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Why == "" || e.Column < 1 || e.Column > utf8.RuneCountInString(s)+1 {
			t.Fatalf("%q: %#v", s, err)
		}
		_ = fmt.Sprint(err)
	})
}

// same reports whether a result is a number.
func same(r Result, n *big.Rat) bool {
	got, ok := new(big.Rat).SetString(r.Text)
	return ok && got.Cmp(n) == 0
}
