package frontmatter

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxArguments bounds the words of an argument line that have a number each; what
// stands behind them is in the whole line alone.
const MaxArguments = 1_000

// Values are what stands for the variables in the body of a file.
type Values struct {
	Line  string            // arguments, as they were typed
	Names []string          // declared names of arguments, in the order of their places
	Vars  map[string]string // of ${NAME}; others are left as they are

	// Quote makes one word of a shell of a value, for commands in the body; nil =
	// values stand as they are.
	Quote func(string) string
}

// Expand puts values in the place of the variables of a body: $ARGUMENTS is the whole
// line, $ARGUMENTS[N], $N and {N} the Nth word of it, counted from 0, $NAME a declared
// argument, and ${NAME} one of Vars. A word that is not there leaves its variable as it
// is; a declared argument that is not there is empty. A backslash before $, and a second
// pair of braces, keep a variable from being one. It goes through the body once: what a
// value says is never read again. used reports whether an argument was asked for.
func (v Values) Expand(body string) (text string, used bool) {
	words := Arguments(v.Line)
	var b strings.Builder
	for i := 0; i < len(body); {
		at := strings.IndexAny(body[i:], `\${`)
		if at < 0 {
			b.WriteString(body[i:])
			break
		}
		b.WriteString(body[i : i+at])
		i += at
		switch body[i] {
		case '\\':
			n := slashes(body[i:])
			rest := body[i+n:]
			if _, size, _ := v.variable(rest, words); size > 0 && n%2 == 1 {
				b.WriteString(body[i : i+n-1])
				b.WriteString(rest[:size])
				i += n + size
				continue
			}
			b.WriteString(body[i : i+n])
			i += n
		default:
			value, size, argument := v.variable(body[i:], words)
			if size == 0 {
				b.WriteByte(body[i])
				i++
				continue
			}
			b.WriteString(value)
			used = used || argument
			i += size
		}
	}
	return b.String(), used
}

// slashes is how many backslashes s begins with.
func slashes(s string) int { return len(s) - len(strings.TrimLeft(s, `\`)) }

// variable reads the variable that s begins with. size is 0 when there is none, or
// nothing stands for it.
func (v Values) variable(s string, words []string) (value string, size int, argument bool) {
	switch {
	case strings.HasPrefix(s, "{"):
		return v.braces(s, words)
	case strings.HasPrefix(s, "${"):
		end := strings.IndexByte(s, '}')
		if end < 0 {
			return "", 0, false
		}
		value, ok := v.Vars[s[2:end]]
		if !ok {
			return "", 0, false
		}
		return v.quoted(value), end + 1, false
	case strings.HasPrefix(s, "$"):
		return v.dollar(s, words)
	}
	return "", 0, false
}

// braces reads {N}, and {{N}}, which stands for itself without the outer pair.
func (v Values) braces(s string, words []string) (value string, size int, argument bool) {
	inner, doubled := s[1:], strings.HasPrefix(s, "{{")
	if doubled {
		inner = s[2:]
	}
	n, digits, ok := number(inner)
	if !ok || !strings.HasPrefix(inner[digits:], "}") {
		return "", 0, false
	}
	if doubled {
		if !strings.HasPrefix(inner[digits:], "}}") {
			return "", 0, false
		}
		return s[1 : digits+3], digits + 4, false
	}
	if n >= len(words) {
		return "", 0, false
	}
	return v.quoted(words[n]), digits + 2, true
}

// dollar reads $N, $ARGUMENTS, $ARGUMENTS[N] and $NAME. A name goes as far as letters,
// digits and _ do, and a hyphen where a declared name has one.
func (v Values) dollar(s string, words []string) (value string, size int, argument bool) {
	if n, digits, ok := number(s[1:]); ok {
		if n >= len(words) {
			return "", 0, false
		}
		return v.quoted(words[n]), 1 + digits, true
	}
	name := word(s[1:])
	if name == "ARGUMENTS" {
		rest := s[1+len(name):]
		if n, digits, ok := number(strings.TrimPrefix(rest, "[")); ok && rest[0] == '[' && strings.HasPrefix(rest[1+digits:], "]") {
			if n >= len(words) {
				return "", 0, false
			}
			return v.quoted(words[n]), 1 + len(name) + digits + 2, true
		}
		if v.Quote != nil {
			return v.Quote(v.Line), 1 + len(name), true
		}
		return v.Line, 1 + len(name), true
	}
	at, length := -1, 0
	for i, declared := range v.Names { // the longest that fits
		if len(declared) > length && strings.HasPrefix(s[1:], declared) && (declared == name || len(declared) > len(name) && word(s[1+len(declared):]) == "") {
			at, length = i, len(declared)
		}
	}
	if at < 0 {
		return "", 0, false
	}
	if at < len(words) {
		value = words[at]
	}
	return v.quoted(value), 1 + length, true
}

func (v Values) quoted(s string) string {
	if v.Quote == nil {
		return s
	}
	return v.Quote(s)
}

// number reads the digits that s begins with.
func number(s string) (n, digits int, ok bool) {
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	const most = 4
	if digits == 0 || digits > most {
		return 0, 0, false
	}
	n, _ = strconv.Atoi(s[:digits]) // digits
	return n, digits, true
}

// word is the letters, digits and _ that s begins with.
func word(s string) string {
	for i, r := range s {
		if r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return s[:i]
		}
	}
	return s
}

// Arguments splits a line into words as a shell does, without any of its expansions:
// white space parts them, "..." and '...' hold them together, and a backslash takes the
// next character as it is, but for what is in '...'. Two quotes with nothing between
// them are an empty word. Quotes that do not end go to the end of the line. A backslash
// stands for itself before what is neither white space nor a quote nor a backslash, so
// that paths with backslashes stay whole.
func Arguments(line string) []string {
	var words []string
	var b strings.Builder
	in, begun := rune(0), false
	for i := 0; i < len(line) && len(words) < MaxArguments; {
		r, size := utf8.DecodeRuneInString(line[i:])
		raw := line[i : i+size]
		i += size
		next := rune(0)
		if i < len(line) {
			next, _ = utf8.DecodeRuneInString(line[i:])
		}
		switch {
		case r == '\\' && in != '\'' && i < len(line) && (strings.ContainsRune(`"'\`, next) || in == 0 && unicode.IsSpace(next)):
			n := utf8.RuneLen(next)
			b.WriteString(line[i : i+n])
			i += n
			begun = true
		case in != 0 && r == in:
			in = 0
		case in == 0 && (r == '"' || r == '\''):
			in, begun = r, true
		case in == 0 && unicode.IsSpace(r):
			if begun {
				words = append(words, b.String())
				b.Reset()
			}
			begun = false
		default:
			b.WriteString(raw)
			begun = true
		}
	}
	if begun && len(words) < MaxArguments {
		words = append(words, b.String())
	}
	return words
}

// An Inline is a command in a body whose output stands in its place: !`command` at the
// beginning of a line or behind white space, or a block that begins with ```!.
type Inline struct {
	From, To int // in the body
	Command  string
}

// Inlines finds the commands of a body, in its order. They are found in the body as it
// was written, and never in what was put into it.
func Inlines(body string) (all []Inline) {
	open := false // a block begins that nothing ends: that holds for all behind it
	for i := 0; i < len(body); {
		line := body[i:]
		if at := strings.IndexByte(line, '\n'); at >= 0 {
			line = line[:at+1]
		}
		if rest, ok := strings.CutPrefix(strings.TrimRight(line, " \t\r\n"), "```!"); ok && strings.TrimSpace(rest) == "" && !open {
			if end := closing(body[i+len(line):]); end >= 0 {
				from := i + len(line)
				to := from + end
				after := strings.IndexByte(body[to:], '\n')
				if after < 0 {
					after = len(body) - to
				}
				all = append(all, Inline{i, to + after, strings.TrimSpace(body[from:to])})
				i = to + after
				continue
			}
			open = true
		}
		all = append(all, inLine(line, i)...)
		i += len(line)
	}
	return all
}

// closing returns where the line begins that ends a block; -1 = there is none.
func closing(body string) int {
	at := 0
	for line := range strings.Lines(body) {
		if strings.TrimRight(line, " \t\r\n") == "```" {
			return at
		}
		at += len(line)
	}
	return -1
}

func inLine(line string, offset int) (all []Inline) {
	for i := 0; i+2 < len(line); i++ {
		if line[i] != '!' || line[i+1] != '`' {
			continue
		}
		if before, _ := utf8.DecodeLastRuneInString(line[:i]); i > 0 && !unicode.IsSpace(before) {
			continue
		}
		end := strings.IndexByte(line[i+2:], '`')
		if end < 0 {
			return all
		}
		if command := strings.TrimSpace(line[i+2 : i+2+end]); command != "" {
			all = append(all, Inline{offset + i, offset + i + 2 + end + 1, command})
		}
		i += 2 + end
	}
	return all
}
