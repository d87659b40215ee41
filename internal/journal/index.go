package journal

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sort"
	"strings"
	"time"
)

const (
	indexName = "index.jsonl"
	indexLock = "index.lock"

	// The lines that the index may have beyond twice its sessions before List
	// rewrites it, and how long a change waits for one that is under way.
	indexSlack = 256
	indexWait  = 200 * time.Millisecond
)

// An entry is a line of the index: a session's listing as of some change. Live
// means that it had an owner then, who may have gone on, or died.
type entry struct {
	Meta
	Live bool `json:"live,omitempty"`
}

// index appends a line to the index. An error is of no consequence: List sees
// that a session is missing, and finds an old line of one that has moved on as
// soon as it is opened again.
func (s *Local) index(e entry) {
	b, err := json.Marshal(e)
	if err != nil {
		return
	}
	s.indexing.Lock()
	defer s.indexing.Unlock()
	s.fault("index.write")
	unlock, err := s.lockIndex()
	if err != nil {
		return
	}
	_ = s.appendIndex(append(b, '\n')) // see above
	_ = unlock()
	s.fault("index.written")
}

func (s *Local) appendIndex(b []byte) error {
	f, err := s.d.open(indexName, toExtend)
	if err != nil {
		return err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return err
	}
	if last := make([]byte, 1); size > 0 {
		// Half a line of a process that died must not spoil this one.
		if _, err := f.ReadAt(last, size-1); err == nil && last[0] != '\n' {
			b = append([]byte{'\n'}, b...)
		}
	}
	_, err = f.Write(b)
	return err
}

func (s *Local) lockIndex() (unlock func() error, err error) {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		unlock, err = s.d.lock(indexLock, nil)
		if !errors.Is(err, errLocked) || time.Since(start) > indexWait {
			return unlock, err
		}
	}
}

// readIndex reads the last line of every session. Lines that cannot be read are
// left out.
func (s *Local) readIndex(ctx context.Context) (entries map[string]entry, lines int, err error) {
	entries = map[string]entry{}
	f, err := s.d.open(indexName, toRead)
	if err != nil {
		if missing(err) {
			return entries, 0, nil
		}
		return nil, 0, err
	}
	defer f.Close()
	size, err := f.Size()
	if err != nil {
		return nil, 0, err
	}
	sc := bufio.NewScanner(io.NewSectionReader(f, 0, size))
	sc.Buffer(make([]byte, 64<<10), maxMeta+1024)
	for ; sc.Scan(); lines++ {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		var e entry
		if json.Unmarshal(bytes.TrimSpace(sc.Bytes()), &e) == nil && checkID(e.ID) == nil {
			entries[e.ID] = e
		}
	}
	if sc.Err() != nil { // a line without end: the rest comes from the logs
		lines += 2*len(entries) + indexSlack
	}
	return entries, lines, nil
}

// List yields sessions, the one that changed last first.
func (s *Local) List(ctx context.Context, q Query) iter.Seq2[Meta, error] {
	return func(yield func(Meta, error) bool) {
		metas, err := s.list(ctx)
		if err != nil {
			yield(Meta{}, fmt.Errorf("listing the sessions: %w", err))
			return
		}
		n := 0
		for _, m := range metas {
			if !q.match(m) {
				continue
			}
			if n++; q.Limit > 0 && n > q.Limit || !yield(m, nil) {
				return
			}
		}
	}
}

func (q Query) match(m Meta) bool {
	if !q.Before.IsZero() {
		if t, err := time.Parse(time.RFC3339Nano, m.Updated); err == nil && !t.Before(q.Before) {
			return false
		}
	}
	is := func(want, have string) bool { return want == "" || want == have }
	return is(q.Tenant, m.Tenant) && is(q.Workdir, m.Workdir) && is(q.Status, m.Status) && strings.HasPrefix(m.ID, q.Prefix)
}

// list reads the index and mends it: the folders say which sessions there are,
// and the logs say what the index does not know.
func (s *Local) list(ctx context.Context) ([]Meta, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	entries, lines, err := s.readIndex(ctx)
	if err != nil {
		return nil, err
	}
	months, err := s.d.list(sessionsDir)
	if err != nil {
		return nil, err
	}
	var metas []Meta
	fresh := map[string]entry{} // what the index does not know
	for _, month := range months {
		ids, err := s.d.list(sessionsDir + "/" + month)
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if checkID(id) != nil {
				continue
			}
			old, known := entries[id]
			e, changed := s.current(sessionsDir+"/"+month+"/"+id, old, known)
			if changed && !e.Live { // live ones are written by their owners
				fresh[id] = e
			}
			metas = append(metas, e.Meta)
		}
	}
	if len(fresh) > 0 || lines > 2*len(metas)+indexSlack {
		s.compact(ctx, fresh, lines > 2*len(metas)+indexSlack)
	}
	sortMetas(metas)
	return metas, nil
}

func sortMetas(metas []Meta) {
	times := make(map[string]time.Time, len(metas))
	for _, m := range metas {
		t, _ := time.Parse(time.RFC3339Nano, m.Updated) // unreadable: oldest
		times[m.ID] = t
	}
	sort.Slice(metas, func(i, j int) bool {
		a, b := metas[i], metas[j]
		if ta, tb := times[a.ID], times[b.ID]; !ta.Equal(tb) {
			return ta.After(tb)
		}
		return a.ID > b.ID
	})
}

// current brings an entry up to date. changed means that the index should know.
func (s *Local) current(dir string, e entry, known bool) (now entry, changed bool) {
	id := dir[strings.LastIndexByte(dir, '/')+1:]
	if l := s.lease(id); l != nil {
		return entry{Meta: l.Session(), Live: true}, true
	}
	if known && !e.Live {
		return e, false
	}
	m := s.derive(dir)
	unlock, err := s.d.lock(dir+"/lock", nil)
	if err != nil { // it has an owner, so it can be read
		return entry{Meta: m, Live: true}, true
	}
	_ = unlock() // the lock goes with its file in any case
	if m.Status == statusRunning {
		m.Status = statusInterrupted
	}
	return entry{Meta: m}, true
}

// compact adds what was found out to the index, or writes it anew.
func (s *Local) compact(ctx context.Context, fresh map[string]entry, anew bool) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	unlock, err := s.lockIndex()
	if err != nil {
		return // the next List tries again
	}
	defer func() { _ = unlock() }()
	entries := map[string]entry{}
	if anew {
		if entries, _, err = s.readIndex(ctx); err != nil {
			return
		}
	}
	for id, e := range fresh {
		entries[id] = e
	}
	var b bytes.Buffer
	for _, e := range entries {
		line, err := json.Marshal(e)
		if err != nil {
			return
		}
		b.Write(line)
		b.WriteByte('\n')
	}
	s.fault("index.compact")
	if anew {
		_ = replace(s.d, indexName, b.Bytes(), false) // derived, see index
	} else if b.Len() > 0 {
		_ = s.appendIndex(b.Bytes())
	}
	s.fault("index.compacted")
}
