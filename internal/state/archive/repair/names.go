package repair

import (
	"fmt"
	"strings"
)

// names are IDs that are taken.
type names struct {
	used map[string]bool
	next map[string]int // the number to try next behind an ID, so that many of one cost no more
}

func newNames() names { return names{map[string]bool{}, map[string]int{}} }

// free takes id, or the first of id-2, id-3, … that is not taken. A name keeps within
// the bound of IDs: a long one loses its end to the number.
func (n names) free(id string) string {
	base := id
	if len(id) > maxID {
		base = strings.ToValidUTF8(id[:maxID], "")
	}
	try := base
	for n.used[try] {
		n.next[id] = max(2, n.next[id]+1)
		number := fmt.Sprintf("-%d", n.next[id])
		try = strings.ToValidUTF8(base[:min(len(base), maxID-len(number))], "") + number
	}
	n.used[try] = true
	return try
}
