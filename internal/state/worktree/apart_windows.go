package worktree

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// busyFile is the error of a file that somebody else has open alone.
const busyFile = syscall.Errno(32)

// tryLock takes a lock that is held as long as this process has the file open; nil =
// somebody else has it.
func tryLock(path string) (*os.File, error) {
	name, err := syscall.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(name, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil, syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, busyFile) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(h), path), nil
}

// apart keeps the signals of a terminal from a command. A lock cannot be handed on here:
// when this process is killed, the next one may come while the command still runs.
func apart(cmd *exec.Cmd, _ *os.File) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
