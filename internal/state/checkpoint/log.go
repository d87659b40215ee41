package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// log is the file of the snapshots, oldest first. Each record stands behind its
// length, 4 bytes, and the first 16 bytes of its SHA-256.
type log struct {
	dir    string
	sync   bool
	fault  func(string)
	f      *os.File
	size   int64
	heads  []head
	damage string
}

// head is what is kept in memory of a record.
type head struct {
	Snapshot
	seq    uint64
	roots  []string
	offset int64
	length int64
}

const frameHead = 4 + 16

// openLog reads the records, and cuts off an end that was torn by a crash.
func openLog(dir string, sync bool, fault func(string), each func(*record)) (_ *log, err error) {
	name := filepath.Join(dir, "log")
	f, err := openOwn(name, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	l := &log{dir: dir, sync: sync, fault: fault, f: f}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	torn, size, err := l.load(each)
	if err != nil || torn < 0 {
		return l, err
	}
	return l, l.cut(torn, size)
}

// load reads the records. Torn is what is known of the length of the first that
// cannot be read, or -1 when all could; size is that of the file.
func (l *log) load(each func(*record)) (torn, size int64, err error) {
	info, err := l.f.Stat()
	if err != nil {
		return 0, 0, err
	}
	for l.size < info.Size() {
		r, n, err := l.read(l.size, info.Size()-l.size)
		if errors.Is(err, errRecord) {
			return n, info.Size(), nil
		}
		if err != nil {
			return 0, 0, err
		}
		each(r)
		l.add(r, n)
	}
	return -1, info.Size(), nil
}

// cut drops the end of the log. When more than the last record is in it, or that
// record is all there, the whole is kept beside it.
func (l *log) cut(n, size int64) error {
	if n > 0 {
		l.damage = fmt.Sprintf("the log of snapshots is damaged at byte %d of %d; what follows is lost, and the file is kept as log.damaged", l.size, size)
		if err := copyFile(filepath.Join(l.dir, "log"), filepath.Join(l.dir, "log.damaged")); err != nil {
			return err
		}
	}
	return l.f.Truncate(l.size)
}

func copyFile(from, to string) error {
	in, err := openOwn(from, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := openOwn(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// read returns the record at an offset, and how long it is. The length is 0 when
// the file ends within it.
func (l *log) read(offset, left int64) (*record, int64, error) {
	var h [frameHead]byte
	if left < frameHead {
		return nil, 0, errRecord
	}
	if _, err := l.f.ReadAt(h[:], offset); err != nil {
		return nil, 0, err
	}
	n := int64(binary.LittleEndian.Uint32(h[:4]))
	if n > left-frameHead {
		return nil, 0, errRecord
	}
	if n == 0 || n > maxRecord {
		return nil, frameHead, errRecord
	}
	whole := make([]byte, frameHead+n)
	if _, err := l.f.ReadAt(whole, offset); err != nil {
		return nil, 0, err
	}
	r, _, ok := unframe(whole)
	if !ok {
		return nil, frameHead + n, errRecord
	}
	return r, frameHead + n, nil
}

func (l *log) add(r *record, n int64) {
	l.heads = append(l.heads, head{
		Snapshot: Snapshot{ID: r.id, Time: r.time, Label: r.label, Files: r.files, Bytes: r.bytes, Changed: len(r.changes)},
		seq:      r.seq, roots: r.roots, offset: l.size, length: n,
	})
	l.size += n
}

// frame returns a record as it stands in the log.
func frame(r *record) ([]byte, error) {
	stored, err := r.encode()
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(stored)
	out := make([]byte, 4, frameHead+len(stored))
	binary.LittleEndian.PutUint32(out, uint32(len(stored)))
	return append(append(out, sum[:16]...), stored...), nil
}

// unframe reads the record at the beginning of b, and returns what is behind it.
func unframe(b []byte) (r *record, rest []byte, ok bool) {
	if len(b) < frameHead {
		return nil, nil, false
	}
	n := int64(binary.LittleEndian.Uint32(b))
	if n > int64(len(b)-frameHead) {
		return nil, nil, false
	}
	stored := b[frameHead : frameHead+n]
	if sum := sha256.Sum256(stored); [16]byte(sum[:16]) != [16]byte(b[4:frameHead]) {
		return nil, nil, false
	}
	r, err := decodeRecord(stored)
	return r, b[frameHead+n:], err == nil
}

// append gives a record its number and its ID, and writes it. When that fails
// the log is as it was.
func (l *log) append(r *record) error {
	r.seq = 1
	if n := len(l.heads); n > 0 {
		r.seq = l.heads[n-1].seq + 1
	}
	sum := sha256.New()
	for _, c := range r.changes {
		_, _ = sum.Write(appendEntry([]byte(c.path+"\x00"), c)) // it never fails
	}
	r.id = ID(fmt.Sprintf("%06d-%s", r.seq, hex.EncodeToString(sum.Sum(nil)[:4])))
	b, err := frame(r)
	if err != nil {
		return err
	}
	l.fault("log.write")
	_, err = l.f.WriteAt(b, l.size)
	l.fault("log.written")
	if err == nil && l.sync {
		if err = l.f.Sync(); err == nil && l.size == 0 {
			err = syncDir(l.dir) // it may be new
		}
		l.fault("log.synced")
	}
	if err != nil {
		return fmt.Errorf("storing a snapshot: %w", errors.Join(err, l.f.Truncate(l.size)))
	}
	l.add(r, int64(len(b)))
	return nil
}

// at returns the place of a snapshot in the order of all.
func (l *log) at(id ID) (int, error) {
	i := slices.IndexFunc(l.heads, func(h head) bool { return h.ID == id })
	if i < 0 {
		return 0, fmt.Errorf("%w: %.80q", ErrUnknown, id)
	}
	return i, nil
}

// record reads the record of one snapshot.
func (l *log) record(i int) (*record, error) {
	r, _, err := l.read(l.heads[i].offset, l.heads[i].length)
	if errors.Is(err, errRecord) {
		return nil, fmt.Errorf("snapshot %s: %w", l.heads[i].ID, ErrDamaged)
	}
	return r, err
}

// tree returns the entries of a snapshot.
func (l *log) tree(id ID) (tree, error) {
	last, err := l.at(id)
	if err != nil {
		return nil, err
	}
	t := tree{}
	for i := range last + 1 {
		r, err := l.record(i)
		if err != nil {
			return nil, err
		}
		t.apply(r.changes)
	}
	return t, nil
}

func (l *log) newest() (head, bool) {
	if len(l.heads) == 0 {
		return head{}, false
	}
	return l.heads[len(l.heads)-1], true
}

func (l *log) close() error { return l.f.Close() }

// paths returns the paths of a tree, ascending: a folder comes before what is in
// it.
func (t tree) paths() []string {
	all := make([]string, 0, len(t))
	for p := range t {
		all = append(all, p)
	}
	slices.SortFunc(all, cmp.Compare[string])
	return all
}
