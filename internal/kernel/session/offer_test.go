package session_test

import (
	"encoding/json"
	"strings"
	"testing"

	"dure/agent"
)

// An event stands before each request that offers other tools than the last one, also when
// another process had made that, and none before one that offers the same.
func TestToolsChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, say("", call("1", "sleep", `"1s"`)), say("one"), say("two"), say("three"), say("four"))
		steps, again := 0, false
		about := func(name, text string) agent.Spec {
			return agent.Spec{Name: name, Description: text, Input: json.RawMessage(`{ "type" : "object", "title": "a<b" }`)}
		}
		r.offers = func(all []agent.Spec) []agent.Spec {
			steps++
			switch all = all[:2:2]; {
			case steps == 1: // a server is not there yet
				return all
			case !again:
				return append(all, about("later", "one"))
			} // it describes itself otherwise, and one is gone
			return append(all[1:], about("later", "two"))
		}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "go"})
		settle()
		r.send(s, agent.Prompt{Text: "on"})
		settle()
		r.reg.Shutdown()
		again = true
		r.start()
		defer r.reg.Shutdown()
		s = r.open(agent.Open{Session: s.Info.ID})
		r.send(s, agent.Prompt{Text: "and on"})
		settle()
		r.send(s, agent.Prompt{Text: "and so on"})
		settle()
		var got []string
		for _, line := range strings.Split(r.log(s.Info.ID), "\n") {
			if strings.HasPrefix(line, "tools.changed") || strings.HasPrefix(line, "model.requested") || strings.HasPrefix(line, "session.opened") {
				got = append(got, line)
			}
		}
		want := text(`
			session.opened
			model.requested
			tools.changed [later] [] []
			model.requested
			model.requested
			session.opened
			tools.changed [] [later] [sleep]
			model.requested
			model.requested`)
		if s := strings.Join(got, "\n"); s != want {
			t.Errorf("log:\n%s\nwant:\n%s", s, want)
		}
	})
}
