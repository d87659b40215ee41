package checkpoint

import (
	"io/fs"
	"time"
)

// stat is what tells, without reading it, that a file is as it was.
type stat struct {
	mode  fs.FileMode // type and modeBits
	size  int64
	mtime int64 // ns since 1970
	ctime int64 // ns since 1970; 0 where the system has none
	inode uint64
}

// A time within these of the moment of reading proves nothing: a write that came
// right after may bear the same. Clocks of file systems tick in milliseconds, of
// some in whole seconds.
const (
	tick       = 50 * time.Millisecond
	coarseTick = 2100 * time.Millisecond
)

// settled reports whether the file had rested when it was read at a time, so that
// every later change shows in its stat.
func (st stat) settled(read time.Time) bool {
	last, margin := max(st.mtime, st.ctime), tick
	if last%int64(time.Second) == 0 {
		margin = coarseTick
	}
	return last < read.Add(-margin).UnixNano()
}
