package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"dure/internal/base/record"
	"dure/internal/frontend/text"
)

// Bounds of the history: entries, and bytes of one. What is longer is not kept.
const (
	maxHistory = 1000
	maxEntry   = 10_000
)

// history is what the user typed before, oldest first. On disk it is a file of
// JSON strings, one a line, readable by the user alone.
type history struct {
	path    string // "" = kept in memory only
	entries []string
}

// openHistory reads the history at path. One that cannot be read is empty: it
// is a convenience. A file that has grown to twice the bound is written anew.
func openHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 8*maxEntry)
	read := 0
	for lines.Scan() {
		var s string
		read++
		if json.Unmarshal(lines.Bytes(), &s) == nil && s != "" {
			s = text.Clean(s)
			h.entries = append(h.entries, s)
		}
	}
	h.bound()
	if read >= 2*maxHistory {
		h.rewrite() //nolint:errcheck // the file stays as it is
	}
	return h
}

func (h *history) bound() {
	if over := len(h.entries) - maxHistory; over > 0 {
		h.entries = append([]string(nil), h.entries[over:]...)
	}
}

// add appends an entry, unless it repeats the newest one.
func (h *history) add(s string) error {
	if s == "" || len(s) > maxEntry || (len(h.entries) > 0 && h.entries[len(h.entries)-1] == s) {
		return nil
	}
	h.entries = append(h.entries, s)
	h.bound()
	if h.path == "" {
		return nil
	}
	f, err := os.OpenFile(h.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the history: %w", err)
	}
	line, _ := json.Marshal(s) // a string always encodes
	_, err = f.Write(append(line, '\n'))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("writing the history: %w", err)
	}
	return nil
}

func (h *history) rewrite() error {
	var all []byte
	for _, s := range h.entries {
		line, _ := json.Marshal(s)
		all = append(append(all, line...), '\n')
	}
	return record.Write(h.path, all)
}
