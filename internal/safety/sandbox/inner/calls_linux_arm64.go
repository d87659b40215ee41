package inner

import "golang.org/x/sys/unix"

const (
	auditArch    = unix.AUDIT_ARCH_AARCH64
	foreignCalls = 0
)

var refusedHere = []uint32{unix.SYS_KEXEC_FILE_LOAD}
