package swarm

import (
	"cmp"
	"context"
	"crypto/sha256"
	_ "embed" // the description
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"dure/agent"
)

// HandoffTool is the canonical name of the tool that hands work over by messages.
const HandoffTool = "agent__handoff"

//go:embed handoff.md
var aboutHandoff string

const handoffSchema = `{"type":"object","properties":{` +
	`"type":{"type":"string","enum":["delegate","event","shutdown"]},` +
	`"to":{"type":"string"},"payload":{"type":"string"},"correlationId":{"type":"string"},` +
	`"timeoutSeconds":{"type":"integer","minimum":1,"maximum":604800}},"additionalProperties":false}`

// Bounds of a handoff.
const (
	usualHandoff   = time.Hour
	usualGrace     = 30 * time.Second // of a shutdown
	maxGrace       = time.Hour
	maxCorrelation = 64 // characters
)

// MessageType is what a message between agents is for.
type MessageType string

// The types of messages.
const (
	Delegate       MessageType = "delegate"
	DelegateResult MessageType = "delegate_result"
	Event          MessageType = "event"
	Shutdown       MessageType = "shutdown"
)

// A Message is what agents tell each other through the session that one has started the
// other from.
type Message struct {
	Type        MessageType `json:"type"`
	From        string      `json:"from"`
	To          string      `json:"to"`
	Payload     string      `json:"payload,omitempty"`
	Correlation string      `json:"correlationId"` // of a delegate, and of its result
	Failed      bool        `json:"failed,omitempty"`
}

// handoffInput is the input of a call.
type handoffInput struct {
	Type        MessageType `json:"type"`
	To          string      `json:"to"`
	Payload     string      `json:"payload"`
	Correlation string      `json:"correlationId"`
	Seconds     int         `json:"timeoutSeconds"`
}

// Handoff returns the tool that hands work over. Its calls count as reading, as those of
// [Swarm.Tool] do.
func (s *Swarm) Handoff() agent.Tool { return handoff{s} }

type handoff struct{ *Swarm }

// Spec describes the tool.
func (handoff) Spec() agent.Spec {
	return agent.Spec{
		Name: HandoffTool, Description: strings.TrimSpace(aboutHandoff), Input: json.RawMessage(handoffSchema),
		Class: agent.Read, Group: "agents", Risk: agent.RiskLow, Limit: longest, Budget: report + around,
	}
}

// Enabled reports whether the tool is offered, as [coordinator.Enabled] does.
func (h handoff) Enabled() bool { return h.crewed() }

// Plan checks the message. It touches nothing.
func (h handoff) Plan(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Effects, error) {
	in, err := h.message(c.Input)
	if err == nil && in.Type == Delegate {
		_, err = h.target(in)
	}
	return agent.Effects{}, err
}

// Run sends the message.
func (h handoff) Run(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
	in, err := h.message(c.Input)
	if err != nil {
		return toolResult(agent.Result{}, err)
	}
	switch in.Type {
	case Shutdown:
		return h.shutdown(ctx, in), nil
	case Event:
		return toolResult(h.event(ctx, in))
	}
	r, err := toolResult(h.delegate(ctx, in, agent.CallEnvOf(ctx)))
	return untaken(r), err
}

// untaken gives a handoff that came to nothing the code for that; where more is known, as
// that it took too long, that stays.
func untaken(r agent.Result) agent.Result {
	if r.Error != nil && r.Error.Code == agent.ErrTool {
		e := *r.Error
		e.Code = agent.ErrHandoffFailed
		r.Error = &e
	}
	return r
}

func (s *Swarm) message(input json.RawMessage) (handoffInput, error) {
	var in handoffInput
	if err := json.Unmarshal(input, &in); err != nil {
		return in, refuse(agent.ErrInput, "the input does not fit the tool: "+err.Error(), "")
	}
	in.Type, in.To, in.Correlation = cmp.Or(in.Type, Delegate), strings.TrimSpace(in.To), strings.TrimSpace(in.Correlation)
	if len(in.Correlation) > maxCorrelation || strings.ContainsFunc(in.Correlation, func(r rune) bool { return !isName(r) }) {
		return in, refuse(agent.ErrInput, fmt.Sprintf("a correlationId has at most %d letters, digits, - and _", maxCorrelation), "")
	}
	switch in.Type {
	case Delegate:
		if in.To == "" || strings.TrimSpace(in.Payload) == "" || len(in.Payload) > maxPrompt {
			return in, refuse(agent.ErrInput, fmt.Sprintf("a delegate names the agent in to, and has a payload of at most %d bytes", maxPrompt), "")
		}
	case Event:
		if in.To == "" && in.Correlation == "" || strings.TrimSpace(in.Payload) == "" || len(in.Payload) > maxPrompt {
			return in, refuse(agent.ErrInput, fmt.Sprintf("an event names the agent in to, or its correlationId, and has a payload of at most %d bytes", maxPrompt), "")
		}
	case Shutdown:
		if in.Correlation == "" && in.To == "" {
			return in, refuse(agent.ErrInput, "a shutdown names the correlationId of what is to stop, or the agent in to", "")
		}
		if len(in.Payload) > maxUp || in.Seconds > int(maxGrace/time.Second) {
			return in, refuse(agent.ErrInput, fmt.Sprintf("a shutdown has a payload of at most %d bytes, and waits for %s at most", maxUp, maxGrace), "")
		}
	default:
		return in, refuse(agent.ErrInput, fmt.Sprintf("%.40q is no type of message that can be sent", in.Type), "Send delegate, event or shutdown.")
	}
	return in, nil
}

// target finds the type that is handed work to. None gets work back that it has handed
// over: A would wait for B, and B for A.
func (s *Swarm) target(in handoffInput) (Definition, error) {
	d, err := s.pick(in.To)
	if err != nil {
		return d, err
	}
	if slices.Contains(s.c.Chain, d.Name) {
		return d, refuse(agent.ErrInput, fmt.Sprintf("the work comes from %s: %s → %s would go round", d.Name, strings.Join(s.c.Chain, " → "), d.Name), "Do it yourself, and say so in your result.")
	}
	if s.c.Asks != nil && s.c.Asks(d) {
		return d, refuse(agent.ErrDenied, "a rule asks before work is handed to "+d.Name, "Use the tool for agents, which asks.")
	}
	return d, nil
}

// self is the name of the agent that the session runs as.
func (s *Swarm) self() string {
	if n := len(s.c.Chain); n > 0 {
		return s.c.Chain[n-1]
	}
	return "main"
}

// delegate starts the agent that a message is for, and has its result sent back.
func (s *Swarm) delegate(ctx context.Context, in handoffInput, env agent.CallEnv) (agent.Result, error) {
	d, err := s.target(in)
	if err != nil {
		return agent.Result{}, err
	}
	in.Correlation = correlation(in, env.Key)
	if j := s.correlated(in.Correlation); j != nil && !j.over() {
		return agent.Result{}, refuse(agent.ErrInput, "the correlationId "+in.Correlation+" is in use by "+j.handle(), "Name another one, or leave it out.")
	}
	m := Message{Type: Delegate, From: s.self(), To: d.Name, Payload: in.Payload, Correlation: in.Correlation}
	task := Task{
		Title: line(in.Payload, 60), Type: d.Name,
		Prompt: fmt.Sprintf("%s hands this over to you (correlationId %s). Your last message is the result that goes back.\n\n%s", m.From, m.Correlation, m.Payload),
	}
	j, child, err := s.prepare(ctx, d, task, env.Key, "")
	if err != nil {
		return agent.Result{}, err
	}
	j.message, j.limit = &m, usualHandoff
	if in.Seconds > 0 {
		j.limit = time.Duration(in.Seconds) * time.Second
	}
	if s.c.Settle != nil && !s.c.Foreground {
		return s.launch(ctx, j, child)
	}
	r, err := toolResult(s.work(ctx, j, child, env.Progress))
	return j.reply(r), err
}

// correlation is the ID of a message, or one that is made of the key of its call: the same
// after a crash.
func correlation(in handoffInput, key string) string {
	if in.Correlation != "" {
		return in.Correlation
	}
	sum := sha256.Sum256([]byte(key))
	return "h-" + hex.EncodeToString(sum[:6])
}

// meant finds the job that a message is about.
func (s *Swarm) meant(ctx context.Context, in handoffInput) (*job, error) {
	var j *job
	if in.Correlation != "" {
		j = s.correlated(in.Correlation)
	} else {
		j = s.addressee(ctx, in.To)
	}
	if j == nil {
		return nil, refuse(agent.ErrInput, fmt.Sprintf("no agent of this session is known as %.80q", cmp.Or(in.Correlation, in.To)), "Name the correlationId that it was handed work with, or its agentId."+s.latest())
	}
	return j, nil
}

// event tells an agent something that it does not answer.
func (s *Swarm) event(ctx context.Context, in handoffInput) (agent.Result, error) {
	if in.Correlation == "" && s.isBoss(in.To) {
		return s.tellBoss(ctx, in.Payload)
	}
	j, err := s.meant(ctx, in)
	if err != nil {
		return agent.Result{}, err
	}
	told, err := s.tellJob(ctx, j, in.Payload)
	if err == nil && !told {
		err = refuse(agent.ErrTool, j.handle()+" works no more, and reads no events", s.goOn(j.id()))
	}
	m := Message{Type: Event, From: s.self(), To: j.kind, Payload: in.Payload}
	if j.message != nil {
		m.Correlation = j.message.Correlation
	}
	return agent.Result{Status: agent.StatusOK, Text: fmt.Sprintf("%s (%s) reads it at its next step.", j.kind, short(j.id())), Output: structured(m)}, err
}

// shutdown has an agent come to its end: it is told to say what it has, and stopped where it
// does not in time.
func (s *Swarm) shutdown(ctx context.Context, in handoffInput) agent.Result {
	j, err := s.meant(ctx, in)
	if err != nil {
		r, _ := toolResult(agent.Result{}, err)
		return r
	}
	if grace := s.grace(ctx, j, in); grace > 0 && !j.over() {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-j.done:
			r := agent.OK(j.handle() + " has come to its end by itself. Its result comes as if it had not been asked to.")
			r.Output = structured(state{j.handle(), "completed"})
			return r
		case <-timer.C:
		case <-ctx.Done():
			return agent.Failure(agent.ErrAborted, "the shutdown was cancelled; "+j.handle()+" was told to end", "")
		}
	}
	r, _ := s.Stop(ctx, j.handle())
	return r
}

// grace tells an agent to end, and returns how long it is waited for; 0 = not at all.
func (s *Swarm) grace(ctx context.Context, j *job, in handoffInput) time.Duration {
	if s.c.Tell == nil || j.over() {
		return 0
	}
	grace := usualGrace
	if in.Seconds > 0 {
		grace = time.Duration(in.Seconds) * time.Second
	}
	text := fmt.Sprintf("[%s ends your work. This comes from the program, not from the user. Begin nothing new: say now, in your last message, what is done and what is left. You are stopped in %s.]", s.self(), grace)
	if why := strings.TrimSpace(in.Payload); why != "" {
		text += "\n" + why
	}
	if s.c.Tell(ctx, j.id(), saidID(ctx), text, "agent:"+s.self()) != nil && !j.over() {
		return usualGrace // it is about to end
	}
	return grace
}

// correlated finds the newest job of a correlation.
func (s *Swarm) correlated(id string) *job {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, j := range slices.Backward(s.jobs) {
		if j.message != nil && j.message.Correlation == id {
			return j
		}
	}
	return nil
}

// reply makes the message that answers a delegate of a result.
func (j *job) reply(r agent.Result) agent.Result {
	if j.message == nil {
		return r
	}
	m := Message{Type: DelegateResult, From: j.message.To, To: j.message.From, Payload: r.Text, Correlation: j.message.Correlation, Failed: r.Failed()}
	r.Text = fmt.Sprintf("[%s from %s, correlationId %s]\n%s", m.Type, m.From, m.Correlation, r.Text)
	r.Output = structured(m)
	return untaken(r)
}
