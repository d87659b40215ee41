package cli

import (
	"dure/agent"
	"dure/internal/frontend/text"
)

// maxLeft is how many of the files that were left alone are named.
const maxLeft = 10

// whyLeft are the reasons for which a path is left as it is. Those of a rejection
// that somebody else is in the way of say what to do about it.
var whyLeft = map[string]text.Key{
	"outside": text.LeftForeign, "overlap": text.LeftOverlap, "not-kept": text.LeftNotKept, "lost": text.LeftLost,
	"hunk": text.LeftHunk, "changed": text.LeftChanged, "in-way": text.LeftInWay, "refused": text.LeftRefused,
	"damaged": text.LeftDamaged, "elsewhere": text.LeftElsewhere,
}

// leftLine says why a path is left as it is.
func leftLine(t text.Catalog, path, code, why string, rejected bool) string {
	k, known := whyLeft[code]
	switch {
	case rejected && code == "outside":
		why = t.Say(text.LeftOutside)
	case known:
		why = t.Say(k)
	default:
		why = text.OneLine(bounded(why))
	}
	return t.Say(text.LeftPath, "path", text.ExactLine(bounded(path)), "why", why)
}

// rewoundLines says what came of putting files back: how many were, and which were
// left alone.
func rewoundLines(t text.Catalog, b agent.FilesRewound) []string {
	lines := []string{t.Say(text.FilesBack, "count", b.Files)}
	if b.Leaves > 0 {
		lines = append(lines, t.Say(text.FilesLeft, "count", b.Leaves))
	}
	rejected := b.Seq == 0
	for _, l := range b.Left[:min(len(b.Left), maxLeft)] {
		lines = append(lines, "  "+leftLine(t, l.Path, l.Code, l.Why, rejected))
	}
	return lines
}

// acceptedLine says what was accepted.
func acceptedLine(t text.Catalog, b agent.ChangesAccepted) string {
	if b.All {
		return t.Say(text.DiffAcceptedAll)
	}
	return t.Say(text.DiffAccept, "n", len(b.Files))
}
