// Package text owns what people read: the messages of the program in English
// and Korean, and how text is measured, wrapped and made harmless for a
// terminal.
//
// It never writes anywhere and reads no environment (languages are passed in). The
// messages are in locales, of which a program indexes the one that it speaks. What a model reads is not translated and is not here. It
// starts no goroutines.
package text

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Key names a message of locales whose name begins with a capital, by its place there.
type Key uint16

// Catalog speaks one language. The zero value speaks English.
type Catalog struct{ locale *locale }

// For returns the catalog of a language: "ko" and what begins so is Korean,
// everything else English.
func For(lang string) Catalog {
	if strings.HasPrefix(strings.ToLower(lang), "ko") {
		return Catalog{&korean}
	}
	return Catalog{&english}
}

// Language returns the language that an environment asks for: DURE_LANG, else
// the locale for messages as POSIX orders its variables.
func Language(getenv func(string) string) string {
	for _, name := range []string{"DURE_LANG", "LC_ALL", "LC_MESSAGES", "LANG"} {
		if v := getenv(name); v != "" {
			if strings.HasPrefix(strings.ToLower(v), "ko") {
				return "ko"
			}
			return "en"
		}
	}
	return "en"
}

// Language returns "en" or "ko".
func (c Catalog) Language() string {
	if c.locale == &korean {
		return "ko"
	}
	return "en"
}

// Say returns a message. args are pairs of a placeholder's name and its value.
//
// In a message, {n} is the value of n; {n?one/many} is one when the value is 1;
// {n|을/를} is the value with the Korean particle that fits it. A placeholder
// without a value stays as it is written.
func (c Catalog) Say(k Key, args ...any) string { return say(c.message(k), args) }

// Named is Say for a message of a name that another package has, which stands for itself if
// there is none.
func (c Catalog) Named(name string, args ...any) string { return say(c.either(name, name), args) }

func say(message string, args []any) string {
	return fill(message, func(name string) (string, bool) {
		for i := 0; i+1 < len(args); i += 2 {
			if args[i] == name {
				return fmt.Sprint(args[i+1]), true
			}
		}
		return "", false
	})
}

func (c Catalog) message(k Key) string {
	return messageOf(c.of().index()[k])
}

// named returns a message that has no key, by its name.
func (c Catalog) named(name string) (string, bool) {
	lines := c.of().index()
	i, ok := slices.BinarySearchFunc(lines, name, func(line, name string) int { return cmp.Compare(nameOf(line), name) })
	if !ok {
		return "", false
	}
	return messageOf(lines[i]), true
}

// either is the message of a name, or else another text.
func (c Catalog) either(name, other string) string {
	if s, ok := c.named(name); ok {
		return s
	}
	return other
}

func (c Catalog) of() *locale {
	if c.locale == nil {
		return &english
	}
	return c.locale
}

// fill replaces the placeholders of a message.
func fill(msg string, value func(name string) (string, bool)) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(msg, "{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			out.WriteString("{" + rest)
			return out.String()
		}
		out.WriteString(expand(inner, value))
		msg = after
	}
}

// expand returns what stands for one placeholder, written without its braces.
func expand(inner string, value func(string) (string, bool)) string {
	name, forms := inner, ""
	at := strings.IndexAny(inner, "?|")
	if at >= 0 {
		name, forms = inner[:at], inner[at+1:]
	}
	v, ok := value(name)
	switch {
	case !ok:
		return "{" + inner + "}"
	case at < 0:
		return v
	}
	first, second, _ := strings.Cut(forms, "/")
	if inner[at] == '|' {
		return v + particle(v, first, second)
	}
	if v == "1" {
		return first
	}
	return second
}
