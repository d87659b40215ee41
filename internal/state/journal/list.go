package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"
	"syscall"
	"time"
)

// maxIndex bounds the bytes of the index that are read, which is room for hundreds of
// thousands of sessions. Of what is behind them the logs are read instead.
const maxIndex = 256 << 20

// readIndex reads the last line of every session whose ID begins with prefix, and
// decodes none: of thousands few are wanted. A line without its end is left out.
func (s *Local) readIndex(ctx context.Context, prefix string) (entries map[string]string, lines int, err error) {
	f, err := s.d.open(indexName, toRead)
	if err != nil {
		if missing(err) {
			return map[string]string{}, 0, nil
		}
		return nil, 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	var all strings.Builder // the lines are parts of it, and need no memory of their own
	all.Grow(int(min(size, maxIndex)))
	if _, err := io.CopyBuffer(&all, io.NewSectionReader(f, 0, min(size, maxIndex)), make([]byte, 256<<10)); err != nil {
		return nil, 0, err
	}
	entries = map[string]string{}
	if prefix == "" {
		entries = make(map[string]string, strings.Count(all.String(), "\n"))
	}
	for line := range strings.Lines(all.String()) {
		if lines++; lines%1024 == 0 && ctx.Err() != nil {
			return nil, 0, ctx.Err()
		}
		line = strings.TrimSpace(line)
		id := idOf(line)
		if !strings.HasPrefix(id, prefix) || checkID(id) != nil || len(line) > maxMeta+1024 {
			continue
		}
		if strings.HasSuffix(line, "}") { // what is wrong before is found when it is decoded
			entries[id] = line
		}
	}
	if size > maxIndex {
		lines = math.MaxInt // written anew, it may be short enough
	}
	return entries, lines, nil
}

// What a line of the index begins with, and how one of a session ends that had an
// owner. An ID has no escapes, and no text can have a quote without one: a member that
// is looked for as it is encoded cannot be part of a text.
const (
	idMember = `{"id":"`
	liveEnd  = `,"live":true}`
)

// idOf returns the ID that a line of the index begins with, or "".
func idOf(line string) string {
	rest, ok := strings.CutPrefix(line, idMember)
	if id, _, found := strings.Cut(rest, `"`); ok && found {
		return id
	}
	return ""
}

// updatedOf returns the time of change that a line of the index has; zero = none that
// can be read.
func updatedOf(line string) (t time.Time) {
	if _, rest, ok := strings.Cut(line, `"updated":"`); ok {
		text, _, _ := strings.Cut(rest, `"`)
		t, _ = time.Parse(time.RFC3339Nano, text)
	}
	return t
}

// A row is a line of the index, or its entry if there is no line.
type row struct {
	id, dir string // dir is the one that the session's folder is in
	updated time.Time
	line    string
	entry   *entry
}

// pinned reports whether a session stands before all others.
func (l row) pinned() bool {
	if l.entry != nil {
		return l.entry.Pinned
	}
	return strings.Contains(l.line, `"pinned":true`)
}

// meta returns what is listed of a session. A line that cannot be decoded is put right
// by the log.
func (s *Local) meta(l row) Meta {
	if l.entry != nil {
		return l.entry.Meta
	}
	var e entry
	if json.Unmarshal([]byte(l.line), &e) == nil && e.ID == l.id {
		return e.Meta
	}
	e = s.current(l.dir + "/" + l.id)
	if !e.Live {
		s.index(e)
	}
	return e.Meta
}

// List yields sessions, the one that changed last first.
func (s *Local) List(ctx context.Context, q Query) iter.Seq2[Meta, error] {
	return func(yield func(Meta, error) bool) {
		rows, err := s.list(ctx, q)
		if err != nil {
			yield(Meta{}, fmt.Errorf("listing the sessions: %w", err))
			return
		}
		n := 0
		for _, l := range rows {
			m := s.meta(l)
			if !q.match(m) {
				continue
			}
			if n++; q.Limit > 0 && n > q.Limit || !yield(m, nil) {
				return
			}
		}
	}
}

// Page returns what List yields, the pinned ones first, and how many there are beyond
// the limit. Those are only counted, as far as that can be done without decoding them.
func (s *Local) Page(ctx context.Context, q Query) (p Page, err error) {
	rows, err := s.list(ctx, q)
	if err != nil {
		return p, fmt.Errorf("listing the sessions: %w", err)
	}
	var pinned, others []row
	for _, l := range rows {
		if l.pinned() {
			pinned = append(pinned, l)
		} else {
			others = append(others, l)
		}
	}
	decode := q.Tenant != "" || q.Status != "" || q.Tag != "" || q.Name != "" || q.Profile != ""
	for _, l := range slices.Concat(pinned, others) {
		full := q.Limit > 0 && len(p.Sessions) == q.Limit
		if full && !decode {
			p.More++
			continue
		}
		m := s.meta(l)
		switch {
		case !q.match(m):
		case full:
			p.More++
		default:
			p.Sessions = append(p.Sessions, m)
		}
		if err := ctx.Err(); err != nil {
			return Page{}, fmt.Errorf("listing the sessions: %w", err)
		}
	}
	return p, nil
}

func (q Query) match(m Meta) bool {
	if !q.Before.IsZero() {
		if t, err := time.Parse(time.RFC3339Nano, m.Updated); err == nil && !t.Before(q.Before) {
			return false
		}
	}
	is := func(want, have string) bool { return want == "" || want == have }
	return is(q.Tenant, m.Tenant) && is(q.Workdir, m.Workdir) && is(q.Status, m.Status) && is(q.Profile, m.Profile) && strings.HasPrefix(m.ID, q.Prefix) &&
		(q.Name == "" || q.Name == m.Title || strings.HasPrefix(m.ID, q.Name)) &&
		(q.Tag == "" || slices.Contains(m.Tags, q.Tag)) && !(q.Unarchived && m.Archived)
}

// A sieve lets through what a query may select, as far as lines tell without being
// decoded: most of thousands go here.
type sieve struct {
	q                  Query
	workdir, tag, name string // as they stand in a line; "" = any
}

func newSieve(q Query) sieve {
	encoded := func(before, value string) string {
		b, err := json.Marshal(value)
		if value == "" || err != nil {
			return ""
		}
		return before + string(b)
	}
	return sieve{q, encoded(`"workdir":`, q.Workdir), encoded("", q.Tag), encoded(`"title":`, q.Name)}
}

func (v sieve) lets(l row) bool {
	if l.entry != nil {
		return v.q.match(l.entry.Meta)
	}
	if !v.q.Before.IsZero() && !l.updated.Before(v.q.Before) {
		return false
	}
	return strings.Contains(l.line, v.workdir) && strings.Contains(l.line, v.tag) &&
		!(v.q.Unarchived && strings.Contains(l.line, `"archived":true`)) &&
		(v.name == "" || strings.HasPrefix(l.id, v.q.Name) || strings.Contains(l.line, v.name))
}

// list reads the index and mends it: the folders say which sessions there are, and the
// logs say what the index does not know. It leaves out most of what a query does not
// select, and never what it does.
func (s *Local) list(ctx context.Context, q Query) ([]row, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	entries, lines, err := s.readIndex(ctx, q.Prefix)
	if err != nil {
		return nil, err
	}
	months, err := s.d.list(sessionsDir)
	if err != nil {
		return nil, err
	}
	rows := make([]row, 0, len(entries))
	there, v := 0, newSieve(q)
	fresh := map[string]entry{} // what the index does not know
	for _, month := range months {
		dir := sessionsDir + "/" + month
		ids, err := s.names(dir, q.Prefix)
		if errors.Is(err, syscall.ENOTDIR) {
			continue // somebody's file, and no month
		}
		if err != nil {
			return nil, err
		}
		there += len(ids)
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if !strings.HasPrefix(id, q.Prefix) || checkID(id) != nil {
				continue
			}
			l := s.row(dir, id, entries[id])
			if l.entry != nil && !l.entry.Live { // live ones are written by their owners
				fresh[id] = *l.entry
			}
			if v.lets(l) {
				rows = append(rows, l)
			}
		}
	}
	grown := lines > 2*there+indexSlack && q.Prefix == ""
	if len(fresh) > 0 || grown {
		s.compact(ctx, fresh, entries, grown)
	}
	slices.SortFunc(rows, func(a, b row) int {
		return cmp.Or(b.updated.Compare(a.updated), cmp.Compare(b.id, a.id))
	})
	return rows, nil
}

// IDLen is how many characters the IDs have that [NewID] gives.
const IDLen = 36

// names returns what is in a folder of sessions; of one whose ID is given in full, that
// alone.
func (s *Local) names(dir, prefix string) ([]string, error) {
	if len(prefix) != IDLen || checkID(prefix) != nil {
		return s.d.list(dir)
	}
	if _, _, err := s.d.stat(dir + "/" + prefix); err != nil {
		if missing(err) {
			return nil, nil
		}
		return nil, err
	}
	return []string{prefix}, nil
}

// row returns the row of a session from its line, if nobody can have changed the
// session since.
func (s *Local) row(dir, id, line string) row {
	l := row{id: id, dir: dir, line: line}
	if line != "" && !strings.HasSuffix(line, liveEnd) && s.lease(id) == nil {
		l.updated = updatedOf(line)
		return l
	}
	e := s.current(dir + "/" + id)
	l.line, l.entry = "", &e
	l.updated, _ = time.Parse(time.RFC3339Nano, e.Updated) // unreadable: oldest
	return l
}
