package inner

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// surrender gives up all rights that the command must not have, for good, and
// hides this program from it. The order matters: each step needs what a later one
// takes.
func surrender(s *Spec) error {
	if err := failing("hiding from the command", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := failing("adopting what is left behind", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)); err != nil {
		return err
	}
	if err := failing("refusing new privileges", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)); err != nil {
		return err
	}
	if s.Landlock > 0 {
		if err := landlock(s); err != nil {
			return err
		}
	}
	return filterCalls(s)
}

// lastCapability is above all that kernels know; those they do not know end the
// loop.
const lastCapability = 63

// dropCapabilities drops what the user namespace gave, and what root has, on all
// threads: a thread that kept it could be taken over through the memory they
// share.
func dropCapabilities() error {
	for c := uintptr(0); c <= lastCapability; c++ {
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			break
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return failing("dropping capabilities", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, errno := syscall.AllThreadsSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&none[0])), 0)
	if errno == unix.ENOTSUP { // a program with C in it: the others are out of reach, as is their memory
		errno = 0
		if err := unix.Capset(&head, &none[0]); err != nil {
			return failing("dropping capabilities", err)
		}
	}
	runtime.KeepAlive(&head)
	runtime.KeepAlive(&none)
	if errno != 0 {
		return failing("dropping capabilities", errno)
	}
	return nil
}

// The rights of Landlock, by what they are for. What a version does not know, it
// does not decide on.
const (
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
)

// scopesFrom is the first version of Landlock with scopes: signals and abstract
// sockets reach only what is confined alike.
const scopesFrom = 6

// landlock allows writing, and where that is asked for reading, by a list. The
// version has the rights above: from 3 on.
func landlock(s *Spec) error {
	rules := unix.LandlockRulesetAttr{Handled_access_fs: writeRights}
	if s.Read != nil {
		rules.Handled_access_fs |= readRights
	}
	if s.Landlock >= scopesFrom {
		rules.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	// Older versions take the longer structure as long as the rest of it is empty.
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&rules)), unsafe.Sizeof(rules), 0)
	if errno != 0 {
		return failing("asking for Landlock", errno)
	}
	set := int(r)
	defer func() { _ = unix.Close(set) }()
	for _, path := range s.Write {
		if err := permit(set, path, rules.Handled_access_fs); err != nil {
			return err
		}
	}
	for _, path := range s.Read {
		if err := permit(set, path, readRights); err != nil {
			return err
		}
	}
	if s.Read != nil { // the names of all folders can be listed
		if err := permit(set, "/", unix.LANDLOCK_ACCESS_FS_READ_DIR); err != nil {
			return err
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(set), 0, 0); errno != 0 {
		return failing("entering Landlock", errno)
	}
	return nil
}

// permit adds rights at a path and below it. One that is gone, or has become a link,
// needs none.
func permit(set int, path string, rights uint64) error {
	fd, err := plain(path)
	if err != nil {
		return nil
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return failing("looking at "+path, err)
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&rule)), 0, 0, 0)
	if errno != 0 {
		return failing("allowing "+path, errno)
	}
	return nil
}
