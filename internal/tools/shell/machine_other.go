//go:build unix && !linux && !darwin

package shell

func systemName() string { return "" }

// memory and diskFree do not know.
func memory() (total, free int64) { return 0, 0 }

func diskFree(string) int64 { return 0 }
