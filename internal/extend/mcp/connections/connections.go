// Package connections connects the servers of the Model Context Protocol that sessions have,
// says which there are for a folder and why others are not used, and changes that when its
// user asks for it. Its goroutines are those of [mcp.Set], which end with their session.
package connections

import (
	"context"
	"log/slog"
	"net/http"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/hosts"
	"dure/internal/base/jsonc"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/mcp/servers"
	"dure/internal/kernel/plug"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
	"dure/internal/tools/catalog"
)

// Config is what the servers of sessions need of the program.
type Config struct {
	Settings servers.Settings
	Workdir  string
	Home     string   // of the user
	Dir      string   // where it is kept what the user has decided on servers
	AddDirs  []string // that sessions may use besides their own
	Environ  []string // of two variables of a name, the last counts
	Version  string
	Logger   *slog.Logger

	Given     []string // for this run: files, or JSON objects
	OnlyGiven bool     // no others than those
	NoLocal   bool     // the user's own for a folder are not read
	NoProject bool     // those that a folder brings are not read
	Bundle    string   // the folder of the bundle that runs; "" = none does
	Host      *Host    // nil = no program embeds this one
	Await     bool     // the first request waits for servers, for a while
	NoAI      bool     // servers ask the model nothing

	// Sources are the servers that settings, plugins and types of agents name.
	Sources func(workdir string) ([]servers.Source, []servers.Fault)
	Read    func(path string) ([]byte, error)             // a file of limited length
	Covered func(path string, data []byte) bool           // a file of a project is as it was when it was trusted
	Top     func(dir string) string                       // the folder with .git at or above dir; "" = there is none
	Folder  func(session string) string                   // where a session works; without one, Workdir
	Secret  func(variable string) bool                    // no project gets it
	Clean   func(text string) string                      // takes secrets out
	Say     func(w Word, args ...any) string              // in the language of the user
	Hooks   func(session string) Hooks                    // of a session that is open
	Box     func(*workspace.Workspace) *sandbox.Box       // confines what is no session's
	Env     func() []string                               // of programs that are started
	Desk    func() (*oauth.Desk, error)                   // signs in
	Reach   hosts.Reach                                   // which addresses may be asked
	Web     http.RoundTripper                             // reaches servers over the network
	Change  func(ctx context.Context, c FileChange) error // of a file of settings or of a project
	OwnFile string                                        // the user's settings; "" = there are none
}

// FileChange is a change of the servers in a file.
type FileChange struct {
	Scope  string // user or project
	File   string
	Server string
	Edit   func(*jsonc.Text) ([]byte, error)
}

// Hooks are the hooks of a session, as far as questions of servers have to do with them.
type Hooks interface {
	// Eliciting is asked before a question is put to the person, and Answering before what they
	// say is the answer: an action of a hook is the answer instead.
	Eliciting(ctx context.Context, server string, fields map[string]any) (plug.ElicitReply, error)
	Answering(ctx context.Context, server string, fields map[string]any) (plug.ElicitReply, error)

	Notify(kind, text string)
}

// Prefix begins the names of the tools and prompts of servers.
const Prefix = "mcp__"

// Extension is the servers of all sessions. It is safe for concurrent use.
type Extension struct {
	plug.NoSession // sessions have those that Open connects
	Config
	store servers.Store

	mu   sync.Mutex
	open map[string]*Servers // by session; guarded by mu
}

// New returns the servers of a program.
func New(c Config) *Extension {
	return &Extension{Config: c, store: servers.Store{Dir: c.Dir}, open: map[string]*Servers{}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "servers" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{
		plug.Storeless(func(_ context.Context, q query.ListServers) (query.ServerReport, error) { return x.list(q), nil }),
		plug.Storeless(x.change), plug.Storeless(x.add), plug.Storeless(x.remove), plug.Storeless(x.reset),
		plug.Storeless(x.test), plug.Answers(x.now), plug.Answers(x.join), plug.Answers(x.replace), plug.Answers(x.resource), plug.Storeless(x.signIn), plug.Storeless(x.signOut),
		plug.Answers(func(ctx context.Context, q query.CompletePrompt) (query.PromptValues, error) {
			return x.Of(q.Session).complete(ctx, q.Text), nil
		}),
	}
}

// Of returns the servers of a session that is open; nil = it has none.
func (x *Extension) Of(session string) *Servers {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.open[session]
}

// Place is where a session works, and what decides there.
type Place struct {
	Box       *sandbox.Box
	Workspace *workspace.Workspace
	Catalog   *catalog.Catalog
	Policy    Policy
	Person    plug.Session // in which somebody is asked: the session itself, or the one that it works for
}

// Policy decides on calls.
type Policy interface {
	Before(agent.Proposal) agent.Decision
	Decide(agent.Proposal) agent.Decision
	DeniesRead(path string) bool
}
