package journal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
)

// rig is a store on a disk that tests can reach into.
type rig struct {
	*testing.T
	mem *memDisk
	s   *Local

	tried, vague int // changes of a byte, and those that were not told to the byte
}

func newRig(t *testing.T) *rig {
	mem := newMemDisk(time.Now)
	return &rig{T: t, mem: mem, s: newLocal(mem, LocalOptions{})}
}

// again opens the store after a crash: files stay, locks do not.
func (r *rig) again() {
	r.mem.mu.Lock()
	r.mem.locks = map[string][]byte{}
	r.mem.mu.Unlock()
	r.s = newLocal(r.mem, LocalOptions{})
	r.s.redeliverAll()
}

func (r *rig) session(id string) *lease {
	r.Helper()
	var m Meta
	m.ID = id
	if err := r.s.Create(r.Context(), m); err != nil {
		r.Fatal(err)
	}
	return r.open(id)
}

func (r *rig) open(id string) *lease {
	r.Helper()
	l, err := r.s.acquire(r.Context(), id)
	if err != nil {
		r.Fatal(err)
	}
	return l
}

func (r *rig) add(l Lease, b Batch) []agent.Event {
	r.Helper()
	events, err := l.Append(r.Context(), b)
	if err != nil {
		r.Fatal(err)
	}
	return events
}

func texts(n int, words ...string) []agent.Event {
	events := make([]agent.Event, n)
	for i := range events {
		events[i].Body = agent.Note{Text: words[i%len(words)]}
	}
	return events
}

// bytes returns a file of session "s", and set replaces it.
func (r *rig) bytes(name string) []byte {
	r.Helper()
	dir, err := r.s.find("s")
	if err != nil {
		r.Fatal(err)
	}
	b, err := readAll(r.mem, dir+"/"+name, 1<<30)
	if err != nil {
		r.Fatal(err)
	}
	return b
}

func (r *rig) set(name string, b []byte) {
	r.Helper()
	dir, err := r.s.find("s")
	if err == nil {
		err = replace(r.mem, dir+"/"+name, b, false)
	}
	if err != nil {
		r.Fatal(err)
	}
}

const first = "log.000001.jsonl"

// good reads the log until its end or an error.
func (r *rig) good(id string) (n int64, err error) {
	for e, err := range r.s.Read(r.Context(), id, 0) {
		if err != nil {
			return n, err
		}
		if n++; e.Seq != n {
			r.Fatalf("event %d where %d should be", e.Seq, n)
		}
	}
	return n, nil
}

// badDisk is a disk that fails where a test wants it to.
type badDisk struct {
	disk
	mu    sync.Mutex
	write func(name string, b []byte) (int, error) // how much of it is written, and then what
	sync  func(name string) error
	other func(op, name string) error
}

func (d *badDisk) ask(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.other == nil {
		return nil
	}
	return d.other(op, name)
}

func (d *badDisk) mkdir(name string) error {
	return either(d.ask("mkdir", name), func() error { return d.disk.mkdir(name) })
}

func (d *badDisk) rename(from, to string) error {
	return either(d.ask("rename", to), func() error { return d.disk.rename(from, to) })
}

func (d *badDisk) truncate(name string, n int64) error {
	return either(d.ask("truncate", name), func() error { return d.disk.truncate(name, n) })
}

func either(err error, f func() error) error {
	if err != nil {
		return err
	}
	return f()
}

func (d *badDisk) open(name string, how openMode) (file, error) {
	if how != toRead {
		if err := d.ask("open", name); err != nil {
			return nil, err
		}
	}
	f, err := d.disk.open(name, how)
	if err != nil {
		return nil, err
	}
	return badFile{f, d, name}, nil
}

type badFile struct {
	file
	d    *badDisk
	name string
}

func (f badFile) Write(b []byte) (int, error) {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.write != nil {
		n, err := f.d.write(f.name, b)
		if err != nil || n < len(b) {
			if _, werr := f.file.Write(b[:n]); werr != nil {
				return 0, errors.Join(err, werr)
			}
			return n, err
		}
	}
	return f.file.Write(b)
}

func (f badFile) Sync() error {
	f.d.mu.Lock()
	defer f.d.mu.Unlock()
	if f.d.sync != nil {
		if err := f.d.sync(f.name); err != nil {
			return err
		}
	}
	return f.file.Sync()
}

func numbered(n int) []agent.Event {
	events := make([]agent.Event, n)
	for i := range events {
		events[i].Body = agent.Note{Text: fmt.Sprintf("number %d", i)}
	}
	return events
}

func isLog(name string) bool { return strings.Contains(name, "/log.0") }

var background = context.Background()
