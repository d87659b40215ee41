// Package launch owns what people launch from the prompt besides a model: a calculator,
// snippets with variables, links with parameters, emoji, a palette of all that can be launched,
// and a search of the web, which is a call in a session of its own. It fills in what is in
// braces in one pass and never reads a value that was filled in again. It writes no more than a
// new snippet or link, opens nothing itself and starts no goroutines.
package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"unicode/utf8"
)

// The limits of what users write.
const (
	maxFile   = 64 << 10 // bytes of a snippet, and of all links
	maxFiles  = 1_000    // snippets
	maxGaps   = 100      // of a snippet or a link
	maxFilled = 1 << 20  // bytes of a snippet with its gaps filled in
	maxURL    = 8_000    // bytes of an address
)

// ErrName says that a name is none for a snippet, a link or a variable.
var ErrName = errors.New("a name has 1 to 64 letters, digits, - and _")

var names = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\pL\pN][\pL\pN_-]{0,63}$`) })

// named reports whether a text is a name.
func named(s string) bool { return names().MatchString(s) }

// readFile reads a file that is small and is text.
func readFile(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // to open a pipe would wait for somebody to write
		return "", fmt.Errorf("reading %s: it is no file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxFile:
		return "", fmt.Errorf("reading %s: it has more than %d bytes", path, maxFile)
	case !utf8.Valid(data):
		return "", fmt.Errorf("reading %s: it is not UTF-8", path)
	}
	return string(data), nil
}

// makeFile makes a file that is not there, and the folder for it.
func makeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// replaceFile writes a file anew: whoever reads it meanwhile has the old one or the new.
func replaceFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real // a link of the user's stays one
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".links-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // it is of no use
	}
	return err
}
