package mirror

import (
	"strconv"
	"strings"
	"unicode/utf16"

	"golang.org/x/text/unicode/norm"
)

// maxFolder is how long the name of a folder is without a hash, in characters.
const maxFolder = 200

// Folder returns the name of the folder for the sessions of a working folder, whose path is
// absolute and resolved: each character that is no ASCII letter or digit is a hyphen, and a
// long name is cut and has a hash of the path behind it.
func Folder(workdir string) string {
	units := utf16.Encode([]rune(norm.NFC.String(workdir)))
	var b strings.Builder
	hash := int32(0)
	for _, u := range units {
		hash = hash*31 + int32(u)
		switch {
		case u >= 'a' && u <= 'z', u >= 'A' && u <= 'Z', u >= '0' && u <= '9':
			b.WriteByte(byte(u))
		default:
			b.WriteByte('-')
		}
	}
	if b.Len() <= maxFolder {
		return b.String()
	}
	sum := int64(hash)
	if sum < 0 {
		sum = -sum
	}
	return b.String()[:maxFolder] + "-" + strconv.FormatInt(sum, 36)
}
