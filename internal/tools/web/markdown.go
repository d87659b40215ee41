package web

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

const (
	convertLimit = 3 * time.Second // then the rest of a page is left out; the bounds of a tree end long before
	maxMarkdown  = 2 << 20         // bytes
)

// turner turns pages into Markdown. It is safe for concurrent use.
type turner struct{ conv *converter.Converter }

func newTurner() turner {
	conv := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled), // it is read, not rendered
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(
				commonmark.WithListEndComment(false),
				commonmark.WithLinkEmptyContentBehavior(commonmark.LinkBehaviorSkip),
			),
			table.NewTablePlugin(
				table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), // padding multiplies
				table.WithSkipEmptyRows(true),
				table.WithHeaderPromotion(true),
			),
		),
	)
	conv.Register.Renderer(func(ctx converter.Context, _ converter.Writer, _ *html.Node) converter.RenderStatus {
		if ctx.Err() != nil {
			return converter.RenderSuccess
		}
		return converter.RenderTryNext
	}, converter.PriorityEarly)
	return turner{conv}
}

// markdown returns the readable text of a page, its title, and whether something
// was left out. It takes at most about convertLimit, whatever the page is.
func (t turner) markdown(ctx context.Context, page string, at *url.URL) (text, title string, cut bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, convertLimit)
	defer cancel()
	root, built := parseHTML(page, at)
	out, err := t.convert(ctx, root)
	if err != nil {
		return "", built.title, true, err
	}
	cut = built.cut || ctx.Err() != nil
	if len(out) > maxMarkdown {
		out, cut = out[:maxMarkdown], true
	}
	return strings.ToValidUTF8(string(out), ""), built.title, cut, nil
}

// convert makes an error of a mistake in the converter: a page is no reason to
// end a session.
func (t turner) convert(ctx context.Context, root *html.Node) (out []byte, err error) {
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("converting the page: %v", r)
		}
	}()
	return t.conv.ConvertNode(root, converter.WithContext(ctx))
}
