package journal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
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

// current returns the entry of a session that is open, or was when the index was
// written, or is not in it.
func (s *Local) current(dir string) entry {
	id := dir[strings.LastIndexByte(dir, '/')+1:]
	if l := s.lease(id); l != nil {
		return entry{Meta: l.Session(), Live: true}
	}
	m := s.derive(dir)
	unlock, err := s.d.lock(dir+"/lock", nil)
	if err != nil { // it has an owner, so it can be read
		return entry{Meta: m, Live: true}
	}
	_ = unlock() // the lock goes with its file in any case
	if m.Status == statusRunning {
		m.Status = statusInterrupted
	}
	return entry{Meta: m}
}

// compact adds what was found out to the index, or writes it anew. What the index says
// otherwise than in known, which was read before, is newer than what was found out.
func (s *Local) compact(ctx context.Context, fresh map[string]entry, known map[string]string, anew bool) {
	s.indexing.Lock()
	defer s.indexing.Unlock()
	unlock, err := s.lockIndex()
	if err != nil {
		return // the next List tries again
	}
	defer func() { _ = unlock() }()
	entries, _, err := s.readIndex(ctx, "")
	if err != nil {
		return
	}
	added := map[string]string{}
	for id, e := range fresh {
		if entries[id] != known[id] {
			continue
		}
		line, err := json.Marshal(e)
		if err != nil {
			return
		}
		added[id] = string(line)
	}
	if anew {
		maps.Copy(entries, added)
		added = entries
	}
	var b bytes.Buffer
	for _, line := range added {
		b.WriteString(line)
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
