// Package run has the hooks of sessions: what runs at which moment of a session, and what
// becomes of the answers. It lists hooks, and tries them without a session.
//
// What nobody waits for has goroutines, which belong to the hooks of one session; closing
// these ends them and waits.
package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/extend/hooks"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/tools/catalog"
)

// Config is what hooks are run with. All is required, but for Call.
type Config struct {
	Settings hooks.Settings                         // as they were when the program was started
	Current  func() (s hooks.Settings, version int) // as they are now
	More     func(workdir string) []hooks.Defined   // hooks of plugins, and of the host
	Off      func() []query.HooksOff                // files whose hooks are not read
	Place    func(file, pointer string) string      // where a JSON pointer leads: file:line:column
	ReadFile func(path string) ([]byte, error)      // at most as much as a file of settings may have

	// Changes begins to look at the files of the settings. What it returns lists those that
	// have changed since, or since take was called; take is nil if nothing has.
	Changes func() (look func() (changed []Change, take func()))

	Workdir  string // of the program
	Home     string // folder of the program's files
	UserHome string
	Managed  string // folder of the administrator's instruction files
	Mode     agent.Mode
	Effort   string
	Version  string
	Dialect  catalog.Dialect
	Logger   *slog.Logger

	Env       func() []string // of commands
	Getenv    func(name string) string
	Temp      func() string // folder of temporary files
	Transport *http.Transport
	Network   string   // mode of the network: external, internal or off
	Hosts     []string // that may be asked in internal mode

	Project   func(workdir string) string // top of the project that a folder belongs to
	LogPath   func(session string) string
	Elsewhere func(session string) bool // it runs in another process, for which this one works
	Redact    func(text string) string
	Fits      func(workdir string) func(rule string, p agent.Proposal) bool                // whether a permission rule fits a call
	Tool      func(session, server, tool string) (name string, connected bool)             // of a server
	Server    func(session, tool string) (name, source string)                             // of a tool; "" = it is none of a server
	Call      func(ctx context.Context, id string, in []byte, call string) ([]byte, error) // has the host answer a callback; nil = there is none

	// Loads says why instruction files are read that enter a conversation from a source.
	Loads map[string]string

	// What people read.
	Asks func(tool string) string
	Idle func() string

	// For trials in the working folder: what a call would do, and what commands run in.
	Explain func(ctx context.Context, tool string, input json.RawMessage) (agent.Proposal, error)
	Confine func() (box *sandbox.Box, find func(program string) string, err error)
}

// Extension has the hooks of all sessions.
type Extension struct {
	plug.NoSession
	c    Config
	open sync.Map // *Session, by the ID of the session
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{c: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "hooks" }

// Of returns the hooks of an open session; nil = none run in it.
func (x *Extension) Of(session string) *Session {
	h, _ := x.open.Load(session)
	s, _ := h.(*Session)
	return s
}

// A Place is what one session has for its hooks.
type Place struct {
	Box    *sandbox.Box
	Find   func(program string) string // outside of the workspace
	Policy interface {
		Mode() agent.Mode
		Suggest(agent.Proposal) []agent.Choice
		Grantable(rules []string, remember string) error
	}
	Own     hooks.Defined // of the type of agents that the session is of
	Refresh func()        // takes over rules that have changed in the settings
	Reread  func()        // reads the skills again
}

// In returns the extension for a session with a place.
func (x *Extension) In(p Place) plug.Extension { return placed{x, p} }

type placed struct {
	*Extension
	place Place
}

// Attach has hooks run in a session, unless it is opened to be looked at, or serves a hook.
func (p placed) Attach(_ context.Context, b *plug.Session) (plug.Points, error) {
	x, parent := p.Extension, p.Of(b.Parent)
	if b.Open.Edit || b.Child != nil && (b.Child.Hookless || b.Parent != "" && parent == nil && !x.c.Elsewhere(b.Parent)) {
		return plug.Points{}, nil
	}
	h := &Session{
		c: &x.c, b: *b, Place: p.place, parent: parent, top: b.ID, fits: x.c.Fits(b.Workdir),
		scoped: parent.guards(), told: map[string]look{}, calling: map[string]int{}, version: -1, child: b.Child != nil,
	}
	h.life, h.end = context.WithCancel(context.Background())
	if h.child {
		h.kind = cmp.Or(b.Child.Agent, "general-purpose")
		if parent != nil {
			h.top = parent.top
		}
	}
	c := x.base(p.place.Box, p.place.Find, b.Workdir)
	c.Facts, c.Post, c.Allowed, c.Var, c.Rule = h.facts, h.post, h.allowed, h.variable, h.fits
	if b.AskSmall != nil {
		c.Ask, c.Spawn = h.ask, b.Reach.Spawn
	}
	c.Invoke, c.Tool = h.invoke, func(server, tool string) (string, bool) { return x.c.Tool(b.ID, server, tool) }
	c.Record, c.Keep, c.Wake, c.Redact, c.Call, c.Spent = h.record, h.keep, h.rouse, x.c.Redact, x.c.Call, b.Spent
	c.Closing, c.NewID = closingTime(x.c.Getenv), func() string { return "hk_" + rand.Text()[:16] }
	h.set = hooks.New(c)
	if parent == nil || !h.like(parent) {
		h.refresh()
	}
	x.open.Store(b.ID, h)
	x.Of(b.Open.After).replaced(*b)
	h.addOwn()
	h.noted(lastTasks(b.Past()))
	return plug.Points{
		Gate: plug.Gate{Hooks: []plug.Stage{h.stage()}}, Hooks: h.moments(), Extra: h.aware, Wrap: []plug.Wrap{h.wrap},
		Close: func() { h.close(); x.open.CompareAndDelete(b.ID, h) },
	}, nil
}

// addOwn puts in force the hooks of the type of agents that the session is of, and those of
// the skill that it runs.
func (h *Session) addOwn() {
	if own := h.Own; len(own.JSON) > 0 {
		for _, f := range h.add("agent", own.JSON, own.Source) {
			h.c.Logger.Warn("reading the hooks of an agent", "agent", own.Name, "at", f.At, "error", f.Message)
		}
	}
	if c := h.b.Child; c != nil && len(c.Hooks) > 0 {
		for _, f := range h.add("skill", c.Hooks, hooks.Source{Layer: "skill", Name: c.Title, File: c.HooksFrom, Root: filepath.Dir(c.HooksFrom)}) {
			h.c.Logger.Warn("reading the hooks of a skill", "skill", c.Title, "at", f.At, "error", f.Message)
		}
	}
}

// base is what hooks of sessions and of trials have in common.
func (x *Extension) base(box *sandbox.Box, find func(string) string, workdir string) hooks.Config {
	return hooks.Config{
		Box: box, Shell: shell(find), Env: x.c.Env(), Project: x.c.Project(workdir),
		Reads: folders(x.c.Home, x.c.UserHome),
	}
}

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

// folders are where people keep the programs of their own hooks: hidden from
// commands like all that lies beside them, and not from hooks.
func folders(home, user string) []string {
	dirs := []string{filepath.Join(home, "hooks")}
	if user != "" {
		dirs = append(dirs, filepath.Join(user, ".claude", "hooks"))
	}
	return slices.DeleteFunc(dirs, func(d string) bool {
		info, err := os.Stat(d)
		return err != nil || !info.IsDir()
	})
}

// shell finds the shells that hooks run in.
func shell(find func(string) string) func(name string) (string, error) {
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

// maxNotes is how many of the mistakes in hooks are told one by one.
const maxNotes = 20

// Mistakes are what is wrong with the hooks of settings, for people.
func Mistakes(s hooks.Settings, place func(file, pointer string) string) (texts []string) {
	_, faults := hooks.Read(s.On())
	for i, f := range faults {
		if i == maxNotes {
			return append(texts, fmt.Sprintf("%d more mistakes in hooks", len(faults)-i))
		}
		texts = append(texts, said(f, place))
	}
	return texts
}

// said tells a person where something is wrong, what, and what to do.
func said(f hooks.Fault, place func(file, pointer string) string) string {
	text := place(f.Source, f.At) + ": " + strings.TrimPrefix(f.At, "/") + ": " + f.Message
	if f.Fix != "" {
		text += "; " + f.Fix
	}
	return text
}
