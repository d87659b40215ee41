package plan

import (
	"strings"

	"dure/agent"
)

// Parse reads a plan out of what a model wrote. The steps are the numbered points that
// stand furthest to the left; where there are none, the points with a dash, a star or a
// plus; and where there is neither, all of it is one step. Points within a fence are
// none. Headings between steps stand above the next one.
//
// It reads anything, and loses nothing but space, marks of points and control
// characters. What is longer than MaxText is cut off: whoever takes plans from outside
// refuses those.
func Parse(text string) agent.Plan {
	text = clean(text)
	if len(text) > MaxText {
		text = clean(strings.ToValidUTF8(text[:MaxText], ""))
	}
	lines := strings.Split(text, "\n")
	fenced := fences(lines)
	mark := numbered
	if !anyPoint(lines, fenced, mark) {
		mark = bulleted
	}
	if text == "" {
		return agent.Plan{}
	}
	if !anyPoint(lines, fenced, mark) {
		return agent.Plan{Steps: []agent.PlanStep{{Text: text}}}
	}
	r := reader{mark: mark}
	for i, l := range lines {
		r.line(l, fenced[i])
	}
	return r.plan()
}

// reader collects a plan line by line.
type reader struct {
	mark  func(string) (string, bool)
	p     agent.Plan
	loose []string // lines that belong to no step: in front of the first, or from a heading on
	step  []string // of the step at hand; nil = there is none
	above string
}

func (r *reader) line(l string, fenced bool) {
	if rest, ok := r.mark(l); ok && !fenced && len(r.p.Steps) < MaxSteps-1 || ok && !fenced && r.step == nil {
		r.end()
		r.above, r.loose = block(r.loose), nil
		if len(r.p.Steps) == 0 {
			r.p.Intro, r.above = r.above, ""
		}
		r.step = []string{rest}
		return
	}
	if r.step != nil && !fenced && strings.HasPrefix(l, "#") {
		r.end()
	}
	if r.step == nil {
		r.loose = append(r.loose, l)
		return
	}
	r.step = append(r.step, l)
}

// end closes the step at hand.
func (r *reader) end() {
	if r.step == nil {
		return
	}
	rest := dedented(r.step[1:])
	text := strings.TrimSpace(strings.Join(append([]string{r.step[0]}, rest...), "\n"))
	r.p.Steps = append(r.p.Steps, agent.PlanStep{Above: r.above, Text: text})
	r.step, r.above = nil, ""
}

func (r *reader) plan() agent.Plan {
	r.end()
	r.p.Outro = block(r.loose)
	// A point without a word is no step: there is nothing to do in it.
	steps := r.p.Steps[:0:0]
	above := ""
	for _, s := range r.p.Steps {
		s.Above = joined(above, s.Above)
		above = ""
		if s.Text == "" {
			above = s.Above
			continue
		}
		steps = append(steps, s)
	}
	r.p.Steps, r.p.Outro = steps, joined(above, r.p.Outro)
	if len(steps) == 0 {
		text := joined(r.p.Intro, r.p.Outro)
		if text == "" {
			text = "-"
		}
		return agent.Plan{Steps: []agent.PlanStep{{Text: text}}}
	}
	return r.p
}

// block is a text of several lines without the empty ones around it.
func block(lines []string) string { return strings.Trim(strings.Join(lines, "\n"), "\n \t") }

// dedented takes from all lines the space that they share.
func dedented(lines []string) []string {
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); strings.TrimSpace(l) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	out := make([]string, len(lines))
	for i, l := range lines {
		if strings.TrimSpace(l) != "" {
			out[i] = strings.TrimRight(l[least:], " \t")
		}
	}
	return out
}

// numbered takes the number off a point: "1. text", "2) text".
func numbered(l string) (rest string, ok bool) {
	l, ok = atLeft(l)
	n := 0
	for n < len(l) && n < 4 && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	if !ok || n == 0 || n > 3 || n == len(l) || l[n] != '.' && l[n] != ')' {
		return "", false
	}
	return pointed(l[n+1:])
}

// bulleted takes the mark off a point: "- text", "* text", "+ text".
func bulleted(l string) (rest string, ok bool) {
	l, ok = atLeft(l)
	if !ok || l == "" || !strings.ContainsRune("-*+", rune(l[0])) {
		return "", false
	}
	return pointed(l[1:])
}

// atLeft tells lines that stand at the left edge from those that belong to another one.
func atLeft(l string) (string, bool) {
	rest := strings.TrimLeft(l, " ")
	return rest, len(l)-len(rest) < 2
}

func pointed(rest string) (string, bool) {
	if rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

func anyPoint(lines []string, fenced []bool, mark func(string) (string, bool)) bool {
	for i, l := range lines {
		if rest, ok := mark(l); ok && rest != "" && !fenced[i] {
			return true
		}
	}
	return false
}

// fences tells which lines stand in a fence, with those that open and close it. One that
// is never closed is none: else what follows would be hidden in it.
func fences(lines []string) []bool {
	in := make([]bool, len(lines))
	closes := map[string][]int{} // the lines that may close a fence, the last first
	for i := len(lines) - 1; i >= 0; i-- {
		if mark := fence(lines[i]); mark != "" && strings.Trim(lines[i], mark+" \t") == "" {
			closes[mark] = append(closes[mark], i)
		}
	}
	for i := 0; i < len(lines); i++ {
		mark := fence(lines[i])
		if mark == "" {
			continue
		}
		at := closes[mark]
		for len(at) > 0 && at[len(at)-1] <= i {
			at = at[:len(at)-1]
		}
		if closes[mark] = at; len(at) == 0 {
			continue
		}
		for last := at[len(at)-1]; i < last; i++ {
			in[i] = true
		}
		in[i] = true
	}
	return in
}

// fence returns the mark of a line that opens or closes a fence, or "".
func fence(l string) string {
	l = strings.TrimLeft(l, " \t")
	for _, mark := range []string{"`", "~"} {
		if strings.HasPrefix(l, strings.Repeat(mark, 3)) {
			return mark
		}
	}
	return ""
}
