package guard

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxGroups and maxDigits bound a number in groups.
const (
	maxGroups = 8
	maxDigits = 24
)

// A grouped is a number as people write it: groups of digits with one and the same
// separator between them.
type grouped struct {
	sizes  [maxGroups]int
	ends   [maxGroups]int // where each group ends in the text
	n      int            // groups
	digits [maxDigits]byte
	sep    string // "" = there is one group
	more   bool   // it goes on behind what is here
}

// upTo returns how many digits the first k groups have.
func (g *grouped) upTo(k int) (n int) {
	for _, size := range g.sizes[:k] {
		n += size
	}
	return n
}

// are reports whether the sizes of the first groups are these.
func (g *grouped) are(sizes ...int) bool {
	if g.n < len(sizes) {
		return false
	}
	for i, size := range sizes {
		if g.sizes[i] != size {
			return false
		}
	}
	return true
}

// groupsAt reads the number at b[i].
func groupsAt(b []byte, i int) (g grouped) {
	for total := 0; g.n < maxGroups; g.n++ {
		n := 0
		for ; i+n < len(b) && isDigit(b[i+n]); n++ {
			if total == maxDigits {
				g.more = g.sep != " " // the next number begins behind a space
				return g
			}
			g.digits[total] = b[i+n]
			total++
		}
		i += n
		g.sizes[g.n], g.ends[g.n] = n, i
		sep := separatorAt(b[i:])
		if sep == "" || i+len(sep) >= len(b) || !isDigit(b[i+len(sep)]) {
			g.n++
			return g
		}
		if g.n == 0 {
			g.sep = sep
		}
		if sep != g.sep {
			g.n++
			g.more = sep != " "
			return g
		}
		i += len(sep)
	}
	g.more = g.sep != " "
	return g
}

// separatorAt returns what may stand between the groups of a number at the start
// of b: a space or hyphen in one of their forms.
func separatorAt(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > 2 && string(b[:3]) == " - " {
		return " - "
	}
	if b[0] == ' ' || b[0] == '-' {
		return string(b[:1])
	}
	if b[0] < utf8.RuneSelf {
		return ""
	}
	switch r, n := utf8.DecodeRune(b); r {
	case 0x00a0, 0x2009, 0x202f, 0x2010, 0x2011, 0x2012, 0x2013, 0x2212, 0xff0d:
		return string(b[:n])
	}
	return ""
}

// number looks at the number that begins at b[i].
func (f *finder) number(b []byte, i int) (span, bool) {
	n := run(b[i:min(len(b), i+32)], &digitTable, 32)
	if n >= 8 && n <= 10 && i+n < len(b) && b[i+n] == ':' {
		if m := run(b[i+n+1:], &urlSafeTable, 36); m == 35 {
			return span{start: i, end: i + n + 1 + m, kind: "telegram-token"}, random(b[i+n+1 : i+n+1+m])
		}
	}
	if !f.financial || n > 19 || n < 3 || n < 8 && (i+n >= len(b) || b[i+n] != ' ' && b[i+n] != '-' && b[i+n] < utf8.RuneSelf) {
		return span{}, false
	}
	if i > f.floor {
		switch prev := b[i-1]; {
		case prev == '.' || prev == ',', prev == '-':
			if i-1 > f.floor && isDigit(b[i-2]) {
				return span{}, false // the rest of a longer number
			}
			if prev == '-' && (i-1 <= f.floor || !isWord(b[i-2])) {
				return span{}, false // less than nothing
			}
		case prev == '+':
			return span{}, false // a telephone number
		}
	}
	g := groupsAt(b, i)
	if s, ok := f.card(b, i, &g); ok {
		return s, true
	}
	if s, ok := f.socialSecurity(b, i, &g); ok {
		return s, true
	}
	if s, ok := f.resident(b, i, &g); ok {
		return s, true
	}
	return f.account(b, i, &g)
}

// endsWith reports whether the number may end with its group k.
func (g *grouped) endsWith(b []byte, k int) bool {
	if k == g.n && g.more || k < g.n && g.sep != " " {
		return false
	}
	end := g.ends[k-1]
	if end >= len(b) {
		return true
	}
	if isWord(b[end]) {
		return false
	}
	return !(b[end] == '.' && end+1 < len(b) && isDigit(b[end+1]))
}

// lastFour returns the last four digits or letters of b.
func lastFour(b []byte) (tail [4]byte) {
	k := 4
	for i := len(b) - 1; i >= 0 && k > 0; i-- {
		if isWord(b[i]) {
			k--
			tail[k] = b[i]
		}
	}
	return tail
}

func financial(b []byte, start, end int, kind string) span {
	return span{start: start, end: end, kind: kind, tail: lastFour(b[start:end])}
}

// card matches the number of a payment card: 13 to 19 digits that an issuer may
// have given out, with a valid last one (ISO/IEC 7812).
func (f *finder) card(b []byte, i int, g *grouped) (span, bool) {
	for k := 1; k <= g.n; k++ {
		total := g.upTo(k)
		if total > 19 {
			break
		}
		if total < 13 || !g.endsWith(b, k) || !isCardShape(g, k) {
			continue
		}
		if d := g.digits[:total]; issued(d, k > 1) && luhn(d) {
			return financial(b, i, g.ends[k-1], "card"), true
		}
	}
	return span{}, false
}

// isCardShape reports whether the first k groups are as on cards.
func isCardShape(g *grouped, k int) bool {
	if k == 1 || k == 3 && (g.are(4, 6, 5) || g.are(4, 6, 4)) || k == 2 && g.are(6, 13) || k == 2 && g.are(8, 8) || k == 4 && g.are(4, 3, 3, 3) {
		return true
	}
	for _, size := range g.sizes[:k-1] {
		if size != 4 {
			return false
		}
	}
	return k >= 4 && g.sizes[k-1] <= 4
}

// issued reports whether an issuer may have given out the number: by its first
// digits and its length. Some issuers of one country are known only when the
// number is in groups.
func issued(d []byte, inGroups bool) bool {
	p := 0 // first six digits
	for _, c := range d[:6] {
		p = p*10 + int(c-'0')
	}
	n := len(d)
	in := func(from, to, div int) bool { return p/div >= from && p/div <= to }
	switch {
	case d[0] == '4': // Visa
		return n == 13 || n == 16 || n == 19
	case in(51, 55, 10000), in(2221, 2720, 100): // Mastercard
		return n == 16
	case in(34, 34, 10000), in(37, 37, 10000): // American Express
		return n == 15
	case in(300, 305, 1000), in(3095, 3095, 100), in(36, 36, 10000), in(38, 39, 10000): // Diners Club
		return n == 14 || n == 16 || n == 19
	case in(62, 62, 10000): // UnionPay
		return n >= 16
	case in(3528, 3589, 100), in(6011, 6011, 100), in(644, 659, 1000), in(81, 82, 10000), in(2200, 2204, 100): // JCB, Discover, RuPay, Mir
		return n == 16
	case in(5018, 5018, 100), in(5020, 5020, 100), in(5038, 5038, 100), in(5893, 5893, 100), in(6304, 6304, 100),
		in(6759, 6759, 100), in(6761, 6763, 100): // Maestro
		return true
	case in(508, 508, 1000), in(60, 60, 10000), in(9792, 9792, 100): // RuPay, Troy
		return n == 16
	case in(94, 94, 10000): // Korean
		return n == 16 && inGroups
	}
	return false
}

// luhn checks the last digit.
func luhn(d []byte) bool {
	sum := 0
	for i, c := range d {
		v := int(c - '0')
		if (len(d)-i)%2 == 0 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
	}
	return sum%10 == 0
}

// socialSecurity matches a number of the US Social Security: with hyphens by
// itself, else by the words before it.
func (f *finder) socialSecurity(b []byte, i int, g *grouped) (span, bool) {
	k := 1
	if g.are(3, 2, 4) {
		k = 3
	} else if !g.are(9) {
		return span{}, false
	}
	d := g.digits[:9]
	area := string(d[:3])
	if !g.endsWith(b, k) || area == "000" || area == "666" || d[0] == '9' || string(d[3:5]) == "00" || string(d[5:9]) == "0000" {
		return span{}, false
	}
	if (k == 1 || g.sep == " ") && !containsAny(f.before(b, i), "ssn", "social security", "사회보장번호") {
		return span{}, false
	}
	return span{start: i, end: g.ends[k-1], kind: "ssn"}, true
}

// resident matches a Korean resident or foreigner number: the day of birth, then
// the century and sex, then six digits. The last is a check digit only in numbers
// from before October 2020, so a right one adds confidence and a wrong one proves
// nothing.
func (f *finder) resident(b []byte, i int, g *grouped) (span, bool) {
	k := 1
	if g.are(6, 7) {
		k = 2
	} else if !g.are(13) {
		return span{}, false
	}
	d := g.digits[:13]
	if !g.endsWith(b, k) || !isBirth(d) {
		return span{}, false
	}
	before := f.before(b, i)
	if containsAny(before, "법인", "corporat") && !containsAny(before, "주민", "resident") {
		return span{}, false // a company's, of the same form
	}
	if (k == 1 || g.sep == " ") && !containsAny(before, "주민", "외국인", "등록번호", "생년월일", "rrn", "resident", "jumin", "national id") {
		// Times in milliseconds begin with 1 from 2001 to 2033, Korean articles with 880.
		if !residentCheck(d) || k == 1 && (d[0] == '1' || string(d[:3]) == "880" && articleCheck(d)) {
			return span{}, false
		}
	}
	return span{start: i, end: g.ends[k-1], kind: "rrn"}, true
}

// isBirth reports whether d begins with a day that there was, and the digit of its
// century.
func isBirth(d []byte) bool {
	two := func(i int) int { return int(d[i]-'0')*10 + int(d[i+1]-'0') }
	year, month, day := two(0), two(2), two(4)
	switch d[6] {
	case '9', '0':
		year += 1800
	case '3', '4', '7', '8':
		year += 2000
	default:
		year += 1900
	}
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	days := [12]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1]
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		days++
	}
	return day <= days
}

func residentCheck(d []byte) bool {
	sum := 0
	for i, weight := range [12]int{2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5} {
		sum += weight * int(d[i]-'0')
	}
	check := (11 - sum%11) % 10
	if d[6] >= '5' && d[6] <= '8' {
		check = (13 - sum%11) % 10
	}
	return check == int(d[12]-'0')
}

// articleCheck checks the last digit of the number of an article (EAN-13).
func articleCheck(d []byte) bool {
	sum := 0
	for i, c := range d {
		sum += int(c-'0') * (1 + i%2*2)
	}
	return sum%10 == 0
}

// bankForms are the groups in which Korean banks write accounts, as far as nothing
// else is written so.
var bankForms = [][]int{{3, 3, 6}, {4, 3, 6}, {3, 6, 5}, {6, 2, 6}, {4, 2, 7}, {3, 6, 2, 3}, {3, 4, 4, 2}, {3, 2, 6}, {4, 4, 4, 1}}

// account matches the number of a bank account: in a bank's own form, or behind a
// word that announces it.
func (f *finder) account(b []byte, i int, g *grouped) (span, bool) {
	k := g.n
	if g.sep == " " && g.sizes[0] >= 8 {
		k = 1 // what follows is another number
	}
	if !g.endsWith(b, k) {
		return span{}, false
	}
	total, end := g.upTo(k), g.ends[k-1]
	if g.sep != "" && g.sep != " " {
		for _, form := range bankForms {
			if g.n == len(form) && g.are(form...) && !(form[0] == 4 && (string(g.digits[:2]) == "20" || string(g.digits[:2]) == "19")) {
				return financial(b, i, end, "account"), true
			}
		}
	}
	if total < 8 || total > 17 || k > 5 || k > 1 && g.are(4, 2, 2) {
		return span{}, false
	}
	routing, numbered, ok := announced(f.before(b, i))
	if !ok || routing && total != 9 || !routing && !numbered && k == 1 && total < 10 || !routing && k == 1 && total < 9 {
		return span{}, false
	}
	return financial(b, i, end, "account"), true
}

// announced reports whether a text ends with a word for an account, with nothing
// but the likes of "number is: " behind it. Numbered says that there was such.
func announced(t []byte) (routing, numbered, ok bool) {
	if !containsAny(t, "account", "acct", "a/c", "iban", "routing", "계좌", "통장", "은행", "뱅크") {
		return false, false, false
	}
	s := string(t)
	numbered = strings.ContainsAny(s[max(0, len(s)-4):], ":=#")
	for range 5 {
		s = strings.TrimRight(s, " \t:=#.'\"`()[]<>\\_|*")
		cut := s
		for _, w := range []string{"번호는", "번호가", "번호로", "번호", "는", "은", "가", "로", "으로"} {
			if rest, found := strings.CutSuffix(s, w); found {
				cut, numbered = rest, numbered || strings.HasPrefix(w, "번호")
				break
			}
		}
		for _, w := range []string{"number", "num", "no", "nr", "is"} {
			if rest, found := strings.CutSuffix(s, w); found && cut == s {
				cut, numbered = rest, true
				break
			}
		}
		if cut == s {
			break
		}
		s = cut
	}
	for _, w := range []string{"계좌", "통장", "은행", "뱅크"} {
		if strings.HasSuffix(s, w) {
			return false, numbered, true
		}
	}
	for _, w := range []string{"account", "acct", "a/c", "iban", "routing"} {
		rest, found := strings.CutSuffix(s, w)
		if !found {
			continue
		}
		rest = strings.TrimSuffix(rest, "bank")
		if last, _ := utf8.DecodeLastRuneInString(rest); rest == "" || last >= 0x80 || last < 'a' || last > 'z' {
			return w == "routing", numbered, true
		}
	}
	return false, false, false
}

func containsAny(b []byte, words ...string) bool {
	for _, w := range words {
		if bytes.Contains(b, []byte(w)) {
			return true
		}
	}
	return false
}
