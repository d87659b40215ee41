package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

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
	case agent.ProblemNoAI:
		return pair{ProblemNoAI, FixNoAI}, true
	case agent.ProblemNetwork:
		return pair{ProblemNetwork, FixNetwork}, true
	case agent.ProblemKeys:
		return pair{ProblemKeys, FixKeys}, true
	case agent.ProblemModel:
		return pair{ProblemModel, FixModel}, true
	case agent.ProblemEndpoint:
		return pair{ProblemEndpoint, FixEndpoint}, true
	case agent.ProblemProvider:
		return pair{ProblemProvider, FixProvider}, true
	case agent.ProblemWorkdir:
		return pair{ProblemWorkdir, FixWorkdir}, true
	case agent.ProblemGone:
		return pair{ProblemGone, FixGone}, true
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
	case agent.ProblemBudget:
		return pair{ProblemBudget, FixBudget}, true
	case agent.ProblemBusy:
		return pair{ProblemBusy, FixBusy}, true
	case agent.ProblemAlive:
		return pair{ProblemAlive, FixAlive}, true
	case agent.ProblemKept:
		return pair{ProblemKept, FixKept}, true
	case agent.ProblemUndo:
		return pair{ProblemUndo, FixUndo}, true
	case agent.ProblemEvent:
		return pair{ProblemEvent, FixEvent}, true
	case agent.ProblemChange:
		return pair{ProblemChange, FixChange}, true
	case agent.ProblemWhole:
		return pair{ProblemWhole, FixWhole}, true
	case agent.ProblemPrompt:
		return pair{ProblemPrompt, FixPrompt}, true
	case agent.ProblemOver:
		return pair{ProblemOver, FixOver}, true
	case agent.ProblemHome:
		return pair{ProblemHome, FixHome}, true
	case agent.ProblemDisk:
		return pair{ProblemDisk, FixDisk}, true
	case agent.ProblemVersion:
		return pair{ProblemVersion, FixVersion}, true
	case agent.ProblemTrust:
		return pair{ProblemTrust, FixTrust}, true
	case agent.ProblemIndex:
		return pair{ProblemIndex, FixIndex}, true
	case agent.ProblemSkill:
		return pair{ProblemSkill, FixSkill}, true
	case agent.ProblemMemory:
		return pair{ProblemMemory, FixMemory}, true
	case agent.ProblemEditor:
		return pair{ProblemEditor, FixEditor}, true
	case agent.ProblemHook:
		return pair{ProblemHook, FixHook}, true
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
	if p.Code == agent.ProblemPlugin {
		keys, known = pair{ProblemPlugin, FixPlugin}, true
	}
	if p.Code == agent.ProblemServer {
		keys, known = pair{ProblemServer, FixServer}, true
	}
	if p.Code == agent.ProblemTool {
		keys, known = pair{ProblemTool, FixTool}, true
	}
	if p.Code == agent.ProblemBudget && (p.Args["error"] == unpriced || p.Args["error"] == c.Phrase(unpriced)) {
		keys.fix = FixUnpriced // a larger one is of no use
	}
	if p.Args["right"] != "" {
		keys.fix = FixSkillName
	}
	if !known {
		keys, known = planProblem(p.Code)
	}
	if !known {
		keys, known = bundleProblem(p.Code)
	}
	if !known {
		keys, known = outputProblem(p.Code)
	}
	if !known {
		return p.Message, p.Fix
	}
	own := p.Message
	if p.Code == agent.ProblemOwned && p.Args["pid"] != "" {
		own = "" // it comes from deep below, and says everything twice
	}
	return c.choose(keys.message, own, p.Args), c.sentence(c.choose(keys.fix, p.Fix, p.Args))
}

// unpriced is why a budget in money cannot be kept to.
const unpriced = "the price of the model is not known, and the budget is in money"

// sentence begins s with a capital where the language has them, unless it begins
// with a command.
func (c Catalog) sentence(s string) string {
	if s == "" || c.Language() != "en" || strings.HasPrefix(s, "dure ") {
		return s
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func (c Catalog) choose(k Key, own string, args map[string]string) string {
	if own != "" && (args == nil || c.Language() == "en") {
		return c.Phrase(own)
	}
	complete := true
	said := fill(c.message(k), func(name string) (string, bool) {
		v, ok := args[name]
		complete = complete && ok && v != ""
		return c.argument(name, v), ok
	})
	if complete {
		return said
	}
	return c.Phrase(own)
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
