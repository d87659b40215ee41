package journal

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"dure/internal/prooftest"
)

func newBadRig(t *testing.T) (*rig, *badDisk) {
	mem := newMemDisk(time.Now)
	bad := &badDisk{disk: mem}
	return &rig{T: t, mem: mem, s: newLocal(bad, LocalOptions{})}, bad
}

// A full disk refuses appends one by one: what was written of one is taken back,
// and when there is room again the log goes on.
func TestFullDisk(t *testing.T) {
	for _, short := range []int{0, 1, 100, 200} {
		r, bad := newBadRig(t)
		l := r.session("s")
		r.add(l, Batch{Events: numbered(1)})
		bad.write = func(name string, b []byte) (int, error) {
			if isLog(name) {
				return min(short, len(b)-1), syscall.ENOSPC
			}
			return len(b), nil
		}
		_, err := l.Append(t.Context(), Batch{Events: numbered(2), Sync: Barrier, Seal: true})
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "appending to session s: ") {
			t.Fatalf("%d bytes written: %v", short, err)
		}
		bad.write = nil
		r.add(l, Batch{Events: numbered(3), Seal: true})
		r.again()
		if n, err := r.good("s"); n != 5 || err != nil {
			t.Fatalf("%d bytes written: %d events, %v", short, n, err)
		}
		if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
			t.Fatalf("%d bytes written: %+v, %v", short, rep, err)
		}
	}
}

// A short write without an error is one all the same.
func TestShortWrite(t *testing.T) {
	r, bad := newBadRig(t)
	l := r.session("s")
	bad.write = func(_ string, b []byte) (int, error) { return len(b) / 2, nil }
	if _, err := l.Append(t.Context(), Batch{Events: numbered(2)}); err == nil {
		t.Fatal("taken")
	}
	bad.write = nil
	r.add(l, Batch{Events: numbered(1)})
	if n, err := r.good("s"); n != 1 || err != nil {
		t.Fatalf("%d events, %v", n, err)
	}
}

// When the half line cannot be taken back, the lease dies.
func TestHalfLineEndsTheLease(t *testing.T) {
	r, bad := newBadRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(1), Sync: Barrier})
	bad.write = func(_ string, b []byte) (int, error) { return len(b) / 2, syscall.EIO }
	bad.other = func(op, _ string) error {
		if op == "truncate" {
			return syscall.EIO
		}
		return nil
	}
	if _, err := l.Append(t.Context(), Batch{Events: numbered(1)}); !errors.Is(err, syscall.EIO) {
		t.Fatal(err)
	}
	bad.write, bad.other = nil, nil
	dead(t, l, syscall.EIO)
	r.again()
	if l := r.open("s"); l.Head() != 1 || l.Repaired() == nil {
		t.Fatalf("head %d, %+v", l.Head(), l.Repaired())
	}
}

// dead checks that nothing can be written any more.
func dead(t *testing.T, l *lease, want error) {
	t.Helper()
	if l.Valid().Err() == nil {
		t.Error("the lease is valid")
	}
	if _, err := l.Append(t.Context(), Batch{Events: numbered(1)}); !errors.Is(err, want) {
		t.Errorf("append: %v, want %v", err, want)
	}
	if err := l.Snapshot(t.Context(), 1, nil); !errors.Is(err, want) {
		t.Errorf("snapshot: %v, want %v", err, want)
	}
	if _, _, err := l.PutBlob(t.Context(), strings.NewReader(""), 0); !errors.Is(err, want) {
		t.Errorf("blob: %v, want %v", err, want)
	}
}

// An error of fsync is final, wherever it happens.
func TestSyncErrorIsFinal(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		do   func(l *lease) error
	}{
		"barrier": {"/log.", func(l *lease) error {
			_, err := l.Append(background, Batch{Events: numbered(1), Sync: Barrier})
			return err
		}},
		"long body": {"/blobs/", func(l *lease) error {
			_, err := l.Append(background, Batch{Events: texts(1, strings.Repeat("x", 50_000))})
			return err
		}},
		"blob": {"/blobs/", func(l *lease) error {
			_, _, err := l.PutBlob(background, strings.NewReader("x"), 0)
			return err
		}},
		"snapshot": {"/log.", func(l *lease) error { return l.Snapshot(background, 1, nil) }},
		"receipts": {"/receipts", func(l *lease) error {
			_, err := l.Append(background, Batch{Events: numbered(1), Taken: []string{"m"}})
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r, bad := newBadRig(t)
			l := r.session("s")
			r.add(l, Batch{Events: numbered(1)})
			bad.sync = func(name string) error {
				if strings.Contains(name, c.file) {
					return syscall.EIO
				}
				return nil
			}
			if err := c.do(l); !errors.Is(err, syscall.EIO) {
				t.Fatal(err)
			}
			bad.sync = nil
			dead(t, l, syscall.EIO)
			if err := l.Release(t.Context(), Parked, Meta{}); !errors.Is(err, syscall.EIO) {
				t.Errorf("release: %v", err)
			}
			r.open("s")
		})
	}
}

// Nothing that cannot be written ends in a panic or a session that cannot be
// opened later.
func TestReadOnlyDisk(t *testing.T) {
	r, bad := newBadRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(1), Sync: Barrier})
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	bad.other = func(string, string) error { return syscall.EROFS }
	var m Meta
	m.ID = "t"
	for name, err := range map[string]error{
		"create": r.s.Create(t.Context(), m),
		"post":   r.s.Post(t.Context(), "s", "", Msg{ID: "1"}),
		"fork":   r.s.Fork(t.Context(), "s", 1, "t"),
	} {
		if !errors.Is(err, syscall.EROFS) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.s.Acquire(t.Context(), "s", Owner{}); !errors.Is(err, syscall.EROFS) {
		t.Errorf("acquire: %v", err)
	}
	if n, err := r.good("s"); n != 1 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
	for m, err := range r.s.List(t.Context(), Query{}) {
		if err != nil || m.Head != 1 {
			t.Errorf("listed: %+v, %v", m, err)
		}
	}
	bad.other = nil
	r.add(r.open("s"), Batch{Events: numbered(1)})
}

// An owner that finds more in its log than it wrote has lost it.
func TestForeignWriterFences(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(1)})
	f, err := r.mem.open(segmentName(l.dir, 1), toAppend)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Batch{Events: numbered(1)}); !errors.Is(err, ErrFenced) {
		t.Fatal(err)
	}
	dead(t, l, ErrFenced)
}

// Bytes that no Barrier followed are synced within a second, and a log that
// rests costs nothing.
func TestLazySync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, bad := newBadRig(t)
		syncs := 0
		bad.sync = func(name string) error {
			if isLog(name) {
				syncs++
			}
			return nil
		}
		count := func() int {
			bad.mu.Lock()
			defer bad.mu.Unlock()
			return syncs
		}
		l := r.session("s")
		r.add(l, Batch{Events: numbered(1)})
		r.add(l, Batch{Events: numbered(1)})
		time.Sleep(999 * time.Millisecond)
		synctest.Wait()
		if n := count(); n != 0 {
			t.Errorf("%d syncs before a second", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if n := count(); n != 1 {
			t.Errorf("%d syncs after a second", n)
		}
		time.Sleep(time.Hour)
		r.add(l, Batch{Events: numbered(1)})
		r.add(l, Batch{Events: numbered(1), Sync: Barrier})
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := count(); n != 2 {
			t.Errorf("%d syncs in the end", n)
		}
		bad.mu.Lock()
		bad.sync = func(string) error { return syscall.EIO }
		bad.mu.Unlock()
		r.add(l, Batch{Events: numbered(1)})
		time.Sleep(2 * time.Second)
		synctest.Wait()
		dead(t, l, syscall.EIO)
		if err := l.Release(t.Context(), Parked, Meta{}); err == nil {
			t.Error("released in good order")
		}
	})
}

// Barriers of many goroutines share syncs: those who write while one sync is
// under way all have the next.
func TestGroupCommit(t *testing.T) {
	r, bad := newBadRig(t)
	gate := &gatedSync{disk: bad.disk}
	r.s.d = gate
	l := r.session("s")
	const writers = 50
	gate.until = func() bool { return l.Head() == writers }
	done := make(chan error)
	for range writers {
		go func() {
			_, err := l.Append(t.Context(), Batch{Events: numbered(1), Sync: Barrier})
			done <- err
		}()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := gate.n.Load(); n > 2 {
		t.Errorf("%d syncs for %d barriers", n, writers)
	}
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Error(err)
	}
}

// gatedSync is a disk on which syncing a log takes until something has happened.
type gatedSync struct {
	disk
	n     atomic.Int32
	until func() bool
}

func (d *gatedSync) open(name string, how openMode) (file, error) {
	f, err := d.disk.open(name, how)
	if err != nil || !isLog(name) {
		return f, err
	}
	return gatedFile{f, d}, nil
}

type gatedFile struct {
	file
	d *gatedSync
}

func (f gatedFile) Sync() error {
	f.d.n.Add(1)
	for !f.d.until() {
		runtime.Gosched()
	}
	return f.file.Sync()
}

// A lossyDisk forgets in a crash what was not synced: names come and go, and of
// bytes beyond the last sync any blocks may be missing.
type lossyDisk struct {
	*memDisk
	synced map[*memData]int    // bytes of a file that stay
	names  map[string]*memData // names that stay
	dirs   map[string]bool     // folders that stay
}

func newLossyDisk() *lossyDisk {
	return &lossyDisk{newMemDisk(time.Now), map[*memData]int{}, map[string]*memData{}, map[string]bool{".": true}}
}

func (d *lossyDisk) open(name string, how openMode) (file, error) {
	f, err := d.memDisk.open(name, how)
	if err != nil {
		return nil, err
	}
	return lossyFile{f.(memFile), d}, nil
}

type lossyFile struct {
	memFile
	d *lossyDisk
}

func (f lossyFile) Sync() error {
	f.d.synced[f.memData] = len(f.data)
	return nil
}

func (d *lossyDisk) truncate(name string, n int64) error {
	err := d.memDisk.truncate(name, n)
	if f := d.files[name]; err == nil && f != nil {
		d.synced[f] = min(d.synced[f], int(n))
	}
	return err
}

func (d *lossyDisk) syncDir(dir string) error {
	for name, f := range d.files {
		if path.Dir(name) == dir {
			d.names[name] = f
		}
	}
	for name := range d.names {
		if path.Dir(name) == dir && d.files[name] == nil {
			delete(d.names, name)
		}
	}
	for name := range d.memDisk.dirs {
		if path.Dir(name) == dir {
			d.dirs[name] = true
		}
	}
	return nil
}

// crash returns what is left, with everything that is open to chance decided by
// rnd.
func (d *lossyDisk) crash(rnd *rand.Rand) *lossyDisk {
	left := newLossyDisk()
	var stays func(dir string) bool
	lost := map[string]bool{}
	stays = func(dir string) bool {
		return dir == "." || !lost[dir] && stays(path.Dir(dir))
	}
	for _, dir := range sortedKeys(d.memDisk.dirs) {
		lost[dir] = !d.dirs[dir] && rnd.IntN(2) == 0
	}
	for _, dir := range sortedKeys(d.memDisk.dirs) {
		if stays(dir) {
			left.memDisk.dirs[dir], left.dirs[dir] = time.Now(), true
		}
	}
	both := map[string]*memData{}
	for name, f := range d.names {
		both[name] = f
	}
	for _, name := range sortedKeys(d.files) {
		if d.names[name] == nil || rnd.IntN(2) == 0 {
			both[name] = d.files[name]
		}
	}
	for _, name := range sortedKeys(both) {
		f := both[name]
		if !stays(path.Dir(name)) || d.names[name] == nil && rnd.IntN(2) == 0 ||
			d.names[name] != nil && d.files[name] == nil && rnd.IntN(2) == 0 {
			continue
		}
		g := &memData{data: d.survives(f, rnd), changed: time.Now()}
		left.files[name], left.names[name] = g, g
		left.synced[g] = len(g.data)
	}
	return left
}

func (d *lossyDisk) survives(f *memData, rnd *rand.Rand) []byte {
	sure := d.synced[f]
	data := slices.Clone(f.data[:sure+rnd.IntN(len(f.data)-sure+1)])
	if rnd.IntN(2) == 0 {
		for i := sure; i < len(data); i++ {
			if block := i / 512; rand.New(rand.NewPCG(uint64(block), uint64(len(data)))).IntN(3) == 0 {
				data[i] = 0
			}
		}
	}
	return data
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// After a loss of power nothing is missing that was acknowledged as durable: no
// event, no message, no receipt.
func TestPowerLoss(t *testing.T) {
	rounds := uint64(120)
	if prooftest.Long() {
		rounds = 20_000
	}
	outcomes := map[string]int{}
	for seed := range rounds {
		outcomes[powerLoss(t, seed)]++
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Log(outcomes)
	if outcomes["whole"] == 0 || outcomes["torn"] == 0 {
		t.Errorf("the crashes were too tame: %v", outcomes)
	}
}

func powerLoss(t *testing.T, seed uint64) string {
	rnd := rand.New(rand.NewPCG(seed, 1))
	d := newLossyDisk()
	var w, then acked
	var left *lossyDisk
	boundary := rnd.IntN(150)
	s := newLocal(d, LocalOptions{Fault: func(string) {
		if boundary--; boundary == 0 {
			left, then = d.crash(rnd), w.clone()
		}
	}})
	s.segment = 3000
	for _, id := range []string{"s", "t"} {
		var m Meta
		m.ID = id
		if err := s.Create(background, m); err != nil {
			t.Error(err)
		}
	}
	l, err := s.acquire(background, "s")
	if err != nil {
		t.Error(err)
		return ""
	}
	for range 12 {
		w.step(t, s, l, rnd)
	}
	if left == nil {
		left, then = d.crash(rnd), w.clone()
	}
	return then.check(t, left)
}

// acked is what a run was told to be durable, and what is under way.
type acked struct {
	head   int64
	whole  []int64 // heads at which an append ends
	posted []string
	taken  []string
	sent   []string
	n      int

	word               string // of the events under way
	posts, takes, send string
}

func (w *acked) clone() acked {
	c := *w
	for _, list := range []*[]string{&c.posted, &c.taken, &c.sent} {
		*list = slices.Clone(*list)
	}
	c.whole = slices.Clone(c.whole)
	return c
}

func (w *acked) step(t *testing.T, s *Local, l *lease, rnd *rand.Rand) {
	w.n++
	id := fmt.Sprint("m", w.n)
	w.word, w.posts, w.takes, w.send = id, "", "", ""
	b := Batch{Events: texts(1+rnd.IntN(3), id+" "+strings.Repeat("x", rnd.IntN(900))), Seal: rnd.IntN(4) == 0}
	switch rnd.IntN(6) {
	case 0:
		b.Sync = Barrier
	case 1:
		w.posts = id
		if err := s.Post(background, "s", "", Msg{ID: id}); err != nil {
			t.Error(err)
		}
		w.posted, w.posts = append(w.posted, id), ""
	case 2:
		if len(w.posted) > 0 {
			b.Taken, w.takes = w.posted[:1], w.posted[0]
			w.posted = w.posted[1:]
		}
	case 3:
		b.Posts, w.send = map[string][]Msg{"t": {{ID: id}}}, id
	case 4:
		b.Events = texts(1, id+strings.Repeat(" long", 10_000))
	}
	end := l.Head() + int64(len(b.Events))
	if b.Seal {
		end++
	}
	w.whole = append(w.whole, end)
	if _, err := l.Append(background, b); err != nil {
		t.Error(err)
		return
	}
	if b.Sync == Barrier || b.Taken != nil || b.Posts != nil {
		w.head = end
	}
	if b.Taken != nil {
		w.taken = append(w.taken, b.Taken...)
	}
	if b.Posts != nil {
		w.sent = append(w.sent, id)
	}
	w.word, w.takes, w.send = "", "", ""
}

func (w *acked) check(t *testing.T, d *lossyDisk) string {
	s := newLocal(d, LocalOptions{})
	s.redeliverAll()
	if _, err := s.find("s"); err != nil {
		if w.head > 0 || len(w.posted) > 0 {
			t.Errorf("the session is gone: %v", err)
		}
		return "gone"
	}
	r := &rig{T: t, mem: d.memDisk, s: s}
	n, err := r.good("s")
	if n < w.head {
		t.Errorf("%d events are left of %d: %v", n, w.head, err)
	}
	l, err := s.acquire(background, "s")
	if errors.Is(err, ErrDamaged) { // something good behind a hole: never cut off
		return "holes"
	}
	if err != nil {
		t.Error(err)
		return ""
	}
	if l.Head() != 0 && !slices.Contains(w.whole, l.Head()) {
		t.Errorf("head %d is within an append: %v", l.Head(), w.whole)
	}
	w.checkMail(t, s, l)
	if _, err := l.Append(background, Batch{Events: texts(1, "on"), Seal: true, Sync: Barrier}); err != nil {
		t.Error(err)
	}
	if rep, err := s.Verify(background, "s"); err != nil || !rep.OK {
		t.Errorf("%+v, %v", rep, err)
	}
	if l.Repaired() != nil {
		return "torn"
	}
	return "whole"
}

// happened reports whether the append under way is in the log.
func (w *acked) happened(t *testing.T, l *lease) bool {
	for e, err := range l.Read(background, 0) {
		if err != nil {
			t.Error(err)
		}
		if w.word != "" && noteWord(e.Body) == w.word {
			return true
		}
	}
	return false
}

func (w *acked) checkMail(t *testing.T, s *Local, l *lease) {
	names := func(l *lease) []string {
		msgs, err := l.Inbox(background)
		if err != nil {
			t.Error(err)
		}
		var ids []string
		for _, m := range msgs {
			ids = append(ids, m.ID)
		}
		return ids
	}
	have := names(l)
	for _, id := range w.posted {
		if !slices.Contains(have, id) {
			t.Errorf("message %s is lost: %v", id, have)
		}
	}
	for _, id := range w.taken {
		if slices.Contains(have, id) {
			t.Errorf("message %s is back", id)
		}
	}
	happened := w.happened(t, l)
	if w.takes != "" && slices.Contains(have, w.takes) == happened {
		t.Errorf("message %s: in the inbox and in the log %v", w.takes, happened)
	}
	sent := w.sent
	if w.send != "" && happened {
		sent = append(sent, w.send)
	}
	if len(sent) == 0 {
		return
	}
	other, err := s.acquire(background, "t")
	if err != nil {
		t.Error(err)
		return
	}
	if got := names(other); !slices.Equal(got, sent) {
		t.Errorf("t received %v of %v", got, sent)
	}
}
