package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"dure/agent"
	"dure/internal/state/journal"
)

func created(s *suite) {
	s.create("one")
	var m journal.Meta
	m.ID = "one"
	s.is(s.store.Create(s.ctx, m), journal.ErrExists)
	for _, id := range []string{"", "a/b", "../a", "a.b", "ä", strings.Repeat("x", 65)} {
		m.ID = id
		if s.store.Create(s.ctx, m) == nil {
			s.Errorf("a session with the ID %q was made", id)
		}
		_, err := s.store.Acquire(s.ctx, id, journal.Owner{})
		s.is(err, journal.ErrMissing)
	}
	id := journal.NewID(time.Now())
	s.create(id)
	s.reopen()
	for _, id := range []string{"one", id} {
		if got := s.log(id, 0); len(got) != 0 {
			s.Errorf("a new session has events: %v", got)
		}
	}
	for _, err := range s.store.Read(s.ctx, "two", 0) {
		s.is(err, journal.ErrMissing)
	}
}

func appended(s *suite) {
	l := s.session("one")
	if l.Epoch() < 1 || l.Head() != 0 || l.Session().ID != "one" || l.Repaired() != nil {
		s.Errorf("a new session: epoch %d, head %d, %+v", l.Epoch(), l.Head(), l.Session())
	}
	first := s.batch(l, journal.Batch{Events: []agent.Event{
		{ID: "mine", Body: agent.Note{Text: "a"}},
		{Body: agent.Note{Text: "b"}},
	}})
	second := s.add(l, "c")
	all := slices.Concat(first, second)
	seen := map[string]bool{}
	for i, e := range all {
		if e.Seq != int64(i+1) || e.Epoch != l.Epoch() || e.Time.IsZero() || e.ID == "" || seen[e.ID] {
			s.Errorf("event %d is not complete: %+v", i+1, e)
		}
		seen[e.ID] = true
	}
	if all[0].ID != "mine" || l.Head() != 3 {
		s.Errorf("ID %q, head %d", all[0].ID, l.Head())
	}
	old := time.Date(2020, 2, 3, 4, 5, 6, 7, time.UTC)
	own := s.batch(l, journal.Batch{Seal: true, Events: []agent.Event{
		{Time: old, Body: agent.Note{Text: "d"}}, {Time: time.Now().AddDate(1, 0, 0), Body: agent.Note{Text: "e"}}, {Time: old, Body: agent.Note{Text: "f"}},
	}})
	if !own[0].Time.Equal(old) || !own[2].Time.Equal(old) || !own[3].Time.Equal(old) || own[1].Time.After(time.Now()) || own[1].Time.Equal(old) {
		s.Errorf("events with times of their own: %v", own)
	}
	if got, want := l.Session().Updated, old.Format(time.RFC3339Nano); got != want {
		s.Errorf("the session changed %s, want %s", got, want)
	}
	all = slices.Concat(all, own)
	for after := range int64(9) {
		want := all[min(after, 7):]
		for name, got := range map[string][]agent.Event{"store": s.log("one", after), "lease": s.owned(l, after)} {
			if !slices.Equal(words(got), words(want)) || len(want) > 0 && got[0].Seq != after+1 {
				s.Errorf("%s after %d: %v, want %v", name, after, words(got), words(want))
			}
		}
	}
	s.reopen()
	if diff := cmp.Diff(all, s.log("one", 0), wholeRaw); diff != "" {
		s.Errorf("read again:\n%s", diff)
	}
}

func atomic(s *suite) {
	l := s.session("one")
	s.add(l, "a")
	for name, bad := range map[string]agent.Event{
		"no body":    {},
		"no kind":    {Body: agent.Unknown{Raw: json.RawMessage(`{}`)}},
		"no JSON":    {Body: agent.Unknown{Name: "x", Raw: json.RawMessage(`{`)}},
		"own seal":   {Body: agent.LogSealed{From: 1, To: 1}},
		"endless ID": {ID: strings.Repeat("x", 1000), Body: agent.Note{}},
	} {
		if _, err := l.Append(s.ctx, journal.Batch{Events: []agent.Event{{Body: agent.Note{Text: "b"}}, bad}}); err == nil {
			s.Errorf("%s: the batch was taken", name)
		}
	}
	if _, err := l.Append(s.ctx, journal.Batch{Posts: map[string][]journal.Msg{"one": {{ID: "x"}}}}); err == nil {
		s.Error("posts without an event were taken")
	}
	if got := s.batch(l, journal.Batch{}); len(got) != 0 {
		s.Errorf("an empty batch wrote %v", got)
	}
	s.add(l, "c")
	if got := words(s.log("one", 0)); !slices.Equal(got, []string{"a", "c"}) {
		s.Errorf("log: %v", got)
	}
}

func concurrent(s *suite) {
	const writers, each = 8, 25
	l := s.session("one")
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d.%d", w, i)
				events, err := l.Append(s.ctx, journal.Batch{Events: notes(text+"a", text+"b"), Sync: journal.Durability(i % 2)})
				if err != nil || len(events) != 2 || events[1].Seq != events[0].Seq+1 {
					s.Errorf("%s: %v, %v", text, events, err)
				}
			}
		})
	}
	wg.Wait()
	s.reopen()
	got := s.log("one", 0)
	if len(got) != writers*each*2 {
		s.Fatalf("%d events", len(got))
	}
	next := map[string]int{}
	for i := 0; i < len(got); i += 2 {
		a, b := words(got[i : i+1])[0], words(got[i+1 : i+2])[0]
		w, n, _ := strings.Cut(strings.TrimSuffix(a, "a"), ".")
		if got[i].Seq != int64(i+1) || strings.TrimSuffix(b, "b") != strings.TrimSuffix(a, "a") || n != fmt.Sprint(next[w]) {
			s.Fatalf("events %d and %d: %s and %s", i+1, i+2, a, b)
		}
		next[w]++
	}
}

func bodies(s *suite) {
	l := s.session("one")
	raw := json.RawMessage(`{"b" : 1,  "a":"\u00e4\u2028 <&>"}`)
	long := strings.Repeat(`long "text" ä `, 20_000)
	bare := json.RawMessage(`"` + strings.Repeat("z", 100_000) + `"`)
	want := s.batch(l, journal.Batch{Events: []agent.Event{
		{Body: agent.Unknown{Name: "future.kind", Raw: raw}},
		{Body: agent.Note{Text: long}},
		{Body: agent.Unknown{Name: `odd "kind" ä`, Raw: bare}},
		{Body: agent.InputAdded{Input: "i", Text: "x"}},
		{Body: agent.Note{Text: long}},
	}, Sync: journal.Barrier})
	if diff := cmp.Diff(want, s.owned(l, 0), wholeRaw); diff != "" {
		s.Errorf("read by the owner:\n%s", diff)
	}
	s.reopen()
	if diff := cmp.Diff(want, s.log("one", 0), wholeRaw); diff != "" {
		s.Errorf("read again:\n%s", diff)
	}
}

func owned(s *suite) {
	l := s.session("one")
	_, err := s.store.Acquire(s.ctx, "one", journal.Owner{ID: "other"})
	s.is(err, journal.ErrOwned)
	if l.Valid().Err() != nil {
		s.Error("a refused owner has ended the lease")
	}
	s.release(l, journal.Parked)
	if l.Valid().Err() == nil {
		s.Error("the lease is valid after its release")
	}
	_, err = l.Append(s.ctx, journal.Batch{Events: notes("late")})
	s.is(err, journal.ErrClosed)
	if _, _, err := l.PutBlob(s.ctx, strings.NewReader("late"), 0); err == nil {
		s.Error("a blob was stored after the release")
	}
	again := s.acquire("one")
	s.add(again, "a")
	if l.Release(s.ctx, journal.Parked, journal.Meta{}) == nil {
		s.Error("a lease was released twice")
	}
	s.add(again, "b")
	if got := words(s.log("one", 0)); !slices.Equal(got, []string{"a", "b"}) {
		s.Errorf("log: %v", got)
	}
}

func epochs(s *suite) {
	s.create("one")
	last := int64(0)
	for i := range 3 {
		l := s.acquire("one")
		if l.Epoch() <= last {
			s.Errorf("epoch %d after %d", l.Epoch(), last)
		}
		last = l.Epoch()
		if e := s.add(l, "a")[0]; e.Epoch != last || e.Seq != int64(i+1) {
			s.Errorf("event %d of epoch %d, want %d of %d", e.Seq, e.Epoch, i+1, last)
		}
		if i == 1 {
			s.reopen() // without a release
		} else {
			s.release(l, journal.Parked)
		}
	}
}

func seals(s *suite) {
	l := s.session("one")
	if got := s.batch(l, journal.Batch{Seal: true}); len(got) != 0 {
		s.Errorf("nothing was sealed: %v", words(got))
	}
	s.batch(l, journal.Batch{Events: notes("a", "b"), Seal: true, Sync: journal.Barrier})
	if got := s.batch(l, journal.Batch{Seal: true}); len(got) != 0 {
		s.Errorf("a seal was sealed: %v", words(got))
	}
	s.add(l, "c")
	s.reopen()
	l = s.acquire("one")
	got := s.batch(l, journal.Batch{Events: notes("d"), Seal: true})
	s.add(l, "e")
	first := s.log("one", 0)[2].Body.(agent.LogSealed)
	second := got[1].Body.(agent.LogSealed)
	if first.From != 1 || first.To != 2 || first.Prev != "" || second.From != 3 || second.To != 5 || second.Prev != first.Hash {
		s.Errorf("seals %+v and %+v", first, second)
	}
	rep, err := s.store.Verify(s.ctx, "one")
	s.ok(err)
	want := agent.SealReport{Session: "one", OK: true, Events: 7, Seals: 2, Open: 1, Head: second.Hash}
	if rep != want {
		s.Errorf("report %+v, want %+v", rep, want)
	}
	_, err = s.store.Verify(s.ctx, "two")
	s.is(err, journal.ErrMissing)
}

func export(s *suite) {
	if s.h.Lines == nil {
		s.Skip("the store has no files: its bytes cannot be compared")
	}
	l := s.session("one")
	s.batch(l, journal.Batch{Events: notes("a", "b"), Seal: true})
	s.add(l, "c")
	s.release(l, journal.Parked)
	lines := s.h.Lines("one")
	s.create("two")
	s.h.Load("two", lines)
	if diff := cmp.Diff(s.log("one", 0), s.log("two", 0), wholeRaw); diff != "" {
		s.Errorf("the copy differs:\n%s", diff)
	}
	if got := s.h.Lines("two"); string(got) != string(lines) {
		s.Error("the bytes of the copy differ")
	}
	s.batch(s.acquire("two"), journal.Batch{Events: notes("d"), Seal: true, Sync: journal.Barrier})
	rep, err := s.store.Verify(s.ctx, "two")
	s.ok(err)
	if !rep.OK || rep.Seals != 2 || !strings.HasPrefix(string(s.h.Lines("two")), string(lines)) {
		s.Errorf("the copy that was continued: %+v", rep)
	}
}

func closed(s *suite) {
	l := s.session("one")
	s.add(l, "a")
	s.ok(s.store.Close())
	_, err := l.Append(s.ctx, journal.Batch{Events: notes("b")})
	s.is(err, journal.ErrClosed)
	_, err = s.store.Acquire(s.ctx, "one", journal.Owner{})
	s.is(err, journal.ErrClosed)
	for _, err := range s.store.Read(s.ctx, "one", 0) {
		s.is(err, journal.ErrClosed)
	}
	s.reopen()
	if got := words(s.log("one", 0)); !slices.Equal(got, []string{"a"}) {
		s.Errorf("log: %v", got)
	}
}
