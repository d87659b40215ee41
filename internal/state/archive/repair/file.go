package repair

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"dure/agent"
)

// CheckFile looks for damage in a transcript of messages, or a session log, and
// returns what it found as a [Report]. With out, what can be made of it
// is written there, to a file that must not exist yet; nothing is written of one that
// is refused. The transcript itself is never changed.
func CheckFile(path, out string) (Report, error) {
	info, err := os.Stat(path) // before it is opened, which waits for the other end of a pipe
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("it is no file")
	}
	if err != nil {
		return Report{}, problem(path, err)
	}
	f, err := os.Open(path)
	if err != nil {
		return Report{}, problem(path, err)
	}
	defer f.Close()
	report, err := Check(f, info.Size(), Options{Blob: blobBeside(path)})
	if err != nil {
		return Report{}, problem(path, err)
	}
	if out != "" && report.Load != Refused {
		if err := writeRepaired(report, out); err != nil {
			return Report{}, problem(out, err)
		}
	}
	return report, nil
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

func writeRepaired(report Report, out string) error {
	f, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(report.Write(f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(out))
	}
	return nil
}

// RepairFile puts what can be made of a damaged transcript in its place, and
// returns a [Report] and the file that keeps it as it was: "" when
// nothing was wrong, or it was refused.
func RepairFile(path string) (report Report, kept string, err error) {
	if report, err = CheckFile(path, ""); err != nil {
		return report, "", err
	}
	if report.Load != Recovered {
		return report, "", nil
	}
	stamp := time.Now().UTC().Format("20060102T150405.000000000")
	kept, made := path+".damaged-"+stamp, filepath.Join(filepath.Dir(path), ".mended-"+stamp)
	if err := copyFile(path, kept); err != nil {
		return report, "", problem(kept, err)
	}
	if report, err = CheckFile(path, made); err != nil {
		return report, kept, err
	}
	if err := os.Rename(made, path); err != nil {
		return report, kept, problem(path, errors.Join(err, os.Remove(made)))
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

func problem(path string, err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		err = pe.Err
	}
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: %v", path, err), Err: err,
		Fix: "name another file",
	}
}
