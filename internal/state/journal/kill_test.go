package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/prooftest"
)

// The tests below run this program again as the process that is killed. What it
// prints was acknowledged.
func TestMain(m *testing.M) {
	switch os.Getenv("JOURNAL_CHILD") {
	case "append":
		must(appendForEver(os.Getenv("JOURNAL_DIR")))
	case "script":
		n, err := strconv.Atoi(os.Getenv("JOURNAL_KILL"))
		must(err)
		must(runScript(os.Getenv("JOURNAL_DIR"), n))
	case "rival":
		must(rival(os.Getenv("JOURNAL_DIR")))
	default:
		os.Exit(m.Run())
	}
}

func must(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func child(t *testing.T, kind, dir string, kill int) (*exec.Cmd, io.Reader) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "JOURNAL_CHILD="+kind, "JOURNAL_DIR="+dir, "JOURNAL_KILL="+strconv.Itoa(kill))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, out
}

// appendForEver appends batches of all kinds, and says what it did.
func appendForEver(dir string) error {
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		return err
	}
	l, err := s.Acquire(background, "s", Owner{})
	if err != nil {
		return err
	}
	fmt.Println("open", l.Epoch(), l.Head())
	for {
		b := Batch{Events: texts(1+rand.IntN(4), strings.Repeat("x", rand.IntN(3000))), Sync: Durability(rand.IntN(2)), Seal: rand.IntN(9) == 0}
		if rand.IntN(20) == 0 {
			b.Events = texts(1, strings.Repeat("long ", 10_000))
		}
		events, err := l.Append(background, b)
		if err != nil {
			return err
		}
		last := events[len(events)-1]
		fmt.Println("ack", last.Seq, last.ID)
	}
}

// A process that is killed at any moment loses nothing that it acknowledged, and
// the next one can go on. Every log sees 20 such deaths.
func TestKill(t *testing.T) {
	t.Parallel()
	logs := 1
	if prooftest.Long() {
		logs = 50
	}
	for n := range logs {
		t.Run(strconv.Itoa(n), func(t *testing.T) { killOften(t, 20) })
	}
}

func killOften(t *testing.T, rounds int) {
	dir := t.TempDir()
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var m Meta
	m.ID = "s"
	if err := s.Create(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	acked := map[int64]string{} // in this and all earlier rounds
	lastEpoch := int64(0)
	for round := range rounds {
		cmd, out := child(t, "append", dir, 0)
		sc := bufio.NewScanner(out)
		if !sc.Scan() || !strings.HasPrefix(sc.Text(), "open ") {
			t.Fatalf("round %d: %q", round, sc.Text())
		}
		timer := time.AfterFunc(time.Duration(rand.IntN(20_000))*time.Microsecond, func() { _ = cmd.Process.Kill() })
		for sc.Scan() {
			var seq int64
			var id string
			if n, _ := fmt.Sscanf(sc.Text(), "ack %d %s", &seq, &id); n == 2 && len(id) == 36 {
				acked[seq] = id
			} else if strings.HasPrefix(sc.Text(), "error") {
				t.Fatal(sc.Text())
			}
		}
		_ = cmd.Wait() // killed
		timer.Stop()
		lastEpoch = checkKilled(t, s, acked, lastEpoch)
	}
	l, err := s.Acquire(t.Context(), "s", Owner{}) // mends the last one's end
	if err != nil {
		t.Fatal(err)
	}
	rep, err := s.Verify(t.Context(), "s")
	if err != nil || !rep.OK || rep.Events != l.Head() {
		t.Errorf("%+v, %v", rep, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d rounds, %d acknowledged appends, %d events", rounds, len(acked), rep.Events)
	if len(acked) == 0 {
		t.Error("nothing was acknowledged: the children died too early to prove anything")
	}
}

func checkKilled(t *testing.T, s *Local, acked map[int64]string, lastEpoch int64) int64 {
	t.Helper()
	ids := map[string]int64{}
	seq, epoch := int64(0), int64(0)
	for e, err := range s.Read(t.Context(), "s", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Seq != seq+1 || e.Epoch < epoch || e.Epoch > lastEpoch+1 {
			t.Fatalf("event %d of epoch %d follows event %d of epoch %d", e.Seq, e.Epoch, seq, epoch)
		}
		seq, epoch = e.Seq, e.Epoch
		if ids[e.ID] != 0 {
			t.Fatalf("events %d and %d have the same ID", ids[e.ID], seq)
		}
		ids[e.ID] = seq
	}
	for n, id := range acked {
		if ids[id] != n {
			t.Fatalf("event %d was acknowledged, and is lost", n)
		}
	}
	return max(epoch, lastEpoch)
}

// runScript does one of everything, and kills itself at the nth boundary.
func runScript(dir string, n int) error {
	s, err := NewLocal(LocalOptions{Dir: dir, Fault: func(string) {
		if n--; n == 0 {
			p, err := os.FindProcess(os.Getpid())
			must(err)
			must(p.Kill())
			select {}
		}
	}})
	if err != nil {
		return err
	}
	say := func(what string, err error) error {
		if err == nil {
			fmt.Println(what)
		}
		return err
	}
	for _, id := range []string{"s", "t"} {
		var m Meta
		m.ID = id
		if err := say("create "+id, s.Create(background, m)); err != nil {
			return err
		}
	}
	for _, id := range []string{"m1", "m2"} {
		if err := say("post "+id, s.Post(background, "s", "", Msg{ID: id})); err != nil {
			return err
		}
	}
	l, err := s.Acquire(background, "s", Owner{})
	if err != nil {
		return err
	}
	for _, step := range []struct {
		name string
		b    Batch
	}{
		{"append a", Batch{Events: texts(1, "a")}},
		{"append b", Batch{Events: texts(2, "b"), Sync: Barrier}},
		{"append took", Batch{Events: texts(1, "took"), Taken: []string{"m1"}}},
		{"append sent", Batch{Events: texts(2, "sent"), Posts: map[string][]Msg{"t": {{ID: "p1"}, {ID: "p2"}}}}},
		{"append long", Batch{Events: texts(1, "long "+strings.Repeat("x", 50_000)), Wake: time.Now().Add(time.Hour)}},
		{"append sealed", Batch{Events: texts(1, "sealed"), Sync: Barrier, Seal: true}},
	} {
		_, err := l.Append(background, step.b)
		if err := say(step.name, err); err != nil {
			return err
		}
	}
	if err := say("snapshot", l.Snapshot(background, 5, []byte("state"))); err != nil {
		return err
	}
	if err := say("release", l.Release(background, Parked, Meta{})); err != nil {
		return err
	}
	return say("fork", s.Fork(background, "s", 4, "f"))
}

// The script is killed at every boundary, or some of them in the short form.
func TestKillAtEveryBoundary(t *testing.T) {
	t.Parallel()
	step := 4
	if prooftest.Long() {
		step = 1
	}
	killed := 0
	for n := 1; ; n += step {
		dir := t.TempDir()
		cmd, out := child(t, "script", dir, n)
		b, err := io.ReadAll(out)
		if err != nil {
			t.Fatal(err)
		}
		err = cmd.Wait()
		said := strings.Split(strings.TrimSpace(string(b)), "\n")
		if strings.Contains(string(b), "error") {
			t.Fatalf("boundary %d: %s", n, b)
		}
		checkScript(t, dir, said)
		if t.Failed() {
			t.Fatalf("boundary %d, after %q", n, said)
		}
		if err == nil {
			break
		}
		killed++
	}
	t.Logf("killed %d times", killed)
	if killed < 15 {
		t.Errorf("the script has only %d boundaries", killed*step)
	}
}

func checkScript(t *testing.T, dir string, said []string) {
	s, err := NewLocal(LocalOptions{Dir: dir})
	if err != nil {
		t.Error(err)
		return
	}
	defer s.Close()
	for range s.List(t.Context(), Query{}) { // also mends the index
	}
	l, err := s.acquire(t.Context(), "s")
	if err != nil {
		if !errors.Is(err, ErrMissing) || slices.Contains(said, "create s") {
			t.Error(err)
		}
		return
	}
	checkHave(t, s, l, said)
}

func checkHave(t *testing.T, s *Local, l *lease, said []string) {
	log := map[string]int{}
	for e, err := range l.Read(t.Context(), 0) {
		if err != nil {
			t.Error(err)
			return
		}
		log[noteWord(e.Body)]++
	}
	for word, n := range map[string]int{"a": 1, "b": 2, "took": 1, "sent": 2, "long": 1, "sealed": 1} {
		if got := log[word]; got != n && (got != 0 || slices.Contains(said, "append "+word)) {
			t.Errorf("%d of %d events %q", got, n, word)
		}
	}
	mail := func(l *lease) (ids []string) {
		msgs, err := l.Inbox(t.Context())
		if err != nil {
			t.Error(err)
		}
		for _, m := range msgs {
			ids = append(ids, m.ID)
		}
		return ids
	}
	inbox := mail(l)
	for _, id := range []string{"m1", "m2"} {
		here := slices.Contains(inbox, id)
		gone := id == "m1" && log["took"] > 0
		if here && gone || !here && !gone && slices.Contains(said, "post "+id) {
			t.Errorf("message %s: in the inbox %v, consumed %v", id, here, gone)
		}
	}
	if log["sent"] > 0 {
		other, err := s.acquire(t.Context(), "t")
		if err != nil {
			t.Error(err)
			return
		}
		got := mail(other)
		slices.Sort(got)
		if !slices.Equal(got, []string{"p1", "p2"}) {
			t.Errorf("t received %v", got)
		}
	}
	if seq, state, err := l.LastSnapshot(t.Context()); err != nil || slices.Contains(said, "snapshot") && (seq != 5 || string(state) != "state") {
		t.Errorf("snapshot %d %q, %v", seq, state, err)
	}
	if slices.Contains(said, "fork") {
		if f, err := s.acquire(t.Context(), "f"); err != nil || f.Head() != 4 {
			t.Errorf("fork: %v", err)
		}
	}
	if rep, err := s.Verify(t.Context(), "s"); err != nil || !rep.OK {
		t.Errorf("%+v, %v", rep, err)
	}
}

func noteWord(b agent.Body) string {
	n, _ := b.(agent.Note)
	word, _, _ := strings.Cut(n.Text, " ")
	return word
}
