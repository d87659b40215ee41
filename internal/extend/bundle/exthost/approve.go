package exthost

import (
	"context"
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

// Look has code approved as it is now, and runs none of it. That of other runtimes has nothing
// to look at.
func (h *Host) Look(ctx context.Context, runtime Runtime, entry string) error {
	switch runtime {
	case Node:
		_, err := h.node.modules.get(ctx, entry)
		return err
	case Process:
		program, err := h.below(entry)
		if err != nil {
			return err
		}
		return h.approved(entry, program)
	}
	return nil
}
