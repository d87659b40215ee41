//go:build unix && !linux && !darwin

package machine

func systemName() string { return "" }

func memory() (total, free int64) { return 0, 0 }
