package policy

import (
	"path"
	"strings"
)

// commandPattern matches the words of one simple command. Its text has the marks
// below beside what is matched as it stands.
type commandPattern struct {
	glob   string
	bare   string // the command without arguments, when that matches too
	exact  bool   // it has no *
	vars   bool   // it begins with assignments
	fold   bool   // without regard to case
	first  string // the first word, when that is known as a whole; else ""
	strict bool   // it allows
}

// The marks of a pattern: between two words, any text, any text within a word.
const (
	markWord = '\x00'
	markAny  = '\x01'
	markIn   = '\x02'
)

// commandReader reads a pattern the way a shell reads words.
type commandReader struct {
	text  string
	at    int
	out   []byte
	stars int
	quote byte
	began bool // inside of a word
	plain bool // the word has no * so far
}

// readCommand reads the pattern of a command: words with quotes understood, where
// * is any text and in quotes any text within the word. A rule that denies or asks
// compares words as one text, so that a word with blanks in it counts as several.
func readCommand(spec string, at int, allows, fold bool) (*commandPattern, *fault) {
	if rest, ok := strings.CutSuffix(spec, ":*"); ok {
		spec = rest + " *"
	}
	if strings.TrimSpace(spec) == "" || strings.TrimSpace(spec) == "*" && spec != "*" {
		return nil, &fault{at, "it names no command"}
	}
	r := commandReader{text: spec}
	c := &commandPattern{strict: allows, fold: fold}
	words, opening := 0, true
	for r.next() {
		words++
		word := r.out[strings.LastIndexByte(string(r.out), markWord)+1:]
		switch assigned := assignment(string(word)); {
		case opening && assigned:
			c.vars = true
		case opening:
			opening = false
			if r.plain {
				c.first = string(word)
			}
		}
	}
	if r.quote != 0 {
		return nil, &fault{at + len(spec), "a quote is not closed"}
	}
	c.glob, c.exact = string(r.out), r.stars == 0
	if rest, ok := strings.CutSuffix(c.glob, "\x00\x01"); ok && r.stars == 1 && words > 1 {
		c.bare = rest
	}
	if c.vars {
		c.first = ""
	}
	if !allows {
		c.loosen()
	}
	if fold {
		c.glob, c.bare, c.first = strings.ToLower(c.glob), strings.ToLower(c.bare), strings.ToLower(c.first)
	}
	return c, nil
}

// next reads a word to the end of out.
func (r *commandReader) next() bool {
	for r.at < len(r.text) && blank(r.text[r.at]) {
		r.at++
	}
	if r.at == len(r.text) {
		return false
	}
	if r.began {
		r.out = append(r.out, markWord)
	}
	r.began, r.plain = true, true
	for ; r.at < len(r.text); r.at++ {
		ch := r.text[r.at]
		switch {
		case r.quote == 0 && blank(ch):
			return true
		case r.quote == 0 && (ch == '\'' || ch == '"'):
			r.quote = ch
		case ch == r.quote:
			r.quote = 0
		case ch == '\\' && r.quote != '\'' && r.at+1 < len(r.text) && (r.quote == 0 || strings.IndexByte(`\"*$`+"`", r.text[r.at+1]) >= 0):
			r.at++
			r.out = append(r.out, r.text[r.at])
		case ch == '*':
			r.stars, r.plain = r.stars+1, false
			if r.quote != 0 {
				r.out = append(r.out, markIn)
			} else {
				r.out = append(r.out, markAny)
			}
		default:
			r.out = append(r.out, ch)
		}
	}
	return true
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' }

// assignment reports whether a word sets a variable.
func assignment(word string) bool {
	name, _, ok := strings.Cut(word, "=")
	if !ok || name == "" {
		return false
	}
	for i, c := range []byte(name) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// loosen lets a pattern match words that stand in one, and its first word be
// found by what a program is called without its folder.
func (c *commandPattern) loosen() {
	loose := strings.NewReplacer(string(rune(markWord)), " ", string(rune(markIn)), string(rune(markAny)))
	c.glob, c.bare = loose.Replace(c.glob), loose.Replace(c.bare)
	if c.first != "" {
		c.first = programOf(c.first)
	}
}

// foldProgram writes the first word small.
func (c *commandPattern) foldProgram() {
	small := func(s string) string {
		program, _, _ := strings.Cut(s, " ")
		return strings.ToLower(program) + s[len(program):]
	}
	if c.first != "" {
		c.glob, c.bare, c.first = small(c.glob), small(c.bare), small(c.first)
	}
}

// programOf returns what a program is called: without its folder, what follows a
// blank, and the ending of programs on Windows.
func programOf(word string) string {
	if i := strings.IndexByte(word, ' '); i > 0 {
		word = word[:i]
	}
	if strings.ContainsAny(word, `/\`) {
		word = path.Base(strings.ReplaceAll(word, `\`, "/"))
	}
	if i := len(word) - 4; i > 0 && word[i] == '.' {
		switch strings.ToLower(word[i+1:]) {
		case "exe", "cmd", "bat", "com":
			word = word[:i]
		}
	}
	return word
}

// matches reports whether the pattern fits the words as they were joined.
func (c *commandPattern) matches(text []byte) bool {
	return wild(c.glob, text, c.fold) || c.bare != "" && equal(c.bare, text, c.fold)
}

func equal(s string, text []byte, fold bool) bool {
	if len(s) != len(text) {
		return false
	}
	if !fold {
		return s == string(text)
	}
	for i := range text {
		if s[i] != lower(text[i]) {
			return false
		}
	}
	return true
}

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// wild matches a text with a pattern of marks. When what follows a mark does not
// fit, the last mark within the word takes one byte more, and after that the last
// mark for any text: its time is at most the product of both lengths.
func wild(pattern string, text []byte, fold bool) bool {
	p, t := 0, 0
	anyP, anyT, inP, inT := -1, 0, -1, 0
	for t < len(text) || p < len(pattern) {
		if p < len(pattern) {
			switch pattern[p] {
			case markAny:
				anyP, anyT, inP = p, t, -1
				p++
				if p == len(pattern) {
					return true
				}
				continue
			case markIn:
				inP, inT = p, t
				p++
				continue
			}
			if t < len(text) {
				c := text[t]
				if fold {
					c = lower(c)
				}
				if pattern[p] == c {
					p, t = p+1, t+1
					continue
				}
			}
		}
		switch {
		case inP >= 0 && inT < len(text) && text[inT] != markWord:
			inT++
			p, t = inP+1, inT
		case anyP >= 0 && anyT < len(text):
			anyT++
			p, t, inP = anyP+1, anyT, -1
		default:
			return false
		}
	}
	return true
}

// star matches a name with a pattern in which * stands for any text.
func star(pattern, name string) bool {
	first, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	for _, part := range parts[:len(parts)-1] {
		_, after, ok := strings.Cut(name, part)
		if !ok {
			return false
		}
		name = after
	}
	return strings.HasSuffix(name, parts[len(parts)-1])
}

// trailing makes a pattern of the name of an agent or a skill ready: * is any
// text, and a trailing " *" is optional.
func trailing(spec string) string {
	if rest, ok := strings.CutSuffix(spec, ":*"); ok {
		return rest + " *"
	}
	return spec
}
