package journal

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lockedBytes is how much of a lock file others cannot read while it is locked.
const lockedBytes = 0

// dataSync leaves out the time of change, which costs a second write of the
// file system's own journal.
func dataSync(f *os.File) error {
	c, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = c.Control(func(fd uintptr) {
		for {
			if serr = unix.Fdatasync(int(fd)); serr != unix.EINTR {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if serr != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: serr}
	}
	return nil
}

// networkFS names the network file system that holds a folder, or is "".
// Numbers: statfs(2).
func networkFS(dir string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return "", fmt.Errorf("asking for the file system of %s: %w", dir, err)
	}
	switch uint32(st.Type) {
	case unix.NFS_SUPER_MAGIC:
		return "NFS", nil
	case unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC:
		return "SMB", nil
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "AFS", nil
	case unix.CODA_SUPER_MAGIC:
		return "Coda", nil
	case unix.NCP_SUPER_MAGIC:
		return "NCP", nil
	case unix.V9FS_MAGIC:
		return "9P", nil
	case unix.CEPH_SUPER_MAGIC:
		return "Ceph", nil
	}
	return "", nil
}
