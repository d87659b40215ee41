package cli

import (
	"bufio"
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// Rules lists the permission rules that sessions of the working folder have.
func (c *CLI) Rules(ctx context.Context, asJSON bool) error {
	return tell(ctx, c, query.ListRules{}, asJSON, func(w *bufio.Writer, r query.RuleReport) {
		writeLines(w, ruleLines(c.Text, r, c.columns()))
	})
}

// ruleLines is a report as people read it: what a rule does, the rule, and where it
// stands.
func ruleLines(t text.Catalog, r query.RuleReport, columns int) []string {
	lines := []string{t.Say(text.ModeNow, "mode", string(cmp.Or(r.Mode, agent.ModeDefault)))}
	var rows [][]string
	for _, rule := range r.Rules {
		rows = append(rows, []string{t.Word(string(rule.Verdict)), text.OneLine(bounded(rule.Rule)), whereRule(t, rule) + aboutRule(t, rule)})
	}
	if len(rows) == 0 {
		return append(lines, t.Say(text.RulesNone))
	}
	const least = 24
	squeeze(rows, 2, columns, least)
	squeeze(rows, 1, columns, least)
	return append(lines, rowLines(rows)...)
}

// whereRule says where a rule stands.
func whereRule(t text.Catalog, r query.RuleInfo) string {
	if r.File == "" {
		return t.Word("rule." + r.Layer)
	}
	at := text.OneLine(r.File)
	if r.Line > 0 {
		at += ":" + strconv.Itoa(r.Line)
	}
	return at
}

// aboutRule is what else there is to say of a rule.
func aboutRule(t text.Catalog, r query.RuleInfo) (said string) {
	note := t.Phrase(text.OneLine(bounded(r.Note)))
	switch {
	case r.Off:
		said += " – " + t.Say(text.RuleOff, "why", note)
	case note != "":
		said += " – " + note
	}
	if r.Scope != "" {
		said += " [" + text.OneLine(bounded(r.Scope)) + "]"
	}
	if r.Reason != "" {
		said += ": " + text.OneLine(bounded(r.Reason))
	}
	return said
}

// ruleScopes are where a person keeps rules, and sessionScope is what was answered for
// the session alone: nothing is added there.
var ruleScopes = []string{"local", "project", "user", sessionScope}

const sessionScope = "session"

// slashPermissions lists the rules of the session, adds one, takes one away, or sets the
// mode.
func (ch *chat) slashPermissions(ctx context.Context, arg string) {
	if arg == "" {
		r, ok := asked[query.RuleReport](ctx, ch, query.ListRules{Session: ch.sess.Info.ID})
		if !ok {
			return
		}
		ch.notes(ruleLines(ch.Text, r, ch.s.usable()-2))
		return
	}
	if word, mode, _ := strings.Cut(arg, " "); strings.EqualFold(word, "mode") {
		ch.slashMode(ctx, strings.TrimSpace(mode))
		return
	}
	e, ok := readRuleEdit(arg)
	if !ok {
		ch.v.note(yellow, ch.usageOf(ctx, "permissions"))
		return
	}
	taken := e.Verdict == agent.Pass && (e.Scope == "" || e.Scope == sessionScope) && ch.takeRule(ctx, e.Rule)
	if e.Scope == sessionScope {
		if !taken {
			ch.v.note(plain, ch.Text.Say(text.RuleSame, "rule", text.OneLine(bounded(e.Rule))))
		}
		return
	}
	if ch.o.EditRule == nil {
		ch.v.note(yellow, ch.Text.Say(text.CommandNotHere, "name", "/permissions"))
		return
	}
	e.Session = ch.sess.Info.ID
	done, err := ch.o.EditRule(ctx, e)
	if ch.failed(err) {
		return
	}
	if taken && len(done.Paths)+len(done.Left) == 0 {
		return
	}
	ch.notes(editedLines(ch.Text, e, done))
}

// takeRule takes a rule back that was allowed for the session, and reports whether it
// was.
func (ch *chat) takeRule(ctx context.Context, rule string) bool {
	r, err := client.Query[query.RuleReport](ctx, ch.Client, query.ListRules{Session: ch.sess.Info.ID})
	held := slices.ContainsFunc(r.Rules, func(i query.RuleInfo) bool { return i.Layer == sessionScope && i.Rule == rule })
	return err == nil && held && ch.send(ctx, agent.Revoke{Rules: []string{rule}})
}

// readRuleEdit reads allow, ask, deny or remove, a rule, and maybe a scope behind it.
func readRuleEdit(arg string) (e query.RuleEdit, ok bool) {
	word, rule, _ := strings.Cut(arg, " ")
	rule = strings.TrimSpace(rule)
	if at := strings.LastIndex(rule, " "); at > 0 && slices.Contains(ruleScopes, rule[at+1:]) {
		rule, e.Scope = strings.TrimSpace(rule[:at]), rule[at+1:]
	}
	e.Rule = rule
	switch word = strings.ToLower(word); word {
	case "allow", "ask", "deny":
		e.Verdict = agent.Verdict(word)
	case "remove":
	default:
		return e, false
	}
	return e, rule != "" && (e.Scope != sessionScope || e.Verdict == agent.Pass)
}

// editedLines say what became of a change.
func editedLines(t text.Catalog, e query.RuleEdit, done query.RuleEdited) (lines []string) {
	rule := text.OneLine(bounded(e.Rule))
	key := text.RuleAdded
	if e.Verdict == agent.Pass {
		key = text.RuleRemoved
	}
	for _, path := range done.Paths {
		lines = append(lines, t.Say(key, "rule", rule, "path", text.OneLine(path)))
	}
	if len(done.Paths) == 0 {
		lines = append(lines, t.Say(text.RuleSame, "rule", rule))
	}
	note := t.Phrase(text.OneLine(bounded(done.Note)))
	switch {
	case done.Off:
		lines = append(lines, t.Say(text.RuleOff, "why", note))
	case note != "":
		lines = append(lines, note)
	}
	for _, at := range done.Left {
		lines = append(lines, t.Say(text.RuleLeft, "at", strings.TrimPrefix(t.Word("rule."+text.OneLine(at)), "rule.")))
	}
	return lines
}
