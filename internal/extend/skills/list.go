package skills

import (
	"slices"
	"strings"
	"unicode/utf8"

	"dure/internal/base/frontmatter"
)

// UsualBudget is how many characters the list for a model has where its window is not
// known: a hundredth of the usual one.
const UsualBudget = 8_000

// Budget is how many characters of descriptions the list for a model may have, with a
// window of so many tokens: a hundredth of it.
func Budget(window int) int {
	const bytesPerToken = 4
	if window <= 0 {
		return UsualBudget
	}
	return window * bytesPerToken / 100
}

// Listing is what a model is told of the skills that it may call: all their names, and
// what they are for as far as the budget goes. Those that are built in are left out: the
// tool finds them; those for certain paths are told once such a file was touched. Of the others, those
// come first that were used most, by used. No description has more than longest characters.
// short says how many are left without one.
func Listing(list []Skill, budget, longest int, used func(Skill) int, touched func(Skill) bool) (text string, short int) {
	var own []*Skill
	for i := range list {
		k := &list[i]
		if k.Off == "" && !k.NoModel && k.Place.Scope != frontmatter.BuiltIn && (len(k.Paths) == 0 || touched(*k)) {
			own = append(own, k)
		}
	}
	if len(own) == 0 {
		return "", 0
	}
	byUse := slices.Clone(own)
	slices.SortStableFunc(byUse, func(a, b *Skill) int { return used(*b) - used(*a) })
	told := map[string]string{}
	for _, k := range byUse {
		if k.Bare {
			continue
		}
		text := cut(k.Described(), longest)
		line := utf8.RuneCountInString(text)
		if line > budget {
			short++
			continue
		}
		budget -= line
		told[k.Name] = text
	}
	var b strings.Builder
	b.WriteString("Skills (call Skill with a name when one fits the task, before you begin):\n")
	for _, k := range own {
		b.WriteString("- " + k.Name)
		if d := told[k.Name]; d != "" {
			b.WriteString(": " + d)
		}
		b.WriteByte('\n')
	}
	return strings.TrimRight(b.String(), "\n"), short
}

// Search returns the skills that a model may call and that words are about, the likeliest
// first; all of them for no words.
func Search(list []Skill, words string, most int) []Skill {
	type hit struct {
		Skill
		score int
	}
	var hits []hit
	terms := strings.Fields(strings.ToLower(words))
	for _, k := range list {
		if k.Off != "" || k.NoModel {
			continue
		}
		name, about := strings.ToLower(k.Name), strings.ToLower(k.Description+" "+k.When)
		score := 0
		for _, t := range terms {
			if strings.Contains(name, t) {
				score += 3
			}
			if strings.Contains(about, t) {
				score++
			}
		}
		if score > 0 || len(terms) == 0 {
			hits = append(hits, hit{k, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.score - a.score })
	var found []Skill
	for _, h := range hits[:min(len(hits), most)] {
		found = append(found, h.Skill)
	}
	return found
}
