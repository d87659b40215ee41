package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/extend/hooks"
	"dure/internal/extend/skills"
	"dure/internal/extend/skills/builtin"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
)

// The sources of what skills add to a conversation beside their texts.
const (
	fromSkills     = "skills"     // what there is
	fromPathSkills = "skill.path" // what is for a file that was touched
)

// skillHooks are the hooks of a session, as far as skills have to do with them.
type skillHooks interface {
	beforeSkill(ctx context.Context, skill, arguments, how string) error
	afterSkill(ctx context.Context, skill string, ok bool, failure string)
	add(key string, data json.RawMessage, from hooks.Source) []hooks.Fault
	remove(key string)
}

// skillset are the skills of one session. It is safe for concurrent use.
type skillset struct {
	app     *App
	set     *skills.Set
	b       plug.Session
	workdir string
	pol     *policy.Policy
	model   func(name string) (agent.Model, error)
	named   *mentions
	hooks   skillHooks  // nil = there are none
	offered func() bool // the model has the tool

	// childOf returns what a session of a type of agents is opened with.
	childOf func(kind string) (agent.Child, error)

	mu      sync.Mutex
	base    []policy.Rule     // that its parent has lent to a child
	active  []agent.TurnSkill // of the running turn
	held    []agent.TurnSkill // of turns before, that take something away until a person says something
	lent    string            // the runs whose rules are in force
	lenders []lender          // those of projects among them
	hooking []string          // the runs whose hooks are
	uses    map[string]int    // by name
	texts   map[string]called // the newest call of each skill, by name
	present []string          // the runs whose texts the conversation has
	waiting map[string]func() // what goes on in the background once it is recorded that it does, by run

	life context.Context // done when the session is to end
	end  context.CancelFunc
	wg   sync.WaitGroup // of skills that nobody waits for
}

// called is a skill that was called, and what the model read of it.
type called struct{ run, text string }

// skillsIn returns the skills of a folder. Nothing is read yet.
func (a *App) skillsIn(workdir string) *skills.Set { return skills.New(a.skillsConfig(workdir)) }

// skillsOf returns the skills of a session. What a host has its models use is about the session
// that it has, and not about its agents.
func (a *App) skillsOf(b plug.Session, workdir string) *skills.Set {
	c := a.skillsConfig(workdir)
	if b.Child == nil {
		c.Only = a.opts.Flags.Skills
	}
	return skills.New(c)
}

func (a *App) skillsConfig(workdir string) skills.Config {
	root, _ := a.project(workdir)
	if top := gitTop(workdir); top != "" {
		root = top
	}
	c := skills.Config{
		Workdir: workdir, Root: root, BuiltIn: builtin.Files,
		Places: func() []frontmatter.Place { return a.extensions(workdir, inSkills) },
		State:  a.cfg.Extend.Skills,
		Also:   []string{trustStore(a.cfg).Path},
	}
	if a.cfg.Extend.NoBundledSkills {
		c.BuiltIn = nil
	}
	return c
}

// newSkills returns the skills of a session.
func (a *App) newSkills(b plug.Session, workdir, profile string, pol *policy.Policy) *skillset {
	k := &skillset{
		app: a, set: a.skillsOf(b, workdir), b: b, workdir: workdir, pol: pol, model: a.modelOf(profile),
		uses: map[string]int{}, texts: map[string]called{}, waiting: map[string]func(){}, offered: func() bool { return true },
	}
	k.life, k.end = context.WithCancel(context.Background())
	if b.Stored.ID != "" { // calls that were decided on before may run without another word
		_ = a.trustNow(func(...agent.Body) error { return nil }) // which each file says that has no powers
	}
	if b.Child != nil {
		for _, rule := range b.Child.Rules {
			k.base = append(k.base, policy.Rule{Text: rule, Verdict: agent.Allow})
		}
	}
	k.active = b.Active
	k.lending(b.Active)
	return k
}

// close ends the skills that nobody waits for, and waits until they have.
func (k *skillset) close() {
	k.end()
	k.wg.Wait()
}

// with gives the skills what is made after them: what reads files that texts name, the
// hooks of the session, which may be nil, which tools it has, and what a session of a type
// of agents is opened with.
func (k *skillset) with(named *mentions, hk *hooked, wanted func(agent.Spec) bool, childOf func(string) (agent.Child, error)) {
	k.named, k.childOf = named, childOf
	if hk != nil {
		k.hooks, hk.reread = hk, k.reread
	}
	if k.hooks != nil && len(k.b.Active) > 0 {
		k.hookAgain()
	}
	tool := k.app.skillTool(k).Spec()
	k.offered = func() bool { return wanted == nil || wanted(tool) }
}

// reread reads the skills again, and those that can be typed.
func (k *skillset) reread() {
	k.set.Reload()
	known := &k.app.skills
	known.mu.Lock()
	defer known.mu.Unlock()
	delete(known.known, filepath.Clean(k.workdir))
}

// skillTool is the one by which a model calls skills; without any it is only shown.
func (a *App) skillTool(k *skillset) agent.Tool {
	t := skills.Tool{}
	if k != nil {
		t.Set, t.Use = k.set, k.use
	}
	return t
}

// lend puts in force what the skills of the turn allow and take away, and gives back what
// others had. mu is not held.
func (k *skillset) lend(active []agent.TurnSkill) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	rules, runs := slices.Clone(k.base), "lent"
	takes := func(s agent.TurnSkill) {
		for _, text := range s.Without {
			rules = append(rules, policy.Rule{Text: text, Verdict: agent.Deny, Reason: "the skill " + s.Skill + " takes it away"})
		}
	}
	for _, s := range k.held {
		runs += " held:" + s.Run
		takes(s)
	}
	for _, s := range active {
		if s.Fork || s.By == agent.SkillByPath {
			continue
		}
		runs += " " + s.Run
		for _, text := range s.Tools {
			rules = append(rules, policy.Rule{Text: text, Verdict: agent.Allow, Reason: "the skill " + s.Skill + " is in force"})
		}
		takes(s)
	}
	if runs == k.lent {
		return nil
	}
	lenders := k.lendersOf(active)
	warnings, err := k.pol.Lend(rules)
	if err != nil {
		return err
	}
	k.lent, k.lenders = runs, lenders
	for _, w := range warnings {
		k.app.opts.Logger.Warn("lending the rules of a skill", "session", k.b.ID, "warning", w.String())
	}
	return nil
}

// lending is lend, where nobody waits for its error: what could not be lent allows nothing,
// and what could not be taken away is noted.
func (k *skillset) lending(active []agent.TurnSkill) {
	if err := k.lend(active); err != nil {
		k.app.opts.Logger.Warn("lending the rules of skills", "session", k.b.ID, "error", err)
	}
}

// ended gives back what the skills of a turn had. What they have taken away stays so until a
// person says something.
func (k *skillset) ended() {
	k.mu.Lock()
	for _, s := range k.active {
		if len(s.Without) > 0 && !s.Fork && s.By != agent.SkillByPath {
			k.held = append(k.held, s)
		}
	}
	k.mu.Unlock()
	k.lending(nil)
	k.mu.Lock()
	done := k.hooking
	k.hooking, k.active = nil, nil
	k.mu.Unlock()
	for _, run := range done {
		k.hooks.remove(run)
	}
}

// hook puts the hooks of a skill in force: until the turn ends, or, of one that is written
// for the ecosystem, for the rest of the session.
func (k *skillset) hook(run string, s skills.Skill) {
	for _, f := range k.addHooks(run, s) {
		k.note("warn", "a hook of "+s.Name+" does not count: "+f.Message)
	}
}

func (k *skillset) addHooks(run string, s skills.Skill) []hooks.Fault {
	if k.hooks == nil || s.Hooks == nil {
		return nil
	}
	if why := k.hookless(s.Name, s.File); why != "" {
		return []hooks.Fault{{Message: why}}
	}
	from := hooks.Source{Layer: "skill", Name: s.Name, File: s.File, Root: s.Dir}
	if from.Lasts() { // once, however often it is called
		return k.hooks.add("skill of "+s.File, s.Hooks, from)
	}
	faults := k.hooks.add(run, s.Hooks, from)
	k.mu.Lock()
	k.hooking = append(k.hooking, run)
	k.mu.Unlock()
	return faults
}

// hookAgain puts the hooks in force of a turn that was cut short, as their files say now.
func (k *skillset) hookAgain() {
	command := commands.Lookup(k.app.customCommands(k.workdir))
	for _, t := range k.b.Active {
		if t.Fork || !t.Done {
			continue // one that is not done is carried out again
		}
		if t.By == agent.SkillByCommand {
			if c, ok := command(t.Skill); ok && c.Path == t.Source {
				k.addHooks(t.Run, skills.Skill{Name: c.Name, Hooks: c.Hooks, File: c.Path, Dir: filepath.Dir(c.Path)})
			}
		} else if s, _ := k.set.Find(t.Skill); sourceOf(s) == t.Source {
			k.addHooks(t.Run, s)
		}
	}
}

func (k *skillset) note(level, text string) {
	if err := k.b.Record(agent.Note{Level: level, Text: text}); err != nil {
		k.app.opts.Logger.Warn("noting what became of a skill", "session", k.b.ID, "error", err)
	}
}

// knownSkills are the skills of the folders that commands were asked for in.
type knownSkills struct {
	mu    sync.Mutex
	known map[string]*skillFolder // guarded by mu
}

type skillFolder struct {
	set *skills.Set
	at  time.Time
}

// typableSkills are the skills that can be typed in a folder.
func (a *App) typableSkills(workdir string) (all []query.CommandInfo) {
	command := commands.Lookup(a.customCommands(workdir))
	for _, s := range a.skillFolder(workdir).List() {
		if _, ok := command(s.Name); ok && s.Place.Scope == frontmatter.BuiltIn {
			continue // what somebody has written comes before what the program brings
		}
		if _, taken := commands.Find(s.Name); taken && s.Place.Scope == frontmatter.BuiltIn {
			continue // the command does what the skill says
		}
		if s.NoUser && s.Off == "" {
			s.Off = "it is for the model alone"
		}
		all = append(all, query.CommandInfo{
			Name: s.Name, Description: s.Description, Hint: s.Hint, Kind: query.CommandSkill, Scope: s.Source(), Path: s.File, Off: s.Off,
		})
	}
	return all
}

// skillFolder returns the skills of a folder, as they were at most a moment ago.
func (a *App) skillFolder(workdir string) *skills.Set {
	workdir = filepath.Clean(workdir)
	k := &a.skills
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.known[workdir]
	if f == nil {
		if len(k.known) >= maxCustoms || k.known == nil {
			k.known = map[string]*skillFolder{}
		}
		f = &skillFolder{a.skillsIn(workdir), time.Now()}
		k.known[workdir] = f
	}
	if time.Since(f.at) >= customHolds {
		f.at = time.Now()
		f.set.Refresh()
	}
	return f.set
}
