package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash/maphash"
	"regexp"
	"strings"
)

const (
	maxMarks = 4  // cache marks of a request
	lookBack = 20 // blocks in front of a mark in which a written prefix is found

	maxPrefixes = 1 << 16 // written prefixes that are remembered; then all are forgotten
)

// message is a request of the Messages API.
type message struct {
	Model     string            `json:"model"`
	MaxTokens *int              `json:"max_tokens"`
	Stream    bool              `json:"stream"`
	Tools     []json.RawMessage `json:"tools"`
	System    json.RawMessage   `json:"system"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`

	system []json.RawMessage
	turns  []turn // neighbours of one role as one
}

type turn struct {
	role   string
	raw    []json.RawMessage
	blocks []block
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
}

// parse splits contents into blocks.
func (m *message) parse() error {
	var err error
	if m.system, err = blocks(m.System); err != nil {
		return invalid("system: %v", err)
	}
	for i, msg := range m.Messages {
		raw, err := blocks(msg.Content)
		if err != nil {
			return invalid("messages.%d.content: %v", i, err)
		}
		if n := len(m.turns); n == 0 || m.turns[n-1].role != msg.Role {
			m.turns = append(m.turns, turn{role: msg.Role})
		}
		t := &m.turns[len(m.turns)-1]
		for j, r := range raw {
			var b block
			if err := json.Unmarshal(r, &b); err != nil {
				return invalid("messages.%d.content.%d: %v", i, j, err)
			}
			t.raw, t.blocks = append(t.raw, r), append(t.blocks, b)
		}
	}
	return nil
}

// blocks returns the blocks of a content that is a list or a string.
func blocks(content json.RawMessage) ([]json.RawMessage, error) {
	content = bytes.TrimSpace(content)
	if len(content) == 0 {
		return nil, nil
	}
	if content[0] == '"' {
		return []json.RawMessage{json.RawMessage(`{"type":"text","text":` + string(content) + `}`)}, nil
	}
	var list []json.RawMessage
	err := json.Unmarshal(content, &list)
	return list, err
}

// answers counts the answers in a body without parsing it: inside a string the
// quotes would be escaped.
func answers(body []byte) int { return bytes.Count(body, []byte(`"role":"assistant"`)) }

func (m *message) answers() int {
	n := 0
	for _, t := range m.turns {
		if t.role == "assistant" {
			n++
		}
	}
	return n
}

// last returns the text of the last message: user text and tool results.
func (m *message) last() string {
	if len(m.turns) == 0 {
		return ""
	}
	var text strings.Builder
	for _, b := range m.turns[len(m.turns)-1].blocks {
		text.WriteString(b.Text)
		parts, _ := blocks(b.Content) // what is no content has no text
		for _, p := range parts {
			var inner block
			_ = json.Unmarshal(p, &inner)
			text.WriteString(inner.Text)
		}
		text.WriteByte('\n')
	}
	return text.String()
}

var toolName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// check refuses what the API refuses.
func (m *message) check() error {
	switch {
	case m.Model == "":
		return invalid("model: field required")
	case m.MaxTokens == nil || *m.MaxTokens < 1:
		return invalid("max_tokens: field required, at least 1")
	case !m.Stream:
		return invalid("stream: the scripted model only streams")
	case len(m.turns) == 0 || m.turns[0].role != "user":
		return invalid("messages: the first message must be the user's")
	}
	marks := 0
	for i, raw := range m.Tools {
		var tool struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil || !toolName.MatchString(tool.Name) || !object(tool.Schema) {
			return invalid("tools.%d: needs a name that fits %s and an input_schema", i, toolName)
		}
		marks += marked(raw)
	}
	for i, raw := range m.system {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil || b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return invalid("system.%d: must be a text block that is not empty", i)
		}
		marks += marked(raw)
	}
	for i, t := range m.turns {
		n, err := m.checkTurn(i, t)
		if err != nil {
			return err
		}
		marks += n
	}
	if marks > maxMarks {
		return invalid("a maximum of %d blocks with cache_control may be provided, found %d", maxMarks, marks)
	}
	return nil
}

// checkTurn checks one turn and counts its cache marks.
func (m *message) checkTurn(i int, t turn) (marks int, err error) {
	if t.role != "user" && t.role != "assistant" {
		return 0, invalid("messages.%d: unknown role %q", i, t.role)
	}
	if len(t.blocks) == 0 {
		return 0, invalid("messages.%d: content must not be empty", i)
	}
	for j, b := range t.blocks {
		n := marked(t.raw[j])
		marks += n
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return 0, invalid("messages.%d.content.%d: text blocks must not be empty", i, j)
			}
		case "thinking":
			if t.role != "assistant" || b.Signature != sign(b.Thinking) {
				return 0, invalid("messages.%d.content.%d: invalid `signature` in `thinking` block", i, j)
			}
		case "redacted_thinking":
			if t.role != "assistant" || b.Data == "" {
				return 0, invalid("messages.%d.content.%d: invalid data in redacted_thinking block", i, j)
			}
		case "tool_use":
			if t.role != "assistant" || !toolName.MatchString(b.Name) || !object(b.Input) || b.ID == "" {
				return 0, invalid("messages.%d.content.%d: tool_use needs id, name and an object as input", i, j)
			}
		case "tool_result":
			if t.role != "user" {
				return 0, invalid("messages.%d.content.%d: tool_result belongs into a user message", i, j)
			}
			if content := string(bytes.TrimSpace(b.Content)); b.IsError && (content == "" || content == `""` || content == "[]") {
				return 0, invalid("messages.%d.content.%d: content cannot be empty if `is_error` is true", i, j)
			}
		}
		if n > 0 && strings.HasSuffix(b.Type, "thinking") {
			return 0, invalid("messages.%d.content.%d: thinking blocks cannot have cache_control", i, j)
		}
	}
	return marks, m.pair(i)
}

// pair checks that the results of turn i answer the calls of the turn before,
// each exactly once, and in front of everything else.
func (m *message) pair(i int) error {
	t := m.turns[i]
	open := map[string]bool{}
	if i > 0 {
		for _, b := range m.turns[i-1].blocks {
			if b.Type == "tool_use" {
				if open[b.ID] {
					return invalid("messages.%d: `tool_use` ids must be unique: %s", i-1, b.ID)
				}
				open[b.ID] = true
			}
		}
	}
	other := false
	for j, b := range t.blocks {
		if b.Type != "tool_result" {
			other = true
			continue
		}
		if !open[b.ToolUseID] {
			return invalid("messages.%d.content.%d: unexpected `tool_use_id` in `tool_result`: %s", i, j, b.ToolUseID)
		}
		if other {
			return invalid("messages.%d.content.%d: tool results must come first", i, j)
		}
		delete(open, b.ToolUseID)
	}
	if len(open) > 0 {
		for id := range open {
			return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i-1, id)
		}
	}
	if t.role == "assistant" && i == len(m.turns)-1 {
		for _, b := range t.blocks {
			if b.Type == "tool_use" {
				return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i, b.ID)
			}
		}
	}
	return nil
}

func object(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// sign returns the signature of a thinking block.
func sign(thinking string) string {
	sum := sha256.Sum256([]byte("scripted thinking\x00" + thinking))
	return hex.EncodeToString(sum[:])
}

var markPattern = regexp.MustCompile(`,?\s*"cache_control"\s*:\s*\{[^{}]*\}`)

func marked(raw []byte) int {
	if bytes.Contains(raw, []byte(`"cache_control":`)) && markPattern.Match(raw) {
		return 1
	}
	return 0
}

// usage is what a request costs to read.
type usage struct{ input, read, write int }

func tokens(bytes int) int { return (bytes + 3) / 4 }

// cache remembers the prefixes that marks have asked to keep.
type cache struct {
	seed     maphash.Seed
	prefixes map[uint64]bool
}

// count says how much of a request is in the cache, and puts into the cache
// what its marks ask for.
func (c *cache) count(m message) usage {
	if c.prefixes == nil || len(c.prefixes) > maxPrefixes {
		c.seed, c.prefixes = maphash.MakeSeed(), make(map[uint64]bool)
	}
	all := append(append([]json.RawMessage{}, m.Tools...), m.system...)
	for _, t := range m.turns {
		all = append(all, t.raw...)
	}
	hashes, sizes := make([]uint64, len(all)), make([]int, len(all))
	var at []int // blocks with a mark
	var sum uint64
	size := 0
	for i, raw := range all {
		if marked(raw) > 0 {
			raw = markPattern.ReplaceAll(raw, nil)
			at = append(at, i)
		}
		var h maphash.Hash
		h.SetSeed(c.seed)
		_, _ = h.Write([]byte{byte(sum), byte(sum >> 8), byte(sum >> 16), byte(sum >> 24), byte(sum >> 32), byte(sum >> 40), byte(sum >> 48), byte(sum >> 56)})
		_, _ = h.Write(raw)
		sum = h.Sum64()
		size += len(raw)
		hashes[i], sizes[i] = sum, size
	}
	read, write := 0, 0
	for _, i := range at {
		for j := i; j >= max(0, i-lookBack+1); j-- {
			if c.prefixes[hashes[j]] {
				read = max(read, sizes[j])
				break
			}
		}
		write = sizes[i]
	}
	for _, i := range at {
		c.prefixes[hashes[i]] = true
	}
	return usage{input: tokens(size - max(write, read)), read: tokens(read), write: tokens(max(write-read, 0))}
}
