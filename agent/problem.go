package agent

import (
	"errors"
	"fmt"
)

// A Problem is an error that a person has to do something about. Front-ends
// show it in the user's language by Code and Args; Message and Fix are English.
type Problem struct {
	Code    ProblemCode       `json:"code"`
	Message string            `json:"message"`        // what is wrong, with the names involved
	Fix     string            `json:"fix,omitempty"`  // what to do next
	Args    map[string]string `json:"args,omitempty"` // the names involved
	Err     error             `json:"-"`
}

func (p *Problem) Error() string { return p.Message }

func (p *Problem) Unwrap() error { return p.Err }

// ProblemCode is a stable name of a problem (docs/errors.md).
type ProblemCode string

// The problems.
const (
	ProblemUsage    ProblemCode = "usage"           // flag, value, wanted
	ProblemSettings ProblemCode = "settings"        // path, error
	ProblemNoKey    ProblemCode = "no-key"          // provider, variable
	ProblemAuth     ProblemCode = "auth"            // provider
	ProblemNoAI     ProblemCode = "ai-off"          // where: what switched it off
	ProblemNetwork  ProblemCode = "network-mode"    // host, mode
	ProblemKeys     ProblemCode = "keys"            // path, error
	ProblemModel    ProblemCode = "unknown-model"   // model, nearest
	ProblemEndpoint ProblemCode = "unreachable"     // url, error
	ProblemProvider ProblemCode = "model-failed"    // class, error
	ProblemWorkdir  ProblemCode = "workdir"         // path, error
	ProblemGone     ProblemCode = "folder-gone"     // session, path, error
	ProblemOwned    ProblemCode = "session-owned"   // session, pid, host
	ProblemDamaged  ProblemCode = "session-damaged" // session, error
	ProblemMissing  ProblemCode = "session-missing" // session
	ProblemUnclear  ProblemCode = "session-unclear" // session, matches
	ProblemNone     ProblemCode = "session-none"    // workdir: the folder has none
	ProblemOver     ProblemCode = "session-over"    // session: its last turn has ended
	ProblemBusy     ProblemCode = "session-busy"    // session: a turn runs, or is to go on
	ProblemBudget   ProblemCode = "budget"          // error: what was set aside for the session does not cover the next request
	ProblemAlive    ProblemCode = "session-alive"   // session, pid, host, why: its owner is not to be ended
	ProblemKept     ProblemCode = "session-kept"    // session, why: pinned or busy; it is not deleted without force
	ProblemUndo     ProblemCode = "no-checkpoints"  // session: what was done to files is not kept
	ProblemEvent    ProblemCode = "no-event"        // session, seq, head: there is no such event to go back to
	ProblemChange   ProblemCode = "no-change"       // session, error: there is no such change to accept or reject
	ProblemWhole    ProblemCode = "not-compacted"   // session: there is no compaction to take back
	ProblemHome     ProblemCode = "home"            // path, error: nothing can be written there
	ProblemDisk     ProblemCode = "disk-full"       // path
	ProblemVersion  ProblemCode = "version"         // session
	ProblemPrompt   ProblemCode = "prompt-too-long" // profile, model, tokens, budget: what a prompt has to have does not fit
	ProblemTrust    ProblemCode = "trust"           // path, error
	ProblemIndex    ProblemCode = "search-index"    // error
	ProblemMemory   ProblemCode = "memory"          // path, error: instructions that cannot be changed
	ProblemSkill    ProblemCode = "skill"           // name, error: a skill that is not there or cannot be kept
	ProblemEditor   ProblemCode = "editor"          // name, path, error
	ProblemHook     ProblemCode = "hook"            // hook, reason: a hook forbids it
	ProblemPlugin   ProblemCode = "plugin"          // name, error, fix: a plugin or a marketplace
	ProblemServer   ProblemCode = "server"          // name, error, fix: a server of the Model Context Protocol
	ProblemTool     ProblemCode = "tool"            // name, error, fix: a tool that is not there, or cannot be switched so
	ProblemNoPlan   ProblemCode = "no-plan"         // session: no plan waits for a decision
	ProblemPlan     ProblemCode = "plan-change"     // session, error: a plan that cannot be changed so
	ProblemPlans    ProblemCode = "plan-again"      // session, n: a plan was made anew too often
	ProblemForm     ProblemCode = "no-valid-answer" // n, error: no answer in the form that was asked for came
	ProblemBundle   ProblemCode = "bundle"          // name, error: a bundle that cannot be read or started
	ProblemInternal ProblemCode = "internal"        // error
)

// ProblemOf returns the problem in err's chain, or nil.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return nil
}

// NotOpen is the problem of a session that is not open in this program.
func NotOpen(session string) error {
	return &Problem{
		Code: ProblemMissing, Message: fmt.Sprintf("the session %q is not open", session), Fix: "dure sessions lists them",
		Args: map[string]string{"session": session},
	}
}

// SettingsProblem is a problem of what stands in the settings or on the command line.
func SettingsProblem(what string, err error) error {
	return &Problem{
		Code: ProblemSettings, Message: err.Error(), Err: err,
		Fix: "mend " + what + " in the settings or on the command line", Args: map[string]string{"path": what, "error": err.Error()},
	}
}
