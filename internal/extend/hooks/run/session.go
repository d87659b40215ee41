package run

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"dure/agent"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
)

// A Session is the hooks of one session: what runs at which of its moments, and what
// becomes of the answers. Without any, it is nil: then it forbids nothing, and tells nobody.
// It is safe for concurrent use. What nobody waits for belongs to it, and to its set; close
// ends that and waits.
type Session struct {
	Place
	c      *Config
	b      plug.Session
	parent *Session // of the session that it works for; nil = for none
	top    string   // the session that a person has opened
	kind   string   // the type of agent that a child runs; "" = it is no child
	child  bool
	set    *hooks.Set
	fits   func(rule string, p agent.Proposal) bool

	life   context.Context
	end    context.CancelFunc
	wg     sync.WaitGroup
	prompt atomic.Value // string: ID of the input of a person that came last
	mute   sync.Once    // it was told that there is no terminal for what hooks have for one
	heard  atomic.Bool  // input is looked at from now on

	mu       sync.Mutex
	closed   bool
	version  int                     // of the settings that the hooks are from
	settings hooks.Settings          // of that version
	all      []hooks.Hook            // that run
	reach    reach                   // of all
	scoped   map[string][]hooks.Hook // hooks of skills and agents, by what they belong to
	words    words
	why      string         // the session ends, as hooks are told; "" = as is usual
	goes     int            // how often in a row hooks have made the turn go on
	woken    int            // how often hooks have woken the session since a person has said something
	calling  map[string]int // calls that hooks make, here and in sessions that work for this one, by server
	env      environment
	changes  settingsWatch
	watch    *watch
	idle     idle
	told     map[string]look // instruction files that were told of, as they looked
	tasks    map[string]string
	enough   bool // hooks have stopped an agent that has done a task
}

// replaced notes why the session ends: another one takes its place.
func (h *Session) replaced(by plug.Session) {
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
func (h *Session) guards() map[string][]hooks.Hook {
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

// Guards reports whether hooks of skills and agents look at the calls of those that work for
// the session.
func (h *Session) Guards() bool { return len(h.guards()) > 0 }

// rouse has the model read what a hook has to say that nobody waited for. A hook that is
// asked at the end of each turn would wake the session for ever: from some time on, what
// it says waits until a person says something.
func (h *Session) rouse(text, by string) bool {
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
	err := h.b.Send(h.life, plug.Wake{Text: h.masked(text), By: by})
	if err != nil && h.life.Err() == nil {
		h.c.Logger.Warn("waking a session for a hook", "session", h.b.ID, "error", err)
	}
	return err == nil
}

// spoke notes what a person has said last.
func (h *Session) spoke(input string) {
	if was, _ := h.prompt.Swap(input).(string); was == input {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.woken = 0
}

// ask puts a question of a hook to a small model, if it names none.
func (h *Session) ask(ctx context.Context, q agent.Question) (agent.Answer, error) {
	if q.Model == "" {
		return h.b.AskSmall(ctx, q)
	}
	return h.b.Reach.Ask(ctx, q)
}

// record puts what hooks did into the log, without the secrets in what they say.
func (h *Session) record(bodies ...agent.Body) error {
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
func (h *Session) forTerminal(s string) string {
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
func (h *Session) masked(text string) string { return h.c.Redact(text) }

// Top is the session that this one works for in the end, as it was opened; nil = no hooks
// run in it.
func (h *Session) Top() *plug.Session {
	for h != nil && h.parent != nil {
		h = h.parent
	}
	if h == nil {
		return nil
	}
	return &h.b
}

// close ends what hooks still do and waits for it. Nothing is asked any more.
func (h *Session) close() {
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
}

// apart has f run beside everything else, unless the session is over.
func (h *Session) apart(f func(context.Context)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.wg.Go(func() { f(h.life) })
	}
}

// tell fires an event whose answers change nothing, and waits for none of them.
func (h *Session) tell(m hooks.Moment) {
	if h.set.Has(m.Event) {
		h.apart(func(ctx context.Context) { h.set.Fire(ctx, m) })
	}
}

// refresh takes over hooks that have changed in the settings. Settings that cannot be
// read leave them as they were.
func (h *Session) refresh() {
	settings, version := h.c.Current()
	h.mu.Lock()
	defer h.mu.Unlock()
	if version == h.version {
		return
	}
	first := h.version < 0 // what is wrong then was told at the start
	h.version, h.settings = version, settings
	for i, f := range h.update() {
		if !first && i < maxNotes {
			h.note("warn", said(f, h.c.Place))
		}
	}
}

// like takes over the hooks of another session from which something is kept: it is kept
// from those that work for it too.
func (h *Session) like(other *Session) bool {
	if h.changes.held = other.changes.holds(); h.changes.held == nil {
		return false
	}
	other.mu.Lock()
	version, settings := other.version, other.settings
	other.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.version, h.settings = version, settings
	h.update() // what is wrong with them was told there
	return true
}

// update puts the hooks in force that there are now, and returns what is wrong with those
// of the settings. mu is held.
func (h *Session) update() (faults []hooks.Fault) {
	s := h.settings
	h.all, faults = hooks.Read(s.On(h.c.More(h.b.Workdir)...))
	if !s.Off && !s.ManagedOnly && !s.ManagedOff {
		for _, key := range sorted(h.scoped) {
			h.all = append(h.all, h.scoped[key]...)
		}
	}
	h.reach = reachOf(s, h.all)
	h.set.Update(h.all)
	if h.watch != nil {
		h.watch.files(h.all)
	}
	return faults
}

// Unheld takes over what has changed in the settings, unless that is put to hooks first:
// they are asked before the next step of a turn.
func (h *Session) Unheld(refresh func()) {
	if h == nil || !h.set.Has(hooks.ConfigChange) {
		refresh()
	}
}

// add puts the hooks of a skill or an agent in force, until they are removed or the
// session is over; those of the same key before are gone. What cannot be read is told.
func (h *Session) add(key string, data json.RawMessage, from hooks.Source) []hooks.Fault {
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
func (h *Session) AddOfSkill(key, name, file, dir string, defined json.RawMessage) (lasts bool, said []string) {
	from := hooks.Source{Layer: "skill", Name: name, File: file, Root: dir}
	if lasts = from.Lasts(); lasts { // however often it is called
		key = "skill of " + file
	}
	for _, f := range h.add(key, defined, from) {
		said = append(said, f.Message)
	}
	return lasts, said
}

// Remove takes the hooks of a key out of force.
func (h *Session) Remove(key string) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.scoped, key)
	h.update()
}

// facts are what every hook is told.
func (h *Session) facts() hooks.Facts {
	f := hooks.Facts{Session: h.top, Transcript: h.c.LogPath(h.top), Cwd: h.b.Workdir, Mode: string(h.Policy.Mode()), Effort: h.c.Effort}
	f.Prompt, _ = h.prompt.Load().(string)
	if h.child {
		f.AgentID, f.AgentType = h.b.ID, h.kind
	}
	return f
}

// variable returns a variable of the environment that headers of hooks may have.
func (h *Session) variable(name string) (string, bool) {
	h.mu.Lock()
	allowed := h.settings.Vars == nil || slices.Contains(h.settings.Vars, name)
	h.mu.Unlock()
	if !allowed {
		return "", false
	}
	v := h.c.Getenv(name)
	return v, v != ""
}

// keep stores a text that is too long for the model, and names it as results do.
func (h *Session) keep(text string) (string, error) {
	sha, _, err := h.b.PutBlob(context.WithoutCancel(h.life), strings.NewReader(text), 0)
	if err != nil {
		return "", err
	}
	return "output:" + sha[:12], nil
}

// note tells people of something.
func (h *Session) note(level, text string) {
	if err := h.b.Record(agent.Note{Level: level, Code: "hooks", Text: text}); err != nil && h.life.Err() == nil {
		h.c.Logger.Warn("noting what a hook did", "session", h.b.ID, "error", err)
	}
}

// by says whose a word is, on one short line.
func by(o hooks.Outcome) string {
	const most = 100
	name := o.By
	if r := []rune(name); len(r) > most {
		name = string(r[:most]) + "…"
	}
	return originOfHooks + name
}

// originOfHooks is what the names of hooks begin with where somebody says who decided.
const originOfHooks = "hook:"

// ofHook reports whether a call is made on behalf of a hook: hooks do not run for it.
func ofHook(p agent.Proposal) bool { return strings.HasPrefix(p.Origin, originOfHooks) }

// serverOrigin begins the origins of calls that show a question of a server.
const serverOrigin = "server:"

// ofServer reports whether a call only shows a question of a server: hooks are told of that
// question.
func ofServer(p agent.Proposal) bool { return strings.HasPrefix(p.Origin, serverOrigin) }

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

// sorted returns the keys of a map in their order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
