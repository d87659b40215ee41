package compact

import (
	"strings"

	"dure/agent"
)

// Part is a share of the window.
type Part struct {
	Name   string `json:"name"` // see the constants
	Tokens int    `json:"tokens"`
}

// The parts of a window, in the order in which they are shown.
const (
	PartSystem   = "system_prompt"
	PartTools    = "system_tools"
	PartServers  = "mcp_tools"
	PartDeferred = "mcp_tools_deferred"
	PartAgents   = "custom_agents"
	PartMemory   = "memory_files"
	PartMentions = "mentions"
	PartLessons  = "lessons"
	PartHooks    = "hooks"
	PartSkills   = "skills"
	PartMessages = "messages"
	PartBuffer   = "autocompact_buffer"
	PartFree     = "free_space"
)

var parts = []string{PartSystem, PartTools, PartServers, PartDeferred, PartAgents, PartMemory, PartMentions, PartLessons, PartHooks, PartSkills, PartMessages}

// Breakdown returns what fills a window, part by part, with what is left: the space
// that a compaction keeps free, and the rest. tokens has what is known of the parts;
// those without are left out.
func (o Options) Breakdown(tokens map[string]int, window int) []Part {
	o = o.withDefaults()
	var all []Part
	used := 0
	for _, name := range parts {
		if n := tokens[name]; n > 0 {
			all = append(all, Part{name, n})
			if name != PartDeferred { // it is not in the request
				used += n
			}
		}
	}
	if window <= 0 {
		return all
	}
	buffer := min(window-o.trigger(window), max(0, window-used))
	return append(all, Part{PartBuffer, buffer}, Part{PartFree, max(0, window-used-buffer)})
}

// PartOf is the part that a message belongs to, by its origin.
func PartOf(m agent.Message) string {
	source, _, _ := strings.Cut(m.Origin, ":")
	switch source {
	case "memory", "rules":
		return PartMemory
	case "mention", "mentions":
		return PartMentions
	case "lessons":
		return PartLessons
	case "hook":
		return PartHooks
	}
	return PartMessages
}
