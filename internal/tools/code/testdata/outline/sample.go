// Package x has func commented() {}.
package x

import "fmt"

const limit = 5

const (
	A, B = iota, 2
	C    string = `
text`
)

var names []string

// Store stores.
type Store[T any] struct {
	fmt.Stringer
	a, b int
	open func(x int) error
}

type (
	Shape interface {
		fmt.Stringer
		Area(scale float64) (area float64, err error)
	}
	Alias = Store[int]
)

func New[T any](
	limit int,
	names ...string,
) (*Store[T], error) {
	local := func() {}
	local()
	return nil, nil
}

func (s *Store[T]) Load(key string) T { panic(key) }

func (Alias2) Value() int

type Alias2 int
