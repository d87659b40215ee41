package text

import "dure/agent"

// pair is what is said of a problem: what is wrong, and what to do next.
type pair struct{ message, fix Key }

func problemKeys(code agent.ProblemCode) (pair, bool) {
	switch code {
	case agent.ProblemUsage:
		return pair{ProblemUsage, FixUsage}, true
	case agent.ProblemSettings:
		return pair{ProblemSettings, FixSettings}, true
	case agent.ProblemNoKey:
		return pair{ProblemNoKey, FixNoKey}, true
	case agent.ProblemAuth:
		return pair{ProblemAuth, FixAuth}, true
	case agent.ProblemModel:
		return pair{ProblemModel, FixModel}, true
	case agent.ProblemEndpoint:
		return pair{ProblemEndpoint, FixEndpoint}, true
	case agent.ProblemProvider:
		return pair{ProblemProvider, FixProvider}, true
	case agent.ProblemWorkdir:
		return pair{ProblemWorkdir, FixWorkdir}, true
	case agent.ProblemOwned:
		return pair{ProblemOwned, FixOwned}, true
	case agent.ProblemDamaged:
		return pair{ProblemDamaged, FixDamaged}, true
	case agent.ProblemMissing:
		return pair{ProblemMissing, FixMissing}, true
	case agent.ProblemUnclear:
		return pair{ProblemUnclear, FixUnclear}, true
	case agent.ProblemNone:
		return pair{ProblemNone, FixNone}, true
	case agent.ProblemOver:
		return pair{ProblemOver, FixOver}, true
	case agent.ProblemHome:
		return pair{ProblemHome, FixHome}, true
	case agent.ProblemDisk:
		return pair{ProblemDisk, FixDisk}, true
	case agent.ProblemVersion:
		return pair{ProblemVersion, FixVersion}, true
	case agent.ProblemInternal:
		return pair{ProblemInternal, FixInternal}, true
	}
	return pair{}, false
}

// Problem returns what to tell a person of p. The words of the problem itself
// are English and know most; another language uses its own where the problem
// names everything that they need. A problem without Args speaks for itself.
// fix may be "".
func (c Catalog) Problem(p *agent.Problem) (message, fix string) {
	keys, known := problemKeys(p.Code)
	if !known {
		return p.Message, p.Fix
	}
	return c.choose(keys.message, p.Message, p.Args), c.choose(keys.fix, p.Fix, p.Args)
}

func (c Catalog) choose(k Key, own string, args map[string]string) string {
	if own != "" && (args == nil || c.Language() == "en") {
		return own
	}
	complete := true
	said := fill(c.message(k), func(name string) (string, bool) {
		v, ok := args[name]
		complete = complete && ok && v != ""
		return v, ok
	})
	if complete || own == "" && !hasHole(said) {
		return said
	}
	return own
}

// hasHole reports whether a placeholder was left unfilled.
func hasHole(s string) bool {
	for i := range len(s) {
		if s[i] == '{' {
			return true
		}
	}
	return false
}

// Failure returns what to tell a person of a model's failure. fix speaks of the
// session by its ID.
func (c Catalog) Failure(class agent.FailureClass, session string) (message, fix string) {
	p := failureKeys(class)
	return c.Say(p.message), c.Say(p.fix, "session", session)
}

func failureKeys(class agent.FailureClass) pair {
	switch class {
	case agent.FailRate:
		return pair{FailRate, FixWait}
	case agent.FailTimeout:
		return pair{FailTimeout, FixWait}
	case agent.FailContext:
		return pair{FailContext, FixContext}
	case agent.FailAuth:
		return pair{FailAuth, FixKey}
	case agent.FailInvalid:
		return pair{FailInvalid, FixReport}
	case agent.FailQuota:
		return pair{FailQuota, FixQuota}
	case agent.FailNotFound:
		return pair{FailNotFound, FixName}
	case agent.FailProtocol:
		return pair{FailProtocol, FixURL}
	case agent.FailDown:
		return pair{FailDown, FixURL}
	}
	return pair{FailServer, FixWait}
}
