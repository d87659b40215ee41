package compact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"dure/agent"
)

// The kinds of pinned facts, those that are dropped last first.
const (
	Goal     = "goal"     // what the user wants: the first request and the newest
	Call     = "call"     // what runs, or waits for an answer
	Rule     = "rule"     // what holds until the user says otherwise
	Plan     = "plan"     // what the user has agreed to
	Todo     = "todo"     // what is to be done
	Decision = "decision" // what was decided, and why
	Fact     = "fact"
	File     = "file" // what the work is about
)

var kinds = []string{Goal, Call, Rule, Plan, Todo, Decision, Fact, File}

// MaxPin is how many bytes one pinned fact has; the rest can be opened by its event.
const MaxPin = 4000

// Pin returns a fact to carry on.
func Pin(kind, text string, seq int64) agent.Pinned {
	if len(text) > MaxPin {
		text = ends(text, MaxPin, fmt.Sprintf("[… all of it is in event %d …]", seq))
	}
	sum := sha256.Sum256([]byte(text))
	return agent.Pinned{Kind: kind, Text: text, SHA256: hex.EncodeToString(sum[:]), Seq: seq}
}

// Intact reports whether a pinned fact is what it was.
func Intact(p agent.Pinned) bool {
	sum := sha256.Sum256([]byte(p.Text))
	return p.SHA256 == hex.EncodeToString(sum[:])
}

// pins gathers what is carried on: what the compaction before had, where nothing
// newer of the kind is told, and the goals.
func (p *plan) pins() {
	told := map[string]bool{Goal: false, Call: true, Plan: true} // what ran then does not run now, and a plan may be taken back
	for _, f := range p.conv.Facts {
		told[f.Kind] = true
	}
	var all []agent.Pinned
	for _, old := range p.conv.Pinned {
		if !told[old.Kind] && Intact(old) {
			all = append(all, old)
		}
	}
	all = append(all, p.goals()...)
	for _, f := range p.conv.Facts {
		if f.Text != "" && Intact(f) {
			all = append(all, f)
		}
	}
	p.pinned = p.bounded(unique(all))
}

// goals are the first and the newest request of the user. Those of before come from
// the compaction before.
func (p *plan) goals() (goals []agent.Pinned) {
	first := !slices.ContainsFunc(p.conv.Pinned, func(f agent.Pinned) bool { return f.Kind == Goal })
	last := agent.Pinned{}
	for _, m := range p.conv.Messages {
		text := p.conv.said(m)
		if text == "" {
			continue
		}
		last = Pin(Goal, text, m.Seq)
		if first {
			goals, first = append(goals, last), false
		}
	}
	if last.Text != "" {
		goals = append(goals, last)
	}
	return goals
}

// carried are the pinned facts, but for what the user says in a message that stays.
func (p *plan) carried() []agent.Pinned {
	if p.cut == len(p.conv.Messages) {
		return p.pinned
	}
	stays := p.conv.Messages[p.cut].Seq
	return slices.DeleteFunc(slices.Clone(p.pinned), func(f agent.Pinned) bool { return f.Kind == Goal && f.Seq >= stays })
}

// said is what the user says in a message; "" for results, for heads, and for what
// nobody has said.
func (c Conversation) said(m agent.Timed) string {
	if m.Role != agent.User || m.Origin != "" || hasResults(m.Message) {
		return ""
	}
	m.Blocks = m.Blocks[min(c.Asides[m.Seq], len(m.Blocks)):]
	text := strings.TrimSpace(m.Text())
	if strings.HasPrefix(text, Prefix) {
		return ""
	}
	return text
}

// unique drops what is said twice, and of the goals those between the first and the
// newest.
func unique(all []agent.Pinned) []agent.Pinned {
	seen := map[string]bool{}
	var out []agent.Pinned
	goals := 0
	for _, f := range all {
		key := f.Kind + f.SHA256
		if seen[key] {
			continue
		}
		seen[key] = true
		out = append(out, f)
		if f.Kind == Goal {
			goals++
		}
	}
	for i := 0; goals > 2 && i < len(out); i++ {
		if out[i].Kind == Goal && i > 0 && slices.ContainsFunc(out[:i], func(f agent.Pinned) bool { return f.Kind == Goal }) {
			out = slices.Delete(out, i, i+1)
			goals--
			i--
		}
	}
	return out
}

// bounded keeps pinned facts within their share: the kinds in their order, and of a
// kind the newest.
func (p *plan) bounded(all []agent.Pinned) []agent.Pinned {
	room := p.Pins
	if room <= 0 {
		room = max(p.target/4, 500)
	}
	keep := make([]bool, len(all))
	dropped := 0
	for i, f := range all { // what the user wants leaves room for what holds beside it
		if most := room / 3; f.Kind == Goal && p.est.Text(f.Text) > most {
			all[i] = Pin(Goal, ends(f.Text, most*2, fmt.Sprintf("[… all of it is in event %d …]", f.Seq)), f.Seq)
		}
	}
	for _, kind := range kinds {
		for i, f := range slices.Backward(all) {
			if f.Kind != kind {
				continue
			}
			n := p.est.Text(f.Text) + perMessage*4
			if n > room && kind != Goal {
				dropped++
				continue
			}
			keep[i] = true
			room -= n
		}
	}
	var out []agent.Pinned
	for i, f := range all {
		if keep[i] {
			out = append(out, f)
		}
	}
	if dropped > 0 {
		p.stage(fmt.Sprintf("pins-dropped:%d", dropped))
	}
	return out
}

// ends returns the beginning and the end of a text, and what stands between them.
func ends(text string, keep int, between string) string {
	head, tail := min(len(text), keep*2/3), max(0, len(text)-keep/3)
	if head >= tail {
		return text + "\n" + between
	}
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + "\n" + between + "\n" + text[tail:]
}
