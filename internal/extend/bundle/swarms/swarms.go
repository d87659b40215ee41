// Package swarms runs the swarms of bundles: it loads a bundle, keeps its code as it was when
// somebody looked at it, starts the tools and extensions of a session's agent, and serves the
// connections that lead to a swarm. Besides what exthost and inbound start, each session has a
// goroutine that tells extensions of its log, which ends with [Session.Close].
package swarms

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"

	"dure/agent"
	"dure/client"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
)

// Config is what swarms are run with. All fields are required, but for Code and Compiled.
type Config struct {
	Workdir, Home string // of the program, and of its user
	Changesets    string // folder for what bundles were that are changed
	Code          *Code  // of the swarm that runs; nil = none does
	Compiled      []exthost.Compiled
	Getenv        func(name string) string
	Env           func() []string // of programs
	Redact        func(text string) string
	Masked        func(text string) bool // whether something was redacted in a text
	Logger        *slog.Logger

	Trusts  func(dir string) bool  // whether the bundle in a folder is trusted
	Builtin func(name string) bool // whether there is a tool of the program
	IsName  func(name string) bool // whether a type of agents can be called so

	// EntryTools are those of an entry agent for the agents of its swarm.
	EntryTools []string

	// Box returns what confines programs in the folder of the program, that folder without
	// links, and what finds programs outside of it.
	Box  func() (box *sandbox.Box, root string, find func(program string) string, err error)
	Post func(context.Context, exthost.Request) (exthost.Response, error)
	Desk func() (*oauth.Desk, error)

	// UsableServer says why a tool of a bundle in a folder cannot be one of a server, Invoke
	// calls a tool of a server for a session, and Asks reports whether no mode allows it
	// without the person.
	UsableServer func(dir, tool, server string) error
	Invoke       func(ctx context.Context, p Place, server, tool string, input json.RawMessage) (agent.Result, error)
	Asks         func(ctx context.Context, p Place, server, tool string) (bool, error)

	Reminder func(who, text string) string // a text of somebody else, as the model reads it

	Client   func() client.Client
	Sessions func(ctx context.Context, prefix string) iter.Seq2[agent.SessionInfo, error] // of the folder of the program
	Read     func(ctx context.Context, session string) iter.Seq2[agent.Event, error]
	Park     func(meant func(session string) bool) // leaves sessions as they are, for another start
}

// Extension has the bundles.
type Extension struct {
	plug.NoSession
	cfg Config
}

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg} }

// Name returns the name of the extension.
func (ext *Extension) Name() string { return "bundles" }

// Answers returns the queries that the extension answers.
func (ext *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(ext.check), plug.Storeless(ext.lock)}
}
