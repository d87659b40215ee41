package foreign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// A builder collects the records of a session.
type builder struct {
	s        Session
	tool     func(string) string
	provider string // who signed the thinking
	records  []json.RawMessage
	notes    map[string]note // by the ID of a record
	prompt   string          // the first thing that the user said
	unknown  map[string]int  // kinds of records and parts that are left out
}

// A note is what a record says beside its message.
type note struct {
	model string
	usage agent.Usage
}

var errTooLarge = errors.New("the session is too large")

// block is a block of a record in the neutral form.
type block map[string]any

func textOf(s string) block { return block{"type": "text", "text": s} }

func thinkingOf(s string) block { return block{"type": "thinking", "thinking": s} }

func callOf(id, name string, input any) block {
	return block{"type": "tool_use", "id": id, "name": name, "input": input}
}

// resultOf answers a call with text and what else there is.
func resultOf(id, text string, failed bool, more ...block) block {
	b := block{"type": "tool_result", "tool_use_id": id, "content": text}
	if len(more) > 0 {
		b["content"] = append([]block{textOf(text)}, more...)
	}
	if failed {
		b["is_error"] = true
	}
	return b
}

// inline reads media from a data URL. Other addresses are not followed: what
// they name is said in a text.
func inline(url, name string) block {
	head, data, ok := strings.Cut(url, ",")
	mime, ok2 := strings.CutPrefix(head, "data:")
	mime, ok3 := strings.CutSuffix(mime, ";base64")
	if !ok || !ok2 || !ok3 {
		if strings.HasPrefix(url, "data:") {
			url = "inline"
		}
		return textOf(fmt.Sprintf("[attached: %s (%s)]", short(name), short(url)))
	}
	kind := "document"
	if strings.HasPrefix(mime, "image/") {
		kind = "image"
	} else if mime != "application/pdf" {
		if raw, err := base64.StdEncoding.DecodeString(data); err == nil && strings.HasPrefix(mime, "text/") {
			return textOf(string(raw))
		}
		return textOf(fmt.Sprintf("[attached: %s (%s)]", short(name), short(mime)))
	}
	return block{"type": kind, "source": block{"type": "base64", "media_type": mime, "data": data}}
}

// add adds a record. content is a list of blocks, as JSON or to be written.
func (b *builder) add(id, role string, content any, at time.Time, n note) error {
	if len(b.records) >= maxEntries {
		return errTooLarge
	}
	rec := map[string]any{"id": id, "role": role, "content": content}
	if !at.IsZero() {
		rec["timestamp"] = at.Format(time.RFC3339Nano)
	}
	raw, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("reading record %s: %w", short(id), err)
	}
	b.records = append(b.records, raw)
	b.notes[id] = n
	return nil
}

// said keeps the first words of the user for a title.
func (b *builder) said(text string) {
	if text = strings.TrimSpace(text); b.prompt == "" && text != "" && !strings.HasPrefix(text, "<") {
		b.prompt = text
	}
}

// seen takes in when something was recorded.
func (b *builder) seen(t time.Time) {
	if t.IsZero() {
		return
	}
	if b.s.Created.IsZero() || t.Before(b.s.Created) {
		b.s.Created = t
	}
	if t.After(b.s.Updated) {
		b.s.Updated = t
	}
}

// maxKinds is how many unknown kinds are told apart.
const maxKinds = 20

// strange counts a record or a part of a kind that is not known.
func (b *builder) strange(kind string) {
	if b.unknown == nil {
		b.unknown = map[string]int{}
	}
	if kind = short(kind); b.unknown[kind] == 0 && len(b.unknown) >= maxKinds {
		kind = "others"
	}
	b.unknown[kind]++
}

// warnUnknown says what was left out because nobody knows what it means.
func (b *builder) warnUnknown() {
	for _, kind := range slices.Sorted(maps.Keys(b.unknown)) {
		b.warn(fmt.Sprintf("%d of the kind %q were left out: it is not known", b.unknown[kind], kind))
	}
}

// warn adds warnings, up to maxWarnings.
func (b *builder) warn(list ...string) {
	b.s.Warnings = append(b.s.Warnings, list[:min(len(list), maxWarnings-len(b.s.Warnings))]...)
}

// finish makes the session of its records.
func (b *builder) finish() (Session, error) {
	rep := repair.Records(b.records)
	if rep.Load == repair.Refused {
		return Session{}, errors.New(rep.Reason)
	}
	if !rep.Valid {
		return Session{}, errors.New("no conversation can be made of it")
	}
	b.warn(rep.Warnings...)
	b.warnUnknown()
	if b.s.Title == "" {
		b.s.Title = b.prompt
	}
	b.s.ID, b.s.Title, b.s.Model = short(b.s.ID), short(b.s.Title), short(b.s.Model)
	for _, e := range rep.Entries {
		b.entry(e)
	}
	b.order()
	return b.s, nil
}

// entry adds a record to the entries: answers in a row become one, and what a
// user said is parted from the results in front of it.
func (b *builder) entry(e repair.Entry) {
	m := e.Message(b.name, b.provider)
	n := b.notes[e.ID]
	delete(b.notes, e.ID) // once, when a record was split
	if len(m.Blocks) == 0 {
		return
	}
	if m.Role == agent.Assistant {
		if k := len(b.s.Entries); k > 0 && b.s.Entries[k-1].Message.Role == agent.Assistant {
			last := &b.s.Entries[k-1]
			last.Message.Blocks = append(last.Message.Blocks, m.Blocks...)
			last.Usage = last.Usage.Add(n.usage)
			if n.model != "" {
				last.Model = n.model
			}
			return
		}
		b.s.Entries = append(b.s.Entries, Entry{e.ID, e.Time(), m, n.model, n.usage})
		return
	}
	var results, rest []agent.Block
	for _, x := range m.Blocks {
		if x.Type == agent.ResultBlock {
			results = append(results, x)
		} else {
			rest = append(rest, x)
		}
	}
	b.results(e, results)
	if len(rest) > 0 {
		b.s.Entries = append(b.s.Entries, Entry{ID: e.ID, Time: e.Time(), Message: agent.Message{Role: agent.User, Blocks: rest}})
	}
}

// results adds results to those of the same answer.
func (b *builder) results(e repair.Entry, results []agent.Block) {
	if len(results) == 0 {
		return
	}
	k := len(b.s.Entries) - 1
	if k >= 0 && b.s.Entries[k].Message.Blocks[0].Type == agent.ResultBlock {
		last := &b.s.Entries[k].Message
		last.Blocks = append(last.Blocks, results...)
		return
	}
	b.s.Entries = append(b.s.Entries, Entry{ID: e.ID + "/results", Time: e.Time(), Message: agent.Message{Role: agent.User, Blocks: results}})
}

// order puts results in the order of their calls.
func (b *builder) order() {
	for k := 1; k < len(b.s.Entries); k++ {
		blocks := b.s.Entries[k].Message.Blocks
		if blocks[0].Type != agent.ResultBlock {
			continue
		}
		order := map[string]int{}
		for i, c := range b.s.Entries[k-1].Message.Calls() {
			order[c.ID] = i
		}
		slices.SortStableFunc(blocks, func(x, y agent.Block) int { return order[x.Result.ID] - order[y.Result.ID] })
	}
}

// name returns the canonical name of a tool.
func (b *builder) name(name string) string {
	if b.tool != nil {
		if known := b.tool(name); known != "" {
			return known
		}
	}
	return name
}
