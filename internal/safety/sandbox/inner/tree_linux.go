package inner

import (
	"os"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// build makes the file tree of the command out of the one there is, in place: all
// of it becomes read-only, and the mounts of the Spec are laid over it. Without
// capabilities nobody can lift one of them afterwards. What mounts show is opened
// before anything is covered.
func build(s *Spec, stdin int) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return failing("parting from the mounts outside", err)
	}
	trees := make([]int, len(s.Mounts))
	for i, m := range s.Mounts {
		var err error
		if trees[i], err = source(m); err != nil {
			return err
		}
	}
	devices, err := openDevices(s.Terminal, stdin)
	if err != nil {
		return err
	}
	if err := seal(unix.AT_FDCWD, "/", unix.AT_RECURSIVE); err != nil {
		return failing("making the files read-only", err)
	}
	var empty []string
	for i, m := range s.Mounts {
		if m.Make {
			if err := point(m, trees[i]); err != nil {
				return failing("making a place for "+m.Path, err)
			}
		}
		switch m.Kind {
		case Bind, BindRO:
			err = place(trees[i], m.Path)
		case Tmpfs:
			empty = append(empty, m.Path)
			err = unix.Mount("tmpfs", m.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m")
		case Fresh:
			err = unix.Mount("tmpfs", m.Path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64m")
		case Proc:
			err = processes(m.Path, s.Tasks)
		case Dev:
			err = devices.lay(m.Path)
		case Over:
			layer(m)
		default:
			err = unix.EINVAL
		}
		if err != nil {
			return failing("mounting "+m.Path, err)
		}
	}
	for _, path := range empty {
		if err := seal(unix.AT_FDCWD, path, 0); err != nil {
			return failing("making "+path+" read-only", err)
		}
	}
	return nil
}

// layer puts a folder over another one. Where the kernel or a file system refuses,
// the folder stays as it is.
func layer(m Mount) {
	for _, path := range []string{m.Path, m.Source, m.Work} {
		if strings.ContainsAny(path, `,:\\"`) { // they mean something in options
			return
		}
	}
	_ = unix.Mount("overlay", m.Path, "overlay", unix.MS_NOSUID|unix.MS_NODEV,
		"userxattr,lowerdir="+m.Source+",upperdir="+m.Path+",workdir="+m.Work)
}

// source opens what a mount shows.
func source(m Mount) (int, error) {
	if m.Kind != Bind && m.Kind != BindRO {
		return -1, nil
	}
	at, err := plain(m.Source)
	if err != nil {
		return -1, failing("opening "+m.Source, err)
	}
	defer func() { _ = unix.Close(at) }()
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err == nil && m.Kind == BindRO {
		err = seal(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	}
	return fd, failing("opening "+m.Source, err)
}

// plain opens a path as it was found when the walls were planned: through no link.
// Where there is one now, another command has put it there.
func plain(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_NOFOLLOW | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
	})
}

// place puts an open tree where it belongs.
func place(tree int, path string) error {
	at, err := plain(path)
	if err == nil {
		err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
		_ = unix.Close(at)
	}
	_ = unix.Close(tree)
	return err
}

func seal(fd int, path string, flags uint) error {
	return unix.MountSetattr(fd, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// point makes a mount point like what is mounted.
func point(m Mount, tree int) error {
	if _, err := os.Lstat(m.Path); err == nil {
		return nil
	}
	if tree >= 0 {
		var st unix.Stat_t
		if err := unix.Fstat(tree, &st); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			if err := os.MkdirAll(path.Dir(m.Path), 0o755); err != nil {
				return err
			}
			return os.WriteFile(m.Path, nil, 0o644)
		}
	}
	return os.MkdirAll(m.Path, 0o755)
}

// processes mounts the processes of the confinement, and covers what would turn
// knobs of the whole machine: it belongs to root, whom nothing else keeps away
// from it when he is the user. Tasks bounds their number first.
func processes(dir string, tasks int64) error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", dir, "proc", flags, ""); err != nil {
		return err
	}
	if tasks > 0 { // older kernels have one bound for all: it is refused there, or without effect
		_ = os.WriteFile(path.Join(dir, "sys/kernel/pid_max"), []byte(strconv.FormatInt(tasks, 10)), 0)
	}
	for _, name := range []string{"sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"} {
		at := path.Join(dir, name)
		fd, err := unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
		if err != nil {
			continue // this kernel has no such thing
		}
		if err := seal(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE); err != nil {
			return err
		}
		if err := place(fd, at); err != nil {
			return err
		}
	}
	return nil
}

// A deviceSet is the devices that a command needs, opened where they are.
type deviceSet struct {
	names []string
	trees []int
}

func openDevices(terminal bool, stdin int) (deviceSet, error) {
	var d deviceSet
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err != nil {
			return d, failing("opening /dev/"+name, err)
		}
		d.names, d.trees = append(d.names, name), append(d.trees, fd)
	}
	if terminal { // so that programs find the name of their terminal
		fd, err := unix.OpenTree(stdin, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
		if err == nil {
			d.names, d.trees = append(d.names, "console"), append(d.trees, fd)
		}
	}
	return d, nil
}

// lay makes a folder of devices: no disks, no terminals of others.
func (d *deviceSet) lay(dir string) error {
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=50%"); err != nil {
		return err
	}
	for i, name := range d.names {
		at := path.Join(dir, name)
		if err := os.WriteFile(at, nil, 0o666); err != nil {
			return err
		}
		if err := place(d.trees[i], at); err != nil {
			return err
		}
	}
	for _, name := range []string{"pts", "shm"} {
		if err := os.Mkdir(path.Join(dir, name), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", path.Join(dir, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return err
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd",
		"stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
