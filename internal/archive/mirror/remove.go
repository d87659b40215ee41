package mirror

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"dure/internal/transcript"
)

// Remove deletes the file of a session, wherever it has worked, and those of its agents. One
// that others have begun stays, whatever we have added to it.
func Remove(projects, session string) error {
	if !transcript.IsUUID(session) {
		return nil
	}
	folders, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		path := filepath.Join(projects, f.Name(), session+".jsonl")
		if !begun(path, session) {
			continue
		}
		errs = append(errs, os.RemoveAll(strings.TrimSuffix(path, ".jsonl")), os.Remove(path))
	}
	return errors.Join(errs...)
}

// begun reports whether a file is one that we have begun for a session.
func begun(path, session string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // only read
	const most = 1 << 20             // bytes of a first line
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, most)
	if !lines.Scan() {
		return info.Size() == 0 // nothing was ever written
	}
	var k known
	return json.Unmarshal(lines.Bytes(), &k) == nil && strings.HasPrefix(k.Event, session+":")
}
