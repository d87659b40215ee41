package apart

import (
	"bytes"
	"strings"
	"testing"
)

// What the process of an agent has written goes to its parent in whole lines, as many at a time
// as there is room for, and comes to an end whatever they are.
func TestMirrorParts(t *testing.T) {
	t.Parallel()
	line := func(n int) string { return strings.Repeat("x", n-1) + "\n" }
	for name, tt := range map[string]struct {
		lines string
		want  []int
	}{
		"none":             {"", nil},
		"few":              {line(10) + line(20), []int{30}},
		"more than fit":    {line(10) + line(maxMirrored-10) + line(5), []int{maxMirrored, 5}},
		"one that is long": {line(maxMirrored+7) + line(3), []int{maxMirrored + 7, 3}},
		"no end of a line": {strings.Repeat("x", maxMirrored+1), []int{maxMirrored + 1}},
	} {
		rest, n := []byte(tt.lines), 0
		for ; len(rest) > 0; n++ {
			part := mirrorPart(rest)
			if n >= len(tt.want) || len(part) != tt.want[n] || !bytes.HasPrefix(rest, part) {
				t.Fatalf("%s: part %d has %d bytes, of %v", name, n, len(part), tt.want)
			}
			rest = rest[len(part):]
		}
		if n != len(tt.want) {
			t.Errorf("%s: %d parts", name, n)
		}
	}
}
