package read

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"dure/agent"
	"dure/internal/knowledge/mention"
)

// media makes blocks of the pictures and documents among attachments, or says in them
// why not. Of documents that the model does not take it returns the text.
func (m *mentions) media(ctx context.Context, found []mention.Attachment) (text string, blocks []agent.Block) {
	info := m.c.Model(m.b.Model())
	left, count := maxMedia, 0
	for i := range found {
		a := &found[i]
		if a.Media == "" || a.Refused != "" {
			continue
		}
		if count++; count > maxPictures || left <= 0 {
			a.Refused = mention.Full
			continue
		}
		data, more, err := m.ws.Head(filepath.Join(m.ws.Root(), filepath.FromSlash(a.Path)), min(left, m.c.MaxMedia))
		switch {
		case err != nil:
			a.Refused = mention.Unreadable
			continue
		case more:
			a.Refused = "too-large"
			continue
		}
		said, more2, err := m.picture(ctx, a.Path, data, info)
		if err != nil {
			a.Refused = m.whyNot(err)
			continue
		}
		left -= len(data)
		a.Bytes, a.Chars = len(data), 0
		blocks = append(blocks, more2...)
		shown := mention.Attachment{Mention: a.Mention, Path: a.Path, Text: said}
		text += mention.Render([]mention.Attachment{shown})
	}
	return text, blocks
}

// picture returns what the model reads of a picture or document.
func (m *mentions) picture(ctx context.Context, name string, data []byte, info agent.ModelInfo) (string, []agent.Block, error) {
	text, blocks, err := m.c.Attach(ctx, name, data, info)
	if err != nil {
		return "", nil, err
	}
	text, err = m.b.Clean(ctx, text[:min(len(text), mention.MaxFile)])
	return strings.ToValidUTF8(text, ""), blocks, err
}

func (m *mentions) whyNot(err error) string {
	te, _ := errors.AsType[*agent.ToolError](err)
	switch {
	case errors.Is(err, m.c.NoMedia):
		return "no-media"
	case te != nil && te.Code == "E_FILE_TOO_LARGE":
		return "too-large"
	case te != nil && te.Code == "E_FILE_BINARY":
		return mention.Binary
	}
	return mention.Unreadable
}

// fetch reads the resources among attachments, or says in them why not, and returns the
// pictures and documents among them.
func (m *mentions) fetch(ctx context.Context, found []mention.Attachment) (blocks []agent.Block) {
	left, count := mention.MaxTotal, 0
	for i := range found {
		a := &found[i]
		if a.Kind != mention.Resource || a.Refused != "" {
			continue
		}
		if count++; count > maxResources || left <= 0 {
			a.Refused = mention.Full
			continue
		}
		r, err := m.Servers.Read(ctx, a.ID, a.Name)
		if err != nil {
			m.c.Logger.Info("reading a resource", "session", m.b.ID, "resource", a.Name, "error", err)
			a.Refused = mention.Unreadable
			continue
		}
		text := r.Unfenced()
		if n := len(r.Blocks); n > 0 && strings.TrimSpace(text) == "" {
			text = fmt.Sprintf("[pictures or documents: %d]", n)
		}
		limit := min(mention.MaxFile, left)
		a.Truncated = len(text) > limit || r.Spill != nil
		a.Text = first(text, limit)
		a.Bytes, a.Chars = len(a.Text), utf8.RuneCountInString(a.Text)
		left -= a.Bytes
		blocks = append(blocks, r.Blocks[:min(len(r.Blocks), maxPictures)]...)
	}
	return blocks
}
