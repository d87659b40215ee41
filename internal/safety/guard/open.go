package guard

import "bytes"

// A text that is shown while it arrives must not wait for more than it has to. Each
// function here says whether what the one beside it finds in b depends on what comes
// behind b. When in doubt, it does; a line end decides everything but keys.

// open returns the first place in b, not before from, at which a secret may be
// noticed when more comes; len(b) = there is none.
func (f *finder) open(b []byte, from int) int {
	now := finder{financial: f.financial, floor: f.floor}
	end := now.openKeys(b, from)
	for i := max(bytes.LastIndexByte(b, '\n')+1, from); i < end; i++ {
		if n := maskLength(b[i:]); n > 0 {
			i += n - 1
			now.floor = i + 1
			continue
		}
		if now.isOpen(b, i) {
			return i
		}
	}
	return end
}

// openKeys returns where the first private key may begin, or what announces one, that
// has not come to its end.
func (f *finder) openKeys(b []byte, from int) int {
	const dashes, begin = 5, "BEGIN "
	for at := from; ; at += len(begin) {
		n := bytes.Index(b[at:], []byte(begin))
		if n < 0 {
			return len(b)
		}
		at += n
		i := at - dashes
		if i < from || string(b[i:at]) != "-----" && string(b[i:at]) != "---- " || !openKey(b, i) {
			continue
		}
		line := max(bytes.LastIndexByte(b[:i], '\n')+1, from)
		for k := line; k < i; k++ {
			if (b[k] == '=' || b[k] == ':') && f.isAnnounced(b, k) {
				return k
			}
		}
		return i
	}
}

func (f *finder) isAnnounced(b []byte, i int) bool {
	start, end, quoted, ok := f.nameBefore(b, i)
	if !ok {
		return false
	}
	_, ok = f.announces(b, i, start, end, quoted)
	return ok
}

// isOpen reports it of what find would look for at b[i].
func (f *finder) isOpen(b []byte, i int) bool {
	inWord := f.inWord(b, i)
	switch index().classes[b[i]] {
	case digit:
		return !inWord && f.openNumber(b, i)
	case bracket:
		rest := b[i:]
		return bytes.HasPrefix([]byte(maskStart), rest) || bytes.HasPrefix(rest, []byte(maskStart)) && len(rest) < 64
	case separator:
		return f.openAssigned(b, i)
	case letter:
		return f.openToken(b, i, inWord)
	}
	return false
}

// openToken is about credentials that are known by their first letters.
func (f *finder) openToken(b []byte, i int, inWord bool) bool {
	rest := b[i:]
	if inWord && isWord(b[i]) {
		return false
	}
	if len(rest) == 1 {
		return true
	}
	index := index()
	for _, t := range index.buckets[index.pairs[int(b[i])<<8|int(b[i+1])]] {
		switch {
		case t.financial && !f.financial, t.word && inWord:
		case len(rest) < len(t.trigger):
			if t.trigger[:len(rest)] == string(rest) {
				return true
			}
		case string(rest[:len(t.trigger)]) != t.trigger:
		case t.open != nil:
			if t.open(b, i) {
				return true
			}
		case !bytes.ContainsAny(rest[len(t.trigger):], " \t\n"):
			return true
		}
	}
	return false
}

// openAssigned is about the value behind the separator at b[i], and the password of
// a URL.
func (f *finder) openAssigned(b []byte, i int) bool {
	rest := b[i+1:]
	if b[i] == ':' && len(rest) < 2 && "//"[:len(rest)] == string(rest) {
		return true
	}
	if b[i] == ':' && rest[0] == '/' && rest[1] == '/' {
		return len(b)-i < 512 && !bytes.ContainsAny(rest[2:], "/ \t\r\n\"'<>`\\?#")
	}
	if !f.isAnnounced(b, i) {
		return false
	}
	s, ok := f.assigned(b, i)
	return !ok || run(b[s.end:], &valueTable, len(b)) == len(b)-s.end
}

// openNumber is about the number at b[i].
func (f *finder) openNumber(b []byte, i int) bool {
	n := run(b[i:], &digitTable, 32)
	switch {
	case n == 32:
		return false
	case i+n == len(b):
		return true
	case n >= 8 && n <= 10 && b[i+n] == ':':
		if m := run(b[i+n+1:], &urlSafeTable, 36); i+n+1+m == len(b) {
			return m <= 35
		}
	}
	if !f.financial || n < 3 {
		return false
	}
	const longest = 64 // with what stands between the groups and behind them
	for at := i + n; at-i < longest; {
		sep := separatorAt(b[at:])
		if sep == "" {
			return b[at] == '.' && at+1 == len(b)
		}
		next := at + len(sep)
		if next == len(b) || string(b[at:]) == " -" {
			return true
		}
		if !isDigit(b[next]) {
			return false
		}
		if at = next + run(b[next:], &digitTable, len(b)); at == len(b) {
			return true
		}
	}
	return false
}

func openIBAN(b []byte, i int) bool {
	const longest = 64 // with what stands between the groups and behind them
	rest := b[i+2 : min(len(b), i+longest)]
	if len(rest) < 2 {
		return len(rest) == 0 || isDigit(rest[0])
	}
	return isDigit(rest[0]) && isDigit(rest[1]) && run(rest, &groupTable, longest) == len(rest) && len(b) < i+longest
}

func openFlag(b []byte, i int) bool {
	from := i + 2
	n := run(b[from:], &flagTable, maxName)
	switch {
	case from+n == len(b):
		return n < maxName
	case n < 3 || b[from+n] != ' ':
		return false
	}
	if _, ok := mannerOf(b[from : from+n]); !ok {
		return false
	}
	_, end, ok := flagValue(b, i)
	return !ok || end == len(b)
}

func openLogin(b []byte, i int) bool {
	if i > 0 && b[i-1] != ' ' && b[i-1] != '\t' {
		return false
	}
	from := i + bytes.IndexByte(b[i:], ' ') + 1
	from += run(b[from:], &openTable, 2)
	n := run(b[from:], &flagTable, maxName)
	if from+n == len(b) {
		return n < maxName
	}
	return b[from+n] == ':' && n > 0 && run(b[from+n+1:], &valueTable, judged) == len(b)-from-n-1
}

func openElement(b []byte, i int) bool {
	n := run(b[i+1:], &flagTable, maxName)
	from := i + 2 + n
	switch {
	case from > len(b):
		return n < maxName
	case n < 3 || b[from-1] != '>':
		return false
	}
	_, ok := mannerOf(b[i+1 : from-1])
	return ok && len(b)-from < 4096 && bytes.IndexByte(b[from:], '<') < 0
}

var groupTable = tableOf(alnum + " -")
