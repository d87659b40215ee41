package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"dure/agent"
	"dure/internal/prooftest"
)

// kept is a session that was closed in good order, with everything that a folder may
// have: two segments, appends of several lines, long bodies, blobs, seals, events
// behind the last one, and a snapshot.
func kept(t *testing.T, events int) (*rig, string) {
	r := newRig(t)
	r.s.segment = 2500
	l := r.session("s")
	sha, _, err := l.PutBlob(t.Context(), strings.NewReader("a blob of a few bytes"), 0)
	if err != nil {
		t.Fatal(err)
	}
	r.add(l, Batch{Events: texts(3, "one", "two", "see "+sha)})
	r.add(l, Batch{Events: texts(2, "three", "four"), Seal: true})
	for i := range events {
		r.add(l, Batch{Events: texts(1+i%3, "más ünï", strings.Repeat("x", i%50), `"quoted"`), Seal: i%7 == 3})
	}
	if err := l.Snapshot(t.Context(), 4, []byte(`{"state":"as of event 4","list":[1,2,3]}`)); err != nil {
		t.Fatal(err)
	}
	r.add(l, Batch{Events: texts(2, "behind the seal", strings.Repeat("long ", 7000))})
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Fatalf("untouched: %+v, %v", rep, err)
	}
	return r, l.dir
}

// files are the files that Verify vouches for.
func (r *rig) files(dir string) (names []string) {
	r.Helper()
	for _, sub := range []string{"", "blobs/", "snap/"} {
		list, err := r.mem.list(strings.TrimSuffix(dir+"/"+sub, "/"))
		if err != nil {
			r.Fatal(err)
		}
		for _, name := range list {
			if sub != "" || strings.HasPrefix(name, "log.0") {
				names = append(names, sub+name)
			}
		}
	}
	return names
}

// altered checks what Verify says of a file that was changed by a byte, or cut.
func (r *rig) altered(what, file string, was, is []byte, before int64) {
	r.Helper()
	r.set(file, is)
	rep, err := r.s.Verify(r.Context(), "s")
	at := shared(was, is)
	isLog := strings.HasPrefix(file, "log.")
	event := rep.At
	if isLog {
		event = before + int64(bytes.Count(was[:min(at, len(was))], []byte("\n"))) + 1
	}
	switch {
	case err != nil:
		r.Fatalf("%s, %s at %d: %v", file, what, at, err)
	case rep.OK || rep.File != file || rep.Offset > int64(at) || rep.At != event || rep.At == 0:
		r.Fatalf("%s, %s at %d, event %d: %+v", file, what, at, event, rep)
	case rep.Exact && rep.Offset != int64(at):
		r.Fatalf("%s, %s at %d: %+v", file, what, at, rep)
	}
	if isLog && what != "cut" {
		r.tried++
		if !rep.Exact { // two bytes would explain it: once in some ten thousand times
			r.vague++
		}
	}
}

func (r *rig) alter(file string, was []byte, i int, before int64, rnd *rand.Rand) {
	for _, with := range []byte{was[i] ^ 1<<rnd.IntN(8), []byte{'\n', byte(rnd.Uint32())}[i%2]} {
		if with != was[i] {
			is := slices.Clone(was)
			is[i] = with
			r.altered("changed", file, was, is, before)
		}
	}
	with := []byte{was[i], '\n', byte(rnd.Uint32())}[rnd.IntN(3)]
	r.altered("added", file, was, slices.Insert(slices.Clone(was), i+rnd.IntN(2), with), before)
	r.altered("taken out", file, was, slices.Delete(slices.Clone(was), i, i+1), before)
	r.altered("cut", file, was, was[:i], before)
	r.set(file, was)
}

func TestEveryByte(t *testing.T) {
	r, dir := kept(t, 5)
	rnd := rand.New(rand.NewPCG(1, 2))
	before, tried := int64(0), 0
	for _, name := range r.files(dir) {
		was := r.bytes(name)
		step := 1
		if len(was) > maxInline { // a long body: some of its bytes
			step = 997
		}
		var places []int
		for i := 0; i < len(was); i += step {
			places = append(places, i)
		}
		for _, i := range prooftest.Sample(t, places, 8, func(i int) bool { return was[i] == '\n' || i+1 == len(was) }) {
			r.alter(name, was, i, before, rnd)
			tried++
		}
		if strings.HasPrefix(name, "log.") {
			before += int64(bytes.Count(was, []byte("\n")))
		}
	}
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Fatalf("put back: %+v, %v", rep, err)
	}
	t.Logf("%d bytes, %d changes of the log, %d of them not told to the byte", tried, r.tried, r.vague)
	if r.vague > r.tried/500 {
		t.Error("too many were not told to the byte")
	}
}

func TestSomeBytes(t *testing.T) {
	r, dir := kept(t, 400)
	rnd := rand.New(rand.NewPCG(3, 4))
	names := r.files(dir)
	tries := 60
	if prooftest.Long() {
		tries = 3000
	}
	for range tries {
		name, before := "", int64(0)
		for i, at := 0, rnd.IntN(len(names)); i <= at; i++ {
			if name = names[i]; i < at && strings.HasPrefix(name, "log.") {
				before += int64(bytes.Count(r.bytes(name), []byte("\n")))
			}
		}
		if !strings.HasPrefix(name, "log.") {
			before = 0
		}
		was := r.bytes(name)
		r.alter(name, was, rnd.IntN(len(was)), before, rnd)
	}
}

// The listing says much of a session that people go by.
func TestEveryByteOfListing(t *testing.T) {
	r, _ := kept(t, 1)
	was := r.bytes("meta.json")
	for i := range was {
		for what, is := range map[string][]byte{
			"changed":   append(append(slices.Clone(was[:i]), was[i]^1), was[i+1:]...),
			"added":     slices.Insert(slices.Clone(was), i, ' '),
			"taken out": slices.Delete(slices.Clone(was), i, i+1),
			"cut":       was[:i],
		} {
			r.set("meta.json", is)
			if rep, err := r.s.Verify(t.Context(), "s"); err != nil || rep.OK || rep.File != "meta.json" {
				t.Fatalf("%s at %d: %+v, %v", what, i, rep, err)
			}
		}
	}
	r.again()
	if m, err := r.s.Mend(t.Context(), "s", false); err != nil || m.OK || m.Lost > 0 {
		t.Errorf("mending: %+v, %v", m, err)
	}
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Errorf("mended: %+v, %v", rep, err)
	}
	r.set("meta.json", was)
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Errorf("put back: %+v, %v", rep, err)
	}
}

// A blob that an event names and that is gone is missed.
func TestBlobsGone(t *testing.T) {
	for name, body := range map[string]func(sha string) agent.Body{
		"system": func(sha string) agent.Body { return agent.ModelRequested{System: sha} },
		"tools":  func(sha string) agent.Body { return agent.ModelRequested{Tools: sha} },
		"output": func(sha string) agent.Body {
			return agent.CallFinished{Result: agent.Result{ID: "c", Spill: &agent.Spill{SHA256: sha}}}
		},
		"long": func(sha string) agent.Body {
			return agent.CallFinished{Result: agent.Result{ID: "c", Text: strings.Repeat("x", 2*maxInline), Spill: &agent.Spill{SHA256: sha}}}
		},
	} {
		r := newRig(t)
		l := r.session("s")
		sha, _, err := l.PutBlob(t.Context(), strings.NewReader("the whole of it"), 0)
		if err != nil {
			t.Fatal(err)
		}
		r.add(l, Batch{Events: []agent.Event{{Body: body(sha)}}})
		if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
			t.Fatalf("%s: %+v, %v", name, rep, err)
		}
		if err := r.mem.remove(blobName(l.dir, sha)); err != nil {
			t.Fatal(err)
		}
		if rep, err := r.s.Verify(t.Context(), "s"); err != nil || rep.OK || rep.File != "blobs/"+sha || rep.At == 0 {
			t.Errorf("%s: %+v, %v", name, rep, err)
		}
		r.again()
		if m, err := r.s.Mend(t.Context(), "s", true); err != nil || !m.OK {
			t.Errorf("%s: there is nothing to mend: %+v, %v", name, m, err)
		}
	}
}

// What a crash leaves at the end of a log is none of anybody's doing; what no crash
// leaves there is.
func TestEndOfDeadLog(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(2), Seal: true})
	r.add(l, Batch{Events: numbered(2)})
	log := r.bytes(first)
	last := bytes.LastIndexByte(log[:len(log)-1], '\n') + 1
	for cut := last; cut < len(log); cut++ {
		r.set(first, log[:cut])
		rep, err := r.s.Verify(t.Context(), "s")
		want := agent.SealReport{Session: "s", OK: true, Events: 4, Seals: 1, Open: 1, Head: rep.Head, Torn: int64(cut - last)}
		if err != nil || rep != want {
			t.Fatalf("cut at %d: %+v, %v", cut, rep, err)
		}
	}
	for with, at := range map[string]int{"x": len(log) - 1, "": len(log) - 2} {
		r.set(first, []byte(string(log[:at])+with+string(log[at+1:])))
		rep, err := r.s.Verify(t.Context(), "s")
		if err != nil || rep.OK || rep.File != first || rep.Offset != int64(at) || !rep.Exact || rep.At != 5 {
			t.Errorf("%q at %d: %+v, %v", with, at, rep, err)
		}
	}
}

// A log that a crash has shortened under its listing is not held against what is
// written to it later.
func TestListingAhead(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(9), Seal: true})
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	log := r.bytes(first)
	lines := bytes.SplitAfter(log, []byte("\n"))
	r.set(first, bytes.Join(lines[:5], nil))
	r.again()
	rep, err := r.s.Verify(t.Context(), "s")
	if want := fmt.Sprintf("the log has had %d events, and ends behind event 5: its end was cut off", len(lines)-1); err != nil || rep.Problem != want {
		t.Errorf("%+v, %v", rep, err)
	}
	r.add(r.open("s"), Batch{Events: numbered(1)})
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Errorf("written on: %+v, %v", rep, err)
	}
}

func FuzzLocate(f *testing.F) {
	line, _ := appendLine(nil, agent.Event{Seq: 1, Epoch: 1, ID: "a", Body: agent.Note{}}, payload{data: []byte(`{"text":"hi"}`)}, 0)
	f.Add(line, 3, byte('x'))
	f.Add(append(line, line...), len(line)-1, byte('"'))
	f.Add([]byte(sumMark), 0, byte(0))
	f.Fuzz(func(t *testing.T, text []byte, at int, b byte) {
		if len(text) > 4096 {
			return
		}
		if off, ok := locateLine(text, chain{}); ok && (off < 0 || off > len(text)) {
			t.Fatalf("byte %d of %d", off, len(text))
		}
		if at >= 0 && at < len(line) && b != line[at] {
			is := slices.Clone(line)
			is[at] = b
			if off, ok := locateLine(is, chain{}); !ok || off != at {
				t.Fatalf("byte %d changed to %q: %d, %v", at, b, off, ok)
			}
		}
	})
}
