package telemetry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
)

type (
	traceID [16]byte
	spanID  [8]byte
)

// place is where something is in the traces.
type place struct {
	trace traceID
	span  spanID
}

// IDs are made of what a session names anyway, so that whoever knows the session, the turn
// and the call knows the place, without asking what is recorded already: that is how a
// command is told its place while the record of it is still on its way.

func traceOf(session, turn string) (t traceID) {
	sum := digest("trace", session, turn)
	copy(t[:], sum[:])
	return t
}

func spanOf(kind, session, key string) (s spanID) {
	sum := digest(kind, session, key)
	copy(s[:], sum[:])
	return s
}

func digest(parts ...string) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		h.Write(n[:])
		h.Write([]byte(p))
	}
	var sum [32]byte
	h.Sum(sum[:0])
	sum[0] |= 1 // no ID is all zeros
	return sum
}

// Context is a place in the traces of another program, with what it wants to be carried
// along.
type Context struct {
	at      place
	sampled bool
	state   string
}

// ParseContext reads what the variables TRACEPARENT and TRACESTATE hold: the forms of the
// headers traceparent and tracestate of W3C Trace Context. What is not well-formed is none.
func ParseContext(parent, state string) (c Context, ok bool) {
	const length = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	parent = strings.TrimSpace(parent)
	if len(parent) < length || parent[2] != '-' || parent[35] != '-' || parent[52] != '-' {
		return Context{}, false
	}
	version, flags := parent[:2], parent[53:55]
	if version == "ff" || version == "00" && len(parent) != length || len(parent) > length && parent[length] != '-' {
		return Context{}, false
	}
	var v, f [1]byte
	for _, part := range []struct {
		from string
		to   []byte
	}{{version, v[:]}, {parent[3:35], c.at.trace[:]}, {parent[36:52], c.at.span[:]}, {flags, f[:]}} {
		if part.from != strings.ToLower(part.from) {
			return Context{}, false
		}
		if _, err := hex.Decode(part.to, []byte(part.from)); err != nil {
			return Context{}, false
		}
	}
	if c.at.trace == (traceID{}) || c.at.span == (spanID{}) {
		return Context{}, false
	}
	c.sampled = f[0]&1 != 0
	c.state = traceState(state)
	return c, true
}

const (
	maxState   = 512 // bytes of what is carried along
	maxMembers = 32
)

// traceState returns what is carried along, or "" when it is too much or is not well-formed.
func traceState(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > maxState || strings.Count(s, ",") >= maxMembers {
		return ""
	}
	for member := range strings.SplitSeq(s, ",") {
		member = strings.Trim(member, " \t")
		if member == "" {
			continue
		}
		key, value, ok := strings.Cut(member, "=")
		if !ok || key == "" || value == "" {
			return ""
		}
		for i := range len(key) {
			c := key[i]
			if (c < 'a' || c > 'z') && (c < '0' || c > '9') && !strings.ContainsRune("_-*/@", rune(c)) {
				return ""
			}
		}
		for i := range len(value) {
			if c := value[i]; c < ' ' || c > '~' || c == '=' {
				return ""
			}
		}
	}
	return s
}

// String is the place as TRACEPARENT has it.
func (c Context) String() string {
	if c.at == (place{}) {
		return ""
	}
	flags := "00"
	if c.sampled {
		flags = "01"
	}
	return "00-" + hex.EncodeToString(c.at.trace[:]) + "-" + hex.EncodeToString(c.at.span[:]) + "-" + flags
}

// State is what is carried along, as TRACESTATE has it.
func (c Context) State() string { return c.state }

// Sampler says of which traces spans are told.
type Sampler struct {
	Ratio float64 // of the traces that begin here; 1 = all

	// Always does not ask whether the program whose trace is taken over tells of it.
	Always bool
}

// takes reports whether spans of a trace are told.
func (s Sampler) takes(t traceID, parent *Context) bool {
	if parent != nil && !s.Always {
		return parent.sampled
	}
	switch {
	case s.Ratio >= 1:
		return true
	case s.Ratio <= 0:
		return false
	}
	const whole = 1 << 63
	return binary.BigEndian.Uint64(t[8:])>>1 < uint64(s.Ratio*whole)
}
