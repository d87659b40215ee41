package lsp

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"dure/internal/safety/workspace"
)

// maxText is the size in bytes of the largest file that is sent to a server.
const maxText = 4 << 20

var errUnfit = errors.New("the file is too large or no text")

// text reads a file.
func (l *Client) text(path string) (string, error) {
	f, err := l.FS.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return "", err
	}
	t, err := workspace.DecodeText(data)
	if err != nil || len(data) > maxText {
		return "", errUnfit
	}
	return t.Content, nil
}

// send brings the server's idea of a file up to date, and asks what it finds in
// it if it wants to be asked.
func (l *life) send(ctx context.Context, path string) {
	text, err := l.client.text(path)
	if err != nil {
		l.drop(path, errors.Is(err, fs.ErrNotExist))
		return
	}
	l.mu.Lock()
	d := l.docs[key(path)]
	if d == nil {
		l.mu.Unlock()
		return
	}
	known, sum := d.open, workspace.Sum([]byte(text))
	d.sent = d.asked
	if known && sum == d.sum {
		if d.fresh > 0 && !l.can.pulls() {
			d.fresh = d.sent // nothing else would come
			l.tell()
		}
		l.mu.Unlock()
		l.pull(ctx, d)
		return
	}
	d.version++
	d.open, d.sum, d.fresh = true, sum, 0
	version := d.version
	l.mu.Unlock()

	id := documentID{URI: uriOf(path, onWindows), Version: version}
	event := fileChanged
	if !known {
		event = fileCreated // perhaps it was there before, which does no harm
	}
	err = l.notify("workspace/didChangeWatchedFiles", watchedParams{[]fileEvent{{id.URI, event}}})
	switch {
	case err != nil:
	case known:
		err = l.notify("textDocument/didChange", changeParams{id, []wholeText{{text}}})
	default:
		var p openParams
		p.TextDocument.URI, p.TextDocument.Version = id.URI, version
		p.TextDocument.LanguageID, p.TextDocument.Text = l.spec.language(path), text
		err = l.notify("textDocument/didOpen", p)
	}
	if err == nil && l.can.saves() {
		err = l.notify("textDocument/didSave", documentParams{documentID{URI: id.URI}})
	}
	if err == nil {
		l.pull(ctx, d)
		l.shrink()
	}
}

// pull asks for the diagnostics of a document.
func (l *life) pull(ctx context.Context, d *document) {
	if !l.can.pulls() {
		return
	}
	for range pullTries {
		var r pullResult
		err := l.call(ctx, writeLimit, "textDocument/diagnostic", documentParams{documentID{URI: uriOf(d.path, onWindows)}}, &r)
		if err != nil {
			continue // it was busy with something newer
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if r.Kind == "unchanged" {
			d.fresh = d.sent
			l.tell()
			return
		}
		l.found(d, r.Items, time.Time{})
		return
	}
}

// drop closes a document that is gone, or cannot be sent.
func (l *life) drop(path string, gone bool) {
	k := key(path)
	l.mu.Lock()
	d := l.docs[k]
	open := d != nil && d.open
	l.remove(k)
	l.tell()
	l.mu.Unlock()
	id := documentID{URI: uriOf(path, onWindows)}
	if open && l.notify("textDocument/didClose", documentParams{id}) != nil {
		return
	}
	if gone {
		_ = l.notify("workspace/didChangeWatchedFiles", watchedParams{[]fileEvent{{id.URI, fileDeleted}}}) // the reader sees the end
	}
}

// shrink closes the documents that have been open for longest.
func (l *life) shrink() {
	for {
		l.mu.Lock()
		if len(l.docs) <= maxDocs {
			l.mu.Unlock()
			return
		}
		d := l.docs[l.order[0]]
		l.mu.Unlock()
		l.drop(d.path, false)
	}
}

// remove forgets a document. The caller holds mu.
func (s *server) remove(k string) {
	delete(s.docs, k)
	for i, o := range s.order {
		if o == k {
			s.order = append(s.order[:i], s.order[i+1:]...)
			return
		}
	}
}
