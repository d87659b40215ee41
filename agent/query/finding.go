package query

import "dure/agent"

// Finding is one line of a diagnosis. Detail and Fix are English; front-ends show
// it in the user's language by Code and Args.
type Finding struct {
	Group  string            `json:"group,omitempty"` // configured, reachable, enforced, programs, machine
	Name   string            `json:"name"`
	State  string            `json:"state"` // ok, warn, fail
	Code   string            `json:"code,omitempty"`
	Detail string            `json:"detail"`
	Fix    string            `json:"fix,omitempty"`
	Args   map[string]string `json:"args,omitempty"` // the names involved
}

// The groups and states of findings.
const (
	Configured, Reachable, Enforced, Programs, Machine = "configured", "reachable", "enforced", "programs", "machine"

	Good, Warn, Bad = "ok", "warn", "fail"
)

// Findings is a list of findings while it is made.
type Findings struct {
	Group string // of those that are added
	List  []Finding
}

// Add adds a finding, whose texts follow from its code. args are names and values.
func (l *Findings) Add(name, state, code string, args ...string) {
	f := Finding{Group: l.Group, Name: name, State: state, Code: code}
	for i := 0; i+1 < len(args); i += 2 {
		if f.Args == nil {
			f.Args = map[string]string{}
		}
		f.Args[args[i]] = args[i+1]
	}
	l.List = append(l.List, f)
}

// Fault adds what went wrong.
func (l *Findings) Fault(name string, err error) {
	f := Finding{Group: l.Group, Name: name, State: Bad, Detail: err.Error()}
	if p := agent.ProblemOf(err); p != nil {
		f.Code, f.Detail, f.Fix, f.Args = "problem."+string(p.Code), p.Message, p.Fix, p.Args
	}
	l.List = append(l.List, f)
}
