package plugins

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// day is when tests begin.
var day = time.Date(2030, 5, 1, 12, 0, 0, 0, time.UTC)

// newStore returns a store in a folder of its own, with a clock that stands still.
func newStore(t testing.TB) *Store {
	t.Helper()
	return &Store{Dir: filepath.Join(t.TempDir(), "plugins"), Version: "1.2.3", Now: func() time.Time { return day }}
}

// folder writes the files of a txtar into a new folder and returns it.
func folder(t testing.TB, files string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "sample")
	write(t, dir, files)
	return dir
}

func write(t testing.TB, dir, files string) {
	t.Helper()
	for _, f := range txtar.Parse([]byte(files)).Files {
		at := filepath.Join(dir, filepath.FromSlash(f.Name))
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		mode := os.FileMode(0o600)
		if strings.HasPrefix(f.Name, "bin/") {
			mode = 0o700
		}
		if err := os.WriteFile(at, f.Data, mode); err != nil {
			t.Fatal(err)
		}
	}
}

// member is an entry of an archive.
type member struct {
	name string
	data string
	mode os.FileMode // 0 = 0644; links and devices say so here
	link string      // of a tar
	kind byte        // of a tar; 0 = a file
}

func zipOf(t testing.TB, list ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, m := range list {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		if m.mode == 0 {
			m.mode = 0o644
		}
		h.SetMode(m.mode)
		f, err := w.CreateHeader(h)
		if err == nil {
			_, err = io.WriteString(f, m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func tarOf(t testing.TB, list ...member) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, m := range list {
		h := &tar.Header{Name: m.name, Size: int64(len(m.data)), Mode: 0o644, Linkname: m.link, Typeflag: m.kind}
		if m.mode != 0 {
			h.Mode = int64(m.mode)
		}
		if m.kind != 0 {
			h.Size = 0
		}
		err := w.WriteHeader(h)
		if err == nil && m.kind == 0 {
			_, err = io.WriteString(w, m.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// web serves addresses from memory.
func web(pages map[string][]byte) Getter {
	return func(_ context.Context, address string, most int64, to io.Writer) error {
		data, ok := pages[address]
		if !ok {
			return fmt.Errorf("there is no %s", address)
		}
		if int64(len(data)) > most {
			return ErrLarge
		}
		_, err := to.Write(data)
		return err
	}
}

// tree lists the files of a folder, with what can be run marked.
func tree(t testing.TB, dir string) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(dir, func(at string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, at)
		line := fmt.Sprintf("%s %v", filepath.ToSlash(rel), info.Mode())
		all = append(all, line)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// install takes in what a source has.
func install(t testing.TB, s *Store, src Source) Installed {
	t.Helper()
	c, err := s.Prepare(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(c); err != nil {
		t.Fatal(err)
	}
	in, err := s.Find(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	return in
}
