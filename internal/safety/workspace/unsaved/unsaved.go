// Package unsaved has the files of a workspace as an editor has them, which may not be saved
// yet. What may be read and written has been decided before. It starts no goroutines.
package unsaved

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"dure/internal/safety/workspace"
)

// Editor is a program in which files are open that may not be saved yet. Its methods are
// safe for concurrent use, and return within seconds.
type Editor interface {
	// Read returns the text of a file as it stands in the editor; ok says that it has one. On
	// an error nobody knows whether it has.
	Read(ctx context.Context, path string) (text string, ok bool, err error)
	// Write has the editor take over what a file says now; ok says that it did.
	Write(ctx context.Context, path, text string) (ok bool)
}

// Files are the files of a workspace as an editor has them that has a folder open; nil = as
// they are on the disk. Work trees of agents are no folders of an editor.
func Files(ws *workspace.Workspace, editor Editor, dir string) workspace.FS {
	if editor == nil || !Own(ws, dir) {
		return nil
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil
	}
	return &editedFiles{Workspace: ws, editor: editor, root: root, given: dir}
}

// Own reports whether a workspace is that of a folder, and no work tree.
func Own(ws *workspace.Workspace, dir string) bool {
	root, err := filepath.EvalSymlinks(dir)
	own, oerr := filepath.EvalSymlinks(ws.Root())
	return err == nil && oerr == nil && root == own
}

// editedFiles are files of a workspace of which some are open in an editor. It is no way
// around anything: what may be read and written has been decided before, and the disk is
// read and written by the workspace.
type editedFiles struct {
	*workspace.Workspace
	editor      Editor
	root, given string // the folder, resolved and as the editor knows it

	lost   sync.Map // files that the editor has not taken over: their paths
	unsure sync.Map // files of which the editor may have a text that is not saved: their paths
}

// shownAs is a path as the editor knows it.
func (e *editedFiles) shownAs(path string) string {
	if rel, err := filepath.Rel(e.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(e.given, rel)
	}
	return path
}

// Open opens a file. One that says something else in the editor than on the disk is opened
// as it stands there. A file that is not on the disk is not there.
func (e *editedFiles) Open(path string) (workspace.File, error) {
	f, err := e.Workspace.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if _, lost := e.lost.Load(path); lost || err != nil || info.Size() > workspace.MaxText {
		return f, nil //nolint:nilerr // whoever reads it is told
	}
	data, err := io.ReadAll(io.LimitReader(f, workspace.MaxText+1))
	if err != nil || len(data) > workspace.MaxText {
		_ = f.Close() // only read
		return e.Workspace.Open(path)
	}
	_ = f.Close() // likewise
	open := &openFile{info: info}
	if was, err := workspace.DecodeText(data); err == nil && !was.Damaged {
		now, ok, err := e.editor.Read(context.Background(), e.shownAs(path))
		if err != nil {
			e.unsure.Store(path, true)
		} else {
			e.unsure.Delete(path)
		}
		if ok && plainEnds(now) != plainEnds(was.Content) && len(now) <= workspace.MaxText {
			if workspace.LineEndsOf(was.Content) == workspace.CRLF && workspace.LineEndsOf(now) == workspace.LF {
				now = strings.ReplaceAll(now, "\n", "\r\n")
			}
			if unsaved, err := was.Encode(now); err == nil {
				data, open.info = unsaved, &openInfo{info, int64(len(unsaved))}
			}
		}
	}
	open.Reader = bytes.NewReader(data)
	return open, nil
}

// plainEnds is a text without the differences that editors make between line ends.
func plainEnds(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }

// Write writes a file on the disk, and has the editor take it over. What the editor makes
// of it while it saves is looked at: it is the file as it is then. Where nobody knows what
// stands in the editor it is told nothing: what its user has not saved there would be gone.
func (e *editedFiles) Write(path string, data []byte, o workspace.WriteOptions) (fs.FileInfo, error) {
	if old, ok := o.Old.(*openInfo); ok {
		o.Old = old.FileInfo // what stands on the disk is replaced
	}
	info, err := e.Workspace.Write(path, data, o)
	if err != nil {
		return nil, err
	}
	t, err := workspace.DecodeText(data)
	if _, unsure := e.unsure.Load(path); unsure || err != nil || t.Damaged || !e.editor.Write(context.Background(), e.shownAs(path), t.Content) {
		e.lost.Store(path, true) // it shows what was there before
		return info, nil         //nolint:nilerr // the file is written
	}
	e.lost.Delete(path)
	if now, err := e.Workspace.Stat(path); err == nil {
		info = now
	}
	return info, nil
}

// openFile is a file that has been read.
type openFile struct {
	*bytes.Reader
	info fs.FileInfo
}

// openInfo describes a file that is not saved: as it is on the disk, but for its size.
type openInfo struct {
	fs.FileInfo
	size int64
}

// Size is that of the file in the editor.
func (i *openInfo) Size() int64 { return i.size }

// Stat describes the file.
func (f *openFile) Stat() (fs.FileInfo, error) { return f.info, nil }

// Close gives nothing back.
func (f *openFile) Close() error { return nil }
