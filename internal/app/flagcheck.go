package app

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/app/config/live"
	"dure/internal/base/hosts"
	"dure/internal/base/near"
	"dure/internal/tools/catalog"
)

// CheckFlags says what the command line names that is not there, or cannot be read: a run
// would go on without it, and nobody would see that. A program that drives this one may know
// tools that there are not here, and rules for them; those are left out.
func (a *App) CheckFlags() error {
	f := a.opts.Flags
	if f.Fallback != "" {
		for name := range strings.SplitSeq(f.Fallback, ",") {
			if name = strings.TrimSpace(name); name == "" {
				continue
			}
			if _, err := a.models.Info(name); err != nil {
				return err
			}
		}
	}
	if err := a.checkServers(); err != nil || f.Hosted {
		return err
	}
	if err := live.CheckGiven(a.cfg, f.Allow, f.Deny); err != nil {
		return err
	}
	return a.checkTools()
}

// checkServers refuses values of --mcp-config that are no servers. One server among others
// that cannot be used is noted, as in every other place.
func (a *App) checkServers() error {
	f := a.servers.CheckGiven()
	if f == nil {
		return nil
	}
	what := f.Error()
	if !strings.HasPrefix(what, "--mcp-config ") { // JSON on the command line is called so
		what = "--mcp-config: " + what
	}
	return flagProblem(what, cmp.Or(f.Fix, "name a file, or write the servers as JSON"))
}

// theirTools are tools of other programs for agents that scripts of theirs name, and of
// which there is nothing here to leave out.
var theirTools = []string{
	"Brief", "Config", "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree",
	"Monitor", "NotebookRead", "PowerShell", "PushNotification", "REPL", "RemoteTrigger", "SlashCommand", "TaskCreate", "TaskGet", "TaskList",
	"TaskUpdate", "TeamCreate", "TeamDelete", "TodoRead",
}

// unknownTools returns which of the tools that --tools names there are not. Those of servers
// stay whatever it says, and names of extensions are not known before they run.
func unknownTools(cfg config.Config, f Flags) (names []string) {
	if f.Tools == nil {
		return nil
	}
	cat := catalog.New(catalog.Config{Dialect: catalog.Dialect(cfg.Dialect)})
	for _, name := range *f.Tools {
		if _, ok := cat.Canonical(name); !ok && name != allTools && !strings.Contains(name, "__") {
			names = append(names, name)
		}
	}
	return names
}

// noteTools notes tools of other programs that --tools names.
func noteTools(cfg *config.Config, f Flags) {
	for _, name := range unknownTools(*cfg, f) {
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: fmt.Sprintf("--tools: there is no tool %s here", name)})
	}
}

// checkTools refuses names in --tools that are those of no tool anywhere.
func (a *App) checkTools() error {
	for _, name := range unknownTools(a.cfg, a.opts.Flags) {
		if slices.Contains(theirTools, name) {
			continue
		}
		fix := "see them with: dure tools"
		if like := near.Nearest(name, slices.Sorted(slices.Values(catalog.Claude.Names()))); like != "" {
			fix = "did you mean " + like + "? See them with: dure tools"
		}
		return flagProblem("--tools: there is no tool "+name, fix)
	}
	return nil
}

// flagProblem is a value of a flag that is not to be gone on with.
func flagProblem(what, fix string) error {
	return &agent.Problem{Code: agent.ProblemUsage, Message: what, Fix: fix}
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
