package sandbox

import "os/exec"

// Find returns the path of a program on PATH, or "".
func Find(program string) string {
	path, err := exec.LookPath(program)
	if err != nil {
		return ""
	}
	return path
}
