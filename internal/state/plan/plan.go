// Package plan reads what a model has written as a plan into its steps, changes those as
// a person says, and writes them out again. Nothing that the model wrote is lost on the
// way: what is no step stands around the steps.
//
// All of it is pure and bounded: it reads no clock and no file, asks nobody, and starts
// no goroutines. A change that is refused leaves the plan as it was.
package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"dure/agent"
)

// The bounds of a plan.
const (
	MaxText  = 64 << 10 // bytes of all of it, written out
	MaxSteps = 200      // more of them are part of the last one
	MaxStep  = 8000     // bytes of a step that a person writes
)

// Render writes a plan out as Markdown, its steps numbered from 1.
func Render(p agent.Plan) string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	add(p.Intro)
	var run []string // steps with nothing between them stand close together
	flush := func() { add(strings.Join(run, "\n")); run = nil }
	for i, s := range p.Steps {
		if s.Above != "" {
			flush()
			add(s.Above)
		}
		run = append(run, strconv.Itoa(i+1)+". "+indented(s.Text))
	}
	flush()
	add(p.Outro)
	return strings.Join(parts, "\n\n")
}

// indented has the lines behind the first one further to the right, so that none of them
// looks like a step.
func indented(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines[1:] {
		if lines[i+1] != "" {
			lines[i+1] = "    " + lines[i+1]
		}
	}
	return strings.Join(lines, "\n")
}

// Change returns the plan with one thing changed, as [agent.ChangePlan] says it; with an
// error, the plan as it is.
func Change(p agent.Plan, c agent.ChangePlan) (agent.Plan, error) {
	next, err := change(p, c)
	if err == nil && len(Render(next)) > MaxText {
		err = fmt.Errorf("the plan would be longer than %d KiB", MaxText>>10)
	}
	if err != nil {
		return p, err
	}
	return next, nil
}

func change(p agent.Plan, c agent.ChangePlan) (agent.Plan, error) {
	p.Steps = slices.Clone(p.Steps)
	n := len(p.Steps)
	text := clean(c.Text)
	switch c.Do {
	case agent.PlanEdit, agent.PlanAdd:
		if text == "" {
			return p, errors.New("a step needs a text")
		}
		if len(text) > MaxStep {
			return p, fmt.Errorf("a step has %d bytes at most", MaxStep)
		}
	case agent.PlanText:
		if text == "" || len(text) > MaxText {
			return p, fmt.Errorf("a plan has a text, and %d bytes at most", MaxText)
		}
		return Parse(text), nil
	}
	var err error
	switch c.Do {
	case agent.PlanEdit:
		if err = within(c.Step, n); err == nil {
			p.Steps[c.Step-1].Text = text
		}
	case agent.PlanAdd:
		p, err = add(p, c.Step, text)
	case agent.PlanMove:
		if err = errors.Join(within(c.Step, n), within(c.To, n)); err == nil {
			p.Steps = move(p.Steps, c.Step-1, c.To-1)
		}
	case agent.PlanDrop:
		p, err = drop(p, c.Step)
	default:
		err = fmt.Errorf("a plan is not changed by %q", c.Do)
	}
	return p, err
}

func within(step, n int) error {
	if step < 1 || step > n {
		return fmt.Errorf("there is no step %d: the plan has %d", step, n)
	}
	return nil
}

// add puts a step at a place; 0 = behind the last one.
func add(p agent.Plan, at int, text string) (agent.Plan, error) {
	n := len(p.Steps)
	if at == 0 {
		at = n + 1
	}
	if n >= MaxSteps {
		return p, fmt.Errorf("a plan has %d steps at most", MaxSteps)
	}
	if err := within(at, n+1); err != nil {
		return p, err
	}
	s := agent.PlanStep{Text: text}
	if at <= n { // a heading stays where it is: the step comes under it
		s.Above, p.Steps[at-1].Above = p.Steps[at-1].Above, ""
	}
	p.Steps = slices.Insert(p.Steps, at-1, s)
	return p, nil
}

// move takes the text of a step to another place; headings stay where they are.
func move(steps []agent.PlanStep, from, to int) []agent.PlanStep {
	texts := make([]string, len(steps))
	for i, s := range steps {
		texts[i] = s.Text
	}
	text := texts[from]
	texts = slices.Insert(slices.Delete(texts, from, from+1), to, text)
	for i := range steps {
		steps[i].Text = texts[i]
	}
	return steps
}

// drop takes a step out, and leaves the heading above it to what comes next.
func drop(p agent.Plan, step int) (agent.Plan, error) {
	n := len(p.Steps)
	if err := within(step, n); err != nil {
		return p, err
	}
	if n == 1 {
		return p, errors.New("a plan has one step at least: reject it instead")
	}
	if above := p.Steps[step-1].Above; above != "" && step < n {
		p.Steps[step].Above = joined(above, p.Steps[step].Above)
	} else if above != "" {
		p.Outro = joined(above, p.Outro)
	}
	p.Steps = slices.Delete(p.Steps, step-1, step)
	return p, nil
}

func joined(a, b string) string { return strings.Trim(a+"\n\n"+b, "\n") }

// clean is a text without what no line of a plan has: other ends of lines, control
// characters, bytes that are no text.
func clean(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\r\n", "\n")
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, s)
	return strings.TrimSpace(s)
}

// Diff says what has become of a plan, a line for each step that is not as it was and
// not where it was; nothing when it says the same. It is for a model to read.
func Diff(was, is agent.Plan) (lines []string) {
	places := map[string][]int{} // of the texts before
	for i, s := range was.Steps {
		places[s.Text] = append(places[s.Text], i+1)
	}
	kept := make([]bool, len(was.Steps)+1)
	from := make([]int, len(is.Steps))
	for i, s := range is.Steps { // a text that stands where it stood is no other one of its kind
		if i < len(was.Steps) && was.Steps[i].Text == s.Text {
			from[i], kept[i+1] = i+1, true
		}
	}
	for i, s := range is.Steps {
		at := slices.IndexFunc(places[s.Text], func(p int) bool { return !kept[p] })
		if from[i] == 0 && at >= 0 {
			from[i] = places[s.Text][at]
			kept[from[i]] = true
		}
	}
	moved := outOfOrder(from)
	for i, s := range is.Steps {
		switch {
		case from[i] == 0 && i < len(was.Steps) && !kept[i+1]:
			kept[i+1] = true
			lines = append(lines, fmt.Sprintf("step %d is changed: %s", i+1, first(s.Text)))
		case from[i] == 0:
			lines = append(lines, fmt.Sprintf("step %d is new: %s", i+1, first(s.Text)))
		case moved[i]:
			lines = append(lines, fmt.Sprintf("step %d was step %d: %s", i+1, from[i], first(s.Text)))
		}
	}
	for i, s := range was.Steps {
		if !kept[i+1] {
			lines = append(lines, "taken out: "+first(s.Text))
		}
	}
	if len(lines) == 0 && Render(was) != Render(is) {
		lines = append(lines, "what stands around the steps is changed")
	}
	return lines
}

// outOfOrder tells which of the steps that were there before do not stand in the order
// in which they stood: those beside the longest row that does.
func outOfOrder(from []int) []bool {
	best, prev := make([]int, len(from)), make([]int, len(from))
	last := -1
	for i, f := range from {
		prev[i] = -1
		if f == 0 {
			continue
		}
		best[i] = 1
		for j := range i {
			if from[j] != 0 && from[j] < f && best[j]+1 > best[i] {
				best[i], prev[i] = best[j]+1, j
			}
		}
		if last < 0 || best[i] > best[last] {
			last = i
		}
	}
	moved := make([]bool, len(from))
	for i, f := range from {
		moved[i] = f != 0
	}
	for ; last >= 0; last = prev[last] {
		moved[last] = false
	}
	return moved
}

// first is the first line of a step, cut to what names it.
func first(s string) string {
	const most = 160 // runes
	s, _, _ = strings.Cut(s, "\n")
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	return s
}
