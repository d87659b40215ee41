package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"
)

// holdMode marks a folder that stands for something which must not come to be.
// Nobody else makes folders like it.
const holdMode = unix.S_ISVTX | 0o500

// IsHold reports whether a folder of this mode is a mark of ours, which stands while
// a command runs.
func IsHold(m fs.FileMode) bool { return m.IsDir() && m&fs.ModeSticky != 0 && m.Perm() == 0o500 }

// Holds are empty folders at paths that a command must not make, for as long as
// one runs: inside of it, something that is read-only is mounted on each. An
// empty folder is what git does not see, and what can be removed without loss.
//
// Boxes of several programs share a hold by a lock of the kernel on the folder:
// who removes one takes it alone, so that nobody loses what he relies on, and a
// program that dies lets go of it. What it leaves behind, the watchdog removes,
// or the next command there.
//
// Nobody waits for the removal of a hold but who closes the box, and a command that
// may write where it stands: it takes longer than all the rest of a confinement where
// the disk is busy.
type holds struct {
	drops sync.WaitGroup

	mu   sync.Mutex
	held map[string]*hold

	going  sync.Mutex
	leaves map[string]int // how many let go of a hold right now
	left   *sync.Cond     // of going: somebody has
}

// wait waits until all holds that nobody uses are removed.
func (h *holds) wait() { h.drops.Wait() }

type hold struct {
	folder *os.File // locked
	users  int
}

// stands reports whether the hold is still there: the user, or a command that may
// write at its path, can remove it while it is in use.
func (h *hold) stands(path string) bool {
	var st, now unix.Stat_t
	return unix.Fstat(int(h.folder.Fd()), &st) == nil && unix.Lstat(path, &now) == nil && st.Dev == now.Dev && st.Ino == now.Ino
}

// maxTries bounds how often a hold may vanish while it is made.
const maxTries = 100

// take makes the holds, and returns what lets go of them again. A folder that the
// user himself cannot write in needs none.
func (h *holds) take(paths []string) (release func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = map[string]*hold{}
	}
	var taken []string
	release = sync.OnceFunc(func() {
		gone := h.leave(taken)
		h.drops.Go(func() { h.drop(taken); gone() })
	})
	for _, path := range paths {
		one := h.held[path]
		if one == nil || !one.stands(path) {
			folder, err := makeHold(path)
			if errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS) {
				continue
			}
			if err != nil {
				release()
				return nil, fmt.Errorf("keeping %s from being made: %w", path, err)
			}
			if one == nil {
				one = &hold{}
				h.held[path] = one
			} else {
				one.folder.Close()
			}
			one.folder = folder
		}
		one.users++
		taken = append(taken, path)
	}
	return release, nil
}

// leave notes holds that somebody lets go of, until gone is called.
func (h *holds) leave(paths []string) (gone func()) {
	count := func(n int) {
		h.going.Lock()
		defer h.going.Unlock()
		if h.leaves == nil {
			h.leaves, h.left = map[string]int{}, sync.NewCond(&h.going)
		}
		for _, path := range paths {
			if h.leaves[path] += n; h.leaves[path] == 0 {
				delete(h.leaves, path)
			}
		}
		h.left.Broadcast()
	}
	count(1)
	return func() { count(-1) }
}

// settle waits until nobody lets go of a hold at one of the paths, or above it.
func (h *holds) settle(paths []string) {
	h.going.Lock()
	defer h.going.Unlock()
	for _, path := range paths {
		for at := path; at != "." && at != "/"; at = filepath.Dir(at) {
			for h.leaves[at] > 0 {
				h.left.Wait()
			}
		}
	}
}

// has reports whether a path is held, or was when somebody asked for it.
func (h *holds) has(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.held[path] != nil
}

// drop lets go of holds, and removes those that nobody uses any more.
func (h *holds) drop(paths []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, path := range paths {
		one := h.held[path]
		if one.users--; one.users == 0 {
			removeHold(path, one.folder)
			delete(h.held, path)
		}
	}
}

// makeHold makes a hold or joins that of another program.
func makeHold(path string) (*os.File, error) {
	for range maxTries {
		if err := unix.Mkdir(path, holdMode); err != nil && !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return nil, err
		}
		folder := os.NewFile(uintptr(fd), path)
		var st unix.Stat_t
		if err := errors.Join(unix.Flock(fd, unix.LOCK_SH), unix.Fstat(fd, &st)); err != nil {
			folder.Close()
			return nil, err
		}
		if st.Nlink > 0 {
			return folder, nil
		}
		folder.Close() // somebody removed it before it was locked
	}
	return nil, unix.EBUSY
}

// removeHold removes a hold, unless another program uses it or somebody has put
// something into it. Only what is empty can be removed, and not what somebody else
// has made at its path since it was taken away.
func removeHold(path string, folder *os.File) {
	defer folder.Close()
	if unix.Flock(int(folder.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && (&hold{folder: folder}).stands(path) {
		_ = unix.Rmdir(path)
	}
}

// isHold reports whether there is a hold at a path, of this program or another.
func isHold(path string) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode == unix.S_IFDIR|holdMode
}
