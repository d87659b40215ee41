package export

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// leftOut stands for a result that is not exported: a conversation has one for
// every call.
const leftOut = "[left out]"

// JSONL writes the conversation in the neutral form, one record a line. It is
// valid for providers whatever the log says: a call without a result is given one.
// Thinking, where it is wanted, has no signature, so nobody can be sent it as such.
// Notes and children are no part of it. What became of plans stands in front, in records
// of the type plan, which are no messages.
func JSONL(w io.Writer, d *Doc) error {
	plans, err := plans(d)
	if err != nil {
		return fmt.Errorf("writing JSONL: %w", err)
	}
	if err := (repair.Report{Load: repair.Loaded, Opaque: plans, Entries: repair.Mend(entries(d)).Entries}).Write(w); err != nil {
		return fmt.Errorf("writing JSONL: %w", err)
	}
	return nil
}

// plans are what became of plans, in order.
func plans(d *Doc) (all []json.RawMessage, err error) {
	for _, it := range d.Items {
		if it.Kind != Plan {
			continue
		}
		_, whole := Words{}.plan(it)
		text := "reason"
		if whole {
			text = "text"
		}
		record := map[string]string{"type": "plan", "plan": it.Plan, "state": it.Level, "timestamp": it.Time.Format(time.RFC3339Nano)}
		for name, value := range map[string]string{"id": it.ID, "by": it.From, text: it.Text} {
			if value != "" {
				record[name] = value
			}
		}
		raw, err := marshal(record)
		if err != nil {
			return nil, err
		}
		all = append(all, raw)
	}
	return all, nil
}

// entries are the messages of a document: what one event said is one message, and
// the results of its calls are the next one.
func entries(d *Doc) []repair.Entry {
	var all []repair.Entry
	used := map[string]bool{}
	for i := 0; i < len(d.Items); {
		first := d.Items[i]
		m, results := agent.Message{}, agent.Message{Role: agent.User}
		for ; i < len(d.Items) && d.Items[i].Seq == first.Seq; i++ {
			m.Role = roleOf(d.Items[i])
			m.Blocks = append(m.Blocks, blocks(d.Items[i])...)
			if it := d.Items[i]; it.Kind == Call && it.Done {
				results.Blocks = append(results.Blocks, agent.Block{Type: agent.ResultBlock, Result: resultOf(it)})
			}
		}
		all = appendEntry(all, m, first, "", used)
		all = appendEntry(all, results, first, "/results", used)
	}
	return all
}

func appendEntry(all []repair.Entry, m agent.Message, from Item, suffix string, used map[string]bool) []repair.Entry {
	e := repair.EntryOf(m)
	if len(e.Content) == 0 {
		return all
	}
	e.ID = from.ID + suffix
	if from.ID == "" || used[e.ID] {
		e.ID = fmt.Sprintf("event-%d%s", from.Seq, suffix)
	}
	used[e.ID] = true
	e.Timestamp, _ = json.Marshal(from.Time.Format(time.RFC3339Nano)) // a string always encodes
	return append(all, e)
}

func roleOf(it Item) agent.Role {
	if it.Kind == Input {
		return agent.User
	}
	return agent.Assistant
}

func blocks(it Item) (all []agent.Block) {
	switch it.Kind {
	case Input:
		if it.Text != "" {
			all = append(all, agent.Block{Type: agent.TextBlock, Text: it.Text})
		}
		return append(all, pictures(it)...)
	case Answer:
		return []agent.Block{{Type: agent.TextBlock, Text: it.Text}}
	case Thinking:
		return []agent.Block{{Type: agent.ThinkingBlock, Text: it.Text}}
	case Call:
		return []agent.Block{{Type: agent.CallBlock, Call: &agent.Call{ID: it.Call, Tool: it.Tool, Input: it.Args}}}
	}
	return nil
}

func resultOf(it Item) *agent.Result {
	r := &agent.Result{ID: it.Call, Status: agent.StatusOK, Text: it.Text, Blocks: pictures(it)}
	if it.Failed {
		r.Status = agent.StatusError
	}
	if r.Text == "" && len(r.Blocks) == 0 {
		r.Text = leftOut
	}
	return r
}

// pictures are the images of an item; what is none, or too large, is named.
func pictures(it Item) (all []agent.Block) {
	for _, m := range it.Media {
		kind := imageType(m.Data)
		if kind == "" || len(m.Data) > maxImage {
			all = append(all, agent.Block{Type: agent.TextBlock, Text: fmt.Sprintf("[attached: %s %s, %d bytes]", m.Name, m.Type, len(m.Data))})
			continue
		}
		all = append(all, agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: kind, Data: m.Data}})
	}
	return all
}
