package shell

// Machine is what the system says of itself. What it does not tell is zero.
type Machine struct {
	Name       string // as it calls itself
	Memory     int64  // bytes
	MemoryFree int64  // that could be used
	DiskFree   int64  // bytes that this user can write in the folder
}

// LookAt asks the system; nothing is started for it.
func LookAt(dir string) Machine {
	m := Machine{Name: systemName(), DiskFree: diskFree(dir)}
	m.Memory, m.MemoryFree = memory()
	return m
}
