package plan_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"dure/agent"
	"dure/internal/state/plan"
)

// Each case is a text of a model, and the plan as it is written out with its steps apart:
// "|" stands in front of what is no step.
func TestParse(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"numbers":             {"1. Read\n2) Write", "1 Read\n2 Write"},
		"one line":            {"Just do it.", "1 Just do it."},
		"nothing":             {" \n\t", ""},
		"dashes":              {"- Read\n- Write\n  - b.txt", "1 Read\n2 Write\\n- b.txt"},
		"numbers before dots": {"Goals:\n- one\n- two\n\n1. Read\n2. Write", "| Goals:\\n- one\\n- two\n1 Read\n2 Write"},
		"details":             {"1. Read\n   all of it\n\n   - twice\n2. Write", "1 Read\\nall of it\\n\\n- twice\n2 Write"},
		"headings":            {"# Plan\n\n## First\n1. Read\n## Then\nquickly\n1. Write\n# After\nRest", "| # Plan\\n\\n## First\n1 Read\n| ## Then\\nquickly\n2 Write\n| # After\\nRest"},
		"a fence":             {"1. Run\n```sh\n1. no step\n# no heading\n```\n2. Look", "1 Run\\n```sh\\n1. no step\\n# no heading\\n```\n2 Look"},
		"an open fence":       {"1. Run\n```\n2. Look", "1 Run\\n```\n2 Look"},
		"years are none":      {"2026. was a year\nand more", "1 2026. was a year\\nand more"},
		"no words":            {"1.\n2. Look\n3.", "1 Look"},
		"only marks":          {"1.\n2.", "1 1.\\n2."},
		"other bytes":         {"1. Re\x00ad\r\n2. \xffWrite", "1 Read\n2 \ufffdWrite"},
	} {
		p := plan.Parse(tt.text)
		var lines []string
		loose := func(s string) {
			if s != "" {
				lines = append(lines, "| "+strings.ReplaceAll(s, "\n", `\n`))
			}
		}
		loose(p.Intro)
		for i, s := range p.Steps {
			loose(s.Above)
			lines = append(lines, fmt.Sprintf("%d %s", i+1, strings.ReplaceAll(s.Text, "\n", `\n`)))
		}
		loose(p.Outro)
		if got := strings.Join(lines, "\n"); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

func TestRender(t *testing.T) {
	p := plan.Parse("# Plan\n1. Read\n   twice\n2. Write\n## Then\n- look\n1. Rest")
	const want = "# Plan\n\n1. Read\n    twice\n2. Write\n\n## Then\n- look\n\n3. Rest"
	if got := plan.Render(p); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

func TestMorePointsThanSteps(t *testing.T) {
	var text strings.Builder
	for i := range plan.MaxSteps + 50 {
		fmt.Fprintf(&text, "- step %d\n", i)
	}
	p := plan.Parse(text.String())
	if n := len(p.Steps); n != plan.MaxSteps {
		t.Fatalf("%d steps", n)
	}
	if last := p.Steps[plan.MaxSteps-1].Text; !strings.Contains(last, fmt.Sprintf("step %d", plan.MaxSteps+49)) {
		t.Errorf("the last step says %.80q ...", last)
	}
}

// Random changes of a plan do what they do to a list of texts; a change that is refused
// does nothing, and no change loses a heading.
func TestChangesAreThoseOfAList(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		p := plan.Parse("# A\n1. one\n2. two\n## B\n3. three\n## C\n4. four")
		list := []string{"one", "two", "three", "four"}
		for i := range 40 {
			c := agent.ChangePlan{
				Do:   []string{agent.PlanEdit, agent.PlanAdd, agent.PlanMove, agent.PlanDrop}[rnd.IntN(4)],
				Step: rnd.IntN(len(list)+4) - 1, To: rnd.IntN(len(list)+4) - 1, Text: fmt.Sprintf("text %d", i),
			}
			was := plan.Render(p)
			next, err := plan.Change(p, c)
			if plan.Render(p) != was {
				t.Fatalf("%d: %+v changed the plan that it was given", round, c)
			}
			want, ok := listed(list, c)
			if (err == nil) != ok {
				t.Fatalf("%d: %+v of %d steps: %v", round, c, len(list), err)
			}
			if err != nil {
				continue
			}
			p, list = next, want
			var got []string
			for _, s := range p.Steps {
				got = append(got, s.Text)
			}
			if !slices.Equal(got, list) {
				t.Fatalf("%d: %+v made %q, not %q", round, c, got, list)
			}
			text := plan.Render(p)
			if a, b, c := strings.Index(text, "# A"), strings.Index(text, "## B"), strings.Index(text, "## C"); a < 0 || a > b || b > c {
				t.Fatalf("%d: the headings are not where they were:\n%s", round, text)
			}
			if again := plan.Parse(text); !reflect.DeepEqual(texts(again), list) {
				t.Fatalf("%d: written out, it reads as %q:\n%s", round, texts(again), text)
			}
		}
	}
}

func texts(p agent.Plan) (all []string) {
	for _, s := range p.Steps {
		all = append(all, s.Text)
	}
	return all
}

// listed is what a change does to a list.
func listed(list []string, c agent.ChangePlan) ([]string, bool) {
	list = slices.Clone(list)
	in := func(i int) bool { return i >= 1 && i <= len(list) }
	switch c.Do {
	case agent.PlanEdit:
		if !in(c.Step) {
			return nil, false
		}
		list[c.Step-1] = c.Text
	case agent.PlanAdd:
		at := c.Step
		if at == 0 {
			at = len(list) + 1
		}
		if at < 1 || at > len(list)+1 || len(list) == plan.MaxSteps {
			return nil, false
		}
		list = slices.Insert(list, at-1, c.Text)
	case agent.PlanMove:
		if !in(c.Step) || !in(c.To) {
			return nil, false
		}
		s := list[c.Step-1]
		list = slices.Insert(slices.Delete(list, c.Step-1, c.Step), c.To-1, s)
	case agent.PlanDrop:
		if !in(c.Step) || len(list) == 1 {
			return nil, false
		}
		list = slices.Delete(list, c.Step-1, c.Step)
	}
	return list, true
}

func TestChangesAreBounded(t *testing.T) {
	p := plan.Parse("1. one\n2. two")
	for _, c := range []agent.ChangePlan{
		{Do: agent.PlanEdit, Step: 1, Text: " \x00\n"},
		{Do: agent.PlanEdit, Step: 1, Text: strings.Repeat("x", plan.MaxStep+1)},
		{Do: agent.PlanText, Text: strings.Repeat("x", plan.MaxText+1)},
		{Do: agent.PlanText},
		{Do: "burn", Step: 1},
		{Do: agent.PlanAdd, Step: -1, Text: "x"},
		{Do: agent.PlanAdd, Step: 4, Text: "x"},
	} {
		if got, err := plan.Change(p, c); err == nil {
			t.Errorf("%s %d made %+v", c.Do, c.Step, got)
		}
	}
	var err error
	for range plan.MaxSteps {
		if p, err = plan.Change(p, agent.ChangePlan{Do: agent.PlanAdd, Text: strings.Repeat("x", plan.MaxStep)}); err != nil {
			break
		}
	}
	if n := len(plan.Render(p)); err == nil || n > plan.MaxText {
		t.Errorf("a plan of %d bytes, %v", n, err)
	}
}

func TestDiff(t *testing.T) {
	was := plan.Parse("1. a\n2. b\n3. c\n4. b")
	for _, tt := range []struct{ is, want string }{
		{"1. a\n2. b\n3. c\n4. b", ""},
		{"1. a\n2. x\n3. c\n4. b", "step 2 is changed: x"},
		{"1. c\n2. a\n3. b\n4. b", "step 1 was step 3: c"},
		{"1. a\n2. b\n3. b", "taken out: c"},
		{"1. a\n2. b\n3. c\n4. b\n5. d", "step 5 is new: d"},
		{"# So\n1. a\n2. b\n3. c\n4. b", "what stands around the steps is changed"},
	} {
		if got := strings.Join(plan.Diff(was, plan.Parse(tt.is)), "\n"); got != tt.want {
			t.Errorf("%q:\n%s\nwant\n%s", tt.is, got, tt.want)
		}
	}
}

func TestComplex(t *testing.T) {
	for _, tt := range []struct {
		text string
		want bool
	}{
		{"", false},
		{"Fix the bug in a.go", false},
		{"- one\n- two", false},
		{"Do this:\n- one\n  - two\n- three", true},
		{"1. a\n2. b\n3. c", true},
		{"```\n- a\n- b\n- c\n```", false},
		{strings.Repeat("word ", 119), false},
		{strings.Repeat("word ", 120), true},
		{strings.Repeat("낱말", 119), false},
		{strings.Repeat("낱말", 120), true},
	} {
		if got := plan.Complex(tt.text); got != tt.want {
			t.Errorf("%.30q ...: %v", tt.text, got)
		}
	}
}

// Whatever a model writes, reading it ends, stays within bounds and loses no word; what
// is written out reads as the same steps.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"1. a\n2. b", "- a\n  - b\n- c", "# H\n1. a\n## I\n2. b\n# J\nend", "1. a\n```\n2. b\n```\n3. c", "```\n~~~\n1. a",
		"1.\n-\n*", "1. a\n\n\n   b\n\tc\n 2. d", "\x00\xff\r\n1) x", " 1. a\n  2. b\n# x\n\n1. c", "1. # a\n#b\n2. ```\n3. c\n```", "u\xc2\u00a0",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > plan.MaxText {
			return
		}
		p := plan.Parse(text)
		if len(p.Steps) > plan.MaxSteps {
			t.Fatalf("%d steps", len(p.Steps))
		}
		out := plan.Render(p)
		if lost := lostLine(text, out); lost != "" {
			t.Errorf("%q is lost:\n%s", lost, out)
		}
		if strings.TrimSpace(out) == "" && len(p.Steps) > 0 {
			t.Errorf("%d steps and no text", len(p.Steps))
		}
	})
}

// lostLine returns a line of a text that is not in what was made of it; marks of points,
// space and control characters do not count.
func lostLine(text, out string) string {
	flat := bare(out)
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "\r", "\n"), "\n") {
		if l := bare(strings.TrimLeft(bare(line), "0123456789.)-*+")); l != "" && !strings.Contains(flat, l) {
			return line
		}
	}
	return ""
}

func bare(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsControl(r) || r == 0xfffd {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}
