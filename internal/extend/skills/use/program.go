package use

import (
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/skills"
	"dure/internal/extend/skills/builtin"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// Config is what skills need of the program. All functions are required.
type Config struct {
	Workdir   string
	Home      string                                                 // the folder of the user's own files
	Project   func(workdir string) (root string, trusted bool)       // the top of its project
	Top       func(workdir string) string                            // of its repository; "" = it has none
	Places    func(workdir, kind string) []frontmatter.Place         // where files are looked for: skills, or commands
	Covered   func(path string, data []byte) bool                    // a file is as it was when its folder was trusted
	Trusted   func(file string) (again func())                       // trusts a folder again, of which the user changes only a file
	Also      string                                                 // a file which says what is trusted
	State     map[string]string                                      // by name, of the settings
	Only      *[]string                                              // that models may use; nil = all
	NoBuiltIn bool                                                   // without those of the program
	About     func(name, about string) string                        // how one of the program is described to people
	Command   func(workdir string) func(string) (skills.Skill, bool) // a command of a file, as the skill that it is like
	BuiltIn   func(name string) bool                                 // there is a command of this name that the program has
	Split     func(text string) (name, rest string, ok bool)         // an input that begins with a command

	Korean  bool // the user reads Korean
	Effort  string
	NoShell bool    // commands in the texts of skills do not run, but for the program's own
	Budget  float64 // share of the window that the list of skills may take; 0 = the usual one
	Longest int     // bytes of the description of a skill in it; 0 = the usual number
	Logger  *slog.Logger

	Window func(model string) int                     // tokens that it takes; 0 = not known
	MayAsk func(of *plug.Session, model string) error // why what a project brings must not have a model read the conversation
	Redact func(text string) string
}

// A Policy is what decides about the calls of a session, as far as skills have to do with it.
type Policy interface {
	// Lend has rules hold in the place of those that were lent before, and returns
	// warnings. Leans reports whether a call would not be allowed without them.
	Lend([]plug.Rule) (warnings []string, err error)
	Leans(agent.Proposal) bool
}

// Extension has the skills. It is safe for concurrent use.
type Extension struct {
	plug.NoSession // its sessions are made by Session, and attached as what they are
	cfg            Config

	mu      sync.Mutex
	folders map[string]*folder // whose skills can be typed, by path; guarded by mu
}

// folder is the skills of a folder, as they were at a time.
type folder struct {
	set *skills.Set
	at  time.Time
}

// What is known of the skills that can be typed.
const (
	folderHolds = time.Second // whoever types asks at every key
	maxFolders  = 16
)

// New returns the extension.
func New(cfg Config) *Extension { return &Extension{cfg: cfg, folders: map[string]*folder{}} }

// Name returns the name of the extension.
func (x *Extension) Name() string { return "skills" }

// in returns the skills of a folder. Nothing is read yet.
func (x *Extension) in(workdir string, only *[]string) *skills.Set {
	root, _ := x.cfg.Project(workdir)
	if top := x.cfg.Top(workdir); top != "" {
		root = top
	}
	c := skills.Config{
		Workdir: workdir, Root: root, BuiltIn: builtin.Files, State: x.cfg.State, Also: []string{x.cfg.Also}, Only: only,
		Places: func() []frontmatter.Place { return x.cfg.Places(workdir, "skills") },
	}
	if x.cfg.NoBuiltIn {
		c.BuiltIn = nil
	}
	return skills.New(c)
}

// Typable are the skills that can be typed in a folder.
func (x *Extension) Typable(workdir string) (all []query.CommandInfo) {
	command := x.cfg.Command(workdir)
	for _, s := range x.folder(workdir).List() {
		if s.Place.Scope == frontmatter.BuiltIn {
			if _, ok := command(s.Name); ok || x.cfg.BuiltIn(s.Name) {
				continue // what somebody has written comes before what the program brings, and the command does what the skill says
			}
		}
		if s.NoUser && s.Off == "" {
			s.Off = "it is for the model alone"
		}
		all = append(all, query.CommandInfo{
			Name: s.Name, Description: s.Description, Hint: s.Hint, Kind: query.CommandSkill, Scope: s.Source(), Path: s.File, Off: s.Off,
		})
	}
	return all
}

// folder returns the skills of a folder, as they were at most a moment ago.
func (x *Extension) folder(workdir string) *skills.Set {
	workdir = filepath.Clean(workdir)
	x.mu.Lock()
	defer x.mu.Unlock()
	f := x.folders[workdir]
	if f == nil {
		if len(x.folders) >= maxFolders {
			clear(x.folders)
		}
		f = &folder{x.in(workdir, nil), time.Now()}
		x.folders[workdir] = f
	}
	if time.Since(f.at) >= folderHolds {
		f.at = time.Now()
		f.set.Refresh()
	}
	return f.set
}

// Lender returns what a file lends as; ok = its files have to be proven, because it is a
// project's.
func (x *Extension) Lender(workdir, name, file string) (l trust.Lender, ok bool) {
	l = trust.Lender{Name: name, Covers: x.proof(workdir, file)}
	if strings.EqualFold(filepath.Base(file), skills.File) {
		l.Dir = filepath.Dir(file)
	}
	return l, l.Covers != nil
}

// proof returns what says whether files beside one that extends the program are as they
// were when its folder was trusted; nil = it is no project's, or built in.
func (x *Extension) proof(workdir, file string) func(path string, data []byte) bool {
	if file == "" {
		return nil
	}
	for _, kind := range []string{"skills", "commands"} {
		for _, p := range x.cfg.Places(workdir, kind) {
			if rel, err := filepath.Rel(p.Dir, file); err == nil && filepath.IsLocal(rel) {
				return p.Covers
			}
		}
	}
	return x.cfg.Covered // of a folder below the working folder
}
