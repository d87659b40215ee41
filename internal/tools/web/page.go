package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"dure/agent"
	"dure/internal/tools/kit"
)

const (
	maxImage = 7 << 19 // bytes, 3.5 MiB: what models take
	maxPDF   = 4 << 20
)

// page is what an answer has to say. It never changes.
type page struct {
	url    target
	status int
	kind   string // media type
	title  string
	text   string // Markdown, or the text itself
	bytes  int    // of the body
	cut    bool   // text is not all of it
	media  *agent.Block
}

// imageTypes are those that models read.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// pageOf reads an answer. One that is neither text nor an image nor a PDF is
// refused with its type.
func (w *Web) pageOf(ctx context.Context, r *reply) (*page, error) {
	p := &page{url: r.from, status: r.status, kind: mediaType(r), bytes: len(r.body), cut: r.cut}
	size := fmt.Sprintf("%d bytes", p.bytes)
	if p.cut {
		size = fmt.Sprintf("more than %d bytes", p.bytes)
	}
	switch {
	case isOneOf(p.kind, imageTypes):
		if p.cut || p.bytes > maxImage {
			return nil, kit.Refuse(ErrWebType, fmt.Sprintf("it is an image of %s; at most %d can be shown", size, maxImage), "Look for a smaller version.")
		}
		p.media = &agent.Block{Type: agent.ImageBlock, Media: &agent.Media{Type: p.kind, Data: r.body}}
		return p, nil
	case p.kind == "application/pdf":
		if p.cut || p.bytes > maxPDF || !bytes.HasPrefix(r.body, []byte("%PDF-")) {
			return nil, kit.Refuse(ErrWebType, fmt.Sprintf("it is a PDF of %s; at most %d can be shown", size, maxPDF), "Look for the same as a web page, or download it with a command.")
		}
		p.media = &agent.Block{Type: agent.DocumentBlock, Media: &agent.Media{Type: p.kind, Data: r.body}}
		return p, nil
	case !isText(p.kind):
		return nil, kit.Refuse(ErrWebType, fmt.Sprintf("it is %s of %s and cannot be shown as text", p.kind, size), "Download it with a command if it is needed.")
	}
	text, ok := decodeText(r.body, r.header.Get("Content-Type"))
	if !ok {
		return nil, kit.Refuse(ErrWebType, fmt.Sprintf("it says that it is %s, and is binary data of %s", p.kind, size), "Download it with a command if it is needed.")
	}
	if p.kind != "text/html" && p.kind != "application/xhtml+xml" {
		p.text = text
		return p, nil
	}
	md, title, cutShort, err := w.turn.markdown(ctx, text, r.from.url)
	if err != nil {
		return nil, kit.Refuse(ErrWebType, "its HTML cannot be read", "Look for the same elsewhere.")
	}
	p.text, p.title, p.cut = md, title, p.cut || cutShort
	return p, nil
}

// mediaType returns the type of a body, by its first bytes when the server does
// not say, or says what it says of everything.
func mediaType(r *reply) string {
	kind, _, err := mime.ParseMediaType(r.header.Get("Content-Type"))
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(r.body))
	switch {
	case err != nil, kind == "application/octet-stream", kind == "binary/octet-stream":
		return sniffed
	case strings.HasPrefix(kind, "image/") && kind != "image/svg+xml":
		return sniffed // the type of an image has to be true
	case kind == "image/jpg":
		return "image/jpeg"
	case len(kind) > 100:
		return sniffed
	}
	return kind
}

func isOneOf(s string, list []string) bool {
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

// isText reports whether a media type is one of text.
func isText(kind string) bool {
	if strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || strings.HasSuffix(kind, "+yaml") {
		return true
	}
	return isOneOf(kind, []string{
		"application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/x-javascript", "application/ecmascript", "application/x-ndjson",
		"application/jsonl", "application/json-seq", "application/sql", "application/graphql", "application/x-sh",
		"application/x-www-form-urlencoded", "application/x-httpd-php", "application/typescript", "message/http",
	})
}

// decodeText returns a body as UTF-8: by its byte order mark, by what the server
// or the page says, else as UTF-8 where that fits. It is not ok for what is no
// text.
func decodeText(body []byte, contentType string) (string, bool) {
	enc, name, certain := charset.DetermineEncoding(body, contentType)
	if name == "utf-8" || !certain && utf8.Valid(body) {
		body = bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
		return strings.ToValidUTF8(string(body), "\uFFFD"), !isBinary(body)
	}
	text, err := io.ReadAll(io.LimitReader(enc.NewDecoder().Reader(bytes.NewReader(body)), 4*maxBody))
	if err != nil || isBinary(text) {
		return "", false
	}
	return strings.TrimPrefix(string(text), "\uFEFF"), true
}

// isBinary reports whether the beginning of a decoded body is no text.
func isBinary(b []byte) bool {
	b = b[:min(len(b), 8<<10)]
	odd := 0
	for _, c := range b {
		if c == 0 {
			return true
		}
		if c < ' ' && c != '\n' && c != '\r' && c != '\t' && c != '\f' && c != 0x1b {
			odd++
		}
	}
	return odd > len(b)/10
}
