package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// spareOf returns the spare that a box holds when it has run a command.
func spareOf(t *testing.T, b *Box) *spare {
	t.Helper()
	b.cell.spares.mu.Lock()
	held := b.cell.spares.held
	b.cell.spares.mu.Unlock()
	if !held {
		t.Fatal("the box keeps no spare")
	}
	one := <-b.cell.spares.ready
	b.cell.spares.free()
	t.Cleanup(func() { one.end() })
	return one
}

// takes reports whether a box takes a spare that it holds.
func takes(s *spares, one *spare) bool {
	held := make(chan struct{})
	go func() {
		defer close(held)
		s.hold(one)
	}()
	for {
		got, _ := s.take(func() (*spare, error) { return nil, nil })
		if got != nil {
			return true
		}
		select {
		case <-held:
			return false
		default:
		}
	}
}

func TestSpare(t *testing.T) {
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			b, root := confined(t, m, nil)
			output(t, b, root, "true", Grant{})
			if one := spareOf(t, b); !takes(&b.cell.spares, one) {
				t.Error("one that waits is not taken")
			}
			output(t, b, root, "true", Grant{})
			one := spareOf(t, b)
			_ = unix.Kill(-one.cmd.Process.Pid, unix.SIGKILL)
			eventually(t, "its end is seen", func() bool { return !one.fresh() })
			if takes(&b.cell.spares, one) {
				t.Error("one that somebody killed is taken")
			}
			if out, exit := output(t, b, root, "echo on", Grant{}); out != "on\n" {
				t.Errorf("the next command wrote %q, and ended with %+v", out, exit)
			}
		})
	}
}

// There is a spare for the next command also when the one before has just been taken.
func TestSpareIsFollowed(t *testing.T) {
	b, root := confined(t, byNamespaces, nil)
	for range 5 {
		output(t, b, root, "true", Grant{})
		if one := <-b.cell.spares.ready; !one.fresh() {
			t.Error("it is not fresh")
		} else {
			b.cell.spares.kept.Go(func() { b.cell.spares.hold(one) })
		}
	}
}

// A spare that nobody takes, and that of a box which is closed, are ended.
func TestSpareThatNobodyTakes(t *testing.T) {
	b, root := confined(t, byNamespaces, nil)
	b.cell.spares.time = 0
	output(t, b, root, "true", Grant{})
	b.cell.spares.kept.Wait()
	if b.cell.spares.held {
		t.Error("it is still there")
	}
	b.cell.spares.time = spareTime
	output(t, b, root, "true", Grant{})
	mark := b.watcher.mark
	eventually(t, "there is one after the next command", func() bool { return count(mark) > 0 })
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if left := count(mark); left != 0 {
		t.Errorf("%d processes outlive the box", left)
	}
}

// Commands of one box share no namespace, also when one ends before the next.
func TestSpareIsOfItsOwn(t *testing.T) {
	const script = `for n in user mnt pid net ipc uts cgroup; do readlink /proc/self/ns/$n; done`
	for _, m := range []string{byBwrap, byNamespaces} {
		t.Run(m, func(t *testing.T) {
			b, root := confined(t, m, nil)
			seen := map[string]bool{}
			for _, name := range []string{"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"} {
				outside, err := os.Readlink("/proc/self/ns/" + name)
				if err != nil {
					t.Fatal(err)
				}
				seen[outside] = true
			}
			for range 3 { // each stays until the end: numbers are used again
				out := b.NewCapture()
				defer out.Close()
				cmd := sh(script + "; echo .; exec sleep 600")
				cmd.Dir, cmd.Out = root, out
				start(t, b, cmd)
				waitFor(t, out, ".\n")
				list := strings.Fields(strings.TrimSuffix(soFar(out), ".\n"))
				if len(list) != 7 {
					t.Fatalf("its namespaces are %q", list)
				}
				for _, ns := range list {
					if seen[ns] {
						t.Errorf("%s is that of another", ns)
					}
					seen[ns] = true
				}
			}
		})
	}
}

// What is mounted outside between two commands, the second one sees. This program
// is started anew for that, with mounts of its own.
func TestSpareOfOldMounts(t *testing.T) {
	b, root := confined(t, byNamespaces, nil)
	if os.Getenv("DURE_TEST_MOUNTS") == "" {
		again := exec.Command(os.Args[0], "-test.run=^TestSpareOfOldMounts$", "-test.v")
		again.Env = append(os.Environ(), "DURE_TEST_MOUNTS=1")
		again.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
		}
		if out, err := again.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := filepath.Join(root, "dir")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	output(t, b, root, "true", Grant{})
	one := spareOf(t, b)
	if !one.fresh() {
		t.Error("it is not fresh")
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Unmount(dir, unix.MNT_DETACH) }()
	if takes(&b.cell.spares, one) {
		t.Error("one with other mounts is taken")
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := output(t, b, root, "ls dir", Grant{}); out != "file\n" {
		t.Errorf("the next command sees %q", out)
	}
}

// What is started to see whether a mechanism works carries the mark of the box too: what
// a program that is killed just then leaves behind is ended by it.
func TestProbesAreMarked(t *testing.T) {
	for _, mechanism := range mechanisms {
		b := New(Config{Temp: t.TempDir(), Confine: &Confinement{Roots: []string{t.TempDir()}}, Mechanisms: []string{mechanism}})
		defer b.Close()
		asked := 0
		f := b.cell.find(func() string { asked++; return b.watcher.ready() })
		if f.mechanism == mechanism && asked == 0 {
			t.Errorf("%s was tried by a program without a mark", mechanism)
		}
	}
}
