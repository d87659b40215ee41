// Package app builds the program: settings, store, models, tools, policy, guard
// and sessions, in dependency order. It is the only package that knows them all.
//
// Building reads settings and nothing else; the store is opened, and everything
// a session needs is made, when it is first asked for. It starts no goroutines
// of its own; those of its sessions end with [App.Close].
package app

import (
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"dure/agent"
	"dure/client"
	"dure/internal/config"
	"dure/internal/journal"
	"dure/internal/models"
	"dure/internal/session"
)

// Flags are what the command line says. Zero values say nothing.
type Flags struct {
	Model        string
	Mode         string
	Skip         bool // --dangerously-skip-permissions
	Allow, Deny  []string
	BaseURL      string
	Settings     string // a file, or a JSON object
	Dialect      string
	Durability   string
	AddDirs      []string
	SystemAppend string
	Scratch      bool // keep nothing on disk
}

// Options say how to build the program. Workdir is required.
type Options struct {
	Flags    Flags
	Environ  []string // as os.Environ
	UserHome string
	Workdir  string // absolute
	Language string // en or ko, of the locale; settings are stronger
	Version  string
	Logger   *slog.Logger // nil = nothing is logged

	// Fault is for crash tests: it is called at every write boundary of the
	// store.
	Fault func(boundary string)
}

// App is the program, built. It is safe for concurrent use.
type App struct {
	opts   Options
	cfg    config.Config
	models *models.Catalog
	http   *http.Client

	open func() (*session.Registry, error) // opens the store, once

	mu     sync.Mutex
	store  *journal.Local // nil until it is opened
	reg    *session.Registry
	served map[string]agent.Model // by ID
}

// New reads the settings and returns the program. Its errors are
// [*agent.Problem].
func New(o Options) (*App, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	cfg, err := config.Load(config.Sources{
		ReadFile: config.ReadFile, Getenv: getenv(o.Environ), UserHome: o.UserHome, Workdir: o.Workdir,
		OS: runtime.GOOS, Language: o.Language, Settings: o.Flags.Settings, Flags: o.Flags.settings(),
	})
	if err != nil {
		return nil, err
	}
	if err := checkRules(&cfg); err != nil {
		return nil, err
	}
	a := &App{
		opts: o, cfg: cfg, models: models.New(cfg.Models), served: map[string]agent.Model{},
		http: &http.Client{Transport: transport()},
	}
	a.open = sync.OnceValues(a.openStore)
	return a, nil
}

// settings turns flags into the layer that they are.
func (f Flags) settings() config.Settings {
	var s config.Settings
	text := func(v string) *string {
		if v == "" {
			return nil
		}
		return &v
	}
	mode := f.Mode
	if f.Skip {
		mode = string(agent.ModeBypass)
	}
	s.Model, s.BaseURL, s.PermissionMode = text(f.Model), text(f.BaseURL), text(mode)
	s.Dialect, s.Durability = text(f.Dialect), text(f.Durability)
	s.Permissions = &config.Permissions{Allow: f.Allow, Deny: f.Deny, AddDirs: f.AddDirs}
	return s
}

// Client returns the client of the sessions of this program.
func (a *App) Client() client.Client { return client.New(wire{a}) }

// Config returns the settings.
func (a *App) Config() config.Config { return a.cfg }

// DataDir returns the folder in which sessions are kept.
func (a *App) DataDir() string { return a.cfg.Data }

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
	reg := session.New(session.Config{
		Store: store, Build: a.build, Query: a.query, Logger: a.opts.Logger,
		Version: a.opts.Version, Host: host, PID: os.Getpid(),
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.store, a.reg = store, reg
	return reg, nil
}

// Close ends all sessions and waits for them.
func (a *App) Close() error {
	a.mu.Lock()
	store, reg := a.store, a.reg
	a.mu.Unlock()
	a.http.CloseIdleConnections()
	if reg == nil {
		return nil
	}
	reg.Shutdown()
	return store.Close()
}

// temp is the private folder for output that does not fit into memory.
func (a *App) temp() string {
	dir := filepath.Join(a.cfg.Data, "tmp")
	if a.opts.Flags.Scratch || os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	return dir
}
