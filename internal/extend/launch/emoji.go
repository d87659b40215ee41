package launch

import (
	_ "embed" // the list
	"slices"
	"strings"
	"sync"

	"dure/agent/query"
)

// emojiText has a line for each sign: the sign, its name, behind a comma other words for
// it, and behind a bar those in Korean, of which the first two are its name.
//
//go:embed emoji.txt
var emojiText string

// sign is an emoji with what it is found by.
type sign struct {
	query.Emoji
	words []string
}

var signs = sync.OnceValue(func() (all []sign) {
	for line := range strings.Lines(emojiText) {
		mark, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		english, korean, _ := strings.Cut(rest, "|")
		name, more, _ := strings.Cut(english, ",")
		words := slices.Concat(strings.Fields(name), strings.Fields(more), strings.Fields(korean))
		all = append(all, sign{query.Emoji{Sign: mark, Name: name, Word: korean}, words})
	}
	return all
})

// The most emoji that are found, and how many unless more are asked for.
const (
	maxEmoji   = 200
	someEmoji  = 20
	maxQueried = 200 // bytes of what is looked for
)

// Emojis finds the emoji whose words begin as all words of a text do: those first that
// have the words themselves, and of these those whose name begins with one.
func Emojis(text string, limit int) []query.Emoji {
	if limit <= 0 {
		limit = someEmoji
	}
	limit = min(limit, maxEmoji)
	wanted := strings.Fields(strings.ToLower(text[:min(len(text), maxQueried)]))
	type hit struct {
		query.Emoji
		rank int
	}
	var hits []hit
	for _, s := range signs() {
		if s.Sign == strings.TrimSpace(text) {
			return []query.Emoji{s.Emoji}
		}
		rank, ok := s.rank(wanted)
		if ok {
			hits = append(hits, hit{s.Emoji, rank})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return a.rank - b.rank })
	found := []query.Emoji{}
	for _, h := range hits[:min(len(hits), limit)] {
		found = append(found, h.Emoji)
	}
	return found
}

// rank says how well a sign fits; 0 is best.
func (s sign) rank(wanted []string) (rank int, ok bool) {
	for _, w := range wanted {
		best := -1
		for i, word := range s.words {
			var cost int
			switch {
			case word == w && i == 0:
				cost = 0
			case word == w:
				cost = 1
			case strings.HasPrefix(word, w):
				cost = 2
			default:
				continue
			}
			if best < 0 || cost < best {
				best = cost
			}
		}
		if best < 0 {
			return 0, false
		}
		rank += best
	}
	return rank, true
}
