package live

import (
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/hosts"
	"dure/internal/safety/policy"
	"dure/internal/tools/catalog"
)

// Note notes what is odd about settings and flags, and no error. tools are those of --tools.
func Note(cfg *config.Config, home string, environ []string, tools *[]string) {
	noteFolders(cfg, home)
	if tools != nil {
		noteTools(cfg, *tools)
	}
	noteKey(cfg, environ)
}

// noteTools notes tools of other agents.
func noteTools(cfg *config.Config, names []string) {
	for _, name := range catalog.Unknown(names) {
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: fmt.Sprintf("--tools: there is no tool %s here", name)})
	}
}

// noteKey notes a variable for the key of a model on this machine that is set to nothing: a
// server that wants one is asked without it. Models elsewhere are not asked at all then.
func noteKey(cfg *config.Config, environ []string) {
	name, _, _ := strings.Cut(cfg.Model, "/")
	set, ok := cfg.Providers[name]
	if ok && set.KeyEnv != "" && hosts.Here(set.BaseURL) && slices.Contains(environ, set.KeyEnv+"=") {
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: fmt.Sprintf("providers.%s.keyEnv names the variable %s, which is empty", name, set.KeyEnv)})
	}
}

// CheckRules refuses rules of the command line that cannot be read.
func CheckRules(cfg config.Config, allow, deny []string) error {
	if len(allow)+len(deny) == 0 {
		return nil
	}
	pol, err := policy.New(bare(cfg))
	if err != nil {
		return agent.SettingsProblem("permissions", err)
	}
	for _, list := range []struct {
		flag    string
		verdict agent.Verdict
		rules   []string
	}{{"--allow", agent.Allow, allow}, {"--deny", agent.Deny, deny}} {
		for _, rule := range list.rules {
			wrong, unknown := pol.Check(policy.Rule{Text: rule, Verdict: list.verdict, Source: policy.Source{Layer: policy.Flags}})
			if wrong == "" || unknown { // a tool may still come, of a server or a plugin
				continue
			}
			wrong, _, _ = strings.Cut(strings.TrimPrefix(wrong, "skipped: "), ": taken for every call of")
			return &agent.Problem{
				Code: agent.ProblemUsage, Message: fmt.Sprintf("%s: rule %q: %s", list.flag, rule, wrong),
				Fix: "write it as in Bash(go test *), Read(~/notes/**) or WebFetch(domain:example.com)",
			}
		}
	}
	return nil
}

// CheckTools refuses names in --tools that are those of no tool anywhere.
func CheckTools(names []string) error {
	name, nearest := catalog.Mistyped(names)
	if name == "" {
		return nil
	}
	fix := "see them with: dure tools"
	if nearest != "" {
		fix = "did you mean " + nearest + "? See them with: dure tools"
	}
	return &agent.Problem{Code: agent.ProblemUsage, Message: "--tools: there is no tool " + name, Fix: fix}
}
