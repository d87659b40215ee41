package shell

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed taskstop.md
var taskStopText string

const taskStopSchema = `{"type":"object","properties":{"task_id":{"type":"string"}},"required":["task_id"],"additionalProperties":false}`

type taskStopInput struct {
	ID string `json:"task_id"`
}

func (s *Shell) taskStop() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "task__stop", Description: kit.Describe(taskStopText), Input: json.RawMessage(taskStopSchema),
			Class: agent.Idempotent, Group: "system", Risk: agent.RiskLow, Limit: time.Minute,
			Aliases: map[string]string{"shell_id": "task_id", "bash_id": "task_id"},
		},
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			_, err := kit.Decode[taskStopInput](c)
			return agent.Effects{}, err
		},
		Does: func(ctx context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := kit.Decode[taskStopInput](c)
			if err != nil {
				return agent.Result{}, err
			}
			j, handle := s.task(in.ID)
			if j == nil {
				return s.stopElsewhere(ctx, in, handle)
			}
			return s.stop(j)
		},
	}
}

// stop ends a job, which takes a second at most. One that has ended stays as it is.
func (s *Shell) stop(j *job) (agent.Result, error) {
	ended := false
	select {
	case <-j.done:
		ended = true
	default:
	}
	if _, err := j.proc.Stop(); err != nil {
		return agent.Result{}, kit.Refuse(agent.ErrTool, err.Error(), "")
	}
	<-j.done
	s.mu.Lock()
	defer s.mu.Unlock()
	took := j.exit.Duration.Round(time.Millisecond)
	text := fmt.Sprintf("%s was stopped after %s: %s", j.handle, took, quote(j.command))
	if ended || j.status != stopped {
		text = fmt.Sprintf("%s had ended by itself after %s (%s): %s", j.handle, took, j.status, quote(j.command))
		if j.status == stopped {
			text = fmt.Sprintf("%s had been stopped before: %s", j.handle, quote(j.command))
		}
	}
	return agent.Result{Status: agent.StatusOK, Text: text, Output: kit.Structured(taskAnswer{
		TaskID: j.handle, Status: j.status, ExitCode: &j.exit.Code, NextOffset: j.seen, Size: j.out.Size(),
	})}, nil
}

// stopElsewhere asks those who look after other tasks. Jobs of the past have
// ended.
func (s *Shell) stopElsewhere(ctx context.Context, in taskStopInput, handle string) (agent.Result, error) {
	if strings.HasPrefix(handle, jobPrefix) {
		if s.Past != nil {
			if r, ok := s.Past(handle); ok {
				status, _ := outcome(r)
				return agent.OK(fmt.Sprintf("%s had ended before (%s).", handle, status)), nil
			}
		}
	}
	if s.StopOther != nil {
		if r, ok := s.StopOther(ctx, strings.TrimPrefix(handle, jobPrefix)); ok {
			return r, nil
		}
	}
	return agent.Result{}, s.unknown(in.ID)
}
