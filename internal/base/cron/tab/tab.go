// Package tab keeps what is scheduled in a file that several programs share.
//
// It owns the form of the file, its lock, and the rule that a time is taken once, by whichever
// program comes first, and that what fails three times in a row is disabled. It runs nothing
// and starts no goroutines. A Tab is safe for concurrent use, by several programs as well.
package tab

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dure/agent"
	"dure/internal/base/cron"
)

// Bounds of what is scheduled.
const (
	MaxFailures = 3 // in a row, then it is disabled
	maxEntries  = 100
	maxPrompt   = 64 << 10 // bytes
	maxFile     = 16 << 20
	maxError    = 500
	lockWait    = 10 * time.Second
	idLength    = 8
)

// ErrUnknown says that there is no schedule of an ID.
var ErrUnknown = errors.New("there is no schedule of this ID")

// A Tab is what is scheduled.
type Tab struct {
	Path string // of the file; its folder is made
	Now  func() time.Time
}

// Parse reads the times of a schedule.
func Parse(s agent.Schedule) (cron.Schedule, error) {
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		return cron.Schedule{}, fmt.Errorf("the time zone %q is not known", s.Zone)
	}
	return cron.Parse(s.Cron, zone)
}

// List returns what is scheduled, in the order in which it was added.
func (t *Tab) List() ([]agent.Schedule, error) {
	f, err := os.Open(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("reading %s: it has more than %d bytes", t.Path, maxFile)
	}
	var list []agent.Schedule
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("reading %s: %w", t.Path, err)
	}
	return list, nil
}

// Add checks a schedule, gives it an ID and keeps it.
func (t *Tab) Add(ctx context.Context, s agent.Schedule) (agent.Schedule, error) {
	if _, err := Parse(s); err != nil {
		return s, err
	}
	if strings.TrimSpace(s.Prompt) == "" || len(s.Prompt) > maxPrompt {
		return s, fmt.Errorf("a prompt has from 1 to %d bytes", maxPrompt)
	}
	s.ID, s.Created, s.Next = strings.ToLower(rand.Text()[:idLength]), t.Now().UTC(), nil
	return s, t.change(ctx, func(list []agent.Schedule) ([]agent.Schedule, error) {
		if len(list) >= maxEntries {
			return nil, fmt.Errorf("there are %d schedules already, which is the most", len(list))
		}
		return append(list, s), nil
	})
}

// Remove forgets a schedule.
func (t *Tab) Remove(ctx context.Context, id string) error {
	return t.change(ctx, func(list []agent.Schedule) ([]agent.Schedule, error) {
		i := find(list, id)
		if i < 0 {
			return nil, ErrUnknown
		}
		return slices.Delete(list, i, i+1), nil
	})
}

// Enable has a schedule run again that was disabled.
func (t *Tab) Enable(ctx context.Context, id string) error {
	_, err := t.edit(ctx, id, func(s *agent.Schedule) { s.Disabled, s.Failures, s.Error = false, 0, "" })
	return err
}

// Claim takes a time of a schedule. Where ok is false, another program has taken it, or it was
// removed or disabled meanwhile.
func (t *Tab) Claim(ctx context.Context, id string, at time.Time) (ok bool, err error) {
	_, err = t.edit(ctx, id, func(s *agent.Schedule) {
		if ok = !s.Disabled && at.After(s.Last); ok {
			s.Last = at.UTC()
		}
	})
	if errors.Is(err, ErrUnknown) {
		return false, nil
	}
	return ok && err == nil, err
}

// Ended keeps how a run came out. It returns the schedule as it is then.
func (t *Tab) Ended(ctx context.Context, id, session string, failure error) (agent.Schedule, error) {
	return t.edit(ctx, id, func(s *agent.Schedule) {
		s.Session, s.Error = session, ""
		if failure == nil {
			s.Failures = 0
			return
		}
		text := failure.Error()
		s.Error = strings.ToValidUTF8(text[:min(len(text), maxError)], "")
		s.Failures++
		s.Disabled = s.Disabled || s.Failures >= MaxFailures
	})
}

func find(list []agent.Schedule, id string) int {
	return slices.IndexFunc(list, func(s agent.Schedule) bool { return s.ID == id })
}

func (t *Tab) edit(ctx context.Context, id string, f func(*agent.Schedule)) (s agent.Schedule, err error) {
	return s, t.change(ctx, func(list []agent.Schedule) ([]agent.Schedule, error) {
		i := find(list, id)
		if i < 0 {
			return nil, ErrUnknown
		}
		f(&list[i])
		s = list[i]
		return list, nil
	})
}

// change writes what f makes of what is scheduled, while no other program does.
func (t *Tab) change(ctx context.Context, f func([]agent.Schedule) ([]agent.Schedule, error)) error {
	dir := filepath.Dir(t.Path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	l := flock.New(t.Path+".lock", flock.SetPermissions(0o600))
	if ok, err := l.TryLockContext(waiting, 20*time.Millisecond); !ok {
		if waiting.Err() != nil && ctx.Err() == nil {
			err = errors.New("another program is changing schedules")
		}
		return err
	}
	defer func() { _ = l.Unlock() }() // the end of the program unlocks it as well
	list, err := t.List()
	if err != nil {
		return err
	}
	if list, err = f(list); err != nil {
		return err
	}
	return t.write(dir, list)
}

func (t *Tab) write(dir string, list []agent.Schedule) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(list); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*")
	if err != nil {
		return err
	}
	_, err = f.Write(b.Bytes())
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), t.Path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
