package exthost

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxProgram is the most bytes of an executable that is looked at before it runs.
const maxProgram = 1 << 30

// unwrapped is what the system says, without the path.
func unwrapped(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// approved asks whether an executable may run as it is now. What it reads by itself when it
// runs is not looked at.
func (h *Host) approved(entry, program string) error {
	if h.c.Approve == nil {
		return nil
	}
	f, err := os.Open(program)
	if err != nil {
		return fmt.Errorf("its entry %q: %w", entry, unwrapped(err))
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxProgram+1))
	switch {
	case err != nil:
		return fmt.Errorf("its entry %q: %w", entry, unwrapped(err))
	case n > maxProgram:
		return fmt.Errorf("its entry %q has more than %d bytes", entry, maxProgram)
	}
	if err := h.c.Approve(filepath.ToSlash(filepath.Clean(entry)), hex.EncodeToString(sum.Sum(nil))); err != nil {
		return fmt.Errorf("%s is not run: %w", entry, err)
	}
	return nil
}
