package view

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"dure/agent"
)

// Results are what the turns of a session come to, as programs that use the Agent SDK read
// it. The totals are those of the events that were applied.
type Results struct {
	session string
	cost    agent.Money // of the session, without the work of agents
	unknown bool        // some of it has no known price
	models  map[string]*modelSpent
	agents  map[string]agent.Outcome // the newest of each
	asked   map[string]string        // the model of the newest request, by purpose
	open    bool                     // a turn is
	spent   agent.TurnEnded          // usage and cost of the answers of the turn that is open
	waited  string                   // ID of a call that had been put aside before

	turnResults
}

// turnResults is what is forgotten when another input is waited for.
type turnResults struct {
	end     agent.TurnEnded
	steps   int         // of turns that have ended
	usage   agent.Usage // of turns that have ended
	answer  string      // the text of the last answer
	shown   string      // and what people see of it
	stop    agent.StopReason
	apiTime int64 // milliseconds
	first   int64 // milliseconds until the first answer began
	status  int   // of HTTP, of the newest request that failed
	cutCall bool
	denied  []Denial
	formed  json.RawMessage     // the newest answer in the form that was asked for
	aside   *agent.CallDeferred // with it the turn was left open; nil = it was not
	gone    bool                // the tool of the call that had been put aside is not there any more
}

// modelSpent is what a model was used for in a session.
type modelSpent struct {
	usage   agent.Usage
	cost    agent.Money
	unknown bool
}

// Denial is a call that was not allowed to run.
type Denial struct {
	Call   agent.Call
	By     string // who has denied it
	Reason string
	Code   agent.ErrorCode // what the model was told
	Hook   bool            // a hook has denied it
}

// NewResults returns the fold of a session.
func NewResults(session string) *Results {
	r := &Results{session: session}
	r.Begin()
	return r
}

// Begin forgets what the turns up to here have come to: the next result is about what
// follows. The totals of the session stay.
func (r *Results) Begin() { r.turnResults = turnResults{} }

// apply takes in an event; call returns one that is not over. Live events change nothing.
func (r *Results) apply(e agent.Event, call func(id string) *Row) {
	switch b := e.Body.(type) {
	case agent.TurnStarted:
		if b.Attempt == 0 { // else its answers have been counted
			r.spent = agent.TurnEnded{}
		}
		r.open, r.aside = true, nil
	case agent.ModelRequested:
		put(&r.asked, b.Purpose, b.Model)
	case agent.ModelAnswered:
		r.answered(b)
	case agent.ModelFailed:
		r.status = b.Status
	case agent.CallDecided:
		r.decided(b)
	case agent.CallDeferred:
		r.aside, r.waited = &b, b.Call.ID
		r.end = r.spent
		r.end.Turn, r.end.Reason, r.end.Steps = b.Turn, agent.EndDone, b.Step
	case agent.CallFinished:
		r.finished(b, call(b.Result.ID))
	case agent.TurnEnded:
		r.open = false
		r.end = b
		r.steps, r.usage = r.steps+b.Steps, r.usage.Add(b.Usage)
		r.add(b.Usage, b.Cost)
	case agent.ChildEnded:
		put(&r.agents, b.Child, agent.Outcome{Usage: b.Outcome.Usage, Cost: b.Outcome.Cost})
	}
}

// answered adds what an answer has used. What the answers of a turn cost is said again at
// its end.
func (r *Results) answered(b agent.ModelAnswered) {
	r.used(cmp.Or(r.asked[b.Purpose], b.Model), b.Usage, b.Cost)
	if !r.open {
		r.add(b.Usage, b.Cost)
	}
	if r.spent.Usage == (agent.Usage{}) && b.Cost != nil {
		r.spent.Cost = new(agent.Money)
	}
	r.spent.Usage = r.spent.Usage.Add(b.Usage)
	if b.Cost == nil {
		r.spent.Cost = nil
	} else if r.spent.Cost != nil {
		*r.spent.Cost += *b.Cost
	}
	if b.Purpose != "" {
		return
	}
	r.answer, r.shown, r.stop = b.Message.Text(), b.Said(), b.Stop
	r.status = 0
	if r.apiTime == 0 {
		r.first = b.FirstByte
	}
	r.apiTime += b.Millis
}

// used counts what a model was used for.
func (r *Results) used(model string, u agent.Usage, cost *agent.Money) {
	if model == "" {
		return
	}
	m := r.models[model]
	if m == nil {
		m = &modelSpent{} // of one too many, nothing is counted
		put(&r.models, model, m)
	}
	m.usage = m.usage.Add(u)
	if cost == nil {
		m.unknown = m.unknown || u != (agent.Usage{})
	} else {
		m.cost += *cost
	}
}

// add counts what has its place in the totals.
func (r *Results) add(u agent.Usage, cost *agent.Money) {
	if cost == nil {
		r.unknown = r.unknown || u != (agent.Usage{})
		return
	}
	r.cost += *cost
}

func (r *Results) decided(b agent.CallDecided) {
	c, d := b.Proposal.Call, b.Decision
	if d.Verdict == agent.Allow {
		return
	}
	hook := d.Code == agent.ErrBlockedByHook || strings.HasPrefix(d.By, "hook:")
	r.denied = capped(append(r.denied, Denial{Call: c, By: d.By, Reason: d.Reason, Code: d.Code, Hook: hook}))
}

func (r *Results) finished(b agent.CallFinished, call *Row) {
	e := b.Result.Error
	r.gone = r.gone || b.Result.ID == r.waited && e != nil && e.Code == agent.ErrToolNotFound
	r.cutCall = e != nil && e.Code == agent.ErrAborted
	if call != nil && call.Call.Verdict != "" && b.Tool == agent.FormTool && b.Result.Status == agent.StatusOK {
		r.formed = call.Call.Input
	}
}

// End is how the newest turn has ended; a turn that was left open with a call that was
// put aside counts as done.
func (r *Results) End() agent.TurnEnded { return r.end }

// Stop is why the newest answer ended.
func (r *Results) Stop() agent.StopReason { return r.stop }

// Aside is the call that was put aside, with which the turn was left open; nil = none was.
func (r *Results) Aside() *agent.CallDeferred { return r.aside }

// Shown is what people see of the last answer, and Formed the answer in the form that was
// asked for; nil = there is none.
func (r *Results) Shown() string           { return r.shown }
func (r *Results) Formed() json.RawMessage { return r.formed }

// Denied are the calls that were not allowed to run, in their order.
func (r *Results) Denied() []Denial { return r.denied }

// Cost is what the session has cost, with the work of its agents; nil = a part of it has
// no known price.
func (r *Results) Cost() *agent.Money {
	sum, unknown := r.cost, r.unknown
	if r.aside != nil { // the end of its turn is still to come
		if r.spent.Cost == nil {
			unknown = unknown || r.spent.Usage != (agent.Usage{})
		} else {
			sum += *r.spent.Cost
		}
	}
	for _, o := range r.agents {
		if o.Cost == nil {
			unknown = unknown || o.Usage != (agent.Usage{})
		} else {
			sum += *o.Cost
		}
	}
	if unknown {
		return nil
	}
	return &sum
}

// Result is the outcome of a turn. Its names are those that programs for agent sessions
// know.
type Result struct {
	Type           string               `json:"type"` // result
	Subtype        string               `json:"subtype"`
	IsError        bool                 `json:"is_error"`
	APIErrorStatus int                  `json:"api_error_status,omitempty"` // of HTTP
	DurationMS     int64                `json:"duration_ms"`
	DurationAPIMS  int64                `json:"duration_api_ms"`
	FirstMS        int64                `json:"ttft_ms,omitempty"` // until the first answer began
	NumTurns       int                  `json:"num_turns"`         // steps
	Result         string               `json:"result"`
	StopReason     *string              `json:"stop_reason"`
	SessionID      string               `json:"session_id"`
	TotalCostUSD   *float64             `json:"total_cost_usd"` // of the session, its agents included; null = unknown
	Usage          ResultUsage          `json:"usage"`          // of the turn
	ModelUsage     map[string]ModelUsed `json:"modelUsage"`     // of the session, its agents not included
	Denials        []ResultDenial       `json:"permission_denials"`
	TerminalReason string               `json:"terminal_reason"`
	Structured     json.RawMessage      `json:"structured_output,omitempty"`
	Deferred       *ResultDeferred      `json:"deferred_tool_use,omitempty"`
	Errors         []string             `json:"errors,omitempty"`
}

// ResultUsage counts tokens.
type ResultUsage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

// ModelUsed is what a model was used for.
type ModelUsed struct {
	Input      int      `json:"inputTokens"`
	Output     int      `json:"outputTokens"`
	CacheRead  int      `json:"cacheReadInputTokens"`
	CacheWrite int      `json:"cacheCreationInputTokens"`
	Searches   int      `json:"webSearchRequests"` // always 0: searches are calls of a tool
	CostUSD    *float64 `json:"costUSD"`           // null = unknown
	Window     int      `json:"contextWindow"`     // tokens; 0 = unknown
	MaxOut     int      `json:"maxOutputTokens"`   // of one answer; 0 = unknown
	Provider   string   `json:"provider,omitempty"`
}

// ResultDenial is a call that was not allowed to run.
type ResultDenial struct {
	Tool  string          `json:"tool_name"` // canonical
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

// ResultDeferred is the call that was put aside.
type ResultDeferred struct {
	ID    string          `json:"id"`
	Tool  string          `json:"name"` // canonical
	Input json.RawMessage `json:"input"`
}

// Result returns what the turns have come to since Begin. Why says to a person why it did
// not end well. A failure of the model's service is told in the result, as success that is
// an error: that is what programs expect. What catalogs know of models is added by
// [Result.Describe], and how long it took by whoever has a clock.
func (r *Results) Result(why string) Result {
	u, steps := r.usage, r.steps
	if r.aside != nil {
		u, steps = u.Add(r.spent.Usage), steps+r.end.Steps
	}
	o := Result{
		Type: "result", Subtype: "success", Result: r.answer, SessionID: r.session,
		DurationAPIMS: r.apiTime, FirstMS: r.first, NumTurns: steps,
		Usage:      ResultUsage{u.Input, u.Output, u.CacheRead, u.CacheWrite},
		ModelUsage: map[string]ModelUsed{}, Denials: []ResultDenial{}, TerminalReason: "completed",
		Structured: r.formed,
	}
	if r.stop != "" {
		s := string(r.stop)
		o.StopReason = &s
	}
	if cost := r.Cost(); cost != nil {
		d := cost.Dollars()
		o.TotalCostUSD = &d
	}
	for model, m := range r.models {
		used := ModelUsed{Input: m.usage.Input, Output: m.usage.Output, CacheRead: m.usage.CacheRead, CacheWrite: m.usage.CacheWrite}
		if !m.unknown {
			d := m.cost.Dollars()
			used.CostUSD = &d
		}
		o.ModelUsage[model] = used
	}
	for _, d := range r.denied {
		o.Denials = append(o.Denials, ResultDenial{d.Call.Tool, d.Call.ID, d.Call.Input})
	}
	if o.Result == "" {
		o.Result = string(r.formed)
	}
	switch {
	case r.aside != nil:
		stop := "tool_deferred"
		c := r.aside.Call
		o.StopReason, o.TerminalReason, o.Deferred = &stop, stop, &ResultDeferred{c.ID, c.Tool, c.Input}
		return o
	case r.gone:
		o.IsError, o.TerminalReason = true, "tool_deferred_unavailable"
	}
	if r.end.Reason != agent.EndDone {
		r.failed(&o, why)
	}
	return o
}

// failed says of a turn that did not end well how it ended.
func (r *Results) failed(o *Result, why string) {
	o.IsError, o.Errors = true, []string{why}
	o.Subtype, o.TerminalReason = "error_during_execution", "hook_stopped"
	switch r.end.Reason {
	case agent.EndLimit:
		o.Subtype, o.TerminalReason = "error_max_turns", "max_turns"
		if r.end.Problem == agent.ProblemBudget {
			o.Subtype, o.TerminalReason = "error_max_budget_usd", "budget_exhausted"
		}
	case agent.EndFailed:
		switch {
		case r.end.Problem == agent.ProblemForm:
			o.Subtype, o.TerminalReason = "error_max_structured_output_retries", "structured_output_retry_exhausted"
			return
		case r.end.Fail == "":
			o.TerminalReason = "turn_setup_failed"
		default:
			o.Subtype, o.TerminalReason, o.APIErrorStatus = "success", "api_error", r.status
			if r.end.Fail == agent.FailContext {
				o.TerminalReason = "prompt_too_long"
			}
		}
		o.Result = why
	case agent.EndInterrupted:
		o.TerminalReason = "aborted_streaming"
		if r.cutCall {
			o.TerminalReason = "aborted_tools"
		}
	case agent.EndRefused:
		o.Subtype, o.TerminalReason = "success", "completed"
	}
}

// Describe adds what a catalog knows of the models.
func (o *Result) Describe(models []agent.ModelInfo) {
	for name, used := range o.ModelUsage {
		i := slices.IndexFunc(models, func(m agent.ModelInfo) bool { return m.ID == name })
		if i < 0 {
			continue
		}
		used.Window, used.MaxOut, used.Provider = models[i].Window, models[i].MaxOut, models[i].Provider
		o.ModelUsage[name] = used
	}
}

// put sets a value in a map that holds at most maxOpen.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	if _, known := (*m)[k]; known || len(*m) < maxOpen {
		(*m)[k] = v
	}
}
