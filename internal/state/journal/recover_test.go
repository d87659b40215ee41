package journal

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// fiveEvents is a log of the appends a | b c | d e.
func fiveEvents(t *testing.T) (*rig, []byte) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: texts(1, "a")})
	r.add(l, Batch{Events: texts(2, "b", "c")})
	r.add(l, Batch{Events: texts(2, "d", "e"), Sync: Barrier})
	return r, slices.Clone(r.bytes(first))
}

// ends returns where the lines of a log end.
func ends(log []byte) []int {
	var at []int
	for i, c := range log {
		if c == '\n' {
			at = append(at, i+1)
		}
	}
	return at
}

// reopened opens the damaged log b, and checks that a second open finds nothing
// to mend.
func reopened(t *testing.T, b []byte) (*rig, *lease, error) {
	t.Helper()
	r, _ := fiveEvents(t)
	r.set(first, b)
	r.again()
	l, err := r.s.acquire(t.Context(), "s")
	if err != nil {
		return r, nil, err
	}
	head := l.Head()
	r.again()
	again := r.open("s")
	if again.Repaired() != nil || again.Head() != head {
		t.Fatalf("opened again: head %d after %d, %+v", again.Head(), head, again.Repaired())
	}
	return r, l, nil
}

// A log that ends anywhere is cut back to the last append that is whole, and
// what was cut is kept.
func TestTornAtEveryByte(t *testing.T) {
	_, log := fiveEvents(t)
	end := ends(log)
	whole := []int{0, end[0], end[2], end[4]}
	heads := []int64{0, 1, 3, 5}
	for _, fill := range []string{"", "zeros", "noise", "half a line"} {
		lengths := make([]int, len(log))
		for n := range lengths {
			lengths[n] = n
		}
		for _, n := range prooftest.Sample(t, lengths, 8, func(n int) bool { return slices.Contains(end, n) || slices.Contains(end, n+1) }) {
			tail := []byte(nil)
			switch fill {
			case "zeros":
				tail = make([]byte, len(log)-n)
			case "noise":
				tail = bytes.Repeat([]byte{0xff, '\n', '"'}, 9)
			case "half a line":
				tail = []byte(`{"v":1,"seq":`)
			}
			i := len(whole) - 1
			for whole[i] > n {
				i--
			}
			damaged := slices.Concat(log[:n], tail)
			r, l, err := reopened(t, damaged)
			if err != nil {
				t.Fatalf("%s at %d: %v", fill, n, err)
			}
			cut := len(damaged) - whole[i]
			if l.Head() != heads[i] {
				t.Fatalf("%s at %d: head %d, want %d", fill, n, l.Head(), heads[i])
			}
			if cut == 0 {
				if l.Repaired() != nil {
					t.Fatalf("%s at %d: %+v", fill, n, l.Repaired())
				}
				continue
			}
			rep := l.Repaired()
			if rep == nil || rep.Bytes != int64(cut) || rep.Why == "" || !strings.HasPrefix(rep.Kept, "log.torn-") {
				t.Fatalf("%s at %d: %+v, want %d bytes", fill, n, rep, cut)
			}
			if kept := r.bytes(rep.Kept); !bytes.Equal(kept, damaged[whole[i]:]) {
				t.Fatalf("%s at %d: kept %q", fill, n, kept)
			}
		}
	}
}

// A wrong bit anywhere is found. Before the last line it is damage: nothing is
// cut off, and what is before it can be read.
func TestEveryFlippedBit(t *testing.T) {
	_, log := fiveEvents(t)
	end := ends(log)
	bits := make([]int, 8*len(log))
	for n := range bits {
		bits[n] = n
	}
	for _, n := range prooftest.Sample(t, bits, 13, func(n int) bool { return slices.Contains(end, n/8+1) }) {
		i, bit := n/8, n%8
		b := slices.Clone(log)
		b[i] ^= 1 << bit
		line := 0
		for end[line] <= i {
			line++
		}
		r, l, err := reopened(t, b)
		events, readErr := r.good("s")
		where := fmt.Sprintf("bit %d of byte %d (line %d)", bit, i, line+1)
		switch {
		case line == 4 || line == 3 && i == end[3]-1: // the end: taken for torn
			if err != nil || l.Head() != 3 || l.Repaired() == nil {
				t.Fatalf("%s: %v", where, err)
			}
		case !errors.Is(err, ErrDamaged):
			t.Fatalf("%s: opened: %v", where, err)
		case !errors.Is(readErr, ErrDamaged) || events != int64(line):
			t.Fatalf("%s: %d events can be read, then %v", where, events, readErr)
		case !bytes.Equal(r.bytes(first), b):
			t.Fatalf("%s: the file was changed", where)
		}
	}
}

func TestDamagedLogs(t *testing.T) {
	_, log := fiveEvents(t)
	lines := bytes.SplitAfter(log, []byte("\n"))[:5]
	resign := func(edit func(lines []string) []string) []byte {
		var bodies []string
		for _, l := range lines {
			bodies = append(bodies, string(l[:len(l)-1-sumLen]))
		}
		var out []byte
		var seed uint32
		for _, b := range edit(bodies) {
			l := signed(b, seed)
			_, seed, _ = storedSum(l)
			out = append(append(out, l...), '\n')
		}
		return out
	}
	swap := func(b []string) []string { b[1], b[2] = b[2], b[1]; return b }
	for name, c := range map[string]struct {
		log  []byte
		good int64
		want string
	}{
		"line missing":     {slices.Concat(lines[0], lines[2], lines[3], lines[4]), 1, "after event 1"},
		"lines swapped":    {slices.Concat(lines[0], lines[2], lines[1], lines[3], lines[4]), 1, "after event 1"},
		"line twice":       {slices.Concat(lines[0], lines[0], lines[1], lines[2], lines[3]), 1, "after event 1"},
		"line inserted":    {slices.Concat(lines[0], []byte("{}\n"), lines[1], lines[2], lines[3]), 1, "after event 1"},
		"swapped, signed":  {resign(swap), 1, "event 3 follows event 1"},
		"missing, signed":  {resign(func(b []string) []string { return slices.Delete(b, 4, 5)[1:] }), 0, "event 2 follows event 0"},
		"epoch falls":      {resign(func(b []string) []string { b[0] = strings.Replace(b[0], `"ep":1`, `"ep":2`, 1); return b }), 1, "epoch 1 follows epoch 2"},
		"last line signed": {resign(func(b []string) []string { b[4] = strings.Replace(b[4], `"seq":5`, `"seq":7`, 1); return b }), 4, "event 7 follows event 4"},
		"endless line":     {slices.Concat(lines[0], bytes.Repeat([]byte("x"), 3*maxLine), []byte("\n"), lines[1]), 1, "longer than"},
	} {
		r, _, err := reopened(t, c.log)
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: opened: %v, want %q", name, err, c.want)
		}
		if n, err := r.good("s"); n != c.good || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %d events, then %v", name, n, err)
		}
		for m := range r.s.List(t.Context(), Query{}) {
			if m.Status != statusDamaged {
				t.Errorf("%s: listed as %s", name, m.Status)
			}
		}
		if rep, err := r.s.Verify(t.Context(), "s"); err != nil || rep.OK || rep.At != c.good+1 {
			t.Errorf("%s: verified: %+v, %v", name, rep, err)
		}
		if c.good > 0 {
			if err := r.s.Fork(t.Context(), "s", c.good, "mended"); err != nil {
				t.Errorf("%s: forking the good part: %v", name, err)
			} else if l := r.open("mended"); l.Head() != c.good {
				t.Errorf("%s: the good part has %d events", name, l.Head())
			}
		}
	}
}

func TestLaterVersionIsRefused(t *testing.T) {
	_, log := fiveEvents(t)
	_, sum, _ := storedSum(log[:len(log)-1][bytes.LastIndexByte(log[:len(log)-1], '\n')+1:])
	b := append(slices.Clone(log), signed(`{"v":2,"seq":6,"ep":1`, sum)...)
	r, _, err := reopened(t, append(b, '\n'))
	if err == nil || !strings.Contains(err.Error(), "version 2 is newer") || errors.Is(err, ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
	if n, err := r.good("s"); n != 5 || err == nil || !strings.Contains(err.Error(), "use a newer dure") {
		t.Errorf("%d events, then %v", n, err)
	}
}

func TestMissingSegment(t *testing.T) {
	r := newRig(t)
	r.s.segment = 500
	l := r.session("s")
	r.add(l, Batch{Events: numbered(3)})
	for range 9 {
		r.add(l, Batch{Events: numbered(1)})
	}
	if l.seg < 4 {
		t.Fatalf("%d segments", l.seg)
	}
	r.again()
	if n, err := r.good("s"); n != 12 || err != nil {
		t.Fatalf("%d events, %v", n, err)
	}
	if got := r.open("s"); got.Head() != 12 || got.seg != l.seg {
		t.Fatalf("head %d, segment %d", got.Head(), got.seg)
	}
	if err := r.mem.remove(segmentName(l.dir, 2)); err != nil {
		t.Fatal(err)
	}
	r.again()
	if _, err := r.s.acquire(t.Context(), "s"); !errors.Is(err, ErrDamaged) {
		t.Errorf("opened: %v", err)
	}
	if n, err := r.good("s"); n != 3 || !errors.Is(err, ErrDamaged) {
		t.Errorf("%d events, then %v", n, err)
	}
}

// A torn last segment is mended, also when nothing of it is left.
func TestTornSegment(t *testing.T) {
	for _, keep := range []int{0, 1, 100} {
		r := newRig(t)
		r.s.segment = 500
		l := r.session("s")
		for range 10 {
			r.add(l, Batch{Events: numbered(1)})
		}
		name := segmentName(l.dir, l.seg)
		size, _, err := r.mem.stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.mem.truncate(name, min(int64(keep), size-1)); err != nil {
			t.Fatal(err)
		}
		r.again()
		l = r.open("s")
		head := l.Head()
		if head >= 10 || (l.Repaired() != nil) != (keep > 0) {
			t.Fatalf("kept %d: head %d, %+v", keep, head, l.Repaired())
		}
		r.add(l, Batch{Events: numbered(5), Seal: true})
		if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK || rep.Events != head+6 {
			t.Fatalf("kept %d: %+v, %v", keep, rep, err)
		}
	}
}

// What was sealed cannot be changed without showing, also not by somebody who
// makes all checksums right again.
func TestTampering(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: numbered(3), Seal: true})
	r.add(l, Batch{Events: numbered(2)})
	r.add(l, Batch{Events: numbered(2), Seal: true})
	log := slices.Clone(r.bytes(first))
	var lines []string
	for l := range bytes.Lines(log) {
		lines = append(lines, string(l[:len(l)-1-sumLen]))
	}
	renumber := func(lines []string) {
		for i, l := range lines {
			_, rest, _ := strings.Cut(l, `,"ep":`)
			lines[i] = fmt.Sprintf(`{"v":1,"seq":%d,"ep":%s`, i+1, rest)
		}
	}
	found := func(what string, lines []string) {
		t.Helper()
		var out []byte
		var seed uint32
		for _, b := range lines {
			l := signed(b, seed)
			_, seed, _ = storedSum(l)
			out = append(append(out, l...), '\n')
		}
		r.set(first, out)
		rep, err := r.s.Verify(t.Context(), "s")
		if err != nil || rep.OK || rep.Problem == "" {
			t.Errorf("%s: %+v, %v", what, rep, err)
		}
	}
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || !rep.OK || rep.Seals != 2 || rep.Open != 0 {
		t.Fatalf("untouched: %+v, %v", rep, err)
	}
	sealed := len(lines) - 1 // the last seal covers all but itself
	for i := range sealed {
		for at := range len(lines[i]) {
			edited := slices.Clone(lines)
			edited[i] = edited[i][:at] + string(edited[i][at]^1) + edited[i][at+1:]
			found(fmt.Sprintf("byte %d of line %d", at, i+1), edited)
		}
		gone := slices.Delete(slices.Clone(lines), i, i+1)
		renumber(gone)
		found(fmt.Sprintf("line %d removed", i+1), gone)
		twice := slices.Insert(slices.Clone(lines), i, lines[i])
		renumber(twice)
		found(fmt.Sprintf("line %d twice", i+1), twice)
		if i+1 < sealed {
			swapped := slices.Clone(lines)
			swapped[i], swapped[i+1] = swapped[i+1], swapped[i]
			renumber(swapped)
			if swapped[i] != lines[i] {
				found(fmt.Sprintf("lines %d and %d swapped", i+1, i+2), swapped)
			}
		}
	}
}

func TestDamagedBlobs(t *testing.T) {
	r := newRig(t)
	l := r.session("s")
	r.add(l, Batch{Events: texts(1, strings.Repeat("long ", 20_000)), Sync: Barrier})
	names, err := r.mem.list(l.dir + "/blobs")
	if err != nil || len(names) != 1 {
		t.Fatal(names, err)
	}
	b := r.bytes("blobs/" + names[0])
	b[5] ^= 1
	r.set("blobs/"+names[0], b)
	r.again()
	if n, err := r.good("s"); n != 0 || !errors.Is(err, ErrDamaged) {
		t.Errorf("%d events, then %v", n, err)
	}
	if rep, err := r.s.Verify(t.Context(), "s"); err != nil || rep.OK || rep.At != 1 {
		t.Errorf("verified: %+v, %v", rep, err)
	}
	if err := r.s.Fork(t.Context(), "s", 1, "copy"); !errors.Is(err, ErrDamaged) {
		t.Errorf("forked: %v", err)
	}
	// The same body stored again mends it.
	r.add(r.open("s"), Batch{Events: texts(1, strings.Repeat("long ", 20_000)), Sync: Barrier})
	if n, err := r.good("s"); n != 2 || err != nil {
		t.Errorf("mended: %d events, then %v", n, err)
	}
}

// A copy that ends within an append of the original keeps all that it has, also
// when its own first append is torn.
func TestTornBehindAForkWithinAnAppend(t *testing.T) {
	r, _ := fiveEvents(t)
	if err := r.s.Fork(t.Context(), "s", 2, "copy"); err != nil {
		t.Fatal(err)
	}
	l := r.open("copy")
	r.add(l, Batch{Events: texts(2, "own")})
	name := segmentName(l.dir, 1)
	if err := r.mem.truncate(name, l.size-5); err != nil {
		t.Fatal(err)
	}
	if n, err := r.good("copy"); n != 2 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
	r.again()
	l = r.open("copy")
	if l.Head() != 2 || l.Repaired() == nil {
		t.Errorf("head %d, %+v", l.Head(), l.Repaired())
	}
	r.add(l, Batch{Events: texts(2, "own")})
	if n, err := r.good("copy"); n != 4 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
}

// FuzzRecover opens whatever bytes there are for a log.
func FuzzRecover(f *testing.F) {
	log := func(b Batch) []byte {
		mem := newMemDisk(atNoon)
		s := newLocal(mem, LocalOptions{})
		var m Meta
		m.ID = "s"
		if err := s.Create(background, m); err != nil {
			f.Fatal(err)
		}
		l, err := s.acquire(background, "s")
		if err != nil {
			f.Fatal(err)
		}
		for range 2 {
			if _, err := l.Append(background, b); err != nil {
				f.Fatal(err)
			}
		}
		out, err := readAll(mem, segmentName(l.dir, 1), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		return out
	}
	good := log(Batch{Events: numbered(3), Seal: true, Taken: []string{"m"}})
	f.Add([]byte(nil), -1, byte(0))
	f.Add(good, -1, byte(0))
	f.Add(good, len(good)/2, byte(4))
	f.Add(good[:len(good)-7], -1, byte(0))
	f.Add(log(Batch{Events: []agent.Event{{Body: agent.TurnEnded{Turn: "t"}}}}), 20, byte(1))
	f.Add(append(signed(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"log.sealed","id":"","d":{"from":-1,"to":9,"hash":"x"}`, 0), '\n'), -1, byte(0))
	f.Add(append(signed(`{"v":1,"seq":1,"ep":1,"ts":"2026-01-01T00:00:00Z","k":"note","id":"","m":9,"d":{}`, 0), '\n'), -1, byte(0))
	same := LocalOptions{Durability: DurabilityOS, NewID: func(time.Time) string { return "id" }}
	f.Fuzz(func(t *testing.T, b []byte, at int, flip byte) {
		if at >= 0 && at < len(b) {
			b = slices.Clone(b)
			b[at] ^= flip
		}
		mem := newMemDisk(atNoon)
		s := newLocal(mem, same)
		dir := sessionsDir + "/2026-11/s"
		if err := mem.mkdir(dir); err != nil {
			t.Fatal(err)
		}
		if err := replace(mem, segmentName(dir, 1), b, false); err != nil {
			t.Fatal(err)
		}
		read := func() (n int64, err error) {
			for _, err := range s.Read(background, "s", 0) {
				if err != nil {
					return n, err
				}
				n++
			}
			return n, nil
		}
		before, readErr := read()
		if _, err := s.Verify(background, "s"); err != nil {
			t.Fatal(err)
		}
		l, err := s.acquire(background, "s")
		if err != nil {
			if after, err := read(); after != before || (err == nil) != (readErr == nil) {
				t.Fatalf("refused, and %d events became %d: %v", before, after, err)
			}
			return
		}
		if l.Head() < before {
			t.Fatalf("%d events became %d", before, l.Head())
		}
		if _, err := l.Append(background, Batch{Events: texts(2, "new"), Seal: true, Sync: Barrier}); err != nil {
			t.Fatal(err)
		}
		head := l.Head()
		if err := l.Release(background, Parked, Meta{}); err != nil {
			t.Fatal(err)
		}
		again, err := s.acquire(background, "s")
		if err != nil || again.Repaired() != nil || again.Head() != head {
			t.Fatalf("opened again: %v, %+v", err, again)
		}
	})
}

func atNoon() time.Time { return noon }
