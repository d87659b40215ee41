// Package record keeps small facts of the program's own in JSON files: for their
// owner alone, written whole, and under a lock, so that neither a crash nor a
// second program tears them. A file that cannot be read is never replaced or
// deleted; whoever reads it gets an error that names it, and has to go on as if
// it permitted nothing. It starts no goroutines.
package record

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

const (
	maxFile  = 32 << 20             // bytes of one file
	patience = 10 * time.Second     // for another program to finish its change
	retry    = 5 * time.Millisecond // between two looks at the lock
	lockEnd  = ".lock"              // of the name of the lock beside a file; it stays
	private  = fs.FileMode(0o600)   // of files
	folder   = fs.FileMode(0o700)   // of folders that are made
	foreign  = fs.FileMode(0o022)   // what others may not have on a file
)

// Errors of a file.
var (
	ErrLoose   = errors.New("others may write it")
	ErrDamaged = errors.New("it is damaged")
	ErrLarge   = fmt.Errorf("it is larger than %d bytes", maxFile)
)

// Read decodes a file. One that is not there is the zero value. A file that has
// more than one value, unknown members or another writer than its owner is
// refused: nobody but this program writes it. Reading takes no lock, because a
// change replaces the whole file.
func Read[T any](path string) (T, error) {
	var v T
	data, err := readFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return v, nil
	}
	if err == nil {
		v, err = decode[T](data)
	}
	if err != nil {
		var none T
		return none, fmt.Errorf("reading %s: %w", path, err)
	}
	return v, nil
}

func decode[T any](data []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return v, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, fmt.Errorf("%w: something follows its end", ErrDamaged)
	}
	return v, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, bare(err)
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: it is no regular file", ErrDamaged)
	case runtime.GOOS != "windows" && info.Mode().Perm()&foreign != 0:
		return nil, fmt.Errorf("%w: look at what it holds, then run chmod 600 on it", ErrLoose)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, bare(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = ErrLarge
	}
	return data, bare(err)
}

// bare is err without the path that its reader is told anyway.
func bare(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	return err
}

// Change reads a file under its lock, has it edited, and writes it. When edit
// returns an error, or the file cannot be read, the file stays as it is. Folders
// that are missing are made. It waits ten seconds at most for the lock.
func Change[T any](path string, edit func(*T) error) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), folder); err != nil {
		return fmt.Errorf("changing %s: %w", path, err)
	}
	unlock, err := Lock(path + lockEnd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	v, err := Read[T](path)
	if err != nil {
		return err
	}
	if err := edit(&v); err != nil {
		return err
	}
	data, err := json.MarshalIndent(v, "", " ")
	if err == nil && len(data) >= maxFile {
		err = ErrLarge
	}
	if err != nil {
		return fmt.Errorf("changing %s: %w", path, err)
	}
	return Write(path, append(data, '\n'))
}

// Lock takes a lock that other programs respect, on a file of its own that is made and
// stays. It waits ten seconds at most.
func Lock(path string) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(path, flock.SetFlag(LockFlags), flock.SetPermissions(private))
	if _, err := lock.TryLockContext(ctx, retry); err != nil {
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return lock.Close, nil
}

// Write replaces a file at once: after a crash it is the old one or the new one,
// whole. Its folder has to be there.
func Write(path string, data []byte) error { return replace(path, data, private) }

func replace(path string, data []byte, mode fs.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*") // for its owner alone
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	_, err = f.Write(data)
	if err == nil && mode != private && runtime.GOOS != "windows" {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("writing %s: %w", path, err), os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a rename last. Windows has no such call.
func syncFolder(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("writing to %s: %w", dir, err)
	}
	return nil
}
