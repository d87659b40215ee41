package mcp

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/extend/mcp/servers"
)

// What variables of a definition hold is told to nobody: not by errors, which name the whole
// address, not by what a program last said, and not by what a server says of itself.
func TestValuesOfVariablesAreHidden(t *testing.T) {
	const key, short = "k3y/with+signs", "on"
	values := map[string]string{"KEY": key, "SHORT": short, "CLAUDE_PROJECT_DIR": "/home/somebody"}
	r := newRig(t)
	r.scripts["says"] = func(p *peer, m message) bool {
		switch m.Method {
		case "tools/list":
			p.reply(m, fmt.Sprintf(`{"tools":[{"name":"t","description":"takes %s on","inputSchema":{"type":"object"}}]}`, key))
		case "tools/call":
			p.fail(m, 1, "the key "+key+" is wrong in /home/somebody")
		default:
			return false
		}
		return true
	}
	r.refuse["gone"] = fmt.Errorf("no program for %s", key)
	var log strings.Builder
	list := append(stdio("says", "gone"), servers.Server{Name: "far", Type: servers.HTTP, URL: "http://127.0.0.1:1/x?key=k3y%2Fwith%2Bsigns&other=" + key})
	for i := range list {
		list[i].Values = values
	}
	s := r.open(Config{
		Servers: list, Log: slog.New(slog.NewTextHandler(&log, nil)),
		HTTP: func(servers.Server) (*http.Client, error) { return &http.Client{}, nil },
	})
	_ = s.Disable("far")
	texts := []string{run(t, s, "mcp__says__t", `{}`).Text}
	wants(t, run(t, s, "mcp__says__t", `{}`), agent.ErrTool, "the key [KEY] is wrong in /home/somebody")
	for _, tool := range s.Tools() {
		texts = append(texts, tool.Spec().Description)
	}
	for _, st := range s.Status() {
		texts = append(texts, st.Problem)
	}
	if st := state(s, "gone"); !strings.Contains(st.Problem, "no program for [KEY]") {
		t.Error(st.Problem)
	}
	s.Close()
	texts = append(texts, log.String())
	all := strings.Join(texts, "\n")
	for _, form := range []string{key, "k3y%2Fwith%2Bsigns", "k3y%2Fwith+signs"} {
		if strings.Contains(all, form) {
			t.Errorf("%s stands in\n%s", form, all)
		}
	}
	if !strings.Contains(all, "takes [KEY] on") || !strings.Contains(all, "127.0.0.1:1/x") {
		t.Error(all)
	}
}
