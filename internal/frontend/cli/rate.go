package cli

import (
	"context"

	"dure/agent"
	"dure/internal/frontend/text"
)

// slashGood and slashBad say what the user thinks of the newest answer.
func (ch *chat) slashGood(ctx context.Context, why string) {
	ch.send(ctx, agent.Rate{Good: true, Text: why})
}

func (ch *chat) slashBad(ctx context.Context, why string) { ch.send(ctx, agent.Rate{Text: why}) }

// ratedLine says what a person thinks of an answer.
func ratedLine(t text.Catalog, b agent.Rated) string {
	k := text.RatedBad
	if b.Good {
		k = text.RatedGood
	}
	line := t.Say(k)
	if b.Text != "" {
		line += ": " + text.OneLine(bounded(b.Text))
	}
	return line
}
