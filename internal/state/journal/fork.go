package journal

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

// Fork copies the beginning of a log, byte for byte, with the blobs it names.
// The copy is made aside and appears all at once. It works on a damaged log as
// long as the damage is behind at.
func (s *Local) Fork(ctx context.Context, from string, at int64, to string) error {
	if err := s.fork(ctx, from, at, to); err != nil {
		return fmt.Errorf("forking session %s at event %d: %w", from, at, err)
	}
	return nil
}

func (s *Local) fork(ctx context.Context, from string, at int64, to string) error {
	if err := s.check(); err != nil {
		return err
	}
	src, err := s.find(from)
	if err != nil {
		return err
	}
	dst, err := s.newDir(to)
	if err != nil {
		return err
	}
	if at < 1 {
		return errors.New("a fork keeps at least one event")
	}
	made := path.Dir(dst) + "/.fork-" + to
	s.fault("fork.write")
	if err := s.d.remove(made); err != nil { // left by a crash
		return err
	}
	if err := s.d.mkdir(made); err != nil {
		return err
	}
	m, err := s.copyPrefix(ctx, src, at, made)
	if err == nil {
		m.ID, m.Parent, m.ForkSeq = to, from, at
		err = s.finishFork(src, made, dst, m)
	}
	if err != nil {
		_ = s.d.remove(made) // what matters is the first error
		return err
	}
	s.fault("fork.written")
	s.index(entry{Meta: m})
	return nil
}

func (s *Local) finishFork(src, made, dst string, m Meta) error {
	old, _ := s.readMeta(src) // labels and tenant are not in the log
	m.Tenant, m.Labels = old.Tenant, old.Labels
	m.Updated = s.now().UTC().Format(time.RFC3339Nano)
	m.Created = m.Updated
	if err := s.writeMeta(made, m); err != nil {
		return err
	}
	if s.durable() {
		f, err := s.d.open(made+"/meta.json", toAppend)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close(), s.d.syncDir(made)); err != nil {
			return err
		}
	}
	if err := s.d.rename(made, dst); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = ErrExists
		}
		return err
	}
	if s.durable() {
		return s.syncDirs(dst)
	}
	return nil
}

// copyPrefix copies the lines up to at, and what they name, and returns what
// they say for the listing.
func (s *Local) copyPrefix(ctx context.Context, src string, at int64, dst string) (Meta, error) {
	var m Meta
	r, err := readFrom(s.d, src, place{seg: 1})
	if err != nil {
		return m, err
	}
	defer r.close()
	out := segmentCopy{s: s, dir: dst}
	defer out.drop()
	fetch := s.fetch(src)
	named := map[string]bool{}
	note := func(sha string) { named[sha] = true }
	for r.at.seq < at && r.step() {
		if err := ctx.Err(); err != nil {
			return m, err
		}
		if err := out.line(r.segs[0].n, r.line.raw); err != nil {
			return m, err
		}
		hashesIn(r.line.raw, note)
		if r.line.ref != nil {
			ref, err := r.line.blobRef()
			if err != nil {
				return m, err
			}
			body, err := fetch(ref)
			if err != nil {
				return m, err
			}
			hashesIn(body, note)
		}
		if err := m.foldLine(r.line, fetch); err != nil {
			return m, err
		}
	}
	if r.at.seq < at {
		return m, errors.Join(fmt.Errorf("the log ends at event %d", r.at.seq), r.err)
	}
	m.Bytes = out.total
	if m.Status != statusIdle {
		m.Status = statusInterrupted
	}
	return m, errors.Join(out.finish(), s.copyBlobs(ctx, src, dst, named))
}

// copyBlobs copies those of the named blobs that there are. Not everything that
// looks like the name of a blob is one.
func (s *Local) copyBlobs(ctx context.Context, src, dst string, named map[string]bool) error {
	have, err := s.d.list(src + "/blobs")
	if err != nil {
		return err
	}
	to := blobs{s: s, dir: dst}
	for _, sha := range have {
		if !named[sha] {
			continue
		}
		f, err := s.d.open(blobName(src, sha), toRead)
		if err != nil {
			return err
		}
		size, err := f.Size()
		if err == nil {
			var got string
			if got, _, err = to.put(ctx, io.NewSectionReader(f, 0, size), 0); err == nil && got != sha {
				err = fmt.Errorf("blob %s does not have its hash: %w", sha, ErrDamaged)
			}
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return to.sync()
}

// A segmentCopy writes lines into segments of the same numbers.
type segmentCopy struct {
	s     *Local
	dir   string
	seg   int
	file  file
	w     *bufio.Writer
	total int64
}

func (c *segmentCopy) line(seg int, raw []byte) error {
	if seg != c.seg {
		if err := c.finish(); err != nil {
			return err
		}
		f, err := c.s.d.open(segmentName(c.dir, seg), toCreate)
		if err != nil {
			return err
		}
		c.seg, c.file, c.w = seg, f, bufio.NewWriterSize(f, 256<<10)
	}
	c.total += int64(len(raw)) + 1
	if _, err := c.w.Write(raw); err != nil {
		return err
	}
	return c.w.WriteByte('\n')
}

// finish completes the file in progress.
func (c *segmentCopy) finish() error {
	if c.file == nil {
		return nil
	}
	err := c.w.Flush()
	if err == nil && c.s.durable() {
		err = c.file.Sync()
	}
	err = errors.Join(err, c.file.Close())
	c.file = nil
	return err
}

func (c *segmentCopy) drop() {
	if c.file != nil {
		_ = c.file.Close() // the copy is given up
	}
}
