package machine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

func systemName() string {
	v := windows.RtlGetVersion()
	return fmt.Sprintf("Windows %d.%d build %d", v.MajorVersion, v.MinorVersion, v.BuildNumber)
}

// memoryStatus is MEMORYSTATUSEX of the Windows API.
type memoryStatus struct {
	length, load                                                uint32
	total, free, pageTotal, pageFree, virtTotal, virtFree, extd uint64
}

// memory returns what there is and what could be used, in bytes.
func memory() (total, free int64) {
	var m memoryStatus
	m.length = uint32(unsafe.Sizeof(m))
	status := windows.NewLazySystemDLL("kernel32.dll").NewProc("GlobalMemoryStatusEx")
	if ok, _, _ := status.Call(uintptr(unsafe.Pointer(&m))); ok == 0 {
		return 0, 0
	}
	return int64(m.total), int64(m.free)
}
