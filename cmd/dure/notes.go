package main

import (
	"fmt"
	"slices"
	"strings"

	"dure/internal/text"
)

// notes says what is odd about the settings.
func (p *program) notes() {
	if left := p.opened.Left(); len(left) > 0 {
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Say(text.TrustLeft, "path", text.OneLine(p.flags.workdir), "list", text.OneLine(strings.Join(left, ", "))))
	}
	for _, n := range slices.Concat(p.opened.Config().Notes, p.opened.PluginNotes(), p.opened.ServerNotes()) {
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+p.text.Phrase(text.Clean(n.Text)))
	}
}
