package app

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/compact"
	"dure/internal/tools/builtin"
	"dure/internal/tools/catalog"
)

// compactor shortens the conversations of a session; nil when settings forbid it.
func (a *App) compactor(b plug.Session, todos *builtin.Todos) func(context.Context, plug.Compaction) (*agent.ContextCompacted, error) {
	dialect := catalog.Dialect(a.cfg.Dialect)
	cfg := compact.Config{Options: a.compactOptions(), Recall: dialect.Name(recallTool)}
	if !a.cfg.NoAI {
		cfg.Ask = func(ctx context.Context, q agent.Question) (agent.Answer, error) {
			q.Model = a.small(b.Model())
			return b.Reach.Ask(ctx, q)
		}
	}
	c := compact.New(cfg)
	return func(ctx context.Context, s plug.Compaction) (*agent.ContextCompacted, error) {
		return c.Compact(ctx, compact.Conversation{
			Messages: s.Messages, Fixed: compact.NewEstimator(s.Model.Provider).Fixed(s.System, s.Specs),
			Used: s.Context, Counted: s.Counted, Window: s.Model.Window, Provider: s.Model.Provider,
			Reads: a.reads(b.Model()), Asides: s.Asides,
			Trigger: s.Trigger, Focus: s.Focus, Before: s.Before, Through: s.Head, Pinned: s.Pinned, Last: s.Last,
			Facts: facts(s, todos.Open(b.ID), !a.cfg.NoTaskState),
		})
	}
}

// reads is the window of the model that writes summaries for the sessions of another one;
// 0 = not known.
func (a *App) reads(model string) int {
	info, err := a.info(a.small(model))
	if err != nil {
		return 0
	}
	return info.Window
}

// full reports whether a conversation of so many tokens is to be shortened unasked, and
// whether there is hardly any room left.
func (a *App) full(m agent.ModelInfo, tokens int) (full, brink bool) {
	w := a.compactOptions().State(tokens, m.Window)
	return a.cfg.Compact.Auto && w.Needed, w.Status == compact.Exceeded
}

// tokens estimates the parts of a request.
func tokens(m agent.ModelInfo, system []agent.Section, specs []agent.Spec, messages []agent.Message) int {
	est := compact.NewEstimator(m.Provider)
	return est.Fixed(system, specs) + est.Messages(messages)
}

// contextUsage tells what fills the window of a session. What the provider has counted
// as a whole is shared out as it is estimated.
func (a *App) contextUsage(s plug.Compaction) agent.ContextReport {
	est := compact.NewEstimator(s.Model.Provider)
	parts := map[string]int{compact.PartSystem: est.Fixed(s.System, nil), compact.PartTools: est.Fixed(nil, s.Specs)}
	estimated, since := parts[compact.PartSystem]+parts[compact.PartTools], 0 // what came behind what was counted
	for _, m := range s.Messages {
		n := est.Message(m.Message)
		parts[compact.PartOf(m.Message)] += n
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
	parts[compact.PartMessages] += left // of rounding
	o := a.compactOptions()
	w := o.State(used, s.Model.Window)
	report := agent.ContextReport{Used: used, Window: s.Model.Window, Status: string(w.Status), Needed: w.Needed}
	if w.Max > 0 {
		report.Ratio = float64(used) / float64(w.Max)
	}
	for _, p := range o.Breakdown(parts, s.Model.Window) {
		part := agent.ContextPart{Name: p.Name, Tokens: p.Tokens}
		if p.Name == compact.PartSystem {
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

func (a *App) compactOptions() compact.Options {
	return compact.Options{Strategy: a.cfg.Compact.Strategy, Threshold: a.cfg.Compact.Threshold, Recent: a.cfg.Compact.Recent}
}

// facts are what a compaction carries on word for word: what runs, what is to be
// done, and what the agent has noted, if that is kept.
func facts(s plug.Compaction, todos []string, notes bool) (all []agent.Pinned) {
	for _, handle := range slices.Sorted(maps.Keys(s.Pending)) {
		all = append(all, compact.Pin(compact.Call, fmt.Sprintf("%s runs as %s", s.Pending[handle], handle), 0))
	}
	for _, t := range todos {
		all = append(all, compact.Pin(compact.Todo, t, 0))
	}
	if s.Plan != "" {
		for _, part := range planParts(s.Plan) {
			all = append(all, compact.Pin(compact.Plan, part, s.PlanSeq))
		}
	}
	if !notes {
		return all
	}
	if s.Task.Task != "" {
		all = append(all, compact.Pin(compact.Fact, "now: "+s.Task.Task, 0))
	}
	for _, d := range s.Task.Decisions {
		text := d.Decision
		if d.Reason != "" {
			text += " – because " + d.Reason
		}
		if len(d.Alternatives) > 0 {
			text += " (instead of: " + strings.Join(d.Alternatives, "; ") + ")"
		}
		all = append(all, compact.Pin(compact.Decision, text, d.Seq))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Task.Facts)) {
		f := s.Task.Facts[name]
		all = append(all, compact.Pin(compact.Fact, name+": "+f.Text, f.Seq))
	}
	if n := len(s.Task.Files); n > 0 {
		const newest = 20
		all = append(all, compact.Pin(compact.File, strings.Join(s.Task.Files[max(0, n-newest):], "\n"), 0))
	}
	return all
}

// planParts are a plan in parts that are pinned whole, as far as its lines allow.
func planParts(text string) []string {
	parts := []string{""}
	for line := range strings.Lines(text) {
		last := &parts[len(parts)-1]
		if *last != "" && len(*last)+len(line) > compact.MaxPin {
			*last = strings.TrimRight(*last, "\n")
			parts = append(parts, line)
			continue
		}
		*last += line
	}
	return parts
}

// ShortenLines shortens the conversations of in, a case a line, and writes to out what
// became of each, see [compact.Case] and [compact.Verdict].
func ShortenLines(ctx context.Context, in io.Reader, out io.Writer) error {
	return eachLine(ctx, in, out, func(line []byte) any { return compact.Evaluate(ctx, line) })
}
