package files

import (
	"fmt"
	"strings"

	"dure/internal/tools/kit"
)

// How much an explanation quotes. A message is cut at 1,000 characters behind
// the tool, so it stays below.
const (
	quoteBytes = 420
	quoteLine  = 160
)

// explainAmbiguous says where old_string occurs.
func (t *normal) explainAmbiguous(spans []span) error {
	const named = 10
	var lines []string
	for _, sp := range spans[:min(len(spans), named)] {
		lines = append(lines, fmt.Sprint(t.lineAt(sp.from)))
	}
	where := strings.Join(lines, ", ")
	if len(spans) > named {
		where += ", …"
	}
	return kit.Refuse(ErrEditAmbiguous, fmt.Sprintf("old_string occurs %d times, on lines %s", len(spans), where),
		"Add lines around it until it is unique, or set replace_all.")
}

func (t *normal) lineAt(at int) int { return strings.Count(t.text[:at], "\n") + 1 }

// reason is a difference that a fold makes disappear.
type reason struct {
	fold func(string) string
	text string
}

var reasons = []reason{
	{strings.TrimSpace, "the indentation, or space at the ends of lines, differs"},
	{func(s string) string { return strings.Join(strings.Fields(s), " ") }, "the space between words differs"},
	{plainSigns, "typographic quotes, dashes or spaces differ from plain ones"},
	{func(s string) string { return strings.ToLower(strings.TrimSpace(s)) }, "upper and lower case differ"},
}

var typographic = strings.NewReplacer("‘", "'", "’", "'", "‚", "'", "“", `"`, "”", `"`, "„", `"`, "–", "-", "—", "-", "‑", "-", "−", "-",
	"…", "...", "\u00a0", " ", "\u202f", " ", "\u3000", " ", "\u200b", "", "\ufeff", "")

func plainSigns(s string) string { return strings.TrimSpace(typographic.Replace(s)) }

var unescape = strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\"`, `"`, `\'`, "'", `\\`, `\`, "&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&#39;", "'")

// wording is how an explanation names the text that was looked for, and its
// replacement.
type wording struct{ old, new, both string }

var (
	editWords  = wording{"old_string", "new_string", "old_string and new_string"}
	patchWords = wording{"the text of its context and removed lines", "what it would be after the hunk", "the lines"}
)

// explainMissing says what stands where old was probably meant to be.
func (t *normal) explainMissing(w wording, old, new string) error {
	message := w.old + " does not occur in the file"
	const again = "Copy the text exactly as it is in the file; read it again if in doubt."
	if plain := unescape.Replace(old); plain != old && strings.Contains(t.text, plain) {
		return kit.Refuse(ErrEditNoMatch, message+": it is escaped; the file has the plain characters", "Give "+w.both+" without escapes such as \\n, \\\" or &lt;.")
	}
	if _, ok := unnumber(old); ok {
		return kit.Refuse(ErrEditNoMatch, message+"; its lines begin with line numbers", "Leave out the number and the tab that the read tool puts before each line.")
	}
	lines := strings.TrimSuffix(old, "\n")
	for _, r := range reasons {
		if places := t.lines(lines, r.fold); len(places) > 0 {
			sp := places[0]
			return kit.Refuse(ErrEditNoMatch, fmt.Sprintf("%s: %s. %s\nLine %d and on:\n%s", message, r.text,
				firstDifference(lines, t.text[sp.from:sp.to]), t.lineAt(sp.from), kit.Cut(t.text[sp.from:sp.to], quoteBytes)), again)
		}
	}
	const telling = 8 // bytes; less could stand anywhere
	if i := strings.Index(t.text, new); i >= 0 && len(strings.TrimSpace(new)) >= telling {
		return kit.Refuse(ErrEditNoMatch, fmt.Sprintf("%s, but %s does, on line %d", message, w.new, t.lineAt(i)), "The edit may have been made already; read the file.")
	}
	if from, want, ok := t.nearestLines(lines); ok {
		at := nthLine(t.text, 0, from)
		end := lineEnd(t.text, nthLine(t.text, at, strings.Count(lines, "\n")))
		return kit.Refuse(ErrEditNoMatch, fmt.Sprintf("%s. %s of %d lines are alike from line %d on. %s\nLine %d and on:\n%s", message,
			fmt.Sprint(want), strings.Count(lines, "\n")+1, from+1, firstDifference(lines, t.text[at:end]), from+1, kit.Cut(t.text[at:end], quoteBytes)), again)
	}
	return kit.Refuse(ErrEditNoMatch, message+", and nothing like it", "Read the file, or look for the text with the grep tool.")
}

// firstDifference names the first line that differs, and how.
func firstDifference(want, have string) string {
	w, h := strings.Split(want, "\n"), strings.Split(have, "\n")
	for i := range w {
		if i == len(h) {
			break
		}
		if w[i] == h[i] {
			continue
		}
		if strings.TrimLeft(w[i], " \t") == strings.TrimLeft(h[i], " \t") {
			return fmt.Sprintf("Its line %d begins with %s, the file's with %s.", i+1, indentation(w[i]), indentation(h[i]))
		}
		return fmt.Sprintf("Its line %d is %s, the file's is %s.", i+1, kit.Quote(w[i], quoteLine/2), kit.Quote(h[i], quoteLine/2))
	}
	return ""
}

// indentation names the space that a line begins with.
func indentation(line string) string {
	space := line[:len(line)-len(strings.TrimLeft(line, " \t"))]
	tabs, blanks := strings.Count(space, "\t"), strings.Count(space, " ")
	switch {
	case space == "":
		return "no space"
	case blanks == 0:
		return plural(tabs, "tab")
	case tabs == 0:
		return plural(blanks, "space")
	}
	return fmt.Sprintf("%s and %s", plural(tabs, "tab"), plural(blanks, "space"))
}

// nearestLines returns the line of the text from which on the most lines equal
// those of s, but for the space around them, and how many do. Lines that say
// little, or stand in many places, have no say.
func (t *normal) nearestLines(s string) (from, alike int, ok bool) {
	const little, many = 4, 50
	where := map[string][]int{}
	i := 0
	for line := range strings.Lines(t.text) {
		if key := strings.TrimSpace(line); len(key) >= little && len(where[key]) < many {
			where[key] = append(where[key], i)
		}
		i++
	}
	votes := map[int]int{}
	for j, line := range strings.Split(s, "\n") {
		for _, i := range where[strings.TrimSpace(line)] {
			votes[i-j]++
		}
	}
	for at, n := range votes {
		if at >= 0 && (n > alike || n == alike && at < from) {
			from, alike = at, n
		}
	}
	return from, alike, alike > 0
}
