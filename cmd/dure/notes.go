package main

import (
	"fmt"

	"dure/internal/text"
)

// notes says what is odd about the settings.
func (p *program) notes() {
	for _, n := range p.opened.Config().Notes {
		fmt.Fprintln(p.err, p.text.Say(text.LabelNote)+text.Clean(n.Text))
	}
}
