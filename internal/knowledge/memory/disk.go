package memory

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"dure/internal/safety/workspace"
)

// OS is the disk of this machine.
func OS() Disk {
	return Disk{ReadFile: readFile, Stat: os.Stat, ReadDir: os.ReadDir, Real: filepath.EvalSymlinks}
}

// readFile reads a regular file beneath its folder: it waits for no pipe, touches no
// device, and follows no link out of the folder.
func readFile(path string, limit int64) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := workspace.OpenRegular(root, filepath.Base(path))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return data, err
}
