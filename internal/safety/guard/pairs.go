package guard

import "bytes"

// isValue reports whether a name is value, as it stands beside the name of a
// variable: in manifests of containers, and in settings in XML.
func isValue(name []byte) bool {
	return bytes.EqualFold(bytes.TrimLeft(name, " -"), []byte("value"))
}

// namedBefore returns what the name announces that stands right before b[at] as the
// value of name or key.
func (f *finder) namedBefore(b []byte, at int) (manner, bool) {
	const quotes = "\"'\\"
	t := b[max(f.floor, at-maxBefore+16, 0):at]
	t = bytes.TrimRight(t, " \t\r\n,"+quotes) // as far as the name of the name goes
	from := len(t)
	for from > 0 && flagTable[t[from-1]] {
		from--
	}
	own := t[from:]
	t = bytes.TrimRight(t[:from], " \t"+quotes)
	if len(own) == 0 || len(t) == 0 || t[len(t)-1] != ':' && t[len(t)-1] != '=' {
		return manner{}, false
	}
	t = bytes.TrimRight(t[:len(t)-1], " \t"+quotes)
	for _, word := range []string{"name", "key"} {
		n := len(t) - len(word)
		if n >= 0 && bytes.EqualFold(t[n:], []byte(word)) && (n == 0 || !isWord(t[n-1])) {
			return mannerOf(own)
		}
	}
	return manner{}, false
}
