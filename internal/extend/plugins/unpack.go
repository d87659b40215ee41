package plugins

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
)

// unpack writes what an archive holds into a folder: a zip, or a tar, as it is or
// compressed with gzip. Which of them it is, its first bytes tell.
func unpack(archive *os.File, into *os.Root, limits Limits) error {
	info, err := archive.Stat()
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	size := info.Size()
	if size > limits.Archive {
		return fmt.Errorf("%w: the archive has more than %d MiB", ErrLarge, limits.Archive>>20)
	}
	g := newGrower(into, limits, max(size, 1))
	head := make([]byte, 4)
	n, err := archive.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("unpacking: %w", err)
	}
	from := io.NewSectionReader(archive, 0, size)
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK")):
		err = g.unzip(from, size)
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		var z *gzip.Reader
		if z, err = gzip.NewReader(from); err == nil {
			err = g.untar(z)
		}
	default:
		err = g.untar(from)
	}
	if err != nil {
		return fmt.Errorf("unpacking: %w", err)
	}
	return nil
}

// maxEntries bounds the directory of a zip before it is read into memory. What lies in
// it may hold zips of its own, whose entries are counted too.
func (g *grower) maxEntries() int { return 10 * g.limits.Files }

func (g *grower) unzip(from *io.SectionReader, size int64) error {
	n, err := countEntries(from)
	if err != nil {
		return err
	}
	if n > g.maxEntries() {
		return fmt.Errorf("%w: its list has more than %d files", ErrLarge, g.maxEntries())
	}
	z, err := zip.NewReader(from, size)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnsafe, err)
	}
	for _, f := range z.File {
		if err := g.entry(f); err != nil {
			return err
		}
	}
	return nil
}

func (g *grower) entry(f *zip.File) error {
	const encrypted = 1
	mode := f.Mode()
	switch {
	case f.Flags&encrypted != 0:
		return fmt.Errorf("%w: %q is encrypted", ErrUnsafe, clip(f.Name))
	case mode.IsDir():
		return g.folder(f.Name)
	case !mode.IsRegular():
		return notFile(f.Name)
	}
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrUnsafe, clip(f.Name), err)
	}
	defer r.Close()
	return g.file(f.Name, mode, r)
}

// countEntries counts what may be an entry of the directory of a zip.
func countEntries(from io.ReaderAt) (int, error) {
	mark := []byte("PK\x01\x02")
	buf := make([]byte, 256<<10)
	count, kept := 0, 0
	for at := int64(0); ; {
		n, err := from.ReadAt(buf[kept:], at)
		at += int64(n)
		have := buf[:kept+n]
		count += bytes.Count(have, mark)
		if errors.Is(err, io.EOF) {
			return count, nil
		}
		if err != nil {
			return 0, err
		}
		kept = copy(buf, have[len(have)-len(mark)+1:]) // an entry may begin at the seam
	}
}

func (g *grower) untar(from io.Reader) error {
	// Headers and padding come with each entry.
	bound := &io.LimitedReader{R: from, N: g.most() + 4096*int64(g.limits.Files) + 1}
	t := tar.NewReader(bound)
	for entries := 0; ; entries++ {
		h, err := t.Next()
		switch {
		case errors.Is(err, io.EOF):
			if entries == 0 {
				return fmt.Errorf("%w: it is neither a zip nor a tar, or an empty one", ErrUnsafe)
			}
			return nil
		case bound.N <= 0:
			return fmt.Errorf("%w: it unpacks to more than it may", ErrUnsafe)
		case err != nil && entries == 0:
			return fmt.Errorf("%w: it is neither a zip nor a tar, or an empty one", ErrUnsafe)
		case err != nil:
			return fmt.Errorf("%w: %w", ErrUnsafe, err)
		case entries > g.limits.Files:
			return fmt.Errorf("%w: it has more than %d files", ErrLarge, g.limits.Files)
		}
		switch h.Typeflag {
		case tar.TypeXGlobalHeader: // says nothing of a file
		case tar.TypeDir:
			if h.Name == "./" || h.Name == "." {
				continue
			}
			err = g.folder(h.Name)
		case tar.TypeReg:
			err = g.file(h.Name, h.FileInfo().Mode(), t)
		case tar.TypeSymlink:
			err = g.link(h.Name, h.Linkname)
		default:
			err = notFile(h.Name)
		}
		if err != nil {
			return err
		}
	}
}

func notFile(name string) error {
	return fmt.Errorf("%w: %q is a link or a device", ErrUnsafe, clip(name))
}

// link takes a link in, where links are followed at the end.
func (g *grower) link(name, to string) error {
	if g.links == nil {
		return notFile(name)
	}
	name, err := checkPath(name)
	if err != nil {
		return err
	}
	g.links[name] = to
	return g.claim(name, true)
}

// resolve puts a copy in the place of each link that leads to a file of the tree. Other
// links are not there: nothing reads them.
func (g *grower) resolve() error {
	for _, name := range slices.Sorted(maps.Keys(g.links)) {
		to := path.Join(path.Dir(name), g.links[name])
		if _, chained := g.links[to]; chained || !g.files[to] || path.IsAbs(g.links[name]) {
			continue
		}
		if err := g.copyFile(name, to); err != nil {
			return fmt.Errorf("following a link: %w", err)
		}
	}
	return nil
}

func (g *grower) copyFile(name, from string) error {
	f, err := g.root.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	delete(g.files, name)
	delete(g.names, fold(name))
	return g.file(name, info.Mode(), f)
}
