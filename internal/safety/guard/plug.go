package guard

import (
	"dure/agent"
	"dure/internal/kernel/plug"
)

// Points are what the guard adds to its session.
func (g *Guard) Points() plug.Points {
	return plug.Points{Guard: plug.Guard{Check: g.Check, Stream: func(s agent.Spec) plug.Cleaner { return g.Stream(s) }}}
}
