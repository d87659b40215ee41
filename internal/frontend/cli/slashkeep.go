package cli

import (
	"bufio"
	"context"
	"strings"

	"dure/agent"
	"dure/agent/query"
	"dure/client"
	"dure/internal/frontend/text"
)

// keepRuns are the commands on how the session is kept, and on what is in it.
func keepRuns() map[string]func(ch *chat, ctx context.Context, arg string) {
	return map[string]func(*chat, context.Context, string){
		"rename": (*chat).slashRename, "tag": (*chat).slashTag, "pin": (*chat).slashPin, "fork": (*chat).slashFork, "search": (*chat).slashSearch,
	}
}

// slashRename gives the session a title.
func (ch *chat) slashRename(ctx context.Context, arg string) {
	if arg == "" {
		ch.v.note(yellow, ch.usageOf(ctx, "rename"))
		return
	}
	ch.send(ctx, agent.Change{Title: arg}) // its event is shown
}

// slashTag gives the session other tags; "-" takes all of them away, and nothing shows
// them.
func (ch *chat) slashTag(ctx context.Context, arg string) {
	switch tags := strings.Fields(arg); {
	case arg == "":
		ch.keep(ctx, agent.Change{})
	case arg == "-":
		ch.keep(ctx, agent.Change{Tags: &[]string{}})
	default:
		ch.keep(ctx, agent.Change{Tags: &tags})
	}
}

// slashPin keeps the session at the top of lists, and from being deleted for its age;
// a second time no more.
func (ch *chat) slashPin(ctx context.Context, _ string) {
	info, err := ch.Find(ctx, ch.sess.Info.ID, "")
	if ch.failed(err) {
		return
	}
	pinned := !info.Pinned
	ch.keep(ctx, agent.Change{Pinned: &pinned})
}

// keep changes how the session is kept, unless nothing is to change, and shows it.
func (ch *chat) keep(ctx context.Context, c agent.Change) {
	if (c.Tags != nil || c.Pinned != nil) && !ch.send(ctx, c) {
		return
	}
	info, err := ch.Find(ctx, ch.sess.Info.ID, "")
	if ch.failed(err) {
		return
	}
	ch.v.note(plain, ch.Text.Say(text.Kept, "session", info.ID, "title", marked(info)))
}

// slashFork makes a session that goes on from here, and stays in this one.
func (ch *chat) slashFork(ctx context.Context, arg string) {
	s, err := ch.Client.Open(ctx, agent.Open{Fork: ch.sess.Info.ID, Title: arg, Edit: true})
	if err == nil {
		err = s.Close(ctx)
	}
	if ch.failed(err) {
		return
	}
	for l := range strings.SplitSeq(ch.Text.Say(text.Forked, "session", s.Info.ID, "from", ch.sess.Info.ID), "\n") {
		ch.v.note(plain, l)
	}
}

// slashSearch shows where in this session something was said. What the index has after
// a second of work is searched: the conversation does not wait longer.
func (ch *chat) slashSearch(ctx context.Context, arg string) {
	if arg == "" {
		ch.v.note(yellow, ch.usageOf(ctx, "search"))
		return
	}
	rep, err := client.Query[query.IndexReport](ctx, ch.Client, query.IndexSessions{Millis: indexStep})
	var res query.SearchResult
	if err == nil {
		const most = 10
		res, err = client.Query[query.SearchResult](ctx, ch.Client, query.Search{Text: arg, Session: ch.sess.Info.ID, Limit: most})
	}
	if ch.failed(err) {
		return
	}
	var b strings.Builder
	w := bufio.NewWriter(&b)
	ch.searchHits(w, res, SearchOptions{})
	_ = w.Flush() // into memory
	for l := range strings.Lines(b.String()) {
		if l != "\n" {
			ch.v.note(plain, strings.TrimSuffix(l, "\n"))
		}
	}
	if rep.Busy || !rep.Done {
		ch.v.note(dim, ch.Text.Say(text.SearchBusy))
	}
}
