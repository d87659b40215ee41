package guard

import "dure/agent"

// A Stream cleans the output of a running call, so that it can be shown while it
// arrives. Wherever the output is cut, all that is shown is what [Eval] makes of the
// whole, and then what the user's own patterns mask. Only a line that goes back to
// where something was shown already is shown once more, as a line of its own: what
// becomes a secret only by writing over it was shown in its parts before.
//
// Text is passed on at once. Held back is what may become a secret or a sequence for
// the terminal, until what follows decides or 32 KiB have come; a line that is
// written over, until it ends or has 4 KiB; and with patterns of the user's, each
// line until it ends or has 16 KiB.
//
// It is for one goroutine.
type Stream struct {
	filter
	own  []ownPattern
	line []byte // clean, and not looked at by own yet
}

// Stream returns a stream for one call of a tool.
func (g *Guard) Stream(spec agent.Spec) *Stream {
	s := &Stream{own: g.Patterns.of(spec.Group)}
	s.filter.init(scopeOf(spec.Group))
	s.view.live = true
	return s
}

// Add takes more of the output, and returns what may be shown now.
func (s *Stream) Add(text string) string { return s.next(text, false) }

// Flush returns what was held back, when there is no more to come.
func (s *Stream) Flush() string { return s.next("", true) }

func (s *Stream) next(text string, atEnd bool) string {
	s.take([]byte(text), atEnd)
	if len(s.own) == 0 {
		return string(s.ready)
	}
	s.line = append(s.line, s.ready...)
	whole := wholeLines(s.line, atEnd)
	out := mask(nil, s.line[:whole], s.own, &s.view.kinds)
	s.line = append(s.line[:0], s.line[whole:]...)
	return string(out)
}
