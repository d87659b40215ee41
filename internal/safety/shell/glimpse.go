package shell

import (
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/safety/shell/programs"
)

// maxGlimpse is how many commands are listed of a text that cannot be followed.
// Of those after the first maxGlimpsed only the words are.
const (
	maxGlimpse  = 20_000
	maxGlimpsed = 500
)

// glimpse lists what looks like commands in a text that cannot be parsed, so that
// rules which forbid something find it. It takes any operator for the end of a
// command, and leaves quotes and backslashes out.
func (w *walker) glimpse(text string) {
	if len(text) > maxLook {
		text = text[:maxLook]
	}
	known := w.eff.Unreadable
	if len(text) > maxText/10 {
		n := 0
		for i := range len(text) {
			if parts[text[i]] {
				n++
			}
		}
		*w.out = slices.Grow(*w.out, min(n, maxGlimpse))
	}
	var room []string // of those of which only the words are listed
	var words []programs.Word
	for len(text) > 0 && len(*w.out) < maxGlimpse {
		end := 0
		for end < len(text) && !parts[text[end]] {
			end++
		}
		part := text[:end]
		text = text[min(end+1, len(text)):]
		if len(*w.out) < maxGlimpsed {
			if list := glimpsedWords(nil, part); len(list) > 0 {
				w.glimpsed(argv{list: list})
			}
			continue
		}
		words = glimpsedWords(words[:0], part)
		if len(words) == 0 {
			continue
		}
		if len(words) > cap(room)-len(room) {
			room = make([]string, 0, max(256, len(words)))
		}
		from := len(room)
		for _, x := range words {
			room = append(room, x.Text)
		}
		w.add(agent.SimpleCommand{Argv: room[from:len(room):len(room)]})
	}
	w.eff.Unreadable = known
}

// glimpsed lists one command of such a text.
func (w *walker) glimpsed(a argv) {
	spent, steps, depth := w.spent, w.steps, w.depth
	w.spent, w.steps, w.depth = false, 0, 0
	w.run(&state{dirs: w.start(), voided: true}, job{argv: a})
	w.spent, w.steps, w.depth = spent, steps, depth
}

// parts are the characters that part commands.
var parts = func() (set [256]bool) {
	for _, c := range []byte(";|&\n(){}`<>") {
		set[c] = true
	}
	return set
}()

func (w *walker) start() []string {
	if w.home == "" {
		return nil
	}
	return []string{w.home}
}

// glimpsedWords adds the words of what may be a command, from its name on.
func glimpsedWords(words []programs.Word, part string) []programs.Word {
	for f := range strings.FieldsSeq(part) {
		f = unquote(f)
		if f == "" {
			continue
		}
		if len(words) == 0 {
			name, _, set := strings.Cut(f, "=")
			if keyword(f) || set && name != "" && !strings.ContainsAny(name, "/.-") {
				continue
			}
		}
		words = append(words, programs.Word{Text: f, Known: !strings.ContainsAny(f, "$*?~"), One: true})
	}
	return words
}

var quotes = strings.NewReplacer(`'`, "", `"`, "", `\`, "")

func unquote(s string) string {
	if strings.ContainsAny(s, `'"\`) {
		return quotes.Replace(s)
	}
	return s
}

func keyword(s string) bool {
	switch s {
	case "if", "then", "else", "elif", "fi", "while", "until", "do", "done", "for", "case", "esac", "in", "!", "time", "function", "select", "coproc", "$":
		return true
	}
	return false
}
