package sandbox

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever the sizes of the writes, the reader gives back what was written, and
// the ends are the ends of it.
func TestCapture(t *testing.T) {
	for _, size := range []int{0, 1, headLimit, memoryLimit - 1, memoryLimit, memoryLimit + 1, memoryLimit + headLimit/3, 3*memoryLimit + 7, 5 << 20} {
		for _, chunk := range []int{1 << 10, 33333, memoryLimit, 4 << 20} {
			c := &Capture{dir: t.TempDir()}
			want := noise(size)
			for p := want; len(p) > 0; {
				n := min(len(p), chunk)
				_, _ = c.Write(p[:n])
				p = p[n:]
			}
			if c.Size() != int64(size) {
				t.Errorf("%d by %d: size %d", size, chunk, c.Size())
			}
			head, tail, dropped := c.Ends()
			if !bytes.HasPrefix(want, head) || !bytes.HasSuffix(want, tail) || int64(len(head)+len(tail))+dropped != int64(size) {
				t.Errorf("%d by %d: the ends are not the ends", size, chunk)
			}
			r := c.Reader()
			got, err := io.ReadAll(r)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%d by %d: read %d bytes, %v", size, chunk, len(got), err)
			}
			if left, _ := os.ReadDir(c.dir); len(left) > 0 {
				t.Errorf("%d by %d: %d files can be seen", size, chunk, len(left))
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Pages that are read while the output is written are, one after the other, the
// output, whatever their sizes; and any page is what stands there.
func FuzzCapturePage(f *testing.F) {
	f.Add(uint64(1), 5, 3, uint32(30_000))
	f.Add(uint64(2), memoryLimit, 7, uint32(1))
	f.Add(uint64(3), headLimit+1, 100, uint32(headLimit))
	f.Add(uint64(4), 100_000, 20, uint32(64<<10))
	f.Fuzz(func(t *testing.T, seed uint64, chunk, chunks int, page uint32) {
		r := rand.New(rand.NewPCG(seed, 2))
		chunk, chunks = max(chunk, 1)%(memoryLimit+2)+1, max(chunks, 0)%100
		if chunk*chunks > 2<<20 {
			chunks = 2 << 20 / chunk
		}
		size := int(page%(300<<10)) + 1
		c := &Capture{dir: t.TempDir()}
		defer c.Close()
		want := noise(chunk * chunks)
		var got []byte
		for i := range chunks {
			_, _ = c.Write(want[i*chunk : (i+1)*chunk])
			for r.IntN(3) == 0 {
				p, next := c.Page(int64(len(got)), size)
				if got = append(got, p...); next != int64(len(got)) {
					t.Fatalf("page ends at %d, want %d", next, len(got))
				}
			}
			from := r.IntN(len(want))
			p, next := c.Page(int64(from), size)
			if next != int64(max(from, min(from+size, (i+1)*chunk))) && from <= (i+1)*chunk || !bytes.HasPrefix(want[from:], p) {
				t.Fatalf("page of %d from %d of %d ends at %d, or has other bytes", size, from, (i+1)*chunk, next)
			}
		}
		for next := int64(len(got)); ; {
			p, n := c.Page(next, size)
			if len(p) == 0 {
				break
			}
			got, next = append(got, p...), n
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes of %d, or others", len(got), len(want))
		}
	})
}

// A page passes over what was dropped, and says so by where it ends.
func TestPageOverTheGap(t *testing.T) {
	want := noise(1 << 20)
	tail := int64(1<<20 - tailLimit)
	for name, tt := range map[string]struct {
		c    *Capture
		gone int64 // where the gap begins
	}{
		"disk limit": {&Capture{dir: t.TempDir(), max: 512 << 10}, 512 << 10},
		"no disk":    {&Capture{dir: filepath.Join(t.TempDir(), "missing")}, headLimit},
	} {
		_, _ = tt.c.Write(want)
		page, next := tt.c.Page(tt.gone-10, 100)
		if string(page) != string(want[tt.gone-10:tt.gone]) || next != tt.gone {
			t.Errorf("%s: before the gap: %q, %d", name, page, next)
		}
		page, next = tt.c.Page(tt.gone, 100)
		if string(page) != string(want[tail:tail+100]) || next != tail+100 {
			t.Errorf("%s: over the gap: %q, %d", name, page, next)
		}
		if page, next = tt.c.Page(-5, 10); string(page) != string(want[:10]) || next != 10 {
			t.Errorf("%s: before the start: %q, %d", name, page, next)
		}
		tt.c.Close()
		if page, next = tt.c.Page(7, 100); page != nil || next != 7 {
			t.Errorf("%s: closed: %q, %d", name, page, next)
		}
	}
}

func TestCaptureBeyondDiskLimit(t *testing.T) {
	c := &Capture{dir: t.TempDir(), max: 512 << 10}
	defer c.Close()
	want := noise(1 << 20)
	_, _ = c.Write(want)
	got, _ := io.ReadAll(c.Reader())
	mark := "\n[393216 bytes of output were dropped here: more than 524288 bytes]\n"
	if s := string(want[:512<<10]) + mark + string(want[1<<20-tailLimit:]); string(got) != s {
		t.Errorf("read %d bytes, want %d", len(got), len(s))
	}
}

func TestCaptureWithoutDisk(t *testing.T) {
	c := &Capture{dir: filepath.Join(t.TempDir(), "missing")}
	defer c.Close()
	want := noise(1 << 20)
	_, _ = c.Write(want)
	got, _ := io.ReadAll(c.Reader())
	if !bytes.HasPrefix(got, want[:headLimit]) || !bytes.HasSuffix(got, want[1<<20-tailLimit:]) ||
		!strings.Contains(string(got), "[786432 bytes of output were lost here: ") {
		t.Errorf("read %d bytes", len(got))
	}
}

func noise(n int) []byte {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte('a' + r.IntN(26))
	}
	return b
}
