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
