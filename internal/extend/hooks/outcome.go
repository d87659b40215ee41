package hooks

import (
	"encoding/json"
	"slices"

	"dure/agent"
)

// An Outcome is what all hooks of an event have to say together.
type Outcome struct {
	Ran int // how many there were

	Verdict agent.Verdict // deny before ask before allow
	Defer   bool
	Block   bool
	Reasons []string // of the verdict, or of those that block
	By      string   // the first of them
	Context []string // for the model; where a block makes it go on, this does so too

	Stop    bool // everything is to stop, whatever else was said
	Because string

	Input     json.RawMessage // of the hook that ended last
	Output    json.RawMessage // likewise
	Tips      []string
	Grants    []json.RawMessage
	Interrupt bool
	Retry     bool

	Watch  []string // nil = none has said anything
	Title  string
	First  []string
	Reload bool
	Hide   bool
	Show   *string
	Path   string
	Bell   string

	Action  string
	Content json.RawMessage

	tied string // the tip that came with Output
}

var strength = map[agent.Verdict]int{agent.Pass: 0, agent.Allow: 1, agent.AskUser: 2, agent.Deny: 4}

// add combines an outcome with the answer of a hook that has ended now.
func (o *Outcome) add(name string, a Answer) {
	o.Ran++
	rank, had := strength[a.Verdict], strength[o.Verdict]
	if o.Defer {
		had = max(had, 3)
	}
	if a.Defer {
		rank = max(rank, 3)
	}
	switch {
	case rank > had:
		o.Verdict, o.Defer, o.Reasons, o.By = a.Verdict, a.Defer && rank == 3, nil, name
		fallthrough
	case rank == had && rank > 0:
		if a.Reason != "" && !slices.Contains(o.Reasons, a.Reason) {
			o.Reasons = append(o.Reasons, a.Reason)
		}
	}
	o.Block = o.Block || a.Block
	if a.Stop && !o.Stop {
		o.Stop, o.Because = true, a.Because
	}
	if a.Input != nil {
		o.Input = a.Input
	}
	if a.Context != "" {
		o.Context = append(o.Context, a.Context)
	}
	if a.Output != nil { // the tip of one that is replaced is about nothing
		o.Tips = slices.DeleteFunc(o.Tips, func(t string) bool { return t == o.tied && t != "" })
		o.Output, o.tied = a.Output, a.Tips
	}
	if a.Tips != "" {
		o.Tips = append(o.Tips, a.Tips)
	}
	if a.Grants != nil {
		o.Grants = append(o.Grants, a.Grants)
	}
	if a.Watch != nil {
		o.Watch = append(o.Watch, a.Watch...)
	}
	if a.First != "" {
		o.First = append(o.First, a.First)
	}
	o.Interrupt, o.Retry = o.Interrupt || a.Interrupt, o.Retry || a.Retry
	o.Reload, o.Hide = o.Reload || a.Reload, o.Hide || a.Hide
	o.Title, o.Path = firstOf(a.Title, o.Title), firstOf(o.Path, a.Path)
	o.Bell += a.Bell
	if a.Show != nil {
		o.Show = a.Show
	}
	if a.Action != "" && o.Action == "" {
		o.Action, o.Content = a.Action, a.Content
	}
}

// Name is what a hook is, for people, on one line.
func (h Hook) Name() string {
	switch h.Type {
	case Command:
		return "command " + lineOf(h.Command)
	case HTTP:
		return "http " + h.URL
	case MCPTool:
		return "mcp " + h.Server + " " + h.Tool
	case Callback:
		return "callback " + lineOf(h.Callback)
	}
	return string(h.Type) + " " + lineOf(h.Prompt)
}
