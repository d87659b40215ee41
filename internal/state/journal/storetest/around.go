package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/state/journal"
)

func inbox(s *suite) {
	l := s.session("one")
	want := []journal.Msg{
		{ID: "m1", From: "two", Kind: "prompt", Body: []byte("{\"a\":\n1}")},
		{ID: "path/../and more", Kind: "resolve", Body: []byte(`{}`)},
		{ID: "empty", Kind: "interrupt"},
	}
	for _, m := range want {
		s.ok(s.store.Post(s.ctx, "one", "", m))
		select {
		case <-l.Mail():
		case <-time.After(10 * time.Second):
			s.Fatal("the owner was not told")
		}
	}
	again := want[0]
	again.Body = []byte("other")
	s.ok(s.store.Post(s.ctx, "one", "", again))
	got, err := l.Inbox(s.ctx)
	s.ok(err)
	for i := range got {
		if len(got[i].Body) == 0 {
			got[i].Body = nil
		}
	}
	if diff := cmp.Diff(want, got, wholeRaw); diff != "" {
		s.Errorf("inbox:\n%s", diff)
	}
	s.is(s.store.Post(s.ctx, "nobody", "", want[0]), journal.ErrMissing)
	for _, bad := range []journal.Msg{{}, {ID: strings.Repeat("x", 1000)}, {ID: "x", Body: make([]byte, 17<<20)}} {
		if s.store.Post(s.ctx, "one", "", bad) == nil {
			s.Errorf("the message %.20q was taken", bad.ID)
		}
	}
	s.reopen()
	l = s.acquire("one")
	select {
	case <-l.Mail():
	case <-time.After(10 * time.Second):
		s.Fatal("the new owner was not told")
	}
	if got := s.ids(l); len(got) != 3 {
		s.Errorf("after a restart: %v", got)
	}
}

func taken(s *suite) {
	l := s.session("one")
	for _, id := range []string{"a", "b", "c"} {
		s.ok(s.store.Post(s.ctx, "one", "", journal.Msg{ID: id, Kind: "prompt"}))
	}
	s.batch(l, journal.Batch{Events: notes("took a"), Taken: []string{"a"}})
	s.batch(l, journal.Batch{Taken: []string{"b"}, Sync: journal.Barrier})
	check := func(when string) {
		s.Helper()
		for _, id := range []string{"a", "b"} {
			s.ok(s.store.Post(s.ctx, "one", "", journal.Msg{ID: id, Kind: "prompt"}))
		}
		if got := s.ids(l); !slices.Equal(got, []string{"c"}) {
			s.Errorf("%s: %v", when, got)
		}
	}
	check("at once")
	s.reopen()
	l = s.acquire("one")
	check("after a restart")
	s.batch(l, journal.Batch{Events: notes("took c"), Taken: []string{"c"}})
	if got := s.ids(l); len(got) != 0 {
		s.Errorf("at last: %v", got)
	}
}

func posts(s *suite) {
	a, b := s.session("a"), s.session("b")
	long := bytes.Repeat([]byte("long "), 10_000)
	s.batch(a, journal.Batch{Events: notes("asked"), Posts: map[string][]journal.Msg{
		"b": {{ID: "1", From: "a", Kind: "delegate", Body: []byte("x")}, {ID: "2", From: "a", Kind: "delegate", Body: long}},
		"a": {{ID: "self", From: "a", Kind: "timer"}},
	}})
	want := []journal.Msg{{ID: "1", From: "a", Kind: "delegate", Body: []byte("x")}, {ID: "2", From: "a", Kind: "delegate", Body: long}}
	got, err := b.Inbox(s.ctx)
	s.ok(err)
	if diff := cmp.Diff(want, got, wholeRaw); diff != "" {
		s.Errorf("the inbox of b:\n%s", diff)
	}
	if got := s.ids(a); !slices.Equal(got, []string{"self"}) {
		s.Errorf("the inbox of a: %v", got)
	}
	s.batch(b, journal.Batch{Events: notes("done"), Taken: []string{"1"}, Posts: map[string][]journal.Msg{"a": {{ID: "1/r", From: "b"}}}})
	s.reopen()
	a, b = s.acquire("a"), s.acquire("b")
	if got := s.ids(a); !slices.Equal(got, []string{"self", "1/r"}) {
		s.Errorf("the inbox of a after a restart: %v", got)
	}
	if got := s.ids(b); !slices.Equal(got, []string{"2"}) {
		s.Errorf("the inbox of b after a restart: %v", got)
	}
	if got := words(s.log("a", 0)); !slices.Equal(got, []string{"asked"}) {
		s.Errorf("posts show in the log of a: %v", got)
	}
}

func fork(s *suite) {
	l := s.session("one")
	sha, _, err := l.PutBlob(s.ctx, strings.NewReader("a blob"), 0)
	s.ok(err)
	other, _, err := l.PutBlob(s.ctx, strings.NewReader("another"), 0)
	s.ok(err)
	s.batch(l, journal.Batch{Events: notes("a", strings.Repeat("long ", 20_000)), Seal: true, Sync: journal.Barrier})
	s.add(l, "see "+sha)
	s.add(l, "see "+other)
	for _, at := range []int64{0, 6} {
		if s.store.Fork(s.ctx, "one", at, "bad") == nil {
			s.Errorf("a fork at %d", at)
		}
	}
	s.is(s.store.Fork(s.ctx, "none", 1, "bad"), journal.ErrMissing)
	s.is(s.store.Fork(s.ctx, "one", 1, "one"), journal.ErrExists)
	s.ok(s.store.Fork(s.ctx, "one", 4, "two"))
	if diff := cmp.Diff(s.log("one", 0)[:4], s.log("two", 0), wholeRaw); diff != "" {
		s.Errorf("the copy:\n%s", diff)
	}
	two := s.acquire("two")
	if m := two.Session(); m.Parent != "one" || m.ForkSeq != 4 || two.Head() != 4 || two.Epoch() <= l.Epoch() {
		s.Errorf("the copy: head %d, epoch %d, %+v", two.Head(), two.Epoch(), m)
	}
	s.batch(two, journal.Batch{Events: notes("its own"), Seal: true, Sync: journal.Barrier})
	rep, err := s.store.Verify(s.ctx, "two")
	s.ok(err)
	if !rep.OK || rep.Seals != 2 {
		s.Errorf("the copy that was continued: %+v", rep)
	}
	if got := len(s.log("one", 0)); got != 5 {
		s.Errorf("the original has %d events", got)
	}
	if got, err := s.blob("two", sha); got != "a blob" || err != nil {
		s.Errorf("the blob of the copy: %q, %v", got, err)
	}
	if _, err := s.blob("two", other); err == nil {
		s.Error("a blob was copied that the copy does not name")
	}
}

func forkWithin(s *suite) {
	l := s.session("one")
	s.add(l, "a", "b", "c", "d")
	s.ok(s.store.Fork(s.ctx, "one", 2, "two"))
	if got := words(s.log("two", 0)); !slices.Equal(got, []string{"a", "b"}) {
		s.Errorf("the copy: %v", got)
	}
	s.reopen()
	two := s.acquire("two")
	if two.Repaired() != nil || two.Head() != 2 {
		s.Errorf("the copy: head %d, %+v", two.Head(), two.Repaired())
	}
	s.add(two, "e", "f")
	s.reopen()
	if got := words(s.owned(s.acquire("two"), 0)); !slices.Equal(got, []string{"a", "b", "e", "f"}) {
		s.Errorf("the copy that was continued: %v", got)
	}
	if got := words(s.log("two", 1)); !slices.Equal(got, []string{"b", "e", "f"}) {
		s.Errorf("the copy that was continued, after 1: %v", got)
	}
}

func (s *suite) claim(n int) []string {
	s.Helper()
	leases, err := s.store.Claim(s.soon(10*time.Second), journal.Worker{}, n)
	s.ok(err)
	ids := []string{}
	for _, l := range leases {
		ids = append(ids, l.Session().ID)
		s.release(l, journal.Parked)
	}
	return ids
}

// idle checks that nothing can be claimed.
func (s *suite) idle() {
	s.Helper()
	leases, err := s.store.Claim(s.soon(50*time.Millisecond), journal.Worker{}, 1)
	if err == nil {
		s.Fatalf("%s is runnable", leases[0].Session().ID)
	}
}

func claim(s *suite) {
	a, b := s.session("a"), s.session("b")
	s.release(b, journal.Parked)
	s.idle()
	s.ok(s.store.Post(s.ctx, "a", "", journal.Msg{ID: "1"}))
	s.idle() // it has an owner
	s.release(a, journal.Parked)
	got, err := s.store.Claim(s.soon(10*time.Second), journal.Worker{}, 2)
	s.ok(err)
	if len(got) != 1 || got[0].Session().ID != "a" {
		s.Fatalf("claimed %d", len(got))
	}
	_, err = s.store.Acquire(s.ctx, "a", journal.Owner{})
	s.is(err, journal.ErrOwned)
	s.batch(got[0], journal.Batch{Events: notes("took"), Taken: []string{"1"}})
	s.release(got[0], journal.Parked)
	s.idle()

	b = s.acquire("b")
	s.release(b, journal.Runnable)
	s.reopen()
	if got := s.claim(2); !slices.Equal(got, []string{"b"}) {
		s.Errorf("claimed %v after a restart", got)
	}
	s.idle()

	// Who waits is woken by a post, and a worker's death gives its session back.
	done := make(chan journal.Lease)
	go func() {
		leases, err := s.store.Claim(s.soon(10*time.Second), journal.Worker{}, 1)
		if err != nil {
			s.Error(err)
			leases = []journal.Lease{nil}
		}
		done <- leases[0]
	}()
	s.ok(s.store.Post(s.ctx, "b", "", journal.Msg{ID: "1"}))
	l := <-done
	if l == nil {
		s.FailNow()
	}
	s.batch(l, journal.Batch{Events: notes("took"), Taken: []string{"1"}})
	s.reopen()
	if got := s.claim(2); !slices.Equal(got, []string{"b"}) {
		s.Errorf("claimed %v after a worker's death", got)
	}
	_, err = s.store.Claim(s.soon(20*time.Millisecond), journal.Worker{}, 1)
	if !errors.Is(err, s.soon(0).Err()) {
		s.Errorf("a claim that waited too long: %v", err)
	}
}

func wake(s *suite) {
	l := s.session("one")
	s.batch(l, journal.Batch{Events: notes("a"), Wake: time.Now().Add(time.Hour)})
	s.release(l, journal.Parked)
	s.idle()
	l = s.acquire("one")
	s.batch(l, journal.Batch{Wake: time.Now().Add(150 * time.Millisecond)})
	s.release(l, journal.Parked)
	s.reopen()
	if got := s.claim(1); !slices.Equal(got, []string{"one"}) {
		s.Errorf("woken: %v", got)
	}
	s.idle()
	l = s.acquire("one")
	s.batch(l, journal.Batch{Wake: time.Now()})
	s.release(l, journal.Done)
	s.idle()
}

func lanes(s *suite) {
	for id, labels := range map[string]map[string]string{"a": nil, "b": nil, "gpu": {"gpu": "yes"}} {
		var m journal.Meta
		m.ID, m.Lane, m.Labels = id, "main", labels
		s.ok(s.store.Create(s.ctx, m))
		lane := ""
		if id == "b" {
			lane = "cron"
		}
		s.ok(s.store.Post(s.ctx, id, lane, journal.Msg{ID: "1"}))
	}
	claim := func(w journal.Worker, want ...string) {
		s.Helper()
		leases, err := s.store.Claim(s.soon(10*time.Second), w, 10)
		s.ok(err)
		got := []string{}
		for _, l := range leases {
			got = append(got, l.Session().ID)
		}
		for _, l := range leases {
			s.release(l, journal.Parked)
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			s.Errorf("worker %+v claimed %v, want %v", w, got, want)
		}
	}
	claim(journal.Worker{Labels: map[string]string{"gpu": "no"}, Lanes: map[string]int{"main": 5}}, "a")
	claim(journal.Worker{Labels: map[string]string{"gpu": "yes"}, Lanes: map[string]int{"main": 5}}, "a", "gpu")
	claim(journal.Worker{Lanes: map[string]int{"cron": 1}}, "b")
}

func list(s *suite) {
	all := func(q journal.Query) []journal.Meta {
		s.Helper()
		var metas []journal.Meta
		for m, err := range s.store.List(s.ctx, q) {
			s.ok(err)
			metas = append(metas, m)
		}
		return metas
	}
	ids := func(q journal.Query) []string {
		ids := []string{}
		for _, m := range all(q) {
			ids = append(ids, m.ID)
		}
		return ids
	}
	if got := ids(journal.Query{}); len(got) != 0 {
		s.Errorf("an empty store lists %v", got)
	}
	var m journal.Meta
	m.ID, m.Tenant, m.Labels, m.Lane = "a1", "t", map[string]string{"keep": "yes"}, "main"
	s.ok(s.store.Create(s.ctx, m))
	s.create("a2")
	s.create("b1")
	l := s.acquire("a1")
	s.batch(l, journal.Batch{Events: []agent.Event{
		{Body: agent.SessionOpened{Session: "a1", Workdir: "/w", Model: "m"}},
		{Body: agent.TurnStarted{Turn: "1"}},
		{Body: agent.TurnEnded{Turn: "1", Reason: agent.EndDone, Usage: agent.Usage{Input: 3}}},
	}, Sync: journal.Barrier})
	live := all(journal.Query{Prefix: "a1"})[0]
	if live.Status != "idle" || live.Workdir != "/w" || live.Turns != 1 || live.Head != 3 || live.Usage.Input != 3 {
		s.Errorf("live: %+v", live)
	}
	m = l.Session()
	m.Title, m.Status = "a title", "waiting"
	s.ok(l.Release(s.ctx, journal.Parked, m))
	l = s.acquire("b1")
	s.batch(l, journal.Batch{Events: []agent.Event{{Body: agent.TurnStarted{Turn: "1"}}}, Sync: journal.Barrier})
	s.reopen()
	got := all(journal.Query{Prefix: "a1"})
	if len(got) != 1 || got[0].Title != "a title" || got[0].Status != "waiting" || got[0].Head != 3 || got[0].Tenant != "t" || got[0].Labels["keep"] != "yes" || got[0].Bytes == 0 {
		s.Errorf("released: %+v", got)
	}
	for _, c := range []struct {
		q    journal.Query
		want []string
	}{
		{journal.Query{}, []string{"b1", "a1", "a2"}},
		{journal.Query{Limit: 2}, []string{"b1", "a1"}},
		{journal.Query{Prefix: "a"}, []string{"a1", "a2"}},
		{journal.Query{Tenant: "t"}, []string{"a1"}},
		{journal.Query{Workdir: "/w"}, []string{"a1"}},
		{journal.Query{Status: "interrupted"}, []string{"b1"}},
		{journal.Query{Before: time.Now().Add(-time.Hour)}, []string{}},
	} {
		if got := ids(c.q); !slices.Equal(got, c.want) {
			s.Errorf("%+v: %v, want %v", c.q, got, c.want)
		}
	}
	if p, err := s.store.Page(s.ctx, journal.Query{Limit: 2}); err != nil || len(p.Sessions) != 2 || p.Sessions[0].ID != "b1" || p.Sessions[1].ID != "a1" || p.More != 1 {
		s.Errorf("a page: %+v, %v", p, err)
	}
}

func (s *suite) blob(id, sha string) (string, error) {
	r, err := s.store.Blob(s.ctx, id, sha)
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

func blobs(s *suite) {
	l := s.session("one")
	text := strings.Repeat("0123456789", 50_000)
	for _, c := range []struct {
		limit int64
		want  string
	}{{0, text}, {1000, text[:1000]}, {int64(len(text)) + 1, text}} {
		sha, size, err := l.PutBlob(s.ctx, strings.NewReader(text), c.limit)
		s.ok(err)
		sum := sha256.Sum256([]byte(c.want))
		if sha != hex.EncodeToString(sum[:]) || size != int64(len(c.want)) {
			s.Errorf("limit %d: %s, %d bytes", c.limit, sha, size)
		}
		s.add(l, sha)
		if got, err := s.blob("one", sha); got != c.want || err != nil {
			s.Errorf("limit %d: read %d bytes, %v", c.limit, len(got), err)
		}
		if p := s.store.BlobPath("one", sha[:12]); p != "" {
			if got, err := os.ReadFile(p); string(got) != c.want || err != nil {
				s.Errorf("limit %d: the file has %d bytes, %v", c.limit, len(got), err)
			}
		}
	}
	for _, bad := range []string{"", "../lock", strings.Repeat("0", 64), strings.Repeat("g", 64)} {
		if _, err := s.blob("one", bad); err == nil {
			s.Errorf("blob %q was opened", bad)
		}
		if p := s.store.BlobPath("one", bad); p != "" {
			s.Errorf("blob %q is at %s", bad, p)
		}
	}
	if _, _, err := l.PutBlob(s.ctx, io.MultiReader(strings.NewReader("half"), broken{}), 0); !errors.Is(err, errBroken) {
		s.Errorf("a source that broke: %v", err)
	}
	rep, err := s.store.Verify(s.ctx, "one")
	s.ok(err)
	if !rep.OK {
		s.Errorf("%+v", rep)
	}
}

var errBroken = errors.New("broken")

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

func snapshots(s *suite) {
	l := s.session("one")
	last := func(want int64, state string) {
		s.Helper()
		seq, got, err := l.LastSnapshot(s.ctx)
		s.ok(err)
		if seq != want || string(got) != state {
			s.Errorf("snapshot %d %q, want %d %q", seq, got, want, state)
		}
	}
	last(0, "")
	s.add(l, "a", "b", "c")
	for _, seq := range []int64{0, 4} {
		if l.Snapshot(s.ctx, seq, nil) == nil {
			s.Errorf("a snapshot of event %d was stored", seq)
		}
	}
	for seq := int64(1); seq <= 3; seq++ {
		s.ok(l.Snapshot(s.ctx, seq, []byte{'\n', byte('0' + seq)}))
		last(seq, "\n"+string(byte('0'+seq)))
	}
	s.reopen()
	l = s.acquire("one")
	last(3, "\n3")
}
