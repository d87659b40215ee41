package swarms

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/bundle"
	"dure/internal/extend/bundle/inbound"
	"dure/internal/state/transcript"
)

// maxResumed is how many sessions of a swarm are looked at when it is started, the newest
// ones: what was cut short is among them.
const maxResumed = 64

// halted is a session that was cut short behind an event.
type halted struct {
	id   string
	head int64
}

// cutShort returns the sessions of a swarm in this folder that have something left to do,
// and that nobody else runs.
func (ext *Extension) cutShort(ctx context.Context, prefix string) (list []halted, err error) {
	n := 0
	for m, err := range ext.cfg.Sessions(ctx, prefix) {
		if err != nil {
			return nil, fmt.Errorf("looking for what was cut short: %w", err)
		}
		if n++; n > maxResumed {
			break
		}
		if m.Status != "idle" && m.Status != "interrupted" {
			continue
		}
		st := transcript.New()
		for e, err := range ext.cfg.Read(ctx, m.ID) {
			if err != nil {
				ext.cfg.Logger.Warn("reading a session of a bundle", "session", m.ID, "error", err)
				break
			}
			st.Apply(e)
		}
		if info := st.Info(); info.Status == "interrupted" || handedOver(st) {
			list = append(list, halted{m.ID, st.Head})
		}
	}
	return list, nil
}

// handedOver reports whether a session waits for work of its agents.
func handedOver(st *transcript.State) bool {
	for _, p := range st.Pending {
		if p.Key != "" {
			return true
		}
	}
	return false
}

// resumed has sessions of a bundle go on that were cut short.
type resumed struct {
	ext    *Extension
	router *inbound.Router
	with   IO
	left   []halted
	dir    string
	route  func(string, bundle.Message) (bundle.Goal, error)

	// visited is told that others than the person at this machine may have spoken in a
	// session; nil = nobody else can have.
	visited func(session string)
}

// one has a session go on, and waits for what it says.
func (r *resumed) one(ctx context.Context, h halted) (string, error) {
	if r.visited != nil {
		r.visited(h.id)
	}
	r.with.Note(query.BundleNote{Continues: h.id})
	d, err := r.router.Continue(ctx, h.id, agent.Open{Workdir: r.ext.cfg.Workdir}, h.head)
	text := ""
	if err == nil {
		if text, err = d.Wait(ctx); err == nil && r.with.SignIn != nil {
			for _, s := range d.SignIns {
				text = strings.TrimSpace(text + "\n" + r.with.SignIn(s))
			}
		}
	}
	if err != nil && ctx.Err() == nil {
		r.with.Note(query.BundleNote{Continues: h.id, Error: err.Error()})
	}
	return text, err
}

// rest has all of them go on that no terminal waits for.
func (r *resumed) rest(ctx context.Context, all *sync.WaitGroup) {
	for _, h := range r.left {
		all.Go(func() { _, _ = r.one(ctx, h) }) // it is noted how that came out
	}
}

// before takes the conversation of a terminal out of those that are left, and returns what
// has it answered before a line is read.
func (r *resumed) before(ctx context.Context, connection string) func() {
	g, err := r.route(connection, bundle.Message{Event: inbound.LineEvent})
	if err != nil {
		return func() {} // its lines will be told so
	}
	id := g.Session(r.dir)
	i := slices.IndexFunc(r.left, func(h halted) bool { return h.id == id })
	if i < 0 {
		return func() {}
	}
	h := r.left[i]
	r.left = slices.Delete(r.left, i, i+1)
	return func() {
		text, err := r.one(ctx, h)
		if err != nil || text == "" {
			return
		}
		if r.with.Clean != nil {
			text = r.with.Clean(text)
		}
		if _, err := fmt.Fprintln(r.with.Out, text); err != nil {
			r.ext.cfg.Logger.Warn("writing an answer", "error", err)
		}
	}
}
