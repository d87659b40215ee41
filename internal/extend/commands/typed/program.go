package typed

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/kernel/plug"
	"dure/internal/safety/trust"
)

// Config is what commands need of the program. All functions are required.
type Config struct {
	Workdir string
	Root    func(session, workdir string) string                  // the folder of a session that is open, else workdir
	Places  func(workdir string) []frontmatter.Place              // where the files of commands are looked for
	Skills  func(workdir string) []query.CommandInfo              // that can be typed
	Lender  func(workdir, name, file string) (trust.Lender, bool) // what a file lends as, see use.Extension
	Top     func(dir string) string                               // of its repository; "" = it has none
	Secret  func(name string) bool                                // a file of this name holds secrets
	NoAI    bool                                                  // settings forbid asking a model for the message of a commit
	Models  func() []string

	// Describe returns how commands are described in a language, and About how a skill of the
	// program is, instead of as models read it.
	Describe func(language string) func(name string) string
	About    func(language, name, about string) string

	Prompts Prompts
	Redact  func(string) string // masks secrets
}

// Prompts are those that servers have.
type Prompts struct {
	List  func(session string) []query.CommandInfo
	Ready func(ctx context.Context, session, text string) // waits a little for servers of which a text may name a prompt
	Later func(session, workdir, text string) bool        // a text may name one of a server that no session has connected
}

// Extension has the commands that can be typed. It is safe for concurrent use.
type Extension struct {
	plug.NoSession // its sessions are made by Session, and attached as what they are
	cfg            Config

	mu    sync.Mutex
	known map[string]found    // by folder; guarded by mu
	open  map[string]*Session // by ID; guarded by mu
}

// found are the commands of files for a folder, as they were at a time.
type found struct {
	at   time.Time
	list []commands.Command
}

// What is known of the commands of files.
const (
	holds      = time.Second // whoever types asks at every key
	maxFolders = 16
)

// New returns the extension.
func New(cfg Config) *Extension {
	return &Extension{cfg: cfg, known: map[string]found{}, open: map[string]*Session{}}
}

// Name returns the name of the extension.
func (x *Extension) Name() string { return "commands" }

// Answers returns the queries that the extension answers.
func (x *Extension) Answers() []plug.Answer {
	return []plug.Answer{plug.Storeless(x.List), plug.Storeless(x.read), plug.Answers(x.prepareCommit), plug.Answers(x.makeCommit)}
}

// in returns the commands of a session, which has to be open.
func (x *Extension) in(session string) (*Session, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s := x.open[session]; s != nil {
		return s, nil
	}
	return nil, agent.NotOpen(session)
}

// Verbatim reports whether an input is not to be looked through for the names of files:
// it shows changes.
func (x *Extension) Verbatim(session, input string) bool {
	s, err := x.in(session)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verbatim == input
}

// Text is what a model would read of a command of a file, or of a skill, that a person has
// typed. Commands in it run where that needs no question.
func (x *Extension) Text(ctx context.Context, session, name, arguments string) (string, error) {
	s, err := x.in(session)
	if err != nil {
		return "", err
	}
	c, ok := s.command()(name)
	if !ok {
		return s.Skill(ctx, name, arguments)
	}
	if off := c.Info().Off; off != "" {
		return "", errors.New(off)
	}
	text, err := s.prepare(ctx, c, arguments)
	return x.cfg.Redact(text), err
}

// Files returns the commands of files for a folder.
func (x *Extension) Files(workdir string) []commands.Command {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k, ok := x.known[workdir]; ok && time.Since(k.at) < holds {
		return k.list
	}
	if len(x.known) >= maxFolders {
		clear(x.known)
	}
	list := commands.Discover(x.cfg.Places(workdir))
	x.known[workdir] = found{time.Now(), list}
	return list
}

// typable is what can be typed in a folder besides what is built in, and in a session that
// is open there.
func (x *Extension) typable(session, workdir string) (all []query.CommandInfo) {
	all = x.cfg.Skills(workdir) // of two of a name, the skill counts
	for _, c := range x.Files(workdir) {
		all = append(all, c.Info())
	}
	return append(all, x.cfg.Prompts.List(session)...)
}

// List returns what can be typed.
func (x *Extension) List(_ context.Context, q query.ListCommands) ([]query.CommandInfo, error) {
	all := commands.List(x.cfg.Describe(q.Language))
	for i := range all {
		if all[i].Name == "model" {
			all[i].Values = append(all[i].Values, x.cfg.Models()...)
		}
	}
	for _, c := range x.typable(q.Session, x.cfg.Root(q.Session, cmp.Or(q.Workdir, x.cfg.Workdir))) {
		if _, taken := commands.Find(c.Name); taken {
			c.Off = "a built-in command has its name"
		}
		if c.Kind == query.CommandSkill && c.Scope == string(frontmatter.BuiltIn) {
			c.Description = x.cfg.About(q.Language, c.Name, c.Description)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(a, b query.CommandInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// read says what an input is.
func (x *Extension) read(ctx context.Context, q query.ReadCommand) (query.CommandRead, error) {
	dir := x.cfg.Root(q.Session, cmp.Or(q.Workdir, x.cfg.Workdir))
	x.cfg.Prompts.Ready(ctx, q.Session, q.Text)
	r := commands.Read(q.Text, commands.Known{
		Session: q.Session != "",
		Others:  x.typable(q.Session, dir),
		Exists: func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		},
	})
	if r.Is == query.ReadUnknown && x.cfg.Prompts.Later(q.Session, dir, q.Text) {
		return query.CommandRead{Is: query.ReadSend}, nil
	}
	return r, nil
}
