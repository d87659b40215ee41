package policy

import (
	"dure/agent"
)

// stageNames are the stages in which rules live. Each says its word on every call.
var stageNames = [...]string{
	"global-deny", "global-allow", "user-deny", "user-allow", "channel-policy", "group-policy", "tool-policy",
	"finance-safety", "default-policy",
}

// The stages that rules can be in. The one for allowing also has what asks.
const (
	globalDeny    = 0
	userDeny      = 2
	channelPolicy = 4
	groupPolicy   = 5
	toolPolicy    = 6
	financeSafety = 7
	defaultPolicy = 8
)

// appendStages reports what each stage says. Where no rule speaks, the last four
// say what their tables have: that is reported, and decides nothing.
func (s *state) appendStages(dst []agent.Opinion, l *look) []agent.Opinion {
	for i, name := range stageNames {
		if r := l.words.best[i]; r != nil {
			dst = append(dst, r.opinion(name))
			continue
		}
		o := agent.Opinion{Stage: name}
		switch i {
		case groupPolicy:
			o.Verdict = s.groupDefault(l.Group)
		case financeSafety:
			if l.Effects.Transactional {
				o.Verdict = agent.AskUser
			}
		case defaultPolicy:
			o.Verdict = agent.AskUser
			if l.Class == agent.Read || l.Risk == agent.RiskLow {
				o.Verdict = agent.Allow
			}
		}
		if o.Verdict != agent.Pass {
			o.Reason = stageReasons[i]
		}
		dst = append(dst, o)
	}
	return dst
}

var stageReasons = map[int]string{
	groupPolicy: "what the group has by default", financeSafety: "a transactional call", defaultPolicy: "by class and risk",
}

// groupDefault is the verdict of a group as a whole.
func (s *state) groupDefault(group string) agent.Verdict {
	if v, ok := s.Groups[group]; ok {
		return v
	}
	switch group {
	case "finance", "web", "communication":
		return agent.Allow
	case "system", "data", "custom":
		return agent.AskUser
	}
	return agent.Pass
}
