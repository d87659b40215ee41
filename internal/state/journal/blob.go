package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"sync"
)

func blobName(dir, sha string) string { return dir + "/blobs/" + sha }

// blobs writes the blobs of one open session. A blob is on the disk before it has
// its name, so that no name ever stands for something else; the name is durable
// with the next Barrier.
type blobs struct {
	s   *Local
	dir string

	mu    sync.Mutex
	dirty bool            // there are names that are not synced
	known map[string]bool // hashes of what this lease has written or checked
}

// maxKnown bounds the hashes that are remembered. They only save work.
const maxKnown = 4096

// put stores what r holds, up to limit bytes (0 = all).
func (b *blobs) put(ctx context.Context, r io.Reader, limit int64) (sha string, size int64, err error) {
	if limit > 0 {
		r = io.LimitReader(r, limit)
	}
	h := sha256.New()
	err = b.write(func(w io.Writer) (string, error) {
		size, err = io.Copy(io.MultiWriter(w, h), &ctxReader{ctx, r})
		sha = hex.EncodeToString(h.Sum(nil))
		return sha, err
	})
	if err != nil {
		return "", 0, fmt.Errorf("storing a blob: %w", err)
	}
	return sha, size, nil
}

// putBytes stores data, unless it is there, with its name.
func (b *blobs) putBytes(data []byte) (string, error) {
	sum := sha256.Sum256(data)
	sha := hex.EncodeToString(sum[:])
	b.mu.Lock()
	known := b.known[sha]
	b.mu.Unlock()
	var err error
	if !known && !b.adopt(sha, int64(len(data))) {
		err = b.write(func(w io.Writer) (string, error) {
			_, err := w.Write(data)
			return sha, err
		})
	}
	if err == nil {
		err = b.sync()
	}
	if err != nil {
		return "", fmt.Errorf("storing a blob: %w", err)
	}
	return sha, nil
}

// adopt takes a blob of an earlier owner, when it is what its name says.
func (b *blobs) adopt(sha string, size int64) bool {
	f, err := b.s.d.open(blobName(b.dir, sha), toRead)
	if err != nil {
		return false
	}
	defer f.Close()
	if n, err := f.Size(); err != nil || n != size || checkBlob(f, sha, size) != nil {
		return false
	}
	b.keep(sha)
	return true
}

// write makes a file of what fill writes, under the hash that fill returns.
func (b *blobs) write(fill func(io.Writer) (string, error)) error {
	d := b.s.d
	b.s.fault("blob.write")
	if err := ensureDir(d, b.dir+"/blobs"); err != nil {
		return err
	}
	tmp := b.dir + "/blobs/.new-" + NewID(b.s.now())
	f, err := d.open(tmp, toCreate)
	if err != nil {
		return err
	}
	sha, err := fill(f)
	if err == nil && b.s.durable() {
		if serr := f.Sync(); serr != nil {
			err = &syncError{serr}
		}
	}
	err = errors.Join(err, f.Close())
	b.s.fault("blob.written")
	if err == nil {
		err = d.rename(tmp, blobName(b.dir, sha))
	}
	if err != nil {
		_ = d.remove(tmp) // what matters is the first error
		return err
	}
	b.s.fault("blob.named")
	b.keep(sha)
	return nil
}

// keep remembers a blob whose name has to be synced at the next Barrier.
func (b *blobs) keep(sha string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.dirty = true
	if b.known == nil || len(b.known) >= maxKnown {
		b.known = map[string]bool{}
	}
	b.known[sha] = true
}

// sync makes the names of all blobs durable.
func (b *blobs) sync() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.dirty || !b.s.durable() {
		return nil
	}
	if err := errors.Join(b.s.d.syncDir(b.dir+"/blobs"), b.s.d.syncDir(b.dir)); err != nil {
		return &syncError{err}
	}
	b.dirty = false
	b.s.fault("blob.synced")
	return nil
}

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// fetch returns what reads the long bodies of a session.
func (s *Local) fetch(dir string) func(blobRef) ([]byte, error) {
	return func(ref blobRef) ([]byte, error) {
		b, err := readAll(s.d, blobName(dir, ref.SHA256), maxBody)
		if err != nil {
			return nil, err
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != ref.SHA256 || int64(len(b)) != ref.Size {
			return nil, fmt.Errorf("blob %s does not have its hash: %w", ref.SHA256, ErrDamaged)
		}
		return b, nil
	}
}

// checkBlob reads a blob and compares its hash.
func checkBlob(f io.ReaderAt, sha string, size int64) error {
	r := &blobReader{r: io.NewSectionReader(f, 0, size), hash: sha256.New(), sha: sha}
	_, err := io.Copy(io.Discard, r)
	return err
}

// Blob opens a blob of a session.
func (s *Local) Blob(_ context.Context, id, sha string) (io.ReadCloser, error) {
	dir, err := s.find(id)
	if err != nil {
		return nil, fmt.Errorf("opening a blob: %w", err)
	}
	if !isHash(sha) {
		return nil, fmt.Errorf("opening blob %.80q of session %s: not a SHA-256", sha, id)
	}
	f, err := s.d.open(blobName(dir, sha), toRead)
	if err != nil {
		return nil, fmt.Errorf("opening blob %s of session %s: %w", sha, id, err)
	}
	size, err := f.Size()
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("opening blob %s of session %s: %w", sha, id, err)
	}
	return &blobReader{io.NewSectionReader(f, 0, size), f, sha256.New(), sha}, nil
}

// A blobReader compares the hash when it comes to the end.
type blobReader struct {
	r    io.Reader
	file io.Closer
	hash hash.Hash
	sha  string
}

func (r *blobReader) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	r.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && hex.EncodeToString(r.hash.Sum(nil)) != r.sha {
		err = fmt.Errorf("blob %s does not have its hash: %w", r.sha, ErrDamaged)
	}
	return n, err
}

func (r *blobReader) Close() error { return r.file.Close() }

// BlobPath finds a blob by the beginning of its hash. It is "" when there is
// none, more than one, or no file that another program could open.
func (s *Local) BlobPath(id, prefix string) string {
	dir, err := s.find(id)
	if err != nil || prefix == "" || strings.Trim(prefix, "0123456789abcdef") != "" {
		return ""
	}
	names, err := s.d.list(dir + "/blobs")
	if err != nil {
		return ""
	}
	found := ""
	for _, name := range names {
		if strings.HasPrefix(name, prefix) && isHash(name) {
			if found != "" {
				return ""
			}
			found = name
		}
	}
	if found == "" {
		return ""
	}
	return s.d.real(blobName(dir, found))
}

// LogPath returns the file that the log of a session begins with; "" = there is none
// that another program could open.
func (s *Local) LogPath(id string) string {
	dir, err := s.find(id)
	if err != nil {
		return ""
	}
	return s.d.real(segmentName(dir, 1))
}

// hashesIn calls f with every word of a text that could be the name of a blob.
func hashesIn(text []byte, f func(sha string)) {
	for len(text) > 0 {
		i := bytes.IndexAny(text, "0123456789abcdef")
		if i < 0 {
			return
		}
		text = text[i:]
		n := 0
		for n < len(text) && (text[n] >= '0' && text[n] <= '9' || text[n] >= 'a' && text[n] <= 'f') {
			n++
		}
		if n == 64 {
			f(string(text[:64]))
		}
		text = text[n:]
	}
}
