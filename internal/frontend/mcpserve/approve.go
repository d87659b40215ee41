package mcpserve

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"dure/agent"
	"dure/internal/frontend/text"
)

// The answers that a client's person can give. What would hold beyond the session they say
// where the program itself asks them.
const (
	answerOnce    = "allow_once"
	answerSession = "allow_session"
	answerDeny    = "deny"
)

// The bounds of what a person is shown, in bytes.
const (
	maxShownInput = 16 << 10 // what is longer nobody can be asked about
	maxShownDiff  = 6000
	maxShownLine  = 400
)

// approve puts what a session asks to the person of a client, and returns their word.
// Whatever is no clear yes is a no.
func (s *Server) approve(ctx context.Context, p person, by string, a agent.ApprovalAsked) agent.Resolve {
	deny := func(why string) agent.Resolve {
		return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Deny, By: by, Reason: why}}
	}
	if p.ask == nil {
		return deny("it needs approval, and the client cannot ask anybody")
	}
	if len(a.Proposal.Call.Input) > maxShownInput {
		return deny("it needs approval, and is too long to be shown to the client's user")
	}
	content, err := p.ask(ctx, s.form(a))
	if err != nil {
		no := deny("it needs approval: " + err.Error())
		if errors.Is(err, errNobody) {
			no.Decision.Code = agent.ErrApprovalTimeout
		}
		return no
	}
	said, _ := content["answer"].(string)
	yes := agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow, By: by, Reason: "the client's user has agreed"}}
	switch {
	case said == answerOnce:
		return yes
	case said == answerSession && holds(a):
		yes.Remember = agent.RememberSession
		return yes
	}
	return deny("the client's user has not agreed")
}

// holds reports whether an answer may hold for the session.
func holds(a agent.ApprovalAsked) bool {
	return slices.ContainsFunc(a.Choices, func(c agent.Choice) bool { return c.Remember == agent.RememberSession })
}

// form is the question about a call. What the call says of itself stands in lines that
// cannot be taken for ours, and with nothing in it that a person would not see.
func (s *Server) form(a agent.ApprovalAsked) *mcp.ElicitParams {
	t := s.c.Text
	lines := []string{t.Say(text.ServeAsks, "tool", line(s.c.Name(a.Proposal.Call.Tool)))}
	if a.Reason != "" {
		lines = append(lines, t.Say(text.ServeWhy, "why", line(t.Phrase(a.Reason))))
	}
	lines = append(lines, quoted(shownInput(a.Proposal.Call.Input))...)
	if a.Diff != "" { // beside the input, which has all of it
		lines = append(lines, "")
		lines = append(lines, quoted(cut(a.Diff, maxShownDiff))...)
	}
	values, names := []string{answerOnce}, []string{t.Say(text.ServeOnce)}
	if holds(a) {
		values, names = append(values, answerSession), append(names, t.Say(text.ServeSession))
	}
	values, names = append(values, answerDeny), append(names, t.Say(text.ServeDeny))
	return &mcp.ElicitParams{Mode: "form", Message: strings.Join(lines, "\n"), RequestedSchema: map[string]any{
		"type": "object", "required": []string{"answer"},
		"properties": map[string]any{"answer": map[string]any{"type": "string", "title": t.Say(text.ServeAnswer), "enum": values, "enumNames": names}},
	}}
}

// shownInput is the input of a call as a person reads it: a command as it is, all else as
// JSON in lines.
func shownInput(input json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		return string(input)
	}
	var command string
	if json.Unmarshal(fields["command"], &command) == nil && command != "" && len(fields) == 1 {
		return command
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if enc.Encode(fields) != nil {
		return string(input)
	}
	return b.String()
}

func line(s string) string { return text.Cut(text.ExactLine(s), maxShownLine) }

// cut returns the beginning of a text, with a sign where it ends before its time.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// quoted is a text of somebody else in lines of its own.
func quoted(s string) (lines []string) {
	for l := range strings.Lines(s) {
		lines = append(lines, "    "+text.Exact(strings.TrimSuffix(l, "\n")))
	}
	return lines
}
