// Package ahead bounds what of a session may be ahead of those who show it, in bytes. What does
// not fit waits where it is kept: stored events in the log.
package ahead

import (
	"context"
	"reflect"

	"golang.org/x/sync/semaphore"

	"dure/agent"
)

// Most is how many bytes of events are ahead of a front-end that is slow.
const Most = 8 << 20

// Room is how much may be ahead. What is larger than all of it goes alone. It is safe for
// concurrent use.
type Room struct {
	most int64
	left *semaphore.Weighted
}

// New returns room for a number of bytes.
func New(most int64) *Room { return &Room{most, semaphore.NewWeighted(most)} }

// Take takes room, as soon as there is some. It reports false, and has none, when ctx is done
// before.
func (r *Room) Take(ctx context.Context, n int64) bool {
	return r.Try(n) || r.left.Acquire(ctx, min(n, r.most)) == nil
}

// Try takes room if there is some now, and reports whether there is.
func (r *Room) Try(n int64) bool { return r.left.TryAcquire(min(n, r.most)) }

// Give gives back what was taken.
func (r *Room) Give(n int64) { r.left.Release(min(n, r.most)) }

// The weight of an event beside the bytes of its texts, and how deep they are looked for.
const (
	ownWeight = 256
	maxDepth  = 32
)

// Weight is about as many bytes as an event takes.
func Weight(e agent.Event) int64 { return ownWeight + weigh(reflect.ValueOf(e.Body), 0) }

// weigh adds up texts and bytes; what else there is counts a little.
func weigh(v reflect.Value, depth int) (n int64) {
	if depth > maxDepth {
		return 0
	}
	switch v.Kind() {
	case reflect.String:
		return int64(v.Len()) + 16
	case reflect.Slice, reflect.Array:
		switch v.Type().Elem().Kind() {
		case reflect.Uint8:
			return int64(v.Len())
		case reflect.Bool, reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
			return 8 * int64(v.Len())
		}
		for i := range v.Len() {
			n += weigh(v.Index(i), depth+1)
		}
	case reflect.Map:
		for of := v.MapRange(); of.Next(); {
			n += weigh(of.Key(), depth+1) + weigh(of.Value(), depth+1)
		}
	case reflect.Pointer, reflect.Interface:
		return 8 + weigh(v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() { // the others are of clocks and the like
				n += weigh(v.Field(i), depth+1)
			}
		}
	default:
		return 8
	}
	return n
}
