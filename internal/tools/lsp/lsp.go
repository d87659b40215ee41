// Package lsp asks language servers what they think of files: after an edit,
// whose result then says what it broke, and on demand.
//
// A server is started when a file of its language is first of interest, and never
// when it could run code of a workspace that is not trusted. What it says is
// hostile input, bounded in size and number. The package changes no file. It
// starts one goroutine for each server and one that reads its answers; they end
// with [Client.Close].
package lsp

import (
	"context"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"dure/internal/safety/sandbox"
	"dure/internal/safety/workspace"
)

// Config configures a [Client].
type Config struct {
	// Start starts a language server in a folder. Reading yields what it writes
	// to its standard output, and writing reaches its input; Close ends it, and
	// with that what is being read or written. It has ended when Close returns,
	// and the context may end it too. Required.
	Start func(ctx context.Context, argv []string, dir string) (io.ReadWriteCloser, error)

	// Find returns the path of a program, or "". Required.
	Find func(program string) string

	Root string       // the workspace, absolute and resolved; required
	FS   workspace.FS // reads the files; required

	// Servers are the servers that may be used, the better ones of a language
	// first; nil = [Defaults].
	Servers []Server

	// Trusted reports whether the user lets the workspace's own code run. Unless
	// it does, servers with RunsCode are not started after edits. nil = it is not.
	Trusted func() bool
}

// A Server is a language server.
type Server struct {
	Name string
	Argv []string // the first is looked for with Find

	// Languages has the language of each file name extension, in small letters
	// and with its dot, as the protocol names it.
	Languages map[string]string

	// Options are its initializationOptions.
	Options any

	// RunsCode says that it can run code of the workspace by itself: build
	// scripts, plug-ins, or an interpreter that settings of the project name.
	RunsCode bool
}

// Installed returns the names of the known servers that can be started.
func Installed() (names []string) {
	for _, s := range Defaults() {
		if sandbox.Find(s.Argv[0]) != "" {
			names = append(names, s.Name)
		}
	}
	return names
}

// Defaults returns the servers that are known: by the documentation of each.
func Defaults() []Server {
	return []Server{
		{
			Name: "gopls", Argv: []string{"gopls"}, Languages: map[string]string{".go": "go"},
			Options: map[string]any{"diagnosticsDelay": "50ms"}, // its own second is for people who type
		},
		{
			Name: "typescript", Argv: []string{"typescript-language-server", "--stdio"}, RunsCode: true,
			Languages: map[string]string{
				".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
				".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
			},
		},
		{Name: "pyright", Argv: []string{"pyright-langserver", "--stdio"}, Languages: python, RunsCode: true},
		{Name: "pylsp", Argv: []string{"pylsp"}, Languages: python, RunsCode: true},
		{
			Name: "rust-analyzer", Argv: []string{"rust-analyzer"}, Languages: map[string]string{".rs": "rust"}, RunsCode: true,
			Options: map[string]any{
				"checkOnSave": false, // it would build everything after each edit
				"cargo":       map[string]any{"buildScripts": map[string]any{"enable": false}},
				"procMacro":   map[string]any{"enable": false},
			},
		},
		{Name: "clangd", Argv: []string{"clangd", "--background-index=false"}, Languages: map[string]string{
			".c": "c", ".h": "c", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp", ".m": "objective-c",
		}},
	}
}

var python = map[string]string{".py": "python", ".pyi": "python"}

// lookAgain is how long it is remembered which servers are installed.
const lookAgain = 30 * time.Second

// Client speaks with the language servers of one session. It is safe for
// concurrent use.
type Client struct {
	Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	looked  time.Time
	paths   map[string]string // of the installed servers, by name
	running map[string]*server
}

// New returns a client. It starts nothing.
func New(c Config) *Client {
	if c.Start == nil || c.Find == nil || c.FS == nil || !filepath.IsAbs(c.Root) {
		panic("lsp: a Config without Start, Find, FS or Root")
	}
	if c.Servers == nil {
		c.Servers = Defaults()
	}
	l := &Client{Config: c, running: map[string]*server{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

// Close ends the servers, those that do not want to within a second, and waits.
func (l *Client) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	l.wg.Wait()
	return nil
}

// Enabled reports whether a server is installed.
func (l *Client) Enabled() bool { return len(l.installed()) > 0 }

// installed returns the paths of the programs of the installed servers.
func (l *Client) installed() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); l.paths == nil || now.Sub(l.looked) >= lookAgain {
		l.looked, l.paths = now, map[string]string{}
		for _, s := range l.Servers {
			if p := l.Find(s.Argv[0]); p != "" {
				l.paths[s.Name] = p
			}
		}
	}
	return l.paths
}

// spec returns the server for a file, and its argv.
func (l *Client) spec(path string) (Server, []string, bool) {
	paths := l.installed()
	for _, s := range l.Servers {
		if p := paths[s.Name]; p != "" && s.language(path) != "" {
			return s, append([]string{p}, s.Argv[1:]...), true
		}
	}
	return Server{}, nil, false
}

func (s Server) language(path string) string {
	return s.Languages[strings.ToLower(filepath.Ext(path))]
}

// runs returns the server of a file if it is running already.
func (l *Client) runs(path string) *server {
	s, _, ok := l.spec(path)
	if !ok {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.running[s.Name]
}

// server returns the server of a file and starts it if it has to; nil = there is
// none, or it may not be started.
func (l *Client) server(path string, agreed bool) *server {
	spec, argv, ok := l.spec(path)
	if !ok {
		return nil
	}
	trusted := agreed || !spec.RunsCode || l.Trusted != nil && l.Trusted()
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.running[spec.Name]
	if s != nil || l.closed || !trusted {
		return s
	}
	s = &server{client: l, spec: spec, argv: argv, wake: make(chan struct{}, 1), changed: make(chan struct{}), docs: map[string]*document{}}
	l.running[spec.Name] = s
	l.wg.Go(func() { s.run(l.ctx) })
	return s
}

// all returns the servers that run, by name.
func (l *Client) all() []*server {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []*server
	for _, s := range l.running {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b *server) int { return strings.Compare(a.spec.Name, b.spec.Name) })
	return list
}

// onWindows is how paths are read and written here.
const onWindows = runtime.GOOS == "windows"

// key is the form of a path in which two spellings of it are equal.
func key(path string) string {
	if onWindows {
		return strings.ToLower(filepath.Clean(path))
	}
	return filepath.Clean(path)
}
