package inner

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

func init() {
	if len(os.Args) == 2 && os.Args[1] == Arg {
		os.Exit(run())
	}
}

// failedCode is the exit code of an inner program that could not do its work.
const failedCode = 125

// A fault is what could not be done.
type fault struct {
	doing string
	err   error
}

func (f *fault) Error() string { return f.doing + ": " + f.err.Error() }

func (f *fault) Unwrap() error { return f.err }

// failing says what could not be done, if something could not.
func failing(doing string, err error) error {
	if err == nil {
		return nil
	}
	return &fault{doing, err}
}

// run is the life of an inner program. Everything that binds the command binds a
// thread first, so it stays on one.
func run() int {
	runtime.LockOSThread()
	// Others may be open: those that the program outside was started with.
	err := failing("closing files", unix.CloseRange(ControlFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC))
	if err == nil {
		err = failing("watching the program outside", unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0))
	}
	var spec *Spec
	var ends []int
	if err == nil {
		spec, ends, err = receive()
	}
	var pid, pidfd int
	if err == nil {
		pid, pidfd, err = start(spec, ends)
	}
	if err != nil {
		complain(err)
		return failedCode
	}
	if pid == 0 { // only the walls were wanted
		_ = report(Finished, make([]byte, 4), -1)
		return 0
	}
	release(ends)
	if err := report(Started, binary.LittleEndian.AppendUint32(nil, uint32(pid)), pidfd); err != nil {
		return failedCode
	}
	_ = unix.Close(pidfd)
	wait(pid)
	return 0
}

// receive waits for the Spec from the program outside, and for the ends of the
// command: its input, output and error output, which come with the length.
func receive() (s *Spec, ends []int, err error) {
	var head [4]byte
	if ends, err = readHead(head[:]); err != nil {
		return nil, nil, err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxSpec {
		return nil, nil, failing("reading what to run", unix.E2BIG)
	}
	text := make([]byte, n)
	if err := readFull(text); err != nil {
		return nil, nil, err
	}
	s, err = Decode(text)
	return s, ends, err
}

// readHead fills b with what was sent in one piece, with descriptors.
func readHead(b []byte) (ends []int, err error) {
	const doing = "reading what to run"
	rights := make([]byte, unix.CmsgSpace(4*Ends))
	n, size := 0, 0
	for {
		n, size, _, _, err = unix.Recvmsg(ControlFD, b, rights, unix.MSG_CMSG_CLOEXEC)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil || n != len(b) {
		return nil, failing(doing, errors.Join(err, unix.EPIPE))
	}
	list, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(list) != 1 {
		return nil, failing(doing, errors.Join(err, unix.EBADF))
	}
	if ends, err = unix.ParseUnixRights(&list[0]); err != nil || len(ends) != Ends {
		return nil, failing(doing, errors.Join(err, unix.EBADF))
	}
	return ends, nil
}

func readFull(b []byte) error {
	for len(b) > 0 {
		n, err := unix.Read(ControlFD, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return failing("reading what to run", errors.Join(err, unix.EPIPE))
		}
		b = b[n:]
	}
	return nil
}

// report tells the program outside; it passes fd on unless that is negative.
func report(kind byte, text []byte, fd int) error {
	msg := make([]byte, 5, 5+len(text))
	msg[0] = kind
	binary.LittleEndian.PutUint32(msg[1:], uint32(len(text)))
	var rights []byte
	if fd >= 0 {
		rights = unix.UnixRights(fd)
	}
	return unix.Sendmsg(ControlFD, append(msg, text...), rights, nil, unix.MSG_NOSIGNAL)
}

// complain reports what failed.
func complain(err error) {
	errno := unix.EPERM
	_ = errors.As(err, &errno)
	text := binary.LittleEndian.AppendUint32(nil, uint32(errno))
	doing := err.Error()
	if f, ok := errors.AsType[*fault](err); ok {
		doing = f.doing
	}
	_ = report(Failed, append(text, doing...), -1) // nobody is left to tell otherwise
}

// start builds the walls and starts the command within them.
func start(s *Spec, ends []int) (pid, pidfd int, err error) {
	if s.Namespaces {
		if err := build(s, ends[0]); err != nil {
			return 0, 0, err
		}
	}
	if s.Loopback {
		if err := network(s.Listen); err != nil {
			return 0, 0, err
		}
	}
	if err := limit(s); err != nil {
		return 0, 0, err
	}
	if err := os.Chdir(s.Dir); err != nil {
		return 0, 0, failing("going to the working folder", err)
	}
	if err := surrender(s); err != nil || s.Path == "" {
		return 0, 0, err
	}
	return fork(s, ends)
}

// fork starts the command at the head of a group of its own, or of a session
// when it has a terminal.
func fork(s *Spec, ends []int) (pid, pidfd int, err error) {
	attr := &syscall.ProcAttr{
		Env:   s.Env,
		Files: []uintptr{uintptr(ends[0]), uintptr(ends[1]), uintptr(ends[2])},
		Sys:   &syscall.SysProcAttr{Setpgid: true, PidFD: &pidfd, Pdeathsig: syscall.SIGKILL},
	}
	if s.Terminal {
		attr.Sys.Setpgid, attr.Sys.Setsid, attr.Sys.Setctty = false, true, true
	}
	pid, err = syscall.ForkExec(s.Path, s.Argv, attr)
	if err != nil {
		return 0, 0, failing(Starting, err)
	}
	if pidfd < 0 {
		return 0, 0, failing("holding the program", unix.ENOSYS)
	}
	if s.Memory > 0 { // this program itself would not get far with it
		most := unix.Rlimit{Cur: uint64(s.Memory), Max: uint64(s.Memory)}
		if err := unix.Prlimit(pid, unix.RLIMIT_AS, &most, nil); err != nil {
			return 0, 0, failing("limiting memory", err)
		}
	}
	return pid, pidfd, nil
}

// release lets go of what belongs to the command: its output ends with it.
func release(ends []int) {
	_ = unix.Close(ExeFD)
	for _, fd := range ends {
		_ = unix.Close(fd)
	}
}

// wait reaps everything that the command leaves behind, until nothing is left or
// somebody kills it. The end of the command itself is reported.
func wait(command int) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return
		}
		if pid == command {
			_ = report(Finished, binary.LittleEndian.AppendUint32(nil, uint32(status)), -1) // else the end of this program tells
		}
	}
}

// limit bounds what the command and its descendants take.
func limit(s *Spec) error {
	for _, l := range []struct {
		what  string
		which int
		max   int64
	}{
		{"processes", unix.RLIMIT_NPROC, s.Processes},
		{"file size", unix.RLIMIT_FSIZE, s.FileSize},
		{"open files", unix.RLIMIT_NOFILE, s.OpenFiles},
	} {
		if l.max <= 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.which, &now); err != nil {
			return failing("reading the limit of "+l.what, err)
		}
		most := min(uint64(l.max), now.Max)
		if err := syscall.Setrlimit(l.which, &syscall.Rlimit{Cur: most, Max: most}); err != nil {
			return failing("limiting "+l.what, err)
		}
	}
	return failing("forbidding core dumps", syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{}))
}
