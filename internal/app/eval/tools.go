package eval

import (
	"cmp"
	"context"
	"encoding/json"

	"dure/agent"
	"dure/internal/safety/policy"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/shell/local"
	"dure/internal/safety/workspace"
	"dure/internal/tools/builtin"
	"dure/internal/tools/code"
	"dure/internal/tools/files"
	"dure/internal/tools/git"
	"dure/internal/tools/shell"
	"dure/internal/tools/web"
)

// planners returns the built-in tools, of which nothing but their plans is used.
func planners(ws *workspace.Workspace, home string) []agent.Tool {
	box := sandbox.New(sandbox.Config{})
	reads := local.Reader(home, "", workspace.RunsPrograms)
	list := files.Files{Workspace: ws, Home: home}.Tools()
	list = append(list, shell.New(shell.Config{Box: box, Reads: reads}).Tools()...)
	list = append(list, code.New(code.Config{Workspace: ws, Box: box, Reads: reads}).Tools()...)
	list = append(list, git.New(git.Config{Box: box, Root: ws.Root()}).Tools()...)
	list = append(list, web.New(web.Config{}).Tools()...)
	return append(list, new(builtin.Todos).Tool(), builtin.Ask())
}

// Propose plans a call in the folder of the evaluator, with further folders.
func (v *Evaluator) Propose(ctx context.Context, extra []string, tool string, input json.RawMessage) (agent.Proposal, error) {
	place, err := v.Place(v.Dir, extra, v.Home)
	if err != nil {
		return agent.Proposal{}, err
	}
	return place.Propose(ctx, Case{Tool: tool, Input: input}, v.Dir)
}

// Test decides on the cases of a file by the policy of another one, see [enforce.Test].
func (v *Evaluator) Test(ctx context.Context, policyFile, casesFile string) (policy.Report, error) {
	place, err := v.Place(v.Dir, nil, v.Home)
	if err != nil {
		return policy.Report{}, err
	}
	return enforce.Test(policyFile, casesFile, place.Config(v.Dir, v.Home), func(c policy.Case) (agent.Proposal, error) {
		return place.Propose(ctx, Case{Tool: c.Tool, Input: c.Input}, cmp.Or(c.Cwd, v.Dir))
	})
}
