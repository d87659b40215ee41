package guard

import (
	"bytes"
	"unicode"
)

// Characters that have no shape serve three ends: they shape their neighbours,
// which scripts and emoji need; they order text of both directions; and they hide
// text from people that a model reads. Only the first kind stays, and only where
// it has work to do. The facts are those of the Unicode Standard, chapter 23, and
// of UTS #51.

// isShapeless reports whether r is left out wherever it stands.
func isShapeless(r rune) bool {
	switch {
	case r < 0x00ad:
		return false
	case r == 0x00ad, r == 0x034f, r == 0x061c, r == 0x17b4, r == 0x17b5, r == 0x180e,
		r == 0x200b, r == 0x200e, r == 0x200f, r == 0x3164, r == 0xfeff, r == 0xffa0:
		return true
	case r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f, r >= 0xfff0 && r <= 0xfffb, r >= 0x1bca0 && r <= 0x1bca3, r >= 0x1d173 && r <= 0x1d17a:
		return true
	case r >= 0xfdd0 && r <= 0xfdef, r&0xfffe == 0xfffe, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// isJoiner reports whether it depends on the neighbours of r whether it stays.
func isJoiner(r rune) bool {
	return r == 0x200c || r == 0x200d || r >= 0xfe00 && r <= 0xfe0f || r >= 0xe0100 && r <= 0xe01ef ||
		r >= 0x180b && r <= 0x180d || r == 0x180f || r == 0x115f || r == 0x1160
}

const (
	zwnj, zwj = 0x200c, 0x200d
	emojiForm = 0xfe0f
	textForm  = 0xfe0e
	keycap    = 0x20e3
)

// joins reports whether r, a joiner or a variation selector, shapes the characters
// around it.
func joins(last, r, next rune) bool {
	switch {
	case r == zwj && (isEmoji(last) || last == emojiForm):
		return isEmoji(next)
	case r == zwj:
		return isArabic(last) || isJoining(last) && isJoining(next)
	case r == zwnj:
		return isJoining(last) && isJoining(next)
	case r == emojiForm || r == textForm:
		return isEmoji(last) || next == keycap && (last == '#' || last == '*' || last >= '0' && last <= '9')
	case r >= 0xfe00 && r <= 0xfe02:
		return unicode.Is(unicode.Han, last) || last >= 0x2200 && last <= 0x22ff
	case r >= 0xe0100:
		return unicode.Is(unicode.Han, last)
	case r >= 0x180b && r <= 0x180f:
		return unicode.Is(unicode.Mongolian, last)
	case r == 0x115f: // what an old syllable has for a missing consonant
		return next >= 0x1160 && next <= 0x11a7
	case r == 0x1160: // and for a missing vowel
		return last >= 0x1100 && last <= 0x115f
	}
	return false
}

func isArabic(r rune) bool { return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Nko) }

// isJoining reports whether r is of a script in which joiners make a difference.
func isJoining(r rune) bool {
	return r >= 0x0900 && r <= 0x0dff || r >= 0x1000 && r <= 0x109f || r >= 0x1780 && r <= 0x17ff ||
		r >= 0x0600 && (isArabic(r) || unicode.Is(unicode.Mongolian, r))
}

// isEmoji reports whether r can be a picture.
func isEmoji(r rune) bool {
	return r >= 0x1f000 && r <= 0x1faff || r >= 0x2190 && r <= 0x21ff || r >= 0x2300 && r <= 0x23ff || r >= 0x2460 && r <= 0x27bf ||
		r >= 0x2900 && r <= 0x297f || r >= 0x2b00 && r <= 0x2bff || r == 0x00a9 || r == 0x00ae || r == 0x203c || r == 0x2049 ||
		r == 0x2122 || r == 0x2139 || r == 0x3030 || r == 0x303d || r == 0x3297 || r == 0x3299
}

// blackFlag begins the flags that are spelled with tag characters.
const (
	blackFlag = 0x1f3f4
	flagBytes = 24
)

func isTag(r rune) bool { return r >= 0xe0020 && r <= 0xe007f }

// flags are the ends of the three flags that are in use.
var flags = [3][]byte{tags("gbeng"), tags("gbsct"), tags("gbwls")}

func tags(region string) []byte {
	var s []rune
	for _, r := range region {
		s = append(s, 0xe0000+r)
	}
	return []byte(string(append(s, 0xe007f)))
}

// flag returns the length of the end of a flag at the start of b, or 0.
func flag(b []byte) int {
	for _, f := range flags {
		if bytes.HasPrefix(b, f) {
			return len(f)
		}
	}
	return 0
}
