package acp

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// The answers to a question.
const (
	answerOnce   = "allow_once"
	answerDeny   = "reject_once"
	answerHolds  = "allow_" // and the number of a choice
	answerOption = "option_"
)

// maxAsked is how long the input of a call may be that somebody is asked about, in bytes:
// nobody agrees to what cannot be shown.
const maxAsked = 256 << 10

// put puts a question to the client's person, and has the session told the answer. One that
// somebody else answers meanwhile is taken back.
func (v *follower) put(ctx context.Context, asked agent.ApprovalAsked) {
	x, q := v.x, v.question(asked)
	asking, cancel := context.WithCancel(ctx)
	v.asking[asked.ID] = cancel
	x.helps.Go(func() {
		defer cancel()
		r, err := x.resolve(asking, asked, q)
		if asking.Err() != nil || errors.Is(err, errGone) {
			return // it is over, or waits for the next client
		}
		if err != nil {
			r = refusal(asked, "nobody could be asked: "+err.Error())
		}
		if err := x.sess.Send(ctx, r); err != nil {
			x.s.c.Logger.Warn("answering a question", "session", x.id, "error", err)
		}
	})
}

func refusal(a agent.ApprovalAsked, why string) agent.Resolve {
	return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Deny, By: "acp", Reason: why}}
}

// question is a call as a person is asked about it.
func (v *follower) question(a agent.ApprovalAsked) toolCall {
	c := a.Proposal.Call
	q := toolCall{
		ID: c.ID, Title: v.titleOf(c), Kind: kindOf(c.Tool), Status: callPending,
		Input: raw(c.Input), Locations: v.places(c, a.Proposal.Effects), Content: v.planned(c),
	}
	say := func(s string) {
		b := textBlock(s)
		q.Content = append(q.Content, callContent{Type: "content", Content: &b})
	}
	switch {
	case c.Tool == planTool:
		say(text.Exact(field(c.Input, "plan")))
	case c.Tool == askTool:
	case len(q.Content) == 0 && a.Diff != "":
		say("```diff\n" + strings.ReplaceAll(text.Exact(a.Diff), "```", "` ` `") + "\n```")
	case len(q.Content) == 0:
		if command := field(c.Input, "command"); command != "" {
			q.Content = append(q.Content, printed(text.Exact(command)))
		}
	}
	if a.Reason != "" {
		say(v.x.s.c.Text.Phrase(text.OneLine(cut(a.Reason, 1000))))
	}
	if a.Proposal.Agent != "" {
		say(v.x.s.c.Text.Say(text.ApproveChild, "agent", text.OneLine(a.Proposal.Agent)))
	}
	return q
}

// resolve asks the client's person. Whatever is no clear yes is a no.
func (x *session) resolve(ctx context.Context, a agent.ApprovalAsked, q toolCall) (agent.Resolve, error) {
	if len(a.Proposal.Call.Input) > maxAsked {
		return refusal(a, "the call is too long to be shown to the client's user"), nil
	}
	if a.Proposal.Call.Tool == askTool {
		return x.questions(ctx, a, q)
	}
	t := x.s.c.Text
	options := []permissionOption{{ID: answerOnce, Name: t.Say(text.ACPOnce), Kind: "allow_once"}}
	for i, c := range a.Choices {
		key := text.ACPAlways
		if c.Remember == agent.RememberSession {
			key = text.ACPSession
		}
		options = append(options, permissionOption{
			ID: answerHolds + strconv.Itoa(i), Kind: "allow_always",
			Name: t.Say(key, "rules", text.Cut(text.ExactLine(strings.Join(c.Rules, ", ")), 120)),
		})
	}
	options = append(options, permissionOption{ID: answerDeny, Name: t.Say(text.ACPDeny), Kind: "reject_once"})
	chosen, err := x.permission(ctx, q, options)
	if err != nil {
		return agent.Resolve{}, err
	}
	yes := agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow, By: "user"}}
	if chosen == answerOnce {
		return yes, nil
	}
	if n, ok := strings.CutPrefix(chosen, answerHolds); ok {
		if i, err := strconv.Atoi(n); err == nil && i >= 0 && i < len(a.Choices) {
			yes.Remember = a.Choices[i].Remember
			return yes, nil
		}
	}
	no := refusal(a, "")
	no.Decision.By = "user"
	return no, nil
}

// permission puts options to the client's person, and returns the one that they chose; "" =
// none.
func (x *session) permission(ctx context.Context, q toolCall, options []permissionOption) (string, error) {
	var out permissionOut
	if err := x.s.ask(ctx, "session/request_permission", permissionIn{Session: x.id, Call: q, Options: options}, &out); err != nil {
		return "", err
	}
	chosen := out.Outcome.Option
	if out.Outcome.Outcome != "selected" || !slices.ContainsFunc(options, func(o permissionOption) bool { return o.ID == chosen }) {
		return "", nil
	}
	return chosen, nil
}

// inquiry is what the question tool asks.
type inquiry struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
	Multi bool `json:"multiSelect"`
}

// questions puts the questions of the model to the client's person: as a form where the
// client has forms, else one after the other.
func (x *session) questions(ctx context.Context, a agent.ApprovalAsked, q toolCall) (agent.Resolve, error) {
	var in map[string]json.RawMessage
	var list []inquiry
	if json.Unmarshal(a.Proposal.Call.Input, &in) != nil || json.Unmarshal(in["questions"], &list) != nil || len(list) == 0 {
		return refusal(a, "the questions cannot be read"), nil
	}
	answers, err := x.form(ctx, a, list)
	if x.s.can().Elicitation.Form == nil {
		answers, err = x.oneByOne(ctx, q, list)
	}
	if err != nil {
		return agent.Resolve{}, err
	}
	if answers == nil {
		no := refusal(a, "")
		no.Decision.By = "user"
		return no, nil
	}
	said, err := json.Marshal(answers)
	if err != nil {
		return agent.Resolve{}, err
	}
	in["answers"] = said
	input, err := json.Marshal(in)
	return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow, By: "user", Input: input}}, err
}

// oneByOne puts questions as permissions are; nil = one of them was not answered.
func (x *session) oneByOne(ctx context.Context, q toolCall, list []inquiry) (map[string]string, error) {
	answers := map[string]string{}
	for _, one := range list {
		q.Title = text.Cut(text.OneLine(one.Question), maxTitle)
		b := textBlock(text.Exact(one.Question))
		q.Content = []callContent{{Type: "content", Content: &b}}
		var options []permissionOption
		for i, o := range one.Options {
			name := o.Label
			if o.Description != "" {
				name += " - " + o.Description
			}
			options = append(options, permissionOption{ID: answerOption + strconv.Itoa(i), Name: text.Cut(text.OneLine(name), maxTitle), Kind: "allow_once"})
		}
		options = append(options, permissionOption{ID: answerDeny, Name: x.s.c.Text.Say(text.ACPNoAnswer), Kind: "reject_once"})
		chosen, err := x.permission(ctx, q, options)
		if err != nil {
			return nil, err
		}
		n, ok := strings.CutPrefix(chosen, answerOption)
		i, err := strconv.Atoi(n)
		if !ok || err != nil || i < 0 || i >= len(one.Options) {
			return nil, nil
		}
		answers[one.Question] = one.Options[i].Label
	}
	return answers, nil
}

// form puts questions as a form; nil = they were not answered.
func (x *session) form(ctx context.Context, a agent.ApprovalAsked, list []inquiry) (map[string]string, error) {
	if x.s.can().Elicitation.Form == nil {
		return nil, nil
	}
	fields, names := map[string]any{}, []string{}
	for i, one := range list {
		var labels []map[string]string
		for _, o := range one.Options {
			title := o.Label
			if o.Description != "" {
				title += " - " + o.Description
			}
			labels = append(labels, map[string]string{"const": o.Label, "title": text.Cut(text.OneLine(title), maxTitle)})
		}
		name := "q" + strconv.Itoa(i+1)
		f := map[string]any{"type": "string", "title": text.Cut(text.OneLine(one.Question), maxTitle), "oneOf": labels}
		if one.Multi {
			f = map[string]any{"type": "array", "title": text.Cut(text.OneLine(one.Question), maxTitle), "items": map[string]any{"anyOf": labels}, "minItems": 1}
		}
		fields[name], names = f, append(names, name)
	}
	var out elicitOut
	err := x.s.ask(ctx, "elicitation/create", elicitIn{
		Mode: "form", Session: x.id, Call: a.Proposal.Call.ID, Message: text.Cut(text.OneLine(list[0].Question), 400),
		Schema: map[string]any{"type": "object", "properties": fields, "required": names},
	}, &out)
	if err != nil || out.Action != "accept" {
		return nil, err
	}
	answers := map[string]string{}
	for i, one := range list {
		said := out.Content[names[i]]
		var word string
		var words []string
		switch {
		case json.Unmarshal(said, &word) == nil && word != "":
		case json.Unmarshal(said, &words) == nil && len(words) > 0:
			word = strings.Join(words, ", ")
		default:
			return nil, errors.New("the form was not filled in")
		}
		answers[one.Question] = word
	}
	return answers, nil
}
