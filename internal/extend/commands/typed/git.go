package typed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/commands"
	"dure/internal/state/hunks"
)

// Bounds of what a model reads of changes.
const (
	commitDiff  = 8_000   // characters, for a message
	reviewDiff  = 12_000  // ... for a review: whole files, and the others by name
	reviewFiles = 300     // files that are named
	hashedFile  = 1 << 30 // bytes of a changed file
	maxMessage  = 64 << 10
	shownOthers = 200 // untracked files
)

// The tools that read and write repositories.
const (
	gitReadTool   = "git__read"
	gitCommitTool = "git__commit"
)

// confirmed is the origin of calls that a person has just agreed to, having seen what
// they do.
const confirmed = "confirmed:"

// git reads the repository through the gate.
func (t *Session) git(ctx context.Context, origin, command string, args ...string) (string, error) {
	if args == nil {
		args = []string{}
	}
	const page = 256 << 10
	return t.invoke(ctx, origin, gitReadTool, map[string]any{"command": command, "args": args, "max_bytes": page})
}

// invoke makes a call of a tool, and returns what it says.
func (t *Session) invoke(ctx context.Context, origin, tool string, in map[string]any) (string, error) {
	input, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	res, err := t.b.Reach.Invoke(ctx, agent.Invocation{Origin: origin, Tool: tool, Input: input})
	if err != nil {
		return "", err
	}
	if res.Failed() && res.Error != nil && res.Error.Code == agent.ErrNotInCatalog && (tool == gitReadTool || tool == gitCommitTool) {
		why := fmt.Errorf("the folder is in no repository of git, or the tool is withheld (%s)", clip(res.Error.Message, 300))
		const fix = "open the session in a repository; /tools says which tools it has"
		return "", &agent.Problem{
			Code: agent.ProblemTool, Message: fmt.Sprintf("tool %s: %v", tool, why), Fix: fix, Err: why,
			Args: map[string]string{"name": tool, "error": why.Error(), "fix": fix},
		}
	}
	if res.Failed() && res.Error != nil {
		return "", errors.New(clip(res.Error.Message, 600))
	}
	if res.Failed() || exited(res) != 0 {
		return "", errors.New(clip(res.Unfenced(), 600))
	}
	return res.Unfenced(), nil
}

var revisions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./@^~+-]*$`) })

// review is the prompt of /review: a number is a pull request, "uncommitted" what is not
// committed, nothing what the branch has, and all else a range.
func (t *Session) review(ctx context.Context, arg string) (string, error) {
	const origin = commandOrigin + "review"
	if n, err := strconv.Atoi(strings.TrimPrefix(arg, "#")); err == nil {
		return t.reviewPull(ctx, n)
	}
	span, what := arg, "the changes in "+arg
	switch {
	case arg == "":
		base, err := t.base(ctx, origin)
		if err != nil {
			return "", err
		}
		if span, what = base+"...HEAD", "what this branch has beside "+base; base == "" {
			span, what = "HEAD", "what is not committed"
		}
	case arg == "uncommitted" || arg == "--uncommitted":
		span, what = "HEAD", "what is not committed"
	case !revisions().MatchString(arg):
		return "", errors.New("it takes the number of a pull request, a range such as main..HEAD, or uncommitted")
	}
	list, err := t.git(ctx, origin, "diff", "--name-only", span)
	if err != nil {
		return "", err
	}
	files := strings.Split(strings.TrimSpace(list), "\n")
	if list == "[no differences]" {
		return "", errors.New("there are no changes in " + span)
	}
	return commands.Review(what, files[:min(len(files), reviewFiles)], reviewDiff, func(file string) (string, string, error) {
		text, err := t.invoke(ctx, origin, gitReadTool, map[string]any{"command": "diff", "args": []string{span}, "paths": []string{file}, "max_bytes": 2 * reviewDiff})
		return text, fmt.Sprintf("diff %s -- %s", span, file), err
	})
}

// base is the branch that this one is compared with; "" = it is that branch.
func (t *Session) base(ctx context.Context, origin string) (string, error) {
	all, err := t.git(ctx, origin, "branch", "--all")
	if err != nil {
		return "", err
	}
	var names []string
	current := ""
	for line := range strings.Lines(all) {
		name := strings.TrimSpace(line)
		if at := strings.Index(name, "origin/HEAD -> "); at >= 0 {
			return name[at+len("origin/HEAD -> "):], nil
		}
		if rest, ok := strings.CutPrefix(name, "* "); ok {
			name, current = rest, rest
		}
		names = append(names, strings.TrimPrefix(name, "remotes/"))
	}
	for _, name := range []string{"origin/main", "origin/master", "main", "master", "trunk", "develop"} {
		if slices.Contains(names, name) && name != current {
			return name, nil
		}
		if name == current {
			return "", nil
		}
	}
	return "", nil
}

// reviewPull is the prompt for a pull request. It is fetched by a program that reaches
// the network, so that the person is asked about it, unless a rule allows it.
func (t *Session) reviewPull(ctx context.Context, n int) (string, error) {
	if t.Find("gh") == "" {
		return "", errors.New("pull requests are read with gh, which is not installed: name a range instead")
	}
	text, err := t.invoke(ctx, "builtin:review", shellTool, map[string]any{"command": "gh pr diff " + strconv.Itoa(n), "timeout": inlineTime})
	if err != nil {
		return "", err
	}
	parts := commands.SplitDiff(text)
	var files []string
	for _, p := range parts {
		files = append(files, p.Path)
	}
	if len(files) == 0 {
		return "", errors.New("the pull request has no changes")
	}
	at := 0
	return commands.Review(fmt.Sprintf("pull request %d", n), files, reviewDiff, func(string) (string, string, error) {
		at++
		return parts[at-1].Text, fmt.Sprintf("gh pr diff %d", n), nil
	})
}

// draft is a commit that was shown.
type draft struct {
	query.CommitDraft
	paths []string
	all   string // the ID of all that is staged or changed
}

// prepareCommit shows what would be committed, all or some hunks of it, and what the model
// would say of it.
func (x *Extension) prepareCommit(ctx context.Context, q query.PrepareCommit) (query.CommitDraft, error) {
	t, err := x.in(q.Session)
	if err != nil {
		return query.CommitDraft{}, err
	}
	d, err := t.changed(ctx)
	if err != nil || len(d.Files) == 0 {
		return d.CommitDraft, err
	}
	args := []string{"--no-color"}
	if d.Staged {
		args = append(args, "--cached", "--no-renames")
	}
	if d.Diff, err = t.git(ctx, "builtin:commit", "diff", args...); err != nil {
		return d.CommitDraft, err
	}
	if err = d.choose(q.Hunks); err != nil {
		return query.CommitDraft{}, err
	}
	if t.x.cfg.NoAI {
		d.Why = "the settings forbid asking a model"
	} else if a, err := t.b.Reach.Ask(ctx, commands.CommitQuestion(d.CommitDraft, commitDiff)); err != nil {
		d.Why = clip(err.Error(), 300)
	} else {
		d.Message = commands.Message(a.Message.Text())
	}
	t.mu.Lock()
	t.draft = &d
	t.mu.Unlock()
	return d.CommitDraft, nil
}

// choose makes of the draft one of some hunks of what is staged; of none it only says which
// there are.
func (d *draft) choose(names []string) error {
	const fix = "look at the changes again: /commit"
	if d.all = d.ID; !d.Staged {
		if len(names) > 0 {
			return commitProblem("hunks are chosen of what is staged, and nothing is", "stage it first: git add")
		}
		return nil
	}
	if strings.Contains(d.Diff, "[there is more; ") {
		if len(names) > 0 {
			return commitProblem("what is staged is too long to choose from", "stage less")
		}
		return nil
	}
	for _, p := range hunks.Split(d.Diff) {
		d.Hunks = append(d.Hunks, p.Name())
	}
	if len(names) == 0 {
		return nil
	}
	diff, picked, err := hunks.Pick(d.Diff, names)
	if err != nil {
		return commitProblem(err.Error(), fix)
	}
	left := func(path string) bool {
		return !slices.ContainsFunc(picked, func(p hunks.Part) bool { return p.File == path })
	}
	d.Diff = diff
	d.Files = slices.DeleteFunc(d.Files, func(f query.CommitFile) bool { return left(f.Path) })
	d.Secrets = slices.DeleteFunc(d.Secrets, left)
	if len(d.Files) == 0 {
		return commitProblem("the files of the hunks cannot be told", fix)
	}
	for _, p := range picked {
		d.Chosen = append(d.Chosen, p.Name())
	}
	sum := sha256.Sum256([]byte(d.ID + "\n" + strings.Join(d.Chosen, "\n")))
	d.ID = hex.EncodeToString(sum[:])
	return nil
}

// changed is what is staged, or else what is changed in tracked files. Its ID stands for
// the content of all of it.
func (t *Session) changed(ctx context.Context) (draft, error) {
	d := draft{CommitDraft: query.CommitDraft{Files: []query.CommitFile{}}}
	raw, err := t.git(ctx, "builtin:commit", "diff", "--cached", "--raw", "--abbrev=40", "--no-renames")
	if err != nil {
		return d, err
	}
	d.Staged = raw != "[no differences]"
	if !d.Staged {
		if raw, err = t.git(ctx, "builtin:commit", "diff", "--raw", "--abbrev=40"); err != nil {
			return d, err
		}
	}
	if strings.Contains(raw, "[there is more; ") {
		return d, errors.New("too many files are changed to be shown: stage fewer")
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%v\n%s\n", d.Staged, raw)
	for _, f := range commands.RawFiles(raw) {
		d.Files = append(d.Files, f)
		d.paths = append(d.paths, f.Path)
		if t.x.cfg.Secret(filepath.Base(f.Path)) {
			d.Secrets = append(d.Secrets, f.Path)
		}
		if !d.Staged {
			if err := hashInto(sum, filepath.Join(t.x.cfg.Top(t.workdir), filepath.FromSlash(f.Path))); err != nil {
				return d, err
			}
		}
	}
	status, err := t.git(ctx, "builtin:commit", "status", "--porcelain")
	if err != nil {
		return d, err
	}
	for line := range strings.Lines(status) {
		if name, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "?? "); ok && len(d.Untracked) < shownOthers {
			d.Untracked = append(d.Untracked, name)
		}
	}
	d.ID = hex.EncodeToString(sum.Sum(nil))
	return d, nil
}

// hashInto adds the content of a file. One that is gone, or no file, has none.
func hashInto(w io.Writer, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		_, err = io.WriteString(w, "gone\n")
		return err
	case err != nil:
		return err
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		fmt.Fprintf(w, "link %q\n", to)
		return err
	case !info.Mode().IsRegular():
		return nil
	case info.Size() > hashedFile:
		return fmt.Errorf("%s is too large to be looked at", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(w, "%v %d\n", info.Mode(), info.Size())
	_, err = io.Copy(w, io.LimitReader(f, hashedFile))
	return err
}

// makeCommit commits what was shown.
func (x *Extension) makeCommit(ctx context.Context, q query.MakeCommit) (query.CommitMade, error) {
	t, err := x.in(q.Session)
	if err != nil {
		return query.CommitMade{}, err
	}
	t.mu.Lock()
	shown := t.draft
	t.mu.Unlock()
	if shown == nil || shown.ID != q.ID {
		return query.CommitMade{}, commitProblem("there is no such draft", "look at the changes again: /commit")
	}
	if strings.TrimSpace(q.Message) == "" || len(q.Message) > maxMessage {
		return query.CommitMade{}, commitProblem("the message is empty or longer than 64 KiB", "write one")
	}
	now, err := t.changed(ctx)
	if err != nil {
		return query.CommitMade{}, commitProblem(err.Error(), "mend what it says, then try again: /commit")
	}
	if now.ID != shown.all {
		return query.CommitMade{}, commitProblem("the changes are not any more as they were shown", "look at them again: /commit")
	}
	in := map[string]any{"message": q.Message}
	if len(shown.Chosen) > 0 {
		in["hunks"] = shown.Chosen
	}
	if !shown.Staged {
		var paths []string
		for _, p := range shown.paths {
			paths = append(paths, filepath.Join(t.x.cfg.Top(t.workdir), filepath.FromSlash(p)))
		}
		in["paths"] = paths
	}
	said, err := t.invoke(ctx, confirmed+"commit", gitCommitTool, in)
	if err != nil {
		return query.CommitMade{}, commitProblem(err.Error(), "mend what it says, then try again: /commit")
	}
	t.mu.Lock()
	t.draft = nil
	t.mu.Unlock()
	return query.CommitMade{Said: said}, nil
}

func commitProblem(message, fix string) error {
	return &agent.Problem{Code: agent.ProblemUsage, Message: message, Fix: fix}
}
