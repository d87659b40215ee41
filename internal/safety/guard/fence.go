package guard

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"dure/agent"
)

// fenced returns the text of a result. What came from outside stands between
// lines with a mark when it looks like structure: like our own notices, or like
// what templates make of a conversation. What we add stands outside. The author of
// an output cannot know its mark: it is made with a secret of the session, of the
// call and of what is shown. It is returned, too; "" = there is none.
func (c *checking) fenced(call agent.Call, p parts) (text, mark string) {
	if p.own || !p.posed && !poses(p.head, c.spec.Group) && !poses(p.tail, c.spec.Group) {
		return p.head + p.notice + p.tail, ""
	}
	mark = c.mark(call, p.head, p.tail)
	begin, end := agent.FenceLines(mark)
	text = begin + p.head + end
	if p.notice != "" {
		text += p.notice + begin + p.tail + end
	}
	return text, mark
}

// mark returns the mark of what is shown.
func (c *checking) mark(call agent.Call, shown ...string) string {
	h := hmac.New(sha256.New, c.Secret)
	for _, s := range append(shown, call.ID) {
		sum := sha256.Sum256([]byte(s))
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// fenceBlocks fences the texts that a model reads after the text of a result, by
// the mark of that if it has one.
func (c *checking) fenceBlocks(call agent.Call, r *agent.Result) {
	for i, b := range r.Blocks {
		if b.Type != agent.TextBlock || !poses(b.Text, c.spec.Group) {
			continue
		}
		if r.Fence == "" {
			r.Fence = c.mark(call, b.Text)
		}
		begin, end := agent.FenceLines(r.Fence)
		r.Blocks = slices.Clone(r.Blocks)
		r.Blocks[i].Text = begin + b.Text + end
	}
}

// Beginnings of what poses as structure, in small letters.
var (
	// posingTags stand behind < or </.
	posingTags = []string{
		"system", "system-reminder", "system_reminder", "assistant", "human", "user", "function_results", "function_result", "function_calls",
		"function_call", "tool_result", "tool_results", "tool_use", "tool_call", "tool_calls", "tool_response", "tool_output", "invoke",
		"start_of_turn", "end_of_turn", "think", "thinking", "instructions", "important", "command-name", "command-message", "output",
	}

	// posingNotes stand at the start of a line.
	posingNotes = []string{
		"[... ", "[output ", "[end of output", "[output truncated", "[truncated", "[binary output", "[result withheld", "[task ", "[system]", "[system:", "[system ",
		"[assistant]", "[assistant:", "[user]", "[user:", "[human]", "[human:", "[tool]", "[tool:", "[tool_", "[available_tools",
		"### instruction", "### response", "### system", "### human", "### assistant", "### user", "<<sys",
	}

	// posingFrames are those of the web's tools, which frame pages themselves.
	posingFrames = []string{"[untrusted content", "[end of untrusted content"}

	// posingRoles stand at the start of a line, with a capital.
	posingRoles = []string{"Human:", "Assistant:", "System:", "User:", "HUMAN:", "ASSISTANT:", "SYSTEM:", "USER:"}
)

// poses reports whether there is something in a text that looks like structure.
func poses(s, group string) bool {
	start := true // of a line
	for i := 0; i < len(s); i++ {
		if start {
			i += len(s[i:]) - len(strings.TrimLeft(s[i:], " \t>|*0123456789")) // numbers and quotes
			if i >= len(s) {
				return false
			}
			if posesLine(s[i:], group) {
				return true
			}
		}
		switch s[i] {
		case '<':
			if posesTag(s[i+1:]) {
				return true
			}
		case '[':
			if hasPrefix(s[i:], "[inst]") || hasPrefix(s[i:], "[/inst]") {
				return true
			}
		}
		start = s[i] == '\n'
	}
	return false
}

func posesLine(s, group string) bool {
	switch s[0] {
	case '[', '#', '<':
		for _, note := range posingNotes {
			if hasPrefix(s, note) {
				return true
			}
		}
		if group != "web" {
			for _, frame := range posingFrames {
				if hasPrefix(s, frame) {
					return true
				}
			}
		}
	case 'H', 'A', 'S', 'U':
		for _, role := range posingRoles {
			if rest, ok := strings.CutPrefix(s, role); ok && (rest == "" || rest[0] == ' ' || rest[0] == '\n' || rest[0] == '\t') {
				return true
			}
		}
	}
	return false
}

// posesTag looks at what stands behind a <.
func posesTag(s string) bool {
	if rest, ok := strings.CutPrefix(s, "|"); ok {
		end := strings.Index(rest[:min(len(rest), 48)], "|>")
		return end > 0 && !strings.ContainsAny(rest[:end], " \n")
	}
	if strings.HasPrefix(s, "｜") {
		return true
	}
	s = strings.TrimPrefix(s, "/")
	if hasPrefix(s, "antml:") {
		return true
	}
	for _, tag := range posingTags {
		if hasPrefix(s, tag) && (len(s) == len(tag) || strings.IndexByte("> \t\n/:", s[len(tag)]) >= 0) {
			return true
		}
	}
	return false
}

// hasPrefix reports whether s begins with prefix, whatever the case of its letters.
func hasPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
