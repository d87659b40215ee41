// Package machine looks at what this machine has for the program: the system, memory, room on
// the disk, programs, and a folder for its data. It starts no goroutines.
package machine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
)

// From where on the room on a disk is little, in bytes.
const (
	lowDisk  = 1 << 30
	fullDisk = 50 << 20
)

// Extension finds what the machine has.
type Extension struct {
	plug.NoSession
	Data     string // the folder in which sessions are kept
	Home     string // the user's folder of the program
	Workdir  string
	Version  string   // of the program
	Language string   // of its user
	Servers  []string // names of the language servers that can be started
}

// Name returns the name of the extension.
func (*Extension) Name() string { return "machine" }

// Findings looks at the machine.
func (x *Extension) Findings(context.Context) []query.Finding {
	l := query.Findings{Group: query.Configured}
	if err := probe(x.Data); err != nil {
		l.Add("data", query.Bad, "data.fail", "path", x.Data, "error", err.Error())
	} else {
		l.Add("data", query.Good, "data.ok", "path", x.Data)
	}
	l.Group = query.Enforced
	if os.Geteuid() == 0 {
		l.Add("root", query.Warn, "root")
	}
	l.Group = query.Programs
	for _, name := range []string{"git", "bash"} {
		if path := sandbox.Find(name); path != "" {
			l.Add(name, query.Good, "program.ok", "path", path)
		} else {
			l.Add(name, query.Warn, "program."+name)
		}
	}
	if len(x.Servers) == 0 {
		l.Add("servers", query.Good, "servers.none")
	} else {
		l.Add("servers", query.Good, "servers.ok", "list", strings.Join(x.Servers, ", "))
	}
	if sandbox.HasPTY() {
		l.Add("pty", query.Good, "pty.ok")
	} else {
		l.Add("pty", query.Good, "pty.none")
	}
	l.Group = query.Machine
	disk(&l, x.Data)
	return l.List
}

// probe writes a file where sessions are kept, and removes it.
func probe(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	_, err = f.WriteString("probe")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

func disk(l *query.Findings, path string) {
	for {
		if _, err := os.Stat(path); err == nil || filepath.Dir(path) == path {
			break
		}
		path = filepath.Dir(path)
	}
	free, err := freeSpace(path)
	if err != nil {
		l.Add("disk", query.Warn, "disk.unknown", "error", err.Error())
		return
	}
	state, code := query.Good, "disk.ok"
	switch {
	case free < fullDisk:
		state, code = query.Bad, "disk.low"
	case free < lowDisk:
		state, code = query.Warn, "disk.low"
	}
	l.Add("disk", state, code, "path", path, "free", size(free))
}

// size is a number of bytes for people.
func size(n uint64) string {
	const unit = 1024
	if n < unit*unit {
		return fmt.Sprintf("%d KiB", n/unit)
	}
	if n < unit*unit*unit {
		return fmt.Sprintf("%d MiB", n/unit/unit)
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/unit/unit/unit)
}
