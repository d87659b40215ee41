//go:build unix

package checkpoint

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"dure/internal/prooftest"
)

// script changes a folder at random, as tools and shell commands do.
type script struct {
	*rig
	rnd *rand.Rand
}

func (s *script) name() string {
	names := []string{"a", "b.go", "main.go", "한글 이름", "e\u0301", "é", "\xff", "x y", "-n", "new\nline", "UP", "up", ".hidden", "lib"}
	return names[s.rnd.IntN(len(names))]
}

// pick returns a random entry below the root, "" when there is none.
func (s *script) pick(want func(fs.DirEntry) bool) string {
	var all []string
	_ = filepath.WalkDir(s.root, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == ".git" {
			return fs.SkipDir
		}
		if err == nil && p != s.root && want(d) {
			all = append(all, p)
		}
		return nil
	})
	if len(all) == 0 {
		return ""
	}
	return all[s.rnd.IntN(len(all))]
}

func isFile(d fs.DirEntry) bool { return d.Type().IsRegular() }
func isDir(d fs.DirEntry) bool  { return d.IsDir() }
func isAny(fs.DirEntry) bool    { return true }

func (s *script) dir() string {
	if d := s.pick(isDir); d != "" && s.rnd.IntN(4) > 0 {
		return d
	}
	return s.root
}

func (s *script) content() []byte {
	switch s.rnd.IntN(5) {
	case 0:
		return nil
	case 1:
		return []byte{0, 1, 2, byte(s.rnd.Uint32())}
	case 2:
		return []byte("the same every time\n")
	}
	var b strings.Builder
	for range s.rnd.IntN(60) {
		fmt.Fprintf(&b, "line %d\n", s.rnd.IntN(1000))
	}
	return []byte(b.String())
}

// step does one thing; what the system refuses is left.
func (s *script) step() {
	switch s.rnd.IntN(11) {
	case 0, 1, 2: // create
		_ = os.WriteFile(filepath.Join(s.dir(), s.name()), s.content(), 0o644)
	case 3: // edit in place
		if p := s.pick(isFile); p != "" {
			if f, err := os.OpenFile(p, os.O_WRONLY|os.O_APPEND, 0); err == nil {
				_, _ = f.Write([]byte("more\n"))
				f.Close()
			}
		}
	case 4: // edit in place, of the same length
		if p := s.pick(isFile); p != "" {
			if data, err := os.ReadFile(p); err == nil && len(data) > 0 {
				data[s.rnd.IntN(len(data))] ^= 1
				if f, err := os.OpenFile(p, os.O_WRONLY, 0); err == nil {
					_, _ = f.Write(data)
					f.Close()
				}
			}
		}
	case 5:
		_ = os.MkdirAll(filepath.Join(s.dir(), s.name(), s.name()), 0o755)
	case 6:
		if p := s.pick(isAny); p != "" {
			_ = os.RemoveAll(p)
		}
	case 7:
		if p := s.pick(isAny); p != "" {
			_ = os.Rename(p, filepath.Join(s.dir(), s.name()))
		}
	case 8:
		if p := s.pick(func(d fs.DirEntry) bool { return d.Type()&fs.ModeSymlink == 0 }); p != "" {
			modes := []fs.FileMode{0o755, 0o700, 0o555, 0o500}
			if info, err := os.Lstat(p); err == nil && !info.IsDir() {
				modes = append(modes, 0o644, 0o600, 0o444)
			}
			_ = os.Chmod(p, modes[s.rnd.IntN(len(modes))])
		}
	case 9:
		_ = os.Symlink([]string{filepath.Join(filepath.Dir(s.root), "outside"), "..", "nowhere", s.name()}[s.rnd.IntN(4)], filepath.Join(s.dir(), s.name()))
	case 10:
		if p := s.pick(isFile); p != "" {
			_ = os.Link(p, filepath.Join(s.dir(), s.name()))
		}
	}
}

// seed is DURE_SEED, or where that is not set one of its own for each long run.
func seed(t testing.TB) uint64 {
	t.Helper()
	n := uint64(1)
	if prooftest.Long() {
		n = uint64(time.Now().UnixNano())
	}
	if v := os.Getenv("DURE_SEED"); v != "" {
		var err error
		n, err = strconv.ParseUint(v, 10, 64)
		must(t, err)
	}
	t.Logf("DURE_SEED=%d", n)
	return n
}

// Whatever scripts do to a folder, every snapshot brings back what was there, byte
// for byte; and the repository of the user is never touched.
func TestRandomScripts(t *testing.T) {
	scripts := 6
	if prooftest.Long() {
		scripts = 300
	}
	first := seed(t)
	for i := range scripts {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(first, uint64(i)))
			r := newRig(t, ".git/HEAD=ref: refs/heads/main\n", ".git/objects/ab/cd=\x01\x02")
			git := picture(t, r.path(".git"))
			s := &script{r, rnd}
			type point struct {
				id      ID
				picture string
			}
			var points []point
			for range 12 {
				for range rnd.IntN(12) {
					s.step()
				}
				points = append(points, point{r.take(true), r.picture()})
				if rnd.IntN(5) == 0 {
					r.reopen()
				}
			}
			for range 5 {
				p := points[rnd.IntN(len(points))]
				for range rnd.IntN(4) {
					s.step()
				}
				r.take(true)
				res := r.rewind(p.id, Select{})
				equal(t, "left", r.items(res.Left), "")
				equal(t, "rewound to "+string(p.id), r.picture(), p.picture)
				if t.Failed() {
					return
				}
			}
			equal(t, "the repository", picture(t, r.path(".git")), git)
		})
	}
}

// What a store takes on the disk, and how long a walk takes, in a tree like that
// of a large project. The times are those of the processor, for both of two cores
// together: other programs run on the machine of the tests.
func TestLargeTree(t *testing.T) {
	files, steps := 500, 10
	if prooftest.Long() {
		files, steps = 20_000, 60
	}
	rnd := rand.New(rand.NewPCG(seed(t), 0))
	r := newRig(t)
	fillTree(t, r.root, files, rnd)
	contents := map[string]bool{}
	unique := int64(0)
	count := func() {
		must(t, filepath.WalkDir(r.root, func(p string, d fs.DirEntry, err error) error {
			if err != nil || !isFile(d) {
				return err
			}
			data, err := os.ReadFile(p)
			if !contents[string(data)] {
				contents[string(data)] = true
				unique += int64(len(data))
			}
			return err
		}))
	}
	count()
	begun := time.Now()
	first, want := r.take(true), r.picture()
	t.Logf("first snapshot of %d files: %v", files, time.Since(begun))
	s := &script{r, rnd}
	for range steps {
		for range 3 {
			s.step()
		}
		count()
		r.take(true)
	}
	before := r.Usage()
	begun, cpu := time.Now(), processor(t)
	const walks = 10
	for range walks {
		r.take(true)
	}
	took, used := time.Since(begun)/walks, (processor(t)-cpu)/walks
	if r.Usage() != before {
		t.Errorf("snapshots of nothing new took %d bytes", r.Usage()-before)
	}
	disk := size(t, r.c.Dir)
	t.Logf("%d files: a walk takes %v, %v of a processor; %d bytes of unique contents take %d on the disk, %.3f times as much", files, took, used, unique, disk, float64(disk)/float64(unique))
	if used > 500*time.Millisecond {
		t.Errorf("a walk took %v of the processor", used)
	}
	if float64(disk) > 1.2*float64(unique) {
		t.Errorf("%d bytes of unique contents take %d on the disk", unique, disk)
	}
	begun = time.Now()
	res := r.rewind(first, Select{})
	t.Logf("rewind of %d paths: %v", len(res.Done), time.Since(begun))
	equal(t, "left", r.items(res.Left), "")
	if r.picture() != want {
		t.Error("the tree is not what it was")
	}
}

// size is what a folder takes in blocks of the disk.
func size(t testing.TB, dir string) (n int64) {
	t.Helper()
	must(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st syscall.Stat_t
		err = syscall.Lstat(p, &st)
		n += st.Blocks * 512
		return err
	}))
	return n
}

func processor(t testing.TB) time.Duration {
	t.Helper()
	var u syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
