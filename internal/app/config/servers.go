package config

import (
	"encoding/json"

	"dure/internal/base/keys/secret"
	"dure/internal/extend/mcp/servers"
)

// MCP is what the settings say of servers of the Model Context Protocol. What they mean is
// for others to say.
type MCP struct {
	Sources []RawServers // the weaker layers before the stronger
	servers.Settings
}

// RawServers is the value of "mcpServers" in one source.
type RawServers struct {
	Layer  Layer
	File   string // "" = it is in no file
	Line   int    // where JSON begins in it; 0 = that is not known
	Theirs bool   // the file is one of a .claude folder
	JSON   secret.Text
}

// maxServerList bounds each list about servers.
const maxServerList = 1000

// servers adds those of a layer.
func (l *loader) servers(e entry) error {
	if e.refused() {
		return nil
	}
	line, _ := e.ly.position(e.ly.where(e.path))
	to := &l.cfg.MCP
	to.Sources = append(to.Sources, RawServers{Layer: e.ly.kind, File: e.ly.path, Line: line, Theirs: e.ly.compat, JSON: secret.Text(e.said.raw)})
	e.set(false)
	return nil
}

func (l *loader) allowedServers(e entry) error {
	var all []json.RawMessage
	if err := e.decode(&all); err != nil || e.refused() {
		return err
	}
	e.set(false)
	l.cfg.MCP.Allowed = &all
	return nil
}
