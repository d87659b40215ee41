package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Bounds of what is said about a tree.
const (
	maxMessage = 16 << 10  // bytes of the message of a commit
	maxDiff    = 256 << 10 // bytes of a difference
)

// A Change is a file that a tree has otherwise than the commit it began at.
type Change struct {
	Status string `json:"status"` // A, M, D, T, or ? = not committed yet
	Path   string `json:"path"`   // from the top of the repository
}

// A ConflictError says that a branch cannot take what a tree has. Nothing was changed.
type ConflictError struct {
	Into  string
	Files []string
}

// Error names the files.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("both %s and the work tree have changed: %s", e.Into, strings.Join(e.Files, ", "))
}

// A DirtyError says that files of the repository's folder have changes that are not
// committed and that a merge would overwrite. Nothing was changed.
type DirtyError struct{ Said string }

// Error is what git said of them.
func (e *DirtyError) Error() string { return e.Said }

// of returns where git runs for a tree that is what it was made as.
func (s *Store) of(ctx context.Context, t Tree) (place, error) {
	if err := s.verify(t); err != nil {
		return place{}, err
	}
	return s.settled(ctx, t.place(nil))
}

// all is every file of a tree, but for the folders that are links to elsewhere.
func (t Tree) all() []string {
	args := []string{"--", ":/"}
	for _, l := range t.Links {
		args = append(args, ":(top,exclude,literal)"+l)
	}
	return args
}

// loose is what has been changed and not committed.
func (s *Store) loose(ctx context.Context, p place, t Tree) (list []Change, err error) {
	out, err := s.ask(ctx, p, nil, append([]string{"status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"}, t.all()...)...)
	if err != nil {
		return nil, err
	}
	for _, entry := range names(out) {
		if len(entry) > 3 {
			list = append(list, Change{"?", entry[3:]})
		}
	}
	return list, nil
}

// Commit commits what has been changed in a tree. It reports false when there is
// nothing.
func (s *Store) Commit(ctx context.Context, t Tree, message string) (bool, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer leave()
	p, err := s.of(ctx, t)
	if err != nil {
		return false, err
	}
	return s.commit(ctx, p, t, message)
}

func (s *Store) commit(ctx context.Context, p place, t Tree, message string) (bool, error) {
	changed, err := s.loose(ctx, p, t)
	if err != nil || len(changed) == 0 {
		return false, err
	}
	paths := make([]string, len(changed))
	for i, c := range changed {
		paths[i] = c.Path
	}
	if err := s.unfiltered(ctx, p, paths); err != nil {
		return false, err
	}
	if err := s.finish(p, "", append([]string{"add", "--all"}, t.all()...)...); err != nil {
		return false, err
	}
	if _, err := s.ask(ctx, p, nil, "diff", "--cached", "--quiet", "--no-ext-diff", "--ignore-submodules=all"); err == nil {
		return false, nil // what git does not keep, as an empty folder
	}
	err = s.finish(s.named(ctx, p), short(message), "commit", "--quiet", "--no-verify", "--no-gpg-sign", "--cleanup=whitespace", "--file=-")
	return err == nil, err
}

// short is a message within its bound; "" would stop git.
func short(message string) string {
	if message = strings.TrimSpace(strings.ReplaceAll(message, "\x00", "")); message == "" {
		message = "Work of an agent"
	}
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "")
	}
	return message
}

// named is a place whose commits have an author, also where git does not know its user.
func (s *Store) named(ctx context.Context, p place) place {
	if _, err := s.ask(ctx, p, nil, "var", "GIT_COMMITTER_IDENT"); err == nil {
		return p
	}
	p.off = append(slices.Clone(p.off), "user.name=dure", "user.email=dure@localhost")
	return p
}

// unfiltered refuses paths that are stored through a filter.
func (s *Store) unfiltered(ctx context.Context, p place, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	out, err := s.ask(ctx, p, strings.NewReader(strings.Join(paths, "\x00")+"\x00"), "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return err
	}
	parts := strings.Split(out, "\x00")
	for i := 0; i+2 < len(parts); i += 3 {
		if v := parts[i+2]; v != "unspecified" && v != "unset" {
			return fmt.Errorf("%w: %s", ErrFilter, parts[i])
		}
	}
	return nil
}

// Changes lists what a tree has otherwise than the commit it began at, at most most
// files; 0 = all.
func (s *Store) Changes(ctx context.Context, t Tree, most int) ([]Change, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	p, err := s.of(ctx, t)
	if err != nil {
		return nil, err
	}
	list, err := s.committed(ctx, p, t.Base, "HEAD")
	if err != nil {
		return nil, err
	}
	more, err := s.loose(ctx, p, t)
	if list = append(list, more...); most > 0 && len(list) > most {
		list = list[:most]
	}
	return list, err
}

// committed lists what differs between two commits.
func (s *Store) committed(ctx context.Context, p place, from, to string) (list []Change, err error) {
	out, err := s.ask(ctx, p, nil, "diff", "--name-status", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", "--ignore-submodules=none", from, to, "--")
	if err != nil {
		return nil, err
	}
	parts := names(out)
	for i := 0; i+1 < len(parts); i += 2 {
		list = append(list, Change{parts[i][:1], parts[i+1]})
	}
	return list, nil
}

// Diff returns what a tree has committed, in unified form. It reports true when that is
// more than is returned.
func (s *Store) Diff(ctx context.Context, t Tree) (string, bool, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return "", false, err
	}
	defer leave()
	p, err := s.of(ctx, t)
	if err != nil {
		return "", false, err
	}
	out, err := s.ask(ctx, p, nil, "diff", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames", t.Base, "HEAD", "--")
	if len(out) > maxDiff {
		return strings.ToValidUTF8(out[:maxDiff], ""), true, err
	}
	return out, false, err
}

// A Plan is what a merge would do.
type Plan struct {
	Into    string
	Changes []Change // of the branch
	Here    bool     // the branch is the one of the repository's folder, whose files change too
	head    string   // of the tree
	merge   Merge
}

// Empty reports whether the branch has everything already.
func (p Plan) Empty() bool { return p.merge.Before == p.merge.After }

// PlanMerge says what it would do to have a branch take what a tree has; "" = the branch
// of the repository's folder. It changes no branch and no file; what has not been
// committed in the tree is no part of it.
func (s *Store) PlanMerge(ctx context.Context, t Tree, into string) (Plan, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return Plan{}, err
	}
	defer leave()
	plan, _, err := s.plan(ctx, t, into)
	return plan, err
}

func (s *Store) plan(ctx context.Context, t Tree, into string) (plan Plan, repo place, err error) {
	tree, err := s.of(ctx, t)
	if err != nil {
		return plan, repo, err
	}
	if repo, err = s.open(ctx, t.Repo); err != nil {
		return plan, repo, err
	}
	out, err := s.ask(ctx, repo, nil, "symbolic-ref", "--quiet", "--short", "HEAD")
	current := strings.TrimSpace(out)
	if into == "" && (err != nil || current == "") {
		return plan, repo, errors.New("the repository's folder is on no branch; name one")
	}
	if into == "" {
		into = current
	}
	if _, err := s.ask(ctx, repo, nil, "check-ref-format", "--branch", into); err != nil || strings.HasPrefix(into, "-") || strings.HasPrefix(into, "@") {
		return plan, repo, fmt.Errorf("%.80q is no name of a branch", into)
	}
	plan.Into, plan.Here, plan.merge.Into = into, into == current, into
	if !plan.Here {
		if err := s.nowhere(ctx, repo, into); err != nil {
			return plan, repo, err
		}
	}
	if plan.merge.Before, err = s.commitOf(ctx, repo, "refs/heads/"+into); err != nil {
		return plan, repo, fmt.Errorf("there is no branch %s", into)
	}
	if plan.head, err = s.commitOf(ctx, tree, "HEAD"); err != nil {
		return plan, repo, err
	}
	if plan.merge.After, err = s.merged(ctx, repo, plan.merge.Before, plan.head, t, into); err != nil {
		return plan, repo, err
	}
	if plan.Changes, err = s.committed(ctx, repo, plan.merge.Before, plan.merge.After); err != nil {
		return plan, repo, err
	}
	if !plan.Here {
		return plan, repo, nil
	}
	paths := make([]string, len(plan.Changes))
	for i, c := range plan.Changes {
		paths[i] = c.Path
	}
	return plan, repo, s.unfiltered(ctx, repo, paths)
}

// nowhere refuses a branch that another folder works on.
func (s *Store) nowhere(ctx context.Context, repo place, branch string) error {
	out, err := s.ask(ctx, repo, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return err
	}
	if slices.Contains(strings.Split(out, "\x00"), "branch refs/heads/"+branch) {
		return fmt.Errorf("another folder works on the branch %s; merge there", branch)
	}
	return nil
}

// merged returns the commit that has both others. It changes no branch and no file.
func (s *Store) merged(ctx context.Context, repo place, before, head string, t Tree, into string) (string, error) {
	out, err := s.ask(ctx, repo, nil, "merge-base", before, head)
	if err != nil {
		return "", fmt.Errorf("the branch and the work tree have no commit in common: %w", err)
	}
	switch strings.TrimSpace(out) {
	case head:
		return before, nil
	case before:
		return head, nil
	}
	out, err = s.ask(ctx, repo, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", before, head)
	parts := names(out)
	switch {
	case code(err) == 1 && len(parts) > 0:
		files := parts[1:]
		slices.Sort(files)
		return "", &ConflictError{into, slices.Compact(files)}
	case err != nil:
		return "", err
	case len(parts) != 1:
		return "", errors.New("git merge-tree has answered in another way than is known")
	}
	out, err = s.ask(ctx, s.named(ctx, repo), nil, "commit-tree", parts[0], "-p", before, "-p", head, "-m", "Merge "+t.Branch+" into "+into)
	return strings.TrimSpace(out), err
}

// Merge has a branch take what a tree has committed, as a plan says. It refuses when
// the branch has moved since. The tree stays.
func (s *Store) Merge(ctx context.Context, t Tree, p Plan) (Tree, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return t, err
	}
	defer leave()
	now, repo, err := s.plan(ctx, t, p.Into)
	if err != nil {
		return t, err
	}
	if now.merge.Before != p.merge.Before || now.head != p.head || now.Here != p.Here {
		return t, errors.New("the branch or the work tree has changed since the merge was agreed; look at it again")
	}
	t.Merge = &now.merge
	if now.Empty() {
		return t, s.write(t)
	}
	t.State = Merging
	if err := s.write(t); err != nil {
		return t, err
	}
	if now.Here {
		err = s.forward(ctx, repo, now)
	} else {
		err = s.finish(repo, "", "update-ref", "-m", "merge "+t.Branch, "refs/heads/"+now.Into, now.merge.After, now.merge.Before)
	}
	if t.State = Ready; err != nil {
		t.Merge = nil
	}
	return t, errors.Join(err, s.write(t))
}

// forward moves the branch of the repository's folder, with its files. Git does it only
// if that takes no change away that is not committed.
func (s *Store) forward(ctx context.Context, repo place, p Plan) error {
	if busy(ctx, s, repo) {
		return ErrBusy
	}
	err := s.finish(repo, "", "merge", "--quiet", "--ff-only", "--no-verify-signatures", "--no-autostash", "--no-overwrite-ignore", p.merge.After)
	if f, ok := errors.AsType[*failed](err); ok && strings.Contains(f.said, "overwritten") {
		return &DirtyError{f.said}
	}
	return err
}

// busy reports whether the index of a repository is locked.
func busy(ctx context.Context, s *Store, repo place) bool {
	out, err := s.ask(ctx, repo, nil, "rev-parse", "--git-path", "index.lock")
	lock := strings.TrimSpace(out)
	if err != nil || lock == "" {
		return true
	}
	if !filepath.IsAbs(lock) {
		lock = filepath.Join(repo.top, lock)
	}
	_, err = os.Lstat(lock)
	return err == nil
}

// Mended is a tree that was found behind a process that is gone.
type Mended struct {
	Tree
	What string // removed, kept, merged, undone; "" = see Err
	Err  error
}

// What became of a tree.
const (
	Removed = "removed" // nothing had been changed in it
	Kept    = "kept"    // it has changes
	Merged  = "merged"  // its merge had been done; it is removed, unless it has more changes
	Undone  = "undone"  // its merge had not begun
)

// Mend cleans up behind processes that are gone: trees that nobody works in and that
// have no changes are removed, those that were being made or removed too, and a merge
// is looked after. Alive reports whether a session is open anywhere.
func (s *Store) Mend(ctx context.Context, alive func(owner string) bool) (list []Mended) {
	leave, err := s.enter(ctx)
	if err != nil {
		return []Mended{{Err: err}}
	}
	defer leave()
	all, err := s.List()
	if err != nil {
		return []Mended{{Err: err}}
	}
	s.sweep()
	for _, t := range all {
		if alive(t.Owner) || ctx.Err() != nil {
			continue
		}
		m := Mended{Tree: t}
		m.What, m.Err = s.mend(ctx, &m.Tree)
		list = append(list, m)
	}
	return list
}

// sweep removes records that were never finished, and the oldest ones of trees that are
// no more.
func (s *Store) sweep() {
	entries, _ := os.ReadDir(s.Home) // without it there are none
	var gone []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
		case strings.HasPrefix(e.Name(), goneMark):
			gone = append(gone, info)
		case strings.HasPrefix(e.Name(), unfinished) && s.Now().Sub(info.ModTime()) > unfinishedFor:
			_ = os.Remove(filepath.Join(s.Home, e.Name())) // the next one tries again
		}
	}
	slices.SortFunc(gone, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, info := range gone[min(len(gone), maxGone):] {
		_ = os.Remove(filepath.Join(s.Home, info.Name())) // as above
	}
}

func (s *Store) mend(ctx context.Context, t *Tree) (string, error) {
	switch t.State {
	case Making, Removing:
		return Removed, s.clear(ctx, *t)
	case Merging:
		return s.settle(ctx, t)
	}
	clean, err := s.clean(ctx, *t)
	if err != nil || !clean {
		return Kept, err
	}
	return Removed, s.clear(ctx, *t)
}

// settle finds out how far a merge has come. A tree that is merged goes.
func (s *Store) settle(ctx context.Context, t *Tree) (string, error) {
	repo, err := s.open(ctx, t.Repo)
	if err != nil {
		return "", err
	}
	now, err := s.commitOf(ctx, repo, "refs/heads/"+t.Merge.Into)
	if err != nil {
		return "", err
	}
	if now == t.Merge.Before && busy(ctx, s, repo) {
		return "", ErrBusy
	}
	t.State = Ready
	if _, err := s.ask(ctx, repo, nil, "merge-base", "--is-ancestor", t.Merge.After, now); err != nil {
		t.Merge = nil
		return Undone, s.write(*t)
	}
	if clean, err := s.clean(ctx, *t); err != nil || !clean {
		return Merged, errors.Join(err, s.write(*t))
	}
	return Merged, s.clear(ctx, *t)
}

// clean reports whether nothing is lost when a tree goes.
func (s *Store) clean(ctx context.Context, t Tree) (bool, error) {
	p, err := s.of(ctx, t)
	if err != nil {
		return false, err
	}
	if loose, err := s.loose(ctx, p, t); err != nil || len(loose) > 0 {
		return false, err
	}
	head, err := s.commitOf(ctx, p, "HEAD")
	if err != nil || head == t.Base {
		return err == nil, err
	}
	if t.Merge == nil {
		return false, nil
	}
	_, err = s.ask(ctx, p, nil, "merge-base", "--is-ancestor", head, t.Merge.After)
	if code(err) == 1 {
		return false, nil
	}
	return err == nil, err
}

// Remove removes a tree, and its branch unless that is to be kept. Without force, it
// refuses one with changes that are not merged; what was committed counts as kept with
// the branch.
func (s *Store) Remove(ctx context.Context, t Tree, keepBranch, force bool) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if !force {
		p, err := s.of(ctx, t)
		if err != nil {
			return err
		}
		loose, err := s.loose(ctx, p, t)
		if err != nil {
			return err
		}
		clean, err := s.clean(ctx, t)
		if err != nil {
			return err
		}
		if len(loose) > 0 || !clean && !keepBranch {
			return ErrChanged
		}
	}
	t.Keep = keepBranch
	return s.clear(ctx, t)
}

// clear takes a tree away. It can be done again where it was cut short.
func (s *Store) clear(ctx context.Context, t Tree) error {
	t.State = Removing
	if err := s.write(t); err != nil {
		return err
	}
	if err := removeAll(t.Path); err != nil {
		return err
	}
	repo, err := s.open(ctx, t.Repo)
	if errors.Is(err, ErrNoRepo) { // it is gone with all that git knew of the tree
		return s.forget(t)
	}
	if err != nil {
		return err
	}
	known, err := s.ask(ctx, repo, nil, "worktree", "list", "--porcelain", "-z")
	if err != nil {
		return err
	}
	for _, line := range names(known) {
		path, ok := strings.CutPrefix(line, "worktree ")
		if !ok || filepath.Base(filepath.FromSlash(path)) != t.ID {
			continue
		}
		if err := s.finish(repo, "", "worktree", "remove", "--force", "--force", "--", path); err != nil {
			return err
		}
	}
	if _, err := s.commitOf(ctx, repo, "refs/heads/"+t.Branch); err == nil && !t.Keep {
		if err := s.finish(repo, "", "branch", "--quiet", "-D", "--", t.Branch); err != nil {
			return err
		}
	}
	return s.forget(t)
}

// removeAll removes a folder, also where programs have left folders in it that nobody
// may write to. Links in it are not followed.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700) // what stays shut is told of below
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Unlock lets git forget a tree by itself from now on, when its folder is gone: nobody
// works in it.
func (s *Store) Unlock(ctx context.Context, t Tree) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	p, err := s.of(ctx, t)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(t.Git, "locked")); err != nil {
		return nil //nolint:nilerr // it is not locked
	}
	return s.finish(p, "", "worktree", "unlock", "--", t.Path)
}
