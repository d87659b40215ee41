package chat

import (
	"encoding/json"

	"dure/agent"
	"dure/internal/models/wire"
)

// usage has the counts of the request up to now, in the members in which the
// various servers report them. They are read as numbers of any form.
type usage struct {
	Prompt     float64 `json:"prompt_tokens"` // what was cached included
	Completion float64 `json:"completion_tokens"`
	Total      float64 `json:"total_tokens"`
	Cached     float64 `json:"cached_tokens"`
	CacheHit   float64 `json:"prompt_cache_hit_tokens"`
	CacheWrite float64 `json:"cache_creation_input_tokens"`
	Prompts    struct {
		Cached     float64 `json:"cached_tokens"`
		CacheWrite float64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Completions struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// count takes in counts, which are totals.
func (a *answer) count(u *usage) error {
	if u == nil || u.Prompt == 0 && u.Completion == 0 {
		return nil
	}
	now := agent.Usage{
		CacheRead:  tokens(max(u.Prompts.Cached, u.CacheHit, u.Cached)),
		CacheWrite: tokens(max(u.Prompts.CacheWrite, u.CacheWrite)),
		Output:     tokens(u.Completion),
	}
	prompt := tokens(u.Prompt)
	now.CacheRead = min(now.CacheRead, prompt)
	now.CacheWrite = min(now.CacheWrite, prompt-now.CacheRead)
	now.Input = prompt - now.CacheRead - now.CacheWrite
	if thought := u.Completions.Reasoning; thought > 0 && u.Total == u.Prompt+u.Completion+thought {
		now.Output += tokens(thought) // some count thinking apart from the completion
	}
	return a.Count(now)
}

// tokens returns a count that can be added up whatever an endpoint says.
func tokens(n float64) int {
	if !(n > 0) {
		return 0
	}
	return int(min(n, 1<<31-1))
}

// Finish emits the whole answer.
func (a *answer) Finish() error {
	if err := a.tags.flush(a.add); err != nil {
		return err
	}
	if err := a.closeCalls(); err != nil {
		return err
	}
	stop := a.stopReason(a.newest != nil)
	short := stop == agent.StopLength || stop == agent.StopWindow || stop == agent.StopRefusal
	var blocks []agent.Block
	for _, b := range a.Blocks {
		text := b.Text.String()
		done := agent.Block{Type: b.Kind, Text: text}
		switch b.Kind {
		case agent.TextBlock:
		case agent.ThinkingBlock:
			done.Provider = a.Provider
			if b == a.details.at {
				done.Raw = a.details.list()
			}
		case agent.CallBlock:
			cut := short && (b == a.newest || !json.Valid([]byte(text)))
			c := wire.ToolInput(b.ID, b.Tool, text, cut)
			done.Text, done.Call = "", &c
		}
		blocks = append(blocks, done)
	}
	return a.Final(blocks, stop, a.refusal.String())
}

// stopReason translates why the answer ended. Whether it calls decides between
// the usual ends, because servers get that wrong both ways.
func (a *answer) stopReason(calls bool) agent.StopReason {
	var s agent.StopReason
	switch a.stop {
	case "", "stop", "eos", "end_turn", "tool_calls", "function_call", "tool_use":
		s = agent.StopEnd
		if calls {
			s = agent.StopCalls
		}
	case "length", "max_tokens":
		s = agent.StopLength
	case "model_length":
		s = agent.StopWindow
	case "content_filter", "refusal", "safety":
		return agent.StopRefusal
	default:
		s = agent.StopReason(a.stop)
	}
	if a.refusal.Len() > 0 {
		return agent.StopRefusal
	}
	return s
}
