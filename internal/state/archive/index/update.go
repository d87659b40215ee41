package index

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/state/journal"
	"dure/internal/state/transcript"
)

// Source is where the sessions are, as [journal.Store] has them.
type Source interface {
	List(ctx context.Context, q journal.Query) iter.Seq2[journal.Meta, error]
	Read(ctx context.Context, id string, after int64) iter.Seq2[agent.Event, error]
	Blob(ctx context.Context, id, sha256 string) (io.ReadCloser, error)
}

// batchBytes is how much text one transaction takes at most, but for a single event.
const batchBytes = 4 << 20

// Update brings the index closer to the source: for about limit (0 = until it is
// done), after which the report says whether something is left. What was indexed stays
// indexed whatever happens. While another process updates it, it is ErrBusy after
// Options.Wait.
func (x *Index) Update(ctx context.Context, src Source, limit time.Duration) (query.IndexReport, error) {
	var rep query.IndexReport
	if x.o.Dir != "" {
		alone, err := x.lock(ctx, updateName, (*flock.Flock).TryLockContext)
		if err != nil {
			return rep, fmt.Errorf("updating the search index: %w", err)
		}
		defer alone.Close()
	}
	u := &update{Index: x, src: src}
	if limit > 0 {
		u.until = x.o.Now().Add(limit)
	}
	rep, err := u.run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return rep, fmt.Errorf("updating the search index: %w", damage(err))
	}
	return rep, nil
}

// An update is one run. Everything it does is between begin and commit.
type update struct {
	*Index
	src   Source
	until time.Time

	open   bool // a transaction
	bytes  int
	docs   int
	next   int64 // number of the next document
	packer packer

	addDoc, addWords, addDay *sql.Stmt
}

// A row is a session as the index has it.
type row struct {
	num                                        int64
	id, title, workdir, tags, created, updated string
	head, seq                                  int64
	last                                       string
	stale                                      bool // what is dead has to be found out
}

// The heads of sessions that have not been read to an end, and of those that are being
// forgotten: what is left of them is in nobody's way, but has to go.
const (
	headNone = -1
	headGone = -2
)

// errLater says that time is up.
var errLater = errors.New("later")

func (u *update) run(ctx context.Context) (rep query.IndexReport, err error) {
	rows, err := u.rows(ctx)
	if err != nil {
		return rep, err
	}
	var metas []journal.Meta
	listed := map[string]bool{}
	for m, err := range u.src.List(ctx, journal.Query{}) {
		if err != nil {
			return rep, err
		}
		metas = append(metas, m)
		listed[m.ID] = true
	}
	slices.SortFunc(metas, func(a, b journal.Meta) int { // so that the newest come last
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	if err := u.conn.QueryRowContext(ctx, "SELECT coalesce(max(id), 0) + 1 FROM docs").Scan(&u.next); err != nil {
		return rep, err
	}
	if err := u.statements(ctx); err != nil {
		return rep, err
	}
	err = u.all(ctx, rows, metas, listed)
	rep.Done = err == nil
	if rep.Done || errors.Is(err, errLater) {
		err = errors.Join(u.commit(ctx), u.done())
	} else {
		u.rollback(ctx)
		err = errors.Join(err, u.done())
	}
	if err == nil {
		err = u.report(ctx, metas, &rep)
	}
	return rep, err
}

// all makes one pass over the sessions.
func (u *update) all(ctx context.Context, rows map[string]*row, metas []journal.Meta, listed map[string]bool) error {
	for id, r := range rows {
		if !listed[id] {
			if err := u.forget(ctx, r, true); err != nil {
				return err
			}
		}
	}
	for _, m := range metas {
		r := rows[m.ID]
		if r != nil && r.head == m.Head && r.updated == m.Updated && !r.stale && r.sameMeta(m) {
			continue
		}
		if err := u.session(ctx, r, m); err != nil {
			return err
		}
	}
	return nil
}

func (r *row) sameMeta(m journal.Meta) bool {
	return r.title == clean(m.Title) && r.workdir == m.Workdir && r.tags == tagsOf(m) && r.created == m.Created
}

// tagsOf writes tags so that each can be found between two ends of lines.
func tagsOf(m journal.Meta) string {
	var s strings.Builder
	for _, t := range m.Tags {
		s.WriteString("\n" + strings.ReplaceAll(clean(t), "\n", " ") + "\n")
	}
	return s.String()
}

// rows reads what the index has.
func (u *update) rows(ctx context.Context) (map[string]*row, error) {
	found, err := u.conn.QueryContext(ctx, "SELECT num, id, title, workdir, tags, created, updated, head, seq, last, stale FROM sessions")
	if err != nil {
		return nil, err
	}
	defer found.Close()
	all := map[string]*row{}
	for found.Next() {
		var r row
		if err := found.Scan(&r.num, &r.id, &r.title, &r.workdir, &r.tags, &r.created, &r.updated, &r.head, &r.seq, &r.last, &r.stale); err != nil {
			return nil, err
		}
		all[r.id] = &r
	}
	return all, found.Err()
}

// session brings one session up to date. Its log is read from the last event that the
// index has: if that is another one now, the log is another one too.
func (u *update) session(ctx context.Context, r *row, m journal.Meta) error {
	if r != nil && (r.created != m.Created || r.head == headGone) {
		if err := u.forget(ctx, r, true); err != nil {
			return err
		}
		r = nil
	}
	if err := u.begin(ctx); err != nil {
		return err
	}
	if r == nil {
		r = &row{id: m.ID, created: m.Created}
		res, err := u.conn.ExecContext(context.WithoutCancel(ctx), `INSERT INTO sessions (id, title, workdir, tags, created, updated, head, seq, last, dead, stale)
			VALUES (?, '', '', '', ?, '', ?, 0, '', '', 0)`, m.ID, m.Created, headNone)
		if err != nil {
			return err
		}
		if r.num, err = res.LastInsertId(); err != nil {
			return err
		}
	}
	r.title, r.workdir, r.tags = clean(m.Title), m.Workdir, tagsOf(m)
	same, unread, err := u.read(ctx, r)
	if err == nil && !same {
		if err = u.forget(ctx, r, false); err == nil {
			_, unread, err = u.read(ctx, r)
		}
	}
	if err == nil && r.stale {
		err = u.bury(ctx, r)
	}
	if err != nil {
		return err
	}
	if unread == nil || errors.Is(unread, journal.ErrDamaged) || errors.Is(unread, journal.ErrNewer) {
		r.head, r.updated = m.Head, m.Updated // until the listing says something else
	}
	return u.save(ctx, r)
}

// read takes in the events behind r.seq. same is false when the log does not have the
// event that was the last one. A log that cannot be read to its end is taken in as far
// as it goes; unread says why it was not.
func (u *update) read(ctx context.Context, r *row) (same bool, unread, err error) {
	same = r.seq == 0
	for e, err := range u.src.Read(ctx, r.id, max(0, r.seq-1)) {
		if cerr := ctx.Err(); cerr != nil {
			return same, nil, cerr
		}
		if err != nil {
			return true, err, nil
		}
		if !same {
			if e.Seq != r.seq || e.ID != r.last {
				return false, nil, nil
			}
			same = true
			continue
		}
		if err := u.event(ctx, r, e); err != nil {
			return same, nil, err
		}
	}
	return same, nil, nil
}

// event takes in one event, and ends the transaction when that is large enough.
func (u *update) event(ctx context.Context, r *row, e agent.Event) error {
	if err := u.begin(ctx); err != nil {
		return err
	}
	reader := reader{mask: u.o.Mask, blob: func(ctx context.Context, sha string) (io.ReadCloser, error) { return u.src.Blob(ctx, r.id, sha) }}
	for _, d := range reader.documents(ctx, e) {
		for i, text := range pieces(clean(d.text)) {
			if err := u.add(r, d, i, text); err != nil {
				return err
			}
		}
	}
	r.seq, r.last = e.Seq, e.ID
	switch e.Body.(type) {
	case agent.ConversationRewound, agent.ContextRestored:
		r.stale = true
	}
	late := !u.until.IsZero() && !u.o.Now().Before(u.until)
	if u.bytes < batchBytes && u.docs < u.o.Batch && !late {
		return nil
	}
	if err := u.save(ctx, r); err != nil {
		return err
	}
	if err := u.commit(ctx); err != nil {
		return err
	}
	if late {
		return errLater
	}
	return nil
}

// add stores a piece of a document.
func (u *update) add(r *row, d document, piece int, text string) error {
	plain, pairs := columns(text)
	id := u.next
	u.next++
	ctx := context.Background() // a statement is not interrupted
	if _, err := u.addDoc.ExecContext(ctx, id, r.num, d.seq, piece, d.kind, d.time.UnixNano(), d.tool, u.packer.pack(text)); err != nil {
		return err
	}
	if _, err := u.addWords.ExecContext(ctx, id, plain, pairs, fmt.Sprintf("s%d k%d", r.num, d.kind)); err != nil {
		return err
	}
	u.o.Fault("update.document")
	u.bytes += len(text)
	u.docs++
	_, err := u.addDay.ExecContext(ctx, dayOf(d.time), id)
	return err
}

// save stores how far a session has been taken in.
func (u *update) save(ctx context.Context, r *row) error {
	return u.exec(context.WithoutCancel(ctx), "UPDATE sessions SET title = ?, workdir = ?, tags = ?, updated = ?, head = ?, seq = ?, last = ?, stale = ? WHERE num = ?",
		r.title, r.workdir, r.tags, r.updated, r.head, r.seq, r.last, r.stale, r.num)
}

// bury finds out what the conversation of a session has gone back from.
func (u *update) bury(ctx context.Context, r *row) error {
	const few = 1 // bytes of messages that are held
	st := transcript.New()
	st.Keep(few)
	st.Reread(func() iter.Seq2[agent.Event, error] { return u.src.Read(ctx, r.id, 0) })
	for e, err := range u.src.Read(ctx, r.id, 0) {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil || e.Seq > r.seq {
			break
		}
		st.Apply(e)
	}
	dead, err := json.Marshal(st.Dead)
	if err != nil {
		return err
	}
	r.stale = false
	return u.exec(context.WithoutCancel(ctx), "UPDATE sessions SET dead = ? WHERE num = ?", string(dead), r.num)
}

// forget takes out what is indexed of a session, a batch at a time, and the session
// itself, if it is gone. What is left after a crash in between is taken out next time.
func (u *update) forget(ctx context.Context, r *row, gone bool) error {
	ctx = context.WithoutCancel(ctx)
	r.head, r.seq, r.last, r.stale = headNone, 0, "", false
	for {
		if err := u.begin(ctx); err != nil {
			return err
		}
		ids, err := u.idsOf(ctx, r.num)
		if err != nil {
			return err
		}
		head := headNone
		if len(ids) == u.o.Batch {
			head = headGone
		}
		if err := u.exec(ctx, "UPDATE sessions SET head = ?, seq = 0, last = '', dead = '', stale = 0 WHERE num = ?", head, r.num); err != nil {
			return err
		}
		for _, id := range ids {
			if err := u.exec(ctx, "DELETE FROM words WHERE rowid = ?", id); err != nil {
				return err
			}
			if err := u.exec(ctx, "DELETE FROM docs WHERE id = ?", id); err != nil {
				return err
			}
			u.o.Fault("update.forgot")
		}
		if u.docs += len(ids); len(ids) < u.o.Batch {
			break
		}
		if err := u.commit(ctx); err != nil {
			return err
		}
	}
	if !gone {
		return nil
	}
	return u.exec(ctx, "DELETE FROM sessions WHERE num = ?", r.num)
}

func (u *update) idsOf(ctx context.Context, num int64) (ids []int64, err error) {
	rows, err := u.conn.QueryContext(ctx, "SELECT id FROM docs WHERE session = ? LIMIT ?", num, u.o.Batch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

func (u *update) statements(ctx context.Context) (err error) {
	for _, s := range []struct {
		to   **sql.Stmt
		text string
	}{
		{&u.addDoc, "INSERT INTO docs (id, session, seq, piece, kind, time, tool, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"},
		{&u.addWords, "INSERT INTO words (rowid, plain, pairs, meta) VALUES (?, ?, ?, ?)"},
		{&u.addDay, "INSERT INTO days (day, first) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET first = min(first, excluded.first)"},
	} {
		if *s.to, err = u.conn.PrepareContext(ctx, s.text); err != nil {
			return err
		}
	}
	return nil
}

func (u *update) done() error {
	var errs []error
	for _, s := range []*sql.Stmt{u.addDoc, u.addWords, u.addDay} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// begin opens a transaction, unless one is open that has room.
func (u *update) begin(ctx context.Context) error {
	if u.open && u.docs >= u.o.Batch {
		if err := u.commit(ctx); err != nil {
			return err
		}
	}
	if u.open {
		return nil
	}
	u.o.Fault("update.begin")
	if err := u.exec(context.WithoutCancel(ctx), "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	u.open, u.bytes, u.docs = true, 0, 0
	return nil
}

func (u *update) commit(ctx context.Context) error {
	if !u.open {
		return nil
	}
	u.o.Fault("update.commit")
	if err := u.exec(context.WithoutCancel(ctx), "COMMIT"); err != nil {
		u.rollback(ctx)
		return err
	}
	u.open = false
	u.o.Fault("update.committed")
	return nil
}

func (u *update) rollback(ctx context.Context) {
	if u.open {
		u.open = false
		_ = u.exec(context.WithoutCancel(ctx), "ROLLBACK") // SQLite may have done so itself
	}
}

// report says how far the index is from what was listed.
func (u *update) report(ctx context.Context, metas []journal.Meta, rep *query.IndexReport) error {
	rows, err := u.rows(ctx)
	if err != nil {
		return err
	}
	rep.Sessions = len(metas)
	for _, m := range metas {
		seq := int64(0)
		if r := rows[m.ID]; r != nil {
			seq = r.seq
		}
		rep.Events += seq
		rep.Left += max(0, m.Head-seq)
	}
	return u.conn.QueryRowContext(ctx, "SELECT count(*) FROM docs").Scan(&rep.Documents)
}
