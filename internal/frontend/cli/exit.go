package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"dure/agent"
	"dure/internal/frontend/text"
)

// The exit codes. They are a contract with scripts (docs/errors.md).
const (
	ExitOK          = 0   // done; calls may have been denied on the way, and are reported
	ExitFailed      = 1   // the task failed: the model's service, a refusal, a fault of ours
	ExitUsage       = 2   // the command line, the settings, a model's name or the folder is wrong
	ExitDenied      = 3   // a denial or a hook ended the turn
	ExitKey         = 4   // no key, or the provider does not accept the key or its account
	ExitUnreachable = 5   // no connection to the model's service
	ExitSession     = 6   // a session is missing, open elsewhere, damaged, or not what was written
	ExitHome        = 7   // nothing can be written: home, disk
	ExitLimit       = 8   // the turn reached its limit of steps
	ExitForm        = 9   // no valid answer in the form that was asked for came
	ExitInterrupted = 130 // interrupted by the user
	ExitTerminated  = 143 // terminated
)

// Exited is the end of a command whose outcome has been shown. Err says what it
// was.
type Exited struct {
	Code int
	Err  error
}

func (e *Exited) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *Exited) Unwrap() error { return e.Err }

// ExitCode returns the exit code of a command that returned err.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	if e, ok := errors.AsType[*Exited](err); ok {
		return e.Code
	}
	if p := agent.ProblemOf(err); p != nil {
		return problemCode(p.Code)
	}
	if class := agent.ClassOf(err); class != "" {
		return failureCode(class)
	}
	if errors.Is(err, context.Canceled) {
		return ExitInterrupted
	}
	return ExitFailed
}

func problemCode(code agent.ProblemCode) int {
	switch code {
	case agent.ProblemUsage, agent.ProblemSettings, agent.ProblemModel, agent.ProblemWorkdir, agent.ProblemOver,
		agent.ProblemEvent, agent.ProblemWhole, agent.ProblemUndo, agent.ProblemChange, agent.ProblemMemory, agent.ProblemEditor, agent.ProblemPrompt,
		agent.ProblemNoAI, agent.ProblemNetwork, agent.ProblemTrust, agent.ProblemSkill,
		agent.ProblemPlugin, agent.ProblemBundle, agent.ProblemServer, agent.ProblemTool, agent.ProblemNoPlan, agent.ProblemPlan, agent.ProblemPlans:
		return ExitUsage
	case agent.ProblemNoKey, agent.ProblemAuth, agent.ProblemKeys:
		return ExitKey
	case agent.ProblemEndpoint:
		return ExitUnreachable
	case agent.ProblemOwned, agent.ProblemDamaged, agent.ProblemMissing, agent.ProblemUnclear, agent.ProblemNone, agent.ProblemVersion, agent.ProblemBusy, agent.ProblemKept, agent.ProblemAlive, agent.ProblemGone:
		return ExitSession
	case agent.ProblemHook:
		return ExitDenied
	case agent.ProblemForm:
		return ExitForm
	case agent.ProblemHome, agent.ProblemDisk, agent.ProblemIndex:
		return ExitHome
	}
	return ExitFailed
}

func failureCode(class agent.FailureClass) int {
	switch class {
	case agent.FailAuth, agent.FailQuota:
		return ExitKey
	case agent.FailDown:
		return ExitUnreachable
	case agent.FailNotFound:
		return ExitUsage
	}
	return ExitFailed
}

// turnCode returns the exit code of a turn.
func turnCode(e agent.TurnEnded) int {
	switch e.Reason {
	case agent.EndDone:
		return ExitOK
	case agent.EndInterrupted:
		return ExitInterrupted
	case agent.EndLimit:
		return ExitLimit
	case agent.EndStopped:
		return ExitDenied
	case agent.EndFailed:
		if e.Problem != "" {
			return problemCode(e.Problem)
		}
		return failureCode(e.Fail)
	}
	return ExitFailed
}

// Report tells a person of err, unless the command has done so: what is wrong,
// and what to do next. With asJSON it is one line with an object for programs.
func Report(w io.Writer, t text.Catalog, err error, asJSON bool) {
	if _, shown := errors.AsType[*Exited](err); shown || err == nil {
		return
	}
	message, fix := explain(t, err)
	if asJSON {
		reportJSON(w, codeOf(err), message, fix)
		return
	}
	fmt.Fprintln(w, t.Say(text.Error, "message", text.Clean(message)))
	if fix != "" {
		fmt.Fprintln(w, text.Clean(fix))
	}
}

// errorObject is an error as programs read it. Code is that of a problem, the
// class of a model's failure, or the reason for which a turn ended.
type errorObject struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Fix     string `json:"fix,omitempty"`
	} `json:"error"`
}

func reportJSON(w io.Writer, code, message, fix string) {
	var o errorObject
	o.Error.Code, o.Error.Message, o.Error.Fix = code, message, fix
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(o) // nobody is left to tell
}

// codeOf names an error for programs.
func codeOf(err error) string {
	if p := agent.ProblemOf(err); p != nil {
		return string(p.Code)
	}
	if class := agent.ClassOf(err); class != "" {
		return string(class)
	}
	if errors.Is(err, context.Canceled) {
		return string(agent.EndInterrupted)
	}
	return string(agent.ProblemInternal)
}

func explain(t text.Catalog, err error) (message, fix string) {
	if p := agent.ProblemOf(err); p != nil {
		return t.Problem(p)
	}
	if class := agent.ClassOf(err); class != "" {
		what, fix := t.Failure(class, "")
		return what + ": " + err.Error(), fix
	}
	return t.Phrase(err.Error()), ""
}
