package worktree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"dure/internal/safety/sandbox"
)

// Bounds of git.
const (
	gitTime   = 5 * time.Minute
	cleanTime = time.Minute
	maxAnswer = 32 << 20 // bytes
	maxSaid   = 4 << 10  // bytes of an error
	maxUp     = 64       // folders above the one that is asked about
	maxOff    = 64       // things that a configuration names and that are turned off
)

// fixed are the settings that hold for every run: git takes those of its command line
// over all others.
var fixed = []string{
	"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.untrackedCache=false", "core.pager=cat", "core.editor=:", "core.askPass=", "credential.helper=",
	"core.sshCommand=false", "core.gitProxy=", "core.alternateRefsCommand=", "commit.gpgSign=false", "gpg.program=" + os.DevNull,
	"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "diff.ignoreSubmodules=dirty", "diff.external=", "merge.renormalize=false", "merge.verifySignatures=false",
	"protocol.allow=never", "protocol.ext.allow=never", "protocol.file.allow=never", "protocol.git.allow=never", "protocol.ssh.allow=never", "protocol.http.allow=never", "protocol.https.allow=never",
	"safe.bareRepository=explicit", "core.quotePath=false", "color.ui=false", "core.protectNTFS=true", "core.protectHFS=true",
}

// steering are the variables that make git run something or look elsewhere.
var steering = []string{"GIT_*", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "PAGER", "LESS", "LESSOPEN", "LV", "EDITOR", "VISUAL", "GPG_TTY", "LC_ALL", "LANG", "LANGUAGE"}

// environment is what git runs with. It takes no lock that it can do without: one that only
// looks dies with this process, and would leave its lock to all that follow.
func environment(env []string) []string {
	return append(sandbox.Scrub(env, steering), "LC_ALL=C", "TERM=dumb", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "GIT_PAGER=cat", "GIT_EDITOR=:",
		"GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=", "GIT_PROTOCOL_FROM_USER=0", "GIT_SSH_COMMAND=false", "GIT_NO_REPLACE_OBJECTS=1")
}

// A place is a work tree that git runs in.
type place struct {
	top string   // its folder
	git string   // the folder of git; "" = git finds it, and checks whose it is
	off []string // settings that turn off what its configuration names
}

// place is where git runs for a tree. It does not read the .git file in it, which
// whoever works there could have changed.
func (t Tree) place(off []string) place { return place{top: t.Path, git: t.Git, off: off} }

// open returns the repository that a folder lies in.
func (s *Store) open(ctx context.Context, dir string) (place, error) {
	if s.Git == "" {
		return place{}, ErrNoGit
	}
	top := filepath.Clean(dir)
	for range maxUp {
		if _, err := os.Stat(filepath.Join(top, ".git")); err == nil {
			return s.settled(ctx, place{top: top})
		}
		up := filepath.Dir(top)
		if up == top {
			break
		}
		top = up
	}
	return place{}, ErrNoRepo
}

// switchedOff has the settings that turn off what a section names.
var switchedOff = map[string][]string{
	"filter": {"clean=", "smudge=", "process=", "required=false"},
	"merge":  {"driver=false"},
	"hook":   {"enabled=false"},
	"diff":   {"command=", "textconv="},
}

// settled fills in what the configuration of a place has turned off.
func (s *Store) settled(ctx context.Context, p place) (place, error) {
	out, err := s.ask(ctx, p, nil, "config", "--list", "-z")
	if err != nil {
		return p, err
	}
	seen := map[string]bool{}
	for entry := range strings.SplitSeq(out, "\x00") {
		key, _, _ := strings.Cut(entry, "\n")
		first, last := strings.IndexByte(key, '.'), strings.LastIndexByte(key, '.')
		if first < 0 || first == last || switchedOff[key[:first]] == nil || seen[key[:last]] {
			continue
		}
		if seen[key[:last]] = true; len(seen) > maxOff || strings.ContainsAny(key[first+1:last], "=\n") {
			return p, fmt.Errorf("the configuration of the repository names more programs than %d, or one with an odd name; it may be an attack", maxOff)
		}
		for _, name := range switchedOff[key[:first]] {
			p.off = append(p.off, key[:last]+"."+name)
		}
	}
	return p, nil
}

func (s *Store) argv(p place, args []string) []string {
	argv := []string{s.Git, "--no-pager"}
	for _, list := range [][]string{p.off, fixed} {
		for _, setting := range list {
			argv = append(argv, "-c", setting)
		}
	}
	return append(argv, args...)
}

func (s *Store) environ(p place) []string {
	env := append(s.env[:len(s.env):len(s.env)], "GIT_WORK_TREE="+p.top, "GIT_CEILING_DIRECTORIES="+filepath.Dir(p.top))
	if p.git != "" {
		env = append(env, "GIT_DIR="+p.git)
	}
	return env
}

// failed is a run of git with an exit code that was not expected.
type failed struct {
	code int
	what string
	said string
}

// Error says what git said.
func (f *failed) Error() string {
	return fmt.Sprintf("git %s: %s (exit code %d)", f.what, f.said, f.code)
}

// code returns the exit code of a run that failed.
func code(err error) int {
	if f, ok := errors.AsType[*failed](err); ok {
		return f.code
	}
	return -1
}

// ask runs git and returns what it wrote, also when it failed. Nothing of it outlives
// this process.
func (s *Store) ask(ctx context.Context, p place, in io.Reader, args ...string) (string, error) {
	out, said := &window{most: maxAnswer}, &window{most: maxSaid}
	exit, err := s.Box.Run(ctx, sandbox.Cmd{Argv: s.argv(p, args), Dir: p.top, Env: s.environ(p), In: in, Out: out, Err: said, Timeout: gitTime, Unconfined: true})
	switch {
	case err != nil:
		return "", fmt.Errorf("git %s: %w", args[0], err)
	case exit.TimedOut:
		return "", fmt.Errorf("git %s took more than %s", args[0], gitTime)
	case exit.Cancelled:
		return "", context.Cause(ctx)
	case out.more:
		return "", fmt.Errorf("git %s: the answer has more than %d MiB", args[0], maxAnswer>>20)
	case exit.Code != 0:
		return out.text(), &failed{exit.Code, args[0], complaint(said.text())}
	}
	return out.text(), nil
}

// finish runs git so that it comes to its end when this process is killed, or is told
// to stop: half of what it does is worse than all of it, and of a git that is killed
// locks stay behind. It holds the lock of the store as long as it runs.
func (s *Store) finish(p place, in string, args ...string) error {
	argv := s.argv(p, args)
	said := &window{most: maxSaid}
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it is not to be stopped
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = p.top, s.environ(p), said, said
	if in != "" {
		cmd.Stdin = strings.NewReader(in)
	}
	apart(cmd, s.held)
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return &failed{exit.ExitCode(), args[0], complaint(said.text())}
	}
	return err
}

// complaint is what git said, without what it begins its lines with.
func complaint(said string) string {
	said = strings.TrimSpace(strings.ToValidUTF8(said, "\uFFFD"))
	return strings.TrimPrefix(strings.TrimPrefix(said, "fatal: "), "error: ")
}

// window keeps the beginning of what is written to it.
type window struct {
	bytes.Buffer
	most int
	more bool
}

// Write never fails, so that the command is not held up.
func (w *window) Write(p []byte) (int, error) {
	room := w.most - w.Len()
	if len(p) > room {
		w.more = true
	}
	w.Buffer.Write(p[:min(len(p), room)])
	return len(p), nil
}

func (w *window) text() string { return w.String() }

// commitOf returns the commit that a name means.
func (s *Store) commitOf(ctx context.Context, p place, name string) (string, error) {
	out, err := s.ask(ctx, p, nil, "rev-parse", "--quiet", "--verify", "--end-of-options", name+"^{commit}")
	return strings.TrimSpace(out), err
}

// names splits what git wrote with -z.
func names(out string) (list []string) {
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" {
			list = append(list, name)
		}
	}
	return list
}

// pointer returns the folder that the .git file of a tree names; "" = it has none.
func pointer(tree string) string {
	const most = 4096 // bytes
	path := filepath.Join(tree, ".git")
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return ""
	}
	data, err := os.ReadFile(path)
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir: ")
	if err != nil || !ok || !filepath.IsAbs(dir) {
		return ""
	}
	return filepath.Clean(dir)
}

// verify checks that a tree is the one that was made: whoever works in it could have
// put another repository into its place.
func (s *Store) verify(t Tree) error {
	if s.Git == "" {
		return ErrNoGit
	}
	if info, err := os.Lstat(t.Path); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: the folder %s is gone", ErrSpoilt, t.Path)
	}
	if t.Git == "" || pointer(t.Path) != t.Git || filepath.Base(filepath.Dir(t.Git)) != "worktrees" {
		return fmt.Errorf("%w: %s leads elsewhere", ErrSpoilt, filepath.Join(t.Path, ".git"))
	}
	return nil
}
