package programs

import (
	"maps"
	"slices"
	"testing"

	"dure/agent"
)

// Every table can be read; a mistake in one panics.
func TestTables(t *testing.T) {
	for _, e := range tables().entries {
		e.get()
	}
	if n := len(tables().exact); n < 1000 {
		t.Errorf("only %d names", n)
	}
}

// The programs that may be called harmless are these and no others.
func TestKinds(t *testing.T) {
	want := map[agent.CommandKind][]string{
		agent.CommandReads: {
			"cat", "cd", "diff", "du", "echo", "find", "git diff", "git log", "git show", "git status", "grep", "head", "ls",
			"printf", "pwd", "stat", "tail", "test", "true", "wc", "which",
		},
		agent.CommandEdits: {"cp", "mkdir", "mv", "rm", "rmdir", "sed", "touch"},
	}
	got := map[agent.CommandKind][]string{}
	var walk func(g *grammar)
	walk = func(g *grammar) {
		if g.kind != agent.CommandOther && !slices.Contains(got[g.kind], g.name) {
			got[g.kind] = append(got[g.kind], g.name)
		}
		for s := range maps.Values(g.subs) {
			walk(s)
		}
	}
	for _, e := range tables().entries {
		walk(e.get())
	}
	for kind := range want {
		slices.Sort(got[kind])
		if !slices.Equal(got[kind], want[kind]) {
			t.Errorf("%s: %q, want %q", kind, got[kind], want[kind])
		}
	}
}

// Those that are seen through without being asked about are these.
func TestTransparent(t *testing.T) {
	var got []string
	for _, e := range tables().entries {
		if e.get().transparent {
			got = append(got, e.get().name)
		}
	}
	slices.Sort(got)
	want := []string{"builtin", "command", "nice", "nohup", "stdbuf", "time", "timeout", "xargs"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestDiskDevice(t *testing.T) {
	for path, want := range map[string]bool{
		"/dev/sda": true, "/dev/sda1": true, "/dev/nvme0n1p2": true, "/dev/disk2": true, "/dev/rdisk0s1": true, "/dev/mapper/root": true,
		"/dev/mmcblk0": true, "/dev/mem": true, "/dev/../dev/vda": true, "//dev//sdb": true, `\\.\PhysicalDrive0`: true,
		"/dev/disk/by-id/x": true, "/dev/loop0": true,
		"/dev/null": false, "/dev/zero": false, "/dev/stdout": false, "/dev/stderr": false, "/dev/tty": false, "/dev/tty1": false,
		"/dev/fd/1": false, "/dev/pts/3": false, "/dev/shm/x": false, "/dev/random": false, "/dev/tcp/h/80": false,
		"/dev": false, "dev/sda": false, "/devices/sda": false, "/tmp/dev/sda": false, "": false,
	} {
		if got := DiskDevice(path); got != want {
			t.Errorf("%q: %v", path, got)
		}
	}
}

// A table with a mistake says where it is.
func TestTableFaults(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a\n\tnonsense -x\n", "x.txt:2: no role nonsense"},
		{"a\n\tok -x\n\tdanger -x\n", "x.txt:3: -x is described twice"},
		{"a\n\tstyle odd\n", "x.txt:2: no style odd"},
		{"a\n\tby nobody\n", "x.txt:2: no reader nobody"},
		{"a\n\tuse nothing\n", "x.txt:2: no set nothing"},
		{"a\na\n", "x.txt:2: a stands in two tables"},
	} {
		got := func() (p any) {
			defer func() { p = recover() }()
			x := &index{exact: map[string]*entry{}, sets: map[string][]string{}}
			x.add("x.txt", c.text)
			for _, e := range x.entries {
				e.get()
			}
			return nil
		}()
		if got != c.want {
			t.Errorf("%q: %v, want %s", c.text, got, c.want)
		}
	}
}
