package session

import (
	"cmp"
	"errors"
	"math"

	"dure/agent"
	"dure/internal/kernel/budget"
	"dure/internal/kernel/plug"
)

// leastOutput is how many tokens an answer has to be given for the request to be
// worth making; less when less is asked for.
const leastOutput = 1024

// spent returns why the budget does not allow a request, if that is what an error
// says.
func spent(err error) (why string, ok bool) {
	if be, ok := errors.AsType[*budget.Error](err); ok {
		return be.Error(), true
	}
	return "", false
}

// reserve puts aside what a request may cost at most, and lowers what its answer may
// have to what there is left for. size is about how many tokens the request has.
func (s *Session) reserve(m agent.ModelInfo, size int, p *agent.Params) (func(agent.Usage), error) {
	if s.account == nil {
		return nil, nil
	}
	request, unit := prices(m, size)
	most := cmp.Or(p.MaxTokens, m.MaxOut, 32_000)
	granted, hold, err := s.account.ReserveUpTo(request, unit, leastOutput, most)
	if err != nil {
		return nil, err
	}
	if granted < most {
		p.MaxTokens = granted
		bound(p)
	}
	return func(u agent.Usage) {
		done := plug.Amount{Tokens: int64(u.Context())}
		if cost := m.Price.Cost(u); cost != nil {
			done.Money = *cost
		}
		hold.Settle(done)
	}, nil
}

// leastThinking is how many tokens of thinking are worth asking for; some providers
// take no fewer.
const leastThinking = 1024

// bound leaves half of a limited answer for what is said after thinking.
func bound(p *agent.Params) {
	if p.Thinking = min(p.Thinking, p.MaxTokens/2); p.Thinking < leastThinking {
		p.Thinking = 0
	}
}

// prices returns what a request of size tokens may cost, and each token of its
// answer. What may be written to a cache is taken for written.
func prices(m agent.ModelInfo, size int) (request, unit plug.Amount) {
	request, unit = plug.Amount{Tokens: int64(size)}, plug.Amount{Tokens: 1}
	in := m.Price.Cost(agent.Usage{CacheWrite: size})
	if in == nil {
		in = m.Price.Cost(agent.Usage{Input: size})
	}
	const many = 1_000_000 // so that the price of a token is exact enough
	out := m.Price.Cost(agent.Usage{Output: many})
	if m.Price != nil && m.Price.Long != nil && size > m.Price.Above {
		out = m.Price.Long.Cost(agent.Usage{Output: many})
	}
	if in == nil || out == nil {
		request.Unpriced = true
		return request, unit
	}
	request.Money, unit.Money = *in, agent.Money(math.Ceil(float64(*out)/many))
	return request, unit
}
