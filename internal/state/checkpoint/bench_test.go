package checkpoint

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// fillTree makes n files in folders of twenty, of 1 to 8 KiB, half of them text.
func fillTree(t testing.TB, root string, n int, rnd *rand.Rand) (size int64) {
	t.Helper()
	for i := range n {
		dir := filepath.Join(root, fmt.Sprintf("pkg%02d", i/400), fmt.Sprintf("part%02d", i/20%20))
		if i%20 == 0 {
			must(t, os.MkdirAll(dir, 0o755))
		}
		data := make([]byte, 1024+rnd.IntN(7*1024))
		for j := range data {
			data[j] = byte(rnd.Uint32())
			if i%2 == 0 {
				data[j] = "abcdefgh ijkl\n"[data[j]%14]
			}
		}
		must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%05d.go", i)), data, 0o644))
		size += int64(len(data))
	}
	return size
}

func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{500, 20_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRig(b)
			fillTree(b, r.root, n, rand.New(rand.NewPCG(1, 2)))
			r.age()
			r.take(false)
			for b.Loop() {
				r.take(false)
			}
		})
	}
}

func BenchmarkFirst(b *testing.B) {
	r := newRig(b)
	fillTree(b, r.root, 20_000, rand.New(rand.NewPCG(1, 2)))
	r.age()
	for b.Loop() {
		r.Close()
		must(b, os.RemoveAll(r.c.Dir))
		r.open()
		r.take(false)
	}
}

func BenchmarkOpen(b *testing.B) {
	r := newRig(b)
	fillTree(b, r.root, 20_000, rand.New(rand.NewPCG(1, 2)))
	r.age()
	r.take(false)
	for b.Loop() {
		r.reopen()
	}
}

func BenchmarkTouch(b *testing.B) {
	r := newRig(b)
	fillTree(b, r.root, 20_000, rand.New(rand.NewPCG(1, 2)))
	r.age()
	r.take(false)
	path := r.path("pkg00/part00/file00001.go")
	n := 0
	for b.Loop() {
		n++
		must(b, os.WriteFile(path, fmt.Appendln(nil, n), 0o644))
		_, err := r.Touch(b.Context(), Label{Ours: true}, path)
		must(b, err)
	}
}

func BenchmarkRewindOfTwoThousandFiles(b *testing.B) {
	r := newRig(b)
	fillTree(b, r.root, 20_000, rand.New(rand.NewPCG(1, 2)))
	r.age()
	first := r.take(false)
	for b.Loop() {
		for i := range 5 {
			r.remove(fmt.Sprintf("pkg%02d", i))
		}
		r.take(true)
		if res := r.rewind(first, Select{}); len(res.Done) != 2105 || len(res.Left) > 0 {
			b.Fatal(len(res.Done), len(res.Left))
		}
	}
}

// A walk asks of every folder whether it is ignored.
func BenchmarkRules(b *testing.B) {
	text := ""
	for i := range 50 {
		text += fmt.Sprintf("name%d/\n*.ext%d\n/top/of%d\nlib/**/x%d\n", i, i, i, i)
	}
	c := &chain{nil, "/ws", parseRules(text)}
	for b.Loop() {
		c.ignored("/ws/internal/state/checkpoint/testdata", true)
	}
}
