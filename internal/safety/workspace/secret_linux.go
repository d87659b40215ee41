package workspace

import (
	"os"
	"path/filepath"
	"syscall"
)

// procMagic is the type of the file system that shows processes as files.
const procMagic = 0x9fa0

// secret reports whether an open file is the environment of a process. That of
// this program has its keys, and what is read goes into logs and to models.
func secret(f *os.File, name string) bool {
	if filepath.Base(name) != "environ" {
		return false
	}
	var st syscall.Statfs_t
	err := syscall.Fstatfs(int(f.Fd()), &st)
	return err != nil || st.Type == procMagic
}
