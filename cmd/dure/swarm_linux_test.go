package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"dure/agent"
	"dure/internal/app"
	"dure/internal/models/script"
	"dure/internal/prooftest"
)

// dieVar names the write of a log at which a program ends that these tests start; 0 = none,
// and it says at its end how many there were.
const dieVar = "PROOF_DIE"

// mortal has the program end at a write, as by SIGKILL.
func mortal() {
	at, err := strconv.ParseInt(os.Getenv(dieVar), 10, 64)
	if err != nil {
		return
	}
	var n atomic.Int64
	atWrites = func(string) {
		now := n.Add(1)
		if at == 0 {
			fmt.Fprintln(os.Stderr, "write", now)
		}
		if now == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
}

// errands are the tasks of the swarm by their correlation, or by their ID in the plan, and
// the line that each writes: its own name. The first three are handed over by messages and
// the others by a plan, of which the second builds on the first.
var errands = map[string]string{"m1": "scribe", "m2": "counter", "m3": "scribe", "p1": "counter", "p2": "scribe"}

var (
	taskLine = regexp.MustCompile(`Write the line (\w+)\.`)
	answered = regexp.MustCompile(`delegate_result from \w+, correlationId (m\d)`)
)

// swarmEnd is what the coordinator says last.
const swarmEnd = "All 5 lines are written."

// swarmModel is what all three agents say: it knows nothing but what a request has in it.
func swarmModel(r script.Request) script.Reply {
	input := func(v any) json.RawMessage {
		data, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return data
	}
	if bytes.Contains(r.Body, []byte("You hand work to others")) {
		switch {
		case r.Step == 0:
			var calls []script.Call
			for _, id := range []string{"m1", "m2", "m3"} {
				calls = append(calls, script.Call{ID: "h" + id, Tool: "agent__handoff", Input: input(map[string]string{"to": errands[id], "payload": "Write the line " + id + ".", "correlationId": id})})
			}
			return script.Reply{Calls: calls}
		case !bytes.Contains(r.Body, []byte(`"plan1"`)):
			return script.Reply{Calls: []script.Call{{ID: "plan1", Tool: "agent__coordinate", Input: input(map[string]any{"tasks": []map[string]any{
				{"id": "p1", "agentType": errands["p1"], "description": "Write the line p1."},
				{"id": "p2", "agentType": errands["p2"], "description": "Write the line p2.", "dependencies": []string{"p1"}},
			}})}}}
		}
		back := map[string]bool{}
		for _, m := range answered.FindAllSubmatch(r.Body, -1) {
			back[string(m[1])] = true
		}
		if len(back) < 3 {
			return script.Reply{Text: fmt.Sprintf("I wait: %d of 3 are back.", len(back))}
		}
		return script.Reply{Text: swarmEnd}
	}
	task := taskLine.FindSubmatch(r.Body)
	tool := "tally__"
	if bytes.Contains(r.Body, []byte("into the book")) {
		tool = "book__"
	}
	if task == nil {
		return script.Reply{Text: "What?"}
	}
	line := string(task[1])
	do := func(what string) script.Reply {
		return script.Reply{Calls: []script.Call{{ID: fmt.Sprintf("%s%d", what, r.Step), Tool: tool + what, Input: input(map[string]string{"line": line})}}}
	}
	switch {
	case r.Step == 0, strings.Contains(r.Last, "is there 0 times"):
		return do("enter")
	case strings.Contains(r.Last, "entered "+line), strings.Contains(r.Last, line+" is there"):
		return script.Reply{Text: line + " is written."}
	}
	return do("look") // whether it was written is not known
}

// swarmRun is a swarm that is killed and resumed until its task is solved.
type swarmRun struct {
	t     *testing.T
	dir   string
	env   []string
	model *script.Server
	kills int
	said  string
}

func newSwarmRun(t *testing.T, node string) *swarmRun {
	t.Helper()
	r := &swarmRun{t: t, dir: t.TempDir()}
	var err error
	if r.model, err = script.NewServer(script.Script{}, script.Options{Func: swarmModel}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.model.Close() })
	for _, d := range []string{"work/desk", "home", "dure"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(r.dir, "work/desk"), os.DirFS("testdata/swarm")); err != nil {
		t.Fatal(err)
	}
	settings := `{"permissions": {"allow": ["book__enter", "book__look", "tally__enter", "tally__look"]}}`
	if err := os.WriteFile(filepath.Join(r.dir, "dure/settings.json"), []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = []string{
		"PATH=" + filepath.Dir(node) + string(filepath.ListSeparator) + os.Getenv("PATH"), "HOME=" + filepath.Join(r.dir, "home"), "DURE_HOME=" + filepath.Join(r.dir, "dure"), "LANG=C.UTF-8", "GORACE=" + atOnce,
		"ANTHROPIC_BASE_URL=" + r.model.URL(), "ANTHROPIC_API_KEY=scripted", "DURE_MODEL=script", "TMPDIR=" + r.dir,
	}
	if _, out, err := r.dure("", "trust", "desk"); err != nil {
		t.Fatalf("trusting the bundle: %v\n%s", err, out)
	}
	return r
}

// dure runs the program to its end.
func (r *swarmRun) dure(in string, args ...string) (died bool, out string, err error) {
	return r.dureTo(-1, in, args...)
}

func (r *swarmRun) dureTo(die int, in string, args ...string) (died bool, out string, err error) {
	cmd := exec.Command(dureProgram(r.t), args...)
	cmd.Dir, cmd.Env = filepath.Join(r.dir, "work"), r.env
	if die >= 0 {
		cmd.Env = append(slices.Clip(cmd.Env), dieVar+"="+strconv.Itoa(die))
	}
	var said, complaints bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(in), &said, &complaints
	if err := cmd.Start(); err != nil {
		return false, "", err
	}
	hangs := time.AfterFunc(runLimit, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) })
	err = cmd.Wait()
	if !hangs.Stop() {
		return false, "", fmt.Errorf("it hangs:\n%s", complaints.String())
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
		return true, said.String() + complaints.String(), nil
	}
	r.said = said.String()
	if err != nil {
		err = errors.Join(err, errors.New(complaints.String()))
	}
	return false, said.String() + complaints.String(), err
}

// live runs the swarm until it ends or dies. A line is typed only where none is in the log.
func (r *swarmRun) live(die int) (died bool, out string) {
	r.t.Helper()
	in := "Have the lines written.\n"
	if id, events := r.entry(); id != "" && slices.ContainsFunc(events, func(e agent.Event) bool {
		switch e.Body.(type) {
		case agent.InputAdded, agent.InputQueued:
			return true
		}
		return false
	}) {
		in = ""
	}
	died, out, err := r.dureTo(die, in, "bundle", "run", "desk")
	if err != nil {
		r.t.Fatalf("after %d kills: %v", r.kills, err)
	}
	if died {
		r.kills++
	}
	return died, out
}

// logs returns the events of all sessions.
func (r *swarmRun) logs() map[string][]agent.Event {
	r.t.Helper()
	a, err := app.New(app.Options{
		Environ: r.env, UserHome: filepath.Join(r.dir, "home"), Workdir: filepath.Join(r.dir, "work"), Language: "en",
	})
	if err != nil {
		r.t.Fatal(err)
	}
	defer a.Close()
	all := map[string][]agent.Event{}
	found, err := filepath.Glob(filepath.Join(r.dir, "dure/sessions/*/*/log.*.jsonl"))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, path := range found {
		id := filepath.Base(filepath.Dir(path))
		if all[id] != nil {
			continue
		}
		for e, err := range a.Client().Attach(id).Events(r.t.Context(), 0) {
			if err != nil {
				r.t.Fatalf("reading the log of %s: %v", id, err)
			}
			all[id] = append(all[id], e)
		}
	}
	return all
}

// entry returns the log of the coordinator.
func (r *swarmRun) entry() (id string, events []agent.Event) {
	r.t.Helper()
	for name, list := range r.logs() {
		if strings.HasPrefix(name, "b") {
			if id != "" {
				r.t.Fatalf("there are two conversations, %s and %s", id, name)
			}
			id, events = name, list
		}
	}
	return id, events
}

// check reads the transcripts and what the workers have written.
func (r *swarmRun) check() {
	r.t.Helper()
	_, events := r.entry()
	last := ""
	asked, handles, settled, children, ended := map[string]int{}, map[string]string{}, map[string]int{}, map[string]bool{}, map[string]bool{}
	inputs := 0
	plan := 0
	for _, e := range events {
		switch b := e.Body.(type) {
		case agent.InputAdded:
			if b.Origin == "" {
				inputs++
			}
		case agent.ModelAnswered:
			last = b.Message.Text()
		case agent.CallFinished:
			asked[b.Result.ID]++
			switch {
			case b.Result.Status == agent.StatusPending:
				handles[b.Result.Handle] = strings.TrimPrefix(b.Result.ID, "h")
			case b.Result.ID == "plan1":
				plan++
				for _, id := range []string{"p1", "p2"} {
					if n := strings.Count(b.Result.Text, "\n"+id+" is written."); n != 1 {
						r.t.Errorf("the plan has %d answers of %s: %s", n, id, b.Result.Text)
					}
				}
			default:
				r.t.Errorf("the call %s came out as %+v", b.Result.ID, b.Result)
			}
		case agent.CallSettled:
			var m struct{ CorrelationID, Payload, From, Type string }
			if err := json.Unmarshal(b.Result.Output, &m); err != nil || b.Lost || m.Type != "delegate_result" || m.CorrelationID != handles[b.Handle] || m.From != errands[m.CorrelationID] || !strings.HasPrefix(m.Payload, m.CorrelationID+" is written.") {
				r.t.Errorf("%s was settled as %+v (%v)", b.Handle, b, err)
			}
			settled[m.CorrelationID]++
		case agent.ChildOpened:
			children[b.Child] = true
		case agent.ChildEnded:
			ended[b.Child] = true
		}
	}
	if last != swarmEnd {
		r.t.Errorf("the last answer is %q", last)
	}
	once := map[string]int{"m1": 1, "m2": 1, "m3": 1}
	if want := map[string]int{"hm1": 1, "hm2": 1, "hm3": 1, "plan1": 1}; !maps.Equal(asked, want) || plan != 1 || len(handles) != 3 || inputs != 1 {
		r.t.Errorf("calls %v, %d plans, %d handed over, %d inputs", asked, plan, len(handles), inputs)
	}
	if !maps.Equal(settled, once) {
		r.t.Errorf("answers: %v", settled)
	}
	if len(children) != len(errands) || len(ended) != len(errands) {
		r.t.Errorf("%d agents, of which %d ended", len(children), len(ended))
	}
	r.checkRead(once)
	for name, want := range map[string][]string{"ledger": {"m1", "m3", "p2"}, "tally": {"m2", "p1"}} {
		data, err := os.ReadFile(filepath.Join(r.dir, "work", name))
		if got := slices.Sorted(slices.Values(strings.Fields(string(data)))); err != nil || !slices.Equal(got, want) {
			r.t.Errorf("%s has %q (%v)", name, got, err)
		}
	}
}

// checkRead wants each answer once in the last request of the coordinator.
func (r *swarmRun) checkRead(want map[string]int) {
	r.t.Helper()
	var last []byte
	for _, q := range r.model.Requests() {
		if bytes.Contains(q.Body, []byte("You hand work to others")) {
			last = q.Body
		}
	}
	read := map[string]int{}
	for _, m := range answered.FindAllSubmatch(last, -1) {
		read[string(m[1])]++
	}
	if !maps.Equal(read, want) {
		r.t.Errorf("the coordinator has read %v", read)
	}
}

// orphans returns the processes of the run that do not end by themselves.
func (r *swarmRun) orphans() (alive []string) {
	const patience = 30 * time.Second
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); ; {
		alive = nil
		entries, _ := os.ReadDir("/proc")
		for _, e := range entries {
			if _, err := strconv.Atoi(e.Name()); err != nil {
				continue
			}
			env, err := os.ReadFile("/proc/" + e.Name() + "/environ")
			line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline")
			if err == nil && len(line) > 0 && bytes.Contains(env, []byte(r.dir)) {
				alive = append(alive, e.Name()+" "+strings.ReplaceAll(string(line), "\x00", " "))
			}
		}
		if len(alive) == 0 || time.Since(begun) > patience {
			return alive
		}
		<-tick.C
	}
}

// TestSwarmSurvives kills the program that runs a swarm at random writes of its logs and of
// those of its agents, and starts it again, until the task is solved: each task that was
// handed over is answered once, and each line is written once.
func TestSwarmSurvives(t *testing.T) {
	t.Parallel()
	node := prooftest.Program(t, "node")
	kills := 4
	if prooftest.Long() {
		kills = 50
	}
	seed := time.Now().UnixNano()
	if s := os.Getenv("DURE_CRASH_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseInt(s, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("DURE_CRASH_SEED=%d", seed)
	luck := rand.New(rand.NewPCG(uint64(seed), 0))

	whole := newSwarmRun(t, node)
	_, out := whole.live(0)
	whole.check()
	writes := strings.Count(out, "write ")
	if t.Failed() || writes < 20 || strings.Count(whole.said, swarmEnd) != 1 {
		t.Fatalf("%d writes:\n%s", writes, out)
	}
	done, runs := 0, 0
	for ; done < kills; runs++ {
		r := newSwarmRun(t, node)
		// Several times in one life, mostly early, so that there is something left to kill.
		for range 1 + luck.IntN(4) {
			if died, _ := r.live(1 + luck.IntN(writes*2/3)); !died || done+r.kills == kills {
				break
			}
			if left := r.orphans(); len(left) > 0 {
				t.Fatalf("processes are left behind: %q", left)
			}
		}
		if !strings.Contains(r.said, swarmEnd) { // which nobody has seen where it was killed behind its last turn
			r.live(-1)
		}
		r.check()
		if done += r.kills; t.Failed() {
			t.Fatalf("run %d, killed %d times, in %s", runs, r.kills, r.dir)
		}
	}
	t.Logf("%d kills in %d runs of %d writes", done, runs, writes)
}
