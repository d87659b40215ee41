package journal

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"dure/agent"
)

// What a line may hold. Readers enforce maxLine, so that a damaged file cannot
// make them keep more than that.
const (
	maxInline = 32 << 10  // bytes of a body within its line; a longer one is a blob
	maxBody   = 64 << 20  // bytes of a body
	maxLine   = 128 << 10 // bytes of a line with its newline
	maxExtra  = 64 << 10  // bytes of the store's own part of a line
	maxKind   = 128       // bytes of a kind's name
	maxID     = 256       // bytes of the ID of an event or a message
	excerpt   = 256       // bytes of a blob's head and tail shown in the line
)

// A line is the JSON of an event with up to three fields of the store's own. Their
// order is part of the format, as that of the event's is:
//
//	{"v":1,"seq":42,"ep":3,"ts":"…","k":"note","id":"…","d":{…},"c":"1a2b3c4d"}
//
//	m  how many lines of the same append follow; without it, the append ends here.
//	   An append that a crash left without its last line never happened.
//	x  what the append says to the store, see extra
//	b  instead of d: the body is a blob, see blobRef
//	c  the checksum
//
// A line ends with its checksum: the CRC-32C of everything before it, seeded
// with the checksum of the line before. So a flipped bit shows, and a line that
// is missing, swapped or inserted.
const (
	sumMark = `,"c":"`
	sumLen  = len(sumMark) + 8 + len(`"}`)
)

var castagnoli = sync.OnceValue(func() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) })

// A payload is what a line says besides the event's frame.
type payload struct {
	data []byte   // JSON of the body
	ref  *blobRef // where the body is instead, when it is too long
	more int      // how many lines of the same append follow this one
	x    []byte   // JSON of an extra; nil = none
}

// A blobRef stands in a line for a body that is kept as a blob. Head and Tail
// are for people who read the file.
type blobRef struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	Head   string `json:"head"`
	Tail   string `json:"tail"`
}

// An extra is the part of an append that is the store's own business. It is in
// the log because it must be true exactly when the append is.
type extra struct {
	Taken []string `json:"t,omitempty"` // messages that were consumed
	Posts []parcel `json:"p,omitempty"` // messages to deliver
}

// A parcel is a message to another session.
type parcel struct {
	To   string `json:"to"`
	ID   string `json:"id"`
	From string `json:"from,omitempty"`
	Kind string `json:"kind,omitempty"`
	Body []byte `json:"body,omitempty"`
	Blob string `json:"blob,omitempty"` // hash of a long body
}

// appendLine appends the line of e, with its newline, and returns the line's
// checksum.
func appendLine(dst []byte, e agent.Event, p payload, seed uint32) ([]byte, uint32) {
	start := len(dst)
	if p.more == 0 && p.x == nil && p.ref == nil {
		dst = agent.AppendFrame(dst, e, p.data)
		dst = dst[:len(dst)-1]
	} else {
		dst = appendLong(dst, e, p)
	}
	sum := crc32.Update(seed, castagnoli(), dst[start:])
	dst = append(dst, sumMark...)
	dst = appendSum(dst, sum)
	return append(dst, '"', '}', '\n'), sum
}

func appendLong(dst []byte, e agent.Event, p payload) []byte {
	dst = agent.AppendFrame(dst, e, nil)
	dst = dst[:len(dst)-len(`"d":}`)]
	if p.more > 0 {
		dst = append(dst, `"m":`...)
		dst = strconv.AppendInt(dst, int64(p.more), 10)
		dst = append(dst, ',')
	}
	if p.x != nil {
		dst = append(dst, `"x":`...)
		dst = append(dst, p.x...)
		dst = append(dst, ',')
	}
	if p.ref != nil {
		ref, _ := json.Marshal(p.ref) // strings and a number always encode
		dst = append(dst, `"b":`...)
		return append(dst, ref...)
	}
	dst = append(dst, `"d":`...)
	return append(dst, p.data...)
}

func appendSum(dst []byte, sum uint32) []byte {
	const digits = "0123456789abcdef"
	for shift := 28; shift >= 0; shift -= 4 {
		dst = append(dst, digits[sum>>shift&15])
	}
	return dst
}

// encodeBody returns the JSON of a body on one line.
func encodeBody(b agent.Body) ([]byte, error) {
	if b == nil {
		return nil, errors.New("an event without a body")
	}
	if k := b.Kind(); k == "" || len(k) > maxKind {
		return nil, fmt.Errorf("a kind's name has 1 to %d bytes: %.80q", maxKind, k)
	}
	data, err := agent.EncodeBody(b)
	if err != nil {
		return nil, fmt.Errorf("encoding %s: %w", b.Kind(), err)
	}
	data = bytes.Trim(data, " \t\r\n")
	if u, ok := b.(agent.Unknown); ok && (bytes.IndexByte(data, '\n') >= 0 || !json.Valid(data)) {
		var one bytes.Buffer
		if err := json.Compact(&one, data); err != nil {
			return nil, fmt.Errorf("encoding %s: %w", u.Name, err)
		}
		data = one.Bytes()
	}
	if len(data) > maxBody {
		return nil, fmt.Errorf("encoding %s: %d bytes are more than an event may have (%d)", b.Kind(), len(data), maxBody)
	}
	return data, nil
}

// newRef describes a body that is stored as the blob sha256.
func newRef(sha256 string, data []byte) *blobRef {
	head, tail := data[:min(excerpt, len(data))], data[max(0, len(data)-excerpt):]
	for len(head) > 0 {
		if r, n := utf8.DecodeLastRune(head); r != utf8.RuneError || n > 1 {
			break
		}
		head = head[:len(head)-1]
	}
	for len(tail) > 0 && !utf8.RuneStart(tail[0]) {
		tail = tail[1:]
	}
	return &blobRef{sha256, int64(len(data)), string(head), string(tail)}
}

// A line is a checked line of a log. Its slices share the reader's buffer.
type line struct {
	raw        []byte // without the newline
	sum        uint32
	seq, epoch int64
	more       int
	kind       string
	id         string
	time       string
	x          []byte
	data       []byte
	ref        []byte
}

// errSum is a line that is not as it was written: torn or damaged.
var errSum = errors.New("the checksum is wrong")

// ErrNewer is a line that a later version of the program wrote.
var ErrNewer = errors.New("is newer than this program knows")

// storedSum splits a line into what is summed and the sum that it claims.
func storedSum(raw []byte) (body []byte, sum uint32, ok bool) {
	n := len(raw) - sumLen
	if n <= 0 || string(raw[n:n+len(sumMark)]) != sumMark || string(raw[len(raw)-2:]) != `"}` {
		return nil, 0, false
	}
	for _, c := range raw[n+len(sumMark) : len(raw)-2] {
		switch {
		case c >= '0' && c <= '9':
			sum = sum<<4 | uint32(c-'0')
		case c >= 'a' && c <= 'f':
			sum = sum<<4 | uint32(c-'a'+10)
		default:
			return nil, 0, false
		}
	}
	return raw[:n], sum, true
}

// readLine checks a line, without its newline, against the checksum of the line
// before it. It does not look into the body.
func readLine(raw []byte, seed uint32) (line, error) {
	body, sum, ok := storedSum(raw)
	if !ok || crc32.Update(seed, castagnoli(), body) != sum {
		return line{}, errSum
	}
	l := line{raw: raw, sum: sum}
	if l.parse(body) {
		return l, nil
	}
	return l.parseAny(raw)
}

// parse reads the fields in the order in which they are written.
func (l *line) parse(body []byte) bool {
	c := cutter{body}
	var v int64
	ok := c.lit(`{"v":`) && c.num(&v) && v == agent.Version &&
		c.lit(`,"seq":`) && c.num(&l.seq) &&
		c.lit(`,"ep":`) && c.num(&l.epoch) &&
		c.lit(`,"ts":`) && c.str(&l.time) &&
		c.lit(`,"k":`) && c.str(&l.kind) &&
		c.lit(`,"id":`) && c.str(&l.id) && c.lit(`,`)
	if !ok {
		return false
	}
	l.more = 0
	if c.lit(`"m":`) {
		var m int64
		if !c.num(&m) || !c.lit(`,`) || m > 1<<20 {
			return false
		}
		l.more = int(m)
	}
	if bytes.HasPrefix(c.rest, []byte(`"x":`)) {
		return false // rare: left to the JSON decoder
	}
	switch {
	case c.lit(`"d":`):
		l.data = c.rest
	case c.lit(`"b":`):
		l.ref = c.rest
	default:
		return false
	}
	return true
}

// parseAny reads the fields in any order, and lines of a later version well
// enough to refuse them by name.
func (l line) parseAny(raw []byte) (line, error) {
	var f struct {
		V    int             `json:"v"`
		Seq  int64           `json:"seq"`
		Ep   int64           `json:"ep"`
		Ts   string          `json:"ts"`
		K    string          `json:"k"`
		ID   string          `json:"id"`
		M    int             `json:"m"`
		X    json.RawMessage `json:"x"`
		D, B json.RawMessage
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return line{}, fmt.Errorf("a line that is not an event: %w", err)
	}
	if f.V > agent.Version {
		return line{}, fmt.Errorf("event format version %d %w (%d): use a newer dure", f.V, ErrNewer, agent.Version)
	}
	if f.V < 1 || f.K == "" || f.M < 0 || f.M > 1<<20 || (f.D == nil) == (f.B == nil) {
		return line{}, errors.New("a line that is not an event")
	}
	return line{
		raw: raw, sum: l.sum, seq: f.Seq, epoch: f.Ep, more: f.M,
		kind: f.K, id: f.ID, time: f.Ts, x: f.X, data: f.D, ref: f.B,
	}, nil
}

// event decodes the line. blob fetches a body that is kept apart.
func (l line) event(blob func(blobRef) ([]byte, error)) (agent.Event, error) {
	data := l.data
	if l.ref != nil {
		ref, err := l.blobRef()
		if err != nil {
			return agent.Event{}, err
		}
		if data, err = blob(ref); err != nil {
			return agent.Event{}, fmt.Errorf("reading the body of event %d: %w", l.seq, err)
		}
	}
	t, err := time.Parse(time.RFC3339Nano, l.time)
	if err != nil {
		return agent.Event{}, fmt.Errorf("reading the time of event %d: %w", l.seq, err)
	}
	body, err := agent.DecodeBody(agent.Version, l.kind, data)
	if _, unknown := body.(agent.Unknown); err != nil || unknown && !json.Valid(data) {
		body, err = l.decodeAny(err)
	}
	if err != nil {
		return agent.Event{}, fmt.Errorf("reading event %d: %w", l.seq, err)
	}
	return agent.Event{Seq: l.seq, Epoch: l.epoch, Time: t.UTC(), ID: l.id, Body: body}, nil
}

// decodeAny decodes a body that has fields of the frame behind it. err is what
// became of taking everything up to the checksum for the body.
func (l line) decodeAny(err error) (agent.Body, error) {
	if l.ref == nil {
		if again, e := l.parseAny(l.raw); e == nil && len(again.data) < len(l.data) {
			return agent.DecodeBody(agent.Version, l.kind, again.data)
		}
	}
	if err == nil {
		err = errors.New("the body is not JSON")
	}
	return nil, err
}

func (l line) blobRef() (blobRef, error) {
	var ref blobRef
	if err := json.Unmarshal(l.ref, &ref); err != nil {
		return ref, fmt.Errorf("reading event %d: %w", l.seq, err)
	}
	if !isHash(ref.SHA256) || ref.Size < 0 || ref.Size > maxBody {
		return ref, fmt.Errorf("reading event %d: it refers to no possible blob", l.seq)
	}
	return ref, nil
}

// extra returns what the append says to the store.
func (l line) extra() (extra, error) {
	var x extra
	if l.x == nil {
		return x, nil
	}
	if err := json.Unmarshal(l.x, &x); err != nil {
		return x, fmt.Errorf("reading event %d: %w", l.seq, err)
	}
	return x, nil
}

// isHash reports whether s is a SHA-256 in lower-case hexadecimal.
func isHash(s string) bool {
	if len(s) != 64 {
		return false
	}
	b, err := hex.DecodeString(s)
	return err == nil && hex.EncodeToString(b) == s
}

// A cutter takes pieces off the front of a line.
type cutter struct{ rest []byte }

func (c *cutter) lit(s string) bool {
	if len(c.rest) < len(s) || string(c.rest[:len(s)]) != s {
		return false
	}
	c.rest = c.rest[len(s):]
	return true
}

// num takes a number of at most 18 digits that is not negative.
func (c *cutter) num(n *int64) bool {
	i := 0
	for *n = 0; i < len(c.rest) && i < 18 && c.rest[i] >= '0' && c.rest[i] <= '9'; i++ {
		*n = *n*10 + int64(c.rest[i]-'0')
	}
	c.rest = c.rest[i:]
	return i > 0
}

// str takes a string without escapes.
func (c *cutter) str(s *string) bool {
	if len(c.rest) == 0 || c.rest[0] != '"' {
		return false
	}
	end := bytes.IndexByte(c.rest[1:], '"')
	if end < 0 || bytes.IndexByte(c.rest[1:1+end], '\\') >= 0 {
		return false
	}
	*s = string(c.rest[1 : 1+end])
	c.rest = c.rest[end+2:]
	return true
}
