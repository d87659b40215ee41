package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// minCut is how many characters of a file are worth keeping of it.
const minCut = 2000

// Merged returns the text of the files that are active since the start, each between
// labels, in the order of priority, with at most max characters; 0 = Config.Chars.
// What has to go goes in this order: files of the project, the farthest folder first
// and the nearest last, rules among them; local ones; the user's; the organisation's.
// The first one that does not fit is cut at the end of a line.
func (s *Set) Merged(limit int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var active []File
	for _, f := range s.files {
		if f.State == Active && f.Why == AtStart {
			active = append(active, f)
		}
	}
	if limit <= 0 {
		limit = s.cfg.Chars
	}
	text, dropped := Render(active, limit)
	if len(dropped) > 0 {
		s.warn(FindingTotal, "", fmt.Sprintf("the instructions have more than %d characters: not given in full: %s", limit, strings.Join(dropped, ", ")),
			"Shorten them, or move parts to rules with paths.", map[string]string{"limit": strconv.Itoa(limit), "dropped": strings.Join(dropped, ", ")})
	}
	return text
}

// Render returns the texts of files between labels, with at most limit characters,
// and the paths of those that are not there in full. See [Set.Merged] for the order.
func Render(files []File, limit int) (text string, dropped []string) {
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { // what is kept first
		if d := rank(files[a].Scope) - rank(files[b].Scope); d != 0 {
			return d
		}
		if files[a].Scope == Project || files[a].Scope == Local {
			return b - a
		}
		return a - b
	})
	parts := make([]string, len(files))
	left, cut := limit, false
	for _, i := range order {
		part, whole := files[i].part(left, !cut)
		cut = cut || !whole
		if !whole {
			dropped = append(dropped, files[i].Path)
		}
		left -= utf8.RuneCountInString(part)
		parts[i] = part
	}
	return strings.TrimSpace(strings.Join(parts, "")), dropped
}

func rank(s Scope) int { return slices.Index([]Scope{Managed, User, Local, Project}, s) }

// part is a file between its labels, in at most limit characters, cut if it may be;
// "" when that is not enough.
func (f File) part(limit int, mayCut bool) (text string, whole bool) {
	head := fmt.Sprintf("<instructions scope=\"%s\" path=\"%s\"", f.Scope, attribute(f.Path))
	if len(f.Paths) > 0 {
		head += fmt.Sprintf(" paths=\"%s\"", attribute(strings.Join(f.Paths, ", ")))
	}
	const end, note = "\n</instructions>\n\n", "\n<!-- the rest is left out: it is too long -->"
	room := limit - utf8.RuneCountInString(head) - len(">\n"+end)
	if f.Chars <= room {
		return head + ">\n" + f.Text + end, true
	}
	if room -= len(note); !mayCut || room < minCut {
		return "", false
	}
	return head + ">\n" + firstLines(f.Text, room) + note + end, false
}

// firstLines returns as many whole lines of a text as have at most n characters, or
// n characters of a line that is longer. What it cuts open it closes.
func firstLines(text string, n int) string {
	const end = "\n</included>"
	n -= MaxDepth * len(end)
	at := 0
	for i := range text {
		if n--; n < 0 {
			break
		}
		at = i
	}
	if nl := strings.LastIndexByte(text[:at], '\n'); nl > 0 {
		at = nl
	}
	text = text[:at]
	open := strings.Count("\n"+text, "\n<included ") - strings.Count("\n"+text+"\n", "\n</included>\n")
	return text + strings.Repeat(end, max(0, open))
}

// Begun is what a model is told of the files that are active since the start: their
// merged text. Gone: it was told of some, and there are none any more.
func Begun(merged string, gone bool) string {
	switch {
	case merged != "":
		return "Instructions from files, for work in this folder. Follow them where the user does not say otherwise; of two that differ " +
			"the later counts. They take the place of all that an earlier message of this kind has given.\n\n" + merged
	case gone:
		return "The instruction files that an earlier message has given are not there any more: what they said does not hold."
	}
	return ""
}

// Touched is what a model is told of a file that became active when another one was
// touched, in at most limit characters and some more.
func Touched(f File, limit int) string {
	text, _ := Render([]File{f}, limit)
	return "Instructions for files that were touched. They take the place of what an earlier message has given from the same path.\n\n" + text
}

// Lost is what a model is told of a file that it was told of and that is not active
// any more.
func Lost(path string) string {
	return fmt.Sprintf("<instructions path=\"%s\"/> is not there any more, or holds for other files: what it said does not hold.", attribute(path))
}

// Template is the beginning of a file that /memory makes.
func Template(product string, scope Scope) string {
	hint := map[Scope]string{
		Managed: "What holds for everybody in the organisation.",
		User:    "What holds in all of your projects.",
		Project: "What everybody who works on this project should know: how to build, test and lay out code.",
		Local:   "What holds for you alone in this checkout. Keep this file out of version control.",
	}[scope]
	return fmt.Sprintf("# %s project memory (%s)\n\n<!-- %s A line that is only @path includes that file. -->\n", product, scope, hint)
}
