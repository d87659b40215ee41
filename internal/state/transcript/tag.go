package transcript

import (
	"slices"
	"strings"
)

// The tags of a session by which this program knows something begin with these.
const (
	ColorTag = "color-" // the color in which hosts show it
	OwnerTag = "user:"  // whose it is, at a server
)

// Tag returns the one of a session's tags that programs show which know one only: the first
// that this program does not give itself. "" = there is none.
func Tag(tags []string) string {
	if i := slices.IndexFunc(tags, given); i >= 0 {
		return tags[i]
	}
	return ""
}

// Retag returns a session's tags with another one that such programs show; "" takes that
// away. One that this program gives itself is not taken from others.
func Retag(tags []string, tag string) []string {
	i := slices.IndexFunc(tags, given)
	switch out := slices.Clone(tags); {
	case tag != "" && !given(tag), i < 0 && tag == "":
		return out
	case i < 0:
		return append(out, tag)
	default:
		rest := slices.DeleteFunc(slices.Clone(out[i+1:]), func(t string) bool { return t == tag })
		if out = out[:i]; tag != "" {
			out = append(out, tag)
		}
		return append(out, rest...)
	}
}

func given(tag string) bool {
	return !strings.HasPrefix(tag, ColorTag) && !strings.HasPrefix(tag, OwnerTag)
}
