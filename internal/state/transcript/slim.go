package transcript

import (
	"encoding/json"
	"strings"

	"dure/agent"
)

// What is left of a message that is not kept as it is: as much as a model that
// summarises it is shown. In bytes.
const (
	slimText   = 6000
	slimInput  = 1000
	slimResult = 2000
)

// Slim has a new state keep of each message only what a summary needs, but for those
// that are completed by an event of which whole says true. All hashes are those of the
// messages as they were. It is for reading a long log again: what is needed of it is at
// hand, and not all of it.
func (s *State) Slim(whole func(seq int64) bool) { s.whole = whole }

// slims reports whether the message that event seq completes is not kept as it is.
func (s *State) slims(seq int64) bool { return s.whole != nil && !s.whole(seq) }

// slim returns the beginnings and ends of what a message holds. The results of calls
// are left such that a compaction makes the same of them as of the whole ones: it
// replaces all of those that are cut here, or none.
func slim(m agent.Message) agent.Message {
	blocks := make([]agent.Block, 0, len(m.Blocks))
	for _, b := range m.Blocks {
		switch {
		case b.Result != nil:
			b.Result = slimmed(b.Result)
		case b.Call != nil:
			b.Call = called(b.Call)
		case b.Media != nil:
			b.Media = emptied(b.Media)
		case b.Type == agent.TextBlock:
			b.Text = ends(b.Text, slimText)
		default: // what only a provider can read
			continue
		}
		b.Signature, b.Raw = "", nil
		blocks = append(blocks, b)
	}
	return agent.Message{Role: m.Role, Blocks: blocks, Origin: m.Origin}
}

// called is what is left of a call: a long input is a text instead.
func called(c *agent.Call) *agent.Call {
	if len(c.Input)+len(c.Raw) <= slimInput {
		return c
	}
	cut := *c
	cut.Input, _ = json.Marshal(ends(string(c.Input), slimInput)) // a string encodes
	cut.Raw = ""
	return &cut
}

// slimmed is what is left of a result. One that stands for something that runs stays.
func slimmed(r *agent.Result) *agent.Result {
	if r.Handle != "" || len(r.Text)+len(r.Output) <= slimResult && len(r.Blocks) == 0 {
		return r
	}
	text := r.Text
	if text == "" {
		text = string(r.Output)
	}
	cut := &agent.Result{ID: r.ID, Status: r.Status, Text: ends(text, slimResult), Fence: r.Fence, Error: r.Error, Spill: r.Spill}
	for _, b := range r.Blocks {
		b.Text = ends(b.Text, slimResult)
		if b.Media != nil {
			b.Media = emptied(b.Media)
		}
		cut.Blocks = append(cut.Blocks, b)
	}
	return cut
}

// emptied is a picture or document without its bytes.
func emptied(m *agent.Media) *agent.Media {
	e := *m
	e.Data = nil
	return &e
}

// ends returns a copy of the beginning and the end of a text, so that nothing holds the
// rest.
func ends(text string, keep int) string {
	if len(text) <= keep {
		return text
	}
	return strings.ToValidUTF8(text[:keep*2/3]+"\n[…]\n"+text[len(text)-keep/3:], "")
}
