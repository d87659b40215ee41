package workspace

import (
	"maps"
	"slices"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// others are the encodings that are never detected: who reads such a file says
// so. Files in them can be read, and not edited by their characters.
var others = map[Encoding]encoding.Encoding{
	"big5":         traditionalchinese.Big5,
	"euc-jp":       japanese.EUCJP,
	"gb18030":      simplifiedchinese.GB18030,
	"ibm437":       charmap.CodePage437,
	"ibm850":       charmap.CodePage850,
	"iso-2022-jp":  japanese.ISO2022JP,
	"iso-8859-1":   charmap.ISO8859_1,
	"iso-8859-2":   charmap.ISO8859_2,
	"iso-8859-15":  charmap.ISO8859_15,
	"koi8-r":       charmap.KOI8R,
	"macintosh":    charmap.Macintosh,
	"shift_jis":    japanese.ShiftJIS,
	"windows-1250": charmap.Windows1250,
	"windows-1251": charmap.Windows1251,
}

// aliases are other names of encodings, in the form of [fold].
var aliases = map[string]Encoding{
	"utf8": UTF8, "utf8bom": UTF8Mark, "utf8sig": UTF8Mark, "ascii": UTF8, "usascii": UTF8,
	"utf16": UTF16LE, "utf16le": UTF16LE, "utf16be": UTF16BE, "unicode": UTF16LE,
	"euckr": EUCKR, "cp949": EUCKR, "uhc": EUCKR, "ksc5601": EUCKR, "ksc56011987": EUCKR, "windows949": EUCKR, "ms949": EUCKR,
	"cp1252": Windows1252, "windows1252": Windows1252, "ansi": Windows1252, "latin1": "iso-8859-1", "latin2": "iso-8859-2", "latin9": "iso-8859-15",
	"sjis": "shift_jis", "cp932": "shift_jis", "windows31j": "shift_jis", "gbk": "gb18030", "gb2312": "gb18030", "cp936": "gb18030",
	"cp950": "big5", "cp437": "ibm437", "cp850": "ibm850", "cp1250": "windows-1250", "cp1251": "windows-1251", "macroman": "macintosh",
}

var fold = strings.NewReplacer("-", "", "_", "", " ", "", ".", "")

// EncodingNamed returns the encoding that a name means, in any usual spelling.
func EncodingNamed(name string) (Encoding, bool) {
	key := fold.Replace(strings.ToLower(name))
	if e, ok := aliases[key]; ok {
		return e, true
	}
	for e := range others {
		if fold.Replace(string(e)) == key {
			return e, true
		}
	}
	return "", false
}

// EncodingNames returns the names of the encodings, sorted.
func EncodingNames() []string {
	names := []string{string(UTF8), string(UTF16LE), string(UTF16BE), string(EUCKR), string(Windows1252)}
	for e := range maps.Keys(others) {
		names = append(names, string(e))
	}
	slices.Sort(names)
	return names
}

// Codec returns how to convert from and to an encoding; nil for UTF-8.
func (e Encoding) Codec() encoding.Encoding { return e.codec() }
