package git

import (
	"context"
	"crypto/rand"
	"os"
	"path/filepath"

	"dure/agent"
	"dure/internal/state/hunks"
	"dure/internal/tools/kit"
)

// chosen returns the environment of a commit that takes some hunks of what is staged: with
// an index of its own, which has the last commit and those hunks alone. The index that
// everybody has stays as it is, so that what was not chosen is still staged afterwards.
func (g *Git) chosen(ctx context.Context, r repository, names []string) (env []string, done func(), err error) {
	done = func() {}
	if len(names) == 0 {
		return nil, done, nil
	}
	diff, err := g.ask(ctx, r, job{argv: g.command(idle, "diff", "--cached", "--binary", "--no-color", "--no-ext-diff", "--no-textconv",
		"--no-renames", "--submodule=short", "--src-prefix=a/", "--dst-prefix=b/"), timeout: readTimeout, most: maxList})
	if err != nil {
		return nil, done, err
	}
	patch, _, err := hunks.Pick(diff, names)
	if err != nil {
		return nil, done, kit.Refuse(agent.ErrInput, err.Error(), "Look at what is staged again.")
	}
	last, err := g.last(ctx, r)
	if err != nil {
		return nil, done, err
	}
	index := filepath.Join(r.dir, "dure-index-"+rand.Text())
	env = []string{"GIT_INDEX_FILE=" + index}
	done = func() {
		for _, path := range []string{index, index + ".lock"} {
			_ = os.Remove(path) // one that stays does no harm
		}
	}
	begin := []string{"read-tree", "--empty"}
	if last.Commit != "" {
		begin = []string{"read-tree", last.Commit}
	}
	if _, err = g.ask(ctx, r, job{argv: g.command(idle, begin...), timeout: readTimeout, env: env}); err == nil {
		_, err = g.ask(ctx, r, job{argv: g.command(idle, "apply", "--cached", "--whitespace=nowarn", "-"), in: patch, timeout: readTimeout, env: env})
	}
	if err != nil {
		done()
		return nil, func() {}, err
	}
	return env, done, nil
}
