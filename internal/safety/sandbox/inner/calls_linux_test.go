package inner

import (
	"encoding/binary"
	"testing"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// What the filter answers, run as the kernel does.
func TestCalls(t *testing.T) {
	if auditArch == 0 {
		t.Skip("there is no filter for this architecture")
	}
	const (
		eperm  = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
		enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
		eacces = unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
		eafno  = unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)
	)
	off := &Spec{NoInet: true, NoUnix: true}
	for _, tt := range []struct {
		name string
		spec *Spec
		arch uint32
		call uint32
		args [3]uint64
		want uint32
	}{
		{"reading", &Spec{}, auditArch, unix.SYS_READ, [3]uint64{}, allow},
		{"another architecture", &Spec{}, auditArch ^ 1, unix.SYS_READ, [3]uint64{}, eperm},
		{"tracing", &Spec{}, auditArch, unix.SYS_PTRACE, [3]uint64{}, eperm},
		{"the last of the list", &Spec{}, auditArch, refused[len(refused)-1], [3]uint64{}, eperm},
		{"a process", &Spec{}, auditArch, unix.SYS_CLONE, [3]uint64{uint64(unix.SIGCHLD)}, allow},
		{"a thread", &Spec{}, auditArch, unix.SYS_CLONE, [3]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, allow},
		{"a user namespace", &Spec{}, auditArch, unix.SYS_CLONE, [3]uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
		{"a network namespace", &Spec{}, auditArch, unix.SYS_UNSHARE, [3]uint64{unix.CLONE_NEWNET}, eperm},
		{"a time namespace", &Spec{}, auditArch, unix.SYS_UNSHARE, [3]uint64{unix.CLONE_NEWTIME}, eperm},
		{"files of its own", &Spec{}, auditArch, unix.SYS_UNSHARE, [3]uint64{unix.CLONE_FILES}, allow},
		{"clone by structure", &Spec{}, auditArch, unix.SYS_CLONE3, [3]uint64{}, enosys},
		{"typing", &Spec{}, auditArch, unix.SYS_IOCTL, [3]uint64{0, unix.TIOCSTI}, eperm},
		{"typing, with bits that the kernel drops", &Spec{}, auditArch, unix.SYS_IOCTL, [3]uint64{0, 1<<32 | unix.TIOCSTI}, eperm},
		{"size of a terminal", &Spec{}, auditArch, unix.SYS_IOCTL, [3]uint64{0, unix.TIOCGWINSZ}, allow},
		{"local socket", &Spec{}, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_UNIX}, allow},
		{"no local socket", off, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_UNIX}, eacces},
		{"internet", &Spec{}, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_INET6}, allow},
		{"no internet", off, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_INET}, eacces},
		{"no internet, with bits that the kernel drops", off, auditArch, unix.SYS_SOCKET, [3]uint64{1<<32 | unix.AF_INET6}, eacces},
		{"interfaces", off, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_NETLINK, 0, unix.NETLINK_ROUTE}, allow},
		{"audit", &Spec{}, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_NETLINK, 0, unix.NETLINK_AUDIT}, eafno},
		{"packets", &Spec{}, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_PACKET}, eafno},
		{"virtual machines", &Spec{}, auditArch, unix.SYS_SOCKET, [3]uint64{unix.AF_VSOCK}, eafno},
	} {
		if got := answer(t, calls(tt.spec), tt.arch, tt.call, tt.args); got != tt.want {
			t.Errorf("%s: %#x, want %#x", tt.name, got, tt.want)
		}
	}
	if foreignCalls != 0 {
		if got := answer(t, calls(&Spec{}), auditArch, unix.SYS_READ|foreignCalls, [3]uint64{}); got != eperm {
			t.Errorf("a call by another number: %#x", got)
		}
	}
}

// answer runs a filter. The machine of x/net reads numbers in network order, so
// they are laid out for it.
func answer(t *testing.T, p program, arch, call uint32, args [3]uint64) uint32 {
	t.Helper()
	raw := make([]bpf.RawInstruction, len(p))
	for i, f := range p {
		raw[i] = bpf.RawInstruction{Op: f.Code, Jt: f.Jt, Jf: f.Jf, K: f.K}
	}
	list, ok := bpf.Disassemble(raw)
	if !ok {
		t.Fatal("it cannot be read")
	}
	vm, err := bpf.NewVM(list)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	binary.BigEndian.PutUint32(data[atCall:], call)
	binary.BigEndian.PutUint32(data[atArch:], arch)
	for i, arg := range args {
		binary.BigEndian.PutUint32(data[atArg0+8*i:], uint32(arg))
		binary.BigEndian.PutUint32(data[atArg0+8*i+4:], uint32(arg>>32))
	}
	got, err := vm.Run(data)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(got)
}
