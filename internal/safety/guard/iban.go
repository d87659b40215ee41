package guard

import "bytes"

// ibanLengths are those of the countries in the IBAN registry (ISO 13616).
const ibanLengths = "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 " +
	"GB22 GE22 GI23 GL18 GR27 GT28 HN28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 " +
	"MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20 YE30"

// ibans are the numbers of accounts of each country, in capitals and in small
// letters.
func ibans() []secret {
	var all []secret
	for _, c := range bytes.Fields([]byte(ibanLengths)) {
		size := int(c[2]-'0')*10 + int(c[3]-'0')
		for _, country := range []string{string(c[:2]), string(bytes.ToLower(c[:2]))} {
			all = append(all, secret{kind: "iban", trigger: country, word: true, financial: true, open: openIBAN, extent: func(b []byte, i int) (int, int, bool) {
				end, ok := ibanEnd(b, i, size)
				return i, end, ok
			}})
		}
	}
	return all
}

// ibanEnd returns where the IBAN at b[i] ends: letters and digits, in groups of
// four or in one, whose number gives 1 modulo 97.
func ibanEnd(b []byte, i, size int) (end int, ok bool) {
	if i+4 > len(b) || !isDigit(b[i+2]) || !isDigit(b[i+3]) {
		return 0, false
	}
	var chars [34]byte
	n, sep := 0, byte(0)
	for end = i; end < len(b) && n < size; end++ {
		c := b[end]
		if (c == ' ' || c == '-') && n%4 == 0 && (sep == 0 && n == 4 || sep == c) && b[end-1] != c {
			sep = c
			continue
		}
		if sep != 0 && n%4 == 0 && b[end-1] != sep {
			return 0, false
		}
		switch {
		case c >= 'a' && c <= 'z':
			c -= 'a' - 'A'
		case !isDigit(c) && (c < 'A' || c > 'Z'):
			return 0, false
		}
		chars[n] = c
		n++
	}
	if n < size || end < len(b) && isWord(b[end]) {
		return 0, false
	}
	rest := 0
	for k := range n {
		if c := chars[(k+4)%n]; isDigit(c) {
			rest = (rest*10 + int(c-'0')) % 97
		} else {
			rest = (rest*100 + int(c-'A') + 10) % 97
		}
	}
	return end, rest == 1
}
