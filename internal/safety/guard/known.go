package guard

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"sync"
)

// The bounds of what a [Known] keeps.
const (
	minKnown  = 8 // bytes; a shorter text is in too many others
	maxKnown  = 10_000
	knownMask = "sign-in"
)

// Known are secrets that the program itself has, such as the tokens of sign-ins:
// letter by letter, whatever they look like. They are added while it runs. The zero
// value is empty; it is safe for concurrent use.
//
// They are looked for as [Patterns] are: within lines, and in pieces of a line of
// more than 16 KiB.
type Known struct {
	mu   sync.RWMutex
	all  map[string]bool
	sent [][]byte // the longest first; replaced, never changed
}

// Add makes a secret known, in the forms that it takes in JSON and in addresses
// too. A short one, and more than 10,000, are not kept: such a text stands in too
// many others, and so many are no secrets of one person.
func (k *Known) Add(secret string) {
	if len(secret) < minKnown {
		return
	}
	k.mu.RLock()
	has := k.all[secret]
	k.mu.RUnlock()
	if has {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	next := slices.Clone(k.sent)
	for _, form := range []string{secret, inJSON(secret), url.QueryEscape(secret), url.PathEscape(secret)} {
		if k.all[form] || len(k.all) >= maxKnown {
			continue
		}
		if k.all == nil {
			k.all = map[string]bool{}
		}
		k.all[form] = true
		next = append(next, []byte(form))
	}
	slices.SortFunc(next, func(a, b []byte) int { return cmp.Or(len(b)-len(a), bytes.Compare(a, b)) })
	k.sent = next
}

func inJSON(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		return s
	}
	return string(b[1 : len(b)-1])
}

// empty reports whether nothing is known yet.
func (k *Known) empty() bool {
	if k == nil {
		return true
	}
	k.mu.RLock()
	defer k.mu.RUnlock()
	return len(k.sent) == 0
}

// mask masks what is known in a line.
func (k *Known) mask(line []byte, found *kinds) []byte {
	k.mu.RLock()
	all := k.sent
	k.mu.RUnlock()
	for _, secret := range all {
		if !bytes.Contains(line, secret) {
			continue
		}
		found.found(knownMask)
		line = bytes.ReplaceAll(line, secret, span{kind: knownMask}.appendMask(nil))
	}
	return line
}

// With returns the patterns with what is known beside them, for all tools.
func (p *Patterns) With(k *Known) *Patterns {
	all := []ownPattern{{known: k}}
	if p != nil {
		all = append(all, p.all...)
	}
	return &Patterns{all}
}
