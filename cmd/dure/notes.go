package main

import (
	"fmt"
	"strings"

	"dure/internal/frontend/text"
)

// notes says what is odd about the settings.
func (p *program) notes() {
	if left := p.opened.Left(); len(left) > 0 {
		said, changed := text.TrustLeft, []string(nil)
		if f, err := p.opened.Folder(p.flags.workdir); err == nil && f.Stale() != nil {
			said, changed = text.TrustLeftStale, f.Stale()
		}
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(
			said, "path", text.OneLine(p.flags.workdir), "list", text.OneLine(strings.Join(left, ", ")), "changed", text.Some(changed)))
	}
	for _, n := range p.opened.Notes() {
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Phrase(text.Clean(n.Text)))
	}
}
