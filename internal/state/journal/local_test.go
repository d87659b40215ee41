package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

func newFolder(t *testing.T, o LocalOptions) *Local {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	s, err := NewLocal(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestNewID(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.UTC)
	id := NewID(at)
	if got, ok := idTime(id); !ok || !got.Equal(at) || monthDir(got) != "sessions/2026-11" || checkID(id) != nil {
		t.Errorf("%s: %v, %v", id, got, ok)
	}
	if later := NewID(at.Add(time.Millisecond)); later <= id || NewID(at) == id {
		t.Errorf("%s is not before %s", id, later)
	}
	for _, id := range []string{"", "s", strings.Repeat("-", 36), strings.Replace(id, "-7", "-4", 1), "ffffffff-ffff-7000-8000-000000000000"} {
		if _, ok := idTime(id); ok {
			t.Errorf("%q has a time", id)
		}
	}
}

// Everything lies where the package comment says, and nobody else can read it.
func TestLayout(t *testing.T) {
	dir := t.TempDir()
	s := newFolder(t, LocalOptions{Dir: filepath.Join(dir, "data"), Now: atNoon})
	id := NewID(time.Date(2024, 2, 1, 0, 0, 0, 0, time.UTC))
	var m Meta
	m.ID, m.Tenant = id, "t"
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if err := s.Post(t.Context(), id, "", Msg{ID: "m"}); err != nil {
		t.Fatal(err)
	}
	l, err := s.acquire(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	b := Batch{Events: texts(1, strings.Repeat("x", 50_000)), Taken: []string{"m"}, Wake: noon}
	if _, err := l.Append(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if err := l.Snapshot(t.Context(), 1, nil); err != nil {
		t.Fatal(err)
	}
	var got []string
	err = filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(dir, p)
		got = append(got, strings.ReplaceAll(filepath.ToSlash(name), id, "<id>"))
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[e.IsDir()]; fi.Mode().Perm() != want && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %o", name, fi.Mode().Perm())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	sha := filepath.Base(s.BlobPath(id, func() string { n, _ := os.ReadDir(s.d.real(l.dir + "/blobs")); return n[0].Name() }()))
	want := []string{
		"data", "data/index.jsonl", "data/index.lock", "data/queue", "data/queue/<id>", "data/queue/<id>.wake",
		"data/sessions", "data/sessions/2024-02", "data/sessions/2024-02/<id>", "data/sessions/2024-02/<id>/blobs",
		"data/sessions/2024-02/<id>/blobs/" + sha, "data/sessions/2024-02/<id>/inbox", "data/sessions/2024-02/<id>/lock",
		"data/sessions/2024-02/<id>/log.000001.jsonl", "data/sessions/2024-02/<id>/meta.json", "data/sessions/2024-02/<id>/receipts",
		"data/sessions/2024-02/<id>/snap", "data/sessions/2024-02/<id>/snap/1.json",
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	info, err := os.Stat(s.d.real(l.dir + "/log.000001.jsonl"))
	if err != nil || info.Size() > 2000 {
		t.Errorf("the log holds a long body: %v, %v", info, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, o := range []LocalOptions{{}, {Dir: t.TempDir(), Durability: "often"}, {Dir: filepath.Join(file, "data")}} {
		if _, err := NewLocal(o); err == nil || !strings.HasPrefix(err.Error(), "opening the session store: ") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// Two stores on one folder are like two processes.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := newFolder(t, LocalOptions{Dir: dir}), newFolder(t, LocalOptions{Dir: dir})
	var m Meta
	m.ID = "s"
	if err := a.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	l, err := a.Acquire(t.Context(), "s", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Acquire(t.Context(), "s", Owner{})
	var owned *OwnedError
	host, _ := os.Hostname()
	if !errors.As(err, &owned) || owned.PID != os.Getpid() || owned.Host != host || time.Since(owned.Since) > time.Hour {
		t.Fatalf("%v: %+v", err, owned)
	}
	if _, err := l.Append(t.Context(), Batch{Events: []agent.Event{{Body: agent.TurnStarted{Turn: "1"}}}}); err != nil {
		t.Fatal(err)
	}
	for m, err := range b.List(t.Context(), Query{}) {
		if err != nil || m.Status != statusRunning || m.Head != 1 {
			t.Errorf("listed by the other: %+v, %v", m, err)
		}
	}
	if err := b.Post(t.Context(), "s", "", Msg{ID: "m"}); err != nil {
		t.Fatal(err)
	}
	select { // found by looking, every 250 ms
	case <-l.Mail():
	case <-time.After(20 * time.Second):
		t.Fatal("the owner did not hear of a message from another process")
	}
	done := make(chan error, 1)
	go func() {
		leases, err := b.Claim(t.Context(), Worker{}, 1)
		if err == nil {
			err = leases[0].Release(t.Context(), Done, Meta{})
		}
		done <- err
	}()
	if err := l.Release(t.Context(), Runnable, Meta{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestInboxIsBounded(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	for i := range maxInbox {
		if err := r.s.Post(t.Context(), "s", "", Msg{ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.s.Post(t.Context(), "s", "", Msg{ID: "more"}); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	if err := r.s.Post(t.Context(), "s", "", Msg{ID: "7"}); err != nil {
		t.Errorf("one again: %v", err)
	}
	msgs, err := l.Inbox(t.Context())
	if err != nil || len(msgs) != maxInbox || msgs[999].ID != "999" {
		t.Errorf("%d messages, %v", len(msgs), err)
	}
	r.add(l, Batch{Events: texts(1, "x"), Taken: []string{"0"}})
	if err := r.s.Post(t.Context(), "s", "", Msg{ID: "more"}); err != nil {
		t.Errorf("when there is room again: %v", err)
	}
}

// A crash between the append that takes a message and the receipt does not bring
// the message back.
func TestReceiptIsCompletedFromTheLog(t *testing.T) {
	for _, part := range []int{0, 1, receiptLen} {
		r := newRig(t)
		l := r.session("s")
		for _, id := range []string{"a", "b"} {
			if err := r.s.Post(t.Context(), "s", "", Msg{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		message := r.bytes("inbox/" + msgName("b"))
		r.add(l, Batch{Events: texts(1, "x"), Taken: []string{"a"}})
		r.add(l, Batch{Events: texts(2, "y"), Taken: []string{"b"}})
		r.set("receipts", r.bytes("receipts")[:part])
		r.set("inbox/"+msgName("b"), message)
		r.again()
		l = r.open("s")
		if msgs, err := l.Inbox(t.Context()); len(msgs) != 0 || err != nil {
			t.Errorf("%d bytes of receipts: %v, %v", part, msgs, err)
		}
		for _, id := range []string{"a", "b"} {
			if err := r.s.Post(t.Context(), "s", "", Msg{ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		if msgs, err := l.Inbox(t.Context()); len(msgs) != 0 || err != nil {
			t.Errorf("%d bytes of receipts, posted again: %v, %v", part, msgs, err)
		}
	}
}

// A crash between an append with posts and their delivery only delays them.
func TestOutboxIsDelivered(t *testing.T) {
	r, bad := newBadRig(t)
	a := r.session("a")
	b := r.session("b")
	stuck := func(op, name string) error {
		if strings.Contains(name, "/b/inbox") {
			return errors.New("no way")
		}
		return nil
	}
	bad.other = stuck
	long := []byte(strings.Repeat("z", 10_000))
	r.add(a, Batch{Events: texts(2, "x"), Posts: map[string][]Msg{"b": {{ID: "1", Body: long}}}})
	r.add(a, Batch{Events: texts(2, "x"), Posts: map[string][]Msg{"b": {{ID: "2"}}}})
	if msgs, err := b.Inbox(t.Context()); len(msgs) != 0 || err != nil {
		t.Fatalf("arrived: %v, %v", msgs, err)
	}
	bad.other = nil
	r.again() // the store, not the session
	b = r.open("b")
	msgs, err := b.Inbox(t.Context())
	if err != nil || len(msgs) != 2 || msgs[0].ID != "1" || string(msgs[0].Body) != string(long) || msgs[1].ID != "2" {
		t.Fatalf("%v, %v", msgs, err)
	}
	if names, err := r.mem.list(outboxDir); len(names) != 0 || err != nil {
		t.Errorf("left in the outbox: %v, %v", names, err)
	}
}

// The list comes from the logs when the derived files are gone or garbage.
func TestListIsRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(r *rig){
		"index missing": func(r *rig) { _ = r.mem.remove(indexName) },
		"index garbage": func(r *rig) { _ = replace(r.mem, indexName, []byte("{\x00garbage\n{}\n\n[1]"), false) },
		"endless line":  func(r *rig) { _ = replace(r.mem, indexName, make([]byte, 3*maxMeta), false) },
		"meta missing":  func(r *rig) { _ = r.mem.remove(indexName); _ = r.mem.remove("sessions/2026-11/s/meta.json") },
		"meta garbage":  func(r *rig) { _ = r.mem.remove(indexName); r.set("meta.json", []byte(`{"id":"other"}`)) },
	} {
		mem := newMemDisk(atNoon)
		r := &rig{T: t, mem: mem, s: newLocal(mem, LocalOptions{Now: atNoon})}
		l := r.session("s")
		r.add(l, Batch{Events: []agent.Event{
			{Body: agent.SessionOpened{Session: "s", Title: "t", Workdir: "/w", Model: "m"}},
			{Body: agent.TurnStarted{Turn: "1"}},
			{Body: agent.TurnEnded{Turn: "1", Usage: agent.Usage{Output: 7}}},
			{Body: agent.SettingsChanged{Title: "new"}},
		}})
		if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
			t.Fatal(err)
		}
		list := func() (metas []Meta) {
			for m, err := range r.s.List(t.Context(), Query{}) {
				if err != nil {
					t.Fatal(err)
				}
				m.Labels = nil
				metas = append(metas, m)
			}
			return metas
		}
		want := list()
		if len(want) != 1 || want[0].Title != "new" || want[0].Turns != 1 || want[0].Usage.Output != 7 || want[0].Status != statusIdle {
			t.Fatalf("%+v", want)
		}
		spoil(r)
		for _, when := range []string{"at once", "from the new index"} {
			if got := list(); len(got) != 1 || fmt.Sprint(got[0]) != fmt.Sprint(want[0]) {
				t.Errorf("%s, %s:\ngot  %+v\nwant %+v", name, when, got, want)
			}
		}
		r.add(r.open("s"), Batch{Events: texts(1, "x")})
	}
}

// The index does not grow with the changes, only with the sessions.
func TestIndexIsCompacted(t *testing.T) {
	r := newRig(t)
	r.session("s")
	for i := range 3 * indexSlack {
		e := entry{}
		e.ID, e.Title = "t", fmt.Sprint(i)
		r.s.index(e)
	}
	for range r.s.List(t.Context(), Query{}) {
	}
	if _, lines, err := r.s.readIndex(t.Context(), ""); err != nil || lines > 4 {
		t.Errorf("%d lines, %v", lines, err)
	}
}

// A list that was made before a session changed does not take the change back.
func TestNewerLineIsKept(t *testing.T) {
	for _, anew := range []bool{false, true} {
		r := newRig(t)
		r.session("s")
		dir, err := r.s.find("s")
		if err != nil {
			t.Fatal(err)
		}
		known, _, err := r.s.readIndex(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		found := r.s.current(dir)
		changed := found
		changed.Title, changed.Live = "new", false
		r.s.index(changed)
		r.s.compact(t.Context(), map[string]entry{"s": found}, known, anew)
		entries, _, err := r.s.readIndex(t.Context(), "")
		if err != nil || !strings.Contains(entries["s"], `"title":"new"`) {
			t.Errorf("anew %t: %q, %v", anew, entries["s"], err)
		}
	}
}

// A lease needs no more memory when its log is long, and finds everything in it.
func TestLongLog(t *testing.T) {
	events := 60_000
	if prooftest.Long() {
		events = 3_000_000
	}
	s := newFolder(t, LocalOptions{Durability: DurabilityOS})
	s.segment = 4 << 20
	var m Meta
	m.ID = "s"
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	l, err := s.acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	heap := func() int {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	batch := texts(100, strings.Repeat("x", 200))
	var before int
	for n := 0; n < events; n += len(batch) {
		if n == events/6/100*100 {
			before = heap()
		}
		if _, err := l.Append(t.Context(), Batch{Events: batch, Seal: n == events/2}); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("the heap grew by %d KB", grown>>10)
	}
	head := l.Head()
	check := func(l *lease) {
		t.Helper()
		for _, after := range []int64{0, 255, 12_345, head - 300, head - 2, head} {
			n := after
			for e, err := range l.Read(t.Context(), after) {
				if n++; err != nil || e.Seq != n {
					t.Fatalf("after %d: event %d for %d, %v", after, e.Seq, n, err)
				}
				if n > after+500 {
					break
				}
			}
			if want := min(head, after+501); n != want {
				t.Fatalf("after %d: came to %d, want %d", after, n, want)
			}
		}
	}
	check(l)
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	if l, err = s.acquire(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	check(l)
	if _, err := l.Append(t.Context(), Batch{Events: batch, Seal: true}); err != nil {
		t.Fatal(err)
	}
	if rep, err := s.Verify(t.Context(), "s"); err != nil || !rep.OK || rep.Seals != 2 || rep.Events != head+101 {
		t.Errorf("%+v, %v", rep, err)
	}
}

func TestPlacesStayFew(t *testing.T) {
	var p places
	for seq := range int64(3 << 20) {
		p.add(place{seg: 1, at: chain{seq: seq}})
	}
	if len(p.list) > maxPlaces || cap(p.list) > 2*maxPlaces {
		t.Errorf("%d places", len(p.list))
	}
	for _, seq := range []int64{1, 2, 1000, 2 << 20} {
		if at := p.before(seq).at.seq; at >= seq || at < seq-2*p.gap {
			t.Errorf("event %d is looked for from %d", seq, at)
		}
	}
}

func TestBus(t *testing.T) {
	b := NewBus()
	var mu sync.Mutex
	var got []string
	arrived := make(chan struct{}, 10)
	stop, err := b.Subscribe("live.>", func(subject string, data []byte) {
		mu.Lock()
		got = append(got, subject+"="+string(data))
		mu.Unlock()
		arrived <- struct{}{}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Publish("live.a", []byte("1"))
	b.Publish("evt.a", []byte("no"))
	b.Publish("live.b", []byte("2"))
	<-arrived
	<-arrived
	stop()
	stop()
	b.Publish("live.a", []byte("late"))
	if want := []string{"live.a=1", "live.b=2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	block := make(chan struct{})
	n := 0
	stop, err = b.Subscribe("x", func(string, []byte) { <-block; n++ })
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * busQueue { // never waits for the slow one
		b.Publish("x", nil)
	}
	close(block)
	stop()
	if n < busQueue || n > busQueue+1 {
		t.Errorf("%d of the messages arrived", n)
	}
	if _, err := b.Subscribe("", nil); err == nil {
		t.Error("subscribed to nothing")
	}
}

func TestBusRequests(t *testing.T) {
	b := NewBus()
	if _, err := b.Request(t.Context(), "s", nil); !errors.Is(err, ErrNoPeer) {
		t.Errorf("nobody: %v", err)
	}
	stop, err := b.Respond("s", echo)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Respond("s", echo); err == nil {
		t.Error("two answer")
	}
	if got, err := b.Request(t.Context(), "s", []byte("x")); string(got) != "x!" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	stop()
	if _, err := b.Request(t.Context(), "s", nil); !errors.Is(err, ErrNoPeer) {
		t.Errorf("nobody any more: %v", err)
	}
}

// What is kept of the newest events has a bound, however little their lines have of them.
func TestRingOfBlobs(t *testing.T) {
	s := newFolder(t, LocalOptions{Durability: DurabilityOS})
	var m Meta
	m.ID = "s"
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	l, err := s.acquire(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	const n = 64
	long := strings.Repeat("x", 4*maxInline)
	for _, e := range texts(n, long) {
		if _, err := l.Append(t.Context(), Batch{Events: []agent.Event{e}}); err != nil {
			t.Fatal(err)
		}
	}
	if most := ringBytes / len(long); l.ring.n == 0 || l.ring.n > most {
		t.Errorf("%d events of %d bytes are kept in memory; want 1 to %d", l.ring.n, len(long), most)
	}
	seq := int64(0)
	for e, err := range l.Read(t.Context(), 0) {
		if seq++; err != nil || e.Seq != seq || !strings.HasSuffix(e.Body.(agent.Note).Text, long) {
			t.Fatalf("event %d for %d, %v", e.Seq, seq, err)
		}
	}
	if seq != n {
		t.Errorf("%d events, want %d", seq, n)
	}
}
