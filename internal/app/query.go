package app

import (
	"context"
	"fmt"

	"dure/agent"
)

// query answers what the sessions do not.
func (a *App) query(ctx context.Context, q agent.Query) (any, error) {
	if one, ok := a.answers[q.Query()]; ok {
		return one.Do(ctx, q)
	}
	return nil, fmt.Errorf("query %q: nobody answers it", q.Query())
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
