// Package usage adds up what the logs of all sessions say was used, and keeps the sums in a
// file beside them. It starts no goroutines.
package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/record"
	"dure/internal/kernel/plug"
	"dure/internal/state/archive"
	"dure/internal/state/journal"
)

// File is the usual name of the file that keeps what each log says was used.
const File = "usage.json"

// Config says what is added up.
type Config struct {
	Logs   func() archive.Logs
	Path   string // of the file that keeps the sums; "" = none
	Logger *slog.Logger
}

// Extension answers reports of what was used.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "usage" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer { return []plug.Answer{plug.Answers(x.report)} }

// The cache of what each log says was used.
const (
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

// report adds up what the logs of all sessions say was used.
func (x *Extension) report(ctx context.Context, q query.UsageReport) (query.UsageSummary, error) {
	sum := query.UsageSummary{By: cmp.Or(q.By, "day"), Since: q.Since, Rows: []query.UsageRow{}}
	since, err := archive.Since(q.Since)
	if err != nil {
		return sum, err
	}
	metas, err := archive.All(ctx, x.cfg.Logs())
	if err != nil {
		return sum, err
	}
	cache, changed := x.read(), false
	rows := map[string]*query.UsageRow{}
	for _, id := range slices.Sorted(maps.Keys(metas)) {
		m := metas[id]
		use, fresh, err := x.useOf(ctx, m, cache.Sessions[id], metas)
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
		x.write(cache)
	}
	for _, r := range rows {
		sum.Rows = append(sum.Rows, *r)
	}
	slices.SortFunc(sum.Rows, func(r, s query.UsageRow) int {
		if sum.By == "day" {
			return cmp.Compare(r.Name, s.Name)
		}
		return cmp.Or(cmp.Compare(s.Cost, r.Cost), cmp.Compare(s.Usage.Context(), r.Usage.Context()), cmp.Compare(r.Name, s.Name))
	})
	return sum, nil
}

// useOf returns what the log of a session says, from the cache as far as that
// goes. With an error it is what stands before the damage; that is not kept.
func (x *Extension) useOf(ctx context.Context, m journal.Meta, known *sessionUse, metas map[string]journal.Meta) (*sessionUse, bool, error) {
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
	} else {
		use.Head = archive.Own(m, metas)
	}
	for e, err := range x.cfg.Logs().Read(ctx, m.ID, use.Head) {
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

// read reads the cache. One that is missing or means nothing is empty.
func (x *Extension) read() usageCache {
	empty := usageCache{V: usageVersion, Sessions: map[string]*sessionUse{}}
	if x.cfg.Path == "" {
		return empty
	}
	f, err := os.Open(x.cfg.Path)
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

// write keeps the cache. Without it the logs are read again, so that an error
// is of no consequence.
func (x *Extension) write(c usageCache) {
	if x.cfg.Path == "" {
		return
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = record.Write(x.cfg.Path, data)
	}
	if err != nil {
		x.cfg.Logger.Debug("keeping what was used", "error", err)
	}
}
