package text

import (
	"strings"

	"dure/agent"
	"dure/agent/query"
)

// Word returns a small word of a diagnosis in the language; what is none of them
// stays as it is.
func (c Catalog) Word(key string) string { return c.either("word."+key, key) }

// Command returns what a command that is built in does; "" = there is none of that name.
func (c Catalog) Command(name string) string { return c.either("command."+name, "") }

// Capability returns what a kind of capability of plugins means.
func (c Catalog) Capability(kind string) string { return c.either("capability."+kind, kind) }

// PluginBy returns who decides whether a plugin is on.
func (c Catalog) PluginBy(by string) string {
	const words = "plugin.by."
	return strings.TrimPrefix(c.Word(words+by), words)
}

// Group returns the heading of a group of findings.
func (c Catalog) Group(group string) string { return c.Word(group) }

// Finding returns what to tell a person of f. One whose code is not known speaks
// for itself. A finding that is a problem has the problem's code behind
// "problem.". fix may be "".
func (c Catalog) Finding(f query.Finding) (name, detail, fix string) {
	name = c.Word(f.Name)
	if code, ok := strings.CutPrefix(f.Code, "problem."); ok {
		p := &agent.Problem{Code: agent.ProblemCode(code), Message: f.Detail, Fix: f.Fix, Args: f.Args}
		detail, fix = c.Problem(p)
		return name, detail, fix
	}
	said, ok := c.named("finding." + f.Code)
	if !ok {
		return name, f.Detail, f.Fix
	}
	value := func(arg string) (string, bool) {
		v, ok := f.Args[arg]
		return c.argument(arg, v), ok
	}
	return name, fill(said, value), fill(c.either("finding."+f.Code+".fix", ""), value)
}

// argument translates what is filled in, where it is one of our own words.
func (c Catalog) argument(arg, v string) string {
	switch arg {
	case "where":
		return c.Origin(v)
	case "colour":
		return c.Word(v)
	case "text", "why", "error", "fix":
		return c.Phrase(v)
	}
	return v
}

// Origin returns where a setting comes from: a layer, and the place in it.
func (c Catalog) Origin(origin string) string {
	layer, place, found := strings.Cut(origin, " ")
	if !found {
		return c.Word(layer)
	}
	return c.Word(layer) + " " + place
}

// KeySource returns where a key comes from, as [query.ProviderInfo] has it.
func (c Catalog) KeySource(from string) string {
	name, ok := strings.CutPrefix(from, "environment (")
	switch {
	case from == "":
		return c.Say(KeyNone)
	case ok:
		return c.Say(KeyEnvironment, "name", strings.TrimSuffix(name, ")"))
	case from == "keychain":
		return c.Word("keychain")
	}
	return c.Word(from)
}
