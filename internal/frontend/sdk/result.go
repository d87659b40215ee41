package sdk

import (
	"context"
	"errors"
	"strings"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
	"dure/internal/frontend/view"
	"dure/internal/state/transcript"
)

// result is the end of a turn.
type result struct {
	view.Result
	UUID     string              `json:"uuid"`
	Usage    tokens              `json:"usage"`
	Denials  []denial            `json:"permission_denials"`
	Cost     float64             `json:"total_cost_usd"` // of what has a known price
	Models   map[string]modelUse `json:"modelUsage"`
	Deferred any                 `json:"deferred_tool_use,omitempty"`
	Queued   int                 `json:"queued_turn_count,omitempty"`
	Origin   *origin             `json:"origin,omitempty"`
}

// modelUse is what a model was used for, where a price that is not known is none.
type modelUse struct {
	view.ModelUsed
	Cost float64 `json:"costUSD"`
}

type denial struct {
	view.ResultDenial
	Tool string `json:"tool_name"`
}

// origin is what a turn answers that no person has asked for.
type origin struct {
	Kind string `json:"kind"`
}

// failure tells the host why something could not begin, as a result, and on the standard error.
func (h *Host) failure(err error) {
	h.complain(err)
	var r view.Result
	if h.show.View != nil {
		r = h.show.Result("")
	}
	r.Type, r.Subtype, r.IsError, r.TerminalReason = "result", "error_during_execution", true, "turn_setup_failed"
	r.Result, r.Errors = "", []string{h.words(err)}
	h.result(r)
}

// result tells how something ended.
func (h *Host) result(r view.Result) {
	r.SessionID = h.session
	out := result{Result: r, UUID: newUUID(), Usage: tokensOf(agent.Usage{
		Input: r.Usage.Input, Output: r.Usage.Output, CacheRead: r.Usage.CacheRead, CacheWrite: r.Usage.CacheWrite,
	}), Denials: []denial{}, Queued: len(h.queue)}
	out.Cost, out.Models = costs(r)
	h.spent.api += r.DurationAPIMS
	h.spent.all += r.DurationMS
	for _, d := range r.Denials {
		d.Input = objectOf(d.Input)
		out.Denials = append(out.Denials, denial{d, h.prog.Name(d.Tool)})
	}
	if d := r.Deferred; d != nil {
		out.Deferred = transcript.CallPart(d.ID, h.prog.Name(d.Tool), objectOf(d.Input))
	}
	if h.show.origin != "" {
		out.Origin = &origin{"task-notification"}
	}
	h.failed = r.IsError
	h.out.put(out)
}

// costs are what a session has cost, as far as the prices are known.
func costs(r view.Result) (all float64, models map[string]modelUse) {
	if models = map[string]modelUse{}; r.TotalCostUSD != nil {
		all = *r.TotalCostUSD
	}
	for name, used := range r.ModelUsage {
		m := modelUse{ModelUsed: used}
		if used.CostUSD != nil {
			m.Cost = *used.CostUSD
			if r.TotalCostUSD == nil {
				all += m.Cost
			}
		}
		models[name] = m
	}
	return all, models
}

// ended is a turn that is over, or was left open at a call.
func (h *Host) ended(at time.Time, b agent.TurnEnded) {
	h.stream().drop()
	why := ""
	if b.Reason != agent.EndDone {
		why = h.why(b)
	}
	r := h.show.Result(why)
	if began := h.show.Turn.Began; !began.IsZero() {
		r.DurationMS = at.Sub(began).Milliseconds()
	}
	r.Describe(h.models())
	if r.IsError && r.Subtype == "success" && b.Reason == agent.EndFailed { // as hosts know failures of the model's service
		m := spoken{
			ID: h.show.messageID(nil), Type: "message", Role: "assistant", Model: "<synthetic>",
			Content: []any{transcript.TextPart(r.Result)}, Usage: tokensOf(agent.Usage{}),
		}
		h.out.put(said{head: h.head("assistant", "", ""), Message: m, Error: errorKind(b.Fail, r.APIErrorStatus), Time: stamp(at)})
	}
	if r.IsError {
		h.complain(errors.New(strings.Join(r.Errors, "\n")))
	}
	h.result(r)
}

// why says why a turn did not end well, as people read it.
func (h *Host) why(b agent.TurnEnded) string {
	say := h.c.Text.Say
	switch {
	case b.Problem != "":
		return h.words(&agent.Problem{Code: b.Problem, Message: b.Error, Args: map[string]string{"error": b.Error, "session": h.session}})
	case b.Reason == agent.EndInterrupted:
		return say(text.TurnInterrupted)
	case b.Reason == agent.EndLimit:
		return say(text.TurnLimit, "n", b.Steps)
	case b.Reason == agent.EndRefused:
		return say(text.TurnRefused)
	case b.Reason == agent.EndStopped && h.show.Turn.Dropped != nil && h.show.Turn.Dropped.Reason != "":
		return h.c.Text.Phrase(h.show.Turn.Dropped.Reason)
	case b.Reason == agent.EndStopped:
		return say(text.TurnStopped)
	case b.Fail != "":
		what, fix := h.c.Text.Failure(b.Fail, h.session)
		return strings.TrimSpace(what + ": " + b.Error + "\n" + fix)
	}
	return h.c.Text.Phrase(b.Error)
}

// models are those that are known, asked for once.
func (h *Host) models() []agent.ModelInfo {
	if h.show.models == nil {
		ctx, done := context.WithTimeout(h.ctx, closeTime)
		defer done()
		h.show.models = []agent.ModelInfo{}
		if list, err := client.Query[[]agent.ModelInfo](ctx, h.prog.Client, query.ListModels{}); err == nil { // else less is said of them
			h.show.models = list
		}
	}
	return h.show.models
}
