package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// maxName is what every provider of models accepts as the name of a tool.
const maxName = 64

var namePattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// mcpPrefix marks the tools of MCP servers, whose names have three parts:
// mcp__server__tool.
const mcpPrefix = "mcp__"

// CheckName reports what is wrong with a canonical name. A name is
// resource__export, and neither part contains "__"; or mcp__server__tool, where
// only the server does not.
func CheckName(name string) error {
	if !namePattern.MatchString(name) {
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

// MCPName returns the canonical name of a tool of an MCP server. Characters that
// a name cannot have become "_". A name that had to be changed or shortened ends
// in a hash of the original, so that two tools never share one and the same tool
// always has the same name.
func MCPName(server, tool string) string {
	s, t := clean(server), clean(tool)
	for strings.Contains(s, "__") { // the first "__" behind mcp__ ends the server
		s = strings.ReplaceAll(s, "__", "_")
	}
	s = strings.Trim(s, "_")
	if s == "" {
		s = "server"
	}
	if t == "" {
		t = "tool"
	}
	name := mcpPrefix + s + "__" + t
	if s == server && t == tool && len(name) <= maxName && !strings.HasPrefix(t, "_") {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	hash := "_" + hex.EncodeToString(sum[:4])
	s = s[:min(len(s), 24)]
	name = mcpPrefix + strings.TrimRight(s, "_") + "__" + strings.TrimLeft(t, "_")
	return name[:min(len(name), maxName-len(hash))] + hash
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, s)
}
