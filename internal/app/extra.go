package app

import (
	"context"

	"dure/agent"
	"dure/internal/kernel/plug"
)

// extra is what a session should have before its model besides what is said.
type extra func(context.Context, plug.Moment) []agent.ContextAdded

// extras joins the sources of a session, in their order.
func extras(sources ...extra) extra {
	return func(ctx context.Context, at plug.Moment) (all []agent.ContextAdded) {
		for _, source := range sources {
			if source != nil {
				all = append(all, source(ctx, at)...)
			}
		}
		return all
	}
}
