package compact

import (
	"fmt"
	"strings"

	"dure/agent"
)

// Prefix begins the message that stands for what was shortened.
const Prefix = "[Previous conversation summary]"

// head is what comes in the place of the messages in front of the cut. It is one
// message of the user's, for every provider allows that at the beginning.
func (p *plan) head() []agent.Message {
	var b strings.Builder
	b.WriteString(Prefix + "\n")
	fmt.Fprintf(&b, "The conversation before this point was shortened; %d messages are not shown.", p.cut)
	if p.recall != "" {
		fmt.Fprintf(&b, " Numbers such as [#12] name events of its log: %s opens them.", p.recall)
	}
	b.WriteString("\n")
	if pinned := p.carried(); len(pinned) > 0 {
		b.WriteString("\nWhat holds, word for word:\n")
		for _, f := range pinned {
			b.WriteString(line(f))
		}
	}
	if p.summary != "" {
		b.WriteString("\nWhat happened:\n" + p.summary + "\n")
	}
	return []agent.Message{agent.UserText(b.String())}
}

// line is a pinned fact as the head has it. The lines around a text have a part of its
// hash, so that no text can pose as several.
func line(f agent.Pinned) string {
	from := ""
	if f.Seq > 0 {
		from = fmt.Sprintf(" [#%d]", f.Seq)
	}
	if !strings.Contains(f.Text, "\n") {
		return fmt.Sprintf("- %s%s: %s\n", f.Kind, from, f.Text)
	}
	return fmt.Sprintf("- %s%s, between two lines of %s:\n%s\n%s\n%s\n", f.Kind, from, f.SHA256[:8], f.SHA256[:8], f.Text, f.SHA256[:8])
}

// Carried reports whether a head has every pinned fact word for word.
func Carried(head []agent.Message, pinned []agent.Pinned) error {
	var text strings.Builder
	for _, m := range head {
		text.WriteString(m.Text())
	}
	for _, f := range pinned {
		if !Intact(f) || !strings.Contains(text.String(), line(f)) {
			return fmt.Errorf("the pinned %s of event %d is not carried word for word", f.Kind, f.Seq)
		}
	}
	return nil
}
