package session_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"dure/agent"
	"dure/internal/kernel/plug"
)

func rate(v float64) *float64 { return &v }

func TestBudget(t *testing.T) {
	priced := &agent.Price{Input: rate(1), Output: rate(10)} // a token of output: 10,000
	many := say("one")
	many.Usage = agent.Usage{Input: 1000, Output: 5000}
	for name, tt := range map[string]struct {
		limit   plug.Amount
		price   *agent.Price
		ends    string
		granted []int
	}{
		"enough":            {plug.Amount{Tokens: 1_000_000, Money: 1e12}, priced, "done done", []int{0, 0}},
		"tokens run out":    {plug.Amount{Tokens: 20_000}, priced, "done done", []int{20_000, 8_000}},
		"and then no more":  {plug.Amount{Tokens: 7_000}, priced, "done limit", []int{7_000}},
		"money runs out":    {plug.Amount{Money: 80_000_000}, priced, "done done", []int{8_000, 2_300}},
		"no price":          {plug.Amount{Money: 80_000_000}, nil, "limit limit", nil},
		"no price, no need": {plug.Amount{Tokens: 1_000_000}, nil, "done done", []int{0, 0}},
		"none":              {plug.Amount{}, nil, "done done", []int{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, many, many)
				r.budget = tt.limit
				r.others = map[string]agent.ModelInfo{"m": {ID: "m", MaxOut: 20_000, Price: tt.price}}
				s := r.open(agent.Open{Model: "m"})
				for range 2 {
					r.send(s, agent.Prompt{Text: "go"})
					settle()
				}
				var ends []string
				var granted []int
				r.each(s.Info.ID, func(e agent.Event) {
					switch b := e.Body.(type) {
					case agent.TurnEnded:
						ends = append(ends, string(b.Reason))
						if limited := b.Reason == agent.EndLimit; limited != (b.Problem == agent.ProblemBudget) {
							t.Errorf("the turn ended with %+v", b)
						}
					case agent.ModelRequested:
						granted = append(granted, b.Params.MaxTokens)
					}
				})
				if got := strings.Join(ends, " "); got != tt.ends {
					t.Errorf("the turns ended %s", got)
				}
				r.reg.Shutdown()
				if len(granted) != len(tt.granted) {
					t.Fatalf("granted %v", granted)
				}
				for i, want := range tt.granted { // the size of a request is an estimate
					if got := granted[i]; got > want || got < want-150 && want > 0 {
						t.Errorf("request %d may answer with %d tokens, not about %d", i, got, want)
					}
				}
			})
		})
	}
}

// What a child uses is its parent's too, and a request that fails gives back what
// was put aside for it.
func TestBudgetOfATree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := &agent.ModelError{Class: agent.FailServer, Message: "no"}
		most := say("child")
		most.Usage = agent.Usage{Output: 8_000}
		r := newRig(t, fails, fails, fails, most, say("parent"))
		r.budget = plug.Amount{Tokens: 9_000}
		s := r.open(agent.Open{})
		r.send(s, agent.Prompt{Text: "fails"})
		settle()
		out, err := r.reach.Spawn(t.Context(), agent.Child{Key: "k", Prompt: "work"})
		if err != nil || out.Reason != agent.EndDone {
			t.Fatalf("the child: %+v, %v", out, err)
		}
		r.send(s, agent.Prompt{Text: "on"})
		settle()
		if log := r.log(s.Info.ID); !strings.HasSuffix(strings.TrimSuffix(log, "\nlog.sealed"), "turn.ended limit") {
			t.Errorf("the log is\n%s", log)
		}
		r.reg.Shutdown()
	})
}

// Thinking is part of an answer: it never takes all of what there is, neither of what
// a budget leaves nor of what a side question asks for.
func TestThinkingLeavesRoom(t *testing.T) {
	for name, tt := range map[string]struct {
		limit, thinking, asks int
		want                  agent.Params
	}{
		"enough":              {1_000_000, 3000, 0, agent.Params{Thinking: 3000}},
		"close to all":        {6000, 5900, 0, agent.Params{MaxTokens: 6000, Thinking: 3000}},
		"too little to think": {2000, 3000, 0, agent.Params{MaxTokens: 2000}},
		"a side question":     {1_000_000, 9000, 4000, agent.Params{MaxTokens: 4000, Thinking: 2000}},
		"a short one":         {1_000_000, 9000, 1500, agent.Params{MaxTokens: 1500}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, say("one"))
				r.budget, r.params = plug.Amount{Tokens: int64(tt.limit)}, agent.Params{Thinking: tt.thinking}
				r.others = map[string]agent.ModelInfo{"m": {ID: "m", MaxOut: 20_000}}
				s := r.open(agent.Open{Model: "m"})
				if tt.asks > 0 {
					if _, err := r.reach.Ask(t.Context(), agent.Question{Purpose: "x", MaxTokens: tt.asks, Messages: []agent.Message{agent.UserText("?")}}); err != nil {
						t.Fatal(err)
					}
				} else {
					r.send(s, agent.Prompt{Text: "go"})
				}
				settle()
				r.each(s.Info.ID, func(e agent.Event) {
					b, ok := e.Body.(agent.ModelRequested)
					if ok && tt.want.MaxTokens > 0 && tt.asks == 0 { // the size of a request is an estimate
						tt.want.MaxTokens, tt.want.Thinking = b.Params.MaxTokens, min(tt.want.Thinking, b.Params.MaxTokens/2)
					}
					if ok && b.Params != tt.want {
						t.Errorf("asked with %+v, want %+v", b.Params, tt.want)
					}
				})
				r.reg.Shutdown()
			})
		})
	}
}
