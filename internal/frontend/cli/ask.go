package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/frontend/text"
)

// Bounds of what a model may ask at once. More is not shown as questions, but
// as a call to approve.
const (
	maxQuestions = 4
	maxOptions   = 8
)

// question is one question of the question tool.
type question struct {
	Question string `json:"question"`
	Header   string `json:"header"`
	Options  []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
	Multi bool `json:"multiSelect"`
}

// questions are put one after the other; the answers go back as the call's
// input, with "answers" added to it.
type questions struct {
	call    agent.Call
	list    []question
	at      int
	answers map[string]string
}

// readQuestions returns what the question tool asks, or nil when the approval
// is of another kind.
func readQuestions(a agent.ApprovalAsked) *questions {
	c := a.Proposal.Call
	if c.Tool != "user__ask" {
		return nil
	}
	var in struct {
		Questions []question `json:"questions"`
	}
	if json.Unmarshal(c.Input, &in) != nil || len(in.Questions) == 0 || len(in.Questions) > maxQuestions {
		return nil
	}
	for _, q := range in.Questions {
		if q.Question == "" || len(q.Options) > maxOptions {
			return nil
		}
	}
	return &questions{call: c, list: in.Questions, answers: map[string]string{}}
}

// showQuestion shows the question that is to be answered now.
func (ch *chat) showQuestion() {
	q := ch.questions.list[ch.questions.at]
	head := text.Clean(bounded(q.Question))
	if q.Header != "" {
		head = "[" + text.OneLine(bounded(q.Header)) + "] " + head
	}
	ch.s.line(2, part{yellow, ch.v.glyph("? ", text.LabelAsk)}, part{bold, head})
	for i, o := range q.Options {
		line := "  " + strconv.Itoa(i+1) + ". " + text.OneLine(bounded(o.Label))
		if o.Description != "" {
			line += " - " + text.OneLine(bounded(o.Description))
		}
		ch.s.line(5, part{plain, line})
	}
	k := text.AskOne
	if q.Multi {
		k = text.AskMany
	}
	ch.s.line(2, part{dim, "  " + ch.Text.Say(k)})
}

// answerQuestion takes an answer: numbers of options, or the user's own words.
func (ch *chat) answerQuestion(ctx context.Context, s string) {
	qs := ch.questions
	q := qs.list[qs.at]
	if s == "" {
		return
	}
	qs.answers[q.Question] = choice(q, s)
	if qs.at++; qs.at < len(qs.list) {
		ch.showQuestion()
		return
	}
	var in map[string]json.RawMessage
	if json.Unmarshal(qs.call.Input, &in) != nil {
		in = map[string]json.RawMessage{}
	}
	in["answers"], _ = json.Marshal(qs.answers) // a map of strings always encodes
	input, _ := json.Marshal(in)
	ch.resolve(ctx, agent.Resolve{Decision: agent.Decision{Verdict: agent.Allow, By: "user", Input: input}})
}

// choice returns the labels that numbers stand for. What is no list of numbers
// of this question, or several where one is asked for, are the user's own words.
func choice(q question, s string) string {
	var labels []string
	for field := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 || n > len(q.Options) {
			return s
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	if len(labels) == 0 || (len(labels) > 1 && !q.Multi) {
		return s
	}
	return strings.Join(labels, ", ")
}

// stringField returns a field of a JSON object that is a string, or "".
func stringField(raw json.RawMessage, name string) string {
	var in map[string]json.RawMessage
	var s string
	if json.Unmarshal(raw, &in) != nil || json.Unmarshal(in[name], &s) != nil {
		return ""
	}
	return s
}
