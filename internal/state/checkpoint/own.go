package checkpoint

import (
	"io"
	"os"

	"github.com/gofrs/flock"

	facts "dure/internal/base/record"
)

// openOwn opens a file of the store, which is a regular one and no link.
func openOwn(name string, flags int) (*os.File, error) { return facts.Open(name, flags) }

// readOwn reads a file of the store, of which more than maxRecord bytes are no use to
// anybody.
func readOwn(name string) ([]byte, error) {
	f, err := openOwn(name, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxRecord+1))
}

func newLock(name string) *flock.Flock {
	return flock.New(name, flock.SetFlag(facts.LockFlags), flock.SetPermissions(0o600))
}
