package journal

import (
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"
)

// memDisk keeps the files of a store in memory.
type memDisk struct {
	now func() time.Time

	mu    sync.Mutex
	files map[string]*memData
	dirs  map[string]time.Time // with the time of their last change
	locks map[string][]byte
}

type memData struct {
	mu      sync.Mutex
	data    []byte
	changed time.Time
}

func newMemDisk(now func() time.Time) *memDisk {
	return &memDisk{
		now:   now,
		files: map[string]*memData{},
		dirs:  map[string]time.Time{".": now()},
		locks: map[string][]byte{},
	}
}

func memError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (d *memDisk) mkdir(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.dirs[name]; ok {
		return memError("mkdir", name, fs.ErrExist)
	}
	for p := name; p != "."; p = path.Dir(p) {
		if _, ok := d.dirs[p]; ok {
			break
		}
		d.dirs[p] = d.now()
	}
	return nil
}

func (d *memDisk) list(name string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	add := func(p string) {
		if base := path.Base(p); path.Dir(p) == name && !strings.HasPrefix(base, ".") {
			names = append(names, base)
		}
	}
	for p := range d.files {
		add(p)
	}
	for p := range d.dirs {
		add(p)
	}
	slices.Sort(names)
	return names, nil
}

func (d *memDisk) stat(name string) (int64, time.Time, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.files[name]; ok {
		f.mu.Lock()
		defer f.mu.Unlock()
		return int64(len(f.data)), f.changed, nil
	}
	if t, ok := d.dirs[name]; ok {
		return 0, t, nil
	}
	return 0, time.Time{}, memError("stat", name, fs.ErrNotExist)
}

func (d *memDisk) open(name string, how openMode) (file, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f, ok := d.files[name]
	switch {
	case ok && how == toCreate:
		return nil, memError("open", name, fs.ErrExist)
	case ok:
		return memFile{d, f}, nil
	case how == toRead || how == toAppend:
		return nil, memError("open", name, fs.ErrNotExist)
	}
	if _, ok := d.dirs[path.Dir(name)]; !ok {
		return nil, memError("open", name, fs.ErrNotExist)
	}
	f = &memData{changed: d.now()}
	d.files[name] = f
	d.dirs[path.Dir(name)] = d.now()
	return memFile{d, f}, nil
}

func (d *memDisk) rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if f, ok := d.files[from]; ok {
		d.files[to] = f
		delete(d.files, from)
		d.dirs[path.Dir(to)] = d.now()
		return nil
	}
	if _, ok := d.dirs[from]; !ok {
		return memError("rename", from, fs.ErrNotExist)
	}
	if _, ok := d.dirs[to]; ok {
		return memError("rename", to, fs.ErrExist)
	}
	moved := func(p string) (string, bool) {
		rest, ok := strings.CutPrefix(p, from)
		return to + rest, ok && (rest == "" || rest[0] == '/')
	}
	for p, f := range d.files {
		if q, ok := moved(p); ok {
			d.files[q] = f
			delete(d.files, p)
		}
	}
	for p, t := range d.dirs {
		if q, ok := moved(p); ok {
			d.dirs[q] = t
			delete(d.dirs, p)
		}
	}
	return nil
}

func (d *memDisk) remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.files[name]; ok {
		delete(d.files, name)
		d.dirs[path.Dir(name)] = d.now()
		return nil
	}
	if _, ok := d.dirs[name]; !ok {
		return nil
	}
	for p := range d.files {
		if strings.HasPrefix(p, name+"/") {
			delete(d.files, p)
		}
	}
	for p := range d.dirs {
		if p == name || strings.HasPrefix(p, name+"/") {
			delete(d.dirs, p)
		}
	}
	return nil
}

func (d *memDisk) truncate(name string, size int64) error {
	d.mu.Lock()
	f, ok := d.files[name]
	d.mu.Unlock()
	if !ok {
		return memError("truncate", name, fs.ErrNotExist)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if size > int64(len(f.data)) {
		return memError("truncate", name, fs.ErrInvalid)
	}
	f.data = slices.Clone(f.data[:size]) // readers may hold what is cut
	return nil
}

func (d *memDisk) syncDir(string) error { return nil }
func (d *memDisk) shared() bool         { return false }
func (d *memDisk) real(string) string   { return "" }

func (d *memDisk) lock(name string, note []byte) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.locks[name]; ok {
		return nil, errLocked
	}
	d.locks[name] = note
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, name)
		return nil
	}, nil
}

func (d *memDisk) lockNote(name string) []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.locks[name]
}

// A memFile is an open file. It needs no closing.
type memFile struct {
	d *memDisk
	*memData
}

func (f memFile) Write(b []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = append(f.data, b...)
	f.changed = f.d.now()
	return len(b), nil
}

func (f memFile) ReadAt(b []byte, off int64) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if off >= int64(len(f.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f memFile) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return int64(len(f.data)), nil
}

func (f memFile) Sync() error  { return nil }
func (f memFile) Close() error { return nil }
