package kit

import (
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

// Cut returns at most n bytes of s, and says with an ellipsis that there is more.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Line is [Cut] for one line: white space and control characters become single
// spaces.
func Line(s string, n int) string {
	return Cut(strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " "), n)
}

// Clip returns at most 60 characters of s in one line, for a message.
func Clip(s string) string {
	const most = 60
	s = strings.Map(func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return '?'
	}, strings.ToValidUTF8(s, "?"))
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return s
}

// Quote is [Cut] in quotes, for a message.
func Quote(s string, n int) string { return strconv.Quote(Cut(s, n)) }

// Path returns the path that the model means, absolute and clean: one below the
// working folder, or below root when there is none.
func Path(tc agent.ToolContext, root, path string) (string, error) {
	const longest = 4096 // bytes; no system takes more
	if strings.ContainsRune(path, 0) || len(path) > longest {
		return "", Refuse(agent.ErrInput, "the path contains NUL or is longer than 4096 bytes", "Name an existing file or folder.")
	}
	if !filepath.IsAbs(path) {
		if tc.Workdir != "" {
			root = tc.Workdir
		}
		path = filepath.Join(root, path)
	}
	return filepath.Clean(path), nil
}

// Relative returns a path with slashes, and relative to the first of the bases
// that it is below.
func Relative(path string, bases ...string) string {
	for _, base := range bases {
		if rel, err := filepath.Rel(base, path); base != "" && err == nil && filepath.IsLocal(rel) {
			path = rel
			break
		}
	}
	return filepath.ToSlash(path)
}

// Name returns a name as a line of text can hold it. One with line ends,
// characters that show nothing or bytes that are no text is quoted as in Go, and
// so is one that begins with a quote: a reader can tell which it is.
func Name(name string) string {
	plain := !strings.HasPrefix(name, `"`) && utf8.ValidString(name)
	for _, r := range name {
		plain = plain && (strconv.IsPrint(r) || r == '\u3000' || unicode.Is(unicode.M, r))
	}
	if plain {
		return name
	}
	return strconv.Quote(name)
}
