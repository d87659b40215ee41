package app

import (
	"slices"

	"dure/internal/extend/mcp"
)

// serverOf returns the server of a tool, and where that is defined; "" = it is none of a server.
func (c *connected) serverOf(tool string) (name, source string) {
	if c == nil {
		return "", ""
	}
	for _, t := range c.set.Tools() {
		own, ok := t.(*mcp.Tool)
		if !ok || t.Spec().Name != tool {
			continue
		}
		for _, s := range c.set.Status() {
			if s.Server.Name == own.Server() {
				return s.Server.Name, s.Server.Scope
			}
		}
	}
	return "", ""
}

// toolOf returns the name of a tool of a server, and whether that is connected.
func (c *connected) toolOf(server, tool string) (name string, up bool) {
	if c == nil {
		return "", false
	}
	up = slices.ContainsFunc(c.set.Status(), func(s mcp.Status) bool { return s.Server.Name == server && s.State == mcp.Connected })
	for _, t := range c.set.Tools() {
		if own, ok := t.(*mcp.Tool); ok && own.Server() == server && own.Remote() == tool {
			return t.Spec().Name, up
		}
	}
	return "", up
}
