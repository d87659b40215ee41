package text

import "strings"

// particle returns the Korean particle that fits behind word: closed follows a
// final consonant, open a vowel. Behind 로 a final ㄹ counts as a vowel. Where
// the sound cannot be told from the spelling both forms are written.
func particle(word, closed, open string) string {
	r, ok := lastSounded(word)
	if !ok {
		if more, found := strings.CutSuffix(closed, open); found {
			return "(" + more + ")" + open // (으)로
		}
		return closed + "(" + open + ")"
	}
	final := finalOf(r)
	if final == 0 || (final == rieul && strings.HasPrefix(open, "로")) {
		return open
	}
	return closed
}

// Finals of a Hangul syllable, counted as Unicode does. Of the digits we only
// have to know whether they end in a vowel, in ㄹ, or in something else.
const (
	noFinal = 0
	rieul   = 8
	other   = 1
)

func finalOf(r rune) int {
	if r >= '0' && r <= '9' { // 영 일 이 삼 사 오 육 칠 팔 구
		return [10]int{other, rieul, noFinal, other, noFinal, noFinal, other, rieul, rieul, noFinal}[r-'0']
	}
	return int(r-0xAC00) % 28
}

// lastSounded returns the last syllable or digit of word, behind which only
// quotes and brackets may stand.
func lastSounded(word string) (rune, bool) {
	word = strings.TrimRight(word, "\"'`)]}”’」』 ")
	rs := []rune(word)
	if len(rs) == 0 {
		return 0, false
	}
	r := rs[len(rs)-1]
	return r, (r >= 0xAC00 && r <= 0xD7A3) || (r >= '0' && r <= '9')
}
