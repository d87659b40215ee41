package hooks

import (
	"encoding/json"
	"fmt"

	"dure/agent"
)

// maxGrants bounds what one answer may want to hold from now on.
const maxGrants = 100

// Wishes are what an answer wants to hold beyond the call that it is about.
type Wishes struct {
	Session []string   // rules that allow, for the session
	Always  []string   // and for good
	Mode    agent.Mode // "" = as it is
	Left    []string   // what is not for a hook to wish, for people
}

// destinations say how long a wish holds. Nothing is written into settings: what is to
// stand there holds for the folder, as what a person has allowed for good.
var destinations = map[string]string{
	"": agent.RememberSession, "session": agent.RememberSession, "cliArg": agent.RememberSession,
	"localSettings": agent.RememberAlways, "projectSettings": agent.RememberAlways, "userSettings": agent.RememberAlways,
}

// modes are those that a hook may choose: not the one in which nobody is asked.
var modes = map[string]agent.Mode{
	"default": agent.ModeDefault, "acceptEdits": agent.ModeAcceptEdits, "plan": agent.ModePlan, "dontAsk": agent.ModeDontAsk,
}

// Wishes reads what the hooks of an outcome want to hold: updatedPermissions.
func (o Outcome) Wishes() (w Wishes) {
	for _, data := range o.Grants {
		var all []struct {
			Type        string `json:"type"`
			Behavior    string `json:"behavior"`
			Destination string `json:"destination"`
			Mode        string `json:"mode"`
			Rules       []struct {
				Tool    string `json:"toolName"`
				Content string `json:"ruleContent"`
			} `json:"rules"`
		}
		if err := json.Unmarshal(data, &all); err != nil {
			w.leave("what is no list of updates")
			continue
		}
		for _, u := range all {
			remember, known := destinations[u.Destination]
			switch {
			case !known:
				w.leave("the destination %q", u.Destination)
			case u.Type == "setMode" && modes[u.Mode] != "":
				w.Mode = modes[u.Mode]
			case u.Type == "setMode":
				w.leave("the mode %q", u.Mode)
			case u.Type != "addRules" || u.Behavior != "allow":
				w.leave("%s %s", u.Type, u.Behavior)
			default:
				for _, r := range u.Rules {
					w.rule(remember, r.Tool, r.Content)
				}
			}
		}
	}
	return w
}

func (w *Wishes) rule(remember, tool, content string) {
	rule := tool
	if content != "" {
		rule += "(" + content + ")"
	}
	switch {
	case tool == "" || len(rule) > maxWords:
		w.leave("a rule of %d bytes", len(rule))
	case len(w.Session)+len(w.Always) == maxGrants:
		w.leave("rules beyond %d", maxGrants)
	case remember == agent.RememberAlways:
		w.Always = append(w.Always, rule)
	default:
		w.Session = append(w.Session, rule)
	}
}

// leave notes what is not taken over, each once.
func (w *Wishes) leave(format string, args ...any) {
	text := first(fmt.Sprintf(format, args...), 200)
	for _, had := range w.Left {
		if had == text {
			return
		}
	}
	w.Left = append(w.Left, text)
}
