package sdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/frontend/view"
)

// byHost says who has answered a question that was put to the host.
const byHost = "host"

// The tools whose calls are questions to the user themselves.
const (
	askTool  = "user__ask"
	planTool = "ExitPlanMode" // as hosts know it
)

// canUse is a question about a call, as hosts are asked.
type canUse struct {
	Subtype     string             `json:"subtype"`
	Tool        string             `json:"tool_name"`
	Server      *provenance        `json:"mcp_server,omitempty"`
	Input       json.RawMessage    `json:"input"`
	ID          string             `json:"tool_use_id"`
	Suggestions []permissionUpdate `json:"permission_suggestions,omitempty"`
	Reason      string             `json:"decision_reason,omitempty"`
	ReasonType  string             `json:"decision_reason_type,omitempty"`
	Display     string             `json:"display_name,omitempty"`
	About       string             `json:"description,omitempty"`
	Agent       string             `json:"agent_id,omitempty"`
	Person      bool               `json:"requires_user_interaction,omitempty"`
}

// provenance is the server that a tool is of, and where that is named.
type provenance struct {
	Name   string `json:"name"`
	Source string `json:"source"`
}

// from is the server that a tool is of; nil = it is of none that is there.
func (h *Host) from(tool string) *provenance {
	part := serverOf(tool)
	if part == "" || h.prog.API == nil {
		return nil
	}
	for _, s := range h.servers(h.ctx) {
		plain := strings.Map(func(r rune) rune {
			if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
				return r
			}
			return '_'
		}, s.Name)
		if plain == part {
			return &provenance{s.Name, serverScope(s.Scope)}
		}
	}
	return nil
}

// question is what the host is asked about a call.
func (h *Host) question(a agent.ApprovalAsked) canUse {
	p := a.Proposal
	q := canUse{
		Subtype: "can_use_tool", Tool: h.prog.Name(p.Call.Tool), Input: objectOf(p.Call.Input), ID: p.Call.ID,
		Reason: h.c.Text.Phrase(a.Reason), ReasonType: reasonType(a), Agent: a.Child, Person: p.Effects.User,
	}
	q.Display, q.Server = q.Tool, h.from(p.Call.Tool)
	var in struct {
		Description string `json:"description"`
	}
	_ = json.Unmarshal(p.Call.Input, &in) // another tool has other fields
	q.About = in.Description
	for _, c := range a.Choices {
		u := permissionUpdate{Type: "addRules", Behavior: string(agent.Allow), Destination: forSession}
		if c.Remember == agent.RememberAlways {
			u.Destination = forFolder
		}
		for _, r := range c.Rules {
			u.Rules = append(u.Rules, ruleOf(r))
		}
		q.Suggestions = append(q.Suggestions, u)
	}
	return q
}

// reasonType is the kind of reason for which somebody is asked.
func reasonType(a agent.ApprovalAsked) string {
	stage := ""
	for _, o := range slices.Backward(a.Trace) {
		if o.Verdict == agent.AskUser {
			stage = o.Stage
			break
		}
	}
	switch {
	case strings.HasPrefix(stage, "hook"):
		return "hook"
	case a.Rule != "":
		return "rule"
	case stage == "mode":
		return "mode"
	case stage == "floor":
		return "safetyCheck"
	case stage == "confinement":
		return "sandboxOverride"
	}
	return "other"
}

// asked puts a question of the session to the host. It is taken back when somebody else
// answers it, or nobody waits for the answer any more.
func (h *Host) asked(a agent.ApprovalAsked) {
	if h.sess == nil {
		return
	}
	if h.asking == nil {
		h.asking = map[string]asking{}
	}
	if h.asking[a.ID].stop != nil {
		return
	}
	ctx, stop := context.WithCancel(h.ctx)
	h.asking[a.ID] = asking{a.Child, stop}
	q, s, plan := h.question(a), h.sess, h.prog.Name(a.Proposal.Call.Tool) == planTool
	h.wg.Go(func() {
		defer stop()
		said, err := h.Ask(ctx, q)
		if ctx.Err() != nil {
			return
		}
		r, w, interrupt := answerOf(a, said, err)
		mode := w.mode
		send := func(c agent.Command) {
			if err := s.Send(ctx, c); err != nil && ctx.Err() == nil {
				h.out.put(h.notice("warning", h.words(err)))
			}
		}
		if err := h.mayBe(mode); err != nil {
			h.out.put(h.notice("warning", h.words(err)))
			mode = ""
		}
		if mode != "" && !plan {
			send(agent.Change{Mode: mode})
		}
		back, err := h.wish(ctx, &r, w)
		if err != nil {
			r = refusal(a, "it needs approval, and updatedPermissions of the host cannot hold: "+err.Error())
		}
		if len(back) > 0 {
			send(agent.Revoke{Rules: back})
		}
		send(r)
		if mode != "" && plan { // a yes to a plan sets a mode of its own
			send(agent.Change{Mode: mode})
		}
		if interrupt {
			send(agent.Interrupt{})
		}
	})
}

// resolved takes back what the host was asked that is answered.
func (h *Host) resolved(b agent.ApprovalResolved) {
	if q, ok := h.asking[b.ID]; ok {
		delete(h.asking, b.ID)
		q.stop()
	}
}

// asking is a question that the host has not answered.
type asking struct {
	child string // that asks; "" = the session does
	stop  context.CancelFunc
}

// unasked takes back what the host was asked for a child that has ended, or for the turn that
// has where child is "". What goes on in the background asks on behind that.
func (h *Host) unasked(child string) {
	for id, q := range h.asking {
		if q.child == child {
			delete(h.asking, id)
			q.stop()
		}
	}
}

// answered says how the session goes on once nobody is asked any more: also in the background,
// where no turn runs.
func (h *Host) answered() {
	if len(h.show.Asks) > 0 || h.state != stateAsking {
		return
	}
	if jobs, others := h.running(); jobs || others || h.show.busy() {
		h.setState(stateRunning)
	}
	h.rest()
}

// caughtUp puts the questions to the host that are open since before its time. What a session
// has used of which this one is a fork was used by that one.
func (h *Host) caughtUp() {
	if h.prog.Open.Fork != "" {
		h.show.Results = view.NewResults(h.session)
	}
	for _, a := range h.show.Asks {
		h.asked(a.ApprovalAsked)
	}
}

// answerOf is what the host says of a call. Whatever is no clear yes is a no.
func answerOf(a agent.ApprovalAsked, said json.RawMessage, err error) (r agent.Resolve, w wishes, interrupt bool) {
	deny := func(why string) (agent.Resolve, wishes, bool) {
		return refusal(a, "it needs approval, and "+why), wishes{}, false
	}
	switch {
	case errors.Is(err, errGone):
		r, w, _ = deny("the host does not answer any more")
		r.Decision.Code = agent.ErrApprovalTimeout
		return r, w, false
	case errors.As(err, new(tooLongError)):
		return deny(err.Error() + "; do it in smaller steps")
	case err != nil:
		return deny("the host answered with an error: " + err.Error())
	}
	var in struct {
		Behavior  string             `json:"behavior"`
		Input     json.RawMessage    `json:"updatedInput"`
		Updates   []permissionUpdate `json:"updatedPermissions"`
		Message   string             `json:"message"`
		Interrupt bool               `json:"interrupt"`
	}
	if err := json.Unmarshal(said, &in); err != nil {
		return deny("the answer of the host is no object that can be read")
	}
	switch in.Behavior {
	case "deny":
		if in.Message == "" {
			in.Message = "the host has denied it"
		}
		r = refusal(a, in.Message)
		r.Decision.Stop = in.Interrupt
		return r, w, in.Interrupt
	case "allow":
	default:
		return deny(fmt.Sprintf("the host answered with %q: it has to be allow or deny", in.Behavior))
	}
	input, err := inputOf(a.Proposal.Call, in.Input)
	if err != nil {
		return deny("the updatedInput of the host cannot be used: " + err.Error())
	}
	if w, err = wishesOf(in.Updates); err != nil {
		return deny("updatedPermissions of the host cannot hold: " + err.Error())
	}
	return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Allow, By: byHost, Input: input}}, w, false
}

// refusal is a no of the host's.
func refusal(a agent.ApprovalAsked, why string) agent.Resolve {
	return agent.Resolve{ID: a.ID, Decision: agent.Decision{Verdict: agent.Deny, By: byHost, Reason: why}}
}

// inputOf is the input that takes the place of a call's; nil = it stays. To questions for
// the user only answers are added, and nothing else in them is changed.
func inputOf(c agent.Call, updated json.RawMessage) (json.RawMessage, error) {
	if updated = bytes.TrimSpace(updated); len(updated) == 0 || string(updated) == "null" {
		return nil, nil
	}
	var now map[string]json.RawMessage
	if err := json.Unmarshal(updated, &now); err != nil {
		return nil, errors.New("it is no object")
	}
	if c.Tool == askTool {
		var was map[string]json.RawMessage
		if now["answers"] == nil {
			return nil, nil
		}
		if err := json.Unmarshal(c.Input, &was); err != nil || was == nil {
			return nil, errors.New("the question is no object")
		}
		was["answers"] = now["answers"]
		return json.Marshal(was)
	}
	if same(c.Input, updated) {
		return nil, nil
	}
	return updated, nil
}

// same reports whether two texts are the same JSON.
func same(a, b json.RawMessage) bool {
	read := func(data []byte) (v any, err error) {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		err = d.Decode(&v)
		return v, err
	}
	x, errX := read(a)
	y, errY := read(b)
	return errX == nil && errY == nil && reflect.DeepEqual(x, y)
}

// modeOf is a permission mode by any of its names; "" stays "".
func modeOf(name string) agent.Mode {
	if name == "manual" {
		return agent.ModeDefault
	}
	return agent.Mode(name)
}

// Callback has a callback of the host's hooks answer. It may be called by many at once.
func (h *Host) Callback(ctx context.Context, callback string, input []byte, call string) ([]byte, error) {
	return h.Ask(ctx, struct {
		Subtype  string          `json:"subtype"`
		Callback string          `json:"callback_id"`
		Input    json.RawMessage `json:"input"`
		Call     string          `json:"tool_use_id,omitempty"`
	}{"hook_callback", callback, input, call})
}

// Message puts a message to a server inside of the host, and returns its answer. It may be
// called by many at once.
func (h *Host) Message(ctx context.Context, server string, message []byte) ([]byte, error) {
	said, err := h.Ask(ctx, struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"server_name"`
		Message json.RawMessage `json:"message"`
	}{"mcp_message", server, message})
	if err != nil {
		return nil, err
	}
	var out struct {
		Response json.RawMessage `json:"mcp_response"`
	}
	if err := json.Unmarshal(said, &out); err != nil || out.Response == nil {
		return nil, errors.New("the host has answered without an mcp_response")
	}
	return out.Response, nil
}

// Elicit puts a question of a server to the user of the host. It may be called by many at
// once.
func (h *Host) Elicit(ctx context.Context, server, message, url, id string, schema json.RawMessage) (action string, content map[string]any, err error) {
	q := struct {
		Subtype string          `json:"subtype"`
		Server  string          `json:"mcp_server_name"`
		Message string          `json:"message"`
		Mode    string          `json:"mode"`
		URL     string          `json:"url,omitempty"`
		ID      string          `json:"elicitation_id,omitempty"`
		Schema  json.RawMessage `json:"requested_schema,omitempty"`
	}{"elicitation", server, message, "form", url, id, schema}
	if url != "" {
		q.Mode, q.Schema = "url", nil
	}
	said, err := h.Ask(ctx, q)
	if err != nil {
		return "", nil, err
	}
	var out struct {
		Action  string         `json:"action"`
		Content map[string]any `json:"content"`
	}
	if err := json.Unmarshal(said, &out); err != nil {
		return "", nil, fmt.Errorf("the answer of the host: %w", err)
	}
	switch out.Action {
	case "accept", "decline", "cancel":
		return out.Action, out.Content, nil
	}
	return "", nil, fmt.Errorf("the host answered with the action %q: it has to be accept, decline or cancel", out.Action)
}
