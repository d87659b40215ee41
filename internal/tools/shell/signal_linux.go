package shell

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// sendSignal sends a signal to the process that check has looked at, even if its
// number has come to name another one meanwhile.
func sendSignal(pid int, name string, check func() error) error {
	sig, ok := signals[name]
	if !ok {
		return errNoSignal
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) { // a kernel before 5.3
		if err := check(); err != nil {
			return err
		}
		return unix.Kill(pid, sig)
	}
	if err != nil {
		return errGone
	}
	defer func() { _ = unix.Close(fd) }()
	if err := check(); err != nil {
		return err
	}
	if err := unix.PidfdSendSignal(fd, sig, nil, 0); errors.Is(err, unix.ESRCH) {
		return errGone
	} else if err != nil {
		return err
	}
	return nil
}

// kin returns the parent of a process, and whether it is ours: run by this user,
// with no other user's rights. A thread is no process.
func kin(pid int) (parent int, ours bool, err error) {
	text, err := readSome(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false, errGone
	}
	found := map[string][]string{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		found[name] = strings.Fields(rest)
	}
	uids := found["Uid"] // real, effective, saved, of files
	if len(found["PPid"]) != 1 || len(found["Tgid"]) != 1 || len(uids) != 4 || found["Tgid"][0] != strconv.Itoa(pid) {
		return 0, false, errGone
	}
	parent, err = strconv.Atoi(found["PPid"][0])
	if err != nil {
		return 0, false, errGone
	}
	self := strconv.Itoa(os.Getuid())
	return parent, uids[0] == self && uids[1] == self, nil
}
