package compact

import (
	"fmt"
	"maps"
	"slices"

	"dure/agent"
	"dure/internal/state/transcript"
)

// plan is a compaction in the making.
type plan struct {
	Options
	conv   Conversation
	est    Estimator
	sizes  []int // tokens of each message as it is
	used   int   // tokens of all, prompt and tools included
	target int   // what they should come to
	enough int   // what need not be shortened further by other means
	limit  int   // what they must not exceed
	recall string

	cut     int                       // messages that the head stands for
	summary string                    // "" = none was made
	texts   map[int]map[string]string // what stands for results, by message and call
	stages  []string
	focus   string
	pinned  []agent.Pinned
}

func (c *Compactor) plan(conv Conversation) *plan {
	p := &plan{Options: c.cfg.Options, conv: conv, focus: conv.Focus, recall: c.cfg.Recall, texts: map[int]map[string]string{}}
	p.est = NewEstimator(conv.Provider)
	if conv.Used > 0 {
		counted := conv.Fixed
		for _, m := range conv.Messages {
			if m.Seq <= conv.Counted {
				counted += p.est.Message(m.Message)
			}
		}
		p.est = p.est.Corrected(conv.Used, counted)
		p.conv.Fixed = int(float64(conv.Fixed) * p.est.factor() / NewEstimator(conv.Provider).factor())
	}
	p.used = p.conv.Fixed
	counted := conv.Used
	for _, m := range conv.Messages {
		n := p.est.Message(m.Message)
		p.sizes = append(p.sizes, n)
		p.used += n
		if m.Seq > conv.Counted {
			counted += n
		}
	}
	if old := p.recent(); conv.Used > 0 && counted > p.used && old > 0 {
		for i := range old { // of messages that are not at hand there is less to estimate
			p.sizes[i] += (counted - p.used) / old
		}
		p.used = counted
	}
	window := conv.Window
	if conv.Trigger == "overflow" || window <= 0 {
		window = min(orMax(window), p.used*7/10) // less fits than was thought
	}
	p.limit = window - p.reserve(window)
	p.target = min(int(float64(window)*p.Target), p.limit)
	p.enough = min(p.trigger(window), p.limit)
	if p.Tokens > 0 {
		p.target = min(p.Tokens, p.limit)
		p.enough = p.target
	}
	p.pins()
	if conv.Trigger == "manual" && p.used <= p.target { // it fits, and is to be shorter all the same
		p.target = p.used / 2
	}
	return p
}

func orMax(window int) int {
	if window <= 0 {
		return 1 << 40
	}
	return window
}

func (p *plan) ratio() float64 {
	if p.conv.Window <= 0 {
		return 0
	}
	return float64(p.used) / float64(p.conv.Window)
}

// recently reports whether a compaction has just been made: one that leaves the
// conversation too long would be repeated at each step.
func (p *plan) recently() bool {
	if p.conv.Last == 0 || p.conv.Trigger != "auto" {
		return false
	}
	since := 0
	for _, m := range p.conv.Messages {
		if m.Seq > p.conv.Last && m.Origin == "" {
			since++
		}
	}
	return since < 4
}

// brink reports whether there is hardly any room left: nothing is waited for then.
func (p *plan) brink() bool { return p.used > p.limit || p.ratio() >= hardLimit }

// adaptive chooses: when less than a fifth of the whole is too much, results are
// enough to take it from. Who asks for it gets a summary.
func (p *plan) adaptive() string {
	if p.conv.Trigger == "manual" {
		return Summarize
	}
	if excess := p.used - p.target; excess*5 < p.used {
		return Tools
	}
	return Hybrid
}

func (p *plan) stage(s string) { p.stages = append(p.stages, s) }

// after returns how many tokens the conversation would have now.
func (p *plan) after() int {
	n := p.conv.Fixed
	for i := p.cut; i < len(p.sizes); i++ {
		n += p.size(i)
	}
	if p.cut > 0 {
		n += p.est.Messages(p.head())
	}
	return n
}

// size returns the tokens of a message as it would be.
func (p *plan) size(i int) int {
	if texts, ok := p.texts[i]; ok {
		return p.est.Message(transcript.Trim(p.conv.Messages[i].Message, texts))
	}
	return p.sizes[i]
}

// recent is the first of the newest messages that stay. What nobody has said does not
// count: it comes again by itself, and would take the place of what was said.
func (p *plan) recent() int {
	at := len(p.conv.Messages)
	for left := p.Recent; left > 0 && at > 0; {
		if at--; p.conv.Messages[at].Origin == "" {
			left--
		}
	}
	return at
}

// newest is the last message that somebody has said.
func (p *plan) newest() int {
	last := len(p.conv.Messages) - 1
	for last > 0 && p.conv.Messages[last].Origin != "" {
		last--
	}
	return last
}

// legal reports whether a conversation may begin with message i behind a head: it
// must not answer calls that are gone.
func (p *plan) legal(i int) bool {
	return i == len(p.conv.Messages) || !hasResults(p.conv.Messages[i].Message)
}

func hasResults(m agent.Message) bool {
	return slices.ContainsFunc(m.Blocks, func(b agent.Block) bool { return b.Result != nil })
}

// cutBefore returns the last legal cut at or before i.
func (p *plan) cutBefore(i int) int {
	for i > 0 && !p.legal(i) {
		i--
	}
	return i
}

// trimOld shortens results in front of the newest messages, the oldest first, until
// the target is reached.
func (p *plan) trimOld() {
	trimmed := false
	after := p.after()
	for i := 0; i < p.recent() && after > p.target; i++ {
		if texts := p.stubs(i); texts != nil {
			before := p.size(i)
			p.texts[i] = texts
			after += p.size(i) - before
			trimmed = true
		}
	}
	if trimmed {
		p.stage(Tools)
	}
}

// minTrim is how many bytes a result needs to have to be shortened.
const minTrim = 400

// stubs returns what stands for the results of a message; nil when none is long.
func (p *plan) stubs(i int) map[string]string {
	var texts map[string]string
	for _, b := range p.conv.Messages[i].Blocks {
		r := b.Result
		if r == nil || len(r.Text)+len(r.Output) < minTrim && len(r.Blocks) == 0 || r.Handle != "" {
			continue
		}
		if texts == nil {
			texts = map[string]string{}
		}
		texts[r.ID] = p.stub(*r, i)
	}
	return texts
}

// events are those that a message is made of. Results that stand in one message have an
// event each, behind that of their calls.
func (c Conversation) events(i int) (from, to int64) {
	to = c.Messages[i].Seq
	results := 0
	for _, b := range c.Messages[i].Blocks {
		if b.Result != nil {
			results++
		}
	}
	if results > 1 && i > 0 {
		return min(c.Messages[i-1].Seq+1, to), to
	}
	return to, to
}

// stub is what is left of a result of message i, with the way back to all of it.
func (p *plan) stub(r agent.Result, i int) string {
	const said = "[Result truncated for context management"
	switch {
	case r.Spill != nil:
		return fmt.Sprintf("%s; all %d bytes of it are in %s]", said, r.Spill.Bytes, r.Spill.Handle)
	case p.recall != "":
		if from, to := p.conv.events(i); from < to {
			return fmt.Sprintf("%s; %s opens it among events %d to %d]", said, p.recall, from, to)
		}
		return fmt.Sprintf("%s; %s opens it as event %d]", said, p.recall, p.conv.Messages[i].Seq)
	}
	return said + "]"
}

// dropOldest lets the oldest messages go until the target is reached.
func (p *plan) dropOldest() {
	last := p.cutBefore(p.recent())
	for p.cut < last && p.after() > p.target {
		next := p.cut + 1
		for next < last && !p.legal(next) {
			next++
		}
		if next > last || !p.legal(next) {
			break
		}
		p.cut = next
	}
	if p.cut > 0 {
		p.stage(Oldest)
	}
}

// trimAll shortens results wherever they stand, the largest first, until what is left
// fits.
func (p *plan) trimAll() {
	for _, keep := range []int{8000, 2000, 400} { // bytes of a result
		for p.after() > p.limit {
			i := p.largest(keep)
			if i < 0 {
				break
			}
			p.texts[i] = p.ends(i, keep)
		}
	}
}

// squeeze makes what is left fit: results are shortened, and in the end everything goes
// but the last messages.
func (p *plan) squeeze() {
	p.trimAll()
	for p.after() > p.limit {
		next := p.cut + 1
		for next < len(p.conv.Messages) && !p.legal(next) {
			next++
		}
		if next > p.newest() {
			break // what the user has just said is not taken away
		}
		p.cut = next
	}
	p.stage("squeeze")
}

// largest returns the message that has the most tokens, of those with a result of
// more than keep bytes; -1 = none.
func (p *plan) largest(keep int) int {
	best := -1
	for i := p.cut; i < len(p.sizes); i++ {
		m := p.conv.Messages[i].Message
		if texts, ok := p.texts[i]; ok {
			m = transcript.Trim(m, texts)
		}
		long := slices.ContainsFunc(m.Blocks, func(b agent.Block) bool {
			return b.Result != nil && (len(b.Result.Text) > keep+300 || len(b.Result.Output) > keep+300 || len(b.Result.Blocks) > 0)
		})
		if long && (best < 0 || p.size(i) > p.size(best)) {
			best = i
		}
	}
	return best
}

// ends returns the results of a message with keep bytes of each at most: two thirds
// of those from its beginning.
func (p *plan) ends(i, keep int) map[string]string {
	texts := map[string]string{}
	maps.Copy(texts, p.texts[i])
	for _, b := range p.conv.Messages[i].Blocks {
		r := b.Result
		if r == nil {
			continue
		}
		text := r.Text
		if text == "" {
			text = string(r.Output)
		}
		if old, ok := texts[r.ID]; ok {
			text = old
		}
		if len(text) > keep || len(r.Blocks) > 0 {
			text = ends(text, keep, p.stub(*r, i))
		}
		texts[r.ID] = text
	}
	return texts
}

// event returns what the plan comes to; nil when that gains less than a tenth and
// what there is fits. Who names a number of tokens gets what there is.
func (p *plan) event(strategy string) *agent.ContextCompacted {
	after := p.after()
	if p.cut == 0 && len(p.texts) == 0 || after >= p.used || after > p.used*9/10 && p.used <= p.limit && p.Tokens == 0 {
		return nil
	}
	e := &agent.ContextCompacted{
		Strategy: strategy, Stages: p.stages, Messages: p.cut, Before: p.used, After: after, Pinned: p.carried(),
	}
	if p.cut > 0 {
		e.Through = p.conv.Messages[p.cut-1].Seq
		if p.cut < len(p.conv.Messages) { // a head is younger than what stands behind it
			e.Through = min(e.Through, p.conv.Messages[p.cut].Seq-1)
		}
		e.Head = p.head()
	}
	for _, i := range slices.Sorted(maps.Keys(p.texts)) {
		if i < p.cut {
			continue
		}
		m := transcript.Trim(p.conv.Messages[i].Message, p.texts[i])
		e.Trimmed = append(e.Trimmed, agent.Trimmed{Message: i - p.cut, Texts: p.texts[i], Hash: transcript.HashOf(m)})
	}
	return e
}
