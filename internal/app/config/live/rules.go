package live

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/app/config"
	"dure/internal/base/near"
	"dure/internal/safety/policy"
	"dure/internal/tools/catalog"
)

// Policy is what settings and policy files say of permissions, without a place.
func Policy(cfg config.Config, files ...policy.File) policy.Config {
	c := policy.Config{
		Rules: rules(cfg), SafeVars: cfg.SafeVars, ManagedOnly: cfg.ManagedOnly, DisableBypass: cfg.NoBypass, Extra: cfg.AddDirs,
	}
	for _, f := range files {
		c = f.Apply(c)
	}
	c.Mode = cfg.Mode // which the settings choose, and no file
	return c
}

// rules returns the rules of the settings, with where they stand.
func rules(cfg config.Config) (all []policy.Rule) {
	layers := map[config.Layer]policy.Layer{
		config.Managed: policy.Managed, config.Flags: policy.Flags, config.Environment: policy.Flags, config.Inline: policy.Flags,
		config.Local: policy.Local, config.Project: policy.Project, config.User: policy.User, config.BuiltIn: policy.Managed,
	}
	for _, r := range cfg.Rules() {
		rule := policy.Rule{
			Text: r.Text, Verdict: r.Verdict, Reason: r.Reason, Priority: r.Priority, Broken: r.Origin.Layer == config.BuiltIn,
			Scope:  policy.Scope{Stage: r.Scope.Stage, Subject: r.Scope.Subject},
			Source: policy.Source{Layer: layers[r.Origin.Layer], File: r.File, Line: r.Line, Column: r.Column, Dir: r.Dir},
		}
		switch {
		case r.Malformed: // it forbids something, and nobody knows what
			rule.Text, rule.Reason, rule.Broken = "*", "a rule that cannot be read: "+r.Text, true
		case r.Tool != "" || r.Pattern != "":
			rule.Text, rule.Tool, rule.Pattern = "", r.Tool, r.Pattern
		}
		all = append(all, rule)
	}
	return all
}

// policyFiles reads the policy of the user and that of the machine, where there
// are any. One that cannot be read is an error: what it forbids would be allowed.
func policyFiles(cfg config.Config) ([]policy.File, error) {
	var files []policy.File
	user, managed := cfg.PolicyFiles(runtime.GOOS)
	for _, at := range []struct {
		path  string
		layer policy.Layer
	}{{user, policy.User}, {managed, policy.Managed}} {
		data, err := config.ReadFile(at.path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue
		}
		var f policy.File
		if err == nil {
			f, err = policy.ParsePolicy(data, at.path)
		}
		if err != nil {
			return nil, &agent.Problem{Code: agent.ProblemSettings, Message: err.Error(), Fix: "mend the policy", Err: err}
		}
		for i := range f.Rules {
			f.Rules[i].Source.Layer, f.Rules[i].Source.Dir = at.layer, filepath.Dir(at.path)
		}
		if at.layer != policy.Managed {
			f.ManagedOnly = false
		}
		files = append(files, f)
	}
	return files, nil
}

// noteFolders warns of folders that count as part of the workspace and hold what nobody
// hands out: credentials, settings of programs, or everything of a person. One that is
// not there counts once it is.
func noteFolders(cfg *config.Config, home string) {
	for _, dir := range cfg.AddDirs {
		real := dir
		if target, err := filepath.EvalSymlinks(dir); err == nil {
			real = target
		} else if errors.Is(err, fs.ErrNotExist) {
			cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "folders", Text: fmt.Sprintf("the folder %s is to count as part of the workspace, and is not there", dir)})
			continue
		}
		rel, err := filepath.Rel(real, home)
		if policy.Guarded(dir) || policy.Guarded(real) || home != "" && err == nil && filepath.IsLocal(rel) {
			cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "folders", Text: fmt.Sprintf("the folder %s counts as part of the workspace: what the model reads there, keys and passwords too, goes to its provider", dir)})
		}
	}
}

// bare is what rules are checked by, without a folder and without any of them.
func bare(cfg config.Config) policy.Config {
	return policy.Config{
		Mode: cfg.Mode, Canonical: catalog.New(catalog.Config{Dialect: catalog.Dialect(cfg.Dialect)}).Canonical,
		Resolve: func(p string) (string, string, error) { return p, p, nil },
		Inside:  func(string) bool { return false },
		Dir:     cfg.Home, Home: cfg.Home, DisableBypass: cfg.NoBypass,
	}
}

// Check refuses rules that the policy cannot honour before anything runs, and
// notes what is odd about the others.
func Check(cfg *config.Config, files ...policy.File) error {
	c := bare(*cfg)
	c.Rules = rules(*cfg)
	for _, f := range files {
		f.Mode = ""
		c = f.Apply(c)
	}
	pol, err := policy.New(c)
	if err != nil {
		return agent.SettingsProblem("permissions", err)
	}
	for _, w := range pol.Warnings() {
		text := w.String()
		if w.Unknown {
			text = fmt.Sprintf("the rule %q matches no tool that is known", w.Rule)
		}
		name, _, _ := strings.Cut(w.Rule, "(")
		if _, known := c.Canonical(name); !known {
			if like := near.Nearest(name, slices.Sorted(slices.Values(catalog.Claude.Names()))); like != "" {
				text += "; did you mean " + like + "?"
			}
		}
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: text})
	}
	return nil
}

// Inert returns the permission rules of the settings that are not in force.
func Inert(cfg config.Config) (list []query.RuleInfo) {
	for _, i := range cfg.Inert {
		if verdict, ok := strings.CutPrefix(i.Key, "permissions."); ok && i.What != "" {
			list = append(list, inertRule(i, agent.Verdict(verdict)))
		}
	}
	return list
}

// inertRule is a rule of a file that is not in force.
func inertRule(i config.Inert, verdict agent.Verdict) query.RuleInfo {
	why := map[config.Reason]string{
		config.Untrusted: "the folder is not trusted", config.Foreign: "no repository may decide it", config.Locked: "the administrator leaves it to nobody else",
	}[i.Why]
	if !slices.Contains([]agent.Verdict{agent.Allow, agent.AskUser, agent.Deny}, verdict) {
		verdict = agent.Allow // in a list of rules of all kinds; only those that allow are left out
	}
	r := query.RuleInfo{Rule: i.What, Verdict: verdict, Layer: string(i.Origin.Layer), File: i.Origin.Where, Off: true, Note: cmp.Or(why, string(i.Why))}
	for _, to := range []*int{&r.Column, &r.Line} { // file:line:column
		at := strings.LastIndex(r.File, ":")
		n, err := strconv.Atoi(r.File[at+1:])
		if at <= 0 || err != nil {
			break
		}
		r.File, *to = r.File[:at], n
	}
	return r
}
