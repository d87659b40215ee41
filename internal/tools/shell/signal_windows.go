package shell

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// sendSignal ends a process: there are no other signals.
func sendSignal(pid int, name string, check func() error) error {
	if name != "TERM" && name != "KILL" {
		return errNoSignal
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return errGone
	}
	defer func() { _ = windows.CloseHandle(h) }() // until then its number names no other
	if err := check(); err != nil {
		return err
	}
	return windows.TerminateProcess(h, 1)
}

// kin returns the parent of a process, and whether this user runs it.
func kin(pid int) (parent int, ours bool, err error) {
	parent, err = parentOf(uint32(pid))
	if err != nil {
		return 0, false, err
	}
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return parent, false, nil //nolint:nilerr // one that cannot be looked at is not ours
	}
	defer func() { _ = windows.CloseHandle(h) }()
	var token windows.Token
	if windows.OpenProcessToken(h, windows.TOKEN_QUERY, &token) != nil {
		return parent, false, nil
	}
	defer token.Close()
	its, err := token.GetTokenUser()
	if err != nil {
		return parent, false, nil //nolint:nilerr // as above
	}
	mine, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return parent, false, nil //nolint:nilerr // as above
	}
	return parent, windows.EqualSid(its.User.Sid, mine.User.Sid), nil
}

func parentOf(pid uint32) (int, error) {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return 0, err
	}
	defer func() { _ = windows.CloseHandle(all) }()
	var e windows.ProcessEntry32
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Process32First(all, &e); err == nil; err = windows.Process32Next(all, &e) {
		if e.ProcessID == pid {
			return int(e.ParentProcessID), nil
		}
	}
	return 0, errGone
}
