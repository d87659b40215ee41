package machine

import (
	"context"
	"runtime"
	"time"

	"dure/agent/query"
	"dure/internal/kernel/plug"
)

// Look asks the system what it is, and what is free in a folder; nothing is started for it.
func Look(dir string) query.System {
	s := query.System{OS: runtime.GOOS, Arch: runtime.GOARCH, Name: systemName(), CPUs: runtime.NumCPU(), Workdir: dir}
	s.Memory, s.MemoryFree = memory()
	if free, err := freeSpace(dir); err == nil {
		s.DiskFree = int64(free)
	}
	return s
}

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(func(context.Context, query.DescribeSystem) (query.System, error) {
		s := Look(x.Workdir)
		s.Version, s.Home, s.Data, s.Language = x.Version, x.Home, x.Data, x.Language
		s.Time = time.Now().Format("2006-01-02 15:04 MST")
		return s, nil
	})}
}
