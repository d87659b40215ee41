// Package use carries out the skills of one session: it starts them for the model, for people
// and for files that were touched, puts in force what they allow, and tells the model of them.
// It starts goroutines for skills that nobody waits for; closing the session ends them.
package use

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/extend/skills"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// The sources of what skills add to a conversation beside their texts.
const (
	fromSkills     = "skills"     // what there is
	fromPathSkills = "skill.path" // what is for a file that was touched
)

// Hooks are the hooks of a session, as far as skills have to do with them.
type Hooks interface {
	// BeforeSkill is asked before a skill starts; its error forbids it. How is one of
	// [agent.SkillByModel] and the others.
	BeforeSkill(ctx context.Context, skill, arguments, how string) error
	AfterSkill(ctx context.Context, skill string, ok bool, failure string)

	// AddOfSkill puts the hooks of a skill in force, until they are removed or, if they are
	// to last, the session is over. It returns what is wrong with them.
	AddOfSkill(key, name, file, dir string, defined json.RawMessage) (lasts bool, faults []string)
	Remove(key string)
}

// Late is what is made after the skills of a session.
type Late struct {
	Hooks   Hooks                                         // nil = there are none
	Named   func(ctx context.Context, text string) string // what a text names, to be read behind it
	Offered func() bool                                   // the model has the tool
	ChildOf func(kind string) (agent.Child, error)        // what a session of a type of agents is opened with
	Without []string                                      // tools that no child has
}

// Skills are the skills of one session. It is safe for concurrent use.
type Skills struct {
	Set *skills.Set
	Late
	cfg     *Config
	x       *Extension
	b       plug.Session
	workdir string // of the project
	root    string // the top of the project
	model   func(name string) (agent.Model, error)
	pol     Policy

	mu      sync.Mutex
	base    []plug.Rule       // that its parent has lent to a child
	active  []agent.TurnSkill // of the running turn
	held    []agent.TurnSkill // of turns before, that take something away until a person says something
	lent    string            // the runs whose rules are in force
	lenders []trust.Lender    // those of projects among them
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

// Session returns the skills of a session, with the project of a folder. Nothing of them is
// read yet. An error of model says why there is none.
func (x *Extension) Session(b plug.Session, workdir string, model func(name string) (agent.Model, error), pol Policy) *Skills {
	only := x.cfg.Only
	if b.Child != nil {
		only = nil // what a host has its models use is about the session that it has
	}
	root, _ := x.cfg.Project(workdir)
	k := &Skills{
		Set: x.in(workdir, only), cfg: &x.cfg, x: x, b: b, workdir: workdir, root: root, model: model, pol: pol,
		uses: map[string]int{}, texts: map[string]called{}, waiting: map[string]func(){},
		Late: Late{Offered: func() bool { return true }},
	}
	k.life, k.end = context.WithCancel(context.Background())
	if b.Child != nil {
		for _, rule := range b.Child.Rules {
			k.base = append(k.base, plug.Rule{Text: rule, Verdict: agent.Allow})
		}
	}
	k.active = b.Underway()
	k.lending(k.active)
	return k
}

// Reread reads the skills of the session again, and those of its folder that can be typed.
func (k *Skills) Reread() {
	k.Set.Reload()
	k.x.mu.Lock()
	defer k.x.mu.Unlock()
	delete(k.x.folders, filepath.Clean(k.workdir))
}

// Add takes over what is made after the skills.
func (k *Skills) Add(l Late) {
	k.Late = l
	if k.Hooks != nil && len(k.b.Underway()) > 0 {
		k.hookAgain()
	}
}

// Tool is the one by which a model calls skills; without any it is only shown.
func (k *Skills) Tool() agent.Tool {
	t := skills.Tool{}
	if k != nil {
		t.Set, t.Use = k.Set, k.use
	}
	return t
}

// close ends the skills that nobody waits for, and waits until they have.
func (k *Skills) close() {
	k.end()
	k.wg.Wait()
}

// lend puts in force what the skills of the turn allow and take away, and gives back what
// others had. mu is not held.
func (k *Skills) lend(active []agent.TurnSkill) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	rules, runs := slices.Clone(k.base), "lent"
	takes := func(s agent.TurnSkill) {
		for _, text := range s.Without {
			rules = append(rules, plug.Rule{Text: text, Verdict: agent.Deny, Reason: "the skill " + s.Skill + " takes it away"})
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
			rules = append(rules, plug.Rule{Text: text, Verdict: agent.Allow, Reason: "the skill " + s.Skill + " is in force"})
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
		k.cfg.Logger.Warn("lending the rules of a skill", "session", k.b.ID, "warning", w)
	}
	return nil
}

// lending is lend, where nobody waits for its error: what could not be lent allows nothing,
// and what could not be taken away is noted.
func (k *Skills) lending(active []agent.TurnSkill) {
	if err := k.lend(active); err != nil {
		k.cfg.Logger.Warn("lending the rules of skills", "session", k.b.ID, "error", err)
	}
}

// ended gives back what the skills of a turn had. What they have taken away stays so until a
// person says something.
func (k *Skills) ended() {
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
		k.Hooks.Remove(run)
	}
}

// hook puts the hooks of a skill in force: until the turn ends, or, of one that is written
// for the ecosystem, for the rest of the session.
func (k *Skills) hook(run string, s skills.Skill) {
	for _, f := range k.addHooks(run, s) {
		k.Note("a hook of " + s.Name + " does not count: " + f)
	}
}

func (k *Skills) addHooks(run string, s skills.Skill) []string {
	if k.Hooks == nil || s.Hooks == nil {
		return nil
	}
	if why := k.hookless(s.Name, s.File); why != "" {
		return []string{why}
	}
	lasts, faults := k.Hooks.AddOfSkill(run, s.Name, s.File, s.Dir, s.Hooks)
	if !lasts {
		k.mu.Lock()
		k.hooking = append(k.hooking, run)
		k.mu.Unlock()
	}
	return faults
}

// hookAgain puts the hooks in force of a turn that was cut short, as their files say now.
func (k *Skills) hookAgain() {
	for _, t := range k.b.Underway() {
		if t.Fork || !t.Done {
			continue // one that is not done is carried out again
		}
		if t.By == agent.SkillByCommand {
			if c, ok := k.cfg.Command(k.workdir)(t.Skill); ok && c.File == t.Source {
				k.addHooks(t.Run, c)
			}
		} else if s, _ := k.Set.Find(t.Skill); sourceOf(s) == t.Source {
			k.addHooks(t.Run, s)
		}
	}
}

// Note warns of what becomes of a skill.
func (k *Skills) Note(text string) {
	if err := k.b.Record(agent.Note{Level: "warn", Text: text}); err != nil {
		k.cfg.Logger.Warn("noting what became of a skill", "session", k.b.ID, "error", err)
	}
}
