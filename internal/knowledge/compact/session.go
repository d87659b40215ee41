package compact

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// Sessions says how the sessions of a program are shortened.
type Sessions struct {
	Options

	Off    bool   // conversations are not shortened unasked
	Noted  bool   // what the agent has noted is carried on
	Recall string // see [Config]

	// Reads returns the window of the model that writes summaries for sessions of another
	// one; 0 = not known. Required.
	Reads func(model string) int
}

// Points are what shortens the conversation of a session. todos are what is still to be done
// in it.
func (o Sessions) Points(b *plug.Session, todos func() []string) plug.Points {
	c := New(Config{Options: o.Options, Recall: o.Recall, Ask: b.AskSmall})
	return plug.Points{Compactor: plug.Compactor{Full: o.full, Tokens: tokens, Usage: o.usage, Compact: func(ctx context.Context, s plug.Compaction) (*agent.ContextCompacted, error) {
		return c.Compact(ctx, Conversation{
			Messages: s.Messages, Fixed: NewEstimator(s.Model.Provider).Fixed(s.System, s.Specs),
			Used: s.Context, Counted: s.Counted, Window: s.Model.Window, Provider: s.Model.Provider,
			Reads: o.Reads(b.Model()), Asides: s.Asides,
			Trigger: s.Trigger, Focus: s.Focus, Before: s.Before, Through: s.Head, Pinned: s.Pinned, Last: s.Last,
			Facts: facts(s, todos(), o.Noted),
		})
	}}}
}

// full reports whether a conversation of so many tokens is to be shortened unasked, and
// whether there is hardly any room left.
func (o Sessions) full(m agent.ModelInfo, tokens int) (full, brink bool) {
	w := o.State(tokens, m.Window)
	return !o.Off && w.Needed, w.Status == Exceeded
}

// tokens estimates the parts of a request.
func tokens(m agent.ModelInfo, system []agent.Section, specs []agent.Spec, messages []agent.Message) int {
	est := NewEstimator(m.Provider)
	return est.Fixed(system, specs) + est.Messages(messages)
}

// usage describes what fills the window of a session. What the provider has counted
// as a whole is shared out as it is estimated.
func (o Sessions) usage(s plug.Compaction) agent.ContextReport {
	est := NewEstimator(s.Model.Provider)
	parts := map[string]int{PartSystem: est.Fixed(s.System, nil), PartTools: est.Fixed(nil, s.Specs)}
	estimated, since := parts[PartSystem]+parts[PartTools], 0 // what came behind what was counted
	for _, m := range s.Messages {
		n := est.Message(m.Message)
		parts[PartOf(m.Message)] += n
		estimated += n
		if m.Seq > s.Counted {
			since += n
		}
	}
	used, share := estimated, func(n int) int { return n }
	if s.Context > 0 && estimated > 0 {
		used = s.Context + since
		share = func(n int) int { return n * used / estimated }
	}
	left := used
	for name, n := range parts {
		parts[name] = share(n)
		left -= parts[name]
	}
	parts[PartMessages] += left // of rounding
	w := o.State(used, s.Model.Window)
	report := agent.ContextReport{Used: used, Window: s.Model.Window, Status: string(w.Status), Needed: w.Needed}
	if w.Max > 0 {
		report.Ratio = float64(used) / float64(w.Max)
	}
	for _, p := range o.Breakdown(parts, s.Model.Window) {
		part := agent.ContextPart{Name: p.Name, Tokens: p.Tokens}
		if p.Name == PartSystem {
			before := 0 // so that they come to their sum
			for i, section := range s.System {
				upTo := share(est.Fixed(s.System[:i+1], nil))
				part.Parts = append(part.Parts, agent.ContextPart{Name: section.Name, Tokens: upTo - before})
				before = upTo
			}
		}
		report.Parts = append(report.Parts, part)
	}
	return report
}

// facts are what a compaction carries on word for word: what runs, what is to be
// done, and what the agent has noted, if that is kept.
func facts(s plug.Compaction, todos []string, notes bool) (all []agent.Pinned) {
	for _, handle := range slices.Sorted(maps.Keys(s.Pending)) {
		all = append(all, Pin(Call, fmt.Sprintf("%s runs as %s", s.Pending[handle], handle), 0))
	}
	for _, t := range todos {
		all = append(all, Pin(Todo, t, 0))
	}
	if s.Plan != "" {
		for _, part := range planParts(s.Plan) {
			all = append(all, Pin(Plan, part, s.PlanSeq))
		}
	}
	if !notes {
		return all
	}
	if s.Task.Task != "" {
		all = append(all, Pin(Fact, "now: "+s.Task.Task, 0))
	}
	for _, d := range s.Task.Decisions {
		text := d.Decision
		if d.Reason != "" {
			text += " – because " + d.Reason
		}
		if len(d.Alternatives) > 0 {
			text += " (instead of: " + strings.Join(d.Alternatives, "; ") + ")"
		}
		all = append(all, Pin(Decision, text, d.Seq))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Task.Facts)) {
		f := s.Task.Facts[name]
		all = append(all, Pin(Fact, name+": "+f.Text, f.Seq))
	}
	if n := len(s.Task.Files); n > 0 {
		const newest = 20
		all = append(all, Pin(File, strings.Join(s.Task.Files[max(0, n-newest):], "\n"), 0))
	}
	return all
}

// planParts are a plan in parts that are pinned whole, as far as its lines allow.
func planParts(text string) []string {
	parts := []string{""}
	for line := range strings.Lines(text) {
		last := &parts[len(parts)-1]
		if *last != "" && len(*last)+len(line) > MaxPin {
			*last = strings.TrimRight(*last, "\n")
			parts = append(parts, line)
			continue
		}
		*last += line
	}
	return parts
}
