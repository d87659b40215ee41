package guard

import (
	"bytes"
	"strings"
)

// maxName is how much before a separator may be the name of a value, in bytes.
const maxName = 48

// A manner says what a value with a certain name has to look like to be a secret.
type manner struct {
	kind  string
	least int  // characters
	free  bool // people think of it, so it may be short and plain
}

// names are the ends of names that announce a secret, in small letters and without
// what stands between words.
var names = namesOf([]announcement{
	{"secretaccesskey", manner{"aws-secret", 16, false}},
	{"accountkey", manner{"azure-key", 20, false}},
	{"sharedaccesskey", manner{"azure-key", 20, false}},
	{"sharedaccesssignature", manner{"azure-key", 20, false}},
	{"password", manner{"password", 4, true}},
	{"passwd", manner{"password", 4, true}},
	{"passphrase", manner{"password", 4, true}},
	{"pwd", manner{"password", 4, true}},
	{"pass", manner{"password", 4, true}},
	{"pw", manner{"password", 4, true}},
	{"비밀번호", manner{"password", 4, true}},
	{"비번", manner{"password", 4, true}},
	{"패스워드", manner{"password", 4, true}},
	{"암호", manner{"password", 4, true}},
	{"secret", manner{"secret", 8, false}},
	{"secretkey", manner{"secret", 12, false}},
	{"secretkeybase", manner{"secret", 16, false}},
	{"clientsecret", manner{"secret", 8, false}},
	{"시크릿", manner{"secret", 8, false}},
	{"token", manner{"secret", 12, false}},
	{"토큰", manner{"secret", 12, false}},
	{"apikey", manner{"secret", 12, false}},
	{"api키", manner{"secret", 12, false}},
	{"accesskey", manner{"secret", 12, false}},
	{"privatekey", manner{"secret", 16, false}},
	{"authkey", manner{"secret", 12, false}},
	{"appkey", manner{"secret", 16, false}},
	{"adminkey", manner{"secret", 16, false}},
	{"servicekey", manner{"secret", 16, false}},
	{"licensekey", manner{"secret", 12, false}},
	{"encryptionkey", manner{"secret", 16, false}},
	{"signingkey", manner{"secret", 16, false}},
	{"masterkey", manner{"secret", 16, false}},
	{"credential", manner{"secret", 12, false}},
	{"credentials", manner{"secret", 12, false}},
	{"auth", manner{"secret", 12, false}},
})

type announcement struct {
	end string
	manner
}

type announcer struct {
	announcement
	bytes []byte // of end
}

func namesOf(all []announcement) []announcer {
	var out []announcer
	for _, a := range all {
		out = append(out, announcer{a, []byte(a.end)})
	}
	return out
}

// pages are what tokens have that lead to more of a list, or count.
var pages = [][]byte{[]byte("page"), []byte("next"), []byte("continuation"), []byte("max"), []byte("sync")}

func endsWithAny(b []byte, ends [][]byte) bool {
	for _, end := range ends {
		if bytes.HasSuffix(b, end) {
			return true
		}
	}
	return false
}

// mannerOf returns what a name announces. It is given with what stands before it,
// as far as it may belong to it.
func mannerOf(name []byte) (manner, bool) {
	flat := make([]byte, 0, maxName)
	for _, c := range name {
		switch {
		case c == '_' || c == '-' || c == '.' || c == ' ' || c == '\t' || c == '[' || c == ']' || c == '"' || c == '\'':
			continue
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		}
		flat = append(flat, c)
	}
	for _, n := range names {
		rest, ok := bytes.CutSuffix(flat, n.bytes)
		if !ok {
			continue
		}
		switch n.end {
		case "auth":
			if before := len(name) - len(n.end) - 1; before < 0 || name[before] != '_' {
				continue // logs have much to say of it
			}
		case "pass", "pwd", "pw": // ends of other words too
			own := name[len(name)-len(n.end):]
			camel := own[0] >= 'A' && own[0] <= 'Z'
			if before := len(name) - len(n.end) - 1; before >= 0 && isWord(name[before]) && name[before] != '_' && !(camel && lowerTable[name[before]]) {
				continue
			}
		case "token":
			if endsWithAny(rest, pages) {
				continue
			}
		}
		return n.manner, true
	}
	return manner{}, false
}

// nameEnds are the last letters of all names, of sig and of value.
var nameEnds = func() (t table) {
	t['g'], t['e'], t['E'] = true, true, true
	for _, n := range names {
		c := n.end[len(n.end)-1]
		t[c] = true
		if c >= 'a' && c <= 'z' {
			t[c-'a'+'A'] = true
		}
	}
	return t
}()

var nameTable = func() (t table) {
	for c := range 256 {
		t[c] = isWord(byte(c)) || c == '-' || c == '.' || c == ' ' || c >= 0x80
	}
	return t
}()

// assigned looks for the value behind the separator at b[i], and for what else a
// colon announces.
func (f *finder) assigned(b []byte, i int) (span, bool) {
	if b[i] == ':' && i+2 < len(b) && b[i+1] == '/' && b[i+2] == '/' {
		start, end, ok := urlPassword(b, i)
		return span{start: start, end: end, kind: "password"}, ok
	}
	start, end, quoted, ok := f.nameBefore(b, i)
	if !ok {
		return span{}, false
	}
	m, ok := f.announces(b, i, start, end, quoted)
	switch {
	case !ok:
		return span{}, false
	case isAuthorization(b[start:end]):
		return f.authorization(b, i)
	}
	query := start > f.floor && (b[start-1] == '?' || b[start-1] == '&')
	shouted := b[i] == '=' && bytes.Equal(b[start:end], bytes.ToUpper(b[start:end])) && end == i
	return f.value(b, i, m, query, shouted)
}

// nameBefore finds the name before the separator at b[i], if it may announce
// something.
func (f *finder) nameBefore(b []byte, i int) (start, end int, quoted, ok bool) {
	end = i
	if end > f.floor && b[end-1] == ':' && b[i] == '=' { // :=
		end--
	}
	for n := 0; end > f.floor && n < 8 && (b[end-1] == ' ' || b[end-1] == '\t'); n++ {
		end--
	}
	for n := 0; end > f.floor && n < 3 && strings.IndexByte("\"'`\\]", b[end-1]) >= 0; n++ {
		end--
		quoted = true
	}
	if end <= f.floor || !nameEnds[b[end-1]] {
		return 0, 0, false, false
	}
	start = end
	for start > f.floor && end-start < maxName && nameTable[b[start-1]] && (!quoted || b[start-1] != ' ') {
		start--
	}
	return start, end, quoted, true
}

// announces returns what the name b[start:end] before the separator at b[i]
// announces. That of a header has its own manner.
func (f *finder) announces(b []byte, i, start, end int, quoted bool) (manner, bool) {
	name := b[start:end]
	if isAuthorization(name) {
		return manner{}, true
	}
	m, ok := mannerOf(name)
	switch {
	case quoted && len(name) == 4 && bytes.EqualFold(name, []byte("auth")):
		return manner{"secret", 12, false}, true // as Docker keeps it
	case string(name) == "sig" && start > f.floor && b[start-1] == '&':
		return manner{"azure-key", 20, false}, true // of a shared access signature
	case !ok && isValue(name):
		return f.namedBefore(b, start)
	case ok && b[i] == ':' && !quoted && bytes.EqualFold(bytes.TrimLeft(name, " -"), []byte("pass")):
		return manner{}, false // a test has passed
	}
	return m, ok
}

// value looks at the value behind the separator at b[i].
func (f *finder) value(b []byte, i int, m manner, query, shouted bool) (span, bool) {
	from := i + 1
	if from < len(b) && (b[i] == '=' && (b[from] == '=' || b[from] == '~') || b[i] == ':' && (b[from] == '=' || b[from] == ':')) {
		return span{}, false // it compares, or another separator follows
	}
	if i > f.floor && strings.IndexByte("!<>=", b[i-1]) >= 0 {
		return span{}, false
	}
	if b[i] == '=' && from < len(b) && b[from] == '>' {
		from++
	}
	from += run(b[from:], &spaceTable, 16)
	for from+1 < len(b) && strings.IndexByte("bfru@", b[from]) >= 0 && (b[from+1] == '"' || b[from+1] == '\'') {
		from++ // a prefix of a string
	}
	value, quoted := quotedValue(b, from)
	if quoted > 0 {
		from += quoted
	} else {
		value = b[from : from+run(b[from:], &valueTable, maxSecret/2)]
		value = value[:endOfBare(value, query, shouted)]
		if b[i] == ':' && bytes.Count(value, []byte{':'}) > 1 {
			return span{}, false // a record, such as of /etc/passwd
		}
		value = bytes.TrimRight(value, ",;:.")
		if len(value) > 0 && !bytes.ContainsRune(value, '(') {
			value = bytes.TrimRight(value, ")]}")
		}
	}
	if len(value) == 0 {
		return span{}, false
	}
	if from+1 < len(b) {
		if s, ok := f.token(b, from); ok && s.start == from && s.end >= from+len(value) {
			return s, true // its own kind says more
		}
	}
	if !m.isSecret(value[:min(len(value), judged)], quoted > 0, shouted) {
		return span{}, false
	}
	return span{start: from, end: from + len(value), kind: m.kind}, true
}

// endOfBare returns where a value without quotes ends: before what goes on with
// another one.
func endOfBare(value []byte, query, shouted bool) int {
	end := len(value)
	stop := ",;"
	if shouted {
		stop = ";" // of a variable of the environment
	}
	if query {
		stop += "&#"
	}
	if n := bytes.IndexAny(value, stop); n >= 0 {
		end = n
	}
	for i, c := range value[:end] {
		if c != '&' {
			continue
		}
		if n := run(value[i+1:], &flagTable, maxName); n > 0 && i+1+n < len(value) && value[i+1+n] == '=' {
			return i
		}
	}
	return end
}

// quotedValue returns the string that begins at b[from], and how long its quote
// is; 0 = there is no string that ends on its line.
func quotedValue(b []byte, from int) (value []byte, quote int) {
	if from >= len(b) {
		return nil, 0
	}
	q := 1
	if b[from] == '\\' && from+1 < len(b) {
		q = 2
	}
	mark := b[from : from+q]
	if c := mark[q-1]; c != '"' && c != '\'' && c != '`' || from+q > len(b) {
		return nil, 0
	}
	for i := from + q; i < len(b) && i < from+4096; i++ {
		switch {
		case b[i] == '\n':
			return nil, 0
		case bytes.HasPrefix(b[i:], mark):
			return b[from+q : i], q
		case b[i] == '\\' && q == 1:
			i++
		}
	}
	return nil, 0
}

// isSecret reports whether a value is one, and not a piece of code, a word about
// secrets, or something that only stands for one.
func (m manner) isSecret(v []byte, quoted, shouted bool) bool {
	if len(v) < m.least || isPlaceholder(v) || bytes.Contains(v, []byte(maskStart)) {
		return false
	}
	hasDigit, hasLetter := bytes.ContainsAny(v, digits), bytes.ContainsAny(v, lower+upper)
	hasOther := bytes.ContainsAny(v, "!@#$%^&*?~+=|")
	if !isASCII(v) && !(hasDigit && hasLetter) {
		return false // a sentence
	}
	if !quoted && !shouted && (bytes.ContainsAny(v, "()[]{}") || isCode(v)) {
		return false
	}
	if quoted && bytes.ContainsAny(v, " \t") && !(m.free && hasDigit && hasLetter && hasOther) {
		return false
	}
	if isPath(v) || !shouted && !m.free && namesSecret(v) || bytes.HasPrefix(v, []byte("0x")) && len(v) < 12 {
		return false
	}
	switch {
	case !m.free:
		return (hasDigit && hasLetter || len(v) >= 32 && hasLetter || shouted && len(v) >= 16 && hasDigit) && !isWords(v)
	case shouted:
		return len(v) >= 6 && !stands[strings.ToLower(string(v))] || hasDigit && hasLetter
	case quoted && len(v) >= 6 && (hasDigit || v[0] >= 'a' && v[0] <= 'z' && !bytes.Contains(v, []byte("passw"))):
		return true
	case len(v) < 6:
		return hasDigit && (hasLetter || hasOther) || quoted && hasOther && hasLetter
	}
	return hasDigit && (hasLetter || hasOther || len(v) >= 6) || hasOther && hasLetter || len(v) >= 16 && hasLetter
}

// stands has words that stand for a password.
var stands = map[string]bool{
	"changeme": true, "change_me": true, "change-me": true, "password": true, "passwd": true, "secret": true, "example": true,
	"required": true, "optional": true, "string": true, "undefined": true, "hidden": true, "redacted": true, "placeholder": true,
	"yourpassword": true, "your_password": true, "your-password": true, "mypassword": true, "prompt": true, "default": true, "disabled": true,
	"enabled": true, "varchar": true, "confirm": true, "current-password": true, "new-password": true, "unset": true, "invalid": true, "missing": true, "incorrect": true, "boolean": true, "number": true,
}

// isPlaceholder reports whether a value only stands for one.
func isPlaceholder(v []byte) bool {
	if len(v) == 0 || strings.IndexByte("$<{(%*[", v[0]) >= 0 && !(len(v) > 3 && endsEscape(v[:3])) {
		return true
	}
	low := bytes.ToLower(v[:min(len(v), 64)])
	if stands[string(low)] || bytes.HasPrefix(low, []byte("...")) || isWords(low) && containsAny(low, "example", "your", "placeholder") {
		return true
	}
	for _, c := range low { // xxxx, ****, ....
		if c != low[0] && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// isCode reports whether v is a name in code, such as config.password, @password
// or !Ref, rather than a value.
func isCode(v []byte) bool {
	v = bytes.TrimRight(bytes.TrimLeft(v, "@&!~^"), "!?;:")
	parts, digit := 0, false
	for part := range bytes.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune(".?>-:&", r) }) {
		if isDigit(part[0]) {
			return false
		}
		for _, c := range part {
			if !isWord(c) {
				return false
			}
			digit = digit || isDigit(c)
		}
		parts++
	}
	return parts > 0 && (!digit && bytes.IndexByte(v, '-') < 0 || parts > 1 && bytes.IndexByte(v, '.') > 0)
}

// namesSecret reports whether v is the name of a secret in code, such as
// testKey2048.
func namesSecret(v []byte) bool {
	if len(v) >= 32 || isDigit(v[0]) {
		return false
	}
	for _, c := range v {
		if !isWord(c) {
			return false
		}
	}
	return containsAny(bytes.ToLower(v), "key", "token", "secret", "passw")
}

// isWords reports whether v is made of words and small numbers.
func isWords(v []byte) bool {
	for part := range bytes.FieldsFuncSeq(v, func(r rune) bool { return strings.ContainsRune("-_./:@, ", r) }) {
		if len(part) > 1 && part[0] == 'v' && isDigit(part[1]) {
			part = part[1:]
		}
		n := run(part, &digitTable, len(part))
		switch {
		case n == len(part) && n <= 4:
		case n == 0 && len(part) <= 14 && run(part[1:], &lowerTable, len(part)) == len(part)-1:
		case len(part) <= 8 && run(part, &lowerTable, len(part)) >= len(part)-1:
		default:
			return false
		}
	}
	return true
}

// isPath reports whether v leads somewhere.
func isPath(v []byte) bool {
	for _, p := range []string{"/", "./", "../", "~/", "http://", "https://", "file:"} {
		if rest, ok := bytes.CutPrefix(v, []byte(p)); ok && (len(p) > 1 || bytes.IndexByte(rest, '/') >= 0 && bytes.IndexByte(rest, '+') < 0 && bytes.IndexByte(rest, '=') < 0) {
			return true
		}
	}
	return false
}

func isASCII(v []byte) bool {
	for _, c := range v {
		if c >= 0x80 {
			return false
		}
	}
	return true
}

func isAuthorization(name []byte) bool {
	const header = "authorization"
	return len(name) >= len(header) && strings.EqualFold(string(name[len(name)-len(header):]), header)
}

// authorization looks at the header whose colon is at b[i].
func (f *finder) authorization(b []byte, i int) (span, bool) {
	from := i + 1 + run(b[i+1:], &openTable, 8)
	scheme := b[from : from+run(b[from:], &lettersTable, 16)]
	kind := "bearer-token"
	switch strings.ToLower(string(scheme)) {
	case "basic":
		kind = "basic-auth"
	case "bearer", "token", "apikey", "key", "bot", "negotiate":
	default:
		return f.value(b, i, manner{kind: kind, least: 16}, false, false)
	}
	from += len(scheme)
	from += run(b[from:], &spaceTable, 8)
	n := run(b[from:], &tokenTable, maxSecret/2)
	v := b[from : from+min(n, judged)]
	if n < 8 || isPlaceholder(v) || !bytes.ContainsAny(v, digits+upper) {
		return span{}, false
	}
	if s, ok := f.token(b, from); ok && s.start == from && s.end >= from+n {
		return s, true
	}
	return span{start: from, end: from + n, kind: kind}, true
}

// flagValue matches the value of a flag whose dashes are at b[i]; a value behind =
// is found by that.
func flagValue(b []byte, i int) (int, int, bool) {
	from := i + 2
	n := run(b[from:], &flagTable, maxName)
	if n < 3 || from+n+1 >= len(b) || b[from+n] != ' ' {
		return 0, 0, false
	}
	m, ok := mannerOf(b[from : from+n])
	if !ok {
		return 0, 0, false
	}
	from += n + 1
	value, quote := quotedValue(b, from)
	if quote == 0 {
		value = b[from : from+run(b[from:], &valueTable, maxSecret/2)]
	}
	from += quote
	if len(value) == 0 || value[0] == '-' || value[0] == '/' || !m.isSecret(value[:min(len(value), judged)], quote > 0, false) {
		return 0, 0, false
	}
	return from, from + len(value), true
}

// loginPassword matches the password of name:password behind a flag.
func loginPassword(b []byte, i int) (int, int, bool) {
	if i > 0 && b[i-1] != ' ' && b[i-1] != '\t' {
		return 0, 0, false
	}
	from := i + bytes.IndexByte(b[i:], ' ') + 1
	from += run(b[from:], &openTable, 2)
	n := run(b[from:], &flagTable, maxName)
	if n == 0 || from+n >= len(b) || b[from+n] != ':' {
		return 0, 0, false
	}
	from += n + 1
	v := b[from : from+run(b[from:], &valueTable, judged)]
	m := manner{least: 4, free: true}
	return from, from + len(v), len(v) > 0 && !isPath(v) && m.isSecret(v, true, false) && bytes.ContainsAny(v, lower+upper)
}

// elementValue matches the text of an XML element whose name announces a secret.
func elementValue(b []byte, i int) (int, int, bool) {
	n := run(b[i+1:], &flagTable, maxName)
	if n < 3 || i+1+n >= len(b) || b[i+1+n] != '>' || !nameEnds[b[i+n]] {
		return 0, 0, false
	}
	m, ok := mannerOf(b[i+1 : i+1+n])
	from := i + 2 + n
	end := bytes.IndexByte(b[from:min(len(b), from+4096)], '<')
	if !ok || end <= 0 || bytes.IndexByte(b[from:from+end], '\n') >= 0 || !m.isSecret(b[from:from+min(end, judged)], true, false) {
		return 0, 0, false
	}
	return from, from + end, true
}

var (
	spaceTable   = tableOf(" \t")
	openTable    = tableOf(" \t\"'\\`")
	digitTable   = tableOf(digits)
	lowerTable   = tableOf(lower)
	lettersTable = tableOf(lower + upper)
	tokenTable   = tableOf(anyToken)
	flagTable    = tableOf(alnum + "-_.")
	valueTable   = func() (t table) {
		for c := 0x21; c < 256; c++ {
			t[c] = c != '"' && c != '\'' && c != '`' && c != '<' && c != '>' && c != '\\' && c != 0x7f && c != '|'
		}
		return t
	}()
)
