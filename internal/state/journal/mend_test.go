package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"dure/agent"
)

// longLog makes a session with appends of several lines, seals and a body that is a
// blob, and returns the file of its log.
func longLog(t *testing.T, s *Local, dir string) string {
	t.Helper()
	stored(t, s, "one")
	l, err := s.Acquire(t.Context(), "one", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		text := fmt.Sprintf("note %d", i)
		if i == 3 {
			text = strings.Repeat("long ", maxInline/4)
		}
		b := Batch{Events: []agent.Event{{Body: agent.Note{Text: text}}, {Body: agent.TurnEnded{Turn: text[:4]}}}, Seal: i%2 == 1, Sync: Barrier}
		if _, err := l.Append(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "sessions", "*", "one", "log.*.jsonl"))
	if err != nil || len(files) != 1 {
		t.Fatal(err, files)
	}
	return files[0]
}

// events are the events of a log by their IDs.
func events(t *testing.T, s *Local) map[string]string {
	t.Helper()
	all := map[string]string{}
	for e, err := range s.Read(t.Context(), "one", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind() != kindSealed {
			body, err := agent.EncodeBody(e.Body)
			if err != nil {
				t.Fatal(err)
			}
			all[e.ID] = fmt.Sprintf("%d %s %s %s", e.Seq, e.Time, e.Kind(), body)
		}
	}
	return all
}

// lines are a log in whole lines.
func linesOf(data []byte) [][]byte { return bytes.SplitAfter(data, []byte("\n")) }

func TestMend(t *testing.T) {
	t.Parallel()
	cut := func(ls [][]byte, i int) [][]byte { return append(append([][]byte{}, ls[:i]...), ls[i+1:]...) }
	for name, tt := range map[string]struct {
		damage func([][]byte) [][]byte
		lost   int // events for which a note stands
	}{
		"torn end": {func(ls [][]byte) [][]byte { return append(ls, []byte(`{"v":1,"seq":17,"ep`)) }, 0},
		"garbage": {func(ls [][]byte) [][]byte {
			return append(append(append([][]byte{}, ls[:5]...), []byte("what is this\n")), ls[5:]...)
		}, 0},
		"zeros": {func(ls [][]byte) [][]byte {
			return append(append(append([][]byte{}, ls[:5]...), make([]byte, 4096), []byte("\n")), ls[5:]...)
		}, 0},
		"a line twice":      {func(ls [][]byte) [][]byte { return append(append(append([][]byte{}, ls[:5]...), ls[4]), ls[5:]...) }, 0},
		"all of it twice":   {func(ls [][]byte) [][]byte { return append(append([][]byte{}, ls...), ls...) }, 0},
		"two lines swapped": {func(ls [][]byte) [][]byte { ls[6], ls[7] = ls[7], ls[6]; return ls }, 0},
		"a line is gone":    {func(ls [][]byte) [][]byte { return cut(ls, 4) }, 1},
		"a seal is gone":    {func(ls [][]byte) [][]byte { return cut(ls, 5) }, 1},
		"the first is gone": {func(ls [][]byte) [][]byte { return ls[1:] }, 1},
		"an altered byte":   {func(ls [][]byte) [][]byte { ls[4] = bytes.Replace(ls[4], []byte("note"), []byte("nite"), 1); return ls }, 1},
		"an altered sum": {func(ls [][]byte) [][]byte {
			l := ls[3]
			if at := len(l) - 4; l[at] == '0' {
				l[at] = '1'
			} else {
				l[at] = '0'
			}
			return ls
		}, 0},
		"a newline is gone": {func(ls [][]byte) [][]byte { ls[4] = bytes.TrimSuffix(ls[4], []byte("\n")); return ls }, 0},
		"half a line":       {func(ls [][]byte) [][]byte { ls[4] = ls[4][:len(ls[4])/2]; return ls }, 1},
		"a long line":       {func(ls [][]byte) [][]byte { ls[4] = append(bytes.Repeat([]byte("x"), 3*maxLine), '\n'); return ls }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			s, err := NewLocal(LocalOptions{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			file := longLog(t, s, dir)
			before := events(t, s)
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			ls := linesOf(data)
			damaged := bytes.Join(tt.damage(ls[:len(ls)-1]), nil)
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			mended(t, dir, file, before, damaged, tt.lost)
		})
	}
}

// mended mends a log, and checks that it can be written on and has lost no more than
// so many events.
func mended(t *testing.T, dir, file string, before map[string]string, damaged []byte, lost int) {
	t.Helper()
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	dry, err := s.Mend(t.Context(), "one", true)
	if now, _ := os.ReadFile(file); err != nil || !bytes.Equal(now, damaged) {
		t.Fatalf("a look has changed the log: %v", err)
	}
	m, err := s.Mend(t.Context(), "one", false)
	if err != nil {
		t.Fatalf("%v, %+v", err, dry)
	}
	if m.OK {
		if !bytes.Equal(damaged, must2(os.ReadFile(file))) {
			t.Error("a log in which nothing was wrong has changed")
		}
		return
	}
	if kept := must2(os.ReadFile(filepath.Join(m.Kept, filepath.Base(file)))); !bytes.Equal(kept, damaged) {
		t.Errorf("what was kept in %s is not the log as it was", m.Kept)
	}
	rep, err := s.Verify(t.Context(), "one")
	if err != nil || !rep.OK {
		t.Fatalf("%v, %+v, %+v", err, rep, m)
	}
	after, gone := events(t, s), 0
	for id, e := range before {
		if after[id] != e {
			gone++
		}
	}
	if gone > lost || int(m.Lost) > lost {
		t.Errorf("%d events are gone and %d are counted, want %d: %+v", gone, m.Lost, lost, m)
	}
	l, err := s.Acquire(t.Context(), "one", Owner{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), Batch{Events: []agent.Event{{Body: agent.Note{Text: "on"}}}, Seal: true}); err != nil {
		t.Error(err)
	}
	if err := l.Release(t.Context(), Parked, Meta{}); err != nil {
		t.Fatal(err)
	}
	again, err := s.Mend(t.Context(), "one", false)
	if err != nil || !again.OK {
		t.Errorf("mended once more: %v, %+v", err, again)
	}
}

func must2(b []byte, err error) []byte {
	must(err)
	return b
}

// Random damage costs no more than the lines that it touches.
func TestMendRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		dir := t.TempDir()
		s, err := NewLocal(LocalOptions{Dir: dir, Durability: DurabilityOS})
		if err != nil {
			t.Fatal(err)
		}
		file := longLog(t, s, dir)
		before := events(t, s)
		ls := linesOf(must2(os.ReadFile(file)))
		ls = ls[:len(ls)-1]
		touched := 0
		for range 1 + rnd.IntN(3) {
			i := rnd.IntN(len(ls))
			switch rnd.IntN(4) {
			case 0:
				ls = append(append(append([][]byte{}, ls[:i]...), ls[rnd.IntN(len(ls))]), ls[i:]...)
			case 1:
				ls = append(append([][]byte{}, ls[:i]...), ls[i+1:]...)
				touched += 2
			case 2:
				l := bytes.Clone(ls[i])
				l[rnd.IntN(len(l))] ^= 1 << rnd.IntN(7)
				ls[i] = l
				touched += 2 // it may have been the newline
			case 3:
				k := rnd.IntN(len(ls))
				ls[i], ls[k] = ls[k], ls[i]
			}
		}
		damaged := bytes.Join(ls, nil)
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		mended(t, dir, file, before, damaged, touched)
	}
}
