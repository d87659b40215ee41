package exthost

import (
	"context"
	"encoding/json"
	"time"
)

// A Compiled is an extension in Go that is part of a program. It has the same API as those
// of bundles, and bundles name it.
type Compiled struct {
	Name     string
	Version  string
	About    string // what it does, in a line
	Register func(context.Context, *API) error
}

// Logging writes each call into the log of the program: its tool, how it came out and what
// it took. It guards nothing.
var Logging = Compiled{Name: "logging", Version: "1.0.0", About: "Logs each call of a tool: how it came out, and what it took.", Register: logCalls}

func logCalls(_ context.Context, api *API) error {
	return api.Wrap(CallExec, 0, func(ctx context.Context, m Moment, next Next) (json.RawMessage, error) {
		begun := time.Now()
		value, err := next(ctx, m)
		var r ToolResult
		status := "failed"
		if err == nil && json.Unmarshal(value, &r) == nil {
			status = r.Status
		}
		api.Logger.Info("a call", "tool", m.ToolCall.Name, "call", m.ToolCall.ID, "turn", m.Turn.ID, "step", m.Step.Index, "status", status, "ms", time.Since(begun).Milliseconds())
		return value, err
	}, Optional)
}
