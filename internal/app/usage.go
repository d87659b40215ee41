package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/state/journal"
)

// The cache of what each log says was used.
const (
	usageFile    = "usage.json"
	usageVersion = 1
	maxUsageFile = 256 << 20 // bytes; a larger file is not read
)

// spanOf is the length of the pieces of time in which use is added up: every time
// zone is a multiple of it away from every other.
const spanOf = 15 * time.Minute

// spent is what one model used of a session in one span.
type spent struct {
	Span     int64       `json:"s"` // number since 1970
	Model    string      `json:"m"`
	Requests int         `json:"n"`
	Usage    agent.Usage `json:"u"`
	Cost     agent.Money `json:"c,omitempty"`
	Unpriced int         `json:"p,omitempty"`
}

// sessionUse is what the log of a session says was used, as of an event.
type sessionUse struct {
	Head    int64   `json:"head"`
	Created string  `json:"created"` // tells a log from another one of the same name
	Spent   []spent `json:"spent,omitempty"`

	// Asked is the model that was asked last, by the purpose of the request.
	Asked map[string]string `json:"asked,omitempty"`
}

// usageCache is derived from the logs, and made again when it is missing.
type usageCache struct {
	V        int                    `json:"v"`
	Sessions map[string]*sessionUse `json:"sessions"`
}

// notTime says that what somebody has given as a time is none.
func notTime(given string, err error) error {
	return &agent.Problem{
		Code: agent.ProblemUsage, Message: fmt.Sprintf("since: %.80q is no time", given), Err: err, Fix: "give a time such as 2006-01-02T15:04:05Z",
	}
}

// usage adds up what the logs of all sessions say was used.
func (a *App) usage(ctx context.Context, q query.UsageReport) (query.UsageSummary, error) {
	sum := query.UsageSummary{By: cmp.Or(q.By, "day"), Since: q.Since, Rows: []query.UsageRow{}}
	since := time.Time{}
	if q.Since != "" {
		t, err := time.Parse(time.RFC3339, q.Since)
		if err != nil {
			return sum, notTime(q.Since, err)
		}
		since = t
	}
	metas := map[string]journal.Meta{}
	for m, err := range a.store.List(ctx, journal.Query{}) {
		if err != nil {
			return sum, err
		}
		metas[m.ID] = m
	}
	cache, changed := a.readUsage(), false
	rows := map[string]*query.UsageRow{}
	for _, id := range slices.Sorted(maps.Keys(metas)) {
		m := metas[id]
		use, fresh, err := a.useOf(ctx, m, cache.Sessions[id], metas)
		if cerr := ctx.Err(); cerr != nil {
			return sum, cerr
		}
		if err != nil {
			sum.Skipped = append(sum.Skipped, id)
		} else if fresh {
			cache.Sessions[id], changed = use, true
		}
		counted := false
		for _, s := range use.Spent {
			at := time.Unix(s.Span*int64(spanOf/time.Second), 0)
			if at.Add(spanOf).After(since) {
				counted = true
				sum.Total = add(sum.Total, s)
				r := rowOf(rows, rowName(sum.By, at, s.Model, m, metas), metas)
				*r = add(*r, s)
			}
		}
		if counted {
			sum.Sessions++
		}
	}
	for id := range cache.Sessions {
		if _, ok := metas[id]; !ok {
			delete(cache.Sessions, id)
			changed = true
		}
	}
	if changed {
		a.writeUsage(cache)
	}
	for _, r := range rows {
		sum.Rows = append(sum.Rows, *r)
	}
	slices.SortFunc(sum.Rows, func(x, y query.UsageRow) int {
		if sum.By == "day" {
			return cmp.Compare(x.Name, y.Name)
		}
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Usage.Context(), x.Usage.Context()), cmp.Compare(x.Name, y.Name))
	})
	return sum, nil
}

// useOf returns what the log of a session says, from the cache as far as that
// goes. With an error it is what stands before the damage; that is not kept.
func (a *App) useOf(ctx context.Context, m journal.Meta, known *sessionUse, metas map[string]journal.Meta) (*sessionUse, bool, error) {
	damaged := m.Status == "damaged"
	if known != nil && (known.Created != m.Created || known.Head > m.Head || damaged) {
		known = nil
	}
	use := &sessionUse{Created: m.Created}
	if known != nil {
		if known.Head == m.Head {
			return known, false, nil
		}
		use.Head, use.Spent, use.Asked = known.Head, slices.Clone(known.Spent), maps.Clone(known.Asked)
	} else if _, ok := metas[m.Parent]; ok && m.ForkSeq > 0 {
		use.Head = m.ForkSeq // up to there it is the log that it was forked from
	}
	for e, err := range a.store.Read(ctx, m.ID, use.Head) {
		if err != nil {
			return use, false, err
		}
		use.Head = e.Seq
		switch b := e.Body.(type) {
		case agent.ModelRequested:
			if use.Asked == nil {
				use.Asked = map[string]string{}
			}
			use.Asked[b.Purpose] = b.Model
		case agent.ModelAnswered:
			use.take(e.Time, b)
		}
	}
	return use, true, nil
}

// take adds one answer.
func (u *sessionUse) take(at time.Time, b agent.ModelAnswered) {
	span, model := at.Unix()/int64(spanOf/time.Second), cmp.Or(u.Asked[b.Purpose], b.Model, "?")
	i := slices.IndexFunc(u.Spent, func(s spent) bool { return s.Span == span && s.Model == model })
	if i < 0 {
		i = len(u.Spent)
		u.Spent = append(u.Spent, spent{Span: span, Model: model})
	}
	s := &u.Spent[i]
	s.Requests++
	s.Usage = s.Usage.Add(b.Usage)
	if b.Cost != nil {
		s.Cost += *b.Cost
	} else {
		s.Unpriced++
	}
}

func add(r query.UsageRow, s spent) query.UsageRow {
	r.Requests += s.Requests
	r.Usage = r.Usage.Add(s.Usage)
	r.Cost += s.Cost
	r.Unpriced += s.Unpriced
	return r
}

// rowName says in which row something is counted.
func rowName(by string, at time.Time, model string, m journal.Meta, metas map[string]journal.Meta) string {
	const deepest = 64 // of children in each other; more is a circle
	switch by {
	case "model":
		return model
	case "day":
		return at.Local().Format(time.DateOnly)
	}
	for range deepest {
		parent, ok := metas[m.Parent]
		if !ok || m.ForkSeq > 0 {
			break
		}
		m = parent
	}
	if by == "project" {
		return cmp.Or(m.Workdir, "?")
	}
	return m.ID
}

func rowOf(rows map[string]*query.UsageRow, name string, metas map[string]journal.Meta) *query.UsageRow {
	r, ok := rows[name]
	if !ok {
		r = &query.UsageRow{Name: name, Title: metas[name].Title}
		rows[name] = r
	}
	return r
}

// readUsage reads the cache. One that is missing or means nothing is empty.
func (a *App) readUsage() usageCache {
	empty := usageCache{V: usageVersion, Sessions: map[string]*sessionUse{}}
	if a.opts.Flags.Scratch {
		return empty
	}
	f, err := os.Open(filepath.Join(a.cfg.Data, usageFile))
	if err != nil {
		return empty
	}
	defer f.Close()
	var c usageCache
	if json.NewDecoder(io.LimitReader(f, maxUsageFile)).Decode(&c) != nil || c.V != usageVersion || c.Sessions == nil {
		return empty
	}
	maps.DeleteFunc(c.Sessions, func(_ string, u *sessionUse) bool { return u == nil })
	return c
}

// writeUsage keeps the cache. Without it the logs are read again, so that an error
// is of no consequence.
func (a *App) writeUsage(c usageCache) {
	if a.opts.Flags.Scratch {
		return
	}
	if err := replaceFile(filepath.Join(a.cfg.Data, usageFile), c); err != nil {
		a.opts.Logger.Debug("keeping what was used", "error", err)
	}
}

// replaceFile writes v as JSON into a file of its own and puts that in the place
// of path.
func replaceFile(path string, v any) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	err = errors.Join(json.NewEncoder(f).Encode(v), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
