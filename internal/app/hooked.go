package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/hooks"
	"dure/internal/extend/skills"
	"dure/internal/extend/swarm"
	"dure/internal/kernel/plug"
	"dure/internal/safety/policy"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/catalog"
)

// hooked are the hooks of one session: what runs at which of its moments, and what
// becomes of the answers. It is safe for concurrent use. What nobody waits for belongs to
// it, and to its set; close ends that and waits.
type hooked struct {
	app     *App
	b       plug.Session
	pol     *policy.Policy
	workdir string
	parent  *hooked // of the session that it works for; nil = for none
	top     string  // the session that a person has opened
	kind    string  // the type of agent that a child runs; "" = it is no child
	child   bool
	dialect catalog.Dialect
	set     *hooks.Set

	reread func() // reads the skills again; nil = there are none

	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	prompt atomic.Value // string: ID of the input of a person that came last
	mute   sync.Once    // it was told that there is no terminal for what hooks have for one
	heard  atomic.Bool  // input is looked at from now on

	mu      sync.Mutex
	closed  bool
	version int                     // of the settings that the hooks are from
	cfg     config.Hooks            // of that version
	all     []hooks.Hook            // that run
	reach   hookReach               // of all
	scoped  map[string][]hooks.Hook // hooks of skills and agents, by what they belong to
	words   words
	why     string // the session ends, as hooks are told; "" = as is usual
	goes    int    // how often in a row hooks have made the turn go on
	woken   int    // how often hooks have woken the session since a person has said something
	rules   map[string]*policy.Policy
	env     hookEnv
	changes settingsWatch
	watch   *watch
	idle    idle
	told    map[string]look // instruction files that were told of, as they looked
	tasks   map[string]string
	enough  bool // hooks have stopped an agent that has done a task
}

// hooksOf returns the hooks of a session; nil = none run in it: it is opened to be looked
// at, or serves a hook.
func (a *App) hooksOf(b plug.Session, box *sandbox.Box, pol *policy.Policy, find func(string) string, workdir string) *hooked {
	parent := a.hookedOf(b.Parent)
	if b.Open.Edit || b.Child != nil && (b.Child.Hookless || b.Parent != "" && parent == nil && !a.upper.works(b.Parent)) {
		return nil
	}
	h := &hooked{
		app: a, b: b, pol: pol, workdir: workdir, parent: parent, top: b.ID, dialect: catalog.Dialect(a.cfg.Dialect),
		scoped: parent.guards(), told: map[string]look{}, version: -1, child: b.Child != nil,
	}
	h.life, h.end = context.WithCancel(context.Background())
	if h.child {
		h.kind = cmp.Or(b.Child.Agent, "general-purpose")
		if parent != nil {
			h.top = parent.top
		}
	}
	root := a.projectOf(workdir)
	if top := gitTop(root); top != "" {
		root = top
	}
	post := poster{a, func() hookReach { h.mu.Lock(); defer h.mu.Unlock(); return h.reach }}
	ask, spawn := h.ask, b.Reach.Spawn
	if a.cfg.NoAI {
		ask, spawn = nil, nil
	}
	h.set = hooks.New(hooks.Config{
		Box: box, Shell: hookShell(find), Env: a.commandEnv(), Project: root, Facts: h.facts,
		Post: post.post, Ask: ask, Spawn: spawn, Invoke: h.calls, Tool: func(server, tool string) (string, bool) { return a.serversOf(b.ID).toolOf(server, tool) },
		Allowed: func(url string) bool { h.mu.Lock(); defer h.mu.Unlock(); return h.reach.allows(url) },
		Var:     h.variable,
		Rule:    h.rule,
		Record:  h.record,
		Call:    a.opts.Host.callback(),
		Spent:   b.Spent,
		Keep:    h.keep,
		Wake:    h.rouse,
		Redact:  h.masked,
		NewID:   func() string { return "hk_" + rand.Text()[:16] },
		Closing: closingTime(getenv(a.opts.Environ)),
		Reads:   hookFolders(a.cfg.Home, a.opts.UserHome),
	})
	if parent == nil || !h.like(parent) {
		h.refresh()
	}
	a.setHooked(b.ID, h)
	a.hookedOf(b.Open.After).replaced(b)
	return h
}

// replaced notes why the session ends: another one takes its place.
func (h *hooked) replaced(by plug.Session) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.why = "resume"; begunAnew(by) {
		h.why = "clear"
	}
}

// begunAnew reports whether a session is a new one in the place of another.
func begunAnew(b plug.Session) bool { return b.Open.After != "" && b.Stored.ID == "" }

// guards returns the hooks of skills and agents that look at calls: they hold for those
// too that are made on behalf of a session.
func (h *hooked) guards() map[string][]hooks.Hook {
	all := map[string][]hooks.Hook{}
	if h == nil {
		return all
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, list := range h.scoped {
		list = slices.DeleteFunc(slices.Clone(list), func(k hooks.Hook) bool { return !k.Event.AboutCall() })
		if len(list) > 0 {
			all["of "+h.b.ID+" "+key] = list
		}
	}
	return all
}

// rouse has the model read what a hook has to say that nobody waited for. A hook that is
// asked at the end of each turn would wake the session for ever: from some time on, what
// it says waits until a person says something.
func (h *hooked) rouse(text, by string) bool {
	h.mu.Lock()
	h.woken++
	n := h.woken
	h.mu.Unlock()
	if n > maxGoOn {
		if n == maxGoOn+1 {
			h.note("warn", "hooks have woken the session as often in a row as they may; what they have to say waits for you")
		}
		return false
	}
	err := h.b.Wake(h.life, h.masked(text), by)
	if err != nil && h.life.Err() == nil {
		h.app.opts.Logger.Warn("waking a session for a hook", "session", h.b.ID, "error", err)
	}
	return err == nil
}

// spoke notes what a person has said last.
func (h *hooked) spoke(input string) {
	if was, _ := h.prompt.Swap(input).(string); was == input {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.woken = 0
}

// ask puts a question of a hook to a small model, if it names none.
func (h *hooked) ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	q.Model = cmp.Or(q.Model, h.app.small(h.b.Model()))
	return h.b.Reach.Ask(ctx, q)
}

// record puts what hooks did into the log, without the secrets in what they say.
func (h *hooked) record(bodies ...agent.Body) error {
	for i, b := range bodies {
		if ran, ok := b.(agent.HookRan); ok {
			ran.Context, ran.Reason, ran.Message = h.masked(ran.Context), h.masked(ran.Reason), h.masked(ran.Message)
			if ran.Terminal != "" {
				ran.Terminal = h.forTerminal(ran.Terminal)
			}
			bodies[i] = ran
		}
	}
	return h.b.Record(bodies...)
}

// forTerminal is what a hook has for the terminal of a person; where nobody sits at one,
// it is left out, and that is told once.
func (h *hooked) forTerminal(s string) string {
	if h.b.Open.Approver && !h.child {
		parts := strings.Split(s, "\a") // each is empty, or a sequence without its end
		for i, p := range parts {
			if said, ok := strings.CutPrefix(p, "\x1b]"); ok {
				parts[i] = "\x1b]" + h.masked(said)
			}
		}
		return strings.Join(parts, "\a")
	}
	h.mute.Do(func() {
		h.note("info", "a hook has something for the terminal (terminalSequence), and nobody sits at one: it is left out")
	})
	return ""
}

// masked is a text of a hook without secrets.
func (h *hooked) masked(text string) string { return h.app.patterns.Redact(text) }

// closingTime is what hooks have together at the end of a session, if the environment
// says so; 0 = it does not.
func closingTime(getenv func(string) string) time.Duration {
	ms, err := strconv.Atoi(cmp.Or(getenv("DURE_SESSIONEND_HOOKS_TIMEOUT_MS"), getenv("CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS")))
	if err != nil || ms <= 0 {
		return 0
	}
	return min(time.Duration(ms)*time.Millisecond, maxClosing)
}

// maxClosing is the most that the end of a session waits for hooks.
const maxClosing = 10 * time.Minute

// hookFolders are where people keep the programs of their own hooks: hidden from
// commands like all that lies beside them, and not from hooks.
func hookFolders(home, user string) []string {
	dirs := []string{filepath.Join(home, "hooks")}
	if user != "" {
		dirs = append(dirs, filepath.Join(user, ".claude", "hooks"))
	}
	return slices.DeleteFunc(dirs, func(d string) bool { return !isDir(d) })
}

// hookShell finds the shells that hooks run in.
func hookShell(find func(string) string) func(name string) (string, error) {
	return func(name string) (string, error) {
		if name == "powershell" {
			for _, p := range []string{"pwsh", "powershell"} {
				if path := find(p); path != "" {
					return path, nil
				}
			}
			return "", errors.New("there is no PowerShell here")
		}
		for _, p := range []string{name, "sh"} {
			if path := find(p); path != "" {
				return path, nil
			}
		}
		if runtime.GOOS != "windows" {
			return "/bin/sh", nil
		}
		return "", errors.New("there is no " + name + " here")
	}
}

// first is the session that this one works for in the end; nil = there is none.
func (h *hooked) first() *hooked {
	for h != nil && h.parent != nil {
		h = h.parent
	}
	return h
}

func (a *App) hookedOf(session string) *hooked {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.hooked[session]
}

func (a *App) setHooked(session string, h *hooked) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h == nil {
		delete(a.hooked, session)
		return
	}
	if a.hooked == nil {
		a.hooked = map[string]*hooked{}
	}
	a.hooked[session] = h
}

// close ends what hooks still do and waits for it. Nothing is asked any more.
func (h *hooked) close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	h.closed = true
	w := h.watch
	h.idle.stop()
	h.mu.Unlock()
	h.end()
	if w != nil {
		w.close()
	}
	h.wg.Wait()
	h.set.Close()
	h.env.remove()
	h.app.setHooked(h.b.ID, nil)
}

// apart has f run beside everything else, unless the session is over.
func (h *hooked) apart(f func(context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.wg.Go(func() { f(h.life) })
	}
}

// tell fires an event whose answers change nothing, and waits for none of them.
func (h *hooked) tell(m hooks.Moment) {
	if h.set.Has(m.Event) {
		h.apart(func(ctx context.Context) { h.set.Fire(ctx, m) })
	}
}

// refresh takes over hooks that have changed in the settings. Settings that cannot be
// read leave them as they were.
func (h *hooked) refresh() {
	cfg, _, version := h.app.permissions.current()
	h.mu.Lock()
	defer h.mu.Unlock()
	if version == h.version {
		return
	}
	first := h.version < 0 // what is wrong then was told at the start
	h.version, h.cfg = version, cfg.Hooks
	for i, f := range h.update() {
		if !first && i < maxHookNotes {
			h.note("warn", f.String())
		}
	}
}

// like takes over the hooks of another session from which something is kept: it is kept
// from those that work for it too.
func (h *hooked) like(other *hooked) bool {
	if h.changes.held = other.changes.holds(); h.changes.held == nil {
		return false
	}
	other.mu.Lock()
	version, cfg := other.version, other.cfg
	other.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.cfg = version, cfg
	h.update() // what is wrong with them was told there
	return true
}

// update puts the hooks in force that there are now, and returns what is wrong with those
// of the settings. mu is held.
func (h *hooked) update() (faults []HookFault) {
	cfg := config.Config{Hooks: h.cfg}
	h.all, faults = readHooks(hookSources(cfg, h.app.moreHooks(h.workdir)...))
	if !h.cfg.Off && !h.cfg.ManagedOnly && !h.cfg.ManagedOff {
		for _, key := range sorted(h.scoped) {
			h.all = append(h.all, h.scoped[key]...)
		}
	}
	h.reach = reachOf(h.cfg, h.all)
	h.set.Update(h.all)
	if h.watch != nil {
		h.watch.files(h.all)
	}
	return faults
}

// points put the hooks to where a session asks them, with those of the type of agent that
// it is of. Refresh takes over rules that have changed in the settings.
func (h *hooked) points(as swarm.Definition, refresh func()) plug.Points {
	if h == nil {
		return plug.Points{}
	}
	if len(as.Hooks) > 0 && as.Place.Trusted {
		from := hooks.Source{Layer: "agent", Name: as.Name, File: as.Path, Root: as.Place.Root, Data: as.Place.Data, Options: as.Place.Options}
		for _, f := range h.add("agent", as.Hooks, from) {
			h.app.opts.Logger.Warn("reading the hooks of an agent", "agent", as.Name, "at", f.At, "error", f.Message)
		}
	}
	if c := h.b.Child; c != nil && len(c.Hooks) > 0 {
		for _, f := range h.add("skill", c.Hooks, hooks.Source{Layer: "skill", Name: c.Title, File: c.HooksFrom, Root: filepath.Dir(c.HooksFrom)}) {
			h.app.opts.Logger.Warn("reading the hooks of a skill", "skill", c.Title, "at", f.At, "error", f.Message)
		}
	}
	h.changes.refresh = refresh
	h.noted(lastTasks(h.b.Past))
	return plug.Points{Gate: plug.Gate{Hooks: []plug.Stage{h.stage()}}, Hooks: h.moments(), Extra: h.aware, Wrap: []plug.Wrap{h.wrap}, Close: h.close}
}

// unheld takes over what has changed in the settings, unless that is put to hooks first:
// they are asked before the next step of a turn.
func (h *hooked) unheld(refresh func()) {
	if h == nil || !h.set.Has(hooks.ConfigChange) {
		refresh()
	}
}

// add puts the hooks of a skill or an agent in force, until they are removed or the
// session is over; those of the same key before are gone. What cannot be read is told.
func (h *hooked) add(key string, data json.RawMessage, from hooks.Source) []hooks.Fault {
	if h == nil {
		return nil
	}
	list, faults := hooks.Parse(data, from)
	for i := range list {
		if h.child && list[i].Event == hooks.Stop { // of an agent, the end of its turn is its own
			list[i].Event = hooks.SubagentStop
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.scoped[key] = list
	h.update()
	return faults
}

// AddOfSkill puts the hooks of a skill in force, once for the session if they last.
func (h *hooked) AddOfSkill(key string, s skills.Skill) (lasts bool, said []string) {
	from := hooks.Source{Layer: "skill", Name: s.Name, File: s.File, Root: s.Dir}
	if lasts = from.Lasts(); lasts { // however often it is called
		key = "skill of " + s.File
	}
	for _, f := range h.add(key, s.Hooks, from) {
		said = append(said, f.Message)
	}
	return lasts, said
}

// Remove takes the hooks of a key out of force.
func (h *hooked) Remove(key string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.scoped, key)
	h.update()
}

// facts are what every hook is told.
func (h *hooked) facts() hooks.Facts {
	f := hooks.Facts{Session: h.top, Cwd: h.workdir, Mode: string(h.pol.Mode()), Effort: h.app.cfg.Effort}
	if h.app.store != nil {
		f.Transcript = h.app.store.LogPath(h.top)
	}
	f.Prompt, _ = h.prompt.Load().(string)
	if h.child {
		f.AgentID, f.AgentType = h.b.ID, h.kind
	}
	return f
}

// variable returns a variable of the environment that headers of hooks may have.
func (h *hooked) variable(name string) (string, bool) {
	h.mu.Lock()
	allowed := h.cfg.Vars == nil || slices.Contains(h.cfg.Vars, name)
	h.mu.Unlock()
	if !allowed {
		return "", false
	}
	v := getenv(h.app.opts.Environ)(name)
	return v, v != ""
}

// keep stores a text that is too long for the model, and names it as results do.
func (h *hooked) keep(text string) (string, error) {
	sha, _, err := h.b.PutBlob(context.WithoutCancel(h.life), strings.NewReader(text), 0)
	if err != nil {
		return "", err
	}
	return "output:" + sha[:12], nil
}

// rule reports whether a permission rule fits a call. What cannot be told of a call is
// taken for fitting: the hook looks itself.
func (h *hooked) rule(rule string, p agent.Proposal) bool {
	if p.Effects.Unparsed != "" || p.Effects.Unreadable != "" { // by its name alone
		rule, _, _ = strings.Cut(rule, "(")
		p.Effects = agent.Effects{}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	pol, known := h.rules[rule]
	if !known {
		c := policy.Config{
			Mode: agent.ModeDefault, Rules: []policy.Rule{{Text: rule, Verdict: agent.Deny}}, Dir: h.workdir, Home: h.app.opts.UserHome,
			Canonical: catalog.New(catalog.Config{Dialect: h.dialect}).Canonical,
			Resolve:   func(p string) (string, string, error) { return p, p, nil }, Inside: func(string) bool { return true },
			PowerShell: runtime.GOOS == "windows",
		}
		pol, _ = policy.New(c) // one that cannot be read fits nothing
		if h.rules == nil {
			h.rules = map[string]*policy.Policy{}
		}
		h.rules[rule] = pol
	}
	return pol != nil && pol.Before(p).By == "rule"
}

// note tells people of something.
func (h *hooked) note(level, text string) {
	if err := h.b.Record(agent.Note{Level: level, Code: "hooks", Text: text}); err != nil && h.life.Err() == nil {
		h.app.opts.Logger.Warn("noting what a hook did", "session", h.b.ID, "error", err)
	}
}

// by says whose a word is, on one short line.
func by(o hooks.Outcome) string {
	const most = 100
	name := o.By
	if r := []rune(name); len(r) > most {
		name = string(r[:most]) + "…"
	}
	return hookOrigin + name
}

// hookOrigin is what the names of hooks begin with where somebody says who decided.
const hookOrigin = "hook:"

// ofHook reports whether a call is made on behalf of a hook: hooks do not run for it.
func ofHook(p agent.Proposal) bool { return strings.HasPrefix(p.Origin, hookOrigin) }

// unheard reports whether hooks of calls are not told of one: it is made for one of them, or
// shows a question of a server, which has moments of its own.
func unheard(p agent.Proposal) bool { return ofHook(p) || ofServer(p) }

// reason is why hooks forbid something.
func reason(o hooks.Outcome) string {
	if o.Stop && !o.Block && o.Verdict != agent.Deny {
		return cmp.Or(o.Because, "a hook has stopped it")
	}
	return cmp.Or(strings.Join(o.Reasons, "\n"), o.Because, "a hook forbids it")
}

// hookEnv is the file in which hooks leave an environment for later commands, and what
// they have left.
type hookEnv struct {
	mu    sync.Mutex
	dir   string
	vars  []string
	noted string // the mistakes that were told
}

// envFile returns the file; "" = there is none.
func (h *hooked) envFile() string {
	e := &h.env
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		dir, err := os.MkdirTemp(h.app.temp(), "hook-env-")
		if err != nil {
			return ""
		}
		if err := os.WriteFile(filepath.Join(dir, "env"), nil, 0o600); err != nil {
			_ = os.RemoveAll(dir)
			return ""
		}
		e.dir = dir
	}
	return filepath.Join(e.dir, "env")
}

// readEnv takes over what hooks have left.
func (h *hooked) readEnv() {
	e := &h.env
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir == "" {
		return
	}
	path := filepath.Join(e.dir, "env")
	if i, err := os.Lstat(path); err != nil || !i.Mode().IsRegular() {
		return // a hook has put something else there
	}
	data, err := config.ReadFile(path)
	if err != nil {
		return
	}
	h.mu.Lock()
	allowed := h.cfg.Leave
	h.mu.Unlock()
	vars, faults := hooks.ParseEnv(data, allowed...)
	e.vars = vars
	if told := strings.Join(faults, "; "); told != e.noted {
		if e.noted = told; told != "" {
			h.note("warn", "the environment that hooks have left: "+told)
		}
	}
}

// left returns what hooks have left for commands, also for those of the sessions that
// work for one.
func (h *hooked) left() []string {
	if h == nil {
		return nil
	}
	vars := h.parent.left()
	h.env.mu.Lock()
	defer h.env.mu.Unlock()
	return slices.Concat(vars, h.env.vars)
}

func (e *hookEnv) remove() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dir != "" {
		_ = os.RemoveAll(e.dir) // what is left of it goes with the other temporary files
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}
