package shell

import (
	"context"
	_ "embed" // descriptions
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"dure/agent"
	"dure/internal/tools/kit"
)

//go:embed processsignal.md
var processSignalText string

const processSignalSchema = `{"type":"object","properties":{` +
	`"pid":{"type":"integer","minimum":2},` +
	`"signal":{"enum":["TERM","INT","KILL","HUP","USR1","USR2","STOP","CONT"]}},` +
	`"required":["pid"],"additionalProperties":false}`

type processSignalInput struct {
	PID    kit.Whole `json:"pid"`
	Signal string    `json:"signal"`
}

func (s *Shell) processSignal() agent.Tool {
	return kit.Tool{
		About: agent.Spec{
			Name: "process__signal", Description: kit.Describe(processSignalText), Input: json.RawMessage(processSignalSchema),
			Class: agent.Unsafe, Group: "system", Risk: agent.RiskHigh, Limit: time.Minute,
		},
		// What it does is what kill does, and is judged as that.
		Touches: func(_ agent.ToolContext, c agent.Call) (agent.Effects, error) {
			in, err := readSignal(c)
			if err != nil {
				return agent.Effects{}, err
			}
			return agent.Effects{Commands: []agent.SimpleCommand{{Argv: []string{"kill", "-s", in.Signal, strconv.Itoa(int(in.PID))}}}}, nil
		},
		Does: func(_ context.Context, _ agent.ToolContext, c agent.Call) (agent.Result, error) {
			in, err := readSignal(c)
			if err != nil {
				return agent.Result{}, err
			}
			pid := int(in.PID)
			if err := sendSignal(pid, in.Signal, func() error { return mayEnd(pid) }); err != nil {
				return agent.Result{}, signalError(pid, in.Signal, err)
			}
			return agent.OK(fmt.Sprintf("Sent %s to process %d.", in.Signal, pid)), nil
		},
	}
}

func readSignal(c agent.Call) (processSignalInput, error) {
	in, err := kit.Decode[processSignalInput](c)
	if err == nil && in.PID <= 1 {
		err = kit.Refuse(agent.ErrInput, fmt.Sprintf("%d is no process that can be sent a signal", in.PID), "Name one process by its number, as the process list shows it.")
	}
	if in.Signal == "" {
		in.Signal = "TERM"
	}
	return in, err
}

// The reasons not to send a signal.
var (
	errOurselves = errors.New("it is this program itself")
	errAncestor  = errors.New("this program runs inside it")
	errStranger  = errors.New("it belongs to another user")
	errGone      = errors.New("there is no such process")
	errNoSignal  = errors.New("this system does not have the signal")
)

// maxAncestors bounds the way up to the first process.
const maxAncestors = 256

// mayEnd returns why a process must not be sent a signal.
func mayEnd(pid int) error {
	if pid == os.Getpid() {
		return errOurselves
	}
	up := os.Getppid()
	for range maxAncestors {
		if up <= 1 {
			break
		}
		if up == pid {
			return errAncestor
		}
		parent, _, err := kin(up)
		if err != nil {
			break
		}
		up = parent
	}
	_, ours, err := kin(pid)
	switch {
	case err != nil:
		return err
	case !ours:
		return errStranger
	}
	return nil
}

func signalError(pid int, signal string, err error) error {
	code, suggestion := agent.ErrTool, ""
	switch {
	case errors.Is(err, errOurselves), errors.Is(err, errAncestor), errors.Is(err, errStranger):
		code, suggestion = agent.ErrDenied, "Leave it; ask the user if it is in the way."
	case errors.Is(err, errGone):
		code, suggestion = agent.ErrInput, "It may have ended; look at the process list."
	}
	return kit.Refuse(code, fmt.Sprintf("no %s was sent to process %d: %v", signal, pid, err), suggestion)
}
