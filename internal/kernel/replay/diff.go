package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// What a report shows of a difference at most.
const (
	maxDiff = 40  // lines
	maxText = 300 // bytes of one line or value
)

// lineDiff returns the lines of two texts between their common beginning and their
// common end: those of the first with "-", those of the second with "+".
func lineDiff(want, got string) (lines []string) {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for len(w) > 0 && len(g) > 0 && w[0] == g[0] {
		w, g = w[1:], g[1:]
	}
	for len(w) > 0 && len(g) > 0 && w[len(w)-1] == g[len(g)-1] {
		w, g = w[:len(w)-1], g[:len(g)-1]
	}
	side := func(sign string, text []string) {
		for i, l := range text {
			if i == maxDiff/2 {
				lines = append(lines, fmt.Sprintf("%s ... %d more lines", sign, len(text)-i))
				return
			}
			lines = append(lines, sign+" "+clip(l))
		}
	}
	side("-", w)
	side("+", g)
	return lines
}

// clip cuts a text that is shown.
func clip(s string) string {
	if len(s) <= maxText {
		return s
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s... (%d bytes)", s[:n], len(s))
}

func encoded(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func indented(v any) string {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func joined(parts ...string) string {
	return strings.TrimSuffix(strings.Join(parts, " "), " ")
}

func stepOf(turn string, step int) string { return fmt.Sprintf("step %d of turn %s", step, turn) }
