package inner

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// refused are system calls that no confined command gets: those that look into
// or drive other processes, that build walls or take them down, and that talk to
// parts of the kernel which builds and tests have no use for. What needs rights
// that were dropped is listed too, in case the kernel errs.
var refused = []uint32{
	// other processes
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	// mounts and namespaces
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT,
	unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_SETNS,
	unix.SYS_OPEN_BY_HANDLE_AT,
	// large and little used parts of the kernel
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_IO_URING_REGISTER, unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_FANOTIFY_INIT,
	unix.SYS_VMSPLICE,
	// the machine
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_SYSLOG,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_NFSSERVCTL,
}

// namespaceFlags are those of clone and unshare that make namespaces.
const namespaceFlags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// Where a filter finds what it decides on, in struct seccomp_data. Arguments have
// 64 bits; these are the lower halves, which is all that the kernel looks at in
// the calls below.
const (
	atCall = 0
	atArch = 4
	atArg0 = 16
	atArg1 = 24
	atArg2 = 32
)

const (
	allow = unix.SECCOMP_RET_ALLOW
	deny  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
)

// A program is a filter in the making: straight, with short jumps over what does
// not apply.
type program []unix.SockFilter

func (p *program) add(code uint16, k uint32) {
	*p = append(*p, unix.SockFilter{Code: code, K: k})
}

func (p *program) load(at uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at) }

func (p *program) end(with uint32) { p.add(unix.BPF_RET|unix.BPF_K, with) }

// unless runs then when the value loaded is not k; both ways go on behind it.
func (p *program) unless(k uint32, then func()) {
	at := len(*p)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
	then()
	(*p)[at].Jt = uint8(len(*p) - at - 1)
}

// when runs then when the value loaded is k.
func (p *program) when(k uint32, then func()) {
	at := len(*p)
	p.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
	then()
	(*p)[at].Jf = uint8(len(*p) - at - 1)
}

// whenAny runs then when one of the bits is set in the value loaded.
func (p *program) whenAny(bits uint32, then func()) {
	at := len(*p)
	p.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits)
	then()
	(*p)[at].Jf = uint8(len(*p) - at - 1)
}

// calls returns the filter of a Spec. Calls of another architecture, 32-bit
// programs among them, are refused altogether: their numbers mean others.
func calls(s *Spec) program {
	var p program
	p.load(atArch)
	p.unless(auditArch, func() { p.end(deny) })
	p.load(atCall)
	if foreignCalls != 0 {
		p.whenAny(foreignCalls, func() { p.end(deny) })
	}
	for _, call := range append(refused, refusedHere...) {
		p.when(call, func() { p.end(deny) })
	}
	// Its flags are in memory, where no filter can look: libraries use clone then.
	p.when(unix.SYS_CLONE3, func() { p.end(unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)) })
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		flags := uint32(namespaceFlags)
		if call == unix.SYS_CLONE {
			flags &^= unix.CLONE_NEWTIME // that bit is part of a signal number there
		}
		p.when(call, func() {
			p.load(atArg0)
			p.whenAny(flags, func() { p.end(deny) })
			p.end(allow)
		})
	}
	p.when(unix.SYS_IOCTL, func() { // typing into terminals
		p.load(atArg1)
		p.when(unix.TIOCSTI, func() { p.end(deny) })
		p.when(unix.TIOCLINUX, func() { p.end(deny) })
		p.end(allow)
	})
	p.when(unix.SYS_SOCKET, func() { p.sockets(s) })
	p.end(allow)
	return p
}

// sockets decides on the family of a socket: local ones and those of the internet
// where the Spec has them, and the questions that libraries ask about interfaces.
func (p *program) sockets(s *Spec) {
	const (
		none    = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		unknown = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	)
	verdict := func(no bool) uint32 {
		if no {
			return none
		}
		return allow
	}
	p.load(atArg0)
	p.when(unix.AF_UNIX, func() { p.end(verdict(s.NoUnix)) })
	p.when(unix.AF_INET, func() { p.end(verdict(s.NoInet)) })
	p.when(unix.AF_INET6, func() { p.end(verdict(s.NoInet)) })
	p.when(unix.AF_NETLINK, func() {
		p.load(atArg2)
		p.when(unix.NETLINK_ROUTE, func() { p.end(allow) })
	})
	p.end(unknown)
}

// filterCalls installs the filter on this thread, which the command inherits.
func filterCalls(s *Spec) error {
	if auditArch == 0 {
		return failing("filtering system calls of this architecture", unix.ENOSYS)
	}
	p := calls(s)
	prog := unix.SockFprog{Len: uint16(len(p)), Filter: &p[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return failing("filtering system calls", errno)
	}
	return nil
}
