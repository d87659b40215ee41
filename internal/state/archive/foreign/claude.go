package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// A node is an entry of a Claude Code transcript that has a place in the tree of
// its entries. Records of one answer follow each other, and so do, as branches,
// the results of calls that ran beside each other.
type node struct {
	at       int // in the file
	id       string
	parent   string
	kind     string // user, assistant, system, attachment, progress
	side     bool   // of a sub-agent, or for the screen alone
	boundary bool   // a compaction; what is above it is gone
	content  json.RawMessage
	answer   string // ID of the provider's answer
	time     time.Time
	note     note
	calls    []string
	results  []string
}

// A tree is a Claude Code transcript.
type tree struct {
	nodes  []*node
	byID   map[string]*node
	titles [3]string // by the user, by a model, of a summary
	b      *builder

	attached int // entries that the product has added by itself: files, reminders
	outside  int // entries that have no place in the conversation
}

// readClaude reads the JSONL of Claude Code: entries with uuid and parentUuid,
// and entries about the session, which have a type of their own.
func readClaude(r io.Reader, b *builder) error {
	b.provider = "anthropic"
	t := &tree{byID: map[string]*node{}, b: b}
	count := 0
	rep, err := repair.Scan(r, func(raw json.RawMessage) bool {
		count++
		t.take(object(raw))
		return count <= maxEntries
	})
	if err != nil {
		return err
	}
	if rep.Load == repair.Refused {
		return fmt.Errorf("%s", rep.Reason)
	}
	if count > maxEntries {
		return errTooLarge
	}
	b.warn(rep.Warnings...)
	for _, title := range t.titles {
		if b.s.Title == "" {
			b.s.Title = title
		}
	}
	for _, n := range t.conversation() {
		if err := b.add(n.id, n.kind, n.content, n.time, n.note); err != nil {
			return err
		}
	}
	if t.attached > 0 {
		b.warn(fmt.Sprintf("%d attachments were left out: files and reminders that the product has added by itself", t.attached))
	}
	if t.outside > 0 {
		b.warn(fmt.Sprintf("%d messages are not part of the conversation as it stands: other branches, sub-agents, or what came before the last compaction", t.outside))
	}
	return nil
}

// take takes in one line.
func (t *tree) take(f fields) {
	kind, id := f.str("type"), f.str("uuid")
	switch kind {
	case "custom-title":
		t.titles[0] = f.str("customTitle")
	case "ai-title":
		t.titles[1] = f.str("aiTitle")
	case "summary":
		t.titles[2] = f.str("summary")
	case "attachment":
		t.attached++
	case "user", "assistant", "system", "progress":
	case "last-prompt", "tag", "queue-operation", "file-history-snapshot", "content-replacement", "permission-mode", "agent-name", "agent-color":
		return // about the session, and nothing that was said
	default:
		t.b.strange(kind)
		return
	}
	if id == "" || t.byID[id] != nil {
		return
	}
	n := &node{
		at: len(t.nodes), id: id, parent: f.str("parentUuid"), kind: kind, time: f.when("timestamp"),
		side:     f.yes("isSidechain") || f.yes("isMeta") || f.yes("isVisibleInTranscriptOnly") || f.yes("isApiErrorMessage") || f.str("teamName") != "",
		boundary: f.str("subtype") == "compact_boundary",
	}
	t.nodes, t.byID[id] = append(t.nodes, n), n
	if !n.side {
		t.b.seen(n.time)
		if t.b.s.Workdir == "" {
			t.b.s.Workdir = f.str("cwd")
		}
		if t.b.s.ID == "" {
			t.b.s.ID = f.str("sessionId")
		}
	}
	t.message(n, object(f["message"]))
}

// message reads the message of an entry, which has the form of the API.
func (t *tree) message(n *node, m fields) {
	if !n.speaks() {
		return
	}
	n.content = bytes.Clone(m["content"])
	for _, raw := range list(n.content) {
		switch f := object(raw); f.str("type") {
		case "tool_use":
			n.calls = append(n.calls, f.str("id"))
		case "tool_result":
			n.results = append(n.results, f.str("tool_use_id"))
		case "text":
			if n.kind == "user" {
				t.b.said(f.str("text"))
			}
		}
	}
	if n.kind == "user" {
		t.b.said(fields{"text": n.content}.str("text"))
		return
	}
	n.answer = m.str("id")
	n.note.model = short(m.str("model"))
	u := object(m["usage"])
	n.note.usage = agent.Usage{
		Input: u.count("input_tokens"), Output: u.count("output_tokens"),
		CacheRead: u.count("cache_read_input_tokens"), CacheWrite: u.count("cache_creation_input_tokens"),
		CacheHour: object(u["cache_creation"]).count("ephemeral_1h_input_tokens"),
	}
}

// speaks reports whether the entry is a message of the conversation.
func (n *node) speaks() bool { return !n.side && (n.kind == "user" || n.kind == "assistant") }

// conversation returns the messages from the last compaction to the newest one,
// without the branches that were left.
func (t *tree) conversation() []*node {
	var chain []*node
	met := map[*node]bool{}
	for n := t.leaf(); n != nil && !met[n]; n = t.above(n) {
		met[n] = true
		chain = append(chain, n)
		if n.boundary {
			break
		}
	}
	slices.Reverse(chain)
	chain = t.adopt(chain, met)
	var out []*node
	for _, n := range chain {
		if n.speaks() {
			out = append(out, n)
		}
	}
	said := 0
	for _, n := range t.nodes {
		if n.kind == "user" || n.kind == "assistant" {
			said++
		}
	}
	t.outside = said - len(out)
	t.count(out)
	return out
}

// leaf returns the newest message.
func (t *tree) leaf() *node {
	for _, n := range slices.Backward(t.nodes) {
		if n.speaks() {
			return n
		}
	}
	return nil
}

// above returns what n follows. When that line is lost, it is the message in
// front of n in the file.
func (t *tree) above(n *node) *node {
	if n.parent == "" {
		return nil
	}
	if p := t.byID[n.parent]; p != nil {
		return p
	}
	for _, p := range slices.Backward(t.nodes[:n.at]) {
		if p.speaks() || p.boundary {
			t.b.warn(fmt.Sprintf("entry %.40q follows one that is missing; the one in front of it was taken", n.id))
			return p
		}
	}
	return nil
}

// adopt adds the branches that are a part of the chain all the same: the other
// records of an answer in it, and the results of its calls. Entries are written in
// the order in which they come, so that is where these belong.
func (t *tree) adopt(chain []*node, met map[*node]bool) []*node {
	if !slices.IsSortedFunc(chain, byPlace) {
		return chain
	}
	answers, calls, answered := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, n := range chain {
		answers[n.answer] = n.answer != "" && n.speaks()
		for _, id := range n.results {
			answered[id] = true
		}
	}
	for _, n := range t.nodes {
		if n.speaks() && !met[n] && answers[n.answer] {
			met[n] = true
			chain = append(chain, n)
		}
	}
	for _, n := range chain {
		for _, id := range n.calls {
			calls[id] = true
		}
	}
	for _, n := range t.nodes {
		if n.speaks() && !met[n] && slices.ContainsFunc(n.results, func(id string) bool { return calls[id] && !answered[id] }) {
			met[n] = true
			chain = append(chain, n)
			for _, id := range n.results {
				answered[id] = true
			}
		}
	}
	slices.SortStableFunc(chain, byPlace)
	return chain
}

func byPlace(a, b *node) int { return a.at - b.at }

// count leaves the usage of an answer with the last of its records: each has the
// same, or what it was so far. The session's model is the newest one.
func (t *tree) count(nodes []*node) {
	counted := map[string]bool{}
	for _, n := range slices.Backward(nodes) {
		if n.kind != "assistant" {
			continue
		}
		if t.b.s.Model == "" {
			t.b.s.Model = n.note.model
		}
		if n.answer != "" && counted[n.answer] {
			n.note.usage = agent.Usage{}
		}
		counted[n.answer] = true
	}
}
