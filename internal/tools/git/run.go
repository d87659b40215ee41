package git

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/kit"
)

// The bounds of one run of git.
const (
	readTimeout = time.Minute
	askTimeout  = 10 * time.Second // for questions about the configuration
	maxAnswer   = 1 << 20          // bytes of an answer that has to be whole
	maxComplain = 8 << 10          // bytes of what git writes to its error output
	maxDrivers  = 64               // filters and hooks of one configuration
)

// fixed are the settings that hold for every run, whatever the configuration of
// the repository says: git takes those of its command line over all others. Their
// names and meanings are those of git-config(1). There is no setting that turns
// off all filters; see [without].
var fixed = []string{
	// No programs.
	"core.fsmonitor=false", "core.untrackedCache=false", "core.pager=cat", "core.editor=:", "sequence.editor=:",
	"core.askPass=", "core.sshCommand=false", "core.gitProxy=", "core.alternateRefsCommand=", "credential.helper=",
	"commit.verbose=false", "commit.status=false", "log.showSignature=false", "format.pretty=medium", "log.diffMerges=separate", "diff.submodule=short",
	"gc.auto=0", "maintenance.auto=false", "submodule.recurse=false", "status.submoduleSummary=false", "help.autoCorrect=never",
	// No other machines.
	"protocol.allow=never", "protocol.ext.allow=never", "protocol.file.allow=never", "protocol.git.allow=never",
	"protocol.ssh.allow=never", "protocol.http.allow=never", "protocol.https.allow=never",
	// No other files.
	"safe.bareRepository=explicit", "grep.fallbackToNoIndex=false", "blame.ignoreRevsFile=", "diff.ignoreSubmodules=dirty",
	// Output that reads the same everywhere.
	"core.quotePath=false", "color.ui=false", "column.ui=never", "diff.noprefix=false", "diff.mnemonicPrefix=false", "i18n.logOutputEncoding=UTF-8",
}

// idle are the settings for runs that start no program at all: not even hooks,
// and nothing that checks signatures.
var idle = []string{
	"core.hooksPath=" + os.DevNull, "gpg.program=" + os.DevNull, "gpg.openpgp.program=" + os.DevNull,
	"gpg.x509.program=" + os.DevNull, "gpg.ssh.program=" + os.DevNull,
}

// command returns the argv of git with settings, the fixed ones last.
func (g *Git) command(settings []string, args ...string) []string {
	argv := []string{g.Git, "--no-pager", "--literal-pathspecs"}
	for _, list := range [][]string{settings, fixed} {
		for _, s := range list {
			argv = append(argv, "-c", s)
		}
	}
	return append(argv, args...)
}

// job is one run of git.
type job struct {
	argv    []string
	in      string
	env     []string
	timeout time.Duration // 0 = askTimeout
	most    int           // bytes of an answer; 0 = maxAnswer
	out     *window
}

// do runs git in the top folder of a repository. Git looks for the repository
// itself, because it checks the owner of one that it finds, and of no other.
// Complaint is what git wrote to its error output.
func (g *Git) do(ctx context.Context, r repository, j job) (exit sandbox.Exit, complaint string, err error) {
	if j.timeout == 0 {
		j.timeout = askTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, j.timeout)
	defer cancel()
	j.out.full = cancel
	errs := &window{most: maxComplain}
	c := sandbox.Cmd{
		Argv: j.argv, Dir: r.top, Out: j.out, Err: errs, Spawned: agent.CallEnvOf(ctx).Spawned,
		Env: append(append(g.env[:len(g.env):len(g.env)], "GIT_CEILING_DIRECTORIES="+filepath.Dir(r.top)), j.env...),
	}
	if j.in != "" {
		c.In = strings.NewReader(j.in)
	}
	exit, err = g.Box.Run(ctx, c)
	complaint = strings.TrimSpace(strings.ToValidUTF8(string(errs.kept), "\uFFFD"))
	return exit, complaint, err
}

// alone is the environment of a run that must not change anything or reach
// another machine. The top folder is the working tree, whatever the repository
// says (core.worktree).
func alone(r repository) []string {
	return []string{
		"GIT_WORK_TREE=" + r.top, "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=", "GIT_PROTOCOL_FROM_USER=0", "GIT_SSH_COMMAND=false",
	}
}

// ask runs a question whose whole answer is needed. An answer that is too long,
// or an exit code other than 0, is a refusal.
func (g *Git) ask(ctx context.Context, r repository, j job) (string, error) {
	if j.most == 0 {
		j.most = maxAnswer
	}
	j.out = &window{most: j.most}
	exit, complaint, err := g.do(ctx, r, j)
	switch {
	case j.out.more:
		return "", kit.Refuse(agent.ErrTool, fmt.Sprintf("git answered with more than %d MiB to a question about the repository", j.most>>20), "Do less at once, or use a command.")
	case err != nil || exit.Code != 0 || exit.Interrupted():
		return "", explain(r, exit, complaint, err)
	}
	return string(j.out.kept), nil
}

// window keeps a part of what is written to it: most bytes after the first skip.
type window struct {
	skip int64
	most int
	full context.CancelFunc // called when there is more; may be nil

	seen int64
	kept []byte
	more bool
}

// Write never fails, so that the command is not held up.
func (w *window) Write(p []byte) (int, error) {
	n := len(p)
	if drop := min(w.skip-w.seen, int64(n)); drop > 0 {
		p = p[drop:]
		w.seen += drop
	}
	room := w.most - len(w.kept)
	if len(p) > room {
		w.more = true
		p = p[:room]
	}
	w.kept = append(w.kept, p...)
	w.seen += int64(len(p))
	if w.more && w.full != nil {
		w.full()
	}
	return n, nil
}

// setting is a line of the configuration.
type setting struct{ key, value string }

// settings returns the configuration of a repository as git puts it together:
// the user's, the repository's, and what they include. Asking starts no program.
func (g *Git) settings(ctx context.Context, r repository) ([]setting, error) {
	out, err := g.ask(ctx, r, job{argv: g.command(nil, "config", "--list", "-z"), env: alone(r)})
	if err != nil {
		return nil, err
	}
	return parseSettings(out), nil
}

// parseSettings reads NUL-terminated entries of a key, a line end and a value. A
// key has a section and a name in small letters, and between them perhaps a
// subsection as it is written.
func parseSettings(out string) []setting {
	var list []setting
	for entry := range strings.SplitSeq(out, "\x00") {
		if entry == "" {
			continue
		}
		key, value, _ := strings.Cut(entry, "\n")
		list = append(list, setting{key, value})
	}
	return list
}

// parts splits filter.name.clean.
func (s setting) parts() (section, sub, name string) {
	first, last := strings.IndexByte(s.key, '.'), strings.LastIndexByte(s.key, '.')
	if first < 0 || first == last {
		return "", "", s.key
	}
	return s.key[:first], s.key[first+1 : last], s.key[last+1:]
}

// without returns the settings that turn off every filter and every hook of a
// configuration. A file that is stored through a filter, as by Git LFS, is then
// seen as it lies in the folder. A name that cannot be turned off is a refusal.
func without(list []setting) ([]string, error) {
	var off []string
	count := 0
	seen := map[string]bool{}
	for _, s := range list {
		section, sub, _ := s.parts()
		switches := switchedOff[section]
		key := section + "." + sub
		if switches == nil || seen[key] {
			continue
		}
		if strings.ContainsAny(sub, "=\n") {
			return nil, kit.Refuse(agent.ErrTool, "the configuration of the repository has a "+section+" with the odd name "+quote(sub), "Tell the user; it may be an attack.")
		}
		if count++; count > maxDrivers {
			return nil, kit.Refuse(agent.ErrTool, fmt.Sprintf("the configuration of the repository has more than %d filters and hooks", maxDrivers), "Tell the user; it may be an attack.")
		}
		seen[key] = true
		for _, s := range switches {
			off = append(off, key+"."+s)
		}
	}
	return off, nil
}

// switchedOff has the settings that turn off what a section names.
var switchedOff = map[string][]string{
	"filter": {"clean=", "smudge=", "process=", "required=false"},
	"hook":   {"enabled=false"},
}

// explain turns the end of git into what the model can act on.
func explain(r repository, exit sandbox.Exit, complaint string, err error) error {
	message := complaint
	for _, lead := range []string{"fatal: ", "error: "} {
		message = strings.TrimPrefix(message, lead)
	}
	suggestion := "Check the arguments; revisions go into args, files and folders into paths."
	switch {
	case err != nil:
		return kit.Refuse(agent.ErrTool, err.Error(), "Check that git works.")
	case exit.Cancelled:
		return kit.Refuse(agent.ErrAborted, "git was stopped", "")
	case exit.TimedOut:
		return kit.Refuse(agent.ErrTimeout, "git took too long and was stopped", "Ask for less: fewer commits, or some paths.")
	case strings.Contains(complaint, "dubious ownership"):
		return kit.Refuse(agent.ErrTool, "git does not trust the repository "+filepath.ToSlash(r.top)+", because it belongs to another user",
			"Tell the user, who can trust it with: git config --global --add safe.directory "+filepath.ToSlash(r.top))
	case strings.Contains(complaint, "does not have any commits yet"), strings.Contains(complaint, "ambiguous argument 'HEAD'"):
		message, suggestion = "the repository has no commits yet", "There is no history to show."
	case strings.Contains(complaint, "index.lock"):
		suggestion = "Another git is at work in the repository, or died in it: tell the user if it stays."
	case strings.Contains(complaint, "tell me who you are"), strings.Contains(complaint, "unable to auto-detect email"):
		message, suggestion = "git does not know whose commit it would be", "Ask the user to set user.name and user.email with git config."
	case strings.Contains(complaint, "transport") && strings.Contains(complaint, "not allowed"), strings.Contains(complaint, "promisor"):
		suggestion = "Parts of the repository are not on this machine, and nothing is fetched here."
	case message == "":
		message = fmt.Sprintf("git ended with exit code %d", exit.Code)
	}
	return kit.Refuse(agent.ErrTool, kit.Cut(message, 1000), suggestion)
}

// pageEnd returns how much of a page to show: all of it, or to the end of its
// last line, or at least to the end of a character.
func pageEnd(page []byte, more bool) []byte {
	if !more {
		return page
	}
	if i := bytes.LastIndexByte(page, '\n'); i >= len(page)/2 {
		return page[:i+1]
	}
	for n := 1; n < 4 && n < len(page); n++ {
		if page[len(page)-n] >= 0xC0 {
			return page[:len(page)-n]
		}
	}
	return page
}
