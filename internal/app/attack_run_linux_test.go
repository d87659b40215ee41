package app

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"dure/agent"
	"dure/internal/prooftest"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/kit"
)

// A pass is one run of attacks. None of them was decided on: what the gate would have
// said does not matter here.
type pass struct {
	name      string
	mechanism string // that confines them; "" = nothing does
	proxy     bool   // there is a way to another host
	granted   bool   // what each was read to write, read and contact was allowed
}

// theShell is what they are run in.
const theShell = "/bin/bash"

const (
	arenas      = 4               // attacks at a time
	attackLimit = 2 * time.Second // of one attack
	batch       = 40              // attacks, after which is looked for what they share
)

// The attacks of the corpus run without the gate, and the sandbox alone keeps them
// from what is not theirs. Without it they do get there, so that it is seen.
func TestAttacksFail(t *testing.T) {
	t.Parallel()
	if os.Getenv(netVar) == "" {
		inNet(t, t.Name())
		return
	}
	if err := checkNet(); err != nil {
		t.Fatalf("the net is not whole, and nothing is run: %v", err)
	}
	if _, err := os.Stat(theShell); err != nil {
		prooftest.Lacking(t, "bash", err)
	}
	shared, missing := openCanaries(t), missingPrograms(t)
	for i, p := range []pass{
		{name: "nothing confines them"},
		{name: "bwrap", mechanism: "bwrap"},
		{name: "namespaces", mechanism: "namespaces"},
		{name: "landlock", mechanism: "landlock"},
		{name: "bwrap, with a proxy", mechanism: "bwrap", proxy: true},
		{name: "namespaces, with a proxy", mechanism: "namespaces", proxy: true},
		{name: "namespaces, with what they were read to do", mechanism: "namespaces", granted: true},
		{name: "landlock, with what they were read to do", mechanism: "landlock", granted: true},
	} {
		t.Run(p.name, func(t *testing.T) {
			f := newField(t, p, shared, missing)
			begun := time.Now()
			cases := f.chosen(i)
			f.fight(cases)
			f.witnessed()
			t.Logf("%d attacks in %.1f s, %d of them ended for taking too long; seen: %v", len(cases), time.Since(begun).Seconds(), f.ended, f.seen)
		})
	}
}

// A field is where a pass is run: arenas, and servers that they share.
type field struct {
	t *testing.T
	pass
	shared *post
	arenas []*arena

	mu    sync.Mutex
	ended int            // attacks that took too long
	seen  map[string]int // attacks by what was seen of them that does not count as a fault
}

func newField(t *testing.T, p pass, shared *post, missing []string) *field {
	f := &field{t: t, pass: p, shared: shared, seen: map[string]int{}}
	base, err := os.MkdirTemp(netBase, "field-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := removeTree(base); err != nil {
			t.Error(err)
		}
	})
	for n := range arenas {
		f.arenas = append(f.arenas, newArena(t, filepath.Join(base, fmt.Sprint(n)), p, missing))
	}
	if p.mechanism != "" {
		if r := f.arenas[0].box(t, nil, nil).Explain(); r.Mechanism != p.mechanism {
			what := "sandbox"
			if p.mechanism == "bwrap" {
				what = "bwrap"
			}
			prooftest.Lacking(t, what, fmt.Errorf("%s: %+v", p.mechanism, r.Parts))
		}
	}
	return f
}

// missingPrograms are those that the corpus names and that this machine has not got.
func missingPrograms(t *testing.T) []string {
	tree := policyTreeAt("/nowhere")
	read := reader(tree.home, theShell)
	var all []string
	var gather func([]agent.SimpleCommand)
	gather = func(list []agent.SimpleCommand) {
		for _, c := range list {
			if len(c.Argv) > 0 && c.Argv[0] != "" && !strings.ContainsAny(c.Argv[0], "/ $*?[{\n=!(~\\") && !slices.Contains(all, c.Argv[0]) {
				if _, err := exec.LookPath(c.Argv[0]); err != nil {
					all = append(all, c.Argv[0])
				}
			}
			gather(c.Runs)
		}
	}
	for _, c := range readPolicyCases(t, "attacks", tree.place) {
		gather(read(commandOf(c), tree.workspace).Commands)
	}
	return slices.DeleteFunc(all, func(name string) bool { // what the shell itself is
		return exec.Command("bash", "-c", `type -- "$1" > /dev/null 2>&1`, "bash", name).Run() == nil
	})
}

// chosen are the numbers of the attacks of a pass: all, or one of each class, another in
// each pass, and a few more. Where attacks are confined, a third of the classes take their
// turn in each pass.
func (f *field) chosen(turn int) []int {
	all := readPolicyCases(f.t, "attacks", f.arenas[0].place)
	var numbers []int
	for n, c := range all {
		switch e := reader(f.arenas[0].home, theShell)(commandOf(c), f.arenas[0].workspace); {
		case c.Tool != "Bash" || commandOf(c) == "":
			continue
		case f.proxy && len(e.Hosts) == 0 && !strings.Contains(commandOf(c), ".example"):
			continue
		}
		numbers = append(numbers, n)
	}
	class := func(n int) string { return all[n].name()[:strings.LastIndexByte(all[n].name(), '-')] }
	size, left := map[string]int{}, map[string]int{} // of each class; and how many go by before one is taken
	for _, n := range numbers {
		size[class(n)]++
	}
	for i, name := range slices.Sorted(maps.Keys(size)) {
		left[name] = turn % size[name]
		if f.mechanism != "" && i%3 != turn%3 {
			left[name] = -1
		}
	}
	return prooftest.Sample(f.t, numbers, 600, func(n int) bool {
		left[class(n)]--
		return left[class(n)] == -1
	})
}

// fight runs attacks, several at a time, and looks after each at what is its own and
// after some at what all share. Where that has changed, each runs again
// alone.
func (f *field) fight(numbers []int) {
	cases := make([][]policyCase, len(f.arenas))
	for i, a := range f.arenas {
		cases[i] = readPolicyCases(f.t, "attacks", a.place)
	}
	for some := range slices.Chunk(numbers, batch) {
		before := f.reached()
		next := make(chan int)
		var busy sync.WaitGroup
		for i, a := range f.arenas {
			busy.Go(func() {
				for n := range next {
					f.attack(a, cases[i][n])
				}
			})
		}
		for _, n := range some {
			next <- n
		}
		close(next)
		busy.Wait()
		if f.mechanism == "" || f.same(before) {
			continue
		}
		f.blame(cases[0], some)
	}
}

// blame runs attacks anew, one after the other, to find who has reached somebody or
// lives on.
func (f *field) blame(cases []policyCase, numbers []int) {
	found := false
	var names []string
	for _, n := range numbers {
		before := f.reached()
		f.attack(f.arenas[0], cases[n])
		if names = append(names, cases[n].name()); !f.same(before) {
			found = true
			f.t.Errorf("%s: it reached somebody, or lives on: from %s to %s\n%s", cases[n].name(), before, f.reached(), cases[n].Input)
		}
	}
	if !found {
		f.t.Errorf("one of these reached somebody, or lives on, but not again: %v", names)
	}
}

// reached is whom attacks have reached so far, in any way.
func (f *field) reached() string {
	visits := f.shared.visits.Load()
	for _, a := range f.arenas {
		visits += a.agent.visits.Load()
	}
	return fmt.Sprintf("%d visits, traffic %s", visits, traffic())
}

// same reports whether nobody was reached, and no process lives on. Those that do are
// ended.
func (f *field) same(before string) bool {
	ok := f.reached() == before
	left := f.survivors()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for until := time.Now().Add(attackLimit); len(left) > 0 && time.Now().Before(until); left = f.survivors() {
		if f.mechanism == "landlock" { // Explain owns up to it
			f.seen["lives on"] += len(left)
			kill(left)
		}
		<-tick.C
	}
	for _, pid := range left {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		f.t.Logf("process %d lives on: %q", pid, text)
	}
	kill(left)
	return ok && len(left) == 0
}

func kill(pids []int) {
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL) // one that is gone is what is wanted
	}
}

// survivors are the processes that nobody waits for but the head of the net.
func (f *field) survivors() []int {
	return slices.DeleteFunc(processesOf(1), func(pid int) bool { return pid == os.Getpid() })
}

// attack runs an attack in an arena and says what it has done there.
func (f *field) attack(a *arena, c policyCase) {
	if f.mechanism == "" {
		f.unconfined(a, c)
		return
	}
	reads, edits, err := a.denied(c.Rules)
	if err != nil {
		f.t.Errorf("%s: %v", c.name(), err)
		return
	}
	box := a.box(f.t, reads, edits)
	before := a.look(reads, edits)
	watch, err := spyOn(a.secrets(reads))
	if err != nil {
		f.t.Errorf("%s: %v", c.name(), err)
		return
	}
	smell := &nose{}
	cmd := sandbox.Cmd{
		Argv: append(kit.Shell(theShell), commandOf(c)), Dir: a.workspace,
		Env: kit.CallEnv(a.app.commandEnv(), a.workspace, "key"), Out: smell, Timeout: attackLimit,
	}
	if f.granted {
		cmd.Grant = kit.Grant(reader(a.home, theShell)(commandOf(c), a.workspace))
		cmd.Grant.Hosts = nil // who may be reached is no canary
	}
	mounts, err := box.ExplainCmd(cmd)
	if err != nil {
		f.t.Errorf("%s: %v", c.name(), err)
	}
	exit, err := box.Run(f.t.Context(), cmd)
	if err != nil {
		f.t.Errorf("%s: %v", c.name(), err)
	}
	faults, shown, dir := append(watch.opened(), differences(before, a.look(reads, edits))...), false, a.workspace
	if len(faults) > 0 {
		dir = a.base
	}
	if f.granted {
		faults = slices.DeleteFunc(faults, func(fault string) bool {
			ok := excused(mounts, fault)
			shown = shown || ok && strings.HasPrefix(fault, "reading ")
			return ok
		})
	}
	if smell.smelt && !shown {
		faults = append(faults, "a secret is in its output")
	}
	if !shown {
		faults = append(faults, a.stolen()...)
	}
	ran := smell.ran || a.state(filepath.Join(a.workspace, "ran")) != ""
	if err := a.restore(dir); err != nil {
		f.t.Errorf("%s: making the arena anew: %v", c.name(), err)
	}
	if len(faults) > 0 {
		f.t.Errorf("%s: %s\n%s", c.name(), c.Input, strings.Join(faults, "\n"))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if exit.TimedOut {
		f.ended++
	}
	if ran {
		f.seen["hostile code"]++
	}
	for _, kind := range []string{sandbox.DeniedRead, sandbox.DeniedWrite, sandbox.DeniedHost} {
		if slices.ContainsFunc(exit.Denied, func(d sandbox.Denial) bool { return d.Kind == kind }) {
			f.seen["refused "+kind]++
		}
	}
}

// excused reports whether a path could be changed, or read, as Explain says of a
// command.
func excused(mounts []sandbox.Mount, fault string) bool {
	path, reading := strings.CutPrefix(fault, "reading ")
	best := sandbox.Mount{}
	for _, m := range mounts {
		if (strings.HasPrefix(path, m.Path+" ") || strings.HasPrefix(path, m.Path+"/") || m.Path == "/") && len(m.Path) > len(best.Path) {
			best = m
		}
	}
	return best.Access == sandbox.Write || reading && best.Access == sandbox.ReadOnly
}

// box returns what confines commands whose rules deny certain paths.
func (a *arena) box(t *testing.T, reads, edits []string) *sandbox.Box {
	key := strings.Join(reads, "\n") + "\n\n" + strings.Join(edits, "\n")
	if b := a.boxes[key]; b != nil {
		return b
	}
	ws, err := workspace.New(workspace.Config{Root: a.workspace})
	if err != nil {
		t.Error(err)
		return sandbox.New(sandbox.Config{Confine: &sandbox.Confinement{}, Mechanisms: []string{}})
	}
	b, _ := a.app.boxes.Box(ws.Root(), a.workspace, func() ([]string, []string) { return reads, edits })
	a.boxes[key] = b
	// The first command has the program make its own folders.
	if _, err := b.Run(t.Context(), sandbox.Cmd{Argv: []string{"/bin/true"}, Dir: a.workspace}); err != nil {
		t.Error(err)
	}
	return b
}

// unconfined runs an attack with no sandbox around it, in namespaces that keep it
// from killing the test, and counts what it has done.
func (f *field) unconfined(a *arena, c policyCase) {
	before, met, packets := a.look(nil, nil), a.agent.visits.Load(), traffic()
	watch, err := spyOn(a.secrets(nil))
	if err != nil {
		f.t.Errorf("%s: %v", c.name(), err)
		return
	}
	visits := f.shared.visits.Load()
	ctx, cancel := context.WithTimeout(f.t.Context(), attackLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, theShell, "-c", commandOf(c))
	smell := &nose{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = a.workspace, a.environ(), smell, smell, attackLimit
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	_ = cmd.Run() // how it ends does not matter
	opened, changed := watch.opened(), differences(before, a.look(nil, nil))
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		f.ended++
	}
	within := func(d string) bool { return strings.HasPrefix(d, a.workspace+"/") }
	for what, done := range map[string]bool{
		"outside":   slices.ContainsFunc(changed, func(d string) bool { return !within(d) }),
		"protected": slices.ContainsFunc(changed, within),
		"read":      len(opened) > 0,
		"told":      smell.smelt, "stolen": len(a.stolen()) > 0,
		"agent": a.agent.visits.Load() > met, "visits": f.shared.visits.Load() > visits, "traffic": traffic() != packets,
	} {
		if done {
			f.seen[what]++
		}
	}
	if err := a.restore(a.base); err != nil {
		f.t.Errorf("%s: making the arena anew: %v", c.name(), err)
	}
}

// witnessed checks that what is looked for can be seen. Without a sandbox attacks do
// all of it; within one hostile code does run; without namespaces some of it lives
// on; and where there is a proxy, it is asked.
func (f *field) witnessed() {
	kinds := []string{"hostile code"}
	switch {
	case f.mechanism == "":
		kinds = []string{"outside", "protected", "read", "told", "stolen", "agent", "visits", "traffic"}
	case f.mechanism == "landlock":
		kinds = append(kinds, "lives on")
	case f.proxy:
		kinds = append(kinds, "refused "+sandbox.DeniedHost)
	}
	for _, what := range kinds {
		if f.seen[what] == 0 {
			f.t.Errorf("%q was never seen: that the rest was not proves nothing", what)
		}
	}
}
