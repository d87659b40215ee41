package index

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"dure/agent/query"
	"dure/internal/state/transcript"
)

// Bounds of a search. Of more than ranked documents that have all the words, the
// newest are ranked. At most looked are looked at for a filter that the full-text
// table does not know; of the sessions that a filter names, the table is told if
// there are at most named.
const (
	ranked  = 128
	looked  = 20_000
	counted = 2_000 // documents with a word are counted up to there, and estimated beyond
	named   = 200
)

// Search finds the documents that have all the words of a query. It changes nothing.
// A query that cannot be understood is a [*QueryError].
func (x *Index) Search(ctx context.Context, q query.Search) (query.SearchResult, error) {
	res := query.SearchResult{Hits: []query.SearchHit{}}
	r, err := understand(q, x.o.Now())
	if err != nil {
		return res, err
	}
	all, more, err := x.candidates(ctx, r)
	if err == nil {
		err = x.rank(ctx, r, all)
	}
	if err != nil {
		return res, fmt.Errorf("searching: %w", damage(err))
	}
	all = whole(all)
	res.More = more || len(all) > r.offset+r.limit
	all = all[min(r.offset, len(all)):min(r.offset+r.limit, len(all))]
	for _, d := range all {
		d.show()
		res.Hits = append(res.Hits, d.SearchHit)
	}
	if err := x.sessionsOf(ctx, all, res.Hits); err != nil {
		return res, fmt.Errorf("searching: %w", damage(err))
	}
	return res, nil
}

// whole leaves one of several copies of a piece, which forks have, and one piece of
// each event: the best of it.
func whole(all []*found) []*found {
	type event struct {
		seq  int64
		time int64
		kind string
	}
	of := map[event]int64{} // where an event was found first: its session
	for _, d := range all {
		e := event{d.Seq, d.Time.UnixNano(), d.Kind}
		if s, ok := of[e]; !ok || d.session < s {
			of[e] = d.session
		}
	}
	type call struct {
		event
		tool string
	}
	seen := map[call]bool{}
	return slices.DeleteFunc(all, func(d *found) bool {
		e := event{d.Seq, d.Time.UnixNano(), d.Kind}
		c := call{e, d.Tool}
		if of[e] != d.session || seen[c] {
			return true
		}
		seen[c] = true
		return false
	})
}

// candidates returns the newest documents that have all the words and pass the
// filters.
func (x *Index) candidates(ctx context.Context, r request) (all []*found, more bool, err error) {
	only, expr, err := x.scope(ctx, r)
	if err != nil || only != nil && len(only) == 0 {
		return nil, false, err
	}
	lowest := int64(0)
	if !r.since.IsZero() {
		var first sql.NullInt64
		if err := x.conn.QueryRowContext(ctx, "SELECT min(first) FROM days WHERE day >= ?", dayOf(r.since)).Scan(&first); err != nil || !first.Valid {
			return nil, false, err
		}
		lowest = first.Int64
	}
	rows, err := x.conn.QueryContext(ctx, `SELECT d.session, d.seq, d.piece, d.kind, d.time, d.tool, d.text
		FROM words JOIN docs d ON d.id = words.rowid WHERE words MATCH ? AND words.rowid >= ? ORDER BY words.rowid DESC`, expr, lowest)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		if len(all) == ranked || n == looked {
			return all, true, nil
		}
		var d found
		var kind int
		var at int64
		var packed sql.RawBytes
		if err := rows.Scan(&d.session, &d.Seq, &d.piece, &kind, &at, &d.Tool, &packed); err != nil {
			return nil, false, err
		}
		d.Time = time.Unix(0, at).UTC()
		if d.Time.Before(r.since) || only != nil && !only[d.session] || kind <= 0 || kind >= len(kinds) {
			continue
		}
		d.Kind = kinds[kind]
		if d.text, err = unpack(packed); err != nil {
			return nil, false, err
		}
		if d.look(r.terms) {
			all = append(all, &d)
		}
	}
	return all, false, rows.Err()
}

// scope returns which sessions are searched, nil = all, and the expression for the
// full-text table.
func (x *Index) scope(ctx context.Context, r request) (only map[int64]bool, expr string, err error) {
	var more []string
	if r.kind > 0 {
		more = append(more, fmt.Sprintf(`meta : "k%d"`, r.kind))
	}
	if r.session == "" && r.workdir == "" && r.tag == "" {
		return nil, r.match(more...), nil
	}
	below := strings.TrimRight(r.workdir, `/\`)
	anywhere := r.workdir != "" && !strings.ContainsAny(r.workdir[:1], `/\`) && !strings.Contains(r.workdir, ":")
	rows, err := x.conn.QueryContext(ctx, `SELECT num FROM sessions WHERE substr(id, 1, length(?1)) = ?1
		AND (?2 = '' OR workdir = ?2 OR workdir = ?3 OR substr(workdir, 1, length(?3) + 1) IN (?3 || '/', ?3 || '\') OR ?4 AND instr(workdir, ?2))
		AND (?5 = '' OR instr(tags, char(10) || ?5 || char(10)))`, r.session, r.workdir, below, anywhere, r.tag)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	only = map[int64]bool{}
	var tokens []string
	for rows.Next() {
		var num int64
		if err := rows.Scan(&num); err != nil {
			return nil, "", err
		}
		only[num] = true
		if len(tokens) <= named {
			tokens = append(tokens, fmt.Sprintf(`"s%d"`, num))
		}
	}
	if n := len(tokens); n > 0 && n <= named {
		more = append(more, "meta : ("+strings.Join(tokens, " OR ")+")")
	}
	return only, r.match(more...), rows.Err()
}

// rank sorts documents, the best first.
func (x *Index) rank(ctx context.Context, r request, all []*found) error {
	idf := make([]float64, len(r.terms))
	for i, t := range r.terms {
		if idf[i] = 1; len(r.terms) > 1 && !t.not && len(all) > 1 {
			var err error
			if idf[i], err = x.idf(ctx, t); err != nil {
				return err
			}
		}
	}
	score(all, idf, x.o.Now())
	sort.SliceStable(all, func(i, j int) bool { return all[i].Score > all[j].Score })
	return nil
}

// idf says how much a term tells, by how many documents have it.
func (x *Index) idf(ctx context.Context, t term) (float64, error) {
	var total, lowest sql.NullInt64
	var df int64
	if err := x.conn.QueryRowContext(ctx, "SELECT max(id) FROM docs").Scan(&total); err != nil {
		return 0, err
	}
	expr := request{terms: []term{t}}.match()
	err := x.conn.QueryRowContext(ctx, "SELECT count(*), min(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ? ORDER BY rowid DESC LIMIT ?)", expr, counted).Scan(&df, &lowest)
	if err != nil {
		return 0, err
	}
	n, seen := float64(total.Int64), float64(total.Int64-lowest.Int64+1)
	if df == counted {
		return weight(math.Round(counted*n/max(1, seen)), n), nil // as dense in what was not counted
	}
	return weight(float64(df), n), nil
}

// sessionsOf adds what is known of the sessions of hits.
func (x *Index) sessionsOf(ctx context.Context, all []*found, hits []query.SearchHit) error {
	type row struct {
		id, title, workdir string
		dead               []transcript.Span
	}
	known := map[int64]*row{}
	for i, d := range all {
		s := known[d.session]
		if s == nil {
			s = &row{}
			known[d.session] = s
			var dead string
			err := x.conn.QueryRowContext(ctx, "SELECT id, title, workdir, dead FROM sessions WHERE num = ?", d.session).Scan(&s.id, &s.title, &s.workdir, &dead)
			if err != nil {
				return fmt.Errorf("a document of no session: %w: %w", ErrDamaged, err)
			}
			if dead != "" && json.Unmarshal([]byte(dead), &s.dead) != nil {
				return fmt.Errorf("what was taken back: %w", ErrDamaged)
			}
		}
		hits[i].Session, hits[i].Title, hits[i].Workdir = s.id, s.title, s.workdir
		hits[i].Dead = slices.ContainsFunc(s.dead, func(d transcript.Span) bool { return d.From < hits[i].Seq && hits[i].Seq <= d.To })
	}
	return nil
}

// dayOf numbers the days since 1970, in UTC.
func dayOf(t time.Time) int64 {
	const day = 24 * 60 * 60
	s := t.Unix()
	if s < 0 {
		s -= day - 1
	}
	return s / day
}
