package guard

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// isBinary reports whether an output that begins with b is no text.
func isBinary(b []byte) bool {
	if bytes.IndexByte(b, 0) >= 0 {
		return true
	}
	odd := 0
	for rest := b; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		if r == utf8.RuneError && size == 1 && (len(rest) >= utf8.UTFMax || utf8.FullRune(rest)) ||
			r < ' ' && !strings.ContainsRune("\n\r\t\b\f\a\x1b", r) {
			odd++
		}
		rest = rest[size:]
	}
	return odd*10 > len(b)*3 // more than 30 percent
}

// kindOf names a well-known format, with a comma before it.
func kindOf(b []byte) string {
	for _, k := range []struct{ magic, name string }{
		{"\x89PNG", "PNG image"},
		{"\xff\xd8\xff", "JPEG image"},
		{"GIF8", "GIF image"},
		{"%PDF", "PDF document"},
		{"PK\x03\x04", "zip archive"},
		{"\x1f\x8b", "gzip data"},
		{"BZh", "bzip2 data"},
		{"\xfd7zXZ", "xz data"},
		{"\x28\xb5\x2f\xfd", "zstd data"},
		{"\x7fELF", "ELF program"},
		{"MZ", "Windows program"},
		{"\xcf\xfa\xed\xfe", "Mach-O program"},
		{"SQLite format 3", "SQLite database"},
		{"\xff\xfe", "UTF-16 text"},
		{"\xfe\xff", "UTF-16 text"},
	} {
		if bytes.HasPrefix(b, []byte(k.magic)) {
			return ", " + k.name
		}
	}
	return ""
}
