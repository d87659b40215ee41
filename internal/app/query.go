package app

import (
	"context"
	"fmt"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
)

// query answers what the sessions do not.
func (a *App) query(ctx context.Context, q agent.Query) (any, error) {
	if one, ok := a.answers[q.Query()]; ok {
		return one.Do(ctx, q)
	}
	return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
}

// tooling answers which tools a session has, and what a prompt would be.
type tooling struct {
	plug.NoSession
	app *App
}

// Name returns the name of the extension.
func (tooling) Name() string { return "tools" }

// Answers returns the queries that the extension answers. The tools of a session are at hand if
// it is open here, and then the store is.
func (t tooling) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(func(_ context.Context, q query.ListTools) (query.ToolReport, error) { return t.app.listTools(q) }),
		plug.Answers(func(_ context.Context, q query.SwitchTool) (query.ToolReport, error) { return t.app.switchTool(q) }),
		plug.Storeless(func(_ context.Context, q query.PromptPreview) (query.PromptReport, error) {
			return t.app.promptReport(q)
		}),
	}
}

// getenv looks a variable up in an environment; the last one of a name counts.
func getenv(environ []string) func(string) string {
	env := make(map[string]string, len(environ))
	for _, e := range environ {
		for i := 1; i < len(e); i++ {
			if e[i] == '=' {
				env[e[:i]] = e[i+1:]
				break
			}
		}
	}
	return func(name string) string { return env[name] }
}
