// Package hunks takes a diff of git apart into the pieces of it that a person can choose,
// and makes of the chosen ones a diff again. It reads texts and nothing else. It starts no
// goroutines.
package hunks

import (
	"fmt"
	"slices"
	"strings"
)

// A Part is a hunk, or all that a diff says of a file whose changes are no lines.
type Part struct {
	File string // as git writes it
	At   string // where in the file, as in @@ -1 +1,2 @@; "" = all of it

	head string // what stands above the hunks of its file
	text string
}

// Name is what the part is chosen by: no other one of the same diff has it.
func (p Part) Name() string { return strings.TrimSuffix(p.File+" "+p.At, " ") }

// Split returns the parts of a diff, in its order. A line of a file cannot pass for the
// beginning of a part: it has a sign in front of it.
func Split(diff string) (parts []Part) {
	var file, head string
	open := false // a hunk takes lines in
	bare := false // the file has had no hunk
	end := func() {
		if bare {
			parts = append(parts, Part{File: file, head: head})
		}
		bare = false
	}
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "diff --git "):
			end()
			file, head, open, bare = named(line), line, false, true
		case file == "":
		case strings.HasPrefix(line, "@@ "):
			at, _, ok := strings.Cut(line[3:], " @@")
			if !ok {
				open = false
				continue
			}
			parts, open, bare = append(parts, Part{File: file, At: "@@ " + at + " @@", head: head, text: line}), true, false
		case open:
			parts[len(parts)-1].text += line
		case bare:
			if path, ok := strings.CutPrefix(line, "+++ "); ok && strings.TrimSpace(path) != "/dev/null" {
				file = side(path)
			} else if path, ok := strings.CutPrefix(line, "--- "); ok && strings.TrimSpace(path) != "/dev/null" {
				file = side(path)
			}
			head += line
		}
	}
	end()
	return parts
}

// side is a path as one side of a diff names it.
func side(path string) string {
	path = strings.TrimRight(path, "\t\r\n")
	if quoted, ok := strings.CutPrefix(path, `"`); ok && len(quoted) > 2 {
		return Unquoted(`"` + quoted[2:])
	}
	if len(path) > 2 {
		return path[2:]
	}
	return path
}

// named is the file of a line that begins what is said of one: both of its halves are the
// same but for a letter.
func named(line string) string {
	rest := strings.TrimRight(strings.TrimPrefix(line, "diff --git "), "\r\n")
	if half := len(rest) / 2; len(rest)%2 == 1 && rest[half] == ' ' {
		return side(rest[half+1:])
	}
	return rest
}

// Pick returns a diff of the parts of these names alone. Each has to be there once.
func Pick(diff string, names []string) (patch string, picked []Part, err error) {
	parts := Split(diff)
	var b strings.Builder
	file := ""
	for _, p := range parts {
		if !slices.Contains(names, p.Name()) {
			continue
		}
		if p.head != file {
			b.WriteString(p.head)
			file = p.head
		}
		b.WriteString(p.text)
		picked = append(picked, p)
	}
	for _, name := range names {
		n := 0
		for _, p := range parts {
			if p.Name() == name {
				n++
			}
		}
		if n != 1 {
			return "", nil, fmt.Errorf("%q is %d of the hunks, and has to be one", name, n)
		}
	}
	return b.String(), picked, nil
}

// Unquoted is a path as git writes it, without the quotes of C around odd ones.
func Unquoted(s string) string {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' {
		return s
	}
	var b strings.Builder
	for in := s[1 : len(s)-1]; in != ""; {
		if in[0] != '\\' || len(in) < 2 {
			b.WriteByte(in[0])
			in = in[1:]
			continue
		}
		if in[1] >= '0' && in[1] <= '3' && len(in) >= 4 {
			b.WriteByte((in[1]-'0')<<6 | (in[2]-'0')<<3 | (in[3] - '0'))
			in = in[4:]
			continue
		}
		c := in[1]
		if at := strings.IndexByte("abtnvfr", c); at >= 0 {
			c = "\a\b\t\n\v\f\r"[at]
		}
		b.WriteByte(c)
		in = in[2:]
	}
	return b.String()
}
