package checkpoint

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// A record is one snapshot as it is stored: what has changed since the one
// before it, sorted by path, and where the new contents lie.
type record struct {
	id      ID
	seq     uint64
	time    time.Time
	label   Label
	roots   []string
	files   int64 // kept files of the whole tree
	bytes   int64 // and their size
	changes []change
	blobs   []placed
}

// change is the new entry of a path; gone = it has none any more.
type change struct {
	path  string
	gone  bool
	entry entry
}

// placed says where the bytes with a hash lie.
type placed struct {
	hash  hash
	place place
}

type place struct {
	pack   uint32
	offset int64
	stored int64 // bytes in the pack
	size   int64 // bytes of the file
	packed bool  // compressed
}

// Limits of what is read back. A record beyond them is damaged.
const (
	recordVersion = 1
	maxRecord     = 256 << 20 // bytes of a record, compressed or not
	maxPath       = 16 << 10  // bytes of a path
	maxTarget     = 16 << 10  // bytes of what a link leads to
	maxLabel      = 4 << 10   // bytes of each text of a label
	maxRoots      = 64
)

var errRecord = errors.New("the record of a snapshot cannot be read")

// sortChanges brings changes into the order in which they are stored.
func sortChanges(c []change) {
	slices.SortFunc(c, func(a, b change) int { return cmp.Compare(a.path, b.path) })
}

// encode returns the stored form of a record.
func (r *record) encode() ([]byte, error) {
	var b []byte
	text := func(s string) { b = append(binary.AppendUvarint(b, uint64(len(s))), s...) }
	text(string(r.id))
	b = binary.AppendUvarint(b, r.seq)
	b = binary.AppendVarint(b, r.time.UnixNano())
	text(r.label.Session)
	text(r.label.Call)
	text(r.label.Text)
	b = append(b, flag(r.label.Ours))
	b = binary.AppendUvarint(b, uint64(r.files))
	b = binary.AppendUvarint(b, uint64(r.bytes))
	b = binary.AppendUvarint(b, uint64(len(r.roots)))
	for _, root := range r.roots {
		text(root)
	}
	b = binary.AppendUvarint(b, uint64(len(r.blobs)))
	for _, p := range r.blobs {
		b = append(append(b, p.hash[:]...), flag(p.place.packed))
		for _, n := range []int64{int64(p.place.pack), p.place.offset, p.place.stored, p.place.size} {
			b = binary.AppendUvarint(b, uint64(n))
		}
	}
	b = binary.AppendUvarint(b, uint64(len(r.changes)))
	last := ""
	for _, c := range r.changes {
		shared := sharedPrefix(last, c.path)
		b = binary.AppendUvarint(b, uint64(shared))
		text(c.path[shared:])
		b = appendEntry(b, c)
		last = c.path
	}
	if len(b) > maxRecord {
		return nil, fmt.Errorf("storing a snapshot: its record has %d bytes, more than %d", len(b), maxRecord)
	}
	return deflate([]byte{recordVersion}, b), nil
}

func flag(set bool) byte {
	if set {
		return 1
	}
	return 0
}

func sharedPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// goneKind stands for an entry that is no more.
const goneKind = 0xff

func appendEntry(b []byte, c change) []byte {
	if c.gone {
		return append(b, goneKind)
	}
	e := c.entry
	b = append(b, byte(e.kind))
	switch e.kind {
	case File:
		b = binary.AppendUvarint(b, uint64(e.mode))
		b = binary.AppendUvarint(b, uint64(e.size))
		b = append(b, e.hash[:]...)
	case Dir:
		b = binary.AppendUvarint(b, uint64(e.mode))
	case Link:
		b = binary.AppendUvarint(b, uint64(len(e.target)))
		b = append(b, e.target...)
	case Skipped:
		b = append(b, byte(e.reason))
		b = binary.AppendUvarint(b, uint64(e.size))
		if e.reason == Large {
			b = append(b, e.hash[:]...)
		}
	}
	return b
}

func deflate(head, b []byte) []byte {
	out := bytes.NewBuffer(head)
	w, _ := flate.NewWriter(out, flate.BestSpeed) // the level is a good one
	_, _ = w.Write(b)                             // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

func inflate(b []byte) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(b)), maxRecord+1))
	if err != nil || len(body) > maxRecord {
		return nil, errRecord
	}
	return body, nil
}

// decodeRecord reads a stored record. It takes any bytes: what it returns is
// within the limits above and has valid paths in ascending order.
func decodeRecord(stored []byte) (*record, error) {
	if len(stored) == 0 || len(stored) > maxRecord || stored[0] != recordVersion {
		return nil, errRecord
	}
	body, err := inflate(stored[1:])
	if err != nil {
		return nil, err
	}
	d := decoder{b: body}
	r := &record{id: ID(d.text(maxLabel)), seq: d.number()}
	r.time = time.Unix(0, d.signed())
	r.label = Label{Session: d.text(maxLabel), Call: d.text(maxLabel), Text: d.text(maxLabel), Ours: d.flag()}
	r.files, r.bytes = d.size(), d.size()
	for range d.count(maxRoots) {
		root := d.text(maxPath)
		d.check(validPath(root))
		r.roots = append(r.roots, root)
	}
	for range d.count(math.MaxInt32) {
		r.blobs = append(r.blobs, d.placed())
	}
	last := ""
	for range d.count(math.MaxInt32) {
		c := d.change(last)
		r.changes = append(r.changes, c)
		last = c.path
	}
	d.check(len(d.b) == 0)
	if d.bad {
		return nil, errRecord
	}
	return r, nil
}

// decoder reads from b, and remembers that something did not fit: from then on
// it has nothing more to read.
type decoder struct {
	b   []byte
	bad bool
}

func (d *decoder) check(ok bool) {
	if !ok {
		d.bad, d.b = true, nil
	}
}

func (d *decoder) number() uint64 {
	n, used := binary.Uvarint(d.b)
	if d.check(used > 0); d.bad {
		return 0
	}
	d.b = d.b[used:]
	return n
}

func (d *decoder) signed() int64 {
	n, used := binary.Varint(d.b)
	if d.check(used > 0); d.bad {
		return 0
	}
	d.b = d.b[used:]
	return n
}

func (d *decoder) size() int64 {
	n := d.number()
	d.check(n <= math.MaxInt64)
	return int64(n)
}

// count is a number of things that take a byte at least each.
func (d *decoder) count(most int) int {
	n := d.number()
	if d.check(n <= uint64(most) && n <= uint64(len(d.b))); d.bad {
		return 0
	}
	return int(n)
}

func (d *decoder) take(n int) []byte {
	if d.check(n <= len(d.b)); d.bad {
		return make([]byte, min(n, len(hash{})))
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) text(most int) string {
	n := d.count(most)
	return string(d.take(n))
}

func (d *decoder) byte() byte { return d.take(1)[0] }

func (d *decoder) flag() bool {
	b := d.byte()
	d.check(b <= 1)
	return b == 1
}

func (d *decoder) hash() (h hash) {
	copy(h[:], d.take(len(h)))
	return h
}

func (d *decoder) mode() fs.FileMode {
	n := d.number()
	d.check(n&^uint64(modeBits) == 0)
	return fs.FileMode(n) & modeBits
}

func (d *decoder) placed() placed {
	p := placed{hash: d.hash()}
	p.place.packed = d.flag()
	pack := d.number()
	d.check(pack <= math.MaxUint32)
	p.place.pack = uint32(pack)
	p.place.offset, p.place.stored, p.place.size = d.size(), d.size(), d.size()
	d.check(p.place.offset <= math.MaxInt64-p.place.stored)
	return p
}

// change reads the change that follows that of the path last.
func (d *decoder) change(last string) change {
	shared := d.number()
	if d.check(shared <= uint64(len(last))); d.bad {
		return change{}
	}
	c := change{path: last[:shared] + d.text(maxPath)}
	d.check(c.path > last && validPath(c.path))
	c.gone, c.entry = d.entry()
	return c
}

func (d *decoder) entry() (gone bool, e entry) {
	kind := d.byte()
	if kind == goneKind {
		return true, entry{}
	}
	e.kind = Kind(kind)
	switch e.kind {
	case None:
	case File:
		e.mode, e.size, e.hash = d.mode(), d.size(), d.hash()
	case Dir:
		e.mode = d.mode()
	case Link:
		e.target = d.text(maxTarget)
		d.check(!strings.Contains(e.target, "\x00"))
	case Skipped:
		e.reason, e.size = Reason(d.byte()), d.size()
		d.check(e.reason > Kept && e.reason <= Deep)
		if e.reason == Large {
			e.hash = d.hash()
		}
	default:
		d.check(false)
	}
	return false, e
}

// validPath reports whether a path of a tree is absolute and clean, so that it
// names one place only.
func validPath(p string) bool {
	if p == "" || len(p) > maxPath || strings.Contains(p, "\x00") {
		return false
	}
	rest := p
	if i := strings.IndexByte(p, '/'); i > 0 && strings.HasSuffix(p[:i], ":") {
		rest = p[i:] // the volume of a path of Windows
	}
	return strings.HasPrefix(rest, "/") && path.Clean(rest) == rest
}
