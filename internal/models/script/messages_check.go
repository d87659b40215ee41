package script

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

const (
	maxMarks = 4  // cache marks of a request
	lookBack = 20 // blocks in front of a mark in which a written prefix is found
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
	Source    json.RawMessage `json:"source"`
	IsError   bool            `json:"is_error"`
}

// otherBlocks are the types of blocks that are taken as they are, beside those
// that end in _tool_result: what the provider's own tools leave.
var otherBlocks = []string{"server_tool_use", "mcp_tool_use", "search_result", "container_upload", "compaction"}

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

var (
	toolName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	})
	useID = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	})
)

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
	marks, err := m.checkHead()
	if err != nil {
		return err
	}
	made := map[string]bool{}
	for i, t := range m.turns {
		n, err := m.checkTurn(i, t, made)
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

// checkHead checks tools and system, and counts their cache marks.
func (m *message) checkHead() (marks int, err error) {
	var names []string
	for i, raw := range m.Tools {
		var tool struct {
			Name   string          `json:"name"`
			Schema json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(raw, &tool); err != nil || !toolName().MatchString(tool.Name) || !object(tool.Schema) {
			return 0, invalid("tools.%d: needs a name that fits %s and an input_schema", i, toolName())
		}
		if slices.Contains(names, tool.Name) {
			return 0, invalid("tools.%d: tool names must be unique: %s", i, tool.Name)
		}
		names = append(names, tool.Name)
		marks += marked(raw)
	}
	for i, raw := range m.system {
		var b block
		if err := json.Unmarshal(raw, &b); err != nil || b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return 0, invalid("system.%d: must be a text block that is not empty", i)
		}
		marks += marked(raw)
	}
	return marks, nil
}

// checkTurn checks one turn and counts its cache marks. made are the IDs of the
// calls before.
func (m *message) checkTurn(i int, t turn, made map[string]bool) (marks int, err error) {
	if t.role != "user" && t.role != "assistant" {
		return 0, invalid("messages.%d: unknown role %q", i, t.role)
	}
	if len(t.blocks) == 0 {
		return 0, invalid("messages.%d: content must not be empty", i)
	}
	for j, b := range t.blocks {
		if why := b.check(t.role); why != "" {
			return 0, invalid("messages.%d.content.%d: %s", i, j, why)
		}
		n := marked(t.raw[j])
		if n > 0 && strings.HasSuffix(b.Type, "thinking") {
			return 0, invalid("messages.%d.content.%d: thinking blocks cannot have cache_control", i, j)
		}
		if b.Type == "tool_use" {
			if made[b.ID] {
				return 0, invalid("messages.%d.content.%d: `tool_use` ids must be unique: %s", i, j, b.ID)
			}
			made[b.ID] = true
		}
		marks += n
	}
	return marks, m.pair(i)
}

// check returns what is wrong with a block in a message of a role.
func (b block) check(role string) string {
	switch b.Type {
	case "text":
		if strings.TrimSpace(b.Text) == "" {
			return "text blocks must not be empty"
		}
	case "thinking":
		if role != "assistant" || b.Signature != sign(b.Thinking) {
			return "invalid `signature` in `thinking` block"
		}
	case "redacted_thinking":
		if role != "assistant" || b.Data == "" {
			return "invalid data in redacted_thinking block"
		}
	case "tool_use":
		if role != "assistant" || !toolName().MatchString(b.Name) || !object(b.Input) {
			return "tool_use needs a name and an object as input"
		}
		if !useID().MatchString(b.ID) {
			return "tool_use.id: string should match pattern " + useID().String()
		}
	case "tool_result":
		return b.checkResult(role)
	case "image", "document":
		return b.checkSource(role)
	default:
		if !slices.Contains(otherBlocks, b.Type) && !strings.HasSuffix(b.Type, "_tool_result") {
			return "unknown type " + b.Type
		}
	}
	return ""
}

func (b block) checkResult(role string) string {
	if role != "user" {
		return "tool_result belongs into a user message"
	}
	if content := string(bytes.TrimSpace(b.Content)); b.IsError && (content == "" || content == `""` || content == "[]") {
		return "content cannot be empty if `is_error` is true"
	}
	parts, err := blocks(b.Content)
	if err != nil {
		return "content: " + err.Error()
	}
	for _, raw := range parts {
		var part block
		if err := json.Unmarshal(raw, &part); err != nil {
			return "content: " + err.Error()
		}
		if part.Type == "text" && len(bytes.TrimSpace(b.Content)) > 0 && bytes.TrimSpace(b.Content)[0] == '"' {
			continue // a result that is a string may be blank
		}
		if !slices.Contains([]string{"text", "image", "document", "search_result"}, part.Type) {
			return "a result cannot hold a block of type " + part.Type
		}
		if why := part.check(role); why != "" {
			return "content: " + why
		}
	}
	return ""
}

// checkSource checks where an image or a document comes from.
func (b block) checkSource(role string) string {
	var s struct {
		Type  string          `json:"type"`
		Media string          `json:"media_type"`
		Data  string          `json:"data"`
		URL   string          `json:"url"`
		File  string          `json:"file_id"`
		Inner json.RawMessage `json:"content"`
	}
	if role != "user" {
		return b.Type + " belongs into a user message"
	}
	if err := json.Unmarshal(b.Source, &s); err != nil {
		return "source: " + err.Error()
	}
	image := []string{"image/jpeg", "image/png", "image/gif", "image/webp"}
	switch {
	case s.Type == "base64" && s.Data != "" && (b.Type == "image" && slices.Contains(image, s.Media) || b.Type == "document" && s.Media == "application/pdf"):
	case s.Type == "text" && b.Type == "document" && s.Data != "" && s.Media == "text/plain":
	case s.Type == "url" && s.URL != "", s.Type == "file" && s.File != "", s.Type == "content" && len(s.Inner) > 0:
	default:
		return "source: unknown type, media_type or no data"
	}
	return ""
}

// pair checks that the results of turn i answer the calls of the turn before,
// each exactly once, and in front of everything else.
func (m *message) pair(i int) error {
	t := m.turns[i]
	open := map[string]bool{}
	if i > 0 {
		for _, b := range m.turns[i-1].blocks {
			if b.Type == "tool_use" {
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
	for id := range open {
		return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i-1, id)
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

// markPattern matches a cache mark.
var markPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"cache_control"\s*:\s*\{[^{}]*\}`)
})

func marked(raw []byte) int {
	if hasMark(raw, markPattern()) {
		return 1
	}
	return 0
}
