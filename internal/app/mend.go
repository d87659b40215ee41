package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"dure/agent"
	"dure/internal/state/archive/repair"
	"dure/internal/state/journal"
)

// MendLog looks for damage in the log of a session and returns what it found as a
// [journal.Mended] in JSON. With change set, the log is made one that can be written
// on; as it was it is kept beside it.
func (a *App) MendLog(ctx context.Context, id string, change bool) (json.RawMessage, error) {
	if _, err := a.open(); err != nil {
		return nil, err
	}
	m, err := a.store.Mend(ctx, id, !change)
	if owned, ok := errors.AsType[*journal.OwnedError](err); ok {
		return nil, ownedProblem(owned, err)
	}
	if err != nil && errors.Is(err, journal.ErrDamaged) {
		return nil, &agent.Problem{
			Code: agent.ProblemDamaged, Message: err.Error(), Err: err, Fix: "nothing can be made of it; the files stay as they are",
			Args: map[string]string{"session": id, "error": err.Error()},
		}
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(m)
}

func ownedProblem(owned *journal.OwnedError, err error) error {
	return &agent.Problem{
		Code: agent.ProblemOwned, Message: err.Error(), Err: err, Fix: "close it there first",
		Args: map[string]string{
			"session": owned.Session, "error": err.Error(), "pid": fmt.Sprint(owned.PID), "host": owned.Host,
			"since": owned.Since.Local().Format(time.DateTime),
		},
	}
}

// RepairTranscript puts what can be made of a damaged transcript in its place, and
// returns a [repair.Report] in JSON and the file that keeps it as it was: "" when
// nothing was wrong, or it was refused.
func RepairTranscript(path string) (report json.RawMessage, kept string, err error) {
	if report, err = CheckTranscript(path, ""); err != nil {
		return nil, "", err
	}
	var found struct{ Load string }
	if err := json.Unmarshal(report, &found); err != nil {
		return nil, "", fmt.Errorf("reading the report: %w", err)
	}
	if found.Load != repair.Recovered {
		return report, "", nil
	}
	stamp := time.Now().UTC().Format("20060102T150405.000000000")
	kept, made := path+".damaged-"+stamp, filepath.Join(filepath.Dir(path), ".mended-"+stamp)
	if err := copyFile(path, kept); err != nil {
		return nil, "", transcriptProblem(kept, err)
	}
	if report, err = CheckTranscript(path, made); err != nil {
		return nil, kept, err
	}
	if err := os.Rename(made, path); err != nil {
		return nil, kept, transcriptProblem(path, errors.Join(err, os.Remove(made)))
	}
	return report, kept, nil
}

// copyFile copies a file to a new one, and syncs it.
func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Sync(), dst.Close())
}
