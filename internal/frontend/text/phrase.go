package text

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"
)

//go:embed locales/phrases.json
var phrasesSource []byte

// phrases are sentences that other packages write in English, because a log or a
// model reads them too, and what they are in Korean. {name} stands for a piece
// that is carried over; one that begins with a capital is looked up itself. The first that
// fits counts, so that those that fit much stand last.
var phrases = sync.OnceValue(func() (all [][2]string) {
	_ = json.Unmarshal(phrasesSource, &all) // a test reads it, too
	return all
})

// Phrase returns what s, a sentence that another package wrote in English, is in
// the language. What is not known stays as it is.
func (c Catalog) Phrase(s string) string {
	if c.Language() != "ko" {
		return s
	}
	const deepest = 6 // sentences in each other
	return koreanPhrase(s, deepest)
}

func koreanPhrase(s string, deep int) string {
	const longest = 8 << 10 // bytes; nothing of ours is longer
	if deep == 0 || len(s) > longest {
		return s
	}
	for _, p := range phrases() {
		args, ok := match(p[0], s)
		if !ok {
			continue
		}
		for name, v := range args {
			if name[0] >= 'A' && name[0] <= 'Z' {
				args[name] = koreanPhrase(v, deep-1)
			}
		}
		return fill(p[1], func(name string) (string, bool) { v, ok := args[name]; return v, ok })
	}
	return s
}

// match reads s as a pattern with placeholders: each takes as little as it can,
// the last one all that is left, and none takes nothing.
func match(pattern, s string) (map[string]string, bool) {
	literal, rest, found := strings.Cut(pattern, "{")
	if !found {
		return nil, pattern == s
	}
	s, ok := strings.CutPrefix(s, literal)
	if !ok {
		return nil, false
	}
	args := map[string]string{}
	for {
		name, after, _ := strings.Cut(rest, "}")
		literal, next, more := strings.Cut(after, "{")
		var value string
		if !more {
			if value, ok = strings.CutSuffix(s, literal); !ok || value == "" {
				return nil, false
			}
			args[name] = value
			return args, true
		}
		at := strings.Index(s, literal)
		if at < 1 {
			return nil, false
		}
		args[name], s, rest = s[:at], s[at+len(literal):], next
	}
}
