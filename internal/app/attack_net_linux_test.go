package app

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"dure/internal/prooftest"
)

// The attacks of the corpus run for real. What is under test is not what keeps this
// machine whole meanwhile: the test runs itself once more in a net of its own, of
// namespaces in which every file of the machine is read-only, no process and no
// network of it is there, and a user whom nothing belongs to. The sandbox stands
// within.
const (
	netVar  = "DURE_ATTACK_NET" // in the environment of what runs in the net: how far it has come
	netUser = 412_107           // nobody's number
	netBase = "/home"           // a folder of the net's own; see netFolders

	// How much those in the net may have at a time.
	netProcesses = 2000
	netFileSize  = 64 << 20
	netSpace     = "1g" // of each folder
)

// netFolders are empty in the net and of no disk: what of the user's might lie there
// cannot even be seen. Not every machine has each of them.
var netFolders = []string{netBase, "/tmp", "/var/tmp", "/run", "/root", "/mnt", "/media", "/srv"}

func init() {
	if os.Getenv(netVar) == "raise" && os.Getpid() == 1 { // the head of namespaces that were made for it
		os.Exit(raiseNet())
	}
}

// inNet runs a test of this package once more in the net, and reports what came of
// it.
func inNet(t *testing.T, name string) {
	t.Helper()
	runtime.LockOSThread() // what is started dies with its thread
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+name+"$", "-test.v")
	cmd.Env = []string{netVar + "=raise", "PATH=/usr/local/bin:/usr/bin:/bin", "DURE_LONG=" + os.Getenv("DURE_LONG"), "DURE_REQUIRE=" + os.Getenv("DURE_REQUIRE")}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
		Pdeathsig:  unix.SIGKILL,
	}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN}
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	exit, ran := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		t.Logf("in the net:\n%s", out)
	case ran && exit.ExitCode() != netFailed:
		t.Errorf("in the net: %v\n%s", err, out)
	default:
		prooftest.Lacking(t, "sandbox", fmt.Errorf("the net cannot be made: %w\n%s", err, out))
	}
}

// netFailed is the exit code where there is no net: nothing was run.
const netFailed = 71

// raiseNet makes the net around this process, runs the test in it, and buries what
// dies. All that is left ends with this process.
func raiseNet() int {
	runtime.LockOSThread()
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"sealing the files", sealNet},
		{"covering folders", coverNet},
		{"making devices", deviceNet},
		{"showing its own processes", func() error {
			return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
		}},
		{"making a network that leads nowhere", loopNet},
		{"limiting what it takes", limitNet},
	} {
		if err := step.do(); err != nil {
			fmt.Println(step.what+":", err)
			return netFailed
		}
	}
	attr := &syscall.ProcAttr{
		Dir: netBase, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{},
		Env: append(slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, netVar) }), netVar+"=inside"),
	}
	if os.Geteuid() == 0 {
		attr.Sys.Credential = &syscall.Credential{Uid: netUser, Gid: netUser}
	} else if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		fmt.Println("giving up rights:", err)
		return netFailed
	}
	child, err := syscall.ForkExec(filepath.Join(netBase, "test"), os.Args, attr)
	if err != nil {
		fmt.Println("starting the test:", err)
		return netFailed
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if pid == child {
			return status.ExitStatus()
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return netFailed
		}
	}
}

// sealNet makes everything there is read-only, and programs that lend rights
// ordinary.
func sealNet() error {
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
	)
}

// coverNet covers the folders that are to be empty, and puts this program and the
// corpus into one of them.
func coverNet() error {
	resolver, _ := filepath.EvalSymlinks("/etc/resolv.conf")
	for _, dir := range netFolders {
		err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,nr_inodes=500k,size="+netSpace)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("%s: %w", dir, err)
		}
		if err == nil && os.Geteuid() == 0 {
			if err := os.Chown(dir, netUser, netUser); err != nil {
				return err
			}
		}
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	defer self.Close()
	program, err := os.OpenFile(filepath.Join(netBase, "test"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer program.Close()
	if _, err := io.Copy(program, self); err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(netBase, "testdata", "policy"), os.DirFS("testdata/policy")); err != nil {
		return err
	}
	return nameNet(resolver)
}

// nameNet has names looked up by a server of the net.
func nameNet(resolver string) error {
	settings := filepath.Join(netBase, "resolv.conf")
	if err := os.WriteFile(settings, []byte("nameserver "+canaryNames+"\noptions timeout:1 attempts:1\n"), 0o644); err != nil {
		return err
	}
	if _, err := os.Lstat(resolver); err == nil {
		return errors.Join(
			unix.Mount(settings, resolver, "", unix.MS_BIND, ""),
			unix.MountSetattr(unix.AT_FDCWD, resolver, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}),
		)
	}
	if !slices.ContainsFunc(netFolders, func(dir string) bool { return strings.HasPrefix(resolver, dir+"/") }) {
		return nil // this machine looks no names up
	}
	return errors.Join(os.MkdirAll(filepath.Dir(resolver), 0o755), os.Symlink(settings, resolver))
}

// deviceNet leaves the harmless devices.
func deviceNet() error {
	const staged = "/tmp/dev"
	if err := errors.Join(os.Mkdir(staged, 0o755), unix.Mount("tmpfs", staged, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755,size=64m")); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		at := filepath.Join(staged, name)
		if err := errors.Join(os.WriteFile(at, nil, 0o666), unix.Mount("/dev/"+name, at, "", unix.MS_BIND, "")); err != nil {
			return err
		}
	}
	var faults []error
	for _, name := range []string{"pts", "shm"} {
		faults = append(faults, os.Mkdir(filepath.Join(staged, name), 0o777))
	}
	for name, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		faults = append(faults, os.Symlink(to, filepath.Join(staged, name)))
	}
	return errors.Join(append(faults,
		unix.Mount("devpts", filepath.Join(staged, "pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"),
		unix.Mount(staged, "/dev", "", unix.MS_MOVE, ""),
		os.Remove(staged),
	)...)
}

// limitNet bounds what all in the net take. The number of processes is that of a
// user, who has none elsewhere.
func limitNet() error {
	var faults []error
	for which, most := range map[int]uint64{unix.RLIMIT_NPROC: netProcesses, unix.RLIMIT_FSIZE: netFileSize, unix.RLIMIT_CORE: 0} {
		faults = append(faults, unix.Setrlimit(which, &unix.Rlimit{Cur: most, Max: most}))
	}
	return errors.Join(faults...)
}

// checkNet returns what is wrong with the net that this process is said to be in.
// Nothing is attacked before there is nothing.
func checkNet() error {
	var faults []error
	wrong := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	if os.Getenv(netVar) != "inside" || os.Getppid() != 1 || os.Geteuid() == 0 {
		wrong("process %d of process %d, user %d", os.Getpid(), os.Getppid(), os.Geteuid())
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for _, line := range []string{"\nNoNewPrivs:\t1\n", "\nCapEff:\t0000000000000000\n", "\nCapPrm:\t0000000000000000\n"} {
		if !strings.Contains(string(status), line) {
			wrong("its status has no %q", line)
		}
	}
	devices, err := os.ReadFile("/proc/self/net/dev")
	if err != nil || strings.Count(string(devices), "\n") != 3 || !strings.Contains(string(devices), "lo:") {
		wrong("its network is %v\n%s", err, devices)
	}
	mounts, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer mounts.Close()
	lines := bufio.NewScanner(mounts)
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		own := slices.Contains(netFolders, f[4]) || f[4] == "/proc" || f[4] == "/dev" || strings.HasPrefix(f[4], "/dev/")
		if options := strings.Split(f[5], ","); !own && !slices.Contains(options, "ro") {
			wrong("%s can be written", f[4])
		} else if !slices.Contains(options, "nosuid") {
			wrong("%s lends rights", f[4])
		}
	}
	if pids := processesOf(1); len(pids) != 1 || pids[0] != os.Getpid() {
		wrong("there are other processes: %v", pids)
	}
	return errors.Join(append(faults, lines.Err())...)
}

// processesOf returns the processes that live and have a parent.
func processesOf(parent int) []int {
	entries, _ := os.ReadDir("/proc")
	var all []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if err != nil {
			continue
		}
		f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if len(f) > 1 && f[1] == strconv.Itoa(parent) && f[0] != "Z" && f[0] != "X" {
			all = append(all, pid)
		}
	}
	return all
}
