package main

import (
	"context"
	"fmt"
	"strings"

	"dure/agent/query"
	"dure/client"
	"dure/internal/app"
	"dure/internal/frontend/text"
)

// notes says what is odd about the settings.
func (p *program) notes() {
	if p.server != nil {
		return // they are those of another program
	}
	if left := leftIn(p.opened); len(left) > 0 {
		said, changed := text.TrustLeft, []string(nil)
		if f, err := p.folder(nil); err == nil && f.Stale() != nil {
			said, changed = text.TrustLeftStale, f.Stale()
		}
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(
			said, "path", text.OneLine(p.flags.workdir), "list", text.OneLine(strings.Join(left, ", ")), "changed", text.Some(changed)))
	}
	for _, n := range p.opened.Notes() {
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Phrase(text.Clean(n.Text)))
	}
}

// leftIn returns what the working folder of a program brings and is not in force.
func leftIn(a *app.App) []string {
	left, _ := client.Query[[]string](context.Background(), a.Client(), query.ListLeft{})
	return left
}
