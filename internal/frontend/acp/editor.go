package acp

import (
	"context"
	"errors"
	"time"
)

// askTime bounds how long an editor is waited for, for one file.
const askTime = 5 * time.Second

// screen is the client's editor as a session sees it.
type screen struct{ x *session }

// editor returns the editor of the client; nil = it shows no files. One that cannot be told
// what was written would go on to show what was there before.
func (s *Server) editor(x *session) Editor {
	caps := s.can()
	if !caps.FS.Read || !caps.FS.Write {
		return nil
	}
	return screen{x}
}

// Read returns the text of a file as the editor has it. What the editor refuses it has not
// got; an answer that does not come, or cannot be understood, says nothing of the sort.
func (e screen) Read(ctx context.Context, path string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var out struct {
		Content *string `json:"content"`
	}
	err := e.x.s.ask(ctx, "fs/read_text_file", map[string]string{"sessionId": e.x.id, "path": path}, &out)
	_, refused := errors.AsType[*wireError](err)
	switch {
	case refused:
		return "", false, nil
	case err != nil:
		return "", false, err
	case out.Content == nil:
		return "", false, errors.New("fs/read_text_file: the answer has no content")
	}
	return *out.Content, true, nil
}

// Write has the editor write a file.
func (e screen) Write(ctx context.Context, path, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var out struct{}
	return e.x.s.ask(ctx, "fs/write_text_file", map[string]string{"sessionId": e.x.id, "path": path, "content": text}, &out) == nil
}
