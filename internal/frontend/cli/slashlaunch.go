package cli

import (
	"context"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// launchRuns are the commands of line mode that are not about its session.
func launchRuns() map[string]func(*chat, context.Context, string) {
	return map[string]func(*chat, context.Context, string){
		"calc": (*chat).slashCalc, "emoji": (*chat).slashEmoji, "snippet": (*chat).slashSnippet,
		"link": (*chat).slashLink, "palette": (*chat).slashPalette,
	}
}

// maxListed is how many lines of a list are shown in a conversation.
const maxListed = 20

// rows shows a list, the beginning of a long one.
func (ch *chat) rows(rows [][]string, none text.Key) {
	if len(rows) == 0 {
		ch.v.note(dim, ch.Text.Say(none))
		return
	}
	columns := ch.s.usable() - 2
	for _, l := range rowLines(rows[:min(len(rows), maxListed)]) {
		if columns > 0 {
			l = text.Cut(l, columns)
		}
		ch.v.note(plain, l)
	}
	if more := len(rows) - maxListed; more > 0 {
		ch.v.note(dim, ch.Text.Say(text.LaunchMore, "n", more))
	}
}

// asked asks the client, and shows why there is no answer.
func asked[T any](ctx context.Context, ch *chat, q agent.Query) (T, bool) {
	v, err := client.Query[T](ctx, ch.Client, q)
	return v, !ch.failed(err)
}

// failed shows an error, and reports whether there is one.
func (ch *chat) failed(err error) bool {
	if err != nil {
		ch.v.fault(explain(ch.Text, err))
	}
	return err != nil
}

// notes shows lines.
func (ch *chat) notes(lines []string) {
	for _, l := range lines {
		ch.v.note(plain, l)
	}
}

func (ch *chat) slashCalc(ctx context.Context, arg string) {
	if r, ok := asked[query.Calculation](ctx, ch, query.Calculate{Text: arg}); ok {
		ch.v.note(plain, calculated(r))
	}
}

func (ch *chat) slashEmoji(ctx context.Context, arg string) {
	if list, ok := asked[[]query.Emoji](ctx, ch, query.FindEmoji{Text: arg, Limit: maxListed}); ok {
		ch.rows(emojiRows(list), text.EmojiNone)
	}
}

// slashSnippet lists the snippets, or says one to the model.
func (ch *chat) slashSnippet(ctx context.Context, arg string) {
	words := strings.Fields(arg)
	if len(words) == 0 {
		if list, ok := asked[[]query.Snippet](ctx, ch, query.ListSnippets{}); ok {
			ch.rows(snippetRows(ch.Text, list), text.SnippetsNone)
		}
		return
	}
	q := query.FillSnippet{Name: words[0], Values: map[string]string{}}
	last := ""
	for _, w := range words[1:] {
		name, value, pair := strings.Cut(w, "=")
		switch {
		case pair && name != "":
			q.Values[name], last = value, name
		case last != "": // a value of several words
			q.Values[last] += " " + w
		default:
			ch.v.note(yellow, ch.Text.Say(text.SnippetPair, "word", text.OneLine(bounded(w))))
			return
		}
	}
	f, ok := asked[query.FilledSnippet](ctx, ch, q)
	switch {
	case !ok:
	case len(f.Unused) > 0:
		ch.v.note(yellow, ch.Text.Say(text.SnippetUnused, "list", text.OneLine(strings.Join(f.Unused, ", "))))
	case len(f.Missing) > 0:
		ch.v.note(yellow, ch.Text.Say(text.SnippetMissing, "list", text.OneLine(strings.Join(f.Missing, ", "))))
	default:
		ch.s.line(2, part{bold, ch.v.glyph("> ", text.LabelYou) + text.Clean(bounded(f.Text))})
		ch.say(ctx, f.Text)
	}
}

// slashLink lists the links, or opens one.
func (ch *chat) slashLink(ctx context.Context, arg string) {
	words := strings.Fields(arg)
	if len(words) == 0 {
		if list, ok := asked[[]query.Link](ctx, ch, query.ListLinks{}); ok {
			ch.rows(linkRows(list), text.LinksNone)
		}
		return
	}
	address, ok := asked[string](ctx, ch, query.FillLink{Name: words[0], Values: words[1:]})
	if !ok {
		return
	}
	if ch.o.OpenAddress == nil {
		ch.v.note(plain, text.ExactLine(address))
		return
	}
	if ch.failed(ch.o.OpenAddress(ctx, address)) {
		return
	}
	ch.v.note(dim, ch.Text.Say(text.LinkOpened, "url", text.ExactLine(address)))
}

func (ch *chat) slashPalette(ctx context.Context, arg string) {
	if list, ok := asked[[]query.PaletteEntry](ctx, ch, query.ListPalette{Workdir: ch.v.Workdir}); ok {
		ch.rows(paletteRows(ch.Text, filtered(list, arg)), text.PaletteNone)
	}
}
