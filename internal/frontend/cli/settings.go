package cli

import (
	"context"

	"dure/internal/frontend/text"
)

// slashConfig shows the settings, explains one, or gives it another value.
func (ch *chat) slashConfig(ctx context.Context, arg string) {
	if ch.o.Settings == nil {
		ch.v.note(yellow, ch.Text.Say(text.CommandNotHere, "name", "/config"))
		return
	}
	lines, err := ch.o.Settings(ctx, arg)
	if ch.failed(err) {
		return
	}
	ch.notes(lines)
}
