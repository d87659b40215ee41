package calc

import (
	"math/big"
	"strings"
	"unicode"
)

// kind says what a token is.
type kind int

const (
	end    kind = iota
	number      // a number, in n
	name        // a unit, a function or a word
	sign        // anything else, in text
)

// token is one piece of a text.
type token struct {
	kind   kind
	text   string
	n      *big.Rat
	column int
	spaced bool // white space stands before it
}

// signs are the characters that mean something, by what they are read as.
var signs = map[rune]string{
	'+': "+", '-': "-", '−': "-", '*': "*", '×': "*", '·': "*", '/': "/", '÷': "/", '^': "^",
	'%': "%", '(': "(", ')': ")", ',': ",", '=': "=",
}

// lex takes a text apart. The last token is its end.
func lex(s string) ([]token, error) {
	var all []token
	in := []rune(s)
	depth := 0 // of parentheses: within them a comma parts arguments
	for i := 0; i < len(in); {
		if unicode.IsSpace(in[i]) {
			i++
			continue
		}
		if len(all) == maxTokens {
			return nil, &Error{i + 1, Long, ""}
		}
		t := token{column: i + 1, spaced: i > 0 && unicode.IsSpace(in[i-1])}
		switch r := in[i]; {
		case digit(r, 10) || r == '.' && i+1 < len(in) && digit(in[i+1], 10):
			size, err := t.number(in[i:], depth == 0)
			if err != nil {
				return nil, err
			}
			i += size
		case unicode.IsLetter(r) || r == '°' || r == '"' || r == '\'' || r == '_':
			size := 1
			for i+size < len(in) && (unicode.IsLetter(in[i+size]) || in[i+size] == '_') && r != '"' && r != '\'' {
				size++
			}
			t.kind, t.text = name, string(in[i:i+size])
			i += size
		case r == '-' && i+1 < len(in) && in[i+1] == '>' || r == '→':
			t.kind, t.text = name, "to"
			i++
			if r == '-' {
				i++
			}
		case r == '*' && i+1 < len(in) && in[i+1] == '*':
			t.kind, t.text = sign, "^"
			i += 2
		case signs[r] != "":
			t.kind, t.text = sign, signs[r]
			if t.text == "(" {
				depth++
			} else if t.text == ")" {
				depth--
			}
			i++
		default:
			return nil, &Error{i + 1, Character, string(r)}
		}
		all = append(all, t)
	}
	return append(all, token{kind: end, column: len(in) + 1}), nil
}

func digit(r rune, base int) bool {
	switch base {
	case 2:
		return r == '0' || r == '1'
	case 8:
		return r >= '0' && r <= '7'
	case 16:
		return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' || r >= 'A' && r <= 'F'
	}
	return r >= '0' && r <= '9'
}

// number reads the number that in begins with. commas says that one may part thousands.
func (t *token) number(in []rune, commas bool) (size int, err error) {
	t.kind = number
	if len(in) > 2 && in[0] == '0' {
		if base := map[rune]int{'x': 16, 'X': 16, 'b': 2, 'B': 2, 'o': 8, 'O': 8}[in[1]]; base != 0 && digit(in[2], base) {
			return t.based(in, base)
		}
	}
	var b strings.Builder
	point := false
digits:
	for size < len(in) {
		switch r := in[size]; {
		case digit(r, 10):
			b.WriteRune(r)
		case r == '_' && size+1 < len(in) && digit(in[size+1], 10):
		case r == ',' && commas && !point && thousands(in[size+1:]):
		case r == '.' && !point:
			point = true
			b.WriteRune(r)
		default:
			break digits
		}
		size++
	}
	if n := exponent(in[size:]); n > 0 {
		b.WriteString(string(in[size : size+n]))
		size += n
	}
	var ok bool
	if t.n, ok = new(big.Rat).SetString(b.String()); !ok || size < len(in) && in[size] == '.' {
		return 0, &Error{t.column, Number, string(in[:min(size+1, len(in))])}
	}
	return size, nil
}

// thousands reports whether exactly three digits follow, or more groups of them.
func thousands(in []rune) bool {
	for i := range 3 {
		if i >= len(in) || !digit(in[i], 10) {
			return false
		}
	}
	return len(in) == 3 || !digit(in[3], 10)
}

// exponent is the length of an exponent of at most four digits that in begins with.
func exponent(in []rune) int {
	if len(in) < 2 || in[0] != 'e' && in[0] != 'E' {
		return 0
	}
	n := 1
	if in[n] == '+' || in[n] == '-' {
		n++
	}
	from := n
	for n < len(in) && digit(in[n], 10) {
		n++
	}
	if n == from || n-from > 4 || n < len(in) && unicode.IsLetter(in[n]) {
		return 0
	}
	return n
}

// based reads 0x, 0b and 0o.
func (t *token) based(in []rune, base int) (size int, err error) {
	var b strings.Builder
	for size = 2; size < len(in) && (digit(in[size], base) || in[size] == '_'); size++ {
		if in[size] != '_' {
			b.WriteRune(in[size])
		}
	}
	n, ok := new(big.Int).SetString(b.String(), base)
	if !ok || size < len(in) && (digit(in[size], 10) || in[size] == '.') {
		return 0, &Error{t.column, Number, string(in[:min(size+1, len(in))])}
	}
	t.n = new(big.Rat).SetInt(n)
	return size, nil
}
