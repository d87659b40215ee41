package index

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is how many bytes of a folded word are told apart; hashes fit.
const maxWord = 100

// A word is a run of letters and digits of one kind in a text: of a script that is
// written without blanks, or in which particles stick to words (Hangul, kana and
// han), or of all others.
type word struct {
	from, to int // bytes
	cjk      bool
}

// words yields the words of a text in order. Marks belong to the letter in front.
func words(s string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for i := 0; i < len(s); {
			kind, n := kindAt(s, i)
			if kind != letter && kind != cjk {
				i += n
				continue
			}
			w := word{from: i, cjk: kind == cjk}
			for i += n; i < len(s); i += n {
				var next charKind
				if next, n = kindAt(s, i); next != kind && next != mark {
					break
				}
			}
			w.to = i
			if !yield(w) {
				return
			}
		}
	}
}

type charKind uint8

const (
	other charKind = iota
	letter
	cjk
	mark
)

// kindAt says what stands at s[i], and how many bytes it has.
func kindAt(s string, i int) (charKind, int) {
	c := s[i]
	if c < utf8.RuneSelf {
		if c-'0' < 10 || c|0x20-'a' < 26 {
			return letter, 1
		}
		return other, 1
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	switch {
	case r >= 0xAC00 && r <= 0xD7A3, r >= 0x4E00 && r <= 0x9FFF, r >= 0x3041 && r <= 0x3096, r >= 0x30A1 && r <= 0x30FC:
		return cjk, n // nearly all of them
	case unicode.Is(unicode.M, r):
		return mark, n
	case unicode.In(r, unicode.Hangul, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return cjk, n
	case unicode.IsLetter(r), unicode.IsNumber(r):
		return letter, n
	}
	return other, n
}

// clean makes text what is indexed and shown: UTF-8 with composed characters.
func clean(s string) string { return norm.NFC.String(strings.ToValidUTF8(s, "\uFFFD")) }

// fold returns a word as it is compared: in lower case, without accents, of the
// plain forms of its letters, its first maxWord bytes. It is "" when nothing is left.
func fold(w string) string {
	plain := true
	for i := range len(w) {
		if w[i] >= utf8.RuneSelf {
			plain = false
			break
		}
	}
	if !plain {
		w = strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, norm.NFKD.String(w))
	} else if strings.ContainsFunc(w, func(r rune) bool { return r >= 'A' && r <= 'Z' }) {
		w = strings.ToLower(w)
	}
	if len(w) <= maxWord {
		return w
	}
	n := maxWord
	for !utf8.RuneStart(w[n]) {
		n--
	}
	return w[:n]
}

// columns returns what a text is found by: its words, folded, and the pairs of
// neighbours in its words of the other kind, each of which ends with its last
// character alone.
func columns(text string) (plain, pairs string) {
	var p, g strings.Builder
	p.Grow(len(text))
	for w := range words(text) {
		if w.cjk {
			g.WriteString(pairsOf(text[w.from:w.to], true))
			g.WriteByte(' ')
		} else if f := fold(text[w.from:w.to]); f != "" {
			p.WriteString(f)
			p.WriteByte(' ')
		}
	}
	return p.String(), g.String()
}

// pairsOf returns the pairs of a word, with its last character behind them if the
// word ends there.
func pairsOf(w string, ends bool) string {
	var b strings.Builder
	b.Grow(3 * len(w))
	at := 0
	for at < len(w) {
		_, n := utf8.DecodeRuneInString(w[at:])
		rest := w[at+n:]
		if rest == "" {
			break
		}
		_, m := utf8.DecodeRuneInString(rest)
		if at > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w[at : at+n+m])
		at += n
	}
	if ends || at == 0 {
		if at > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w[at:])
	}
	return b.String()
}
