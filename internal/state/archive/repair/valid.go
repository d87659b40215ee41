package repair

import (
	"fmt"
	"strings"
)

// Valid checks entries against the rules that providers have for messages, the
// strictest for each. Neighbours of one role count as one message, as providers
// take them and adapters send them. No entries are valid: the next input begins
// the conversation.
func Valid(entries []Entry) error { return valid(entries, false) }

func valid(entries []Entry, loose bool) error {
	if len(entries) > 0 && entries[0].Role != user {
		return fmt.Errorf("record %.80q: the first message must be the user's", entries[0].ID)
	}
	v := validator{made: map[string]bool{}, open: map[string]bool{}, loose: loose}
	for _, e := range entries {
		if err := v.entry(e); err != nil {
			return fmt.Errorf("record %.80q: %w", e.ID, err)
		}
	}
	if err := v.ended(); err != nil {
		return err
	}
	return v.answered()
}

// ended checks a message of the assistant that is over.
func (v *validator) ended() error {
	if v.role == assistant && v.mind && !v.loose {
		return fmt.Errorf("an answer must not end with thinking")
	}
	return nil
}

// A validator walks a conversation.
type validator struct {
	made map[string]bool // IDs of all calls
	open map[string]bool // of those without a result
	role string          // of the message so far
	said bool            // it has something that is no result
	mind bool            // it ends with thinking

	loose bool // see Options
}

func (v *validator) entry(e Entry) error {
	if e.Role != user && e.Role != assistant {
		return fmt.Errorf("unknown role %.40q", e.Role)
	}
	if len(e.Content) == 0 {
		return fmt.Errorf("content must not be empty")
	}
	if e.Role != v.role {
		if err := v.ended(); err != nil {
			return err
		}
		if v.role == user {
			if err := v.answered(); err != nil {
				return err
			}
		}
		v.role, v.said = e.Role, false
	}
	for _, b := range e.Content {
		if err := v.block(b); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) answered() error {
	for id := range v.open {
		return fmt.Errorf("call %.80q has no result in the message behind it", id)
	}
	return nil
}

func (v *validator) block(b Block) error {
	f := readFields(b.Raw)
	v.mind = b.Type == thinkingBlock || b.Type == sealedBlock
	switch b.Type {
	case textBlock:
		if strings.TrimSpace(f.str("text")) == "" {
			return fmt.Errorf("text must not be empty")
		}
	case callBlock:
		return v.call(f)
	case resultBlock:
		return v.result(f)
	case imageBlock, documentBlock:
		if source := readFields(f["source"]); v.role != user || source == nil || !v.loose && !readable(b.Type, source) {
			return fmt.Errorf("an %s needs a source and belongs into a user message", b.Type)
		}
	case thinkingBlock, sealedBlock:
		if v.role != assistant {
			return fmt.Errorf("%s belongs into an assistant message", b.Type)
		}
		if b.Type == thinkingBlock && f.str("signature") == "" && !v.loose {
			return fmt.Errorf("thinking must be signed")
		}
	default:
		return fmt.Errorf("unknown kind of block %.40q", b.Type)
	}
	v.said = v.said || v.role == user
	if v.role == user && len(v.open) > 0 {
		return fmt.Errorf("results must come first in the message behind their calls")
	}
	return nil
}

func (v *validator) call(f fields) error {
	id, name := f.str("id"), f.str("name")
	switch {
	case v.role != assistant:
		return fmt.Errorf("a call belongs into an assistant message")
	case id == "" || fitID(id) != id || v.made[id]:
		return fmt.Errorf("the ID of a call must be new, and of letters, digits, _ and -: %.80q", id)
	case name == "" || fitting(name, 64) != name:
		return fmt.Errorf("no name for a tool: %.80q", name)
	case readFields(f["input"]) == nil:
		return fmt.Errorf("the input of call %.80q must be an object", id)
	}
	v.made[id], v.open[id] = true, true
	return nil
}

func (v *validator) result(f fields) error {
	id := f.str("tool_use_id")
	content := string(f["content"])
	switch {
	case v.role != user || v.said:
		return fmt.Errorf("results must come first in the message behind their calls")
	case !v.open[id]:
		return fmt.Errorf("result for %.80q: there is no such call in the message before, or it has one", id)
	case string(f["is_error"]) == "true" && (content == "" || content == `""` || content == "[]"):
		return fmt.Errorf("the failure of call %.80q must say something", id)
	}
	delete(v.open, id)
	return nil
}
