package checkpoint

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// indexEvery is after how many files that were looked at anew the index is
// written; Close writes it too. What it lacks is read again once.
const indexEvery = 1000

// indexVersion is the first byte of the index.
const indexVersion = 1

// saveIndex writes what the last walk knows of files: with it, the next process
// need not read them. It is no more than a memory: a file whose stat differs is
// read, and so are all when it is lost or damaged.
func (s *Store) saveIndex() error {
	paths := make([]string, 0, len(s.state))
	for p, n := range s.state {
		if n.kind == File && n.sure {
			paths = append(paths, p)
		}
	}
	slices.SortFunc(paths, cmp.Compare[string])
	var b []byte
	last := ""
	for _, p := range paths {
		n := s.state[p]
		shared := sharedPrefix(last, p)
		b = binary.AppendUvarint(b, uint64(shared))
		b = append(binary.AppendUvarint(b, uint64(len(p)-shared)), p[shared:]...)
		b = binary.AppendUvarint(b, uint64(n.st.mode))
		b = binary.AppendVarint(b, n.st.size)
		b = binary.AppendVarint(b, n.st.mtime)
		b = binary.AppendVarint(b, n.st.ctime)
		b = binary.AppendUvarint(b, n.st.inode)
		b = append(b, n.hash[:]...)
		last = p
	}
	sum := sha256.Sum256(b)
	s.stale = 0
	return s.replaceFile("index", append(append([]byte{indexVersion}, sum[:]...), b...), false)
}

func (s *Store) loadIndex() {
	b, err := readOwn(filepath.Join(s.dir, "index"))
	if err != nil || len(b) < 1+sha256.Size || b[0] != indexVersion || len(b) > maxRecord {
		return
	}
	if sum := sha256.Sum256(b[1+sha256.Size:]); !bytes.Equal(sum[:], b[1:1+sha256.Size]) {
		return
	}
	d := decoder{b: b[1+sha256.Size:]}
	for last := ""; len(d.b) > 0; {
		shared := d.number()
		if d.check(shared <= uint64(len(last))); d.bad {
			return
		}
		path := last[:shared] + d.text(maxPath)
		st := stat{mode: fs.FileMode(d.number()), size: d.signed(), mtime: d.signed(), ctime: d.signed(), inode: d.number()}
		h := d.hash()
		if d.bad {
			return
		}
		if n := s.state[path]; n != nil && n.kind == File && n.hash == h && n.mode == st.mode&modeBits {
			n.st, n.sure = st, true
		}
		last = path
	}
}

// replaceFile writes a file of the store, all or nothing.
func (s *Store) replaceFile(name string, data []byte, sync bool) error {
	path := filepath.Join(s.dir, name)
	s.fault(name + ".write")
	f, err := openOwn(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	s.fault(name + ".written")
	if err == nil && sync {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(path+".new", path)
		s.fault(name + ".named")
	}
	if err == nil && sync {
		err = syncDir(s.dir)
	}
	if err != nil {
		_ = os.Remove(path + ".new") // the first error matters
	}
	return err
}
