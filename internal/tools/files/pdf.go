package files

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"dure/agent"
	"dure/internal/tools/files/pdftext"
	"dure/internal/tools/kit"
)

// Limits of PDF documents.
const (
	maxPDF       = 32 << 20 // bytes of a file
	pdfPages     = 20       // of one call
	pdfWhole     = 10       // pages of a document that is shown without saying which
	pdfPage      = 50_000   // bytes of text of one page
	sentPDF      = 4 << 20  // bytes of a document without text that is passed on as it is
	sentPDFPages = 100      // and its pages
)

// showPDF shows the text of pages. A document without any, such as a scan, is
// passed on as it is when it is small enough.
func (f *files) showPDF(ctx context.Context, name string, data []byte, in readInput) (*view, error) {
	f.decoding.Lock()
	defer f.decoding.Unlock()
	limited, cancel := context.WithTimeout(ctx, decodeTime)
	defer cancel()
	text, total, empty, err := pdfText(limited, name, data, in.Pages)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, context.DeadlineExceeded):
		return nil, kit.Refuse(ErrFileLarge, fmt.Sprintf("getting the text out of %s takes longer than %s", kit.Name(name), decodeTime), "Ask for fewer pages, or use a command.")
	case err != nil:
		return nil, err
	}
	p, err := pageOf(ctx, text, in)
	if err != nil {
		return nil, err
	}
	v, err := p.view(name)
	if err != nil {
		return nil, err
	}
	if empty && len(data) <= sentPDF && total <= sentPDFPages {
		v.blocks = []agent.Block{{Type: agent.DocumentBlock, Media: &agent.Media{Type: "application/pdf", Data: data}}}
		v.text += "\n[the document follows as it is]"
	}
	type file struct {
		Path    string `json:"filePath"`
		Content string `json:"content"`
		Size    int    `json:"originalSize"`
		Pages   int    `json:"numPages"`
	}
	v.output = kit.Structured(struct {
		Type string `json:"type"`
		File file   `json:"file"`
	}{"pdf", file{name, p.plain.String(), len(data), total}})
	return v, nil
}

// pdfText returns the text of the pages that are wanted, how many pages there
// are, and whether none of those has text.
func pdfText(ctx context.Context, name string, data []byte, wanted string) (text string, total int, empty bool, err error) {
	doc, err := pdftext.Open(ctx, data)
	switch {
	case errors.Is(err, pdftext.ErrEncrypted):
		return "", 0, false, kit.Refuse(ErrFileAccess, kit.Name(name)+" is encrypted", "Ask the user for a copy without a password.")
	case errors.Is(err, pdftext.ErrDamaged):
		return "", 0, false, kit.Refuse(ErrFileBinary, kit.Name(name)+" is a damaged PDF document: it has no pages that can be found", "Use a command that understands its format.")
	case err != nil:
		return "", 0, false, err
	}
	pages, err := pickPages(wanted, doc.Pages())
	if err != nil {
		return "", 0, false, err
	}
	var b strings.Builder
	empty = true
	for _, n := range pages {
		page, err := doc.Text(ctx, n, pdfPage)
		if err != nil {
			return "", 0, false, err
		}
		page = strings.TrimSpace(page)
		if page == "" {
			page = "[no text on this page]"
		} else {
			empty = false
		}
		fmt.Fprintf(&b, "--- page %d of %d ---\n%s\n", n, doc.Pages(), page)
	}
	return b.String(), doc.Pages(), empty, nil
}

// pickPages reads a list such as "1-5,8,11-". Without one it is all pages of a
// short document.
func pickPages(wanted string, total int) ([]int, error) {
	if wanted == "" {
		if total > pdfWhole {
			return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("the document has %d pages", total), fmt.Sprintf(`Say which ones in pages, such as "1-5,8", at most %d.`, pdfPages))
		}
		wanted = "1-"
	}
	var pages []int
	for part := range strings.SplitSeq(wanted, ",") {
		first, last, several := strings.Cut(strings.TrimSpace(part), "-")
		from, err := strconv.Atoi(strings.TrimSpace(first))
		to := from
		if several && err == nil {
			if to = total; strings.TrimSpace(last) != "" {
				to, err = strconv.Atoi(strings.TrimSpace(last))
			}
		}
		if err != nil || from < 1 || to < from {
			return nil, kit.Refuse(agent.ErrInput, "pages is "+kit.Quote(wanted, 80), `Give numbers and ranges, such as "1-5,8".`)
		}
		if to > total {
			return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("the document has %s; page %d does not exist", plural(total, "page"), to), "Ask for pages that it has.")
		}
		for n := from; n <= to; n++ {
			if len(pages) > pdfPages {
				break
			}
			if !slices.Contains(pages, n) {
				pages = append(pages, n)
			}
		}
	}
	if len(pages) > pdfPages {
		return nil, kit.Refuse(agent.ErrInput, fmt.Sprintf("pages %s are more than %d", kit.Quote(wanted, 80), pdfPages), "Ask for the others in another call.")
	}
	return pages, nil
}
