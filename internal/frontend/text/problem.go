package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"dure/agent"
)

// Problem returns what to tell a person of p. The words of the problem itself
// are English and know most; another language uses its own where the problem
// names everything that they need. A problem without Args speaks for itself.
// fix may be "".
func (c Catalog) Problem(p *agent.Problem) (message, fix string) {
	said, known := c.named("problem." + string(p.Code))
	if !known {
		return c.Phrase(p.Message), c.Phrase(p.Fix)
	}
	next, _ := c.named("problem." + string(p.Code) + ".fix")
	switch {
	case p.Code == agent.ProblemBudget && (p.Args["error"] == unpriced || p.Args["error"] == c.Phrase(unpriced)):
		next = c.message(FixUnpriced) // a larger one is of no use
	case p.Args["right"] != "":
		next = c.message(FixSkillName)
	}
	own := p.Message
	if p.Code == agent.ProblemOwned && p.Args["pid"] != "" {
		own = "" // it comes from deep below, and says everything twice
	}
	return c.choose(said, own, p.Args), c.sentence(c.choose(next, p.Fix, p.Args))
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

func (c Catalog) choose(message, own string, args map[string]string) string {
	if own != "" && (args == nil || c.Language() == "en") {
		return c.Phrase(own)
	}
	complete := true
	said := fill(message, func(name string) (string, bool) {
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
	said, next := FailServer, FixWait
	switch class {
	case agent.FailRate:
		said = FailRate
	case agent.FailTimeout:
		said = FailTimeout
	case agent.FailContext:
		said, next = FailContext, FixContext
	case agent.FailAuth:
		said, next = FailAuth, FixKey
	case agent.FailInvalid:
		said, next = FailInvalid, FixReport
	case agent.FailQuota:
		said, next = FailQuota, FixQuota
	case agent.FailNotFound:
		said, next = FailNotFound, FixName
	case agent.FailProtocol:
		said, next = FailProtocol, FixURL
	case agent.FailDown:
		said, next = FailDown, FixURL
	}
	return c.Say(said), c.Say(next, "session", session)
}
