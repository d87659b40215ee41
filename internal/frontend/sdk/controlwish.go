package sdk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
)

// maxWishes bounds the updates of permissions in one answer, and the rules and folders in them.
const maxWishes = 1000

// The kinds of updates of permissions.
const (
	addRules      = "addRules"
	replaceRules  = "replaceRules"
	removeRules   = "removeRules"
	setMode       = "setMode"
	addFolders    = "addDirectories"
	removeFolders = "removeDirectories"
)

// Where an update of permissions holds.
const (
	forSession = "session"
	forFolder  = "localSettings"
)

// permissionUpdate is something that is to hold beyond a call.
type permissionUpdate struct {
	Type        string           `json:"type"`
	Rules       []permissionRule `json:"rules,omitempty"`
	Behavior    string           `json:"behavior,omitempty"`
	Mode        string           `json:"mode,omitempty"`
	Directories []string         `json:"directories,omitempty"`
	Destination string           `json:"destination"`
}

type permissionRule struct {
	Tool    string `json:"toolName"`
	Content string `json:"ruleContent,omitempty"`
}

func (r permissionRule) String() string {
	if r.Content == "" {
		return r.Tool
	}
	return r.Tool + "(" + r.Content + ")"
}

// ruleOf takes a rule apart as it is written: Tool or Tool(content).
func ruleOf(s string) permissionRule {
	if name, content, ok := strings.Cut(s, "("); ok && strings.HasSuffix(content, ")") {
		return permissionRule{name, strings.TrimSuffix(content, ")")}
	}
	return permissionRule{Tool: s}
}

// scopes are the places where updates of permissions hold, as rules have them.
var scopes = map[string]string{
	"": "session", forSession: "session", "cliArg": "session", forFolder: "local", "projectSettings": "project", "userSettings": "user",
}

// wishes are what is to hold beyond a call.
type wishes struct {
	mode    agent.Mode
	allowed []permissionUpdate // rules that allow, added or in the place of others
	folders []permissionUpdate // to read in
	back    []permissionUpdate // rules and folders that are not allowed any more
	strict  []query.RuleChange // rules that deny or ask
}

// wishesOf reads updates of permissions. Where one cannot be read, none counts: what forbids
// something may be among them.
func wishesOf(updates []permissionUpdate) (w wishes, err error) {
	n := len(updates)
	for _, u := range updates {
		n += len(u.Rules) + len(u.Directories)
		scope, known := scopes[u.Destination]
		if !known {
			return wishes{}, fmt.Errorf("there is no destination %q", u.Destination)
		}
		if slices.ContainsFunc(u.Rules, func(r permissionRule) bool { return r.Tool == "" }) {
			return wishes{}, fmt.Errorf("a rule has no toolName")
		}
		switch u.Type {
		case setMode:
			w.mode = modeOf(u.Mode)
		case addFolders:
			w.folders = append(w.folders, u)
		case removeFolders:
			w.back = append(w.back, u)
		case addRules, replaceRules, removeRules:
			if err := w.rules(u, scope); err != nil {
				return wishes{}, err
			}
		default:
			return wishes{}, fmt.Errorf("there is no update %q", u.Type)
		}
	}
	if n > maxWishes {
		return wishes{}, fmt.Errorf("these are more than %d", maxWishes)
	}
	return w, nil
}

// rules takes an update of rules over.
func (w *wishes) rules(u permissionUpdate, scope string) error {
	change := map[string]string{addRules: query.RulesAdded, replaceRules: query.RulesReplaced, removeRules: query.RulesRemoved}[u.Type]
	switch u.Behavior {
	case string(agent.Deny), string(agent.AskUser):
		w.strict = append(w.strict, query.RuleChange{Verdict: agent.Verdict(u.Behavior), Change: change, Rules: written(u.Rules), Scope: scope})
	case string(agent.Allow):
		if u.Type == removeRules {
			w.back = append(w.back, u)
		} else {
			w.allowed = append(w.allowed, u)
		}
	default:
		return fmt.Errorf("there are no rules that say %q", u.Behavior)
	}
	return nil
}

func written(rules []permissionRule) (out []string) {
	for _, r := range rules {
		out = append(out, r.String())
	}
	return out
}

// wish has hold what is to hold beyond a call, but for what r allows with the call itself, and
// what is taken back. What forbids comes first, and an error says that it cannot hold. It runs
// beside the loop.
func (h *Host) wish(ctx context.Context, r *agent.Resolve, w wishes) (back []string, err error) {
	for _, c := range w.strict {
		if h.prog.API == nil {
			return nil, errNoAPI
		}
		c.Session = h.session
		if _, err := client.Query[query.RuleEdited](ctx, h.prog.Client, c); err != nil {
			return nil, err
		}
	}
	for _, u := range w.back {
		rules, err := h.rulesIn(ctx, u)
		if err != nil {
			return nil, err
		}
		back = append(back, rules...)
		if scope := scopes[u.Destination]; scope != forSession && h.prog.API != nil {
			gone := query.RuleChange{Session: h.session, Verdict: agent.Allow, Change: query.RulesRemoved, Rules: rules, Scope: scope}
			if _, err := client.Query[query.RuleEdited](ctx, h.prog.Client, gone); err != nil {
				return nil, err
			}
		}
	}
	always := true
	for _, u := range append(slices.Clone(w.allowed), w.folders...) {
		rules, err := h.rulesIn(ctx, u)
		if err != nil {
			return nil, err
		}
		if u.Type == replaceRules {
			held, err := h.held(ctx)
			if err != nil {
				return nil, err
			}
			back = append(back, slices.DeleteFunc(held, func(one string) bool { return slices.Contains(rules, one) })...)
		}
		r.Rules = append(r.Rules, rules...)
		always = always && scopes[u.Destination] != forSession
	}
	switch {
	case len(r.Rules) == 0:
	case always:
		r.Remember = agent.RememberAlways
	default: // where some are for ever and others for the session, all hold for the session
		r.Remember = agent.RememberSession
	}
	return back, nil
}

// rulesIn are the rules of an update: for folders, those that allow reading in them.
func (h *Host) rulesIn(ctx context.Context, u permissionUpdate) ([]string, error) {
	rules := written(u.Rules)
	for _, dir := range u.Directories {
		if h.prog.API == nil {
			return nil, errNoAPI
		}
		rule, err := client.Query[string](ctx, h.prog.Client, query.FolderRule{Session: h.session, Dir: dir})
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// held are the rules that are allowed for the session.
func (h *Host) held(ctx context.Context) (rules []string, err error) {
	r, err := client.Query[query.RuleReport](ctx, h.prog.Client, query.ListRules{Session: h.session})
	if err != nil {
		return nil, err
	}
	for _, one := range r.Rules {
		if one.Layer == forSession && one.Verdict == agent.Allow {
			rules = append(rules, one.Rule)
		}
	}
	return rules, nil
}
