package guard

import "bytes"

// How many characters of base64 make a key, and not talk about one: of a block that
// ends as it should, and of one that does not.
const (
	minKeyBody  = 8
	minOpenBody = 40
)

// privateKey matches a private key in a block of text: PEM of any kind, OpenPGP,
// SSH2; also with \n for its line ends in a string, behind line numbers, colons or
// signs of a diff, or without its end.
func privateKey(b []byte, i int) (int, int, bool) {
	head := b[i:min(len(b), i+100)]
	at := bytes.Index(head, []byte("PRIVATE KEY"))
	if at < 0 || bytes.ContainsAny(head[:at], "\n\r") {
		return 0, 0, false
	}
	from := i + at + len("PRIVATE KEY")
	from += run(b[from:], &blockTable, 12) // " BLOCK-----"
	end, found, _ := keyBody(b, from)
	tail := b[end:min(len(b), end+200)]
	if stop := bytes.Index(tail, []byte("---END")); stop >= 0 || bytes.Contains(tail, []byte("---- END")) {
		if stop < 0 {
			stop = bytes.Index(tail, []byte("---- END")) + len("---- END") - len("---END")
		}
		stop += len("---END")
		if found >= minKeyBody {
			return i, end + stop + run(tail[stop:], &endTable, 60), true
		}
	} else if found >= minOpenBody {
		return i, end, true
	}
	end = looseKey(b, from)
	return i, end, end > from
}

// looseKey returns the end of a key whose lines are put together in another way, as
// strings of source code or with spaces, if there is nothing but base64 in it; or
// from.
func looseKey(b []byte, from int) int {
	body := b[from:min(len(b), from+maxSecret/2)]
	n := bytes.Index(body, []byte("-----"))
	if n < 0 || !bytes.HasPrefix(body[n:], []byte("-----END")) || run(body[:n], &looseTable, n) < n {
		return from
	}
	for word := range bytes.FieldsFuncSeq(body[:n], func(r rune) bool { return r > 0x7f || !base64Table[r] || r == '+' }) {
		if len(word) >= minOpenBody {
			stop := from + n + len("-----END")
			return stop + run(b[stop:], &endTable, 60)
		}
	}
	return from
}

// openKey reports whether what [privateKey] says of b[i] depends on what comes
// behind b.
func openKey(b []byte, i int) bool {
	head := b[i:min(len(b), i+100)]
	at := bytes.Index(head, []byte("PRIVATE KEY"))
	if at < 0 || bytes.ContainsAny(head[:at], "\n\r") {
		return at < 0 && len(head) < 100 && !bytes.ContainsAny(head, "\n\r")
	}
	from := i + at + len("PRIVATE KEY")
	from += run(b[from:], &blockTable, 12)
	end, _, more := keyBody(b, from)
	if _, stop, ok := privateKey(b, i); ok && stop > end { // it ends as it should
		return stop == len(b)
	}
	return more || len(b)-end < 200
}

// keyBody returns where the last line of a key ends, and how many characters of
// base64 it has. A line that has nothing of a key ends it; more = there was none, and
// b may go on.
func keyBody(b []byte, from int) (end, found int, more bool) {
	end, more = from, true
	for from < len(b) {
		line, next := cutLine(b, from)
		last := from+len(line) == len(b)
		n := base64Of(line)
		if n == 0 && !isKeyHeader(line) || bytes.Contains(line, []byte("---")) {
			return end, found, last
		}
		found += n
		if n > 0 {
			end = from + len(line)
		}
		more = last || b[from+len(line)] != '"' && b[from+len(line)] != '\'' // a string has ended
		from = next
	}
	return end, found, more
}

// cutLine returns the line at b[from:], whose end may be written as \n, and where
// the next one begins.
func cutLine(b []byte, from int) (line []byte, next int) {
	for i := from; i < len(b); i++ {
		switch {
		case b[i] == '\n':
			return b[from:i], i + 1
		case b[i] == '\\' && i+1 < len(b) && (b[i+1] == 'n' || b[i+1] == 'r'):
			return b[from:i], i + 2
		case b[i] == '"' || b[i] == '\'':
			return b[from:i], len(b)
		}
	}
	return b[from:], len(b)
}

// base64Of returns the length of the one run of base64 in a line, if there is
// nothing else behind what programs put before a line.
func base64Of(line []byte) int {
	line = bytes.TrimRight(line, " \t\r\\,\")'+|")
	n := 0
	for n < len(line) && base64Table[line[len(line)-1-n]] {
		n++
	}
	before := line[:len(line)-n]
	if len(before) > 200 || n < 16 && (n == 0 || len(bytes.TrimSpace(before)) > 0) {
		return 0
	}
	if bytes.IndexByte(before, ' ') > 0 && bytes.ContainsAny(before, lower) && !bytes.ContainsAny(before, ":|") {
		return 0 // the last word of a sentence
	}
	return n
}

// isKeyHeader reports whether a line of a key has no base64: it is empty, or says
// how the rest is encrypted, in OpenPGP with what.
func isKeyHeader(line []byte) bool {
	line = bytes.TrimSpace(line)
	if len(bytes.TrimRight(bytes.TrimLeft(line, "0123456789>+-|: \t"), " \t\r")) == 0 {
		return true
	}
	for _, name := range []string{"Proc-Type:", "DEK-Info:", "Version:", "Comment:", "Hash:", "Charset:", "Subject:", "X-"} {
		if i := bytes.Index(line, []byte(name)); i >= 0 && i < 40 {
			return true
		}
	}
	return false
}

var (
	blockTable = tableOf(" BLOCK-")
	endTable   = tableOf(upper + " -0123456789")
	looseTable = tableOf(alnum + "+/= \t\r\n\\\"',;()")
)
