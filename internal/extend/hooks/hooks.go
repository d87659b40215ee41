// Package hooks runs what users have defined for the moments of a session: commands,
// requests to servers, tools of MCP servers, questions to a model and small agents. It
// turns their answers into one outcome.
//
// It owns the form of definitions, of what hooks are told and of what they answer, and
// how several are combined. It decides nothing by itself and never touches a session:
// whoever fires an event does what the outcome says. Hooks run beside each other; each
// has a goroutine of [Set.Fire], which waits for it, and those that nobody waits for
// belong to the [Set], whose Close ends them.
package hooks

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/internal/safety/sandbox"
)

// Config says what hooks may use. Box, Shell and Record are required.
type Config struct {
	Hooks []Hook

	Box   *sandbox.Box
	Shell func(name string) (path string, err error) // of bash, sh or powershell; "" = what the system has
	Env   []string                                   // what commands inherit

	// Project is the folder in which the session began, and Facts what every hook is
	// told beside its event.
	Project string
	Facts   func() Facts

	// Post puts a body to an address and returns what came, at most a mebibyte.
	Post   func(ctx context.Context, url string, header map[string]string, body []byte) (status int, answer []byte, err error)
	Ask    agent.Ask    // for prompts
	Spawn  agent.Spawn  // for agents
	Invoke agent.Invoke // for tools of MCP servers

	// Call asks the embedding program for the answer of a callback; call is the ID of the
	// call of a tool that it is about. nil = nothing embeds this one.
	Call func(ctx context.Context, callback string, input []byte, call string) ([]byte, error)

	// Tool returns the name of a tool of a server that is connected; "" = it is not, or
	// has no such tool. It connects none.
	Tool    func(server, tool string) (name string, connected bool)
	Allowed func(url string) bool
	Var     func(name string) (string, bool) // a variable of the environment that headers may have

	// Closing is what all hooks at the end of a session have together; 0 = 1.5 s, and as
	// much more as one of the settings asks for, at most a minute.
	Closing time.Duration

	// Rule reports whether a permission rule fits a call.
	Rule func(rule string, p agent.Proposal) bool

	// Record puts what hooks do into the log. Keep stores a text that is too long for
	// the model, and returns the path of a file that has it; nil = it cannot be kept.
	Record func(...agent.Body) error
	Keep   func(text string) (path string, err error)

	// Wake has an idle session read what a hook that nobody waited for has to say, and
	// reports whether it does. What it does not waits for the next request.
	Wake func(text, by string) bool

	// Redact takes secrets out of what a hook is called by: a command or an address may
	// have some in it. nil = it stays as it is.
	Redact func(string) string

	// Spent are the hooks that run once and have done so before: as [agent.HookRan] has
	// them.
	Spent []string

	NewID func() string // of runs

	// Reads are folders that commands of hooks may read although they are hidden from
	// commands: those in which hooks are kept.
	Reads []string
}

// Facts are what every hook is told.
type Facts struct {
	Session    string `json:"session_id"`
	Transcript string `json:"transcript_path"`
	Cwd        string `json:"cwd"`
	Event      Event  `json:"hook_event_name"`
	Mode       string `json:"permission_mode,omitempty"`
	Prompt     string `json:"prompt_id,omitempty"`
	AgentID    string `json:"agent_id,omitempty"`
	AgentType  string `json:"agent_type,omitempty"`
	Effort     string `json:"-"` // told as an object where an event is about a call
}

// A Moment is an event with what there is to say about it.
type Moment struct {
	Event    Event
	Match    string          // what matchers look at
	Fields   any             // a struct or map: what hooks are told beside what is common
	Proposal *agent.Proposal // the call that it is about
	EnvFile  string          // where hooks may leave an environment; "" = nowhere
}

// A Set is the hooks of a session. It is safe for concurrent use.
type Set struct {
	c    Config
	life context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup // of hooks that nobody waits for
	free chan struct{}

	mu     sync.Mutex
	closed bool
	hooks  []Hook
	used   map[string]bool // those that run once, by their mark
}

// maxRunning is how many hooks that nobody waits for run at once; further ones wait.
const maxRunning = 16

// New returns the hooks of a session.
func New(c Config) *Set {
	s := &Set{c: c, hooks: c.Hooks, used: map[string]bool{}, free: make(chan struct{}, maxRunning)}
	for _, mark := range c.Spent {
		s.used[mark] = true
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// name is what a hook is called by where others read it.
func (s *Set) name(h Hook) string {
	if s.c.Redact == nil {
		return h.Name()
	}
	return s.c.Redact(h.Name())
}

// Close ends what still runs and waits for it.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end()
	s.wg.Wait()
}

// apart runs f beside all others, and reports whether it does: a closed set does not.
func (s *Set) apart(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(f)
	}
	return !s.closed
}

// Update puts other hooks in the place of all. Runs that have begun go on.
func (s *Set) Update(hooks []Hook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hooks = hooks
}

// Has reports whether anything is defined for an event.
func (s *Set) Has(e Event) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.hooks, func(h Hook) bool { return h.Event == e })
}

// Concerns reports whether a hook may run at an event, as far as its matcher tells.
func (s *Set) Concerns(e Event, match string) bool {
	s.mu.Lock()
	hooks := s.hooks // which are not changed, but replaced
	s.mu.Unlock()
	return slices.ContainsFunc(hooks, func(h Hook) bool {
		if h.Event != e {
			return false
		}
		fits, err := h.matches(match)
		return fits || err != nil
	})
}

// Skip says why a hook of an event does not run.
type Skip string

// The reasons.
const (
	SkipMatcher Skip = "matcher"   // it is for something else
	SkipBroken  Skip = "broken"    // its matcher fails
	SkipIf      Skip = "if"        // its condition does not hold
	SkipOnce    Skip = "once"      // it has run
	SkipSame    Skip = "duplicate" // one of other settings is the same
)

// A choice is a hook of an event, and whether it runs.
type choice struct {
	hook Hook
	skip Skip // "" = it runs
	err  error
}

// choices returns the hooks of an event in the order of their definition. With spend
// those that run once do so now.
func (s *Set) choices(m Moment, input map[string]json.RawMessage, spend bool) (all []choice) {
	s.mu.Lock()
	hooks := s.hooks // which are not changed, but replaced
	s.mu.Unlock()
	var seen []Hook
	for _, h := range hooks {
		if h.Event != m.Event {
			continue
		}
		h.Async = h.Async || kinds[h.Event].alone
		c := choice{hook: h}
		switch fits, err := h.matches(m.Match); {
		case err != nil:
			c.skip, c.err = SkipBroken, fmt.Errorf("the matcher %q of a hook in %s fails: %w", h.Matcher, h.Source, err)
		case !fits:
			c.skip = SkipMatcher
		case !s.passes(h, m, input):
			c.skip = SkipIf
		case h.shared() && slices.ContainsFunc(seen, h.same):
			c.skip = SkipSame
		case h.Once && !s.first(h, spend):
			c.skip = SkipOnce
		case h.shared():
			seen = append(seen, h)
		}
		all = append(all, c)
	}
	return all
}

// passes asks the hook's if.
func (s *Set) passes(h Hook, m Moment, input map[string]json.RawMessage) bool {
	switch f := h.filter; {
	case f == nil:
		return true
	case f.terms != nil:
		return f.holds(input)
	case m.Proposal == nil || s.c.Rule == nil:
		return false
	default:
		return s.c.Rule(f.rule, *m.Proposal)
	}
}

// first reports whether a hook that runs once has not run.
func (s *Set) first(h Hook, spend bool) bool {
	mark := h.mark()
	s.mu.Lock()
	defer s.mu.Unlock()
	used := s.used[mark]
	s.used[mark] = used || spend
	return !used
}

// mark is what a hook is known by that runs once; "" = it runs always.
func (h Hook) mark() string {
	if !h.Once {
		return ""
	}
	h.Async = false // one may leave while it runs
	sum := sha256.Sum256([]byte(h.Source.String() + h.At + string(h.definition())))
	return hex.EncodeToString(sum[:16])
}

// shared reports whether a hook runs once for an event however many settings have it.
func (h Hook) shared() bool {
	switch h.Source.Layer {
	case "plugin", "skill", "agent":
		return false
	}
	return true
}

// same reports whether two hooks do the same.
func (h Hook) same(other Hook) bool {
	return h.Type == other.Type && h.Command == other.Command && h.URL == other.URL && h.Prompt == other.Prompt && h.Tool == other.Tool &&
		bytes.Equal(h.definition(), other.definition())
}

// definition is what a hook does, without where it stands.
func (h Hook) definition() []byte {
	h.At, h.Matcher = "", ""
	data, err := json.Marshal(h)
	if err != nil { // a hook is read from JSON
		panic(err)
	}
	return data
}
