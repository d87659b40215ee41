package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/internal/state/archive/repair"
)

// CheckTranscript looks for damage in a transcript of messages, or a session log, and
// returns what it found as a [repair.Report] in JSON. With out, what can be made of it
// is written there, to a file that must not exist yet; nothing is written of one that
// is refused. The transcript itself is never changed.
func CheckTranscript(path, out string) (json.RawMessage, error) {
	info, err := os.Stat(path) // before it is opened, which waits for the other end of a pipe
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return nil, transcriptProblem(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, transcriptProblem(path, err)
	}
	defer f.Close()
	report, err := repair.Check(f, info.Size(), repair.Options{Blob: blobBeside(path)})
	if err != nil {
		return nil, transcriptProblem(path, err)
	}
	if out != "" && report.Load != repair.Refused {
		if err := writeRepaired(report, out); err != nil {
			return nil, transcriptProblem(out, err)
		}
	}
	data, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("encoding the report: %w", err)
	}
	return data, nil
}

// blobBeside returns how to read the long bodies of a session log, which lie in a
// folder beside it.
func blobBeside(path string) func(sha string) ([]byte, error) {
	const longest = 64 << 20 // bytes of a body
	return func(sha string) ([]byte, error) {
		if raw, err := hex.DecodeString(sha); err != nil || len(raw) != sha256.Size {
			return nil, errors.New("it has no name of a blob")
		}
		name := filepath.Join(filepath.Dir(path), "blobs", sha)
		info, err := os.Lstat(name)
		if err == nil && (!info.Mode().IsRegular() || info.Size() > longest) {
			err = errors.New("its blob is no file that can be read")
		}
		if err != nil {
			return nil, err
		}
		data, err := os.ReadFile(name)
		if err == nil && fmt.Sprintf("%x", sha256.Sum256(data)) != sha {
			err = errors.New("its blob was changed")
		}
		return data, err
	}
}

func writeRepaired(report repair.Report, out string) error {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(report.Write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

func transcriptProblem(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, err), Err: err,
		Fix: "name another file",
	}
}
