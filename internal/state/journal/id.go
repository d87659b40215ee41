package journal

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"time"
)

// NewID returns a new identifier for a session or an event: a UUID of version 7,
// whose text sorts by time. It has 36 characters.
func NewID(now time.Time) string {
	var u [16]byte
	_, _ = rand.Read(u[:]) // never fails
	ms := now.UnixMilli()
	for i := range 6 {
		u[i] = byte(ms >> (40 - 8*i))
	}
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80

	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// idTime returns the time within an identifier made by [NewID].
func idTime(id string) (time.Time, bool) {
	if len(id) != 36 || id[8] != '-' || id[13] != '-' || id[14] != '7' || id[18] != '-' || id[23] != '-' {
		return time.Time{}, false
	}
	b, err := hex.DecodeString(id[:8] + id[9:13])
	if err != nil {
		return time.Time{}, false
	}
	var ms int64
	for _, c := range b {
		ms = ms<<8 | int64(c)
	}
	if ms >= 253402300800000 { // the year 10000, where month names stop sorting
		return time.Time{}, false
	}
	return time.UnixMilli(ms).UTC(), true
}

// isID reports whether a session may be called so: 1 to 64 letters, digits, - or _.
func isID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return id != "" && len(id) <= 64
}

// checkID keeps everything out of file names that is not a plain word.
func checkID(id string) error {
	if !isID(id) {
		return fmt.Errorf("session ID %.80q: want 1 to 64 letters, digits, - or _: %w", id, ErrMissing)
	}
	return nil
}

// Error says who holds the session.
func (e *OwnedError) Error() string {
	s := fmt.Sprintf("session %s: %v", e.Session, ErrOwned)
	if e.PID != 0 {
		s += fmt.Sprintf(" (process %d on %s, since %s)", e.PID, e.Host, e.Since.Format(time.RFC3339))
	}
	return s
}

// Unwrap makes the error an [ErrOwned].
func (e *OwnedError) Unwrap() error { return ErrOwned }
