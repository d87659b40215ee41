package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"dure/agent"
	"dure/internal/tools/files/pdftext"
	"dure/internal/tools/kit"
)

// MaxAttached is the size in bytes of the largest file that [Attach] takes.
const MaxAttached = maxPDF

// ErrNoMedia is a picture or document that the model cannot be shown.
var ErrNoMedia = errors.New("the model takes no such media")

// Attach makes of a picture or a document, by its first bytes, what a model reads:
// blocks if it takes them, and of a document it does not take the text of its first
// pages. What is neither, or cannot be decoded, is an error.
func Attach(ctx context.Context, name string, data []byte, m agent.ModelInfo) (text string, blocks []agent.Block, err error) {
	f := new(files)
	var v *view
	switch {
	case len(data) > MaxAttached, imageType(data) != "" && len(data) > maxImage:
		return "", nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("%s has %d bytes", kit.Name(name), len(data)), "")
	case imageType(data) != "" && !m.Images:
		return "", nil, ErrNoMedia
	case imageType(data) != "":
		v, err = f.showImage(ctx, name, data, readInput{})
	case !bytes.HasPrefix(data, []byte("%PDF-")):
		return "", nil, kit.Refuse(ErrFileBinary, kit.Name(name)+" is neither a picture nor a PDF document", "")
	case m.PDF && len(data) <= sentPDF && pages(ctx, data) <= sentPDFPages:
		doc := agent.Media{Type: "application/pdf", Name: kit.Name(name), Data: data}
		return fmt.Sprintf("[application/pdf, %d bytes]", len(data)), []agent.Block{{Type: agent.DocumentBlock, Media: &doc}}, nil
	default:
		v, err = f.showPDF(ctx, name, data, readInput{})
	}
	if err != nil {
		return "", nil, err
	}
	if len(v.blocks) > 0 && v.blocks[0].Type == agent.DocumentBlock && !m.PDF {
		return "", nil, ErrNoMedia
	}
	return v.text, v.blocks, nil
}

// pages is how many pages a document has; more than are sent when nobody can tell.
func pages(ctx context.Context, data []byte) int {
	ctx, cancel := context.WithTimeout(ctx, decodeTime)
	defer cancel()
	doc, err := pdftext.Open(ctx, data)
	if err != nil {
		return sentPDFPages + 1
	}
	return doc.Pages()
}
