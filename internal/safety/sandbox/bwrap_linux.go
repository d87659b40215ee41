package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"dure/internal/safety/sandbox/inner"
)

// bwrapPaths are where systems install bwrap. PATH is not asked: it may lead into
// a workspace.
var bwrapPaths = []string{"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"}

// findBwrap returns the path of a bwrap that belongs to the system, and what it is.
func findBwrap(roots []string) (path, detail string, err error) {
	err = errors.New("not installed")
	for _, candidate := range bwrapPaths {
		if path = resolve(candidate); path == "" {
			continue
		}
		if err = systemFile(path); err != nil {
			continue
		}
		for _, root := range roots {
			// The root of the file system is no workspace, whatever the settings say.
			if real := resolve(root); real != "" && real != "/" && within(path, real) {
				return "", "", errors.New("it is part of the workspace")
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), handshakeTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "--version")
		cmd.Env = []string{}
		out, err := cmd.Output()
		if err != nil {
			return "", "", fmt.Errorf("asking for its version: %w", err)
		}
		version := strings.TrimSpace(strings.TrimPrefix(string(out), "bubblewrap "))
		if !enough(version) {
			return "", "", fmt.Errorf("version %q, and 0.4 is needed", version)
		}
		return path, "bubblewrap " + version + " at " + path, nil
	}
	return "", "", err
}

// systemFile checks that nobody but root can change a file or put another in its
// place.
func systemFile(path string) error {
	for ; ; path = filepath.Dir(path) {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if st.Uid != 0 || st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
			return fmt.Errorf("%s can be changed by others than root", path)
		}
		if path == "/" {
			return nil
		}
	}
}

// enough reports whether a version is 0.4 or later.
func enough(version string) bool {
	first, rest, _ := strings.Cut(version, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, err := strconv.Atoi(first)
	minor, err2 := strconv.Atoi(second)
	return err == nil && err2 == nil && (major > 0 || minor >= 4)
}

// landlockVersion returns the version of Landlock's interface; 0 = there is none.
func landlockVersion() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// probe builds walls around nothing, by one mechanism. Env is for what starts them.
func probe(mechanism string, f *finding, env []string) error {
	as := &finding{mechanism: mechanism, bwrap: f.bwrap, landlock: f.landlock}
	w := &walls{namespaces: mechanism != byLandlock, profile: &profile{}, release: func() {}}
	defer w.close()
	w.spec = inner.Spec{Dir: "/", Namespaces: w.namespaces, Loopback: w.namespaces, NoInet: true, NoUnix: true}
	if w.namespaces {
		w.spec.Mounts = []inner.Mount{{Kind: inner.Dev, Path: "/dev"}, {Kind: inner.Proc, Path: "/proc"}, {Kind: inner.Fresh, Path: "/run"}}
	}
	if f.landlock >= landlockFrom {
		w.spec.Landlock, w.spec.Write = f.landlock, []string{"/dev/null"}
	}
	if err := w.connect(&exec.Cmd{}); err != nil {
		return err
	}
	var complaints bytes.Buffer
	s, err := as.spare(env, false, &complaints)
	if err != nil {
		return err
	}
	err = w.occupy(s)
	s.end()
	if said := strings.TrimSpace(complaints.String()); err != nil && said != "" {
		said, _, _ = strings.Cut(said, "\n")
		return fmt.Errorf("%w (%s)", err, said[:min(len(said), 200)])
	}
	return err
}
