// Package app builds the program: settings, store, models, tools, policy, guard
// and sessions, in dependency order. It is the only package that knows them all.
//
// Building reads settings and nothing else, but for the keys where a repository
// names a model; the store is opened, and everything a session needs is made,
// when it is first asked for. It starts no goroutines of its own; those of its
// sessions end with [App.Close].
package app

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/client"
	"dure/internal/app/config"
	"dure/internal/app/config/change"
	"dure/internal/app/config/choices"
	"dure/internal/app/config/live"
	"dure/internal/base/hosts"
	"dure/internal/base/keys"
	"dure/internal/extend/bundle/exthost"
	"dure/internal/extend/bundle/inbound/schedules"
	"dure/internal/extend/bundle/swarms"
	"dure/internal/extend/commands/typed"
	"dure/internal/extend/hooks/run"
	"dure/internal/extend/host"
	"dure/internal/extend/mcp/connections"
	"dure/internal/extend/mcp/oauth"
	"dure/internal/extend/plugins/active"
	"dure/internal/extend/skills/use"
	"dure/internal/extend/swarm/agents"
	"dure/internal/extend/swarm/apart"
	"dure/internal/extend/swarm/house"
	"dure/internal/frontend/telemetry"
	"dure/internal/kernel/plug"
	"dure/internal/kernel/session"
	"dure/internal/knowledge/compact"
	"dure/internal/knowledge/memory/instruct"
	"dure/internal/knowledge/memory/reflexion"
	"dure/internal/knowledge/mention/read"
	"dure/internal/knowledge/prompt/system"
	"dure/internal/models/registry"
	"dure/internal/models/registry/providers"
	"dure/internal/safety/guard"
	"dure/internal/safety/policy/enforce"
	"dure/internal/safety/sandbox"
	"dure/internal/safety/sandbox/boxes"
	"dure/internal/safety/trust/folders"
	"dure/internal/safety/workspace/unsaved"
	"dure/internal/state/archive/audit"
	"dure/internal/state/archive/imports"
	"dure/internal/state/archive/mirror"
	"dure/internal/state/archive/removal"
	"dure/internal/state/checkpoint/undo"
	"dure/internal/state/journal"
	"dure/internal/tools/builtin/offer"
	"dure/internal/tools/verify"
)

// Flags are what the command line says. Zero values say nothing.
type Flags struct {
	Model          string
	Mode           string
	Skip           bool   // --dangerously-skip-permissions
	Trust          bool   // what the folder brings is trusted, for this run
	Sandbox        string // auto or off; "" = as the settings say
	Allow, Deny    []string
	BaseURL        string
	Settings       string // a file, or a JSON object
	Driver         string // what a program that drives this one restricts, see [config.Sources]
	Effort         string // low, medium or high
	Fallback       string // names of models, separated by commas
	Profile        string
	Dialect        string
	Durability     string
	AddDirs        []string
	System         *string // in the place of what dure says of itself; nil = nothing is
	SystemAppend   string
	Budget         Budget       // zero fields say nothing
	Scratch        bool         // keep nothing on disk
	PlainOff       bool         // what an input names without an @ is not read
	Hosted         bool         // a program for agent sessions drives this one, by lines
	NoReflexion    bool         // nothing is learnt of what is done
	PluginDirs     []string     // plugins for this run
	ServerlessDirs []string     // more of them, whose servers are not used
	Servers        []string     // of the Model Context Protocol, for this run: files, or JSON objects
	OnlyServers    bool         // no others than those
	AwaitServers   bool         // the first request waits for them, as long as that is no nuisance
	Agent          string       // the type of agents that a session runs as; "" = as the settings say, none = none
	Agents         string       // types of agents, see swarm.ParseNamed
	Code           *swarms.Code // of the bundle whose swarm runs; nil = none does
	Sources        *[]string    // whose files of settings, instructions and extensions are read: user, project, local; nil = all
	Skills         *[]string    // those that models may use; nil = all
	Tools          *[]string    // the built-in tools that there are; nil = all
	Thinking       *int         // tokens that an answer may think for; nil = as the effort has it
	Elsewhere      bool         // the folder is another one than that which Trust, Skip and Mode were said of

	Providers map[string]registry.Setting
}

// Budget is what a session may use, see the settings of that name.
type Budget = config.Budget

// Options say how to build the program. Workdir is required.
type Options struct {
	Flags    Flags
	Environ  []string // as os.Environ
	UserHome string
	Workdir  string // absolute
	Language string // en or ko, of the locale; settings are stronger
	Version  string
	Logger   *slog.Logger // nil = nothing is logged

	// Host is the program that embeds this one; nil = none does.
	Host *Host

	// Extensions are compiled in, beside those of dure itself: bundles can name them.
	Extensions []exthost.Compiled

	// Mechanisms are those of the system that may confine commands, for tests; nil =
	// all.
	Mechanisms []string

	// Keychain lets keys be kept in the system's keychain, and not in a file only.
	Keychain bool

	// Parting is how long the end of a session that a person has had may be late for
	// looking back at it; default 2 s. A program does not wait.
	Parting time.Duration

	// CallGrace is how long a cancelled call may take to return, for tests; 0 = as is usual.
	CallGrace time.Duration

	// Worker is the command of processes of agents, for tests; nil = this program's own.
	Worker []string

	// WorkerGrace is how long such a process may take to end; default 20 s.
	WorkerGrace time.Duration

	// Editor has files open that may not be saved yet: the file tools of sessions in Workdir
	// read them as they stand there, and tell it what they write. nil = there is none.
	Editor unsaved.Editor

	// Terminal runs commands of sessions in Workdir in sight of its person, where the
	// sandbox is off by the user's own settings. nil = there is none.
	Terminal agent.Terminal

	// More are capabilities besides those of the program itself, the innermost last.
	More []plug.Extension

	// Points is what becomes of what the capabilities add to a session, for tests; nil =
	// it is taken as it is.
	Points func(plug.Session, []plug.Attached) []plug.Attached

	// Fault is for crash tests: it is called at every write boundary of the
	// store.
	Fault func(boundary string)
}

// App is the program, built. It is safe for concurrent use.
type App struct {
	// The capabilities that front-ends of this program drive themselves.
	Bundles   *swarms.Extension
	Schedules *schedules.Extension
	Telemetry *telemetry.Program // counts and tells what sessions do
	Embedding *host.Extension    // what the program that embeds this one does in sessions

	opts Options
	cfg  config.Config

	permissions *live.Settings
	settings    *change.Extension
	policy      *enforce.Extension
	trust       *folders.Extension
	boxes       *boxes.Extension
	patterns    *guard.Patterns // secrets of the user's own, and those that are known
	secrets     *guard.Known    // of sign-ins
	models      *providers.Extension
	http        *http.Client

	transport *http.Transport // of http; web tools clone it
	keys      keys.Store      // of providers and sign-ins
	reach     hosts.Reach     // whom the network mode lets be asked

	shared    func() client.Transport     // of several front-ends, made once
	desk      func() (*oauth.Desk, error) // signs in, made once
	desked    *oauth.Desk                 // that, once it is there
	mirror    *mirror.Extension
	undo      *undo.Extension
	audit     *audit.Extension
	removal   *removal.Extension
	imports   *imports.Extension
	hooks     *run.Extension
	mentions  *read.Extension
	verify    *verify.Extension
	lessons   *reflexion.Extension
	memory    *instruct.Extension
	compact   compact.Sessions
	prompts   *system.Extension
	offer     *offer.Extension
	answers   map[string]plug.Answer // by the name of the query
	plugins   *active.Extension
	servers   *connections.Extension
	agents    *agents.Extension
	processes *apart.Processes // of agents
	house     *house.Extension
	parent    *apart.Parent // nil = this is not the process of an agent
	inherited inherited     // of that
	skills    *use.Extension
	commands  *typed.Extension

	sessions sessionStore
	mu       sync.Mutex // guards desked
}

// New reads the settings and returns the program. Its errors are
// [*agent.Problem].
func New(o Options) (*App, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	src := config.Sources{
		ReadFile: config.ReadFile, Getenv: getenv(o.Environ), UserHome: o.UserHome, Workdir: o.Workdir,
		OS: runtime.GOOS, Language: o.Language, Settings: o.Flags.Settings, Flags: o.Flags.settings(), Only: o.Flags.layers(), Driver: o.Flags.Driver,
	}
	settings, err := live.Open(src, o.Flags.trusts())
	if err != nil {
		return nil, err
	}
	cfg, _ := settings.Now()
	for _, mistake := range run.Mistakes(cfg.Hooks, config.PlaceOf) {
		cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Code: "hooks", Text: mistake})
	}
	live.Note(&cfg, o.UserHome, o.Environ, o.Flags.Tools)
	patterns, err := guard.Compile(cfg.Patterns)
	if err != nil {
		return nil, agent.SettingsProblem("guard.patterns", err)
	}
	t, err := hosts.Route{Proxy: string(cfg.Network.Proxy), NoProxy: cfg.Network.NoProxy, CA: cfg.Network.CA, Getenv: getenv(o.Environ)}.Transport()
	if err != nil {
		return nil, err
	}
	secrets := &guard.Known{}
	a := &App{
		opts: o, cfg: cfg, secrets: secrets, patterns: patterns.With(secrets), permissions: settings,
		http: &http.Client{Transport: t}, transport: t,
	}
	a.keys.Path = filepath.Join(cfg.Home, "credentials.json")
	if o.Keychain {
		a.keys.Ring = keys.System()
	}
	a.reach = hosts.Reach{Mode: string(cfg.Network.Mode), Also: cfg.Network.AllowHosts}
	a.models = a.newModels()
	if err := choices.Limit(&a.cfg, src, a.models); err != nil {
		return nil, err
	}
	a.models = a.newModels()
	if err := a.extend(); err != nil {
		return nil, err
	}
	a.sessions.open, a.desk = sync.OnceValues(a.openStore), sync.OnceValues(a.newDesk)
	a.shared = sync.OnceValue(func() client.Transport { return client.Share(wire{a}) })
	return a, nil
}

// Client returns the client of the sessions of this program.
func (a *App) Client() client.Client { return client.New(wire{a}) }

// Notes says what is odd about the settings, plugins and servers of the folder.
func (a *App) Notes() []agent.Note {
	return slices.Concat(a.cfg.Notes, a.plugins.Notes(), a.servers.Notes())
}

// Shared returns the client of the front-ends of this program that use the same sessions:
// who opens one that is open joins it.
func (a *App) Shared() client.Client { return client.New(a.shared()) }

// Runs reports whether a session is open here.
func (a *App) Runs(session string) bool { return a.sessions.folder(session, "") != "" }

// Config returns the settings.
func (a *App) Config() config.Config { return a.cfg }

func (a *App) openStore() (*session.Registry, error) {
	host, _ := os.Hostname() // for messages only
	var store *journal.Local
	if a.opts.Flags.Scratch {
		store = journal.NewMemory(journal.MemoryOptions{})
	} else {
		var err error
		store, err = journal.NewLocal(journal.LocalOptions{
			Dir: a.cfg.Data, Durability: a.cfg.Durability, Fault: a.opts.Fault,
		})
		if err != nil {
			return nil, storeProblem(err, a.cfg.Data)
		}
	}
	queues := session.NewLanes(a.cfg.Lanes)
	reg := session.New(session.Config{
		Store: store, Build: a.build, Query: a.query, Takeover: store.Takeover, Discard: a.removal.Forget, Apart: a.processes.Run, Reap: func(p agent.Process) { sandbox.Reap(p) }, Logger: a.opts.Logger,
		Version: a.opts.Version, Host: host, PID: os.Getpid(),
		Lanes: queues,
	})
	a.sessions.mu.Lock()
	defer a.sessions.mu.Unlock()
	a.sessions.store, a.sessions.reg, a.sessions.queues = store, reg, queues
	a.house.Mend()
	return reg, nil
}

// Close ends all sessions and waits for them.
func (a *App) Close() error {
	a.mu.Lock()
	desk := a.desked
	a.mu.Unlock()
	reg := a.sessions.registry()
	if desk != nil {
		desk.Close()
	}
	a.http.CloseIdleConnections()
	defer a.house.Close() // behind the sessions, whose agents keep what they have done
	if reg == nil {
		return nil
	}
	reg.Shutdown()
	if err := a.Telemetry.End(); err != nil {
		a.opts.Logger.Debug("telemetry", "error", err)
	}
	a.http.CloseIdleConnections()
	return a.sessions.store.Close()
}

// temp is the private folder for output that does not fit into memory.
func (a *App) temp() string {
	if dir := filepath.Join(a.cfg.Data, "tmp"); !a.opts.Flags.Scratch && os.MkdirAll(dir, 0o700) == nil {
		return dir
	}
	return ""
}
