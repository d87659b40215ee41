package sandbox

import (
	"unsafe"

	"golang.org/x/sys/windows"
)

// createRestrictedToken makes a primary token of one, with fewer rights, as the
// function of Windows of that name does; it names no groups.
func createRestrictedToken(of windows.Token, flags uint32, less *windows.Token) (bool, error) {
	proc := windows.NewLazySystemDLL("advapi32.dll").NewProc("CreateRestrictedToken")
	if err := proc.Find(); err != nil {
		return false, err
	}
	ok, _, err := proc.Call(uintptr(of), uintptr(flags), 0, 0, 0, 0, 0, 0, uintptr(unsafe.Pointer(less)))
	return ok != 0, err
}
