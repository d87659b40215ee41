package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"dure/internal/safety/sandbox/inner"
)

// A spare is an inner program that waits for its Spec. What takes longest of a
// confinement is done by then: it has namespaces, which it shares with nobody, and
// this program has come up in them. What a command may touch it is told when there
// is one.
type spare struct {
	cmd     *exec.Cmd
	control *net.UnixConn
	mounts  *os.File // where changes to the mounts outside can be seen; nil = nobody looks
}

// spare starts an inner program by the mechanism that was found. Env is for what
// starts it: it gets no word of an environment that others may have written. What
// it cannot do it says to complaints.
func (f *finding) spare(env []string, openNet bool, complaints io.Writer) (*spare, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("making the control of a command: %w", err)
	}
	theirs, ours := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	defer theirs.Close()
	defer ours.Close()
	exe, err := os.Open(self)
	if err != nil {
		return nil, fmt.Errorf("opening this program: %w", err)
	}
	defer exe.Close()
	control, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("making the control of a command: %w", err)
	}
	s := &spare{control: control.(*net.UnixConn), cmd: &exec.Cmd{
		Env: env, Dir: "/", Stderr: complaints, SysProcAttr: &syscall.SysProcAttr{},
		ExtraFiles: []*os.File{inner.ControlFD - 3: theirs, inner.ExeFD - 3: exe},
	}}
	f.turn(s.cmd, openNet)
	if err := (&group{}).start(s.cmd); err != nil {
		control.Close()
		return nil, fmt.Errorf("confining the command: %w", err)
	}
	return s, nil
}

// self is this program, for this program.
const self = "/proc/self/exe"

// turn makes cmd start the inner program, in namespaces if the mechanism has them.
func (f *finding) turn(cmd *exec.Cmd, openNet bool) {
	cmd.Path, cmd.Args = self, []string{"dure", inner.Arg}
	switch f.mechanism {
	case byBwrap:
		cmd.Path, cmd.Args = f.bwrap, bwrapArgs(openNet)
	case byNamespaces:
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
		if !openNet {
			cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWNET
		}
		// Who is not root would lose what he has in them when the program is started.
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP}
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
}

// bwrapArgs has bwrap make namespaces alone: the inner program, which it starts
// with all rights in them, builds the walls and gives the rights up. That takes a
// tenth of the time, and there is one way to build walls.
func bwrapArgs(openNet bool) []string {
	args := []string{"bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"}
	if !openNet {
		args = append(args, "--unshare-net")
	}
	exe := "/proc/self/fd/" + strconv.Itoa(inner.ExeFD)
	return append(args, "--die-with-parent", "--cap-add", "ALL", "--dev-bind", "/", "/", "--", exe, inner.Arg)
}

// end kills a spare that is not needed.
func (s *spare) end() {
	s.control.Close()
	if s.mounts != nil {
		s.mounts.Close()
	}
	_ = unix.Kill(-s.cmd.Process.Pid, unix.SIGKILL) // it may have ended
	_ = s.cmd.Wait()
}

// fresh reports whether a spare still waits, and for a file tree that is mounted
// as it was when the spare was started.
func (s *spare) fresh() bool {
	raw, err := s.control.SyscallConn()
	if err != nil {
		return false
	}
	told := -1
	err = raw.Control(func(fd uintptr) {
		told, err = unix.Poll([]unix.PollFd{
			{Fd: int32(fd), Events: unix.POLLIN},
			{Fd: int32(s.mounts.Fd()), Events: unix.POLLPRI},
		}, 0)
	})
	return err == nil && told == 0
}

// spareTime is how long a spare waits for a command. An agent starts the next one
// within seconds, or nobody knows when.
const spareTime = time.Minute

// spares keep one spare ready for the next command of a box. A goroutine holds it
// until it is taken, its time is over, or the box is closed.
type spares struct {
	time  time.Duration
	ready chan *spare
	over  chan struct{} // closed with the box
	end   func()        // closes it
	kept  sync.WaitGroup

	mu   sync.Mutex
	held bool // there is a spare, or soon will be
}

func (s *spares) init() {
	s.time, s.ready, s.over = spareTime, make(chan *spare), make(chan struct{})
	s.end = sync.OnceFunc(func() { close(s.over) })
}

// close ends the spare, and waits for its goroutine. Nobody asks for one any more.
func (s *spares) close() {
	s.end()
	s.kept.Wait()
}

// take returns the spare that is ready, or starts one.
func (s *spares) take(start func() (*spare, error)) (*spare, error) {
	select {
	case one := <-s.ready:
		s.free()
		if one.fresh() {
			one.mounts.Close()
			return one, nil
		}
		one.end()
	default:
	}
	return start()
}

// keep sees to a spare for the next command. Where that does not succeed, the
// command tells why.
func (s *spares) keep(start func() (*spare, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		return
	}
	s.held = true
	s.kept.Go(func() {
		// Without the runtime's poller, which would take notice of a change itself.
		fd, err := unix.Open("/proc/self/mounts", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			s.free()
			return
		}
		mounts := os.NewFile(uintptr(fd), "mounts")
		one, err := start()
		if err != nil {
			mounts.Close()
			s.free()
			return
		}
		one.mounts = mounts
		s.hold(one)
	})
}

// hold hands the spare to who asks for it.
func (s *spares) hold(one *spare) {
	late := time.NewTimer(s.time)
	defer late.Stop()
	select {
	case s.ready <- one:
		return
	case <-late.C:
	case <-s.over:
	}
	one.end()
	s.free()
}

// free says that there is no spare any more.
func (s *spares) free() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = false
}
