package transcript

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// MessageID names a message for programs that know messages by UUIDs: the part, counted
// from 0, of what an event of that ID holds. It is the same wherever and whenever the event
// is read.
func MessageID(event string, part int) string {
	data := append([]byte(event), 0)
	sum := sha256.Sum256(binary.BigEndian.AppendUint32(data, uint32(part)))
	b := sum[:16]
	b[6], b[8] = b[6]&0x0f|0x80, b[8]&0x3f|0x80 // version 8: of one's own making
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// AnswerID names an answer as the API does, by the ID of the event of its request: that is
// known when the first piece of it is shown. Its messages have this name in common.
func AnswerID(request string) string {
	const length = 24
	return "msg_" + strings.ReplaceAll(MessageID(request, 0), "-", "")[:length]
}

// InputID names an input likewise: by its own ID, if that is a UUID.
func InputID(input, event string) string {
	if uuid().MatchString(input) {
		return input
	}
	return MessageID(event, 0)
}

// IsUUID reports whether a name has the form of a UUID.
func IsUUID(name string) bool { return uuid().MatchString(name) }

var uuid = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
})
