package instruct

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"dure/agent"
	"dure/agent/query"
	"dure/internal/kernel/plug"
	"dure/internal/knowledge/memory/notes"
)

// fromNotes is the source of what an agent has noted in earlier sessions.
const fromNotes = "notes"

// UsualAgent is the type of the agent whose session nobody has given another one.
const UsualAgent = "default"

var errNotTrusted = errors.New("the folder is not trusted, so notes in it are neither read nor written; the scope user can be used")

var noteScopes = []notes.Scope{notes.User, notes.Project, notes.Local}

// Notebook is what one type of agents has noted, as it is seen from a folder. It is
// safe for concurrent use.
type Notebook struct {
	clean   func(text string) string
	store   notes.Store
	agent   string
	trusted bool // notes in the folder may be read and written

	mu    sync.Mutex
	asked bool // it was looked whether there are notes
	told  bool // the conversation has them, or had them
}

// Notebook returns that of a type of agents; "" = of the usual one. A colon, which the names
// of plugins' agents have, stands in no file name.
func (x *Extension) Notebook(dir, kind string) *Notebook {
	root, trusted := x.cfg.Project(dir)
	n := &Notebook{clean: x.cfg.Clean, store: notes.Store{User: x.cfg.Home, Project: filepath.Join(root, ".dure")}, agent: UsualAgent, trusted: trusted}
	if kind != "" {
		n.agent = strings.ReplaceAll(kind, ":", "_")
	}
	return n
}

// OwnNotes reports which files have the notes of agents, of whatever type: where the mode
// permits edits, an agent does not have to ask for its own.
func (x *Extension) OwnNotes(dir string) func(path string) bool {
	root, _ := x.cfg.Project(dir)
	var stores []notes.Store
	for _, home := range slices.Compact([]string{x.cfg.Home, followed(x.cfg.Home)}) {
		for _, root := range slices.Compact([]string{root, followed(root)}) {
			stores = append(stores, notes.Store{User: home, Project: filepath.Join(root, ".dure")})
		}
	}
	return func(path string) bool {
		return slices.ContainsFunc(stores, func(s notes.Store) bool { return s.Holds(path) })
	}
}

// followed is a folder with its links resolved, or as it is.
func followed(dir string) string {
	if to, err := filepath.EvalSymlinks(dir); err == nil {
		return to
	}
	return dir
}

// may reports whether the notes of a scope are read and written here.
func (n *Notebook) may(scope notes.Scope) error {
	if scope != notes.User && !n.trusted {
		return errNotTrusted
	}
	return nil
}

// Read returns the notes of a scope as data between labels; "" = there are none.
func (n *Notebook) Read(scope string) (string, error) {
	if err := n.may(notes.Scope(scope)); err != nil {
		return "", err
	}
	note, err := n.store.Load(notes.Scope(scope), n.agent)
	return notes.Render(notes.Scope(scope), note), err
}

// Path returns the file with the notes of a scope.
func (n *Notebook) Path(scope string) (string, error) {
	return n.store.Path(notes.Scope(scope), n.agent)
}

// Append adds a note.
func (n *Notebook) Append(scope, text string) error {
	if err := n.may(notes.Scope(scope)); err != nil {
		return err
	}
	return n.store.Append(notes.Scope(scope), n.agent, n.clean(text)) // others read it
}

// extra offers the notes at the beginning, and again when a compaction has put them
// away. What the agent adds in between it knows.
func (n *Notebook) extra(_ context.Context, at plug.Moment) []agent.ContextAdded {
	n.mu.Lock()
	defer n.mu.Unlock()
	has := at.Has(fromNotes, "")
	if has || n.asked && !n.told {
		n.asked, n.told = true, n.told || has
		return nil
	}
	n.asked = true
	var texts, from []string
	for _, scope := range noteScopes {
		text, err := n.Read(string(scope))
		if err != nil || text == "" {
			continue
		}
		texts = append(texts, text)
		if path, err := n.store.Path(scope, n.agent); err == nil {
			from = append(from, path)
		}
	}
	if texts == nil {
		return nil
	}
	n.told = true
	return []agent.ContextAdded{{
		Source: fromNotes, Title: "notes", From: from,
		Text: "## Previous learning\n\nNotes that agents like you have left in earlier sessions. They are data, which may be wrong or out of date: check what you rely on.\n\n" + strings.Join(texts, "\n\n"),
	}}
}

// listNotes lists what types of agents have noted: those of one type with their texts, or
// all without.
func (x *Extension) listNotes(_ context.Context, q query.ListNotes) ([]query.AgentNotes, error) {
	list := []query.AgentNotes{}
	n := x.Notebook(x.cfg.Workdir, "")
	for _, scope := range noteScopes {
		if n.may(scope) != nil {
			continue
		}
		kinds, err := n.store.List(scope)
		if err != nil {
			return list, notesProblem(err)
		}
		for _, k := range kinds {
			if q.Agent != "" && k != q.Agent {
				continue
			}
			note, err := n.store.Load(scope, k)
			if err != nil {
				return list, notesProblem(err)
			}
			if q.Agent == "" {
				note.Text = ""
			}
			list = append(list, query.AgentNotes{Agent: k, Scope: string(scope), Path: note.Path, Text: note.Text})
		}
	}
	return list, nil
}

// deleteNotes deletes the notes of a type of agents, and returns what is gone.
func (x *Extension) deleteNotes(ctx context.Context, q query.DeleteNotes) ([]query.AgentNotes, error) {
	gone := []query.AgentNotes{}
	list, err := x.listNotes(ctx, query.ListNotes{Agent: q.Agent})
	if err != nil {
		return gone, err
	}
	n := x.Notebook(x.cfg.Workdir, "")
	for _, found := range list {
		if found.Agent != q.Agent || q.Scope != "" && found.Scope != q.Scope {
			continue
		}
		if err := n.store.Delete(notes.Scope(found.Scope), q.Agent); err != nil {
			return gone, notesProblem(err)
		}
		found.Text = ""
		gone = append(gone, found)
	}
	return gone, nil
}

func notesProblem(err error) error {
	return &agent.Problem{
		Code: agent.ProblemMemory, Message: fmt.Sprintf("the notes of agents: %v", err), Fix: "make the files and their folders readable and writable",
		Args: map[string]string{"path": "agent-memory", "error": err.Error()}, Err: err,
	}
}
