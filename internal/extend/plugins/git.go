package plugins

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"dure/internal/safety/sandbox"
)

// The bounds of git.
const (
	gitTime    = 5 * time.Minute
	gitLook    = 100 * time.Millisecond // between two looks at how much it has written
	gitTrees   = 3                      // trees that a repository and what is taken of it may be as large as
	maxSaid    = 4 << 10                // bytes of what it writes
	repoFolder = "repository"
	repoTar    = "repository.tar"
)

// gitFixed are settings that hold whatever the machine's configuration says: no program
// is started, nobody is asked, and no protocol is spoken but the one that is added.
var gitFixed = []string{
	"core.hooksPath=" + os.DevNull, "core.fsmonitor=false", "core.pager=cat", "core.editor=:", "core.askPass=", "credential.helper=",
	"core.sshCommand=false", "core.gitProxy=", "core.alternateRefsCommand=", "core.attributesFile=" + os.DevNull, "core.autocrlf=false", "gc.auto=0", "maintenance.auto=false",
	"submodule.recurse=false", "protocol.allow=never", "protocol.ext.allow=never", "init.templateDir=", "init.defaultBranch=main", "advice.detachedHead=false",
	"http.lowSpeedLimit=1000", "http.lowSpeedTime=60",
}

// clone takes one commit of a repository as a tar, and unpacks that: nothing is checked
// out, so that neither links nor filters nor hooks of it come into play. It returns the
// commit.
func (s *Store) clone(ctx context.Context, src Source, stage, to string) (string, error) {
	git := ""
	if s.Git != nil {
		git = s.Git()
	}
	if git == "" || s.Box == nil {
		return "", errors.New("git is not on this machine")
	}
	from := address(src)
	scheme, _, _ := strings.Cut(from, ":")
	var hosts []string
	if host := hostOf(src); host != "" {
		hosts = []string{host}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, gitTime, fmt.Errorf("git took more than %s", gitTime))
	defer cancel()
	most := gitTrees * s.limits().Tree
	ctx, end := watched(ctx, stage, most)
	defer end()
	box, err := s.Box(stage, hosts)
	if err != nil {
		return "", err
	}
	defer box.Close()
	g := gitRun{git: git, env: s.Env, box: box, stage: stage, most: most, settings: append(gitFixed[:len(gitFixed):len(gitFixed)], "protocol."+scheme+".allow=always")}
	want := src.SHA
	if want == "" {
		want = src.Ref
	}
	if want == "" {
		want = "HEAD"
	}
	repo := filepath.Join(stage, repoFolder)
	if _, err := g.run(ctx, stage, "init", "--quiet", "--bare", repo); err != nil {
		return "", err
	}
	if _, err := g.run(ctx, repo, "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--", from, want); err != nil {
		return "", err
	}
	out, err := g.run(ctx, repo, "rev-parse", "--verify", "FETCH_HEAD^{commit}")
	if err != nil {
		return "", err
	}
	commit := strings.TrimSpace(out)
	if !isCommit().MatchString(commit) || src.SHA != "" && commit != src.SHA {
		return "", fmt.Errorf("%w: the repository has given the commit %s in the place of %s", ErrChanged, clip(commit), want)
	}
	tree := commit
	if src.Path != "" {
		at, err := local(src.Path)
		if err != nil {
			return "", err
		}
		if at != "." {
			tree += ":" + at
		}
	}
	if _, err := g.run(ctx, repo, "archive", "--format=tar", "--output="+filepath.Join(stage, repoTar), tree); err != nil {
		return "", err
	}
	return commit, s.untarRepo(filepath.Join(stage, repoTar), to)
}

// untarRepo unpacks what git has written. Links to files of the tree become those files.
func (s *Store) untarRepo(file, to string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer dst.Close()
	g := newGrower(dst, s.limits(), 0)
	g.links = map[string]string{}
	if err := g.untar(f); err != nil {
		return err
	}
	return g.resolve()
}

// gitRun runs git in a box.
type gitRun struct {
	git      string
	env      []string
	box      *sandbox.Box
	stage    string
	most     int64 // bytes of the stage
	settings []string
}

func (g gitRun) run(ctx context.Context, dir string, args ...string) (string, error) {
	argv := []string{g.git, "--no-pager"}
	for _, setting := range g.settings {
		argv = append(argv, "-c", setting)
	}
	out, said := &head{}, &head{}
	exit, err := g.box.Run(ctx, sandbox.Cmd{
		Argv: append(argv, args...), Dir: dir, Out: out, Err: said,
		Env: append(slices.DeleteFunc(slices.Clone(g.env), ofGit),
			"HOME="+g.stage, "XDG_CONFIG_HOME="+g.stage, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0",
			"GIT_ASKPASS=", "SSH_ASKPASS=", "GIT_SSH_COMMAND=false", "GIT_NO_LAZY_FETCH=1", "GIT_ATTR_NOSYSTEM=1", "GIT_LFS_SKIP_SMUDGE=1", "LC_ALL=C"),
	})
	switch {
	case err != nil:
		return "", err
	case exit.Cancelled || exit.TimedOut:
		return "", context.Cause(ctx)
	case sizeOf(g.stage, g.most) > g.most: // it was quicker than the looks at it
		return "", tooMuch(g.most)
	case exit.Code != 0:
		lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(said.String(), "\uFFFD")), "\n")
		return "", fmt.Errorf("git %s: %s", args[0], strings.TrimPrefix(lines[0], "fatal: "))
	}
	return out.String(), nil
}

// ofGit reports whether a variable says something to git: which repository it works on
// when dure itself was started by it, or what it runs. Certificates stay.
func ofGit(variable string) bool {
	name, _, _ := strings.Cut(variable, "=")
	name = strings.ToUpper(name)
	return strings.HasPrefix(name, "GIT_") && name != "GIT_SSL_CAINFO" && name != "GIT_SSL_CAPATH"
}

func tooMuch(most int64) error {
	return fmt.Errorf("%w: what git has fetched has more than %d MiB", ErrLarge, most>>20)
}

// watched ends a context when a folder becomes larger than it may: git has no bound of
// its own for what a repository sends. The caller calls end, which waits.
func watched(ctx context.Context, dir string, most int64) (_ context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		look := time.NewTicker(gitLook)
		defer look.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if sizeOf(dir, most) > most {
				cancel(tooMuch(most))
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-done }
}

// sizeOf adds up the files of a folder, until they are more than most.
func sizeOf(dir string, most int64) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // git has taken it away meanwhile
		}
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
		if size > most {
			return fs.SkipAll
		}
		return nil
	})
	return size
}

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

// Write never fails, so that the command is not held up.
func (h *head) Write(p []byte) (int, error) {
	if room := maxSaid - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(len(p), room)])
	}
	return len(p), nil
}
