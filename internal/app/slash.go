package app

import (
	"cmp"
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/base/frontmatter"
	"dure/internal/extend/commands"
	"dure/internal/frontend/text"
	"dure/internal/safety/trust/folders"
)

// customHolds is how long the commands of files are taken for right: whoever types asks
// at every key.
const customHolds = time.Second

// customs are the commands of files, by the folder that sessions work in.
type customs struct {
	mu    sync.Mutex
	known map[string]customList // guarded by mu
	open  map[string]*typed     // what makes prompts of commands, by session; guarded by mu
}

type customList struct {
	at   time.Time
	list []commands.Command
}

// typing says whose commands are made prompts of in a session; nil = nobody's any more.
func (a *App) typing(session string, t *typed) {
	a.slash.mu.Lock()
	defer a.slash.mu.Unlock()
	if a.slash.open == nil {
		a.slash.open = map[string]*typed{}
	}
	if a.slash.open[session] = t; t == nil {
		delete(a.slash.open, session)
	}
}

// typedIn returns what makes prompts in a session, which has to be open.
func (a *App) typedIn(session string) (*typed, error) {
	a.slash.mu.Lock()
	defer a.slash.mu.Unlock()
	if t := a.slash.open[session]; t != nil {
		return t, nil
	}
	return nil, agent.NotOpen(session)
}

// verbatim reports whether an input is not to be looked through for the names of files:
// it shows changes.
func (a *App) verbatim(session, input string) bool {
	t, err := a.typedIn(session)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.verbatim == input
}

// maxCustoms bounds the folders whose commands are kept in memory.
const maxCustoms = 16

// customCommands returns the commands of files for a folder.
func (a *App) customCommands(workdir string) []commands.Command {
	a.slash.mu.Lock()
	defer a.slash.mu.Unlock()
	if k, ok := a.slash.known[workdir]; ok && time.Since(k.at) < customHolds {
		return k.list
	}
	if len(a.slash.known) >= maxCustoms || a.slash.known == nil {
		a.slash.known = map[string]customList{}
	}
	list := commands.Discover(a.trust.All(workdir, folders.Commands))
	a.slash.known[workdir] = customList{time.Now(), list}
	return list
}

// typable is what can be typed in a folder besides what is built in, and in a session that
// is open there.
func (a *App) typable(session, workdir string) (all []query.CommandInfo) {
	all = a.typableSkills(workdir) // of two of a name, the skill counts
	for _, c := range a.customCommands(workdir) {
		all = append(all, c.Info())
	}
	return append(all, a.servers.Of(session).Prompts()...)
}

// folderOf is the folder that a query on commands is about.
func (a *App) folderOf(session, workdir string) string {
	a.mu.Lock()
	reg := a.reg
	a.mu.Unlock()
	if reg != nil && session != "" {
		workdir = cmp.Or(reg.Workdir(session), workdir)
	}
	return cmp.Or(workdir, a.opts.Workdir)
}

// listCommands returns what can be typed.
func (a *App) listCommands(q query.ListCommands) []query.CommandInfo {
	all := commands.List(text.For(q.Language).Command)
	for i := range all {
		if all[i].Name == "model" {
			for _, m := range a.models.Models.All() {
				all[i].Values = append(all[i].Values, m.ID)
			}
		}
	}
	for _, c := range a.typable(q.Session, a.folderOf(q.Session, q.Workdir)) {
		if _, taken := commands.Find(c.Name); taken {
			c.Off = "a built-in command has its name"
		}
		if c.Kind == query.CommandSkill && c.Scope == string(frontmatter.BuiltIn) {
			c.Description = ownAbout(q.Language, c.Name, c.Description)
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(x, y query.CommandInfo) int { return cmp.Compare(x.Name, y.Name) })
	return all
}

// readCommand says what an input is.
func (a *App) readCommand(ctx context.Context, q query.ReadCommand) query.CommandRead {
	dir := a.folderOf(q.Session, q.Workdir)
	a.servers.Of(q.Session).Ready(ctx, q.Text)
	r := commands.Read(q.Text, commands.Known{
		Session: q.Session != "",
		Others:  a.typable(q.Session, dir),
		Exists: func(path string) bool {
			_, err := os.Lstat(path)
			return err == nil
		},
	})
	if r.Is == query.ReadUnknown && q.Session == "" && a.servers.PromptLater(dir, q.Text) {
		return query.CommandRead{Is: query.ReadSend}
	}
	return r
}
