package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"sync"
	"time"

	"dure/agent"
)

// State is what is known of a file's content at one moment.
type State struct {
	SHA256  string // hex; "" when the file was too large to be worth it
	Size    int64
	ModTime time.Time // zero when restored from a log
}

// StateOf returns the state of a file whose whole content is data.
func StateOf(info fs.FileInfo, data []byte) State {
	return State{Sum(data), int64(len(data)), info.ModTime()}
}

// Sum returns the SHA-256 of data in hex.
func Sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}

// ErrUnseen is a file that the session has not read.
var ErrUnseen = errors.New("the file has not been read")

// Tracker remembers in which state a session has last seen each file, so that
// nothing is overwritten that nobody has looked at. It is safe for concurrent
// use.
type Tracker struct {
	mu   sync.Mutex
	seen map[string]State // by Workspace.Key of the resolved path
	key  func(string) string
}

// NewTracker returns a tracker that knows what the results of a session's calls
// recorded, in their order.
func (w *Workspace) NewTracker(past []agent.FileState) *Tracker {
	t := &Tracker{seen: map[string]State{}, key: w.Key}
	for _, f := range past {
		switch {
		case f.Gone:
			t.Forget(f.Path)
		case f.SHA256 != "":
			t.Saw(f.Path, State{SHA256: f.SHA256})
		}
	}
	return t
}

// Saw records the state of the file at a resolved path.
func (t *Tracker) Saw(path string, s State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen[t.key(path)] = s
}

// Known returns the state in which the session has last seen the file at a
// resolved path.
func (t *Tracker) Known(path string) (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, ok := t.seen[t.key(path)]
	return s, ok
}

// Forget drops what is known of a file.
func (t *Tracker) Forget(path string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.seen, t.key(path))
}

// Check returns [ErrUnseen] or [ErrChanged] unless the file at a resolved path,
// now in the given state, is as the session has seen it. The content decides
// when it is known on both sides, so that a file that was only touched counts
// as unchanged; else size and time do.
func (t *Tracker) Check(path string, now State) error {
	t.mu.Lock()
	seen, ok := t.seen[t.key(path)]
	t.mu.Unlock()
	switch {
	case !ok:
		return ErrUnseen
	case seen.SHA256 != "" && now.SHA256 != "":
		if seen.SHA256 != now.SHA256 {
			return ErrChanged
		}
	case seen.Size != now.Size || !seen.ModTime.Equal(now.ModTime):
		return ErrChanged
	}
	return nil
}
