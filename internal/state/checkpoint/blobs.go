package checkpoint

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// packSize is after how many bytes a new pack is begun.
const packSize = 64 << 20

// maxContent is the largest content that is ever stored.
const maxContent = 1 << 30

// blobs are contents by their hash, one behind the other in packs. Where each
// lies is written in the log alone: what the log does not name is left over from
// an attempt that failed, and is cut off. Contents are never links to the user's
// files, which programs may change in place.
type blobs struct {
	dir   string
	most  int64
	sync  bool
	fault func(string)

	mu    sync.Mutex
	known map[hash]place // named by the log
	fresh []placed       // not yet
	isNew map[hash]bool
	added int64            // bytes of fresh
	sizes map[uint32]int64 // bytes of each pack that the log names
	open  *os.File         // the pack that is written to; nil = none yet
	pack  uint32           // its number, or the highest that there is
	end   int64            // where the next content goes
	full  []*os.File       // packs that fresh contents have filled
}

func newBlobs(dir string, most int64, sync bool, fault func(string)) *blobs {
	return &blobs{dir: dir, most: most, sync: sync, fault: fault, known: map[hash]place{}, isNew: map[hash]bool{}, sizes: map[uint32]int64{}}
}

func (b *blobs) path(pack uint32) string { return filepath.Join(b.dir, fmt.Sprintf("%08d", pack)) }

// learn takes over what the log says.
func (b *blobs) learn(all []placed) {
	for _, p := range all {
		b.known[p.hash] = p.place
		b.sizes[p.place.pack] = max(b.sizes[p.place.pack], p.place.offset+p.place.stored)
		b.pack = max(b.pack, p.place.pack)
	}
}

// trim removes what the log does not name.
func (b *blobs) trim() error {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		n, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil || e.Name() != filepath.Base(b.path(uint32(n))) {
			continue // not ours
		}
		name := b.path(uint32(n))
		size, named := b.sizes[uint32(n)]
		if !named {
			if err := os.Remove(name); err != nil {
				return err
			}
			continue
		}
		if info, err := e.Info(); err == nil && info.Size() > size {
			if err := os.Truncate(name, size); err != nil {
				return err
			}
		}
	}
	return nil
}

// total is how many bytes of packs there are.
func (b *blobs) total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.sum()
}

func (b *blobs) sum() (n int64) {
	for _, size := range b.sizes {
		n += size
	}
	return n + b.added
}

// room reports whether a content of a size would fit.
func (b *blobs) room(size int64) bool { return b.total() <= b.most-size }

func (b *blobs) has(h hash) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.known[h]
	return ok || b.isNew[h]
}

// staged reports whether there are contents that the log does not name yet.
func (b *blobs) staged() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.fresh) > 0
}

var errFull = errors.New("the store is full")

// put stores a content, unless it is there. It is errFull when it does not fit.
// Until commit it can be taken back.
func (b *blobs) put(h hash, data []byte) error {
	if b.has(h) {
		return nil
	}
	stored, packed := shrink(data)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isNew[h] {
		return nil
	}
	if b.sum() > b.most-int64(len(stored)) {
		return errFull
	}
	if err := b.ready(int64(len(stored))); err != nil {
		return fmt.Errorf("storing a content: %w", err)
	}
	b.fault("pack.write")
	if _, err := b.open.WriteAt(stored, b.end); err != nil {
		return fmt.Errorf("storing a content: %w", err)
	}
	b.fault("pack.written")
	b.fresh = append(b.fresh, placed{h, place{pack: b.pack, offset: b.end, stored: int64(len(stored)), size: int64(len(data)), packed: packed}})
	b.isNew[h] = true
	b.added += int64(len(stored))
	b.end += int64(len(stored))
	return nil
}

// ready opens the pack that the next n bytes go to.
func (b *blobs) ready(n int64) error {
	if b.open != nil && (b.end == 0 || b.end+n <= packSize) {
		return nil
	}
	if b.open != nil {
		b.full = append(b.full, b.open)
		b.open = nil
	}
	if size, named := b.sizes[b.pack]; named && len(b.full) == 0 && size+n <= packSize {
		f, err := openOwn(b.path(b.pack), os.O_RDWR)
		if err == nil {
			b.open, b.end = f, size
			return nil
		}
	}
	f, err := openOwn(b.path(b.pack+1), os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	b.pack++
	b.open, b.end = f, 0
	return nil
}

// commit brings fresh contents to the disk, and returns where they lie. They
// are kept with keep, or taken back with drop.
func (b *blobs) commit() ([]placed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fresh) == 0 {
		return nil, nil
	}
	if b.sync {
		for _, f := range append(slices.Clip(b.full), b.open) {
			if err := f.Sync(); err != nil {
				return nil, fmt.Errorf("bringing contents to the disk: %w", err)
			}
		}
		if err := syncDir(b.dir); err != nil {
			return nil, fmt.Errorf("bringing contents to the disk: %w", err)
		}
		b.fault("pack.synced")
	}
	return b.fresh, nil
}

// keep takes the fresh contents as named by the log.
func (b *blobs) keep() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.learn(b.fresh)
	b.settle()
}

// drop takes the fresh contents back.
func (b *blobs) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.fresh) == 0 && len(b.full) == 0 {
		return
	}
	b.settle()
	if b.open != nil {
		_ = b.open.Close() // nothing in it counts
		b.open = nil
	}
	// The next Open does the same: what fails here only takes space until then.
	_ = b.trim()
	b.end = b.sizes[b.pack]
}

func (b *blobs) settle() {
	for _, f := range b.full {
		_ = f.Close() // they are on the disk, or do not count
	}
	b.fresh, b.full, b.added = nil, nil, 0
	clear(b.isNew)
}

func (b *blobs) close() error {
	b.drop()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open == nil {
		return nil
	}
	err := b.open.Close()
	b.open = nil
	return err
}

// get returns the content with a hash, which is checked. It is [ErrDamaged] when
// the store does not have those bytes.
func (b *blobs) get(h hash) ([]byte, error) {
	b.mu.Lock()
	p, ok := b.known[h]
	b.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("content %x is missing: %w", h[:6], ErrDamaged)
	}
	data, err := b.read(p)
	if err == nil && sha256.Sum256(data) != h {
		err = ErrDamaged
	}
	if err != nil {
		b.mu.Lock()
		delete(b.known, h) // so that the next one with this content stores it again
		b.mu.Unlock()
		return nil, fmt.Errorf("reading content %x: %w", h[:6], err)
	}
	return data, nil
}

// raw returns the bytes of a place as they are stored.
func (b *blobs) raw(p place) ([]byte, error) {
	f, err := openOwn(b.path(p.pack), os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || p.size > maxContent || info.Size() < p.offset+p.stored {
		return nil, ErrDamaged
	}
	raw := make([]byte, p.stored)
	_, err = f.ReadAt(raw, p.offset)
	return raw, err
}

func (b *blobs) read(p place) ([]byte, error) {
	raw, err := b.raw(p)
	if err != nil || !p.packed {
		return raw, err
	}
	r := flate.NewReader(bytes.NewReader(raw))
	data, err := io.ReadAll(io.LimitReader(r, p.size+1))
	if err != nil || int64(len(data)) != p.size {
		return nil, ErrDamaged
	}
	return data, nil
}

// Compressing has to save a tenth; of a long content a sample is tried first.
const (
	minShrink    = 128
	sampleShrink = 32 << 10
)

var shrinkers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(io.Discard, flate.BestSpeed) // the level is a good one
	return w
}}

// shrink returns what is stored of a content.
func shrink(data []byte) (stored []byte, packed bool) {
	if len(data) < minShrink {
		return data, false
	}
	if len(data) > 2*sampleShrink {
		if sample := deflated(data[:sampleShrink]); len(sample) > sampleShrink*9/10 {
			return data, false
		}
	}
	if out := deflated(data); len(out) <= len(data)*9/10 {
		return out, true
	}
	return data, false
}

func deflated(data []byte) []byte {
	w := shrinkers.Get().(*flate.Writer)
	defer shrinkers.Put(w)
	var out bytes.Buffer
	out.Grow(len(data)/2 + 64)
	w.Reset(&out)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}
