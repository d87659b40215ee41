package mirror

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"dure/internal/state/transcript"
)

// Remove deletes the file of a session, wherever it has worked, and those of its agents. One
// that others have begun or gone on with stays, whatever we have added to it, and so does what
// others have put beside it.
func Remove(projects, session string) error {
	if !transcript.IsUUID(session) {
		return nil
	}
	folders, err := os.ReadDir(projects)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	errs := []error{err}
	for _, f := range folders {
		if !f.IsDir() {
			continue
		}
		path := filepath.Join(projects, f.Name(), session+".jsonl")
		all, err := ours(path, session)
		if err == nil && all {
			err = sweep(strings.TrimSuffix(path, ".jsonl"))
			if err == nil { // last: as long as it is there, what is beside it is known to be ours
				err = os.Remove(path)
			}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// ours reports whether we have begun a file for a session, and nobody else has said anything
// in it.
func ours(path, session string) (bool, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }() // only read
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	begun := info.Size() == 0 // nothing was ever written
	for lines.Scan() {
		switch whose(lines.Bytes(), session) {
		case own:
			begun = true
		case foreign:
			return false, nil
		case aside:
			if !begun {
				return false, nil
			}
		}
	}
	if err := lines.Err(); err != nil {
		return false, fmt.Errorf("reading %s: %w", path, err)
	}
	return begun, nil
}

// origin is who has written a line.
type origin int

const (
	own     origin = iota
	cut            // cut short: it says nothing
	aside          // of others, and no part of the conversation
	foreign        // of others
)

// whose looks at a line. What cannot be read may be of others: two lines in one, for example,
// where the first was cut short.
func whose(line []byte, session string) origin {
	var k struct {
		Type  string `json:"type"`
		Event any    `json:"event"`
	}
	d := json.NewDecoder(bytes.NewReader(line))
	err := d.Decode(&k)
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		return cut
	}
	if err != nil || d.More() {
		return foreign
	}
	if event, ok := k.Event.(string); ok && strings.HasPrefix(event, session+":") {
		return own
	}
	if k.Type == "user" || k.Type == "assistant" {
		return foreign
	}
	return aside
}

// written is what the files of agents are called.
var written = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^agent-[A-Za-z0-9_-]{1,128}\.(jsonl|meta\.json)$`)
})

// sweep deletes what we write beside a session's file, and the folders unless there is more in
// them.
func sweep(beside string) error {
	if info, err := os.Lstat(beside); err != nil || !info.IsDir() {
		return unlessGone(err)
	}
	agents := filepath.Join(beside, "subagents")
	var errs []error
	if info, err := os.Lstat(agents); err == nil && info.IsDir() {
		list, err := os.ReadDir(agents)
		errs = append(errs, err)
		for _, f := range list {
			if f.Type().IsRegular() && written().MatchString(f.Name()) {
				errs = append(errs, unlessGone(os.Remove(filepath.Join(agents, f.Name()))))
			}
		}
		errs = append(errs, ifEmpty(agents))
	}
	errs = append(errs, unlessGone(os.Remove(filepath.Join(beside, "archived.json"))), ifEmpty(beside))
	return errors.Join(errs...)
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// ifEmpty deletes a folder with nothing in it.
func ifEmpty(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil || len(list) > 0 {
		return unlessGone(err)
	}
	return unlessGone(os.Remove(dir))
}
