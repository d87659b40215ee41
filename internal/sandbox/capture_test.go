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
