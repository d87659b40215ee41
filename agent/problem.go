package agent

import "errors"

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
	ProblemModel    ProblemCode = "unknown-model"   // model, nearest
	ProblemEndpoint ProblemCode = "unreachable"     // url, error
	ProblemProvider ProblemCode = "model-failed"    // class, error
	ProblemWorkdir  ProblemCode = "workdir"         // path, error
	ProblemOwned    ProblemCode = "session-owned"   // session, pid, host
	ProblemDamaged  ProblemCode = "session-damaged" // session, error
	ProblemMissing  ProblemCode = "session-missing" // session
	ProblemUnclear  ProblemCode = "session-unclear" // session, matches
	ProblemNone     ProblemCode = "session-none"    // workdir: the folder has none
	ProblemOver     ProblemCode = "session-over"    // session: its last turn has ended
	ProblemHome     ProblemCode = "home"            // path, error: nothing can be written there
	ProblemDisk     ProblemCode = "disk-full"       // path
	ProblemVersion  ProblemCode = "version"         // session
	ProblemInternal ProblemCode = "internal"        // error
)

// ProblemOf returns the problem in err's chain, or nil.
func ProblemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return nil
}
