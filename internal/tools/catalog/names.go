package catalog

import (
	"fmt"
	"strings"
)

// maxName is what every provider of models accepts as the name of a tool.
const maxName = 64

// fits reports whether a name is 1 to maxName letters, digits, _ or -.
func fits(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxName
}

// mcpPrefix marks the tools of MCP servers, whose names have three parts:
// mcp__server__tool.
const mcpPrefix = "mcp__"

// checkName reports what is wrong with a canonical name. A name is
// resource__export, and neither part contains "__"; or mcp__server__tool, where
// only the server does not.
func checkName(name string) error {
	if !fits(name) {
		return fmt.Errorf("tool name %q has to be 1 to %d letters, digits, _ or -", name, maxName)
	}
	if rest, ok := strings.CutPrefix(name, mcpPrefix); ok {
		server, tool, ok := strings.Cut(rest, "__")
		if !ok || server == "" || tool == "" {
			return fmt.Errorf("tool name %q is not mcp__server__tool", name)
		}
		return nil
	}
	resource, export, ok := strings.Cut(name, "__")
	if !ok || resource == "" || export == "" || strings.Contains(export, "__") {
		return fmt.Errorf("tool name %q is not resource__export", name)
	}
	return nil
}
