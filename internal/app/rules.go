package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/base/near"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy"
	"dure/internal/safety/trust/grants"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// policyConfig is what a session in a folder is decided by, apart from what was
// granted in it.
func policyConfig(cfg config.Config, files []policy.File, cat *catalog.Catalog, ws *workspace.Workspace, workdir, home string, own []string) policy.Config {
	c := policy.Config{
		Mode: cfg.Mode, Rules: rulesOf(cfg), SafeVars: cfg.SafeVars,
		ManagedOnly: cfg.ManagedOnly, DisableBypass: cfg.NoBypass,
		Canonical: cat.Canonical, Shown: catalog.Claude.Name,
		Resolve: ws.Resolve, Inside: ws.Inside, Key: ws.Key,
		Dir: workdir, Extra: cfg.AddDirs, Home: home, PowerShell: runtime.GOOS == "windows",
	}
	c.Settings = ownPlaces(own, slices.Concat([]string{ws.Root(), workdir}, cfg.AddDirs))
	for _, f := range files {
		mode := c.Mode // the settings choose the mode
		c = f.Apply(c)
		c.Mode = mode
	}
	return c
}

// rulesOf returns the rules of the settings, with where they stand.
func rulesOf(cfg config.Config) []policy.Rule {
	layers := map[config.Layer]policy.Layer{
		config.Managed: policy.Managed, config.Flags: policy.Flags, config.Environment: policy.Flags, config.Inline: policy.Flags,
		config.Local: policy.Local, config.Project: policy.Project, config.User: policy.User, config.BuiltIn: policy.Managed,
	}
	var rules []policy.Rule
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
		rules = append(rules, rule)
	}
	return rules
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
			return nil, policyProblem(err)
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

// checkRules refuses rules that the policy cannot honour before anything runs, and
// notes what is odd about the others.
func checkRules(cfg *config.Config, files []policy.File) error {
	c := bare(*cfg)
	c.Rules = rulesOf(*cfg)
	for _, f := range files {
		f.Mode = ""
		c = f.Apply(c)
	}
	pol, err := policy.New(c)
	if err != nil {
		return settingsProblem("permissions", err)
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

// permissions are the settings that decide on calls. They are read again when
// their files have changed.
type permissions struct {
	mu      sync.Mutex
	src     config.Sources
	flags   Flags
	stamp   config.Stamp
	cfg     config.Config
	files   []policy.File
	version int // counts changes
}

// source is where settings are read from.
func (p *permissions) source() config.Sources {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.src
}

// current returns the permissions as they are now, and their version. What cannot
// be read denies every call until somebody mends it.
func (p *permissions) current() (config.Config, []policy.File, int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	stamp, changed := config.Changed(p.src, p.stamp)
	if !changed {
		return p.cfg, p.files, p.version
	}
	p.stamp = stamp
	p.version++
	cfg, err := load(p.src, p.flags)
	files := p.files
	if err == nil {
		files, err = policyFiles(cfg)
	}
	if err == nil {
		err = checkRules(&cfg, files)
	}
	if err == nil {
		err = cfg.Lost(p.cfg)
	}
	if err != nil {
		p.cfg = p.cfg.Closed(err)
		return p.cfg, p.files, p.version
	}
	p.cfg, p.files = cfg, files
	return cfg, files, p.version
}

// decider decides on the calls of one session.
type decider struct {
	app     *App
	pol     *policy.Policy
	cat     *catalog.Catalog
	ws      *workspace.Workspace
	workdir string
	session string
	confine func() string // how far commands are confined
	own     func(tool, path string) bool
	owned   bool // the session belongs to a user of a server

	// from decides in the session that this one works for: what that has taken over of
	// settings holds here, and nothing else. nil = it works for none.
	from *decider
	look func() // takes settings over that nobody keeps from the session

	record  func(...agent.Body) error // into the log of the session
	tracker *workspace.Tracker        // what the session has seen of files

	mu      sync.Mutex
	cfg     config.Config // of the permissions that are in force
	files   []policy.File
	version int
	off     []string      // tools and groups that are switched off for the session
	strict  []policy.Rule // that the embedding program has added
	tokens  *int          // of thinking, as somebody has said for the session; nil = nobody has
}

// newDecider returns the decider of a session in a mode, which may work for another one.
func (a *App) newDecider(cat *catalog.Catalog, ws *workspace.Workspace, workdir, session string, mode agent.Mode, confine func() string, from *decider) (*decider, error) {
	d := &decider{from: from, app: a, cat: cat, ws: ws, workdir: workdir, session: session, confine: confine, own: a.ownNotes(workdir)}
	return d, d.begin(mode)
}

// begin puts in force what is decided by, in a mode.
func (d *decider) begin(mode agent.Mode) error {
	cfg := d.take()
	cfg.Mode = mode
	pol, err := policy.New(cfg)
	if err != nil {
		return settingsProblem("permissions", err)
	}
	d.pol, d.look = pol, d.refresh
	return d.granted()
}

// settings are those of now, or what the session has taken over that this one works for.
func (d *decider) settings() (config.Config, []policy.File, int) {
	if d.from == nil {
		return d.app.permissions.current()
	}
	d.from.mu.Lock()
	defer d.from.mu.Unlock()
	return d.from.cfg, d.from.files, d.from.version
}

// heeds has settings wait for what hooks say of them, in a session that works for none.
func (d *decider) heeds() {
	if d.from == nil {
		d.look = func() { d.app.hooks.Of(d.session).Unheld(d.refresh) }
	}
}

// take takes settings over, and returns what is decided by.
func (d *decider) take() policy.Config {
	d.cfg, d.files, d.version = d.settings()
	return d.config()
}

func (d *decider) config() policy.Config {
	c := policyConfig(d.cfg, d.files, d.cat, d.ws, d.workdir, d.app.opts.UserHome, d.app.ownFolders())
	c.Confined, c.Own = d.confine, d.own
	for _, name := range d.off {
		c.Rules = append(c.Rules, policy.Rule{Text: name, Verdict: agent.Deny, Reason: switchedOff, Source: policy.Source{Layer: policy.Session}})
	}
	c.Rules = append(c.Rules, d.strict...)
	if d.owned {
		c.Rules = append(c.Rules, d.app.withheld()...)
	}
	return c
}

// granted puts in force what the user has allowed in this folder for good.
func (d *decider) granted() error {
	list, err := d.app.grantStore().List(d.workdir)
	if err != nil {
		d.app.opts.Logger.Warn("reading what was allowed", "folder", d.workdir, "error", err)
		return nil // nothing is granted then
	}
	for _, g := range list {
		if err := d.pol.Grant([]string{g.Rule}, policy.Local); err != nil {
			d.app.opts.Logger.Warn("putting what was allowed in force", "rule", g.Rule, "error", err)
		}
	}
	return nil
}

// refresh takes over settings that have changed. The mode stays the session's.
func (d *decider) refresh() {
	if d.from != nil {
		d.from.look()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, _, version := d.settings(); version == d.version {
		return
	}
	d.cfg, d.files, d.version = d.settings()
	if err := d.update(); err != nil {
		d.app.opts.Logger.Warn("taking over settings", "error", err)
	}
}

// update puts in force what has changed. mu is held.
func (d *decider) update() error {
	cfg := d.config()
	if cfg.Mode = d.pol.Mode(); cfg.Mode == agent.ModeBypass && cfg.DisableBypass {
		cfg.Mode = agent.ModeDefault
	}
	return d.pol.Update(cfg)
}

// grant makes what the user allows hold: for the session, or for good.
func (d *decider) grant(remember string, rules []string) error {
	layer := policy.Session
	if remember == agent.RememberAlways {
		layer = policy.Local
	}
	if err := d.pol.Grant(rules, layer); err != nil || remember != agent.RememberAlways {
		return err
	}
	more := make([]grants.Grant, len(rules))
	for i, r := range rules {
		more[i] = grants.Grant{Rule: r, Behavior: string(agent.Allow), Session: d.session}
	}
	return d.app.grantStore().Add(d.workdir, more...)
}

// offer is what a question shows beside the call.
func (d *decider) offer(_ context.Context, p agent.Proposal, _ agent.Decision) ([]agent.Choice, string) {
	return d.pol.Suggest(p), d.preview(p.Call)
}

// patternsOf compiles the secrets of the user's own.
func patternsOf(cfg config.Config) (*guard.Patterns, error) {
	if len(cfg.Patterns) == 0 {
		return nil, nil
	}
	list := make([]guard.Pattern, len(cfg.Patterns))
	for i, p := range cfg.Patterns {
		list[i] = guard.Pattern{Name: p.Name, Regexp: p.Expr}
	}
	patterns, err := guard.Compile(list)
	if err != nil {
		return nil, settingsProblem("guard.patterns", err)
	}
	return patterns, nil
}
