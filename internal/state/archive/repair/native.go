package repair

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"iter"
	"slices"
	"strconv"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/state/transcript"
)

// native is what was read of a session log.
type native struct {
	events  []logged
	sum     uint32 // of the line before
	chained bool   // sum is known
	last    int64  // the number that the newest line claims
}

// A logged event, and how many lines of its append follow it.
type logged struct {
	agent.Event
	more int
	line int

	unsure bool // nothing is known of the line in front of it, so its checksum says nothing
}

// isEvent reports whether an object is a line of a session log.
func isEvent(raw []byte) bool {
	if !bytes.HasPrefix(raw, []byte(`{"v":`)) {
		return false
	}
	f := readFields(raw)
	return f["seq"] != nil && f["k"] != nil && f["ep"] != nil && (f["d"] != nil || f["b"] != nil)
}

// changed is said of an event that is not as it was written.
const changed = "the checksum of an event is wrong: it was changed; it was left out"

// event takes in a line of a session log.
func (c *checker) event(raw []byte) {
	f := readFields(raw)
	if c.newer(f, raw) {
		return
	}
	if len(c.native.events) >= maxRecords {
		c.refuse("too-large", fmt.Sprintf("the log has more than %d events in one file", maxRecords))
		return
	}
	var seq int64
	_ = json.Unmarshal(f["seq"], &seq) // one that has none is left out below
	gap := c.native.last > 0 && seq > c.native.last+1
	whole := c.chain(raw)
	c.native.last = seq
	if !whole && !gap {
		c.broken++
		c.damage(InvalidContent, f.str("id"), changed)
		return
	}
	e := logged{line: c.line, unsure: !whole}
	if json.Unmarshal(f["seq"], &e.Seq) != nil || json.Unmarshal(f["ep"], &e.Epoch) != nil || e.Seq < 0 {
		c.broken++
		c.damage(InvalidContent, f.str("id"), "an event without a number was left out")
		return
	}
	_ = json.Unmarshal(f["m"], &e.more)
	if e.ID = f.str("id"); len(e.ID) > maxID {
		c.damage(OverLimit, "", "the ID of event %d has %d bytes; it was given another", e.Seq, len(e.ID))
		e.ID = fmt.Sprintf("event-%d", e.Seq)
	}
	e.Time, _ = time.Parse(time.RFC3339Nano, f.str("ts"))
	data, err := c.body(f)
	if err == nil {
		e.Body, err = agent.DecodeBody(agent.Version, f.str("k"), data)
	}
	if err != nil {
		c.broken++
		c.damage(InvalidContent, e.ID, "event %d was left out: %v", e.Seq, err)
		return
	}
	c.native.events = append(c.native.events, e)
}

// body returns the body of an event, which may be kept beside the log.
func (c *checker) body(f fields) ([]byte, error) {
	if f["d"] != nil {
		return bytes.Clone(f["d"]), nil
	}
	if c.o.Blob == nil {
		return nil, fmt.Errorf("its body is not in the file")
	}
	sum := readFields(f["b"]).str("sha256")
	data, err := c.o.Blob(sum)
	if err != nil {
		return nil, fmt.Errorf("reading its body: %w", err)
	}
	return data, nil
}

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// chain checks the line against the checksum that it ends with, which covers the
// line before too. The first line of a file may follow one of another file. What
// a line says of itself is believed when the next one is checked, so that one
// altered line costs no other.
func (c *checker) chain(raw []byte) bool {
	const mark, digits = `,"c":"`, 8
	n := len(raw) - len(mark) - digits - len(`"}`)
	if n <= 0 || string(raw[n:n+len(mark)]) != mark {
		c.native.chained = false
		return true // no line of a file, but of an export: it has no sum
	}
	sum, err := strconv.ParseUint(string(raw[n+len(mark):n+len(mark)+digits]), 16, 32)
	if err != nil {
		c.native.chained = false
		return false
	}
	first := bytes.HasPrefix(raw, []byte(`{"v":1,"seq":1,`))
	seed, known := c.native.sum, c.native.chained || first
	if first {
		seed = 0
	}
	c.native.sum, c.native.chained = uint32(sum), true
	return !known || crc32.Update(seed, castagnoli(), raw[:n]) == uint32(sum)
}

// fold makes entries of the events.
func (c *checker) fold() {
	events := c.sequence()
	s := transcript.New()
	s.Reread(func() iter.Seq2[agent.Event, error] {
		return func(yield func(agent.Event, error) bool) {
			for _, e := range events {
				if !yield(e.Event, nil) {
					return
				}
			}
		}
	})
	ids := map[int64]string{}
	answered := map[string]bool{}
	for _, e := range events {
		s.Apply(e.Event)
		ids[e.Seq] = e.ID
		c.rep.Recovered = append(c.rep.Recovered, e.ID)
		if f, ok := e.Body.(agent.CallFinished); ok {
			answered[f.Result.ID] = true
		}
	}
	c.rep.Session = s.First.Session
	if c.o.Session != "" && c.rep.Session != "" && c.o.Session != c.rep.Session {
		c.refuse("unreadable", fmt.Sprintf("the log is that of session %.80q", c.rep.Session))
		return
	}
	messages, _ := s.Conversation()
	for i, m := range messages {
		e := EntryOf(m)
		e.Content = slices.DeleteFunc(e.Content, func(b Block) bool {
			made := b.Type == resultBlock && !answered[b.ID]                                                 // by the fold: mending says so
			return made || b.Type == thinkingBlock && !c.o.Loose && readFields(b.Raw).str("signature") == "" // nobody is sent it
		})
		if len(e.Content) == 0 {
			continue
		}
		seq := s.Head // of the results of a step that is open
		if i < len(s.Seqs) {
			seq = s.Seqs[i]
		}
		e.ID = c.ids.free(cmp.Or(ids[seq], fmt.Sprintf("event-%d", seq)))
		c.entries = append(c.entries, e)
	}
}

// sequence returns the events in their order, each once, without an append that
// was never finished.
func (c *checker) sequence() []logged {
	events := c.proven()
	if !slices.IsSortedFunc(events, bySeq) {
		c.note(Corruption{Type: Misplaced, Description: "events were out of order and stand in the order of their numbers now"})
		slices.SortStableFunc(events, bySeq)
	}
	var out []logged
	for _, e := range events {
		if n := len(out); n > 0 && e.Seq > 0 {
			switch prev := out[n-1]; {
			case e.Seq == prev.Seq && e.ID == prev.ID:
				c.note(Corruption{Type: DuplicateEntry, Index: n, Line: e.line, ID: e.ID, Description: fmt.Sprintf("event %d stands there twice; one was left out", e.Seq)})
				continue
			case e.Seq == prev.Seq:
				c.note(Corruption{Type: DuplicateEntry, Index: n, Line: e.line, ID: e.ID, Description: fmt.Sprintf("there is another event of the number %d; the first one counts", e.Seq)})
				continue
			case e.Seq != prev.Seq+1:
				c.note(Corruption{Type: TruncatedJSON, Index: n, Line: e.line, ID: e.ID, Description: fmt.Sprintf("events %d to %d are missing", prev.Seq+1, e.Seq-1)})
			}
		}
		out = append(out, e)
	}
	if n := len(out); n > 0 && out[n-1].more > 0 {
		for n > 0 && out[n-1].more > 0 {
			n--
		}
		c.note(Corruption{Type: TruncatedJSON, Index: n, Line: out[n].line, ID: out[n].ID, Description: fmt.Sprintf("the last %d events belong to an append that was never finished", len(out)-n)})
		out = out[:n]
	}
	return out
}

// proven returns the events without those whose number was altered: such a one seems
// to stand behind a gap, and the next line does not go on from there.
func (c *checker) proven() []logged {
	all := c.native.events
	kept := all[:0:0]
	for i, e := range all {
		if e.unsure && i+1 < len(all) && all[i+1].Seq <= e.Seq {
			c.note(Corruption{Type: InvalidContent, Index: i, Line: e.line, ID: e.ID, Description: changed})
			continue
		}
		kept = append(kept, e)
	}
	return kept
}

func bySeq(a, b logged) int { return cmp.Compare(a.Seq, b.Seq) }
