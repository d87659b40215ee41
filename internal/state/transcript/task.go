package transcript

import (
	"encoding/json"
	"maps"
	"slices"

	"dure/agent"
)

// What a working memory holds at most; of more, the oldest are forgotten.
const (
	maxDecisions = 200
	maxFacts     = 200
	maxFiles     = 100
	maxNote      = 4000 // bytes of one text
	maxInstead   = 10   // alternatives to one decision
)

// noted takes in what a result says about the work.
func (s *State) noted(r agent.Result) {
	if r.Failed() {
		return
	}
	for _, f := range r.Files {
		s.Task.Files = remember(s.Task.Files, f.Path, f.Gone)
	}
	raw, ok := r.Meta[agent.MetaTask]
	if !ok {
		return
	}
	var n agent.TaskNote
	if json.Unmarshal(raw, &n) != nil {
		return
	}
	s.Noted = s.Head
	if n.Task != "" {
		s.Task.Task = clip(n.Task)
	}
	for _, d := range n.Decisions {
		d.Decision, d.Reason = clip(d.Decision), clip(d.Reason)
		if d.Decision == "" || slices.ContainsFunc(s.Task.Decisions, func(o agent.TaskDecision) bool { return o.Decision == d.Decision }) {
			continue
		}
		d.Alternatives = d.Alternatives[:min(len(d.Alternatives), maxInstead)]
		for i, text := range d.Alternatives {
			d.Alternatives[i] = clip(text)
		}
		s.Task.Decisions = append(slices.Clip(s.Task.Decisions), agent.TaskDecision{Seq: s.Head, Choosing: d})
	}
	if extra := len(s.Task.Decisions) - maxDecisions; extra > 0 {
		s.Task.Decisions = slices.Clone(s.Task.Decisions[extra:])
	}
	if len(n.Facts) > 0 {
		s.facts(n.Facts)
	}
}

func (s *State) facts(told map[string]string) {
	facts := maps.Clone(s.Task.Facts)
	for _, name := range slices.Sorted(maps.Keys(told)) {
		text, name := clip(told[name]), clip(name)
		if text == "" {
			delete(facts, name)
			continue
		}
		put(&facts, name, agent.TaskFact{Seq: s.Head, Text: text})
	}
	for len(facts) > maxFacts {
		oldest := ""
		for _, name := range slices.Sorted(maps.Keys(facts)) {
			if oldest == "" || facts[name].Seq < facts[oldest].Seq {
				oldest = name
			}
		}
		delete(facts, oldest)
	}
	s.Task.Facts = facts
}

// remember puts a path at the end of a list, once; gone ones leave it.
func remember(list []string, path string, gone bool) []string {
	if n := len(list); n > 0 && list[n-1] == path && !gone {
		return list
	}
	list = slices.DeleteFunc(slices.Clone(list), func(p string) bool { return p == path })
	if !gone {
		list = append(list, path)
	}
	return list[max(0, len(list)-maxFiles):]
}

func clip(s string) string {
	if len(s) <= maxNote {
		return s
	}
	n := maxNote
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}
