package main

import (
	"context"

	"github.com/spf13/cobra"

	"dure/internal/app/eval"
	"dure/internal/frontend/text"
)

func (p *program) contextCommand() *cobra.Command {
	return p.group("context", text.HelpContext,
		p.filter("eval", text.HelpContextEval, func(ctx context.Context) error { return eval.Shorten(ctx, p.in, p.out) }))
}
