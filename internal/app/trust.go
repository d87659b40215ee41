package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"dure/agent"
	"dure/internal/app/config"
	"dure/internal/extend/mcp/servers"
	"dure/internal/safety/trust"
	"dure/internal/safety/trust/grants"
)

// Folder is what a folder brings that changes what runs, and what the user has
// decided on it.
type Folder struct {
	Path   string         `json:"path"` // as it really is
	State  trust.State    `json:"state"`
	Files  []trust.File   `json:"files"`
	Texts  []string       `json:"texts,omitempty"`  // that a model is told to follow
	Brings map[string]int `json:"brings,omitempty"` // how many files, by what they are for

	content trust.Content
	store   trust.Store
}

// TrustedFolder is a folder that the user has decided on.
type TrustedFolder = trust.Listed

// Folder looks at a folder, and executes nothing of it.
func (a *App) Folder(dir string) (Folder, error) {
	return folderOf(dir, trustStore(a.cfg))
}

func trustStore(cfg config.Config) trust.Store {
	return trust.Store{Path: filepath.Join(cfg.Data, "trust.json")}
}

// grantStore keeps what the user has allowed for good, by folder.
func (a *App) grantStore() grants.Store {
	return grants.Store{Dir: filepath.Join(a.cfg.Data, "grants")}
}

func folderOf(dir string, store trust.Store) (Folder, error) {
	c, err := trust.Look(dir)
	if err != nil {
		return Folder{}, trustProblem(dir, err)
	}
	f := Folder{Path: c.Folder.Path, Files: c.Files, Texts: c.Texts, content: c, store: store}
	for _, file := range c.Files {
		if f.Brings == nil {
			f.Brings = map[string]int{}
		}
		f.Brings[trust.What(file.Path)]++
	}
	if n := len(c.Texts); n > 0 {
		if f.Brings == nil {
			f.Brings = map[string]int{}
		}
		f.Brings["text"] = n
	}
	if f.State, err = store.Check(c); err != nil {
		return f, trustProblem(dir, err)
	}
	return f, nil
}

// Stale returns the files that have changed since the folder was trusted, which is why it
// is not any more; nil = that is not why.
func (f Folder) Stale() (files []string) {
	if f.State.Trusted || f.State.Replaced || f.State.Unfit != "" {
		return nil
	}
	for _, c := range f.State.Changed {
		files = append(files, c.Path)
	}
	return files
}

// Trust records that the user trusts what was found in the folder, and not what may
// be there by now.
func (f Folder) Trust(by string) error {
	if err := f.store.Trust(f.content, by); err != nil {
		return trustProblem(f.Path, err)
	}
	return nil
}

// Never records that the user does not want to be asked about the folder.
func (f Folder) Never(by string) error {
	if err := f.store.Never(f.content.Folder, by); err != nil {
		return trustProblem(f.Path, err)
	}
	return nil
}

// Folders lists the folders that were decided on.
func (a *App) Folders() ([]TrustedFolder, error) {
	list, err := trustStore(a.cfg).List()
	if err != nil {
		return nil, trustProblem(a.opts.Workdir, err)
	}
	return list, nil
}

// Distrust forgets what was decided on a folder, and reports whether there was
// something.
func (a *App) Distrust(dir string) (bool, error) {
	found, err := trustStore(a.cfg).Revoke(dir)
	if err != nil {
		return false, trustProblem(dir, err)
	}
	return found, nil
}

// AsksForTrust reports whether the user is asked about folders that nobody has
// decided on.
func (a *App) AsksForTrust() bool { return a.cfg.Trust != config.TrustNever }

// Left returns what the folder brings and is not in force, because nobody trusts it.
func (a *App) Left() []string {
	var list []string
	for _, i := range a.cfg.Inert {
		if i.Why == config.Untrusted && !slices.Contains(list, i.Key) {
			list = append(list, i.Key)
		}
	}
	known, _ := a.serversIn(a.opts.Workdir)
	if slices.ContainsFunc(known, func(k servers.Known) bool { return k.State == servers.Untrusted }) {
		list = append(list, servers.FileName)
	}
	return list
}

func trustProblem(dir string, err error) error {
	return &agent.Problem{
		Code: agent.ProblemTrust, Message: err.Error(), Fix: "look at the folder with dure trust show", Err: err,
		Args: map[string]string{"path": dir, "error": err.Error()},
	}
}

// held is what is trusted by file, as the store said when it was asked last.
type held struct {
	mu     sync.Mutex
	files  trust.Held    // guarded by mu
	now    trust.Content // what a flag trusts: what was there before the first call
	looked bool          // now is that; guarded by mu
}

// covered reports whether a file of a project is as it was when the folder that it
// belongs to was trusted: in the store, or by a flag before the first call of a session.
// What came or changed since has no powers until it is trusted.
func (a *App) covered(path string, data []byte) bool {
	h := &a.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.looked && a.trustsByFlag() && trust.Takes(a.opts.Workdir, path) {
		return true // nothing has run that could have put it there
	}
	h.files = trustStore(a.cfg).Held(h.files)
	return h.files.With(h.now).Covers(path, data)
}

// trustsByFlag reports whether a flag trusts the folder: --trust, or bypass mode.
func (a *App) trustsByFlag() bool {
	return a.cfg.Trusted && a.opts.Flags.trusts()
}

// trusts reports whether the flags say that the folder is trusted.
func (f Flags) trusts() bool {
	return !f.Elsewhere && (f.Trust || f.Skip || f.Mode == string(agent.ModeBypass))
}

// trustMark stands for what is trusted by file: another one means that it may differ.
func (a *App) trustMark() string {
	info, err := os.Stat(trustStore(a.cfg).Path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// trustNow takes what the folder brings now for what a flag trusts. It is called before
// any call of a session is decided on, or may run, and looks once.
func (a *App) trustNow(record func(...agent.Body) error) error {
	if !a.trustsByFlag() {
		return nil
	}
	h := &a.held
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.looked {
		return nil
	}
	h.looked = true
	c, err := trust.Look(a.opts.Workdir)
	if err == nil && c.Unfit != "" {
		err = errors.New(c.Unfit)
	}
	if err != nil {
		return record(agent.Note{Level: "warn", Text: "skills, commands and agents of the folder have no powers, because it cannot be looked at: " + err.Error()})
	}
	h.now = c
	return nil
}

// load reads the settings, with what a trusted folder brings. Whoever runs without
// asking (--trust, bypass mode) has said that it is trusted.
func load(src config.Sources, f Flags) (config.Config, error) {
	cfg, err := config.Load(src)
	if err != nil {
		return cfg, err
	}
	if !f.trusts() {
		folder, ferr := folderOf(src.Workdir, trustStore(cfg))
		if ferr != nil {
			cfg.Notes = append(cfg.Notes, agent.Note{Level: "warn", Text: ferr.Error()})
		}
		if ferr != nil || !folder.State.Trusted {
			return cfg, nil
		}
		src.ReadFile = folder.content.Under(src.Workdir, src.ReadFile) // what was judged
	}
	src.Trusted = true
	return config.Load(src)
}
