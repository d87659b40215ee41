package pdftext

import (
	"sort"
	"strconv"
	"strings"
	"sync"
	"unicode/utf16"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"
)

// font turns the codes of a string into text and widths.
type font struct {
	size    int               // bytes of a code
	to      *mapping          // ToUnicode, or nil
	table   [256]string       // of codes of one byte
	codec   encoding.Encoding // of a predefined character map, or nil
	widths  map[int]float64   // in thousandths of the size
	missing float64
}

// glyph is a character that is shown.
type glyph struct {
	text  string
	width float64 // in thousandths of the size
	space bool    // word spacing applies
}

// maxEntries is how much of a table of a font is read.
const maxEntries = 1 << 17

func (d *Document) font(v any) *font {
	r, isRef := v.(ref)
	if f, ok := d.fonts[r]; ok && isRef {
		return f
	}
	f := d.readFont(d.dict(v))
	if isRef {
		d.fonts[r] = f
	}
	return f
}

func (d *Document) readFont(t dict) *font {
	f := &font{size: 1, widths: map[int]float64{}, missing: 500}
	if s, ok := d.resolve(t["ToUnicode"]).(stream); ok {
		f.to = readMapping(d.unpack(s))
	}
	if t["Subtype"] == name("Type0") {
		f.size = 2
		kind, _ := d.resolve(t["Encoding"]).(name)
		f.codec = characterMap(string(kind))
		if below := d.list(t["DescendantFonts"]); len(below) > 0 {
			d.cidWidths(f, d.dict(below[0]))
		}
		return f
	}
	d.simpleTable(f, t)
	first, _ := d.number(t["FirstChar"])
	for i, w := range d.list(t["Widths"]) {
		if n, ok := d.number(w); ok && i < 256 {
			f.widths[int(first)+i] = n
		}
	}
	if t["Subtype"] == name("Type3") { // in units of its own
		f.widths = map[int]float64{}
	}
	return f
}

// simpleTable fills the table of a font whose codes have one byte.
func (d *Document) simpleTable(f *font, t dict) {
	var base encoding.Encoding = charmap.Windows1252
	enc := d.resolve(t["Encoding"])
	kind, _ := enc.(name)
	differences, _ := enc.(dict)
	if differences != nil {
		kind, _ = d.resolve(differences["BaseEncoding"]).(name)
	}
	if kind == "MacRomanEncoding" {
		base = charmap.Macintosh
	}
	dec := base.NewDecoder()
	for i := range 256 {
		if s, err := dec.String(string([]byte{byte(i)})); err == nil && i >= 32 {
			f.table[i] = s
		}
	}
	code := 0
	for _, v := range d.list(differences["Differences"]) {
		switch v := d.resolve(v).(type) {
		case float64:
			code = int(v)
		case name:
			if code >= 0 && code < 256 {
				f.table[code] = glyphText(string(v))
			}
			code++
		}
	}
}

// cidWidths reads the widths of a composite font: "c [w1 w2 ...]" and "c1 c2 w".
func (d *Document) cidWidths(f *font, t dict) {
	f.missing = 1000
	if n, ok := d.number(t["DW"]); ok {
		f.missing = n
	}
	list := d.list(t["W"])
	for i := 0; i+1 < len(list) && len(f.widths) < maxEntries; {
		first, _ := d.number(list[i])
		if ws, ok := d.resolve(list[i+1]).(array); ok {
			for j, w := range ws {
				f.widths[int(first)+j], _ = d.number(w)
			}
			i += 2
			continue
		}
		last, _ := d.number(list[i+1])
		if i+2 < len(list) {
			w, _ := d.number(list[i+2])
			for c := int(first); c <= int(min(last, 0xffff)) && len(f.widths) < maxEntries; c++ {
				f.widths[c] = w
			}
		}
		i += 3
	}
}

// characterMap returns the encoding that a predefined character map of an Asian
// font reads (ISO 32000-1, 9.7.5.2); nil for all others.
func characterMap(kind string) encoding.Encoding {
	for _, m := range []struct {
		part string
		enc  encoding.Encoding
	}{
		{"-UCS2-", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{"-UTF16-", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
		{"KSC", korean.EUCKR},
		{"GB", simplifiedchinese.GB18030},
		{"RKSJ-", japanese.ShiftJIS},
		{"B5", traditionalchinese.Big5},
		{"HKscs", traditionalchinese.Big5},
		{"EUC-", japanese.EUCJP},
	} {
		if strings.Contains(kind, m.part) {
			return m.enc
		}
	}
	return nil
}

// glyphs reads a string.
func (f *font) glyphs(s string) []glyph {
	var out []glyph
	if f.to == nil && f.codec != nil {
		decoded, _ := f.codec.NewDecoder().String(s)
		for _, r := range decoded {
			out = append(out, glyph{string(r), 1000, r == ' '})
		}
		return out
	}
	for len(s) > 0 {
		n := f.size
		if f.to != nil && f.size > 1 {
			n = f.to.codeSize(s)
		}
		n = min(n, len(s))
		code := 0
		for i := range n {
			code = code<<8 | int(s[i])
		}
		g := glyph{width: f.missing, space: n == 1 && code == ' '}
		if w, ok := f.widths[code]; ok {
			g.width = w
		}
		if f.to != nil {
			g.text = f.to.lookup(code)
		}
		if g.text == "" && f.size == 1 {
			g.text = f.table[code&0xff]
		}
		out = append(out, g)
		s = s[n:]
	}
	return out
}

// mapping is a ToUnicode character map.
type mapping struct {
	sizes  [5]bool // lengths of codes that occur
	single map[int]string
	ranges []span
}

type span struct {
	low, high int
	to        []uint16
}

// readMapping reads the parts of a character map that say what codes mean.
func readMapping(data []byte) *mapping {
	m := &mapping{single: map[int]string{}}
	l := &lexer{data: data}
	var args []any
	for {
		v := l.object(0)
		op, ok := v.(keyword)
		if !ok {
			if len(args) < 1000 {
				args = append(args, v)
			}
			continue
		}
		switch op {
		case end:
			sort.Slice(m.ranges, func(i, j int) bool { return m.ranges[i].low < m.ranges[j].low })
			return m
		case "endcodespacerange":
			for _, a := range args {
				if s, ok := a.(text); ok && len(s) > 0 && len(s) < len(m.sizes) {
					m.sizes[len(s)] = true
				}
			}
		case "endbfchar":
			for i := 0; i+1 < len(args) && len(m.single) < maxEntries; i += 2 {
				from, ok1 := args[i].(text)
				to, ok2 := args[i+1].(text)
				if ok1 && ok2 {
					m.single[codeOf(from)] = string(utf16.Decode(units(to)))
				}
			}
		case "endbfrange":
			for i := 0; i+2 < len(args) && len(m.ranges) < maxEntries; i += 3 {
				m.addRange(args[i], args[i+1], args[i+2])
			}
		}
		args = args[:0]
	}
}

func (m *mapping) addRange(low, high, to any) {
	a, ok1 := low.(text)
	b, ok2 := high.(text)
	if !ok1 || !ok2 {
		return
	}
	switch to := to.(type) {
	case text:
		m.ranges = append(m.ranges, span{codeOf(a), codeOf(b), units(to)})
	case array:
		for i, v := range to {
			if s, ok := v.(text); ok && len(m.single) < maxEntries {
				m.single[codeOf(a)+i] = string(utf16.Decode(units(s)))
			}
		}
	}
}

func codeOf(s text) int {
	n := 0
	for i := range min(len(s), 4) {
		n = n<<8 | int(s[i])
	}
	return n
}

// units returns the UTF-16 units of a string, at most 16 of them.
func units(s text) []uint16 {
	var u []uint16
	if len(s) == 1 {
		return []uint16{uint16(s[0])}
	}
	for i := 0; i+1 < min(len(s), 32); i += 2 {
		u = append(u, uint16(s[i])<<8|uint16(s[i+1]))
	}
	return u
}

// codeSize returns how many bytes the next code has.
func (m *mapping) codeSize(s string) int {
	if m.sizes[1] && !m.sizes[2] {
		return 1
	}
	if m.sizes[1] && len(s) > 0 { // mixed: a code of one byte that is known
		if m.lookup(int(s[0])) != "" {
			return 1
		}
	}
	return 2
}

func (m *mapping) lookup(code int) string {
	if s, ok := m.single[code]; ok {
		return s
	}
	i := sort.Search(len(m.ranges), func(i int) bool { return m.ranges[i].low > code }) - 1
	if i < 0 || code > m.ranges[i].high || len(m.ranges[i].to) == 0 {
		return ""
	}
	u := append([]uint16(nil), m.ranges[i].to...)
	u[len(u)-1] += uint16(code - m.ranges[i].low)
	return string(utf16.Decode(u))
}

// glyphNames are the names of characters that do not tell them (Adobe Glyph
// List), in pairs.
var glyphNames = pairsOnce("space   exclam ! quotedbl \" numbersign # dollar $ percent % ampersand & quotesingle ' parenleft ( parenright ) asterisk * plus + " +
	"comma , hyphen - minus − period . slash / zero 0 one 1 two 2 three 3 four 4 five 5 six 6 seven 7 eight 8 nine 9 colon : semicolon ; less < " +
	"equal = greater > question ? at @ bracketleft [ backslash \\ bracketright ] asciicircum ^ underscore _ grave ` braceleft { bar | braceright } " +
	"asciitilde ~ quoteleft ‘ quoteright ’ quotedblleft “ quotedblright ” quotedblbase „ quotesinglbase ‚ endash – emdash — bullet • ellipsis … " +
	"fi fi fl fl ff ff ffi ffi ffl ffl germandbls ß ae æ AE Æ oe œ OE Œ oslash ø Oslash Ø eth ð Eth Ð thorn þ Thorn Þ lslash ł Lslash Ł dotlessi ı " +
	"exclamdown ¡ questiondown ¿ cent ¢ sterling £ yen ¥ euro € Euro € currency ¤ section § paragraph ¶ dagger † daggerdbl ‡ copyright © registered ® " +
	"trademark ™ degree ° plusminus ± multiply × divide ÷ onehalf ½ onequarter ¼ threequarters ¾ guillemotleft « guillemotright » guilsinglleft ‹ " +
	"guilsinglright › periodcentered · mu µ infinity ∞ lessequal ≤ greaterequal ≥ notequal ≠ approxequal ≈ summation ∑ integral ∫ radical √ " +
	"partialdiff ∂ arrowright → arrowleft ← nbspace   softhyphen - alpha α beta β gamma γ delta δ epsilon ε zeta ζ eta η theta θ iota ι kappa κ " +
	"lambda λ nu ν xi ξ omicron ο pi π rho ρ sigma σ tau τ upsilon υ phi φ chi χ psi ψ omega ω Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Phi Φ Psi Ψ Omega Ω")

// accents are the ends of names of letters with a mark, and the mark.
var accents = pairsOnce("acute \u0301 grave \u0300 circumflex \u0302 dieresis \u0308 tilde \u0303 ring \u030a caron \u030c cedilla \u0327 macron \u0304 " +
	"breve \u0306 ogonek \u0328 dotaccent \u0307 hungarumlaut \u030b")

// pairsOnce returns what makes the map of pairs when it is first wanted.
func pairsOnce(s string) func() map[string]string {
	return sync.OnceValue(func() map[string]string { return pairs(s) })
}

func pairs(s string) map[string]string {
	m := map[string]string{}
	f := strings.Split(s, " ")
	for i := 0; i+1 < len(f); i += 2 {
		m[f[i]] = f[i+1]
		if f[i+1] == "" { // a blank
			m[f[i]] = " "
			i++
		}
	}
	return m
}

// glyphText returns the character that a glyph is named after; "" if its name
// means nothing.
func glyphText(s string) string {
	s, _, _ = strings.Cut(s, ".")
	if len(s) == 1 {
		return s
	}
	if t, ok := glyphNames()[s]; ok {
		return t
	}
	for _, prefix := range []string{"uni", "u"} {
		if digits, ok := strings.CutPrefix(s, prefix); ok && len(digits) >= 4 && len(digits) <= 6 {
			if n, err := strconv.ParseUint(digits, 16, 32); err == nil {
				return string(rune(n))
			}
		}
	}
	if len(s) > 1 {
		if mark, ok := accents()[s[1:]]; ok {
			return norm.NFC.String(s[:1] + mark)
		}
	}
	return ""
}
