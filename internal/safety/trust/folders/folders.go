// Package folders says which folders the user trusts, and where files that extend the program
// are looked for. It starts no goroutines.
package folders

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// Config is what the extension needs of the program.
type Config struct {
	Store   trust.Store
	Workdir string
	Trusted bool            // the working folder is, as it was when the program started
	ByFlag  bool            // because the command line says so
	Never   bool            // nothing of a repository is put in force, whoever trusts it
	Left    func() []string // what the working folder brings and is not in force

	// Plugins are where plugins have files of a kind for the sessions of a folder.
	Plugins func(workdir, kind string) []frontmatter.Place

	// Managed, Home and UserHome are the folders of the administrator, of the program and of
	// the user; "" = there is none. WithoutUser and WithoutProject leave files out.
	Managed, Home, UserHome     string
	WithoutUser, WithoutProject bool

	Logger *slog.Logger
	Some   func(names []string) string // puts names on one line
}

// Extension is what is known of folders.
type Extension struct {
	plug.NoSession
	cfg Config

	mu     sync.Mutex
	files  trust.Held    // as the store said when it was asked last; guarded by mu
	begun  trust.Content // what the command line trusts: what was there before the first call; guarded by mu
	looked bool          // begun is that; guarded by mu
}

// New returns the extension.
func New(c Config) *Extension { return &Extension{cfg: c} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "trust" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.list), plug.Storeless(x.left), plug.Storeless(x.look), plug.Storeless(x.change)}
}

func (x *Extension) list(context.Context, query.ListTrust) ([]query.DecidedFolder, error) {
	list, err := x.cfg.Store.List()
	if err != nil {
		return nil, trust.Problem(x.cfg.Workdir, err)
	}
	return append([]query.DecidedFolder{}, list...), nil
}

func (x *Extension) left(context.Context, query.ListLeft) ([]string, error) {
	return append([]string{}, x.cfg.Left()...), nil
}

func (x *Extension) look(_ context.Context, q query.LookAtFolder) (query.FolderTrust, error) {
	if q.Dir == "" {
		q.Dir = x.cfg.Workdir
	}
	return x.Look(q.Dir)
}

// Look looks at a folder, and executes nothing of it.
func (x *Extension) Look(dir string) (query.FolderTrust, error) {
	c, state, err := x.cfg.Store.Look(dir)
	f := query.FolderTrust{Path: c.Folder.Path, State: state, Files: c.Files, Texts: c.Texts, Brings: map[string]int{}}
	for _, file := range c.Files {
		f.Brings[trust.What(file.Path)]++
	}
	if n := len(c.Texts); n > 0 {
		f.Brings["text"] = n
	}
	return f, err
}

func (x *Extension) change(_ context.Context, q query.ChangeTrust) (bool, error) {
	if q.Do == query.RevokeFolder {
		found, err := x.cfg.Store.Revoke(q.Dir)
		if err != nil {
			return false, trust.Problem(q.Dir, err)
		}
		return found, nil
	}
	c, _, err := x.cfg.Store.Look(q.Dir)
	if err != nil {
		return false, err
	}
	switch {
	case q.Do == query.NeverTrust:
		err = x.cfg.Store.Never(c.Folder, q.By)
	case q.Do != query.TrustFolder:
		err = fmt.Errorf("nothing to do with the trust in a folder: %q", q.Do)
	case !slices.Equal(c.Files, q.Files):
		err = errors.New("the folder has changed since it was shown")
	default:
		err = x.cfg.Store.Trust(c, q.By)
	}
	if err != nil {
		return false, trust.Problem(q.Dir, err)
	}
	return true, nil
}

// Findings says whether what the working folder brings is in force.
func (x *Extension) Findings(context.Context) []query.Finding {
	l := query.Findings{Group: query.Enforced}
	f, err := x.Look(x.cfg.Workdir)
	switch {
	case err != nil:
		l.Fault("trust", err)
	case x.cfg.Trusted:
		l.Add("trust", query.Good, "trust.yes", "path", f.Path)
	case f.State.Nothing:
		l.Add("trust", query.Good, "trust.nothing", "path", f.Path)
	case f.Stale() != nil:
		l.Add("trust", query.Warn, "trust.stale", "path", f.Path, "list", x.cfg.Some(f.Stale()))
	default:
		l.Add("trust", query.Warn, "trust.no", "path", f.Path, "n", strconv.Itoa(len(f.Files)))
	}
	return l.List
}

// Keep returns what keeps the working folder trusted once its user has changed a file: it trusts
// the folder again if it was trusted, and nothing else has changed by then.
func (x *Extension) Keep(file string) (again func()) {
	rel, err := filepath.Rel(x.cfg.Workdir, file)
	if err != nil || !filepath.IsLocal(rel) {
		return func() {}
	}
	before, err := x.Look(x.cfg.Workdir)
	if err != nil || !before.State.Trusted {
		return func() {}
	}
	return func() {
		after, err := x.Look(x.cfg.Workdir)
		if err != nil || len(after.State.Changed) != 1 || after.State.Changed[0].Path != filepath.ToSlash(rel) {
			return // it is asked about
		}
		again := query.ChangeTrust{Dir: after.Path, Do: query.TrustFolder, By: "command", Files: after.Files}
		if _, err := x.change(context.Background(), again); err != nil {
			x.cfg.Logger.Warn("trusting the folder anew", "error", err)
		}
	}
}

// Covers reports whether a file of a project is as it was when the folder that it
// belongs to was trusted: in the store, or by a flag before the first call of a session.
// What came or changed since has no powers until it is trusted.
func (x *Extension) Covers(path string, data []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.looked && x.cfg.ByFlag && trust.Takes(x.cfg.Workdir, path) {
		return true // nothing has run that could have put it there
	}
	x.files = x.cfg.Store.Held(x.files)
	return x.files.With(x.begun).Covers(path, data)
}

// Mark stands for what is trusted by file: another one means that it may differ.
func (x *Extension) Mark() string {
	info, err := os.Stat(x.cfg.Store.Path)
	if err != nil {
		return ""
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano())
}

// Begin takes what the folder brings now for what a flag trusts. It is called before
// any call of a session is decided on, or may run, and looks once.
func (x *Extension) Begin(record func(...agent.Body) error) error {
	if !x.cfg.ByFlag {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.looked {
		return nil
	}
	x.looked = true
	c, err := trust.Look(x.cfg.Workdir)
	if err == nil && c.Unfit != "" {
		err = errors.New(c.Unfit)
	}
	if err != nil {
		return record(agent.Note{Level: "warn", Text: "skills, commands and agents of the folder have no powers, because it cannot be looked at: " + err.Error()})
	}
	x.begun = c
	return nil
}

// Project returns the root of the project that a folder belongs to, and whether what
// it brings may be read. That is the repository's if it is trusted, else the folder.
func (x *Extension) Project(workdir string) (root string, trusted bool) {
	if top := trust.Repository(workdir); top != "" && top != workdir && x.Trusts(top) {
		return top, true
	}
	return workdir, x.Trusts(workdir)
}

// Trusts reports whether a folder is trusted with what it brings now; that of this
// run, as it was when the program was started.
func (x *Extension) Trusts(dir string) bool {
	if dir == x.cfg.Workdir || x.cfg.Never {
		return dir == x.cfg.Workdir && x.cfg.Trusted
	}
	_, state, err := x.cfg.Store.Look(dir)
	return err == nil && state.Trusted
}

// The kinds of files that extend the program, by the folders that they lie in.
const (
	Skills   = "skills"
	Commands = "commands"
	Agents   = "agents"
)

// All returns where files of a kind are looked for by a session in a folder.
func (x *Extension) All(workdir, kind string) []frontmatter.Place {
	return append(x.Places(workdir, kind), x.cfg.Plugins(workdir, kind)...)
}

// Places are those of [Extension.All] that are no plugin's, each
// once: the administrator's, the user's, and those of the project from the folder
// itself up to the root of its repository, nearest first. Nothing of it is read, and
// none of them need be there. What counts of two files of one name is for the kind to
// say.
func (x *Extension) Places(workdir, kind string) []frontmatter.Place {
	owners := trust.Owners
	if kind != Skills {
		owners = owners[:2]
	}
	var all []frontmatter.Place
	add := func(scope frontmatter.Scope, trusted bool, base string, owners ...string) {
		if base == "" {
			return
		}
		for _, owner := range owners {
			dir := filepath.Join(base, owner, kind)
			if !slices.ContainsFunc(all, func(p frontmatter.Place) bool { return p.Dir == dir }) {
				p := frontmatter.Place{Scope: scope, Dir: dir, Trusted: trusted}
				if trusted && scope == frontmatter.Project {
					p.Covers = x.Covers
				}
				all = append(all, p)
			}
		}
	}
	add(frontmatter.Managed, true, x.cfg.Managed, append([]string{""}, owners...)...)
	if !x.cfg.WithoutUser {
		add(frontmatter.User, true, x.cfg.Home, "")
		add(frontmatter.User, true, x.cfg.UserHome, owners[1:]...)
	}
	if x.cfg.WithoutProject {
		return all
	}
	top, trusted := x.Project(workdir)
	if repo := trust.Repository(workdir); !trusted && repo != "" {
		top = repo
	}
	for dir := workdir; ; dir = filepath.Dir(dir) {
		add(frontmatter.Project, trusted, dir, owners...)
		if dir == top || dir == filepath.Dir(dir) {
			return all
		}
	}
}

// Within reports whether a folder is trusted, or lies in the working folder and that is.
func (x *Extension) Within(dir string) bool {
	if _, ok := x.Project(dir); ok {
		return true
	}
	rel, err := filepath.Rel(x.cfg.Workdir, dir)
	return err == nil && filepath.IsLocal(rel) && x.Trusts(x.cfg.Workdir)
}
