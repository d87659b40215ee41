// Package files holds the tools that read, search and change files, in the
// workspace and, where the gate lets them, beside it. A change is refused when
// the file was not read before, or is not what it was then.
//
// It starts no goroutines that outlive a call.
package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// Files is what the file tools work on. There is one for each session.
type Files struct {
	Workspace *workspace.Workspace // required

	// FS reads and writes files; nil = Workspace. Listing and searching always
	// use Workspace.
	FS workspace.FS

	// Tracker knows what the session has read; nil = nothing yet.
	Tracker *workspace.Tracker

	// Blob returns where the whole of a spilled output is, by its handle; nil =
	// there are none.
	Blob func(handle string) (path string, ok bool)

	// Masked reports whether a text has a mask in it, which stands for a secret
	// that a result does not show; nil = none has. Such text gets into no file.
	Masked func(text string) bool

	Home string // what "~" stands for; "" = it is not expanded
}

// The codes of the file tools (docs/errors.md).
const (
	ErrFileMissing   agent.ErrorCode = "E_FILE_NOT_FOUND"
	ErrFileType      agent.ErrorCode = "E_FILE_TYPE"
	ErrFileAccess    agent.ErrorCode = "E_FILE_ACCESS"
	ErrFileLarge     agent.ErrorCode = "E_FILE_TOO_LARGE"
	ErrFileBinary    agent.ErrorCode = "E_FILE_BINARY"
	ErrFileEncoding  agent.ErrorCode = "E_FILE_ENCODING"
	ErrFileUnread    agent.ErrorCode = "E_FILE_NOT_READ"
	ErrFileChanged   agent.ErrorCode = "E_FILE_CHANGED"
	ErrFileReadOnly  agent.ErrorCode = "E_FILE_READ_ONLY"
	ErrFileMasked    agent.ErrorCode = "E_FILE_MASKED"
	ErrDiskFull      agent.ErrorCode = "E_DISK_FULL"
	ErrEditNoMatch   agent.ErrorCode = "E_EDIT_NO_MATCH"
	ErrEditAmbiguous agent.ErrorCode = "E_EDIT_AMBIGUOUS"
	ErrEditSame      agent.ErrorCode = "E_EDIT_NO_CHANGE"
)

// fileLimit is how long one call of a file tool may take.
const fileLimit = time.Minute

// handlePrefix begins the handle of a spilled output.
const handlePrefix = "output:"

// Tools returns the file tools.
func (f Files) Tools() []agent.Tool {
	if f.FS == nil {
		f.FS = f.Workspace
	}
	if f.Tracker == nil {
		f.Tracker = f.Workspace.NewTracker(nil)
	}
	if f.Blob == nil {
		f.Blob = func(string) (string, bool) { return "", false }
	}
	if f.Masked == nil {
		f.Masked = func(string) bool { return false }
	}
	s := &files{Files: f}
	return []agent.Tool{
		s.read(), s.write(), s.edit(), s.multiEdit(), s.list(), s.glob(), s.grep(),
		s.multiRead(), s.delete(), s.move(), s.patch(), s.notebook(),
	}
}

// files is the state that the file tools of a session share.
type files struct {
	Files
	pins kit.Pins

	// decoding is held while an image or a PDF is decoded, so that the memory
	// that takes is taken once.
	decoding sync.Mutex
}

// absolute returns the path that the model means, absolute and clean.
func (f *files) absolute(tc agent.ToolContext, path string) (string, error) {
	if path == "" {
		return "", kit.Refuse(agent.ErrInput, "the path is empty", "Name a file.")
	}
	if rest, ok := strings.CutPrefix(path, "~"); ok && f.Home != "" && (rest == "" || rest[0] == '/') {
		path = filepath.Join(f.Home, rest)
	}
	return kit.Path(tc, f.Workspace.Root(), path)
}

// pin is [files.absolute] for Plan: it also remembers where the path leads, so
// that the file that is opened later is the one that was decided about.
func (f *files) pin(tc agent.ToolContext, c agent.Call, path string) (string, error) {
	abs, err := f.absolute(tc, path)
	if err != nil {
		return "", err
	}
	_, resolved, err := f.Workspace.Resolve(abs)
	if err != nil {
		return "", f.explain(tc, abs, err)
	}
	f.pins.Set(c.ID+"\x00"+abs, resolved)
	return abs, nil
}

// arrive returns the path that the model means and where it leads, which has to
// be where it led when the call was planned.
func (f *files) arrive(tc agent.ToolContext, c agent.Call, path string) (abs, resolved string, err error) {
	if abs, err = f.absolute(tc, path); err != nil {
		return "", "", err
	}
	if _, resolved, err = f.Workspace.Resolve(abs); err != nil {
		return "", "", f.explain(tc, abs, err)
	}
	if planned, moved := f.pins.Moved(c.ID+"\x00"+abs, resolved); moved {
		return "", "", kit.Refuse(ErrFileChanged,
			fmt.Sprintf("%s leads to %s now; it led to %s when the call was decided", abs, resolved, planned),
			"Name the file itself rather than a link to it.")
	}
	return abs, resolved, nil
}

// spilled returns where the output behind a handle is. It is not a file of the
// user's: no permission is needed.
func (f *files) spilled(handle string) (path string, isHandle bool, err error) {
	if !strings.HasPrefix(handle, handlePrefix) {
		return "", false, nil
	}
	path, ok := f.Blob(handle)
	if !ok {
		return "", true, kit.Refuse(ErrFileMissing, "there is no output with the handle "+kit.Quote(handle, 80), "Use a handle exactly as a result names it.")
	}
	return path, true, nil
}

// load reads a whole file, of at most [workspace.MaxText] bytes.
func (f *files) load(ctx context.Context, path string) ([]byte, fs.FileInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	file, err := f.FS.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	data, err := io.ReadAll(io.LimitReader(file, workspace.MaxText+1))
	if err != nil {
		return nil, nil, err
	}
	if len(data) > workspace.MaxText {
		return nil, info, errLarge
	}
	return data, info, nil
}

var errLarge = errors.New("the file is too large")

// explain turns an error about a file into one that the model can act on.
func (f *files) explain(tc agent.ToolContext, path string, err error) error {
	if _, ok := errors.AsType[*agent.ToolError](err); ok {
		return err
	}
	if errors.Is(err, fs.ErrNotExist) {
		return f.missing(tc, path)
	}
	return Explain(path, err)
}

// Explain turns an error of the workspace about a file into one that the model can act on.
func Explain(path string, err error) error {
	path = kit.Name(path)
	if te, ok := errors.AsType[*workspace.TypeError](err); ok {
		if te.Mode.IsDir() {
			return kit.Refuse(ErrFileType, path+" is a folder", "List it with the list tool, or name a file in it.")
		}
		return kit.Refuse(ErrFileType, path+" is "+te.Kind(), "Only regular files can be read and written.")
	}
	if ee, ok := errors.AsType[*workspace.EncodeError](err); ok {
		return kit.Refuse(ErrFileEncoding, path+" cannot take this text: "+ee.Error(),
			"Leave such characters out, or convert the file to UTF-8 first with a command.")
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, fs.ErrNotExist):
		return kit.Refuse(ErrFileMissing, "there is no file "+path, "Look for it, or name another one.")
	case errors.Is(err, fs.ErrPermission):
		return kit.Refuse(ErrFileAccess, "permission denied: "+path, "The file system refuses it; ask the user, or use another file.")
	case errors.Is(err, workspace.ErrLoop):
		return kit.Refuse(ErrFileAccess, path+" goes through too many links", "The links may lead in a circle; name another file.")
	case errors.Is(err, workspace.ErrReadOnly):
		return kit.Refuse(ErrFileReadOnly, path+" is read-only", "Ask the user before you change its mode.")
	case errors.Is(err, workspace.ErrChanged):
		return kit.Refuse(ErrFileChanged, path+" was changed by someone else in this moment; nothing was written", "Read it again, then repeat the change.")
	case errors.Is(err, workspace.ErrUnseen):
		return kit.Refuse(ErrFileUnread, path+" exists and has not been read", "Read it first, then repeat the call.")
	case errors.Is(err, errLarge):
		return kit.Refuse(ErrFileLarge, fmt.Sprintf("%s is larger than %d MiB", path, workspace.MaxText>>20), "Change it with a command.")
	case errors.Is(err, workspace.ErrBinary):
		return kit.Refuse(ErrFileBinary, path+" is not a text file", "Use a command that understands its format.")
	case workspace.Full(err):
		return kit.Refuse(ErrDiskFull, "no space left on the disk for "+path+"; the file is as it was", "Tell the user; space has to be freed first.")
	}
	return kit.Refuse(agent.ErrTool, err.Error(), "")
}

// shown returns a path as the model best reads it: relative to the working
// directory when it is below.
func shown(tc agent.ToolContext, path string) string {
	return kit.Name(kit.Relative(path, tc.Workdir))
}

// plural returns "1 line", "2 lines".
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
